package deploy

import (
	"maps"
	"slices"

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
func (n *Node) partsOf(c *Current, mine plan.Instance) *parts {
	if len(c.plan.Partitions) < 2 || mine.Partition != "" && !c.plan.OneNetwork(n.config.Specs) {
		return nil
	}
	p := &parts{plan: c.plan, own: mine.Partition, methods: map[string]*api.Routing{}, asOne: c.plan.AsOne(n.config.Specs), runs: map[string]map[string]bool{}, targets: map[string]map[string][]*target{}}
	for _, x := range c.plan.Partitions {
		p.runs[x.Name], p.targets[x.Name] = map[string]bool{}, map[string][]*target{}
	}
	for _, w := range c.plan.Workers {
		for _, s := range w.Services {
			if w.Partition != "" {
				p.runs[w.Partition][s] = true
			}
		}
	}
	for method, routing := range api.Routings() {
		if c.plan.RunsPerPartition(ownerOf(method)) {
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

// rebuild makes a new view. The caller holds the lock.
func (n *Node) rebuild() {
	if n.current == nil {
		return
	}
	mine, _ := n.current.instanceOf(n.config.Process)
	v := &view{current: n.current, mine: mine, routes: map[string][]*target{}, parts: n.partsOf(n.current, mine), over: n.superseded(), next: make(chan struct{})}
	for _, process := range slices.Sorted(maps.Keys(n.entries)) {
		e := n.entries[process]
		near := mine.Partition == "" || e.Partition == "" || e.Partition == mine.Partition
		p := n.peers[process]
		if p == nil && process != n.config.Process {
			continue
		}
		for _, s := range e.Services {
			if s.State == StateStandby || v.over[runOf{s.Name, e.Partition, s.Epoch}] {
				continue
			}
			t := &target{peer: p, instance: process, partition: e.Partition, epoch: s.Epoch, state: s.State}
			v.parts.add(s.Name, t)
			if near || v.parts.worksAsOne(s.Name) {
				v.routes[s.Name] = append(v.routes[s.Name], t)
			}
		}
		for _, a := range e.Apps {
			if near && a.Kind == outside.Stage.String() {
				v.routes[a.Name] = append(v.routes[a.Name], &target{peer: p, instance: process, partition: e.Partition, epoch: a.Epoch, state: StateReady})
			}
		}
	}
	old := n.view.Swap(v)
	close(old.next)
	planned := map[string]bool{}
	for _, i := range n.current.plan.Instances() {
		planned[n.current.ProcessOf(i.Name)] = true
	}
	for _, s := range n.worker.Running().Services {
		index, count, counted := 0, 0, false
		for _, t := range v.routes[s.Spec.Name] {
			if t.state == StateDraining || t.state == StateStarting || t.partition != n.entry.Partition && !v.parts.worksAsOne(s.Spec.Name) {
				continue
			}
			if !planned[t.instance] { // it has ended, or will, though it may not have been able to say so
				continue
			}
			if t.peer == nil {
				index, counted = count, true
			}
			count++
		}
		if counted {
			s.SetReplicas(index, count)
		}
	}
	n.setTaps(mine)
	n.supply(v)
}
