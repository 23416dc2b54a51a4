package sim

import (
	"fmt"

	"github.com/weft-sdn/weft/flow"
)

// End is one end of a link: a switch by its index in Topology.Switches, and a
// port.
type End struct {
	Switch int
	Port   flow.Port
}

// Link joins two ports; frames cross it both ways.
type Link struct{ A, B End }

// Switch is one simulated switch; its ports are numbered 1 to Ports.
type Switch struct {
	DPID  flow.DPID
	Ports int
	Layer Layer // of a fat tree
}

// Layer is what a switch is in a fat tree.
type Layer uint8

// The layers, from the hosts up. Switches of other topologies have none.
const (
	NoLayer Layer = iota
	Edge
	Aggregation
	Core
)

// Host is attached to a port, which it may share with other hosts.
type Host struct {
	At     End
	MAC    flow.MAC
	IP     [4]byte
	Silent bool // it announces itself and sends nothing else; others send to it only
}

// Topology is a network to simulate.
type Topology struct {
	Name     string
	Switches []Switch
	Links    []Link
	Hosts    []Host
}

// newTopology returns n switches with DPIDs from 1 and no ports.
func newTopology(name string, n int) *Topology {
	t := &Topology{Name: name, Switches: make([]Switch, n)}
	for i := range t.Switches {
		t.Switches[i].DPID = flow.DPID(i + 1)
	}
	return t
}

// newPort adds a port to a switch.
func (t *Topology) newPort(sw int) End {
	t.Switches[sw].Ports++
	return End{sw, flow.Port(t.Switches[sw].Ports)}
}

// connect adds a link between new ports of two switches.
func (t *Topology) connect(a, b int) {
	t.Links = append(t.Links, Link{t.newPort(a), t.newPort(b)})
}

// maxHosts is how many hosts the address plan holds.
const maxHosts = 1 << 24

// AttachHosts adds hosts to every switch, spread evenly over new ports. The
// addresses are 10.0.0.0/8 in order and locally administered.
func (t *Topology) AttachHosts(hosts, ports int) error {
	return t.attach(hosts, ports, func(Switch) bool { return true })
}

// AttachHostsToEdge is AttachHosts for the edge switches of a fat tree only.
func (t *Topology) AttachHostsToEdge(hosts, ports int) error {
	return t.attach(hosts, ports, func(s Switch) bool { return s.Layer == Edge })
}

// attach adds hosts to some switches.
func (t *Topology) attach(hosts, ports int, to func(Switch) bool) error {
	if hosts == 0 {
		return nil
	}
	if hosts < 0 || ports < 1 || ports > hosts {
		return fmt.Errorf("%d hosts on %d ports of each switch: want at least one host per port", hosts, ports)
	}
	if n := len(t.Hosts) + hosts*len(t.Switches); n >= maxHosts {
		return fmt.Errorf("%d hosts: the address plan holds %d; use fewer hosts or switches", n, maxHosts-1)
	}
	for sw := range t.Switches {
		if !to(t.Switches[sw]) {
			continue
		}
		first := t.Switches[sw].Ports + 1
		t.Switches[sw].Ports += ports
		for h := range hosts {
			t.newHost(End{sw, flow.Port(first + h%ports)})
		}
	}
	return nil
}

// newHost adds a host with the next address.
func (t *Topology) newHost(at End) *Host {
	id := len(t.Hosts) + 1
	t.Hosts = append(t.Hosts, Host{
		At:  at,
		MAC: flow.MACFrom(0x02_00_0a_000000 | uint64(id)),
		IP:  [4]byte{10, byte(id >> 16), byte(id >> 8), byte(id)},
	})
	return &t.Hosts[id-1]
}

// maxPorts is the highest port number that OpenFlow 1.0 has.
const maxPorts = 0xff00

// Check returns what is wrong with a topology: no switches, a DPID given
// twice, an end that does not exist, a port with two links, a host on a link.
func (t *Topology) Check() error {
	if len(t.Switches) == 0 {
		return fmt.Errorf("topology %s: want at least one switch", t.Name)
	}
	seen := make(map[flow.DPID]bool, len(t.Switches))
	for i, s := range t.Switches {
		if seen[s.DPID] {
			return fmt.Errorf("topology %s: switch %d: DPID %v is taken", t.Name, i, s.DPID)
		}
		if s.Ports < 0 || s.Ports > maxPorts {
			return fmt.Errorf("topology %s: switch %d: %d ports: want 0 to %d", t.Name, i, s.Ports, maxPorts)
		}
		seen[s.DPID] = true
	}
	exists := func(e End) bool {
		return e.Switch >= 0 && e.Switch < len(t.Switches) && e.Port >= 1 && int(e.Port) <= t.Switches[e.Switch].Ports
	}
	used := make(map[End]bool, 2*len(t.Links))
	for i, l := range t.Links {
		for _, e := range [2]End{l.A, l.B} {
			if !exists(e) {
				return fmt.Errorf("topology %s: link %d: switch %d has no port %v", t.Name, i, e.Switch, e.Port)
			}
			if used[e] {
				return fmt.Errorf("topology %s: link %d: port %v of switch %d has a link already", t.Name, i, e.Port, e.Switch)
			}
			used[e] = true
		}
	}
	for i, h := range t.Hosts {
		if !exists(h.At) {
			return fmt.Errorf("topology %s: host %d: switch %d has no port %v", t.Name, i, h.At.Switch, h.At.Port)
		}
		if used[h.At] {
			return fmt.Errorf("topology %s: host %d: port %v of switch %d is a link's", t.Name, i, h.At.Port, h.At.Switch)
		}
	}
	return nil
}
