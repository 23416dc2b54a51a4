package tenants

import (
	"cmp"
	"maps"
	"slices"

	"weft/api"
	"weft/flow"
)

// admission is which hosts of a tenant with a limit are let in.
type admission struct {
	full  bool // no more than those of hosts
	hosts map[hostKey]bool
}

// admit decides anew which hosts tenants with a limit have, and is called with
// mu held.
func (b *book) admit() {
	b.let = map[string]admission{}
	for name := range b.tenants {
		b.admitTo(name)
	}
}

// admitTo decides for one tenant. Hosts that were first seen earlier come first,
// so that a restart decides alike. It reports whether anything has changed, and
// is called with mu held.
func (b *book) admitTo(tenant string) bool {
	most := int(b.tenants[tenant].MaxHosts)
	if most == 0 {
		return false
	}
	list := b.hostsOf(tenant)
	next := admission{full: len(list) >= most, hosts: map[hostKey]bool{}}
	if next.full {
		for _, h := range list[:most] {
			next.hosts[h.hostKey] = true
		}
	}
	old := b.let[tenant]
	b.let[tenant] = next
	return old.full != next.full || !maps.Equal(old.hosts, next.hosts)
}

// hostChanged takes the event of hosts. It reports whether other hosts are let
// in by it, and whether a network is reached elsewhere.
func (b *book) hostChanged(e *api.HostChanged) (admission, segment bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	vlan := b.scene.hostChanged(e)
	if vlan == 0 {
		return false, false
	}
	for _, n := range b.networks {
		if n.segment == vlan {
			mac, err := flow.ParseMAC(e.Host.Mac)
			return b.admitTo(n.said.Tenant), err == nil && slices.Contains(n.macs, mac)
		}
	}
	return false, false
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
