package layout

import (
	"fmt"

	"github.com/weft-sdn/weft/lab/machine"
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
