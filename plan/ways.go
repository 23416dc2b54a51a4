package plan

import (
	"cmp"
	"slices"

	"github.com/weft-sdn/weft"
)

// Kinds of messages between services.
const (
	CallWay   = "call"   // a request and its answer
	EventWay  = "event"  // from who publishes it to who subscribes to it
	PacketWay = "packet" // from stage to stage, and the decision back
)

// Way is how the messages of a kind go from a service to another.
type Way struct {
	From, To, Kind string
	// Transports are those by which they go, Inproc among them if some stay in
	// their process; sorted.
	Transports []string
	// Apart says that some go from one machine to another.
	Apart bool
}

// A wayFinder collects the ways between the services of a plan.
type wayFinder struct {
	*Plan
	specs []weft.Spec
	ways  map[[3]string]*Way // by from, to and kind
}

// Ways returns how services reach each other, by their declarations, sorted.
func (p *Plan) Ways(specs []weft.Spec) []Way {
	wf := &wayFinder{Plan: p, specs: specs, ways: map[[3]string]*Way{}}
	asOne := p.AsOne(specs)
	for i := range p.Workers {
		w := &p.Workers[i]
		for _, name := range w.Services {
			s := specOf(specs, name)
			if s == nil {
				continue
			}
			wf.waysOf(w, s, w.Partition == "" || asOne[name])
		}
	}
	for _, partition := range wf.parts() {
		wf.packetWays(partition)
	}
	list := make([]Way, 0, len(wf.ways))
	for _, w := range wf.ways {
		slices.Sort(w.Transports)
		list = append(list, *w)
	}
	slices.SortFunc(list, func(a, b Way) int {
		return cmp.Or(cmp.Compare(a.From, b.From), cmp.Compare(a.To, b.To), cmp.Compare(a.Kind, b.Kind))
	})
	return list
}

// add adds a way from a worker to another.
func (wf *wayFinder) add(from, to, kind, fromWorker, toWorker string) {
	key := [3]string{from, to, kind}
	if wf.ways[key] == nil {
		wf.ways[key] = &Way{From: from, To: to, Kind: kind}
	}
	way := wf.ways[key]
	t := Inproc // a provider in the same process is preferred
	if fromWorker != toWorker {
		t = wf.TransportBetween(fromWorker, toWorker)
		if kind == EventWay {
			t = wf.Events
		}
		way.Apart = way.Apart || wf.Worker(fromWorker).Machine != wf.Worker(toWorker).Machine
	}
	if !slices.Contains(way.Transports, t) {
		way.Transports = append(way.Transports, t)
	}
}

// waysOf adds the calls and events of a service in a worker.
func (wf *wayFinder) waysOf(w *Worker, s *weft.Spec, everywhere bool) {
	for i := range wf.specs {
		o := &wf.specs[i]
		if o.Name == s.Name || !wf.Has(o.Name) {
			continue
		}
		called, each := false, false
		for _, m := range s.Calls {
			if slices.ContainsFunc(o.Serves, func(x weft.Method) bool { return x.MethodName() == m.MethodName() }) {
				called, each = true, each || everywhere && directed(m.MethodName())
			}
		}
		if called {
			for _, to := range wf.within(w, o.Name, each) {
				wf.add(s.Name, o.Name, CallWay, w.Name, to)
			}
		}
		if slices.ContainsFunc(s.Wants(), func(e weft.Subject) bool {
			return slices.ContainsFunc(o.Publishes, func(x weft.Subject) bool { return x.SubjectName() == e.SubjectName() })
		}) {
			for _, from := range wf.within(w, o.Name, everywhere) {
				wf.add(o.Name, s.Name, EventWay, from, w.Name)
			}
		}
	}
}

// within returns the workers that provide a service to a worker: each of them, or
// those within its reach, of which itself is preferred.
func (wf *wayFinder) within(w *Worker, service string, each bool) []string {
	if each {
		return wf.hostNames(service, nil)
	}
	var own, all []string
	for i := range wf.Workers {
		switch o := &wf.Workers[i]; {
		case !slices.Contains(o.Services, service):
		case o.Partition == "":
			all = append(all, o.Name)
		case o.Partition == w.Partition:
			own = append(own, o.Name)
		}
	}
	if len(own) > 0 {
		all = own
	}
	if slices.Contains(all, w.Name) {
		return []string{w.Name}
	}
	return all
}

// parts returns the names of the partitions, or the empty one if there are none.
func (wf *wayFinder) parts() []string {
	if len(wf.Partitions) == 0 {
		return []string{""}
	}
	return wf.partitionNames()
}

// packetWays adds the way of a packet-in of a partition from stage to stage.
func (wf *wayFinder) packetWays(partition string) {
	i := slices.IndexFunc(wf.specs, func(s weft.Spec) bool { return s.Pipeline })
	if i < 0 {
		return
	}
	legs := wf.Way(wf.specs, partition)
	if len(legs) == 0 {
		return
	}
	before, at := wf.specs[i].Name, legs[0].Worker
	for _, leg := range legs {
		for _, stage := range leg.Stages {
			wf.add(before, stage, PacketWay, at, leg.Worker)
			before, at = stage, leg.Worker
		}
	}
}
