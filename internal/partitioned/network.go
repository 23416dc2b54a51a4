package partitioned

import (
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/plan/partition"
	"github.com/weft-sdn/weft/services/paths"
)

// Links returns the links of a network, one direction of each, with ports
// numbered from 1 in the order of the links and a weight of 1. A link of a
// switch to itself is left out.
func Links(g *partition.Graph) []paths.Link {
	last := make([]flow.Port, len(g.Switches))
	at := func(i int) flow.Location {
		last[i]++
		return flow.Location{Switch: g.Switches[i].DPID, Port: last[i]}
	}
	list := make([]paths.Link, 0, len(g.Links))
	for _, l := range g.Links {
		if l.A != l.B {
			list = append(list, paths.Link{Src: at(l.A), Dst: at(l.B), Weight: 1})
		}
	}
	return list
}

// Reverse returns the other direction of a link.
func Reverse(l paths.Link) paths.Link { return paths.Link{Src: l.Dst, Dst: l.Src, Weight: l.Weight} }
