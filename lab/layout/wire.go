package layout

import (
	"crypto/rand"
	"fmt"
	"regexp"

	"github.com/weft-sdn/weft/lab/machine"
	"github.com/weft-sdn/weft/lab/topology"
)

// Wire is one link as it is made on this machine.
type Wire struct {
	ID    int            `json:"id"` // for good, and of no other
	A     End            `json:"a"`  // always a switch, which may be in another lab
	B     End            `json:"b"`
	Cable bool           `json:"cable"` // two TAP devices and the keeper; else a veth pair
	VLAN  uint16         `json:"vlan,omitempty"`
	Shape topology.Shape `json:"shape"`
	State LinkState      `json:"state"`
}

// End is one end of a wire.
type End struct {
	Node string `json:"node"`
	Host bool   `json:"host,omitempty"`
	// Routed says that it is a router's: no port of Open vSwitch.
	Routed bool `json:"routed,omitempty"`
	// Tunnel says that the node is in another lab.
	Tunnel *topology.Tunnel `json:"tunnel,omitempty"`
	Port   uint16           `json:"port,omitempty"` // of a switch
	Netns  string           `json:"netns"`
	Iface  string           `json:"iface"`
	MAC    topology.MAC     `json:"mac"`
}

// portMAC returns a random address for a port of a switch, so that the ports of
// two labs differ as those of two devices do.
func portMAC() (m topology.MAC) {
	rand.Read(m[1:])
	m[0] = 6 // unicast, locally administered
	return m
}

// LinkState is what was done to a link.
type LinkState string

const (
	LinkIsUp     LinkState = "up"
	LinkIsDown   LinkState = "down"   // both ends without carrier, as if unplugged
	LinkIsSilent LinkState = "silent" // carrier stays, every frame is lost
)

func (w *Wire) Ends() [2]*End { return [2]*End{&w.A, &w.B} }

func (w *Wire) MTU() int {
	switch {
	case w.Shape.MTU != 0:
		return w.Shape.MTU
	case w.B.Host:
		return topology.DefaultMTU
	}
	return topology.DefaultCoreMTU
}

// Bridged reports whether the end is a port of Open vSwitch.
func (e *End) Bridged() bool { return !e.Host && !e.Routed && e.Tunnel == nil }

func (e *End) String() string {
	if e.Host && e.Iface == hostIface1 {
		return e.Node + ":" + e.Iface
	}
	if e.Host || e.Port == 0 {
		return e.Node
	}
	return fmt.Sprintf("%s:%d", e.Node, e.Port)
}

// NodeInterface is the names of interfaces in a node's namespace, in which its
// bridge may be, too.
var NodeInterface = regexp.MustCompile(`^(vi[0-9]+|control)$`)

const MaxIface = 15 // IFNAMSIZ less the terminating zero

// Lay lays a completed topology out on this machine: names of bridges,
// namespaces and interfaces, the way each link is made.
func Lay(t *topology.Topology) *Lab { return LayAgain(t, &Lab{}) }

// LayAgain is newState where was is there already: what is in both keeps its
// names.
func LayAgain(t *topology.Topology, was *Lab) *Lab {
	s := &Lab{Name: t.Name, Topology: t, Bridges: map[string]string{}}
	used := map[string]bool{"lo": true, "all": true, "default": true, "ovs-netdev": true, "ovs-system": true}
	kept, next := was.names(used)
	name := func(wanted, short string) string {
		for n := 0; len(wanted) > MaxIface || used[wanted]; n++ {
			wanted = short
			if n > 0 {
				wanted = fmt.Sprintf("%s-%d", short, n)
			}
		}
		used[wanted] = true
		return wanted
	}
	for i, sw := range t.Switches {
		if bridge, ok := was.Bridges[sw.Name]; ok && !(sw.Kind == topology.KindHybrid && NodeInterface.MatchString(bridge)) {
			s.Bridges[sw.Name] = bridge
			continue
		}
		wanted := sw.Name
		if sw.Kind == topology.KindHybrid && NodeInterface.MatchString(wanted) {
			wanted = fmt.Sprintf("sw%d", i+1)
		}
		s.Bridges[sw.Name] = name(wanted, fmt.Sprintf("sw%d", i+1))
	}
	index := map[string]int{}
	for i, sw := range t.Switches {
		index[sw.Name] = i
	}
	switchEnd := func(sw string, port uint16) End {
		i := index[sw]
		e := End{Node: sw, Port: port, Netns: machine.SwitchNetns(t.Name), MAC: portMAC()}
		if t.Switches[i].Kind == topology.KindRouter {
			e.Routed, e.Netns, e.Iface = true, machine.HostNetns(t.Name, sw), fmt.Sprintf("eth%d", port)
		}
		if t.Switches[i].Kind == topology.KindHybrid && t.OVS == topology.OVSOwn {
			e.Netns = machine.HostNetns(t.Name, sw)
		}
		if was, ok := kept[e.String()]; ok && was.Tunnel == nil && was.Routed == e.Routed && was.Netns == e.Netns {
			return was
		}
		if e.Routed {
			return e
		}
		e.Iface = name(fmt.Sprintf("%s-eth%d", sw, port), fmt.Sprintf("sw%d-eth%d", i+1, port))
		return e
	}
	near := func(sw string, port uint16, tunnel *topology.Tunnel) End {
		if tunnel != nil {
			far := End{Node: sw, Port: port}
			if was, ok := kept[far.String()]; ok && was.Tunnel != nil && *was.Tunnel == *tunnel {
				return was
			}
			return s.far(sw, port, tunnel, name)
		}
		return switchEnd(sw, port)
	}
	for _, h := range t.Hosts {
		s.Wires = append(s.Wires, Wire{
			A:     near(h.Switch, h.Port, h.Tunnel),
			B:     End{Node: h.Name, Host: true, Netns: machine.HostNetns(t.Name, h.Name), Iface: HostIface, MAC: h.MAC},
			Cable: h.Shape.NeedsCable() || h.VLAN != 0,
			VLAN:  h.VLAN, Shape: h.Shape,
		})
	}
	for _, l := range t.Links {
		s.Wires = append(s.Wires, Wire{
			A: switchEnd(l.A, l.APort), B: near(l.B, l.BPort, l.Tunnel),
			Cable: l.Shape.NeedsCable(), Shape: l.Shape,
		})
	}
	for _, h := range t.Hosts {
		if h.Eth1 != nil {
			s.Wires = append(s.Wires, Wire{
				A: switchEnd(h.Eth1.Switch, h.Eth1.Port),
				B: End{Node: h.Name, Host: true, Netns: machine.HostNetns(t.Name, h.Name), Iface: hostIface1, MAC: portMAC()},
			})
		}
	}
	for i := range s.Wires {
		s.Wires[i].ID = next + i
		s.Wires[i].State = LinkIsUp
	}
	s.layNodes(was.Nodes, name)
	if len(was.Nodes) > 0 && s.overlap() != nil { // with what the file says now
		s.layNodes(nil, name)
	}
	return s
}

// names marks the names of bridges and interfaces that are in use, and returns
// the ends at switches, and the least number that no wire has.
func (s *Lab) names(used map[string]bool) (ends map[string]End, next int) {
	ends = map[string]End{}
	for _, bridge := range s.Bridges {
		used[bridge] = true
	}
	for i := range s.Wires {
		w := &s.Wires[i]
		next = max(next, w.ID+1)
		for _, e := range w.Ends() {
			if e.Bridged() || e.Tunnel != nil {
				used[e.Iface] = true
			}
			if !e.Host {
				ends[e.String()] = *e
			}
		}
	}
	for i := range s.Nodes {
		for _, p := range s.Nodes[i].Ports {
			used[p.InternalInterface] = true
		}
	}
	return ends, next
}

// HostIface is the interface of every host, hostIface1 that of those with Host.Eth1.
const (
	HostIface  = "eth0"
	hostIface1 = "eth1"
)

// WiresOf returns the wires of the ith host, that of eth0 first.
func (s *Lab) WiresOf(i int) []*Wire {
	own := []*Wire{&s.Wires[i]}
	for j := len(s.Topology.Hosts) + len(s.Topology.Links); j < len(s.Wires); j++ {
		if w := &s.Wires[j]; w.B.Node == s.Topology.Hosts[i].Name {
			own = append(own, w)
		}
	}
	return own
}

// Dressed returns the host at the end of a wire with what its interface there is
// to have: eth1 has no addresses.
func (s *Lab) Dressed(w *Wire) *topology.Host {
	if w.B.Iface == hostIface1 {
		return &topology.Host{Name: w.B.Node}
	}
	h, _ := s.Topology.HostByName(w.B.Node)
	return h
}
