package tenants

import (
	"cmp"
	"maps"
	"slices"

	"weft/flow"
)

// admission is which hosts of a tenant with a limit are let in.
type admission struct {
	full  bool // no more than those of hosts
	hosts map[hostKey]bool
}

// admit decides anew which hosts tenants with a limit have. Those that were
// first seen earlier come first, so that a restart decides alike. It reports
// whether anything has changed, and is called with mu held.
func (b *book) admit() bool {
	next := map[string]admission{}
	for name, t := range b.tenants {
		if t.MaxHosts == 0 {
			continue
		}
		list := b.hostsOf(name)
		a := admission{full: len(list) >= int(t.MaxHosts), hosts: map[hostKey]bool{}}
		if a.full {
			for _, h := range list[:t.MaxHosts] {
				a.hosts[h.hostKey] = true
			}
		}
		next[name] = a
	}
	same := maps.EqualFunc(b.let, next, func(x, y admission) bool { return x.full == y.full && maps.Equal(x.hosts, y.hosts) })
	b.let = next
	return !same
}

// hostsOf returns the hosts of a tenant in the order in which they have come.
// It is called with mu held.
func (b *book) hostsOf(tenant string) []*seen {
	var list []*seen
	for _, n := range b.networks {
		if n.said.Tenant != tenant {
			continue
		}
		for _, h := range b.scene.inVLAN[n.segment] {
			list = append(list, h)
		}
	}
	slices.SortFunc(list, func(x, y *seen) int {
		return cmp.Or(cmp.Compare(x.first, y.first), cmp.Compare(x.vlan, y.vlan), slices.Compare(x.mac[:], y.mac[:]))
	})
	return list
}

// guests returns the hosts that a network has been narrowed to, in order, and
// whether it has been. It is called with mu held.
func (b *book) guests(n *network) (list []*seen, narrowed bool) {
	a := b.let[n.said.Tenant]
	if !a.full {
		return nil, false
	}
	for _, h := range b.scene.inVLAN[n.segment] {
		if a.hosts[h.hostKey] {
			list = append(list, h)
		}
	}
	slices.SortFunc(list, func(x, y *seen) int { return slices.Compare(x.mac[:], y.mac[:]) })
	return list, true
}

// among reports whether a host is one of guests.
func among(guests []*seen, mac flow.MAC) bool {
	return slices.ContainsFunc(guests, func(h *seen) bool { return h.mac == mac })
}
