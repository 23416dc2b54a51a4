package object

import (
	"net/netip"
	"slices"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/nib"
)

// HostKey identifies a host. A VLAN is as in flow.Key here, 0 for none.
type HostKey struct {
	MAC  flow.MAC
	VLAN uint16
}

// Address is an IP address in a VLAN.
type Address struct {
	Addr netip.Addr
	VLAN uint16
}

// In returns an address in a VLAN.
func In(addr netip.Addr, vlan uint16) Address { return Address{addr, vlan} }

// Station is a host's Ethernet address, and where it is; not known if zero.
type Station struct {
	MAC flow.MAC
	At  flow.Location
}

// Host is one host. It is immutable.
type Host struct {
	HostKey
	At    flow.Location
	Addrs []netip.Addr

	former bool // known from an earlier run only
}

// Hosts holds the locations and addresses of hosts, as published by the service
// hosts. What an earlier run knew counts until hosts publishes something else,
// so that a restart removes no flow entry from a switch. Its user guards it.
type Hosts struct {
	Version uint64 // counts changes of stations

	hosts  map[HostKey]*Host
	addrs  map[netip.Addr][]*Host // the latest speaker is last
	macs   map[flow.MAC][]*Host
	sorted []Address // nil: to be made
}

// NewHosts returns an empty table.
func NewHosts() *Hosts {
	return &Hosts{hosts: map[HostKey]*Host{}, addrs: map[netip.Addr][]*Host{}, macs: map[flow.MAC][]*Host{}}
}

// VLAN returns the VLAN of a number, 0 for none.
func VLAN(number uint32) uint16 {
	if number == 0 {
		return 0
	}
	return uint16(number) | flow.VLANPresent
}

// Station returns the host with an address; of several, the latest to use it.
func (t *Hosts) Station(a Address) (s Station, known bool) {
	list := t.addrs[a.Addr]
	for i := len(list) - 1; i >= 0; i-- {
		if h := list[i]; h.VLAN == a.VLAN {
			return Station{h.MAC, h.At}, true
		}
	}
	return s, false
}

// Stations returns all addresses with their hosts.
func (t *Hosts) Stations() map[Address]Station {
	all := make(map[Address]Station, len(t.addrs))
	for addr, list := range t.addrs {
		for _, h := range list {
			all[Address{addr, h.VLAN}] = Station{h.MAC, h.At}
		}
	}
	return all
}

// Addresses returns all addresses in order. The list must not be changed.
func (t *Hosts) Addresses() []Address {
	if t.sorted == nil {
		for a := range t.Stations() {
			t.sorted = append(t.sorted, a)
		}
		slices.SortFunc(t.sorted, func(a, b Address) int {
			if c := a.Addr.Compare(b.Addr); c != 0 {
				return c
			}
			return int(a.VLAN) - int(b.VLAN)
		})
	}
	return t.sorted
}

// WithMAC and WithAddr return the hosts of all VLANs that have an address. The
// list must not be changed.
func (t *Hosts) WithMAC(mac flow.MAC) []*Host     { return t.macs[mac] }
func (t *Hosts) WithAddr(addr netip.Addr) []*Host { return t.addrs[addr] }

// Changed applies the event. It returns the host before and after, nil where it
// is absent, and the addresses whose station has changed.
func (t *Hosts) Changed(e *api.HostChanged) (was, is *Host, moved []Address) {
	m := e.GetHost()
	mac, err := flow.ParseMAC(m.GetMac())
	if err != nil || m.Vlan > 4095 {
		return nil, nil, nil
	}
	key := HostKey{mac, VLAN(m.Vlan)}
	if e.Change != "gone" {
		is = &Host{HostKey: key, At: m.GetAt().Flow()}
		for _, list := range [...][]string{m.Ipv4, m.Ipv6} {
			for _, text := range list {
				if a, err := netip.ParseAddr(text); err == nil && a.Zone() == "" && !slices.Contains(is.Addrs, a.Unmap()) {
					is.Addrs = append(is.Addrs, a.Unmap())
				}
			}
		}
	}
	was, moved = t.replace(key, is)
	return was, is, moved
}

// Follow applies a change of a host of the network, like Changed.
func (t *Hosts) Follow(s nib.Step[nib.Host]) (was, is *Host, moved []Address) {
	if s.Is == nil {
		return t.Changed(&api.HostChanged{Host: s.Was.Is, Change: "gone"})
	}
	return t.Changed(&api.HostChanged{Host: s.Is.Is})
}

// Learn records a further address of a host.
func (t *Hosts) Learn(a Address, s Station) { t.learn(a, s, false) }

// Restore adds a host known from an earlier run.
func (t *Hosts) Restore(a Address, s Station) { t.learn(a, s, true) }

func (t *Hosts) learn(a Address, s Station, former bool) {
	h := &Host{HostKey: HostKey{s.MAC, a.VLAN}, At: s.At, Addrs: []netip.Addr{a.Addr}, former: former}
	if old := t.hosts[h.HostKey]; old != nil {
		h.former = old.former
		for _, addr := range old.Addrs {
			if addr != a.Addr {
				h.Addrs = append(h.Addrs, addr)
			}
		}
	}
	t.replace(h.HostKey, h)
}

// Forget drops the hosts that only an earlier run knew; it reports whether there
// were any.
func (t *Hosts) Forget() (any bool) {
	for key, h := range t.hosts {
		if h.former {
			t.replace(key, nil)
			any = true
		}
	}
	return any
}

// replace puts a host in place of the one of that key; nil is none.
func (t *Hosts) replace(key HostKey, is *Host) (was *Host, moved []Address) {
	was = t.hosts[key]
	type before struct {
		Station
		known bool
	}
	then := map[Address]before{}
	for _, h := range [...]*Host{was, is} {
		if h == nil {
			continue
		}
		for _, addr := range h.Addrs {
			a := Address{addr, key.VLAN}
			s, known := t.Station(a)
			then[a] = before{s, known}
		}
	}
	if was != nil {
		delete(t.hosts, key)
		without(t.macs, key.MAC, was)
		for _, addr := range was.Addrs {
			without(t.addrs, addr, was)
		}
	}
	if is != nil {
		t.hosts[key] = is
		t.macs[key.MAC] = append(t.macs[key.MAC], is)
		for _, addr := range is.Addrs {
			t.addrs[addr] = append(t.addrs[addr], is)
		}
	}
	for a, b := range then {
		if s, known := t.Station(a); s != b.Station || known != b.known {
			moved = append(moved, a)
		}
	}
	if len(moved) > 0 {
		t.Version++
		t.sorted = nil
	}
	return was, moved
}

// without removes a host from a list.
func without[K comparable](index map[K][]*Host, k K, h *Host) {
	list := slices.DeleteFunc(index[k], func(o *Host) bool { return o == h })
	if index[k] = list; len(list) == 0 {
		delete(index, k)
	}
}
