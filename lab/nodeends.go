package lab

import (
	"net/netip"
	"slices"

	"github.com/weft-sdn/weft/lab/topology"
)

// loopbacks is the prefixes of the nodes' loopback addresses.
func (s *state) loopbacks() []netip.Prefix {
	usual := netip.PrefixFrom(topology.Loopback4(0), 16)
	var others []netip.Prefix
	for i := range s.Nodes {
		if a := s.Nodes[i].Loopback; !usual.Contains(a) {
			others = append(others, netip.PrefixFrom(a, 32))
		}
	}
	return append(others, usual)
}

// endOf is a node's end of the wire at its port.
func (s *state) endOf(n *labNode, p *nodePort) *end {
	w := &s.Wires[p.Wire]
	if w.A.Node == n.Name && w.A.Port == p.Port {
		return &w.A
	}
	return &w.B
}

// hasHybrid reports whether a node of the lab is hybrid.
func (s *state) hasHybrid() bool {
	return slices.ContainsFunc(s.Nodes, func(n labNode) bool { return n.Kind == topology.KindHybrid })
}

// expected is how many neighbours a node's OSPF has when all is well.
func (s *state) expected(n *labNode) int {
	count := 0
	for _, p := range n.routed() {
		if s.Wires[p.Wire].State == LinkIsDown {
			continue
		}
		for _, name := range p.Neighbours {
			if p.Role == roleLink || s.inSegment(name, p) {
				count++
			}
		}
	}
	return count
}

// inSegment reports whether a node's link to the segment of another's port is not down.
func (s *state) inSegment(name string, of *nodePort) bool {
	for i := range s.Nodes {
		if s.Nodes[i].Name != name {
			continue
		}
		for _, p := range s.Nodes[i].routed() {
			if p.Role == roleSegment && p.IPv4.Masked() == of.IPv4.Masked() {
				return s.Wires[p.Wire].State != LinkIsDown
			}
		}
	}
	return false
}
