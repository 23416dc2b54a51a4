package deploy

import (
	"slices"

	"github.com/weft-sdn/weft/plan"
)

// Where the partitions of a plan are parts of one network, the instances of some
// services work as one, though each is of a partition (plan.AsOne): forwarding,
// whose instances all know all routes. What differs for such a service is here:
// it hears the events of all partitions, its instances are numbered across them,
// any of them answers a call, and while a partition's own are away, the others
// deal with its packets.

// hears reports whether a service of a process of one partition hears what is
// told in a process of another.
func (p *parts) hears(service, partition, told string) bool {
	return partition == "" || told == "" || partition == told || p.worksAsOne(service)
}

// worksAsOne reports whether the instances of a service work as one; p may be
// nil: there are not several partitions within reach.
func (p *parts) worksAsOne(service string) bool { return p != nil && p.asOne[service] }

// speakers returns the instances of a publisher that a service of this process
// hears.
func (v *view) speakers(service, publisher string) []*target {
	list := v.routes[publisher]
	if v.mine.Partition == "" || !v.parts.worksAsOne(service) || v.parts.worksAsOne(publisher) {
		return list
	}
	list = slices.Clone(list)
	for name, services := range v.parts.targets {
		if name != v.mine.Partition {
			list = append(list, services[publisher]...)
		}
	}
	return list
}

// listening reports whether any service of this process hears what is told in a
// process of a partition.
func (n *Node) listening(told string) bool {
	v := n.view.Load()
	return slices.ContainsFunc(n.worker.tables.Load().services, func(s *service) bool {
		return v.parts.hears(s.spec.Name, v.mine.Partition, told)
	})
}

// worksAsOne reports whether a service works as one with its instances of other
// partitions when a process is a given instance of a plan. If that changes, the
// service is started again: what it has heard is of another network.
func (n *Node) worksAsOne(c *Current, mine plan.Instance, service string) bool {
	return mine.Partition != "" && c.plan.AsOne(n.config.Specs)[service]
}
