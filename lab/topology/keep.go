package topology

import (
	"net/netip"
	"slices"
)

// keep gives a topology that was read and is not completed yet what a running
// lab has already where the file leaves it open: what else is added to a file or
// taken from it does not give others new numbers and addresses.
func (t *Topology) keep(running Running) {
	was := running.Topology
	if len(t.Controllers) == 0 || running.Given {
		t.Controllers = slices.Clone(was.Controllers)
	}
	t.keepSwitches(was)
	t.keepHosts(was)
	t.keepPorts(was)
}

// keepValue sets what is left open to what it was, unless another has that.
func keepValue[T comparable](to *T, was T, used map[T]bool) {
	var open T
	if *to == open && was != open && !used[was] {
		*to = was
		used[was] = true
	}
}

func (t *Topology) keepSwitches(was *Topology) {
	dpids, loopbacks := map[DPID]bool{}, map[netip.Addr]bool{}
	for _, s := range t.Switches {
		dpids[s.DPID], loopbacks[s.Loopback], loopbacks[s.Loopback6] = true, true, true
	}
	there := byName(was.Switches, switchName)
	for i := range t.Switches {
		s := &t.Switches[i]
		old := there[s.Name]
		if old == nil {
			continue
		}
		if s.Kind == "" || s.Controlled() {
			keepValue(&s.DPID, old.DPID, dpids)
		}
		if s.Routes() {
			keepValue(&s.Loopback, old.Loopback, loopbacks)
		}
		if s.Routes() && !t.Routing.IPv4Only {
			keepValue(&s.Loopback6, old.Loopback6, loopbacks)
		}
	}
}

func (t *Topology) keepHosts(was *Topology) {
	macs, addresses := map[MAC]bool{}, map[netip.Prefix]bool{}
	for _, h := range t.Hosts {
		macs[h.MAC], addresses[h.IPv4], addresses[h.IPv6] = true, true, true
	}
	there := byName(was.Hosts, hostName)
	wide := (len(t.Hosts) > 254) != (len(was.Hosts) > 254) // then they get another prefix length
	for i := range t.Hosts {
		h := &t.Hosts[i]
		old := there[h.Name]
		if old == nil {
			continue
		}
		keepValue(&h.MAC, old.MAC, macs)
		if old.HasIPv4() && !wide && h.Gateway == old.Gateway {
			keepValue(&h.IPv4, old.IPv4, addresses)
		}
		if old.HasIPv6() && h.Gateway == old.Gateway && !(h.Gateway && t.Routing.IPv4Only) {
			keepValue(&h.IPv6, old.IPv6, addresses)
		}
	}
}

func (t *Topology) keepPorts(was *Topology) {
	used := map[Attachment]bool{}
	for _, h := range t.Hosts {
		used[Attachment{h.Switch, h.Port}] = true
		if h.Eth1 != nil {
			used[*h.Eth1] = true
		}
	}
	for _, l := range t.Links {
		used[Attachment{l.A, l.APort}], used[Attachment{l.B, l.BPort}] = true, true
	}
	keep := func(sw string, port *uint16, old uint16) {
		if at := (Attachment{sw, old}); *port == 0 && !used[at] {
			*port = old
			used[at] = true
		}
	}
	there := byName(was.Hosts, hostName)
	for i := range t.Hosts {
		h := &t.Hosts[i]
		old := there[h.Name]
		if old == nil {
			continue
		}
		if old.Switch == h.Switch {
			keep(h.Switch, &h.Port, old.Port)
		}
		if h.Eth1 == nil || old.Eth1 == nil {
			continue
		}
		if h.Eth1.Switch == "" {
			h.Eth1.Switch = h.Switch
		}
		if h.Eth1.Switch == old.Eth1.Switch {
			keep(h.Eth1.Switch, &h.Eth1.Port, old.Eth1.Port)
		}
	}
	t.keepLinks(was, keep)
}

// keepLinks takes each link of a file for one that is there between the same
// switches, with the same ports where the file says them: those first that say most.
func (t *Topology) keepLinks(was *Topology, keep func(string, *uint16, uint16)) {
	between := map[[2]string][]Link{} // the switches, in order; those that are not taken
	for _, l := range OrderEnds(was.Links) {
		between[[2]string{l.A, l.B}] = append(between[[2]string{l.A, l.B}], l)
	}
	for open := range 3 { // ports that are left open
		for i := range t.Links {
			l := &t.Links[i]
			if l.ports() != 2-open {
				continue
			}
			pair := [2]string{min(l.A, l.B), max(l.A, l.B)}
			for j, old := range between[pair] {
				if old.A != l.A {
					old.APort, old.BPort = old.BPort, old.APort
				}
				if !l.agrees(&old) {
					continue
				}
				copy(between[pair][1:], between[pair][:j])
				between[pair] = between[pair][1:]
				a, b := old.APort, old.BPort
				defer func() { keep(l.A, &l.APort, a); keep(l.B, &l.BPort, b) }() // once all have been counted
				break
			}
		}
	}
}

// ports is how many of the link's ports are said.
func (l *Link) ports() (n int) {
	for _, p := range []uint16{l.APort, l.BPort} {
		if p != 0 {
			n++
		}
	}
	return n
}

// agrees reports whether the link may be old by its ports.
func (l *Link) agrees(old *Link) bool {
	return (l.APort == 0 || l.APort == old.APort) && (l.BPort == 0 || l.BPort == old.BPort)
}

// Running is a lab that is up, of which a file says what it is to become.
type Running struct {
	Topology *Topology
	Given    bool // its controllers are of who brought it up, not of its file
}
