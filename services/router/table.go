package router

import (
	"net/netip"
	"slices"
)

// table maps networks to the router's next gateways; it never changes.
type table struct {
	by      map[netip.Prefix]netip.Addr // the gateway, not valid for a subnet of the router's
	lengths [2][]int                    // of prefixes of IPv4 and IPv6, the longest first
}

// newTable returns the table of a router. A subnet has precedence over a route to
// the same network.
func newTable(r *router) *table {
	t := &table{by: map[netip.Prefix]netip.Addr{}}
	add := func(p netip.Prefix, by netip.Addr) {
		t.by[p] = by
		if l := &t.lengths[family(p.Addr())]; !slices.Contains(*l, p.Bits()) {
			*l = append(*l, p.Bits())
		}
	}
	for _, x := range r.routes {
		add(x.to, x.by)
	}
	for _, x := range r.addresses {
		add(x.Masked(), netip.Addr{})
	}
	for i := range t.lengths {
		slices.SortFunc(t.lengths[i], func(a, b int) int { return b - a })
	}
	return t
}

func family(a netip.Addr) int {
	if a.Is4() {
		return 0
	}
	return 1
}

// find returns the longest prefix that contains all of p.
func (t *table) find(p netip.Prefix) (by netip.Addr, ok bool) {
	for _, n := range t.lengths[family(p.Addr())] {
		if n > p.Bits() {
			continue
		}
		if by, ok = t.by[netip.PrefixFrom(p.Addr(), n).Masked()]; ok {
			return by, true
		}
	}
	return netip.Addr{}, false
}
