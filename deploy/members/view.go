package members

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/weft-sdn/weft"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/deploy/apps"
	"github.com/weft-sdn/weft/plan"
)

// View says which process runs what now. It is replaced, never written to; its
// replacement closes next.
type View struct {
	Current    *Current
	Mine       plan.Instance
	Routes     map[string][]*Target // by service, in the order of instances
	Parts      *Parts               // nil: this process does not reach several partitions
	Superseded map[RunOf]bool       // superseded runs
	Records    bool                 // all processes read records of decisions
	Next       chan struct{}
}

// Target is one instance of a service.
type Target struct {
	Peer      *Peer // nil: this process
	instance  string
	partition string // of its process
	epoch     uint64
	State     string
}

// Parts is a process's view of the partitions of a plan with several. A process
// that belongs to none sees all of them. A process of one partition sees the
// others, too, if they are parts of one network.
type Parts struct {
	Plan    *plan.Plan
	Own     string                          // the process's own; empty if it works for all
	Methods map[string]*api.Routing         // of services that run per partition
	asOne   map[string]bool                 // clustered services
	Runs    map[string]map[string]bool      // by partition: the services that run in it
	targets map[string]map[string][]*Target // by partition and service
}

// partsOf returns this process's view of the partitions of a plan; nil if it
// sees none. Its targets are empty.
func partsOf(c *Current, mine plan.Instance, specs []weft.Spec) *Parts {
	if len(c.InForce().Partitions) < 2 || mine.Partition != "" && !c.InForce().OneNetwork(specs) {
		return nil
	}
	p := &Parts{Plan: c.InForce(), Own: mine.Partition, Methods: map[string]*api.Routing{}, asOne: c.InForce().AsOne(specs), Runs: map[string]map[string]bool{}, targets: map[string]map[string][]*Target{}}
	for _, x := range c.InForce().Partitions {
		p.Runs[x.Name], p.targets[x.Name] = map[string]bool{}, map[string][]*Target{}
	}
	for _, w := range c.InForce().Workers {
		for _, s := range w.Services {
			if w.Partition != "" {
				p.Runs[w.Partition][s] = true
			}
		}
	}
	for method, routing := range api.Routings() {
		if c.InForce().RunsPerPartition(OwnerOf(method)) {
			p.Methods[method] = routing
		}
	}
	return p
}

// add adds an instance.
func (p *Parts) add(service string, t *Target) {
	if p == nil || p.targets[t.partition] == nil {
		return
	}
	p.targets[t.partition][service] = append(p.targets[t.partition][service], t)
}

// Of returns the instances of a service that work for a partition: its own, or,
// if the plan gives it none, those that work for all.
func (v *View) Of(service, partition string) []*Target {
	if v.Parts != nil && v.Parts.Runs[partition][service] {
		return v.Parts.targets[partition][service]
	}
	return v.Routes[service]
}

// NewView returns the view of a process by the entries of all.
func NewView(c *Current, process string, entries map[string]*Entry, peers map[string]*Peer, specs []weft.Spec) *View {
	mine, _ := c.InstanceOf(process)
	v := &View{Current: c, Mine: mine, Routes: map[string][]*Target{}, Parts: partsOf(c, mine, specs), Superseded: superseded(entries, specs), Next: make(chan struct{})}
	v.Records = true
	for _, name := range slices.Sorted(maps.Keys(entries)) {
		e, p := entries[name], peers[name]
		v.Records = v.Records && e.Records
		if p == nil && name != process {
			continue
		}
		near := mine.Partition == "" || e.Partition == "" || e.Partition == mine.Partition
		for _, s := range e.Services {
			if s.State == StateStandby || v.Superseded[RunOf{s.Name, e.Partition, s.Epoch}] {
				continue
			}
			t := &Target{Peer: p, instance: name, partition: e.Partition, epoch: s.Epoch, State: s.State}
			v.Parts.add(s.Name, t)
			if near || v.Parts.Clustered(s.Name) {
				v.Routes[s.Name] = append(v.Routes[s.Name], t)
			}
		}
		for _, a := range e.Apps {
			if near && a.Kind == apps.Stage.String() {
				v.Routes[a.Name] = append(v.Routes[a.Name], &Target{Peer: p, instance: name, partition: e.Partition, epoch: a.Epoch, State: StateReady})
			}
		}
	}
	return v
}

// Number returns which of how many instances of a service that of this process
// is; false if it is none of them. Those that the plan does not have do not
// count: such a process has ended, or will, though it may not have been able to
// say so.
func (v *View) Number(service, partition string) (index, count int, ok bool) {
	for _, t := range v.Routes[service] {
		if _, planned := v.Current.InstanceOf(t.instance); t.State == StateDraining || t.State == StateStarting || !planned || t.partition != partition && !v.Parts.Clustered(service) {
			continue
		}
		if t.Peer == nil {
			index, ok = count, true
		}
		count++
	}
	return index, count, ok
}

// Pause waits for another view, but not for long; it fails after the deadline.
func (v *View) Pause(ctx context.Context, deadline time.Time) error {
	timer := time.NewTimer(RedialAfter)
	defer timer.Stop()
	select {
	case <-v.Next:
	case <-timer.C:
	case <-ctx.Done():
		return ctx.Err()
	}
	if time.Now().After(deadline) {
		return errors.New("too late")
	}
	return nil
}

// BalanceOf returns how packet-ins are balanced over the replicas of a target.
func (v *View) BalanceOf(t *Target) string {
	if v.Current == nil {
		return ""
	}
	worker := v.Mine.Worker
	if t.Peer != nil {
		worker = t.Peer.Entry.Load().Worker
	}
	if w := v.Current.InForce().Worker(worker); w != nil {
		return w.Balance
	}
	return v.Current.InForce().Balance
}

// Pick returns the instance of a service for a call: the ready one with the
// fewest requests; if none is ready, one that is syncing, or one that is
// draining, which may be waiting for the caller; nil if there is none.
func Pick(instances []*Target) *Target {
	var best *Target
	score := func(t *Target) int64 {
		var s int64
		if t.Peer != nil {
			s = t.Peer.Outstanding.Load()
		}
		switch t.State {
		case StateSyncing:
			s += 1 << 40
		case StateDraining:
			s += 1 << 41
		}
		return s
	}
	for _, t := range instances {
		if t.State == StateStarting || t.Peer != nil && !t.Peer.Usable() {
			continue
		}
		if best == nil || score(t) < score(best) {
			best = t
		}
	}
	return best
}
