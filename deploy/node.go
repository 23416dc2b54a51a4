package deploy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc/codes"

	"github.com/weft-sdn/weft"
	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/deploy/apps"
	"github.com/weft-sdn/weft/deploy/config"
	"github.com/weft-sdn/weft/deploy/local"
	"github.com/weft-sdn/weft/deploy/members"
	"github.com/weft-sdn/weft/deploy/packets"
	"github.com/weft-sdn/weft/internal/backoff"
	"github.com/weft-sdn/weft/plan"
	"github.com/weft-sdn/weft/transport"
)

// NodeConfig says how a process takes part in a plan.
type NodeConfig struct {
	// Process is the name of the process: that of its instance in the plan,
	// unless a plan applied later has made another instance of it.
	Process string
	// Version is that of the binary.
	Version string
	// Specs are all services that the binary has.
	Specs []weft.Spec
	// Store holds the durable state, the plan in force and the directory.
	Store local.Store
	// Settings override those of the plan.
	Settings []config.Override
	// Listen offers a handler to other processes and returns its addresses, by
	// transport.
	Listen func(transport.Handler) (addresses map[string]string, listener io.Closer, err error)
	// Secure reports whether a process of this machine has a certificate, and
	// what is wrong with it; nil: plans are not checked for that.
	Secure func(process string) (bool, error)
	// Transports dial those addresses.
	Transports map[string]transport.Transport
	// Scratch is the directory for memory that outlives the process; empty for
	// none.
	Scratch string
	// Allow reports whether a caller with these identities may call a method of
	// a service; nil allows all.
	Allow func(identities []string, method string) bool
	// Changed is called after every call from outside that may have changed
	// something; nil for none.
	Changed func(apps.Change)
	// Tracer takes spans of single packet-ins; nil for none.
	Tracer local.Tracer
	// Registry is where metrics are exported; nil for nowhere.
	Registry prometheus.Registerer
	// Gatherer returns the metrics of this process; nil for none.
	Gatherer prometheus.Gatherer
	Log      *slog.Logger
	// Logs returns the last lines of the log of a process, this one or another
	// of the machine; nil for none.
	Logs func(process string, lines int) ([]string, error)
	// Alone says that the process is the whole controller, and its user knows
	// of no plan; for messages.
	Alone bool
}

// Time limits, in the order of a service's life.
const (
	syncPatience    = 3 * time.Second        // a starting service for what publishers retain
	withdrawLate    = 10 * time.Second       // for a restarted publisher to send its facts again
	reconcilePeriod = 250 * time.Millisecond // before reconcile looks again at what it postponed
	successionWait  = 10 * time.Second       // a moving service for its new place
	drainWait       = 300 * time.Millisecond // for packets in flight in a service that ends: well below discovery's timeouts, because no probes reach it meanwhile; the rest is sent again
	leaveTime       = 5 * time.Second        // to finish work, and again to remove the entry
)

// Node is a process that takes part in a plan: it runs the services that the
// plan in force assigns to it, and reaches all others wherever they run.
type Node struct {
	config        NodeConfig
	worker        *local.Worker
	directory     *members.Directory
	configs       *config.Store
	history       *members.History
	links         members.Links
	configMetrics *configMetrics
	trials        sync.WaitGroup // of configurations
	log           *slog.Logger
	self          uint64        // incarnation
	ahead         time.Duration // the store's clock minus this machine's
	// withdrawAfter is how long a restarted publisher has to send its facts
	// again.
	withdrawAfter time.Duration
	waiting       bool              // reconcile postponed something
	setup         local.Setup       // of services; owned by reconcile
	configuredBy  *members.Current  // the plan whose settings setup and all services here have; owned by reconcile
	refused       map[string]uint64 // generations that services refuse; owned by reconcile
	packets       *packets.Lanes
	storeAdmin    *StoreAdmin // nil: the store has none
	receivers     receivers
	facts         facts
	scaling       scaling
	apps          attached
	watchers      watchers

	changed local.Signal  // reconcile has something to look at
	resumed chan struct{} // closed when a trial left by an earlier run is resolved

	publishing sync.Mutex // held while our entry is written to the directory
	mu         sync.Mutex // guards what follows
	current    *members.Current
	entries    map[string]*members.Entry // of all processes, by name
	peers      map[string]*members.Peer  // of the others
	senders    map[string]*sender
	entry      members.Entry // our own
	since      time.Time     // when the current plan came into force

	life      context.Context // lasts until the services have stopped; nil before Run
	left      bool            // the node has left the plan
	successor bool            // the directory has another run of this process
}

// Join makes a Node. Run then runs it.
func Join(ctx context.Context, c NodeConfig) (*Node, error) {
	overrides := &config.Settings{}
	errs := []error{config.CheckSpecs(c.Specs)}
	for _, o := range c.Settings {
		errs = append(errs, overrides.Set(string(o)))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	d, err := members.OpenDirectory(ctx, c.Store)
	if err != nil {
		return nil, err
	}
	configs, err := config.Open(ctx, c.Store)
	if err != nil {
		return nil, err
	}
	history, err := members.OpenHistory(ctx, c.Store)
	if err != nil {
		return nil, err
	}
	self := uint64(time.Now().UnixNano())
	entries, err := d.Entries(ctx)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		if e.Process == c.Process { // an earlier run, whose clock may have been ahead
			self = max(self, e.Incarnation+1)
		}
	}
	n := &Node{
		config: c, directory: d, configs: configs, history: history, log: c.Log, self: self,
		entries: map[string]*members.Entry{}, peers: map[string]*members.Peer{}, senders: map[string]*sender{},
		changed: local.NewSignal(), resumed: make(chan struct{}), withdrawAfter: withdrawLate,
	}
	if clock, ok := c.Store.(storeClock); ok {
		asked := time.Now()
		if now, err := clock.Now(ctx); err != nil {
			c.Log.Warn("the time of the store is not known; this machine's clock is taken for right", "error", err)
		} else {
			n.ahead = now.Sub(asked.Add(time.Since(asked) / 2))
		}
	}
	n.worker, err = local.New(local.Config{Cluster: cluster{n}, Store: c.Store, Scratch: c.Scratch, Process: c.Process, Tracer: c.Tracer, Registry: c.Registry, Log: c.Log})
	if err != nil {
		return nil, err
	}
	if kept, ok := c.Store.(keptStore); ok {
		n.storeAdmin = &StoreAdmin{store: kept}
		n.worker.Metrics("deploy").Gauge("damaged_buckets", "Buckets of the durable state that are damaged, as weft store status lists them.", func() float64 { return float64(len(kept.Damages())) })
	}
	n.configMetrics = newConfigMetrics(n)
	n.facts.n = n
	n.apps.init(n)
	n.packets = packets.New(packets.Config{
		Self: self, Specs: c.Specs, Worker: n.worker, Links: &n.links, Log: c.Log, Apply: n.applyAbroad,
		Stage:     func(name string) apps.App { return (*n.apps.stages.Load())[name] },
		Observers: func() map[string]apps.App { return *n.apps.watch.Load() },
	})
	n.links.Transports, n.links.Log = c.Transports, c.Log
	n.links.Machine, _ = os.Hostname()
	n.links.View.Store(&members.View{Routes: map[string][]*members.Target{}, Next: make(chan struct{})})
	return n, nil
}

// storeClock is a store with a clock. All processes use it, because the clocks
// of their machines may differ.
type storeClock interface {
	Now(ctx context.Context) (time.Time, error)
}

// now returns the time of day by the store's clock.
func (n *Node) now() time.Time { return time.Now().Add(n.ahead) }

// Worker returns the worker of the node.
func (n *Node) Worker() *local.Worker { return n.worker }

// Run takes part until ctx ends, or until a service ends by itself, which is an
// error. It then finishes the work in progress, stops its services and leaves.
func (n *Node) Run(ctx context.Context) (err error) {
	undo, err := n.worker.Export()
	if err != nil {
		return err
	}
	defer undo()
	addresses, listener, err := n.config.Listen(n)
	if err != nil {
		return err
	}
	defer listener.Close()
	n.entry = members.Entry{
		Process: n.config.Process, Incarnation: n.self, PID: os.Getpid(), Machine: n.links.Machine, Version: n.config.Version,
		Started: n.now(), Addresses: addresses, Stamps: true, Records: true,
	}
	if err := n.publishEntry(ctx); err != nil {
		return err
	}
	life, end := context.WithCancel(context.WithoutCancel(ctx)) // lasts until the services have stopped
	n.mu.Lock()
	n.life = life
	n.mu.Unlock()
	var work sync.WaitGroup
	defer n.trials.Wait()
	defer work.Wait()
	defer end()
	settled := make(chan struct{})
	watching := make(chan error, 1)
	work.Go(func() {
		watching <- n.directory.Watch(life, n.handlePlan, n.handleEntry, func() { close(settled) })
	})
	work.Go(func() { n.packets.Run(life) })
	work.Go(func() { n.worker.Crossings().Run(life) })
	work.Go(func() { n.watchPeers(life) })
	work.Go(func() { n.followRepairs(life) })
	work.Go(func() { n.scale(life) })
	select {
	case <-settled:
		work.Go(func() {
			defer close(n.resumed)
			n.resume(life)
		})
		return errors.Join(n.reconcileUntil(ctx, watching), n.leave(life))
	case err := <-watching:
		return errors.Join(err, n.leave(life))
	case <-ctx.Done():
		return n.leave(life)
	}
}

// reconcileUntil reconciles until ctx ends or something fails.
func (n *Node) reconcileUntil(ctx context.Context, watching <-chan error) error {
	for {
		if err := n.reconcile(ctx); err != nil && ctx.Err() == nil {
			return err
		}
		var again <-chan time.Time // for what no change of the directory triggers
		if n.waiting {
			again = time.After(reconcilePeriod)
		}
		select {
		case <-ctx.Done():
			return nil
		case s := <-n.worker.Stopped():
			if err := n.ended(ctx, s); err != nil {
				return err
			}
		case err := <-watching:
			if ctx.Err() == nil {
				return err
			}
			return nil
		case <-n.changed:
		case <-again:
		}
	}
}

// leave stops all services, last started first, and removes the entry.
func (n *Node) leave(ctx context.Context) error {
	n.apps.close()
	var errs []error
	n.mu.Lock()
	n.setTaps(plan.Instance{})
	for i := range n.entry.Services {
		n.entry.Services[i].State = members.StateDraining
	}
	n.mu.Unlock()
	stop, cancel := context.WithTimeout(ctx, leaveTime)
	defer cancel()
	errs = append(errs, n.publishEntry(stop))
	for _, s := range slices.Backward(n.worker.Running().Services) {
		errs = append(errs, n.stopService(stop, s))
	}
	n.mu.Lock()
	n.left = true
	senders, peers := maps.Clone(n.senders), maps.Clone(n.peers)
	successor := n.successor
	n.mu.Unlock()
	for _, o := range senders {
		o.close()
	}
	for _, p := range peers {
		p.Close()
	}
	if successor {
		return errors.Join(errs...)
	}
	remove, cancel := context.WithTimeout(ctx, leaveTime)
	defer cancel()
	return errors.Join(append(errs, n.directory.Remove(remove, n.config.Process))...)
}

// specs returns the declarations of the services of the plan in force.
func (n *Node) specs() []weft.Spec {
	current := n.links.View.Load().Current
	var list []weft.Spec
	for _, s := range n.config.Specs {
		if current == nil || current.InForce().Has(s.Name) {
			list = append(list, s)
		}
	}
	return list
}

// spec returns the declaration of a service; nil if the binary has none.
func (n *Node) spec(name string) *weft.Spec {
	for i := range n.config.Specs {
		if n.config.Specs[i].Name == name {
			return &n.config.Specs[i]
		}
	}
	return nil
}

// publishEntry writes our entry to the directory.
func (n *Node) publishEntry(ctx context.Context) error {
	n.publishing.Lock() // the last write has the latest state
	defer n.publishing.Unlock()
	n.mu.Lock()
	e := n.entry
	e.Services = slices.Clone(e.Services)
	n.mu.Unlock()
	for pauses := (backoff.Exponential{First: members.RedialAfter, Last: time.Second}); ; {
		err := n.directory.PutEntry(ctx, &e)
		if err == nil {
			break
		}
		if kind := api.KindOf(err); ctx.Err() != nil || kind != codes.Unavailable && kind != codes.DeadlineExceeded {
			return fmt.Errorf("write the directory entry of this process: %w", err)
		}
		n.log.Warn("the directory entry of this process cannot be written now; trying again", "error", err)
		_ = pauses.Wait(ctx) // writing fails when ctx has ended
	}
	n.handleEntry(e.Process, &e) // without waiting for the echo
	return nil
}

// setState changes the state of a service in our entry; an empty state removes
// the service.
func (n *Node) setState(s *local.Service, state string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.entry.Services = slices.DeleteFunc(n.entry.Services, func(x members.ServiceState) bool { return x.Name == s.Spec.Name })
	if state == "" {
		return
	}
	st := members.ServiceState{Name: s.Spec.Name, Epoch: s.Epoch.Load(), State: state}
	for _, sub := range s.Spec.Wants() {
		st.Subscribes = append(st.Subscribes, sub.SubjectName())
	}
	n.entry.Services = append(n.entry.Services, st)
}

// handlePlan handles a plan that has come into force.
func (n *Node) handlePlan(c *members.Current, err error) {
	if err == nil {
		err = n.checkSettings(c)
	}
	if err != nil {
		n.log.Error("the plan in force is of no use to this process; it keeps the one that it has", "error", err)
		return
	}
	n.mu.Lock()
	switch {
	case n.left:
	case n.current == nil || c.Generation > n.current.Generation:
		n.current, n.since = c, time.Now()
		n.rebuild()
	case c.Generation == n.current.Generation && n.current.Trial && !c.Trial: // it has passed its trial
		n.current = c
		n.rebuild()
	}
	n.mu.Unlock()
	n.changed.Notify()
}

// handleEntry handles a change of a process's entry.
func (n *Node) handleEntry(process string, e *members.Entry) {
	n.mu.Lock()
	old := n.entries[process]
	if n.left {
		n.mu.Unlock()
		return
	}
	if process == n.config.Process && (e == nil || e.Incarnation != n.self) {
		n.successor = e != nil && e.Incarnation > n.self
		if e == nil { // another process took us for dead
			n.entry.Generation = 0 // so that the entry is written again
		}
		n.mu.Unlock()
		n.changed.Notify()
		return // of another run of ours
	}
	if e == nil {
		delete(n.entries, process)
	} else {
		n.entries[process] = e
		n.successor = n.successor && process != n.config.Process
	}
	if process != n.config.Process {
		n.updatePeer(process, e)
	}
	n.rebuild()
	n.mu.Unlock()
	n.facts.published(old, e)
	n.changed.Notify()
}

// stopService removes a service from the tables, lets it finish its work in
// progress, and stops it.
func (n *Node) stopService(ctx context.Context, s *local.Service) error {
	s.Serving.Store(false)
	n.worker.Refresh() // packets go elsewhere, or wait
	// Packets in flight may be with a stage that calls a service here: it still
	// answers.
	for end := time.Now().Add(drainWait); s.Working() && time.Now().Before(end) && ctx.Err() == nil; {
		time.Sleep(time.Millisecond)
	}
	n.worker.Remove(s)
	n.flushSenders(ctx)
	err := s.Stop()
	t := n.worker.Running()
	for _, p := range s.Spec.Publishes { // what it published since its removal
		t.Subjects[p.SubjectName()].Forget()
	}
	return err
}
