package plan

import (
	"slices"

	"github.com/weft-sdn/weft"
)

// OneNetwork reports whether the partitions of the plan are parts of one
// network: whether a worker of no partition runs a service that exists once in
// the whole system, such as discovery. Otherwise, and in a plan of fewer than
// two partitions, each partition is a separate network.
func (p *Plan) OneNetwork(specs []weft.Spec) bool {
	if len(p.Partitions) < 2 {
		return false
	}
	return slices.ContainsFunc(p.Workers, func(w Worker) bool {
		return w.Partition == "" && slices.ContainsFunc(w.Services, func(name string) bool {
			s := specOf(specs, name)
			return s != nil && s.Scale == weft.Single
		})
	})
}

// AsOne returns the clustered services. Where the partitions are parts of one
// network, these are the services that subscribe to their own events, whatever
// their partitions. Each instance receives the events of all partitions, and
// any instance can answer for all.
func (p *Plan) AsOne(specs []weft.Spec) map[string]bool {
	list := map[string]bool{}
	if !p.OneNetwork(specs) {
		return list
	}
	for i := range specs {
		if tellsItself(&specs[i]) {
			list[specs[i].Name] = true
		}
	}
	return list
}

// tellsItself reports whether a service subscribes to its own events.
func tellsItself(s *weft.Spec) bool {
	return slices.ContainsFunc(s.Wants(), func(e weft.Subject) bool {
		return slices.ContainsFunc(s.Publishes, func(o weft.Subject) bool { return o.SubjectName() == e.SubjectName() })
	})
}

// RunsPerPartition reports whether a partition has its own instance of a
// service.
func (p *Plan) RunsPerPartition(service string) bool {
	return slices.ContainsFunc(p.hosts(service), func(w *Worker) bool { return w.Partition != "" })
}
