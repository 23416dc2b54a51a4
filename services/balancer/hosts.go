package balancer

import (
	"net/netip"
	"slices"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
)

// station is a host as the balancer knows it.
type station struct {
	mac flow.MAC
	at  flow.Location
}

// residents is which host has which address where, as hosts has told.
type residents struct {
	hosts map[hostKey]*resident
	of    map[place]hostKey
}

type hostKey struct {
	mac  flow.MAC
	vlan uint16
}

type resident struct {
	station
	addrs []netip.Addr
}

func newResidents() residents {
	return residents{hosts: map[hostKey]*resident{}, of: map[place]hostKey{}}
}

// changed takes the event; it returns the addresses that are concerned.
func (r *residents) changed(e *api.HostChanged) (addrs []place) {
	mac, err := flow.ParseMAC(e.GetHost().GetMac())
	if err != nil {
		return nil
	}
	k := hostKey{mac, vlanKey(e.Host.GetVlan())}
	if old := r.hosts[k]; old != nil {
		for _, a := range old.addrs {
			p := place{a, k.vlan}
			if r.of[p] == k {
				delete(r.of, p)
			}
			addrs = append(addrs, p)
		}
		delete(r.hosts, k)
	}
	if e.GetChange() == "gone" {
		return addrs
	}
	h := &resident{station: station{mac, e.Host.GetAt().Flow()}}
	for _, list := range [...][]string{e.Host.GetIpv4(), e.Host.GetIpv6()} {
		for _, text := range list {
			a, err := netip.ParseAddr(text)
			if err != nil {
				continue
			}
			p := place{a.Unmap(), k.vlan}
			h.addrs = append(h.addrs, p.addr)
			r.of[p] = k
			if !slices.Contains(addrs, p) {
				addrs = append(addrs, p)
			}
		}
	}
	r.hosts[k] = h
	return addrs
}

// find returns the host with an address.
func (r *residents) find(p place) (station, bool) {
	k, ok := r.of[p]
	if !ok {
		return station{}, false
	}
	h := r.hosts[k]
	return h.station, h.at != flow.Location{}
}
