package balancer

import (
	"net/netip"

	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/object"
)

// index is what the packets of every switch are compared with; a new one replaces
// it, it never changes. A nil index has no VIPs.
type index struct {
	macs   map[hostKey]bool
	fronts map[place]*front
	given  map[flow.Cookie]string // VIPs to which connections to members' own addresses are given, by what such packets have
	list   []*vip                 // by name
}

// front is the VIPs of one address.
type front struct {
	mac    flow.MAC
	shadow bool // a host has the address
	vips   map[service]*vip
	any    *vip
}

// newIndex returns the index of VIPs, and gives each the number of its group.
func newIndex(list []*vip) *index {
	if len(list) == 0 {
		return nil
	}
	x := &index{macs: map[hostKey]bool{}, fronts: map[place]*front{}, given: map[flow.Cookie]string{}, list: list}
	groups := map[uint32]bool{}
	for _, v := range list {
		if v.owner == bySCP && v.host == nil {
			x.given[flow.OwnAddressCookie(v.name)] = v.name
		}
		if v.host == nil {
			x.macs[hostKey{MAC: v.mac, VLAN: v.at.host.VLAN}] = true
		}
		f := x.fronts[v.at.host]
		if f == nil {
			f = &front{mac: v.mac, shadow: v.host != nil, vips: map[service]*vip{}}
			x.fronts[v.at.host] = f
		}
		if v.at.proto == 0 {
			f.any = v
		} else {
			f.vips[v.at] = v
		}
		if v.group = number(v.name); groups[v.group] {
			v.group = 0
		}
		groups[v.group] = true
	}
	return x
}

// all returns the VIPs, by name.
func (x *index) all() []*vip {
	if x == nil {
		return nil
	}
	return x.list
}

// front returns the VIPs of an address, nil if there are none.
func (x *index) front(at place) *front {
	if x == nil {
		return nil
	}
	return x.fronts[at]
}

// own reports whether an address is a VIP's that no host has.
func (x *index) own(a netip.Addr, vlan uint16) bool {
	f := x.front(object.In(a, vlan))
	return f != nil && !f.shadow
}

// vip returns the VIP that a packet is for, nil if there is none.
func (x *index) vip(s service) *vip { return x.front(s.host).vip(s) }

func (f *front) vip(s service) *vip {
	switch {
	case f == nil:
		return nil
	case f.vips[s] != nil:
		return f.vips[s]
	}
	return f.any
}

// service returns what a connection is to.
func (k connKey) service() service {
	return service{object.In(k.to.Addr(), k.vlan), k.to.Port(), k.proto}
}
