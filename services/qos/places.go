package qos

import (
	"net/netip"
	"slices"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
)

// places is where hosts are, by what hosts says of them.
type places struct {
	hosts map[placeKey]*placed
	ips   map[netip.Addr]map[placeKey]*placed
	macs  map[flow.MAC]map[placeKey]*placed
}

// placeKey is what a host is told apart by.
type placeKey struct {
	mac  flow.MAC
	vlan uint16
}

// placed is a host and where it is.
type placed struct {
	placeKey
	at  flow.Location
	ips []netip.Addr
}

func newPlaces() *places {
	return &places{hosts: map[placeKey]*placed{}, ips: map[netip.Addr]map[placeKey]*placed{}, macs: map[flow.MAC]map[placeKey]*placed{}}
}

// of returns the hosts that a name stands for, in a fixed order.
func (p *places) of(n hostName) []*placed {
	set := p.macs[n.mac]
	if n.ip.IsValid() {
		set = p.ips[n.ip]
	}
	list := make([]*placed, 0, len(set))
	for _, h := range set {
		list = append(list, h)
	}
	slices.SortFunc(list, func(a, b *placed) int {
		if a.vlan != b.vlan {
			return int(a.vlan) - int(b.vlan)
		}
		return slices.Compare(a.mac[:], b.mac[:])
	})
	return list
}

// changed takes an event of hosts, and returns the host before and after, nil
// where it was or is not there.
func (p *places) changed(e *api.HostChanged) (was, is *placed) {
	m := e.GetHost()
	mac, err := flow.ParseMAC(m.GetMac())
	if err != nil || m.Vlan > 4095 {
		return nil, nil
	}
	key := placeKey{mac, uint16(m.Vlan)}
	was = p.hosts[key]
	if was != nil {
		p.forget(was)
	}
	if at := m.GetAt().Flow(); e.Change != "gone" && at != (flow.Location{}) {
		is = &placed{placeKey: key, at: at}
		for _, s := range append(slices.Clone(m.Ipv4), m.Ipv6...) {
			if ip, err := netip.ParseAddr(s); err == nil {
				is.ips = append(is.ips, ip.Unmap())
			}
		}
		p.learn(is)
	}
	return was, is
}

func (p *places) learn(h *placed) {
	p.hosts[h.placeKey] = h
	enter(p.macs, h.mac, h)
	for _, ip := range h.ips {
		enter(p.ips, ip, h)
	}
}

func (p *places) forget(h *placed) {
	delete(p.hosts, h.placeKey)
	leave(p.macs, h.mac, h)
	for _, ip := range h.ips {
		leave(p.ips, ip, h)
	}
}

func enter[K comparable](index map[K]map[placeKey]*placed, k K, h *placed) {
	if index[k] == nil {
		index[k] = map[placeKey]*placed{}
	}
	index[k][h.placeKey] = h
}

func leave[K comparable](index map[K]map[placeKey]*placed, k K, h *placed) {
	if delete(index[k], h.placeKey); len(index[k]) == 0 {
		delete(index, k)
	}
}

// meets reports whether a name stands for the host.
func (h *placed) meets(n hostName) bool {
	if h == nil {
		return false
	}
	if n.ip.IsValid() {
		return slices.Contains(h.ips, n.ip)
	}
	return h.mac == n.mac
}
