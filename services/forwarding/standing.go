package forwarding

import (
	"crypto/sha256"
	"fmt"
	"slices"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
)

// baseline makes the baseline flows of switches.
type baseline struct {
	*platform
	*portTable
	manyOthers int // the constant, except in tests
}

// inputs numbers the states of the inputs, beside the tree, from which the
// baseline flows of a switch are built.
type inputs struct{ ports, tagging uint64 }

func (b *baseline) inputs(sw flow.DPID) inputs {
	p := b.edge(sw)
	p.mu.Lock()
	defer p.mu.Unlock()
	return inputs{p.changes, b.tagging.Changes()}
}

// union returns the ports of both lists, in order.
func union(a, b []flow.Port) []flow.Port {
	all := slices.Concat(a, b)
	slices.Sort(all)
	return slices.Compact(all)
}

func entryMessages(sw flow.DPID, list []flow.Entry) []*api.FlowEntry {
	entries := make([]*api.FlowEntry, len(list))
	for i := range list {
		entries[i] = api.NewFlowEntry(sw, &list[i])
	}
	return entries
}

// digestOf is equal only for equal lists of entries and groups.
func digestOf(list []flow.Entry, groups []flow.Group) [sha256.Size]byte {
	h := sha256.New()
	var b []byte
	for i := range list {
		b, _ = list[i].AppendBinary(b[:0]) // fails only for actions that forwarding does not use
		h.Write(b)
	}
	for i := range groups {
		fmt.Fprint(h, groups[i])
	}
	return [sha256.Size]byte(h.Sum(b[:0]))
}

// dropsAt reports whether an entry drops the multicasts of a port.
func dropsAt(e *flow.Entry) bool {
	return e.Priority == flow.PriorityLinkFlood && len(e.Apply) == 0 && e.Match.Set.Has(flow.FieldInPort)
}

// droppingPorts returns, in order, the ports whose multicasts entries drop.
func droppingPorts(entries []flow.Entry) (ports []flow.Port) {
	for i := range entries {
		if dropsAt(&entries[i]) {
			ports = append(ports, entries[i].Match.Key.InPort)
		}
	}
	slices.Sort(ports)
	return ports
}

// keepDropEntries returns the entries that must stay until the rest of a set is
// in force. If the new set drops the multicasts of all ports that it does not
// name, these are the entries of the old set that dropped them port by port.
// Without them, the old set's entry for all other ports would flood those
// multicasts for a moment.
func keepDropEntries(entries []flow.Entry, ports []flow.Port) (kept []flow.Entry) {
	have := map[flow.Port]bool{}
	var closed *flow.Entry
	for i := range entries {
		switch e := &entries[i]; e.Priority {
		case flow.PriorityOther:
			closed = e
		case flow.PriorityLinkFlood:
			have[e.Match.Key.InPort] = true
		}
	}
	for _, port := range ports {
		if closed != nil && !have[port] {
			e := *closed
			e.Priority, e.Match = flow.PriorityLinkFlood, e.Match.WithInPort(port)
			kept = append(kept, e)
		}
	}
	return kept
}

// manyOthers is how many more entries the first way of standingEntries must
// take before it uses the second.
const manyOthers = 16

// linkLocal is the first of the 16 addresses that no bridge passes on (IEEE 802.1Q
// §8.6.3): of BPDU, pause, LACP, EAPOL and the like. Circuits take such frames before.
var linkLocal, linkLocalMask = flow.MAC{1, 0x80, 0xc2}, flow.MAC{0xff, 0xff, 0xff, 0xff, 0xff, 0xf0}

// standingEntries returns the baseline flows of a switch, which do not depend
// on routes: the entries that lead from table to table; the table miss; what says
// where hosts are (ARP, RARP, neighbour discovery and DHCP) to the controller, but for
// what TableNeighbours lets through; frames to link-local addresses to nobody; multicasts from an edge port,
// and from a link port of the tree, to the tree and the edge ports; those from
// any other port to nobody. The other ports are distinguished in one of two
// ways: by an entry for each of them before one for all edge ports, or, if they
// are many, by an entry for each edge port before one for all of them. If a
// multicast goes to too many ports for one entry, it goes to the groups. A hybrid
// node has none.
func (b *baseline) standingEntries(sw flow.DPID, tree []flow.Port, v10 bool, table uint8) ([]flow.Entry, []flow.Group) {
	if b.edge(sw).ofHybrid() {
		return nil, nil
	}
	d := &flow.Decision{}
	miss := missEntry(d)
	miss.Table = table
	list := append(make([]flow.Entry, 0, 24), miss)
	for t := flow.TableIngress; t != table; t = flow.NextTable(t) {
		list = append(list, flow.Entry{Table: t, Priority: flow.PriorityMiss, Goto: flow.NextTable(t), Cookie: flow.NewCookie(flow.OwnerForwarding, 0, 0)})
	}
	add := func(priority uint16, m flow.Match, actions ...flow.Action) {
		list = append(list, flow.Entry{Table: table, Priority: priority, Match: m, Cookie: flow.NewCookie(flow.OwnerForwarding, 0, 0), Apply: d.Actions(actions...)})
	}
	multicast := flow.Match{}.Multicast()
	trap := flow.Output(flow.PortController)
	neighbourly := flow.Match{}
	if table != 0 {
		list = append(list, b.neighbourEntries(sw)...)
		neighbourly = multicast
	}
	if v10 {
		multicast = flow.Match{}.WithEthDst(flow.Broadcast) // supports neither masks nor IPv6
		add(flow.PriorityTrap, flow.Match{}.WithEthType(flow.EthTypeARP), trap)
	} else {
		for _, m := range neighbourly.ARPOrND() {
			add(flow.PriorityTrap, m, trap)
		}
		v6 := flow.Match{}.WithEthType(flow.EthTypeIPv6)
		add(flow.PriorityTrap, v6.WithUDPDst(546), trap)
		add(flow.PriorityTrap, v6.WithUDPDst(547), trap)
		add(flow.PriorityTrap, flow.Match{}.WithICMPv6Type(flow.ICMPv6Router), trap)
		add(flow.PriorityLinkLocal, flow.Match{}.WithEthDstMasked(linkLocal, linkLocalMask))
	}
	add(flow.PriorityTrap, flow.Match{}.WithEthType(flow.EthTypeRARP), trap)
	v4 := flow.Match{}.WithEthType(flow.EthTypeIPv4)
	add(flow.PriorityTrap, v4.WithUDPDst(67), trap)
	add(flow.PriorityTrap, v4.WithUDPDst(68), trap)
	edges, links, others := b.edge(sw).inUse(tree)
	out := slices.Concat(edges, links)
	slices.Sort(out)
	groups := floodGroups{}
	where := b.edge(sw).list()
	outputs := groups.actionsFor(0, b.tagging.Outputs(nil, sw, 0, out), v10)
	networks := b.tagging.Networks()
	var tagged [][]flow.Action // of networks, then of VLANs with fewer ports than others
	for _, vlan := range networks {
		tagged = append(tagged, groups.actionsFor(vlan, b.members(sw, vlan, where.without(out, vlan), tree), v10))
	}
	vlans := append(networks, where.vlans(networks)...)
	for _, vlan := range vlans[len(networks):] {
		tagged = append(tagged, groups.actionsFor(vlan, b.tagging.Outputs(nil, sw, 0, where.without(out, vlan)), v10))
	}
	flood := func(priority uint16, m flow.Match) {
		most := m
		for i, vlan := range vlans {
			if vlan == anyVLAN {
				add(priority, m, tagged[i]...)
				most, priority = m.WithoutVLAN(), priority+1
				break // it is the last
			}
			add(priority+1, m.WithVLAN(vlan), tagged[i]...)
		}
		add(priority, most, outputs...)
	}
	for _, port := range links {
		flood(flow.PriorityLinkFlood, multicast.WithInPort(port))
	}
	if len(others) > b.manyOthers+len(edges)*(1+len(networks)) {
		for _, port := range edges {
			flood(flow.PriorityFlood, multicast.WithInPort(port))
		}
		add(flow.PriorityOther, multicast)
		return list, groups.list()
	}
	for _, port := range others {
		add(flow.PriorityLinkFlood, multicast.WithInPort(port))
	}
	flood(flow.PriorityFlood, multicast)
	return list, groups.list()
}

// neighbourEntries returns those of TableNeighbours: unicast ARP and neighbour
// discovery, by which hosts find that others are still there, goes to the
// controller, but for what it has judged already. That is what comes by a link of
// the network: a switch at the edge let it through. What else the edge may let
// through, the service hosts says.
func (b *baseline) neighbourEntries(sw flow.DPID) (list []flow.Entry) {
	add := func(priority uint16, m flow.Match) *flow.Entry {
		list = append(list, flow.Entry{Table: flow.TableNeighbours, Priority: priority, Match: m, Cookie: flow.NewCookie(flow.OwnerForwarding, 0, 0)})
		return &list[len(list)-1]
	}
	for _, m := range (flow.Match{}).Unicast().ARPOrND() {
		add(flow.PriorityTrap, m).Apply = []flow.Action{flow.Output(flow.PortController)}
	}
	for _, port := range b.edge(sw).links() {
		add(flow.PriorityNeighbourLink, flow.Match{}.WithInPort(port)).Goto = flow.TableForward
	}
	seen := map[flow.EntryKey]bool{}
	for _, s := range b.subnets {
		for _, own := range flow.OwnNeighbour(flow.OwnerForwarding, flow.PriorityNeighbourOwn, s.vlan, b.cfg.RouterMAC, s.gateway) {
			if k := own.Key(); !seen[k] {
				seen[k] = true
				list = append(list, own)
			}
		}
	}
	return list
}

// copyEntries returns the entries by which the controller gets a copy of what devices say to
// groups about where they are, unless it comes by a link. The switch floods it as before,
// also while no controller runs.
func copyEntries(ovs bool) (list []flow.Entry) {
	for _, m := range flow.Announcements(ovs) {
		list = append(list, flow.Entry{
			Table: flow.TableNeighbours, Priority: flow.PriorityTrap, Match: m, Goto: flow.TableForward,
			Cookie: flow.NewCookie(flow.OwnerForwarding, 0, 0), Apply: []flow.Action{flow.Output(flow.PortController)},
		})
	}
	return list
}

// members returns the actions that send a multicast frame of a virtual network,
// carried by a VLAN, to the tree's ports among out and to the network's own.
func (b *baseline) members(sw flow.DPID, vlan uint16, out, tree []flow.Port) []flow.Action {
	var list []flow.Action
	var edge []flow.Port
	for _, port := range out {
		if contains(tree, port) {
			list = append(list, flow.Output(port))
		} else {
			edge = append(edge, port)
		}
	}
	return b.tagging.Outputs(list, sw, vlan, edge)
}
