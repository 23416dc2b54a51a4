package lab

import (
	"cmp"
	"net/netip"
	"slices"
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
	nth := 0
	for i := range t.Switches {
		s := &t.Switches[i]
		if !s.routes() {
			continue
		}
		nth++
		give := func(to *netip.Addr, address func(int) netip.Addr) {
			if to.IsValid() {
				return
			}
			n := nth
			for used[address(n)] {
				n++
			}
			*to = address(n)
			used[*to] = true
		}
		give(&s.Loopback, loopback4)
		if !t.Routing.IPv4Only {
			give(&s.Loopback6, loopback6)
		}
	}
}

// completeGateways gives hosts with a gateway their addresses, and the gateway's.
func (t *Topology) completeGateways() {
	var used []netip.Prefix
	for i := range t.Hosts {
		if h := &t.Hosts[i]; h.Gateway {
			used = append(used, h.IPv4, h.IPv6)
		}
	}
	free := func(p netip.Prefix) bool {
		return !slices.ContainsFunc(used, func(o netip.Prefix) bool { return o.IsValid() && o.Bits() > 0 && o.Overlaps(p) })
	}
	used = slices.DeleteFunc(used, func(p netip.Prefix) bool { return !p.IsValid() })
	n := 0
	for i := range t.Hosts {
		h := &t.Hosts[i]
		if !h.Gateway {
			continue
		}
		n++
		for v4, v6 := gatewayHost(n); n < mostGateways && !(free(v4) && free(v6)); v4, v6 = gatewayHost(n) {
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
