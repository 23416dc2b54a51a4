package node

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

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
}

// Port is a port that has an internal port, which leads to the node's routing.
type Port struct {
	Port              uint16 `json:"port"` // OpenFlow port number
	Interface         string `json:"interface"`
	Internal          uint16 `json:"internal"` // OpenFlow port number
	InternalInterface string `json:"internal_interface"`
	// Customer says that the other side is not one of the provider's nodes:
	// no routing protocol of theirs reaches the node's.
	Customer bool `json:"customer,omitempty"`
}

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
		if slices.ContainsFunc(n.Protected, func(p netip.Prefix) bool { return !p.IsValid() || p != p.Masked() }) {
			return fmt.Errorf("node %s: protected: want prefixes such as 192.0.2.0/24", n.Name)
		}
	}
	return nil
}
