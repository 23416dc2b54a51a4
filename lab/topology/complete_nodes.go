package topology

import (
	"cmp"
	"net/netip"
)

// completeNodes fills in what is left open of hybrid nodes and routers.
func (t *Topology) completeNodes() {
	if !t.hasNodes() {
		return
	}
	t.Routing.Hello = cmp.Or(t.Routing.Hello, defaultHello)
	t.Routing.Dead = cmp.Or(t.Routing.Dead, min(max(defaultDead, 4*t.Routing.Hello), mostSeconds))
	t.OVS = cmp.Or(t.OVS, OVSShared)
	t.Control.Mode = cmp.Or(t.Control.Mode, ControlOutOfBand)
	used := map[netip.Addr]bool{}
	for i := range t.Switches {
		used[t.Switches[i].Loopback], used[t.Switches[i].Loopback6] = true, true
	}
	free4 := newUnused(func(n int) bool { return used[Loopback4(n)] })
	free6 := newUnused(func(n int) bool { return used[loopback6(n)] })
	nth := 0
	for i := range t.Switches {
		s := &t.Switches[i]
		if !s.Routes() {
			continue
		}
		nth++
		if !s.Loopback.IsValid() {
			s.Loopback = Loopback4(free4.from(nth))
			used[s.Loopback] = true
		}
		if !s.Loopback6.IsValid() && !t.Routing.IPv4Only {
			s.Loopback6 = loopback6(free6.from(nth))
			used[s.Loopback6] = true
		}
	}
}

// completeGateways gives hosts with a gateway their addresses, and the gateway's.
func (t *Topology) completeGateways() {
	used := networks{}
	for i := range t.Hosts {
		if h := &t.Hosts[i]; h.Gateway {
			used.add(h.IPv4, 24)
			used.add(h.IPv6, 64)
		}
	}
	n := 0
	for i := range t.Hosts {
		h := &t.Hosts[i]
		if !h.Gateway {
			continue
		}
		n++
		for v4, v6 := gatewayHost(n); n < mostGateways && (used.overlap(v4) || used.overlap(v6)); v4, v6 = gatewayHost(n) {
			n++
		}
		v4, v6 := gatewayHost(n)
		if !h.IPv4.IsValid() {
			h.IPv4 = v4
		}
		if !h.IPv6.IsValid() {
			if h.IPv6 = v6; t.Routing.IPv4Only {
				h.IPv6 = NoIPv6()
			}
		}
		if h.HasIPv4() && !h.GW4.IsValid() {
			h.GW4 = gatewayIn(h.IPv4)
		}
		if h.HasIPv6() && !h.GW6.IsValid() {
			h.GW6 = gatewayIn(h.IPv6)
		}
	}
}

// networks are prefixes, to be compared with others of one length.
type networks map[netip.Prefix]bool

// add adds a prefix; one that is longer than that of what it is compared with counts as
// that.
func (s networks) add(p netip.Prefix, length int) {
	if p.IsValid() && p.Bits() > 0 {
		s[netip.PrefixFrom(p.Addr(), min(p.Bits(), length)).Masked()] = true
	}
}

// overlap reports whether a prefix has an address in common with any of them.
func (s networks) overlap(p netip.Prefix) bool {
	for length := p.Bits(); length > 0; length-- {
		if s[netip.PrefixFrom(p.Addr(), length).Masked()] {
			return true
		}
	}
	return false
}

// gatewayIn returns the first address of a host's prefix that another may have;
// the zero Addr if there is none.
func gatewayIn(p netip.Prefix) netip.Addr {
	a := p.Masked().Addr()
	if a.BitLen()-p.Bits() > 1 {
		a = a.Next() // not the network's own
	}
	if a == p.Addr() {
		a = a.Next()
	}
	if !p.Contains(a) {
		return netip.Addr{}
	}
	return a
}
