package layout

import (
	"net/netip"
	"slices"

	"github.com/weft-sdn/weft/lab/topology"
)

// Loopbacks is the prefixes of the nodes' loopback addresses.
func (s *Lab) Loopbacks() []netip.Prefix {
	usual := netip.PrefixFrom(topology.Loopback4(0), 16)
	var others []netip.Prefix
	for i := range s.Nodes {
		if a := s.Nodes[i].Loopback; !usual.Contains(a) {
			others = append(others, netip.PrefixFrom(a, 32))
		}
	}
	return append(others, usual)
}

// EndOf is a node's end of the wire at its port.
func (s *Lab) EndOf(n *Node, p *Port) *End {
	w := &s.Wires[p.Wire]
	if w.A.Node == n.Name && w.A.Port == p.Port {
		return &w.A
	}
	return &w.B
}

// HasHybrid reports whether a node of the lab is hybrid.
func (s *Lab) HasHybrid() bool {
	return slices.ContainsFunc(s.Nodes, func(n Node) bool { return n.Kind == topology.KindHybrid })
}

// Expected is how many neighbours a node's OSPF has when all is well.
func (s *Lab) Expected(n *Node) int {
	count := 0
	for _, p := range n.Routed() {
		if s.Wires[p.Wire].State == LinkIsDown {
			continue
		}
		for _, name := range p.Neighbours {
			if p.Role == RoleLink || s.inSegment(name, p) {
				count++
			}
		}
	}
	return count
}

// inSegment reports whether a node's link to the segment of another's port is not down.
func (s *Lab) inSegment(name string, of *Port) bool {
	for i := range s.Nodes {
		if s.Nodes[i].Name != name {
			continue
		}
		for _, p := range s.Nodes[i].Routed() {
			if p.Role == RoleSegment && p.IPv4.Masked() == of.IPv4.Masked() {
				return s.Wires[p.Wire].State != LinkIsDown
			}
		}
	}
	return false
}
