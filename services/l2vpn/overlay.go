package l2vpn

import (
	"slices"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
)

// overlaid reports whether the nodes' own routing carries the frames of a transport.
func overlaid(transport string) bool { return transport != "mpls" }

// chosen returns what a circuit wants that needs a way to be chosen; empty if nothing.
func chosen(c *circuit) string {
	for _, x := range []struct {
		key   string
		given bool
	}{
		{"max_delay_us", c.MaxDelayUs > 0}, {"pin", len(c.Pin) > 0}, {"diverse_from", c.DiverseFrom != ""},
		{"include_any", len(c.IncludeAny) > 0}, {"include_all", len(c.IncludeAll) > 0}, {"exclude_any", len(c.ExcludeAny) > 0}, {"never_move", c.NeverMove},
		{"strategy", c.Strategy != "cost"},
	} {
		if x.given {
			return x.key
		}
	}
	return ""
}

// The octets that tunnel ports put around a frame: the frame's own Ethernet header, and
// IPv4, UDP and VXLAN, or IPv4 and GRE with a key.
var wrapping = map[string]int{"vxlan": 14 + 20 + 8 + 8, "gre": 14 + 20 + 8}

// wrapped returns the octets that a port adds to those of circuits and labels.
func wrapped(t *api.Tunnel, port uint32) int {
	if flow.IsTunnelPort(flow.Port(port)) {
		return wrapping[t.Transport]
	}
	return 0
}

// star returns the tree of a vpls whose way nobody chooses: all switches of ends by the
// first.
func star(edges []flow.DPID) (list []arc) {
	for _, sw := range edges[min(len(edges), 1):] {
		list = append(list, arc{from: edges[0], to: sw}, arc{from: sw, to: edges[0]})
	}
	slices.SortFunc(list, arc.compare)
	return list
}
