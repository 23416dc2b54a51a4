package layout

import (
	"fmt"
	"net/netip"

	"github.com/weft-sdn/weft/lab/topology"
)

// numbered is the numbers from which addresses are made: what a running lab has
// keeps its own, and others get the least that are free.
type numbered struct {
	of    map[int]int // by index
	used  map[int]bool
	least int // those below, from where give begins, are used
}

func newNumbered() *numbered { return &numbered{of: map[int]int{}, used: map[int]bool{}} }

// keep gives the ith a number, unless it has one or another has that.
func (n *numbered) keep(i, number int) bool {
	if _, has := n.of[i]; has || n.used[number] {
		return false
	}
	n.of[i], n.used[number] = number, true
	return true
}

// give gives the ith the least free number from one on, unless it has one; from is
// always the same.
func (n *numbered) give(i, from int) int {
	for _, has := n.of[i]; !has; n.least++ {
		n.least = max(n.least, from)
		has = n.keep(i, n.least)
	}
	return n.of[i]
}

// Node finds a hybrid node or router.
func (s *Lab) Node(name string) *Node {
	for i := range s.Nodes {
		if s.Nodes[i].Name == name {
			return &s.Nodes[i]
		}
	}
	return nil
}

// PortAt finds a port of a node, if there is the node.
func (n *Node) PortAt(number uint16) *Port {
	if n == nil {
		return nil
	}
	for i := range n.Ports {
		if n.Ports[i].Port == number {
			return &n.Ports[i]
		}
	}
	return nil
}

// linkNumbers returns the numbers of the links between nodes, and those of which
// end B has the first address. In was are the nodes that are there.
func linkNumbers(t *topology.Topology, at, was map[string]*Node) (numbers *numbered, turned map[int]bool) {
	numbers, turned = newNumbered(), map[int]bool{}
	for i := range t.Links {
		l := &t.Links[i]
		a, b := was[l.A].PortAt(l.APort), was[l.B].PortAt(l.BPort)
		if a == nil || b == nil || a.Role != RoleLink || b.Role != RoleLink || a.IPv4.Masked() != b.IPv4.Masked() || at[l.A] == nil || at[l.B] == nil {
			continue
		}
		octets := a.IPv4.Addr().As4()
		if numbers.keep(i, int(octets[2])<<7|int(octets[3])>>1) {
			turned[i] = b.IPv4.Addr().Less(a.IPv4.Addr())
		}
	}
	for i := range t.Links {
		if at[t.Links[i].A] != nil && at[t.Links[i].B] != nil {
			numbers.give(i, 0)
		}
	}
	return numbers, turned
}

// segmentNumbers returns the numbers of the segments of bridges.
func segmentNumbers(t *topology.Topology, all []topology.Segment, was map[string]*Node) *numbered {
	numbers := newNumbered()
	for k := range all {
		for _, i := range all[k].Links {
			if p := portAt(&all[k], &t.Links[i], was); p != nil && numbers.keep(k, int(p.IPv4.Addr().As4()[2])) {
				break
			}
		}
	}
	for k := range all {
		numbers.give(k, 0)
	}
	return numbers
}

// portAt is the port into the segment by a link of a node that is there.
func portAt(g *topology.Segment, l *topology.Link, was map[string]*Node) *Port {
	number := l.BPort
	if g.Other(l) == l.A {
		number = l.APort
	}
	if p := was[g.Other(l)].PortAt(number); p != nil && p.Role == RoleSegment {
		return p
	}
	return nil
}

// overlap returns what is wrong with the addresses of nodes that kept theirs.
func (s *Lab) overlap() error {
	var networks []topology.Network
	segments := map[netip.Prefix]bool{}
	for i := range s.Nodes {
		for _, p := range s.Nodes[i].Routed() {
			switch w := &s.Wires[p.Wire]; {
			case p.Role == RoleLink && w.A.Node == s.Nodes[i].Name:
				networks = append(networks, topology.Network{Of: fmt.Sprintf("the link %s to %s", &w.A, &w.B), IPv4: p.IPv4, IPv6: p.IPv6})
			case p.Role == RoleSegment && !segments[p.IPv4.Masked()]:
				segments[p.IPv4.Masked()] = true
				networks = append(networks, topology.Network{Of: topology.BridgesNetwork, IPv4: p.IPv4, IPv6: p.IPv6})
			}
		}
	}
	return topology.CheckNetworks(s.Topology, networks)
}

// nth returns the nth address from that of a prefix on, with its length.
func nth(p netip.Prefix, n int) netip.Prefix {
	a := p.Addr()
	for range n {
		a = a.Next()
	}
	return netip.PrefixFrom(a, p.Bits())
}
