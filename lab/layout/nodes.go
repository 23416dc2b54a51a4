package layout

import (
	"net/netip"

	"github.com/weft-sdn/weft/lab/topology"
)

// Node is a hybrid node or router as it is made on this machine.
type Node struct {
	Name      string        `json:"name"`
	Number    int           `json:"number"` // for good, and of no other
	Short     string        `json:"short"`  // of its bridge, and of its files
	Kind      topology.Kind `json:"kind"`
	Loopback  netip.Addr    `json:"loopback"`
	Loopback6 netip.Addr    `json:"loopback6,omitzero"`
	Ports     []Port        `json:"ports"`
}

// Port is a port of a node that is routed, or a hybrid node's that is not.
type Port struct {
	Wire int      `json:"wire"` // index in state.Wires
	Port uint16   `json:"port"`
	Role PortRole `json:"role"`
	// Interface is that in the node's namespace with the addresses: of a router
	// the port itself, of a hybrid node the routing's end of the internal port.
	Interface string       `json:"interface,omitempty"`
	MAC       topology.MAC `json:"mac,omitzero"`
	MTU       int          `json:"mtu,omitempty"` // of IP
	IPv4      netip.Prefix `json:"ipv4,omitzero"`
	IPv6      netip.Prefix `json:"ipv6,omitzero"`
	// Of a hybrid node: the switch's end of the internal port.
	Internal          uint16 `json:"internal,omitempty"`
	InternalInterface string `json:"internal_interface,omitempty"`
	// Neighbours are the nodes on the other side.
	Neighbours []string `json:"neighbours,omitempty"`
}

// PortRole is what is on the other side of a node's port.
type PortRole string

const (
	RoleLink    PortRole = "link"    // one node
	RoleSegment PortRole = "segment" // nodes behind bridges
	RoleGateway PortRole = "gateway" // a host that the node routes for
	RoleAccess  PortRole = "access"  // a customer of services: not routed
)

// nodeMTU is the most that a node sends as an IP packet by a link: there is room
// for labels and tunnels around it.
const nodeMTU = 1900

// mostDescription is how long a datapath description may be (OpenFlow 1.3.5
// §7.3.5.1).
const mostDescription = 255

// Routed returns the node's ports that have addresses.
func (n *Node) Routed() []*Port {
	var list []*Port
	for i := range n.Ports {
		if n.Ports[i].Role != RoleAccess {
			list = append(list, &n.Ports[i])
		}
	}
	return list
}
