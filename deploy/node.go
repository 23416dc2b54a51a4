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
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"weft"
	"weft/plan"
	"weft/transport"
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
	Store Store
	// Settings override those of the plan.
	Settings []Override
	// Listen offers a handler to other processes and returns its addresses, by
	// transport.
	Listen func(transport.Handler) (addresses map[string]string, listener io.Closer, err error)
	// Transports dial those addresses.
	Transports map[string]transport.Transport
	// Allow reports whether a caller with these identities may call a method of
	// a service; nil allows all.
	Allow func(identities []string, method string) bool
	// Registry is where figures are exported; nil for nowhere.
	Registry prometheus.Registerer
	// Gatherer returns the figures of this process; nil for none.
	Gatherer prometheus.Gatherer
	Log      *slog.Logger
}

// Override is a change of one key, service.key=value, made on a command line.
type Override string

// Times by which processes wait for each other.
const (
	callPatience    = 10 * time.Second       // a call for a service that is away
	holdMax         = 10 * time.Second       // a packet-in for a stage that is away
	syncPatience    = 3 * time.Second        // a starting service for what publishers retain
	successionWait  = 10 * time.Second       // a service that is to move for its new place
	withdrawAfter   = 10 * time.Second       // what a restarted publisher has not told again is gone
	redialAfter     = 20 * time.Millisecond  // a peer that could not be reached is tried again
	stallAfter      = 400 * time.Millisecond // an answer that takes longer makes us ask whether the peer lives
	stallPing       = 400 * time.Millisecond // and it has so long to say so
	reconcilePeriod = 250 * time.Millisecond
)

// Node is a process that takes part in a plan: it runs the services that the
// plan in force gives it, and reaches all others wherever they are.
type Node struct {
	config    NodeConfig
	worker    *Worker
	directory *Directory
	log       *slog.Logger
	self      uint64 // incarnation
	listener  io.Closer
	crossing  *crossing
	inlets    inlets
	facts     facts

	view    atomic.Pointer[view]
	changed chan struct{} // something that reconcile looks at has changed

	mu      sync.Mutex // guards what follows
	current *Current
	entries map[string]*Entry // of all processes, by name
	peers   map[string]*peer  // of the others
	outlets map[string]*outlet
	entry   Entry     // our own
	since   time.Time // when the current plan came
}

// view is who is where now. It is replaced, never written to; next is closed
// then.
type view struct {
	current *Current
	mine    plan.Instance
	routes  map[string][]*target // by service, in the order of instances
	next    chan struct{}
}

// target is one instance of a service.
type target struct {
	peer     *peer // nil: this process
	instance string
	epoch    uint64
	state    string
}

// Join makes a Node. Run then runs it.
func Join(ctx context.Context, c NodeConfig) (*Node, error) {
	if err := CheckSpecs(c.Specs); err != nil {
		return nil, err
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	d, err := OpenDirectory(ctx, c.Store)
	if err != nil {
		return nil, err
	}
	n := &Node{
		config: c, directory: d, log: c.Log, self: uint64(time.Now().UnixNano()),
		entries: map[string]*Entry{}, peers: map[string]*peer{}, outlets: map[string]*outlet{},
		changed: make(chan struct{}, 1),
	}
	n.worker = newWorker(Config{Store: c.Store, Registry: c.Registry, Log: c.Log, Settings: &Settings{}})
	n.worker.node = n
	n.crossing = newCrossing(n)
	n.facts.n = n
	n.view.Store(&view{routes: map[string][]*target{}, next: make(chan struct{})})
	return n, nil
}

// Worker returns the worker of the node.
func (n *Node) Worker() *Worker { return n.worker }

// Run takes part until ctx ends, or a service ends by itself, which is an
// error. It then finishes what is under way, stops its services and leaves.
func (n *Node) Run(ctx context.Context) (err error) {
	if n.config.Registry != nil {
		if err := n.config.Registry.Register(n.worker.registry); err != nil {
			return fmt.Errorf("register metrics: %w", err)
		}
		defer n.config.Registry.Unregister(n.worker.registry)
	}
	addresses, listener, err := n.config.Listen(n)
	if err != nil {
		return err
	}
	defer listener.Close()
	machine, _ := os.Hostname() // only told to people
	n.entry = Entry{
		Process: n.config.Process, Incarnation: n.self, PID: os.Getpid(), Machine: machine, Version: n.config.Version,
		Started: time.Now(), Addresses: addresses,
	}
	if err := n.announce(ctx); err != nil {
		return err
	}
	life, end := context.WithCancel(context.WithoutCancel(ctx)) // lasts until the services have stopped
	var work sync.WaitGroup
	defer work.Wait()
	defer end()
	settled := make(chan struct{})
	watching := make(chan error, 1)
	work.Go(func() {
		watching <- n.directory.watch(life, n.planChanged, n.entryChanged, func() { close(settled) })
	})
	work.Go(func() { n.crossing.run(life) })
	select {
	case <-settled:
	case err := <-watching:
		return err
	case <-ctx.Done():
		return nil
	}
	failure := n.reconcileUntil(ctx, watching)
	return errors.Join(failure, n.leave(life))
}

// reconcileUntil does what the plan wants until ctx ends or something fails.
func (n *Node) reconcileUntil(ctx context.Context, watching <-chan error) error {
	tick := time.NewTicker(reconcilePeriod)
	defer tick.Stop()
	for {
		if err := n.reconcile(ctx); err != nil && ctx.Err() == nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case s := <-n.worker.failed:
			if err := s.endedEarly(); err != nil {
				return err
			}
			return errors.New("a service has ended") // its stop says why
		case err := <-watching:
			if ctx.Err() == nil {
				return err
			}
			return nil
		case <-n.changed:
		case <-tick.C:
		}
	}
}

// leave stops all services, last started first, and takes the entry out.
func (n *Node) leave(ctx context.Context) error {
	var errs []error
	n.mu.Lock()
	for i := range n.entry.Services {
		n.entry.Services[i].State = StateDraining
	}
	n.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	errs = append(errs, n.announce(ctx))
	for _, s := range slices.Backward(n.worker.tables.Load().services) {
		errs = append(errs, n.stopService(ctx, s))
	}
	n.mu.Lock()
	for _, o := range n.outlets {
		defer o.close()
	}
	peers := maps.Clone(n.peers)
	n.mu.Unlock()
	for _, p := range peers {
		p.close()
	}
	return errors.Join(append(errs, n.directory.Remove(ctx, n.config.Process))...)
}

// specs returns the declarations of the services of the plan in force.
func (n *Node) specs() []weft.Spec {
	current := n.view.Load().current
	var list []weft.Spec
	for _, s := range n.config.Specs {
		if current == nil || slices.ContainsFunc(current.plan.Instances(), func(i plan.Instance) bool { return slices.Contains(i.Services, s.Name) }) {
			list = append(list, s)
		}
	}
	return list
}

// spec returns the declaration of a service, nil if the binary has none.
func (n *Node) spec(name string) *weft.Spec {
	for i := range n.config.Specs {
		if n.config.Specs[i].Name == name {
			return &n.config.Specs[i]
		}
	}
	return nil
}

// announce puts our entry into the directory.
func (n *Node) announce(ctx context.Context) error {
	n.mu.Lock()
	e := n.entry
	e.Services = slices.Clone(e.Services)
	n.mu.Unlock()
	if err := n.directory.put(ctx, &e); err != nil {
		return fmt.Errorf("tell the other processes of this one: %w", err)
	}
	n.entryChanged(e.Process, &e) // without waiting for the echo
	return nil
}

// setState changes the state of a service in our entry; an empty one takes it
// out.
func (n *Node) setState(s *service, state string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.entry.Services = slices.DeleteFunc(n.entry.Services, func(x ServiceState) bool { return x.Name == s.spec.Name })
	if state == "" {
		return
	}
	st := ServiceState{Name: s.spec.Name, Epoch: s.epoch, State: state}
	for _, sub := range s.spec.Subscribes {
		st.Subscribes = append(st.Subscribes, sub.SubjectName())
	}
	n.entry.Services = append(n.entry.Services, st)
}

// planChanged takes a plan that has come into force.
func (n *Node) planChanged(c *Current, err error) {
	if err != nil {
		n.log.Error("the plan in force is of no use to this process; it keeps the one that it has", "error", err)
		return
	}
	n.mu.Lock()
	if n.current == nil || c.Generation > n.current.Generation {
		n.current, n.since = c, time.Now()
		n.rebuild()
	}
	n.mu.Unlock()
	n.wake()
}

// entryChanged takes news of a process.
func (n *Node) entryChanged(process string, e *Entry) {
	n.mu.Lock()
	old := n.entries[process]
	if process == n.config.Process && (e == nil || e.Incarnation != n.self) {
		n.mu.Unlock()
		return // of an earlier run of ours
	}
	if e == nil {
		delete(n.entries, process)
	} else {
		n.entries[process] = e
	}
	if process != n.config.Process {
		n.meet(process, e)
	}
	n.rebuild()
	n.mu.Unlock()
	n.facts.published(old, e)
	n.wake()
}

func (n *Node) wake() {
	select {
	case n.changed <- struct{}{}:
	default:
	}
}

// rebuild makes a new view; it is called with the lock.
func (n *Node) rebuild() {
	if n.current == nil {
		return
	}
	mine, _ := n.current.instanceOf(n.config.Process)
	v := &view{current: n.current, mine: mine, routes: map[string][]*target{}, next: make(chan struct{})}
	for _, process := range slices.Sorted(maps.Keys(n.entries)) {
		e := n.entries[process]
		if mine.Partition != "" && e.Partition != "" && e.Partition != mine.Partition {
			continue
		}
		p := n.peers[process]
		if p == nil && process != n.config.Process {
			continue
		}
		for _, s := range e.Services {
			v.routes[s.Name] = append(v.routes[s.Name], &target{peer: p, instance: process, epoch: s.Epoch, state: s.State})
		}
	}
	old := n.view.Swap(v)
	close(old.next)
	for _, s := range n.worker.tables.Load().services {
		index, count, counted := 0, 0, false
		for _, t := range v.routes[s.spec.Name] {
			if t.state == StateDraining || t.state == StateStarting {
				continue
			}
			if t.peer == nil {
				index, counted = count, true
			}
			count++
		}
		if counted {
			s.setReplicas(index, count)
		}
	}
	n.supply(v)
}

// stopService takes a service out of the tables, lets it finish what it is
// at, and stops it.
func (n *Node) stopService(ctx context.Context, s *service) error {
	s.serving.Store(false)
	n.worker.remove(s)
	for end := time.Now().Add(2 * time.Second); s.busy.Load() > 0 && time.Now().Before(end) && ctx.Err() == nil; {
		time.Sleep(time.Millisecond)
	}
	n.flushOutlets(ctx)
	return s.stop(n.worker.config.StopTimeout)
}
