package layout

import (
	"crypto/rand"
	"fmt"
	"regexp"

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
