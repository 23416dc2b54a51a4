package layout

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/lab/topology"
)

// layNodes lays the hybrid nodes and routers out, once the wires are. Those that
// there are keep what they have.
func (s *Lab) layNodes(there []Node, name func(wanted, short string) string) {
	t := s.Topology
	at, was := map[string]*Node{}, map[string]*Node{}
	for i := range there {
		was[there[i].Name] = &there[i]
	}
	s.Nodes = make([]Node, 0, len(t.Switches))
	for i := range t.Switches {
		if sw := &t.Switches[i]; sw.Routes() {
			s.Nodes = append(s.Nodes, Node{
				Name: sw.Name, Short: s.Bridges[sw.Name], Kind: sw.Kind, Loopback: sw.Loopback, Loopback6: sw.Loopback6,
			})
			at[sw.Name] = &s.Nodes[len(s.Nodes)-1]
		}
	}
	numbers := newNumbered()
	for i := range s.Nodes {
		if old := was[s.Nodes[i].Name]; old != nil {
			numbers.keep(i, old.Number)
		}
	}
	for i := range s.Nodes {
		s.Nodes[i].Number = numbers.give(i, 0)
	}
	add := func(n *Node, wire int, p Port) {
		w := &s.Wires[wire]
		e := &w.A
		if w.A.Node != n.Name {
			e = &w.B
		}
		p.Wire, p.Port = wire, e.Port
		old := was[n.Name].PortAt(p.Port)
		switch {
		case n.Kind == topology.KindRouter:
			p.Interface, p.MAC = e.Iface, e.MAC
		case p.Role != RoleAccess && old != nil && old.InternalInterface != "":
			p.Interface, p.MAC, p.Internal, p.InternalInterface = old.Interface, old.MAC, old.Internal, old.InternalInterface
		case p.Role != RoleAccess:
			p.Interface, p.MAC = fmt.Sprintf("vi%d", p.Port), portMAC()
			p.Internal = topology.InternalPorts + p.Port
			p.InternalInterface = name(fmt.Sprintf("%s-in%d", n.Name, p.Port), fmt.Sprintf("%s-in%d", n.Short, p.Port))
		}
		if t.Routing.IPv4Only {
			p.IPv6 = netip.Prefix{}
		}
		n.Ports = append(n.Ports, p)
	}
	for i := range t.Hosts {
		h := &t.Hosts[i]
		n := at[h.Switch]
		if n == nil {
			continue
		}
		p := Port{Role: RoleAccess}
		if h.Gateway {
			p = Port{Role: RoleGateway, MTU: s.Wires[i].MTU()}
			if h.GW4.IsValid() {
				p.IPv4 = netip.PrefixFrom(h.GW4, h.IPv4.Bits())
			}
			if h.GW6.IsValid() {
				p.IPv6 = netip.PrefixFrom(h.GW6, h.IPv6.Bits())
			}
		}
		add(n, i, p)
	}
	wireOf := func(link int) int { return len(t.Hosts) + link }
	links, turned := linkNumbers(t, at, was)
	for i := range t.Links {
		l := &t.Links[i]
		a, b := at[l.A], at[l.B]
		if a == nil || b == nil {
			continue
		}
		v4, v6 := topology.LinkPrefixes(links.of[i])
		mtu := min(nodeMTU, s.Wires[wireOf(i)].MTU())
		first, second := a, b
		if turned[i] {
			first, second = b, a
		}
		add(first, wireOf(i), Port{Role: RoleLink, MTU: mtu, IPv4: v4, IPv6: v6, Neighbours: []string{second.Name}})
		add(second, wireOf(i), Port{Role: RoleLink, MTU: mtu, IPv4: nth(v4, 1), IPv6: nth(v6, 1), Neighbours: []string{first.Name}})
	}
	all := t.Segments()
	segments := segmentNumbers(t, all, was)
	for k := range all {
		s.laySegment(segments.of[k], &all[k], at, was, add)
	}
}

// laySegment gives the nodes of the segment with a number their ports into it.
func (s *Lab) laySegment(number int, g *topology.Segment, at, was map[string]*Node, add func(*Node, int, Port)) {
	v4, v6 := topology.SegmentPrefixes(number)
	mtu := nodeMTU
	for i := len(s.Topology.Hosts); i < len(s.Wires); i++ {
		if w := &s.Wires[i]; g.Has[w.A.Node] || g.Has[w.B.Node] {
			mtu = min(mtu, w.MTU())
		}
	}
	numbers := newNumbered()
	for _, i := range g.Links {
		if p := portAt(g, &s.Topology.Links[i], was); p != nil && p.IPv4.Masked() == v4 {
			numbers.keep(i, int(p.IPv4.Addr().As4()[3]))
		}
	}
	for _, i := range g.Links {
		l := &s.Topology.Links[i]
		n := at[g.Other(l)]
		if n == nil {
			continue
		}
		h := numbers.give(i, 1)
		p := Port{Role: RoleSegment, MTU: mtu, IPv4: nth(v4, h), IPv6: nth(v6, h)}
		for _, j := range g.Links {
			if o := g.Other(&s.Topology.Links[j]); j != i && at[o] != nil {
				p.Neighbours = append(p.Neighbours, o)
			}
		}
		add(n, len(s.Topology.Hosts)+i, p)
	}
}

// Description returns what a switch says of itself: its name, and of a hybrid
// node, which ports are no links. Those of customers are left out where they are
// too many to be named; a controller then finds out by its probes.
func (s *Lab) Description(sw string) string {
	i := slices.IndexFunc(s.Nodes, func(n Node) bool { return n.Name == sw && n.Kind == topology.KindHybrid })
	if i < 0 {
		return sw
	}
	h := &flow.Hybrid{Name: sw, Internal: flow.PortList{{topology.InternalPorts + 1, 2 * topology.InternalPorts}},
		Tunnel: flow.PortList{{flow.TunnelPorts, flow.TunnelPortsLast}}}
	var access []uint16
	for _, p := range s.Nodes[i].Ports {
		if p.Role == RoleAccess || p.Role == RoleGateway {
			access = append(access, p.Port)
		}
	}
	slices.Sort(access)
	for _, p := range access {
		if last := len(h.Access) - 1; last >= 0 && h.Access[last][1] == flow.Port(p)-1 {
			h.Access[last][1] = flow.Port(p)
		} else {
			h.Access = append(h.Access, [2]flow.Port{flow.Port(p), flow.Port(p)})
		}
	}
	if len(h.String()) > mostDescription {
		h.Access = nil
	}
	return h.String()
}
