package plan

import (
	"slices"

	"weft"
)

// OneNetwork reports whether the partitions of the plan are parts of one
// network: whether a service of which there is one in the whole system, such as
// discovery, is in a worker of no partition. Otherwise, and in a plan of fewer
// than two partitions, each partition is a network by itself.
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

// RunsPerPartition reports whether any partition has a service for itself.
func (p *Plan) RunsPerPartition(service string) bool {
	return slices.ContainsFunc(p.hosts(service), func(w *Worker) bool { return w.Partition != "" })
}
