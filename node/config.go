package node

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/internal/document"
)

// Config is the nodes of a machine.
type Config struct {
	Nodes []Node `json:"nodes"`
}

// Node is a hybrid node.
type Node struct {
	Name string `json:"name"`
	// Management is the socket at which the bridge takes OpenFlow from this
	// machine: /var/run/openvswitch/BRIDGE.mgmt.
	Management string `json:"management"`
	// Namespace has the interfaces of the ports, by its name for ip-netns(8);
	// empty: that of the process.
	Namespace string `json:"namespace,omitempty"`
	Ports     []Port `json:"ports"`
	// Protected is what hosts at ports with Customer may not reach, such as the
	// controller.
	Protected []netip.Prefix `json:"protected,omitempty"`

	// The following are for reports to a controller, and for what it asks for.

	// DPID is the datapath identifier of the bridge; without one, the node is not
	// reported.
	DPID flow.DPID `json:"dpid,omitzero"`
	// Bridge is the name of the bridge, which is also that of its local port.
	Bridge string `json:"bridge,omitempty"`
	// Database is the socket of the bridge's database, Switchd that at which
	// ovs-vswitchd takes commands.
	Database string `json:"database,omitempty"`
	Switchd  string `json:"switchd,omitempty"`
	// Access is the ports without an internal port, at which customers of services are.
	Access []AccessPort `json:"access,omitempty"`
	// RoutingNamespace has the node's routing, as Namespace has the ports.
	RoutingNamespace string `json:"routing_namespace,omitempty"`
	// Routing is the directory with the sockets of FRR's daemons.
	Routing string `json:"routing,omitempty"`
	// Loopback and Loopback6 are the node's addresses; tunnels end at the first.
	Loopback  netip.Addr `json:"loopback,omitzero"`
	Loopback6 netip.Addr `json:"loopback6,omitzero"`
	// Loopbacks is those of all nodes: tunnels of the node lead there only, and none of
	// customers ends there.
	Loopbacks []netip.Prefix `json:"loopbacks,omitempty"`
	// MTU is the largest IP packet that every link of the routing takes.
	MTU int `json:"mtu,omitempty"`
	// Neighbours is how many OSPF neighbours the node has when all is well.
	Neighbours int `json:"neighbours,omitempty"`
}

// AccessPort is a port that the node's routing has nothing to do with.
type AccessPort struct {
	Port      uint16 `json:"port"` // OpenFlow port number
	Interface string `json:"interface"`
}

// Port is a port that has an internal port, which leads to the node's routing.
type Port struct {
	Port              uint16 `json:"port"` // OpenFlow port number
	Interface         string `json:"interface"`
	Internal          uint16 `json:"internal"` // OpenFlow port number
	InternalInterface string `json:"internal_interface"`
	// Routed is the interface of the node's routing where that is another, such as
	// the other end of a veth pair.
	Routed string `json:"routed_interface,omitempty"`
	// Customer says that the other side is not one of the provider's nodes:
	// no routing protocol of theirs reaches the node's.
	Customer bool `json:"customer,omitempty"`
}

// routed returns the interface of the node's routing.
func (p *Port) routed() string { return cmp.Or(p.Routed, p.InternalInterface) }

// maxPort is the largest number of a port in OpenFlow 1.0 and 1.3.
const maxPort = 0xfeff

// ReadConfig reads the file that names a machine's nodes, YAML or JSON, and
// checks it.
func ReadConfig(path string) (*Config, error) {
	text, err := document.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read the nodes: %w", err)
	}
	v, mistakes, ok := document.Read(text, document.Limits{What: "file of nodes", Octets: 16 << 20, Lines: 1_000_000})
	if len(mistakes) > 0 {
		return nil, mistakes[0].In(path)
	}
	if !ok || v.Kind != document.Mapping {
		return nil, fmt.Errorf("%s: want a mapping with the key nodes", path)
	}
	c := &Config{}
	d := json.NewDecoder(bytes.NewReader(v.JSON()))
	d.DisallowUnknownFields()
	if err := d.Decode(c); err != nil {
		return nil, fmt.Errorf("%s: %s", path, strings.TrimPrefix(err.Error(), "json: "))
	}
	if err := c.Validate(); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return c, nil
}

// Validate says what is wrong.
func (c *Config) Validate() error {
	if len(c.Nodes) == 0 {
		return errors.New("nodes: there is none")
	}
	names, sockets, interfaces := map[string]bool{}, map[string]bool{}, map[[2]string]bool{}
	for i := range c.Nodes {
		n := &c.Nodes[i]
		switch {
		case n.Name == "":
			return fmt.Errorf("nodes: the name of number %d is empty", i+1)
		case names[n.Name]:
			return fmt.Errorf("node %s stands twice", n.Name)
		case !strings.HasPrefix(n.Management, "/"):
			return fmt.Errorf("node %s: management %q: want the path of its bridge's socket, such as /var/run/openvswitch/br0.mgmt", n.Name, n.Management)
		case sockets[n.Management]:
			return fmt.Errorf("node %s has the bridge of another: management %s", n.Name, n.Management)
		case strings.ContainsAny(n.Namespace, "/\x00") || n.Namespace == "." || n.Namespace == "..":
			return fmt.Errorf("node %s: namespace %q: want its name for ip-netns(8)", n.Name, n.Namespace)
		}
		names[n.Name], sockets[n.Management] = true, true
		numbers := map[uint16]bool{}
		for _, p := range n.Ports {
			for _, number := range []uint16{p.Port, p.Internal} {
				if number < 1 || number > maxPort || numbers[number] {
					return fmt.Errorf("node %s: port %d: want a number from 1 to %d that no other port of the node has", n.Name, number, maxPort)
				}
				numbers[number] = true
			}
			for _, name := range []string{p.Interface, p.InternalInterface} {
				if at := [2]string{n.Namespace, name}; name == "" || len(name) > 15 || interfaces[at] {
					return fmt.Errorf("node %s: port %d: interface %q: want the name of an interface that no other port has", n.Name, p.Port, name)
				}
				interfaces[[2]string{n.Namespace, name}] = true
			}
		}
		for _, l := range []struct {
			key  string
			list []netip.Prefix
		}{{"protected", n.Protected}, {"loopbacks", n.Loopbacks}} {
			if slices.ContainsFunc(l.list, func(p netip.Prefix) bool { return !p.IsValid() || p != p.Masked() }) {
				return fmt.Errorf("node %s: %s: want prefixes such as 192.0.2.0/24", n.Name, l.key)
			}
		}
		if err := n.validateReports(numbers); err != nil {
			return fmt.Errorf("node %s: %w", n.Name, err)
		}
	}
	return nil
}

// validateReports says what is wrong with what is for a controller.
func (n *Node) validateReports(numbers map[uint16]bool) error {
	if n.DPID == 0 {
		return nil
	}
	for _, p := range n.Access {
		if p.Port < 1 || p.Port > maxPort || numbers[p.Port] {
			return fmt.Errorf("access: port %d: want a number from 1 to %d that no other port of the node has", p.Port, maxPort)
		}
		numbers[p.Port] = true
	}
	for _, p := range []struct{ key, path string }{{"database", n.Database}, {"switchd", n.Switchd}} {
		if !strings.HasPrefix(p.path, "/") {
			return fmt.Errorf("%s %q: a node that is reported (dpid) needs the path of this socket", p.key, p.path)
		}
	}
	switch {
	case n.Bridge == "" || len(n.Bridge) > 15:
		return fmt.Errorf("bridge %q: want the name of the bridge", n.Bridge)
	case n.Loopback.IsValid() && !n.Loopback.Is4():
		return fmt.Errorf("loopback %v: want an IPv4 address; loopback6 is for the other", n.Loopback)
	case n.Loopback6.IsValid() && !n.Loopback6.Is6():
		return fmt.Errorf("loopback6 %v: want an IPv6 address", n.Loopback6)
	case n.MTU < 0 || n.MTU > 65535 || n.Neighbours < 0:
		return fmt.Errorf("mtu %d, neighbours %d: want 0 to 65535, and 0 or more", n.MTU, n.Neighbours)
	case strings.ContainsAny(n.RoutingNamespace, "/\x00") || n.RoutingNamespace == "." || n.RoutingNamespace == "..":
		return fmt.Errorf("routing_namespace %q: want its name for ip-netns(8)", n.RoutingNamespace)
	}
	return nil
}
