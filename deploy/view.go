package deploy

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/weft-sdn/weft"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/deploy/outside"
	"github.com/weft-sdn/weft/plan"
)

// view says which process runs what now. It is replaced, never written to; its
// replacement closes next.
type view struct {
	current *Current
	mine    plan.Instance
	routes  map[string][]*target // by service, in the order of instances
	parts   *parts               // nil: this process does not reach several partitions
	over    map[runOf]bool       // superseded runs
	next    chan struct{}
}

// target is one instance of a service.
type target struct {
	peer      *peer // nil: this process
	instance  string
	partition string // of its process
	epoch     uint64
	state     string
}

// parts is a process's view of the partitions of a plan with several. A process
// that belongs to none sees all of them. A process of one partition sees the
// others, too, if they are parts of one network.
type parts struct {
	plan    *plan.Plan
	own     string                          // the process's own; empty if it works for all
	methods map[string]*api.Routing         // of services that run per partition
	asOne   map[string]bool                 // clustered services
	runs    map[string]map[string]bool      // by partition: the services that run in it
	targets map[string]map[string][]*target // by partition and service
}

// partsOf returns this process's view of the partitions of a plan; nil if it
// sees none. Its targets are empty.
func partsOf(c *Current, mine plan.Instance, specs []weft.Spec) *parts {
	if len(c.InForce().Partitions) < 2 || mine.Partition != "" && !c.InForce().OneNetwork(specs) {
		return nil
	}
	p := &parts{plan: c.InForce(), own: mine.Partition, methods: map[string]*api.Routing{}, asOne: c.InForce().AsOne(specs), runs: map[string]map[string]bool{}, targets: map[string]map[string][]*target{}}
	for _, x := range c.InForce().Partitions {
		p.runs[x.Name], p.targets[x.Name] = map[string]bool{}, map[string][]*target{}
	}
	for _, w := range c.InForce().Workers {
		for _, s := range w.Services {
			if w.Partition != "" {
				p.runs[w.Partition][s] = true
			}
		}
	}
	for method, routing := range api.Routings() {
		if c.InForce().RunsPerPartition(ownerOf(method)) {
			p.methods[method] = routing
		}
	}
	return p
}

// add adds an instance.
func (p *parts) add(service string, t *target) {
	if p == nil || p.targets[t.partition] == nil {
		return
	}
	p.targets[t.partition][service] = append(p.targets[t.partition][service], t)
}

// of returns the instances of a service that work for a partition: its own, or,
// if the plan gives it none, those that work for all.
func (v *view) of(service, partition string) []*target {
	if v.parts != nil && v.parts.runs[partition][service] {
		return v.parts.targets[partition][service]
	}
	return v.routes[service]
}

// newView returns the view of a process by the entries of all.
func newView(c *Current, process string, entries map[string]*Entry, peers map[string]*peer, specs []weft.Spec) *view {
	mine, _ := c.instanceOf(process)
	v := &view{current: c, mine: mine, routes: map[string][]*target{}, parts: partsOf(c, mine, specs), over: superseded(entries, specs), next: make(chan struct{})}
	for _, name := range slices.Sorted(maps.Keys(entries)) {
		e, p := entries[name], peers[name]
		if p == nil && name != process {
			continue
		}
		near := mine.Partition == "" || e.Partition == "" || e.Partition == mine.Partition
		for _, s := range e.Services {
			if s.State == StateStandby || v.over[runOf{s.Name, e.Partition, s.Epoch}] {
				continue
			}
			t := &target{peer: p, instance: name, partition: e.Partition, epoch: s.Epoch, state: s.State}
			v.parts.add(s.Name, t)
			if near || v.parts.worksAsOne(s.Name) {
				v.routes[s.Name] = append(v.routes[s.Name], t)
			}
		}
		for _, a := range e.Apps {
			if near && a.Kind == outside.Stage.String() {
				v.routes[a.Name] = append(v.routes[a.Name], &target{peer: p, instance: name, partition: e.Partition, epoch: a.Epoch, state: StateReady})
			}
		}
	}
	return v
}

// number returns which of how many instances of a service that of this process
// is; false if it is none of them. Those that the plan does not have do not
// count: such a process has ended, or will, though it may not have been able to
// say so.
func (v *view) number(service, partition string) (index, count int, ok bool) {
	planned := map[string]bool{}
	for _, i := range v.current.InForce().Instances() {
		planned[v.current.ProcessOf(i.Name)] = true
	}
	for _, t := range v.routes[service] {
		if t.state == StateDraining || t.state == StateStarting || !planned[t.instance] || t.partition != partition && !v.parts.worksAsOne(service) {
			continue
		}
		if t.peer == nil {
			index, ok = count, true
		}
		count++
	}
	return index, count, ok
}

// pause waits for another view, but not for long; it fails after the deadline.
func (v *view) pause(ctx context.Context, deadline time.Time) error {
	timer := time.NewTimer(redialAfter)
	defer timer.Stop()
	select {
	case <-v.next:
	case <-timer.C:
	case <-ctx.Done():
		return ctx.Err()
	}
	if time.Now().After(deadline) {
		return errors.New("too late")
	}
	return nil
}

// balanceOf returns how packet-ins are balanced over the replicas of a target.
func (v *view) balanceOf(t *target) string {
	if v.current == nil {
		return ""
	}
	worker := v.mine.Worker
	if t.peer != nil {
		worker = t.peer.entry.Load().Worker
	}
	if w := v.current.InForce().Worker(worker); w != nil {
		return w.Balance
	}
	return v.current.InForce().Balance
}

// pick returns the instance of a service for a call: the ready one with the
// fewest requests; if none is ready, one that is syncing, or one that is
// draining, which may be waiting for the caller; nil if there is none.
func pick(instances []*target) *target {
	var best *target
	score := func(t *target) int64 {
		var s int64
		if t.peer != nil {
			s = t.peer.outstanding.Load()
		}
		switch t.state {
		case StateSyncing:
			s += 1 << 40
		case StateDraining:
			s += 1 << 41
		}
		return s
	}
	for _, t := range instances {
		if t.state == StateStarting || t.peer != nil && !t.peer.usable() {
			continue
		}
		if best == nil || score(t) < score(best) {
			best = t
		}
	}
	return best
}
