package tenants

import (
	"cmp"
	"slices"

	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/nib"
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
			for h := range b.view.net.HostsIn(n.segment) {
				l.set(seenOf(h))
			}
		}
	}
}

// hostChanged follows a change of a host. It reports whether it lets other hosts
// in, and whether a network is reached elsewhere. It is called with mu held.
func (b *store) hostChanged(h nib.Step[nib.Host]) (admission, segment bool) {
	var was, is *seen
	if h.Was != nil {
		was = seenOf(h.Was)
	}
	if h.Is != nil {
		is = seenOf(h.Is)
	}
	k := cmp.Or(is, was).hostKey
	n := b.carried[k.vlan]
	if n == nil || was != nil && is != nil && *was == *is {
		return false, false
	}
	if l := b.let[n.said.Tenant]; l != nil {
		if is != nil {
			admission = l.set(is)
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
			sum += b.view.net.HostsLen(n.segment)
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
	for f := range b.view.net.HostsIn(n.segment) {
		if h := seenOf(f); l.lets(h.hostKey) {
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
