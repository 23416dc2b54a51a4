package plan

import (
	"cmp"
	"slices"

	"github.com/weft-sdn/weft"
)

// Traffic is the traffic from one worker to another, besides packet-ins.
type Traffic struct {
	From, To  string
	Transport string   // of the calls
	Calls     []string // methods of To that From calls; sorted
	Events    []string // subjects of From that To subscribes to; sorted
}

// Traffic returns the traffic between workers, by the services' declarations,
// sorted by From and To. It omits traffic inside a process.
func (p *Plan) Traffic(specs []weft.Spec) []Traffic {
	between := map[[2]string]*Traffic{}
	at := func(from, to string) *Traffic {
		key := [2]string{from, to}
		if between[key] == nil {
			between[key] = &Traffic{From: from, To: to, Transport: p.TransportBetween(from, to)}
		}
		return between[key]
	}
	asOne := p.AsOne(specs)
	for i := range p.Workers {
		w := &p.Workers[i]
		for _, name := range w.Services {
			s := specOf(specs, name)
			if s == nil {
				continue
			}
			everywhere := w.Partition == "" || asOne[name]
			for _, m := range s.Calls {
				for _, o := range providers(p, specs, w, everywhere && directed(m.MethodName()), func(o *weft.Spec) bool {
					return slices.ContainsFunc(o.Serves, func(x weft.Method) bool { return x.MethodName() == m.MethodName() })
				}) {
					t := at(w.Name, o)
					t.Calls = append(t.Calls, m.MethodName())
				}
			}
			for _, e := range s.Wants() {
				for _, o := range providers(p, specs, w, everywhere, func(o *weft.Spec) bool {
					return slices.ContainsFunc(o.Publishes, func(x weft.Subject) bool { return x.SubjectName() == e.SubjectName() })
				}) {
					t := at(o, w.Name)
					t.Events = append(t.Events, e.SubjectName())
				}
			}
		}
	}
	var list []Traffic
	for _, t := range between {
		slices.Sort(t.Calls)
		slices.Sort(t.Events)
		t.Calls, t.Events = slices.Compact(t.Calls), slices.Compact(t.Events)
		list = append(list, *t)
	}
	slices.SortFunc(list, func(a, b Traffic) int { return cmp.Or(cmp.Compare(a.From, b.From), cmp.Compare(a.To, b.To)) })
	return list
}

// providers returns the workers other than w that provide something to it:
// those within its reach, or all of them, because a service that works for all
// partitions, or is clustered, receives the events of each and makes routed
// calls to each.
func providers(p *Plan, specs []weft.Spec, w *Worker, each bool, is func(*weft.Spec) bool) (names []string) {
	for i := range specs {
		if !is(&specs[i]) {
			continue
		}
		if each {
			names = p.hostNames(specs[i].Name, nil)
		} else {
			for _, r := range p.Running(specs[i].Name, w.Partition) {
				names = append(names, r.Worker)
			}
		}
	}
	slices.Sort(names)
	names = slices.Compact(names)
	if slices.Contains(names, w.Name) && !each { // a provider in the same process is preferred
		return nil
	}
	return slices.DeleteFunc(names, func(n string) bool { return n == w.Name })
}
