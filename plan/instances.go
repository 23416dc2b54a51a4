package plan

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/weft-sdn/weft"
	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
)

// Instance is one process of a plan.
type Instance struct {
	Name      string // of the process: the worker's, with -1, -2 … if there are several
	Worker    string
	Partition string   // empty: works for all switches
	Replica   int      // from 1
	Standby   int      // which of the worker's standbys it is, from 1; 0: none
	Services  []string // in the order of the plan
}

// Instances returns the processes of the plan, sorted by worker and number.
func (p *Plan) Instances() []Instance {
	var list []Instance
	for i := range p.Workers {
		list = append(list, p.Workers[i].Instances()...)
	}
	slices.SortStableFunc(list, func(a, b Instance) int {
		return cmp.Or(cmp.Compare(a.Worker, b.Worker), cmp.Compare(a.Replica, b.Replica), cmp.Compare(a.Standby, b.Standby))
	})
	return list
}

// Instances returns the processes of the worker in the order of their numbers.
func (w *Worker) Instances() []Instance {
	var list []Instance
	for n := 1; n <= max(w.Replicas, 1); n++ {
		i := Instance{Name: w.Name, Worker: w.Name, Partition: w.Partition, Replica: n, Services: slices.Clone(w.Services)}
		if w.Replicas > 1 {
			i.Name = fmt.Sprintf("%s-%d", w.Name, n)
		}
		list = append(list, i)
	}
	for n := 1; n <= w.Standby; n++ {
		list = append(list, Instance{
			Name: w.standbyName(n), Worker: w.Name, Partition: w.Partition, Replica: 1, Standby: n, Services: slices.Clone(w.Services),
		})
	}
	return list
}

// standbyName is the name of the worker's n-th standby.
func (w *Worker) standbyName(n int) string {
	if n == 1 {
		return w.Name + "-standby"
	}
	return fmt.Sprintf("%s-standby-%d", w.Name, n)
}

// Of returns the process of a name, false if the plan has none.
func (p *Plan) Of(instance string) (Instance, bool) {
	list := p.Instances()
	i := slices.IndexFunc(list, func(i Instance) bool { return i.Name == instance })
	if i < 0 {
		return Instance{}, false
	}
	return list[i], true
}

// Running returns the processes that run a service for a partition: those of
// that partition, or if it has none, those that work for all. The empty
// partition asks for the latter only.
func (p *Plan) Running(service, partition string) []Instance {
	var own, all []Instance
	for _, i := range p.Instances() {
		switch {
		case !slices.Contains(i.Services, service):
		case i.Partition == "":
			all = append(all, i)
		case i.Partition == partition:
			own = append(own, i)
		}
	}
	if len(own) > 0 {
		return own
	}
	return all
}

// runs reports whether Running returns any.
func (p *Plan) runs(service, partition string) bool {
	for i := range p.Workers {
		if w := &p.Workers[i]; (w.Partition == "" || w.Partition == partition) && slices.Contains(w.Services, service) {
			return true
		}
	}
	return false
}

// tooMany reports whether the plan has more processes, or partitions, than a plan
// may have.
func (p *Plan) tooMany() bool {
	processes := 0
	for i := range p.Workers {
		w := &p.Workers[i]
		if processes += min(max(w.Replicas, 1), maxItems+1) + min(max(w.Standby, 0), maxItems); processes > maxItems {
			return true
		}
	}
	return len(p.Partitions) > maxItems
}

// PartitionOf returns the name of the partition that a switch is in; empty if
// the plan has no partitions.
func (p *Plan) PartitionOf(sw flow.DPID) string {
	rest := ""
	for _, x := range p.Partitions {
		if x.Rest {
			rest = x.Name
		}
		if l := (flow.SwitchList{Ranges: x.Switches}); l.Names(sw) {
			return x.Name
		}
	}
	return rest
}

// Stages returns the names of the pipeline's stages in order: Pipeline, or if
// that is empty, the stages of DefaultPipeline that are in the plan, and its
// apps before forwarding.
func (p *Plan) Stages(specs []weft.Spec) []string {
	if len(p.Pipeline) > 0 {
		return slices.Clone(p.Pipeline)
	}
	var list []string
	for _, name := range DefaultPipeline() {
		if s := specOf(specs, name); s != nil && s.Stage && p.Has(name) {
			list = append(list, name)
		}
	}
	return withApps(list, p.Apps)
}

// Leg is a part of the way of a packet-in through the pipeline that one worker
// does by itself.
type Leg struct {
	Worker    string
	Stages    []string // consecutive; none for the worker that received it, if it hosts none first
	Transport string   // by which the packet came; empty for the first leg
}

// Way returns the way of a packet-in of a partition (empty: of a plan without)
// through the workers, from the one that holds the switch's session. Stages
// that run in several workers are taken where the packet is, or else in the
// first of them.
func (p *Plan) Way(specs []weft.Spec, partition string) []Leg {
	for i := range specs {
		if s := &specs[i]; s.Pipeline {
			return p.wayFrom(specs, s, partition)
		}
	}
	return nil
}

// wayFrom is Way from the service that receives the packet-in.
func (p *Plan) wayFrom(specs []weft.Spec, from *weft.Spec, partition string) []Leg {
	begin := p.Running(from.Name, partition)
	if len(begin) == 0 {
		return nil
	}
	way := []Leg{{Worker: begin[0].Worker}}
	for _, stage := range p.Stages(specs) {
		at := p.Running(stage, partition)
		if len(at) == 0 || slices.Contains(from.Beside, stage) {
			continue
		}
		here := &way[len(way)-1]
		if !slices.ContainsFunc(at, func(i Instance) bool { return i.Worker == here.Worker }) {
			way = append(way, Leg{Worker: at[0].Worker, Transport: p.TransportBetween(here.Worker, at[0].Worker)})
			here = &way[len(way)-1]
		}
		here.Stages = append(here.Stages, stage)
	}
	return way
}

// ClassOf returns how urgent a worker is: its Class, or the most urgent class of
// its services.
func (w *Worker) ClassOf(specs []weft.Spec) weft.Class {
	class := weft.Compute
	for _, name := range w.Services {
		if s := specOf(specs, name); s != nil {
			class = min(class, s.Class)
		}
	}
	for c := weft.RealTime; c <= weft.Compute; c++ {
		if c.String() == w.Class {
			return c
		}
	}
	return class
}

func specOf(specs []weft.Spec, name string) *weft.Spec {
	if i := slices.IndexFunc(specs, func(s weft.Spec) bool { return s.Name == name }); i >= 0 {
		return &specs[i]
	}
	return nil
}

// hosts returns the workers that run a service.
func (p *Plan) hosts(service string) []*Worker {
	var list []*Worker
	for i := range p.Workers {
		if slices.Contains(p.Workers[i].Services, service) {
			list = append(list, &p.Workers[i])
		}
	}
	return list
}

// hostNames returns the names of the workers that run a service, except one.
func (p *Plan) hostNames(service string, except *Worker) (names []string) {
	for _, w := range p.hosts(service) {
		if w != except {
			names = append(names, w.Name)
		}
	}
	return names
}

func (p *Plan) partitionNames() (names []string) {
	for _, x := range p.Partitions {
		names = append(names, x.Name)
	}
	return names
}

// directed reports whether a call finds its servers by the switches that it is
// about, or is put to all.
func directed(method string) bool {
	return api.RulesOf(method).GetRoute() != nil
}
