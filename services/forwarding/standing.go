package forwarding

import (
	"context"
	"fmt"
	"slices"

	"google.golang.org/protobuf/proto"

	"weft/api"
	"weft/flow"
)

// standing sets the standing entries of a switch for the given tree ports,
// unless they are those already, and records what may be in force.
func (f *flooding) standing(ctx context.Context, sw flow.DPID, s *floodSwitch, tree []flow.Port) error {
	entries := f.e.standingEntries(sw, tree, s.v10, s.table)
	f.mu.Lock()
	same := s.done && slices.EqualFunc(entries, s.sent, func(a, b *api.FlowEntry) bool { return proto.Equal(a, b) })
	s.sent, s.done = entries, same
	for _, p := range tree {
		if !slices.Contains(s.tree, p) {
			s.tree = append(s.tree, p)
		}
	}
	f.mu.Unlock()
	if same {
		return nil
	}
	resp, err := f.set(ctx, &api.SetStandingRequest{Dpid: sw.String(), Owner: flow.OwnerForwarding.String(), Flows: entries})
	if err != nil {
		return err
	}
	if len(resp.Failed) > 0 {
		return fmt.Errorf("%d of %d entries: %s", len(resp.Failed), len(entries), resp.Failed[0].Reason)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if slices.EqualFunc(entries, s.sent, func(a, b *api.FlowEntry) bool { return a == b }) {
		s.done = true
		s.tree = slices.Clone(tree)
		slices.Sort(s.tree)
	}
	return nil
}

// standingEntries are the entries of a switch that do not depend on routes:
// what leads from table to table; the table miss; ARP, neighbour discovery and DHCP to the controller;
// multicasts from an edge port, and from a link port of the tree, to the tree
// and the edge ports; those from any other port to nobody.
func (e *engine) standingEntries(sw flow.DPID, tree []flow.Port, v10 bool, table uint8) []*api.FlowEntry {
	d := &flow.Decision{}
	miss := missEntry(d)
	miss.Table = table
	list := []flow.Entry{miss}
	for t := range table {
		list = append(list, flow.Entry{Table: t, Priority: priorityMiss, Goto: t + 1, Cookie: flow.NewCookie(flow.OwnerForwarding, 0, 0)})
	}
	add := func(priority uint16, m flow.Match, actions ...flow.Action) {
		list = append(list, flow.Entry{Table: table, Priority: priority, Match: m, Cookie: flow.NewCookie(flow.OwnerForwarding, 0, 0), Apply: d.Actions(actions...)})
	}
	multicast := flow.Match{}.WithEthDstMasked(flow.MAC{1}, flow.MAC{1})
	trap := flow.Output(flow.PortController)
	add(priorityTrap, flow.Match{}.WithEthType(flow.EthTypeARP), trap)
	v4 := flow.Match{}.WithEthType(flow.EthTypeIPv4)
	add(priorityTrap, v4.WithUDPDst(67), trap)
	add(priorityTrap, v4.WithUDPDst(68), trap)
	if v10 {
		multicast = flow.Match{}.WithEthDst(flow.Broadcast) // knows neither masks nor IPv6
	} else {
		v6 := flow.Match{}.WithEthType(flow.EthTypeIPv6)
		add(priorityTrap, v6.WithUDPDst(546), trap)
		add(priorityTrap, v6.WithUDPDst(547), trap)
		add(priorityTrap, flow.Match{}.WithICMPv6Type(flow.ICMPv6Solicit), trap)
		add(priorityTrap, flow.Match{}.WithICMPv6Type(flow.ICMPv6Advert), trap)
	}
	p := e.edge(sw)
	p.mu.Lock()
	roles := make(map[flow.Port]string, len(p.role))
	for port, role := range p.role {
		if p.up[port] && port.Physical() {
			roles[port] = role
		}
	}
	p.mu.Unlock()
	out := slices.Clone(*p.ports.Load())
	for _, port := range tree {
		if roles[port] == flow.RoleLink.String() {
			out = append(out, port)
		}
	}
	slices.Sort(out)
	outputs := e.tagging.Outputs(nil, sw, 0, out)
	networks := e.tagging.Networks()
	ports := make([]flow.Port, 0, len(roles))
	for port, role := range roles {
		if role != flow.RoleEdge.String() {
			ports = append(ports, port)
		}
	}
	slices.Sort(ports)
	for _, port := range ports {
		if slices.Contains(tree, port) && roles[port] == flow.RoleLink.String() {
			add(priorityLinkFlood, multicast.WithInPort(port), outputs...)
			for _, vlan := range networks {
				add(priorityLinkFlood+1, multicast.WithInPort(port).WithVLAN(vlan), e.members(sw, vlan, out, tree)...)
			}
		} else {
			add(priorityLinkFlood, multicast.WithInPort(port))
		}
	}
	add(priorityFlood, multicast, outputs...)
	for _, vlan := range networks {
		add(priorityFlood+1, multicast.WithVLAN(vlan), e.members(sw, vlan, out, tree)...)
	}
	entries := make([]*api.FlowEntry, len(list))
	for i := range list {
		entries[i] = api.NewFlowEntry(sw, &list[i])
	}
	return entries
}

// members returns the actions that hand a multicast frame of a virtual network,
// carried by a VLAN, to the tree's ports among out and to the network's own.
func (e *engine) members(sw flow.DPID, vlan uint16, out, tree []flow.Port) []flow.Action {
	var list []flow.Action
	var edge []flow.Port
	for _, port := range out {
		if slices.Contains(tree, port) {
			list = append(list, flow.Output(port))
		} else {
			edge = append(edge, port)
		}
	}
	return e.tagging.Outputs(list, sw, vlan, edge)
}
