package tenants

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/nib"
	"github.com/weft-sdn/weft/object"
)

// admission is which hosts are let in for tenants with a limit. A change of networks or
// tenants makes another.
type admission struct {
	let     map[string]*guestlist // by tenant
	carried map[uint16]*network   // by segment
}

// admission returns which hosts are let in. It is called with mu held.
func (b *store) admission() *admission {
	if b.admitted != nil {
		return b.admitted
	}
	a := &admission{map[string]*guestlist{}, map[uint16]*network{}}
	for t := range b.tenants.All() {
		if t.MaxHosts > 0 {
			a.let[t.Name] = newGuestlist(int(t.MaxHosts))
		}
	}
	for n := range b.networks.All() {
		a.carried[n.segment] = n
		if l := a.let[n.said.Tenant]; l != nil {
			for h := range b.net.HostsIn(n.segment) {
				l.set(seenOf(h))
			}
		}
	}
	b.admitted = a
	return a
}

// networkChanged follows a change of the network.
func (b *store) networkChanged(c nib.Change) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.net = c.Is
	b.redeclare(append(b.links.follow(time.Now(), c), c.SwitchesOf(flow.RoleEdge)...))
	all, segments := false, len(c.Switches()) > 0
	for _, h := range c.Hosts() {
		admission, segment := b.hostChanged(h)
		all, segments = all || admission, segments || segment
	}
	if all {
		b.networks.Recompute()
	}
	if segments {
		object.Notify(b.news)
	}
}

// redeclare declares the entries of switches with other ports, and the segments, anew.
func (b *store) redeclare(switches []flow.DPID) {
	if len(switches) > 0 {
		b.networks.Recompute(switches...)
		object.Notify(b.news)
	}
}

// expire ends links that have lingered, until ctx ends.
func (b *store) expire(ctx context.Context) {
	tick := time.NewTicker(lingers / 20)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-tick.C:
			b.mu.Lock()
			b.redeclare(b.links.expire(now))
			b.mu.Unlock()
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
	a := b.admission()
	n := a.carried[k.vlan]
	if n == nil || was != nil && is != nil && *was == *is {
		return false, false
	}
	if l := a.let[n.said.Tenant]; l != nil {
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
	l := b.admission().let[n.said.Tenant]
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
