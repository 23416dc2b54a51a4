package tenants

import (
	"slices"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
)

// admit decides anew which hosts are let in for tenants with a limit, after
// networks or tenants have changed. It is called with mu held.
func (b *store) admit() {
	b.let, b.carried = map[string]*guestlist{}, map[uint16]*network{}
	for t := range b.tenants.All() {
		if t.MaxHosts > 0 {
			b.let[t.Name] = newGuestlist(int(t.MaxHosts))
		}
	}
	for n := range b.networks.All() {
		b.carried[n.segment] = n
		if l := b.let[n.said.Tenant]; l != nil {
			for _, h := range b.view.inVLAN[n.segment] {
				l.set(h)
			}
		}
	}
}

// hostChanged handles the event of hosts. It reports whether the event lets other
// hosts in, and whether a network is reached elsewhere.
func (b *store) hostChanged(e *api.HostChanged) (admission, segment bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	k, changed := b.view.hostChanged(e)
	n := b.carried[k.vlan]
	if !changed || n == nil {
		return false, false
	}
	if l := b.let[n.said.Tenant]; l != nil {
		if h := b.view.hosts[k]; h != nil {
			admission = l.set(h)
		} else {
			admission = l.remove(k)
		}
	}
	_, segment = slices.BinarySearchFunc(n.macs, k.mac, compareMACs)
	return admission, segment
}

func compareMACs(a, b flow.MAC) int { return slices.Compare(a[:], b[:]) }

// hostsOf returns the number of a tenant's hosts. It is called with mu held.
func (b *store) hostsOf(tenant string) (sum int) {
	for n := range b.networks.All() {
		if n.said.Tenant == tenant {
			sum += len(b.view.inVLAN[n.segment])
		}
	}
	return sum
}

// guests returns the hosts to which a network has been narrowed, in order, and
// whether it has been. It is called with mu held.
func (b *store) guests(n *network) (list []*seen, narrowed bool) {
	l := b.let[n.said.Tenant]
	if l == nil || !l.full() {
		return nil, false
	}
	for _, h := range b.view.inVLAN[n.segment] {
		if l.lets(h.hostKey) {
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
