package layout

import (
	"fmt"
	"strings"

	"github.com/weft-sdn/weft/lab/machine"
	"github.com/weft-sdn/weft/lab/topology"
)

// Place is where a node of a lab runs.
type Place struct {
	Namespace string // its network namespace, for ip-netns(8)
	Own       bool   // no other node is in it; Open vSwitch switches share one
}

func (s *Lab) PlaceOf(node string) (Place, error) {
	if _, ok := s.Topology.HostByName(node); ok {
		return Place{machine.HostNetns(s.Name, node), true}, nil
	}
	sw, ok := s.Topology.SwitchByName(node)
	switch {
	case !ok:
		return Place{}, fmt.Errorf("lab %s has no host or switch %q; `weft lab graph` shows those there are", s.Name, node)
	case sw.Routes():
		return Place{machine.HostNetns(s.Name, node), true}, nil
	}
	return Place{machine.SwitchNetns(s.Name), false}, nil
}

// FindHost returns a host by name; the error lists those there are.
func (s *Lab) FindHost(name string) (topology.Host, error) {
	if h, ok := s.Topology.HostByName(name); ok {
		return *h, nil
	}
	var names []string
	for i, h := range s.Topology.Hosts {
		if i == 10 {
			names = append(names, "…")
			break
		}
		names = append(names, h.Name)
	}
	return topology.Host{}, fmt.Errorf("lab %s has no host %q; allowed: %s", s.Name, name, strings.Join(names, ", "))
}
