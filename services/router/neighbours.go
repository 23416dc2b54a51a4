package router

import (
	"maps"
	"net/netip"
	"slices"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
)

// place is an address in a VLAN, as in flow.Key.
type place struct {
	addr netip.Addr
	vlan uint16
}

// station is where a neighbour is.
type station struct {
	mac flow.MAC
	at  flow.Location // zero: not known
}

// hostKey names a host.
type hostKey struct {
	mac  flow.MAC
	vlan uint16
}

// neighbours is which host has which address where, as hosts has told, or the
// host itself a moment ago. What an earlier run knew counts until hosts has told
// otherwise, so that a restart takes no entry from a switch.
type neighbours struct {
	of     map[place]station
	addrs  map[hostKey][]netip.Addr
	former map[place]bool // of an earlier run, not told of yet
	dirty  map[place]bool // changed since it was kept

	version uint64 // counts changes
}

func newNeighbours() *neighbours {
	return &neighbours{of: map[place]station{}, addrs: map[hostKey][]netip.Addr{}, former: map[place]bool{}, dirty: map[place]bool{}}
}

// put takes note of a host; it reports whether that is news.
func (n *neighbours) put(p place, s station) bool {
	old, known := n.of[p]
	if known && old == s {
		return false
	}
	n.drop(p)
	n.of[p] = s
	k := hostKey{s.mac, p.vlan}
	n.addrs[k] = append(n.addrs[k], p.addr)
	n.dirty[p] = true
	n.version++
	return true
}

func (n *neighbours) drop(p place) {
	s, known := n.of[p]
	if !known {
		return
	}
	delete(n.of, p)
	delete(n.former, p)
	n.dirty[p] = true
	n.version++
	k := hostKey{s.mac, p.vlan}
	n.addrs[k] = slices.DeleteFunc(n.addrs[k], func(a netip.Addr) bool { return a == p.addr })
	if len(n.addrs[k]) == 0 {
		delete(n.addrs, k)
	}
}

// changed takes the event; it returns the addresses that are concerned.
func (n *neighbours) changed(e *api.HostChanged) (concerned []place) {
	mac, err := flow.ParseMAC(e.GetHost().GetMac())
	if err != nil {
		return nil
	}
	k := hostKey{mac, vlanKey(e.Host.Vlan)}
	var now []netip.Addr
	if e.Change != "gone" {
		for _, list := range [...][]string{e.Host.Ipv4, e.Host.Ipv6} {
			for _, text := range list {
				if a, err := netip.ParseAddr(text); err == nil {
					now = append(now, a.Unmap())
				}
			}
		}
	}
	for _, a := range slices.Clone(n.addrs[k]) {
		if !slices.Contains(now, a) {
			n.drop(place{a, k.vlan})
			concerned = append(concerned, place{a, k.vlan})
		}
	}
	at := e.Host.GetAt().Flow()
	for _, a := range now {
		p := place{a, k.vlan}
		delete(n.former, p)
		if n.put(p, station{mac, at}) {
			concerned = append(concerned, p)
		}
	}
	return concerned
}

// forget drops what only an earlier run knew; it reports whether there was any.
func (n *neighbours) forget() bool {
	list := slices.Collect(maps.Keys(n.former))
	for _, p := range list {
		n.drop(p)
	}
	return len(list) > 0
}
