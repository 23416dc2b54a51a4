package tenants

import (
	"cmp"
	"slices"
	"time"

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
			for h := range b.net.HostsIn(n.segment) {
				l.set(seenOf(h))
			}
		}
	}
}

// networkChanged follows a change of the network. It returns the switches whose entries
// are to be declared anew, and whether those of all are; and whether segments may have
// changed.
func (b *store) networkChanged(c nib.Change) (stale []flow.DPID, all, segments bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.net = c.Is
	stale = append(b.links.follow(time.Now(), c), c.SwitchesOf(flow.RoleEdge)...)
	segments = len(stale) > 0 || len(c.Switches()) > 0
	for _, h := range c.Hosts() {
		admission, segment := b.hostChanged(h)
		all, segments = all || admission, segments || segment
	}
	return stale, all, segments
}

// expire ends links that have lingered, and returns the switches that had some.
func (b *store) expire(now time.Time) []flow.DPID {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.links.expire(now)
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
			sum += b.net.HostsLen(n.segment)
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
	for f := range b.net.HostsIn(n.segment) {
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
