package members

import (
	"slices"
)

// Where the partitions of a plan are parts of one network, the instances of
// some services are clustered, although each belongs to a partition
// (plan.AsOne): for example forwarding, whose instances all know all routes.
// This file holds what differs for a clustered service: it receives the events
// of all partitions, its instances are numbered across partitions, any instance
// answers a call, and while the instances of a partition are down, the others
// handle its packets.

// Receives reports whether a service of a process of one partition receives the
// events published in a process of another.
func (p *Parts) Receives(service, partition, from string) bool {
	return partition == "" || from == "" || partition == from || p.Clustered(service)
}

// Clustered reports whether a service is clustered; p may be nil, if this
// process does not reach several partitions.
func (p *Parts) Clustered(service string) bool { return p != nil && p.asOne[service] }

// Publishers returns the instances of a publisher whose events a service of this
// process receives.
func (v *View) Publishers(service, publisher string) []*Target {
	list := v.Routes[publisher]
	if v.Mine.Partition == "" || !v.Parts.Clustered(service) || v.Parts.Clustered(publisher) {
		return list
	}
	list = slices.Clone(list)
	for name, services := range v.Parts.targets {
		if name != v.Mine.Partition {
			list = append(list, services[publisher]...)
		}
	}
	return list
}
