package router

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/object"
)

// key names a router: a switch and a VLAN there, as in flow.Key.
type key struct {
	sw   flow.DPID
	vlan uint16
}

// newKey reads the switch and the VLAN of a request.
func newKey(dpid string, vlan uint32) (key, error) {
	sw, err := flow.ParseDPID(dpid)
	if err != nil {
		return key{}, err
	}
	if vlan > 4094 {
		return key{}, fmt.Errorf("vlan %d: want 0 (untagged) to 4094", vlan)
	}
	return key{sw, object.VLAN(vlan)}, nil
}

// number returns the VLAN as users write it, 0 for none.
func (k key) number() uint32 { return uint32(k.vlan &^ flow.VLANPresent) }

// String returns the key in the bucket.
func (k key) String() string { return fmt.Sprintf("%v.%d", k.sw, k.number()) }

// nameOf returns the key of the router of a message.
func nameOf(m *api.VirtualRouter) (string, error) {
	k, err := newKey(m.GetDpid(), m.GetVlan())
	return k.String(), err
}

// parseKey parses the result of String.
func parseKey(s string) (key, error) {
	dpid, vlan, _ := strings.Cut(s, ".")
	n, err := strconv.ParseUint(vlan, 10, 16)
	if err != nil {
		return key{}, fmt.Errorf("key %q: want DPID.VLAN", s)
	}
	return newKey(dpid, uint32(n))
}

// router is one router. It never changes once it is in the store.
type router struct {
	key
	mac       flow.MAC
	addresses []address // in the order in which they were added
	routes    []static
	next      [2]uint32 // the last numbers that an address and a route got
	table     *table    // made of addresses and routes when the router is in the store
}

// address is an address of a router and the network that contains it.
type address struct {
	id uint32
	netip.Prefix
}

// static is a static route.
type static struct {
	id uint32
	to netip.Prefix
	by netip.Addr
}

// clone returns a copy to be changed.
func (r *router) clone() *router {
	c := *r
	c.table = nil
	c.addresses, c.routes = slices.Clone(r.addresses), slices.Clone(r.routes)
	return &c
}

// compare orders routers by switch and VLAN.
func (r *router) compare(o *router) int {
	return cmp.Or(cmp.Compare(r.sw, o.sw), cmp.Compare(r.vlan, o.vlan))
}

// empty reports whether there is nothing to route.
func (r *router) empty() bool { return len(r.addresses) == 0 && len(r.routes) == 0 }

// has reports whether an address is the router's own.
func (r *router) has(a netip.Addr) bool {
	return slices.ContainsFunc(r.addresses, func(x address) bool { return x.Addr() == a })
}

// subnet returns the router's address in the subnet that contains a.
func (r *router) subnet(a netip.Addr) (address, bool) {
	var best address
	for _, x := range r.addresses {
		if x.Contains(a) && (!best.IsValid() || x.Bits() > best.Bits()) {
			best = x
		}
	}
	return best, best.IsValid()
}

// lookup returns where the router sends packets for p: the longest of its subnets
// and routes that contains all of p (RFC 1812 §5.2.4.3). by is the gateway, not
// valid if p is in one of the router's subnets.
func (r *router) lookup(p netip.Prefix) (by netip.Addr, ok bool) { return r.table.find(p) }

// facing returns the address of the router towards another address: that of the
// subnet through which the router would send to it.
func (r *router) facing(a netip.Addr) (netip.Addr, bool) {
	if x, ok := r.subnet(a); ok {
		return x.Addr(), true
	}
	if by, ok := r.lookup(one(a)); ok {
		if x, ok := r.subnet(by); ok {
			return x.Addr(), true
		}
	}
	for _, x := range r.addresses {
		if x.Addr().Is4() == a.Is4() {
			return x.Addr(), true
		}
	}
	return netip.Addr{}, false
}

// usable reports whether a host or router can have an address.
func usable(a netip.Addr) bool {
	return a.IsValid() && a.Zone() == "" && !a.Is4In6() && !a.IsUnspecified() && !a.IsMulticast() && !a.IsLoopback()
}

// one returns the network of one address.
func one(a netip.Addr) netip.Prefix { return netip.PrefixFrom(a, a.BitLen()) }

// message returns the router as the API shows it.
func (r *router) message() *api.VirtualRouter {
	m := &api.VirtualRouter{Dpid: r.sw.String(), Vlan: r.number(), Mac: r.mac.String()}
	for _, x := range r.addresses {
		m.Addresses = append(m.Addresses, x.message())
	}
	for _, x := range r.routes {
		m.Routes = append(m.Routes, x.message())
	}
	return m
}

func (x address) message() *api.RouterAddress {
	return &api.RouterAddress{Id: x.id, Address: x.String()}
}

func (x static) message() *api.RouterRoute {
	return &api.RouterRoute{Id: x.id, Destination: x.to.String(), Gateway: x.by.String()}
}
