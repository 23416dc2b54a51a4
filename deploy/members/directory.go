// Package members knows the processes of a plan: the directory in which they
// find each other and the plan in force, which of them runs what now (View), and
// connections to them (Peer).
//
// deploy imports it, and those who bring plans into force.
package members

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/weft-sdn/weft"
	"github.com/weft-sdn/weft/deploy/local"
	"github.com/weft-sdn/weft/plan"
)

// The buckets through which processes find each other.
const (
	PlanBucket    = "deploy.plan"
	WorkersBucket = "deploy.workers"
	planKey       = "current"
)

// Entry is what a process publishes about itself. Only that process writes it.
type Entry struct {
	Process     string            // its name
	Instance    string            // its instance in the plan; empty if none
	Worker      string            // the worker of the plan that it is an instance of
	Partition   string            // of its services; empty if they serve all
	Incarnation uint64            // distinguishes this run of the process from others
	PID         int               // process id on its machine
	Machine     string            // host name
	Version     string            // of the binary
	Started     time.Time         // when it began
	Addresses   map[string]string // where it listens, by transport
	Stamps      bool              // requests to it carry stamps; false for an earlier build
	Records     bool              // it reads records of decisions; false for an earlier build
	Numbers     bool              // it knows a request that is made again by its number; false for an earlier build
	Generation  uint64            // of the plan that it has applied
	Services    []ServiceState
	Apps        []AppState     // that are attached to it
	Failed      *ConfigFailure // why it cannot use a configuration on trial; nil if it can
}

// AppState is an app that is attached to a process.
type AppState struct {
	Name      string
	Kind      string // stage or observer
	Transport string // transport over which it is attached
	Peer      string // remote address
	Epoch     uint64 // distinguishes this attachment from others
}

// ConfigFailure says why a process cannot use a configuration on trial.
type ConfigFailure struct {
	Generation uint64 // of the plan
	Service    string
	Error      string
}

// ServiceState is one service of a process.
type ServiceState struct {
	Name       string
	Epoch      uint64 // distinguishes this run of the service from others
	State      string // StateStarting ...
	Subscribes []string
}

// The states of a service in a process.
const (
	StateStarting = "starting" // it sets itself up
	StateSyncing  = "syncing"  // it receives what the others retain
	StateReady    = "ready"    // it serves
	StateDraining = "draining" // it finishes calls and packets in progress
)

// Service returns the state of a service; nil if the process does not run it.
func (e *Entry) Service(name string) *ServiceState {
	for i := range e.Services {
		if e.Services[i].Name == name {
			return &e.Services[i]
		}
	}
	return nil
}

// Current is the plan in force.
type Current struct {
	Generation uint64            // counts the plans
	Plan       string            // YAML
	Wiring     uint64            // generation of the last plan that changed who works together, and for which switches
	Processes  map[string]string // the process of each instance; one not listed is the process of its own name
	Trial      bool              // its configuration is on trial: a process that cannot use it reports that
	Why        string            `json:",omitempty"` // why a process applied it by itself; empty if somebody asked for it
	plan       *plan.Plan
	runs       map[string]plan.Instance // by process; nil if it has to be found in plan
}

// ProcessOf returns the name of the process that runs an instance.
func (c *Current) ProcessOf(instance string) string {
	if p := c.Processes[instance]; p != "" {
		return p
	}
	return instance
}

// InstanceOf returns the instance of the plan that a process runs.
func (c *Current) InstanceOf(process string) (plan.Instance, bool) {
	if c == nil {
		return plan.Instance{}, false
	}
	runs := c.runs
	if runs == nil {
		runs = c.instances()
	}
	i, ok := runs[process]
	return i, ok
}

// instances returns the instances of the plan by process.
func (c *Current) instances() map[string]plan.Instance {
	runs := map[string]plan.Instance{}
	for _, i := range slices.Backward(c.plan.Instances()) { // of two of one process, the first
		runs[c.ProcessOf(i.Name)] = i
	}
	return runs
}

// ListenOf returns the address at which the plan lets a process listen for
// others.
func (c *Current) ListenOf(process string) string {
	i, _ := c.InstanceOf(process)
	if w := c.plan.Worker(i.Worker); w != nil {
		return w.Listen
	}
	return "127.0.0.1:0"
}

// InForce returns the plan.
func (c *Current) InForce() *plan.Plan { return c.plan }

// Directory holds the plan in force and the running processes, read from the
// store.
type Directory struct {
	plans, workers weft.Bucket
}

// OpenDirectory opens the directory of a store.
func OpenDirectory(ctx context.Context, store local.Store) (*Directory, error) {
	plans, err := store.Bucket(ctx, PlanBucket)
	if err != nil {
		return nil, err
	}
	workers, err := store.Bucket(ctx, WorkersBucket)
	return &Directory{plans, workers}, err
}

// Current returns the plan in force and its revision; nil and 0 if there is
// none.
func (d *Directory) Current(ctx context.Context) (*Current, uint64, error) {
	data, revision, err := d.plans.Get(ctx, planKey)
	if err != nil || revision == 0 {
		return nil, 0, err
	}
	c, err := decodeCurrent(data)
	return c, revision, err
}

func decodeCurrent(data []byte) (*Current, error) {
	c := &Current{}
	if err := json.Unmarshal(data, c); err != nil {
		return nil, fmt.Errorf("the plan in force cannot be read: %w", err)
	}
	if c.Wiring == 0 { // an earlier build applied it
		c.Wiring = c.Generation
	}
	p, err := plan.Parse("the plan in force", []byte(c.Plan))
	if c.plan = p; err == nil {
		c.runs = c.instances()
	}
	return c, err
}

// Put brings a plan into force, unless another one replaced the plan of the
// given revision.
func (d *Directory) Put(ctx context.Context, c *Current, revision uint64) error {
	data, err := json.Marshal(c)
	if err != nil {
		return err
	}
	_, err = d.plans.Update(ctx, planKey, data, revision)
	if errors.Is(err, weft.ErrRevision) {
		return errors.New("another plan has been applied meanwhile; look at it with weft plan show --running, and try again")
	}
	return err
}

// Take brings a plan into force whose only process is the caller. The caller
// alone holds the store: all other processes have ended.
func (d *Directory) Take(ctx context.Context, p *plan.Plan, specs []weft.Spec) error {
	old, revision, err := d.Current(ctx)
	if err != nil && revision == 0 {
		return err
	}
	entries, err := d.Entries(ctx)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if err := d.Remove(ctx, e.Process); err != nil {
			return err
		}
	}
	next, err := Succeed(nil, p, specs)
	if err != nil {
		return err
	}
	if old != nil {
		next.Generation = old.Generation + 1
		next.Wiring = next.Generation
	}
	return d.Put(ctx, next, revision)
}

// Entries returns the processes, by name.
func (d *Directory) Entries(ctx context.Context) ([]*Entry, error) {
	var list []*Entry
	err := d.workers.All(ctx, func(_ string, value []byte, _ uint64) error {
		e := &Entry{}
		if json.Unmarshal(value, e) == nil { // an unreadable one is of another version
			list = append(list, e)
		}
		return nil
	})
	slices.SortFunc(list, func(a, b *Entry) int {
		if a.Process < b.Process {
			return -1
		}
		return 1
	})
	return list, err
}

// Remove removes the entry of a process that ended without doing so.
func (d *Directory) Remove(ctx context.Context, process string) error {
	return d.workers.Delete(ctx, process)
}

// Follow calls current and entry for the present state and for every change,
// until ctx ends.
func (d *Directory) Follow(ctx context.Context, current func(*Current), entry func(process string, e *Entry)) error {
	return d.Watch(ctx, func(c *Current, err error) {
		if err == nil {
			current(c)
		}
	}, entry, func() {})
}

func (d *Directory) PutEntry(ctx context.Context, e *Entry) error {
	data, err := json.Marshal(e)
	if err == nil {
		_, err = d.workers.Put(ctx, e.Process, data)
	}
	return err
}

// Watch calls plan and entry for the present state and for every change, until
// ctx ends; an entry is nil when it is gone. It calls settled after the present
// state.
func (d *Directory) Watch(ctx context.Context, current func(*Current, error), entry func(process string, e *Entry), settled func()) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	errs := make(chan error, 2)
	first := make(chan struct{}, 2)
	go func() {
		errs <- d.plans.Watch(ctx, func(key string, value []byte, _ uint64) {
			switch {
			case key == "":
				first <- struct{}{}
			case key == planKey && value != nil:
				current(decodeCurrent(value))
			}
		})
	}()
	go func() {
		errs <- d.workers.Watch(ctx, func(key string, value []byte, _ uint64) {
			if key == "" {
				first <- struct{}{}
				return
			}
			var e *Entry
			if value != nil {
				e = &Entry{}
				if err := json.Unmarshal(value, e); err != nil {
					return // of another version
				}
			}
			entry(key, e)
		})
	}()
	go func() {
		for range 2 {
			select {
			case <-first:
			case <-ctx.Done():
				return
			}
		}
		settled()
	}()
	err := <-errs
	cancel()
	<-errs //nolint:errcheck // the context has ended
	return err
}
