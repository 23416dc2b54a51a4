package deploy

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/weft-sdn/weft"
	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/deploy/apps"
	"github.com/weft-sdn/weft/deploy/config"
	"github.com/weft-sdn/weft/deploy/local"
	"github.com/weft-sdn/weft/deploy/members"
	"github.com/weft-sdn/weft/deploy/packets"
	"github.com/weft-sdn/weft/plan"
)

// leaveTime is how long a node has to finish work, and again to remove its entry.
const leaveTime = 5 * time.Second

// Node is a process that takes part in a plan: it runs the services that the
// plan in force assigns to it, and reaches all others wherever they run.
type Node struct {
	config     NodeConfig
	members    membership
	worker     *local.Worker
	log        *slog.Logger
	packets    *packets.Lanes
	storeAdmin *StoreAdmin // nil: the store has none
	reconciler reconciler
	receivers  receivers
	senders    senders
	facts      *facts
	repeats    repeats
	apps       attached

	// What answers the gateway.
	plans
	configurations
	scaling
	watchers
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
	n := &Node{config: c, log: c.Log}
	m := &n.members
	m.directory, m.log, m.self, m.handle = d, c.Log, self, n.handleEntry
	m.entries, m.peers = map[string]*members.Entry{}, map[string]*members.Peer{}
	m.latest = map[members.RunOf]uint64{}
	if clock, ok := c.Store.(storeClock); ok {
		asked := time.Now()
		if now, err := clock.Now(ctx); err != nil {
			c.Log.Warn("the time of the store is not known; this machine's clock is taken for right", "error", err)
		} else {
			m.ahead = now.Sub(asked.Add(time.Since(asked) / 2))
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
	n.plans = plans{config: &n.config, members: m, log: c.Log, history: history, configs: configs}
	n.configurations = configurations{
		config: &n.config, members: m, log: c.Log, store: configs, metrics: newConfigMetrics(m, n.worker), resumed: make(chan struct{}),
	}
	n.scaling = scaling{
		process: c.Process, members: m, worker: n.worker, plans: &n.plans, work: n.GetWork, log: c.Log, memory: scalingMemory{store: c.Store},
		workers: map[string]*scaled{}, known: map[string]*api.ScaledWorker{}, followers: map[int]func(*api.ScalingDecision){},
	}
	n.watchers = watchers{members: m, worker: n.worker, clients: map[uint64]*watcher{}}
	n.facts = newFacts(m, n.worker, c.Specs)
	n.receivers = receivers{members: m, worker: n.worker, facts: n.facts, log: c.Log, from: map[uint64]*receiver{}}
	n.senders = senders{members: m, worker: n.worker, log: c.Log, to: map[string]*sender{}}
	n.reconciler = reconciler{
		config: &n.config, members: m, worker: n.worker, receivers: &n.receivers, senders: &n.senders, apps: &n.apps,
		log: c.Log, rebuild: n.rebuild, changed: local.NewSignal(), refused: map[string]uint64{},
	}
	n.apps.init(n)
	n.packets = packets.New(packets.Config{
		Self: self, Specs: c.Specs, Worker: n.worker, Links: &m.links, Log: c.Log, Apply: n.applyAbroad,
		Stage:     func(name string) apps.App { return (*n.apps.stages.Load())[name] },
		Observers: func() map[string]apps.App { return *n.apps.watch.Load() },
	})
	m.links.Transports, m.links.Log = c.Transports, c.Log
	m.links.Machine, _ = os.Hostname()
	m.links.View.Store(&members.View{Routes: map[string][]*members.Target{}, Next: make(chan struct{})})
	return n, nil
}

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
	n.members.entry = members.Entry{
		Process: n.config.Process, Incarnation: n.members.self, PID: os.Getpid(), Machine: n.members.links.Machine, Version: n.config.Version,
		Started: n.members.now(), Addresses: addresses, Stamps: true, Records: true, Numbers: true,
	}
	if err := n.members.publish(ctx); err != nil {
		return err
	}
	life, end := context.WithCancel(context.WithoutCancel(ctx)) // lasts until the services have stopped
	n.members.mu.Lock()
	n.configurations.life = life
	n.members.mu.Unlock()
	var work sync.WaitGroup
	defer n.configurations.trials.Wait()
	defer work.Wait()
	defer end()
	settled := make(chan struct{})
	watching := make(chan error, 1)
	work.Go(func() {
		watching <- n.members.directory.Watch(life, n.handlePlan, n.handleEntry, func() { close(settled) })
	})
	work.Go(func() { n.packets.Run(life) })
	work.Go(func() { n.worker.Crossings().Run(life) })
	work.Go(func() { n.members.watchPeers(life) })
	work.Go(func() { n.followRepairs(life) })
	work.Go(func() { n.scaling.scale(life) })
	select {
	case <-settled:
		work.Go(func() { n.configurations.resume(life) })
		return errors.Join(n.reconciler.run(ctx, watching), n.leave(life))
	case err := <-watching:
		return errors.Join(err, n.leave(life))
	case <-ctx.Done():
		return n.leave(life)
	}
}

// leave stops all services, those that drain first, else the last started first, and removes
// the entry.
func (n *Node) leave(ctx context.Context) error {
	n.apps.close()
	var errs []error
	n.members.mu.Lock()
	n.setTaps(plan.Instance{})
	for i := range n.members.entry.Services {
		e := &n.members.entry.Services[i]
		if s := n.worker.Running().Service(e.Name); s == nil || !s.Spec.Drains {
			e.State = members.StateDraining
		}
	}
	n.members.mu.Unlock()
	stop, cancel := context.WithTimeout(ctx, leaveTime)
	defer cancel()
	errs = append(errs, n.members.publish(stop))
	all := n.worker.Running().Services
	for _, drains := range []bool{true, false} { // one that drains needs the other stages
		for _, s := range slices.Backward(all) {
			if s.Spec.Drains == drains {
				errs = append(errs, n.reconciler.stopService(stop, s))
			}
		}
	}
	n.members.mu.Lock()
	n.members.left = true
	senders, peers := maps.Clone(n.senders.to), maps.Clone(n.members.peers)
	successor := n.members.successor
	n.members.mu.Unlock()
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
	return errors.Join(append(errs, n.members.directory.Remove(remove, n.config.Process))...)
}

// specs returns the declarations of the services of the plan in force.
func (n *Node) specs() []weft.Spec {
	current := n.members.links.View.Load().Current
	var list []weft.Spec
	for _, s := range n.config.Specs {
		if current == nil || current.InForce().Has(s.Name) {
			list = append(list, s)
		}
	}
	return list
}

// rebuild makes a new view. The caller holds the lock.
func (n *Node) rebuild() {
	if n.members.current == nil {
		return
	}
	v := members.NewView(n.members.current, n.config.Process, n.members.entries, n.members.peers, n.config.Specs)
	old := n.members.links.View.Swap(v)
	close(old.Next)
	for _, s := range n.worker.Running().Services {
		if index, count, ok := v.Number(s.Spec.Name, n.members.entry.Partition); ok {
			s.SetReplicas(index, count)
		}
	}
	n.setTaps(v.Mine)
	n.senders.subscribe(v)
}

// setTaps makes packets reach the processes with observers, if this one holds
// switches. The caller holds the lock.
func (n *Node) setTaps(mine plan.Instance) {
	want := map[string]*members.Peer{}
	if slices.ContainsFunc(mine.Services, func(name string) bool { s := n.config.spec(name); return s != nil && (s.Pipeline || s.Beside != nil) }) && !n.apps.leaving.Load() {
		for process, e := range n.members.entries {
			if mine.Partition != "" && e.Partition != "" && e.Partition != mine.Partition {
				continue
			}
			p := n.members.peers[process]
			if p == nil && process != n.config.Process {
				continue
			}
			if slices.ContainsFunc(e.Apps, func(a members.AppState) bool { return a.Kind == apps.Observer.String() }) {
				want[process] = p
			}
		}
	}
	n.packets.SetObservers(want)
}

// handlePlan handles a plan that has come into force.
func (n *Node) handlePlan(c *members.Current, err error) {
	if err == nil {
		err = n.config.checkSettings(c)
	}
	if err != nil {
		n.log.Error("the plan in force is of no use to this process; it keeps the one that it has", "error", err)
		return
	}
	n.members.mu.Lock()
	switch {
	case n.members.left:
	case n.members.current == nil || c.Generation > n.members.current.Generation:
		n.members.current, n.members.since = c, time.Now()
		n.rebuild()
	case c.Generation == n.members.current.Generation && n.members.current.Trial && !c.Trial: // it has passed its trial
		n.members.current = c
		n.rebuild()
	}
	n.members.mu.Unlock()
	n.reconciler.changed.Notify()
}

// handleEntry handles a change of a process's entry.
func (n *Node) handleEntry(process string, e *members.Entry) {
	n.members.mu.Lock()
	old := n.members.entries[process]
	if n.members.left {
		n.members.mu.Unlock()
		return
	}
	if process == n.config.Process && (e == nil || e.Incarnation != n.members.self) {
		n.members.successor = e != nil && e.Incarnation > n.members.self
		if e == nil { // another process took us for dead
			n.members.entry.Generation = 0 // so that the entry is written again
		}
		n.members.mu.Unlock()
		n.reconciler.changed.Notify()
		return // of another run of ours
	}
	if e == nil {
		delete(n.members.entries, process)
	} else {
		n.members.entries[process] = e
		n.members.successor = n.members.successor && process != n.config.Process
	}
	if process != n.config.Process {
		n.members.updatePeer(process, e)
		if e != nil {
			n.members.noteRuns(e)
		}
	}
	n.rebuild()
	n.members.mu.Unlock()
	n.facts.published(old, e)
	n.reconciler.changed.Notify()
}
