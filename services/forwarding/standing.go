package forwarding

import (
	"context"
	"crypto/sha256"
	"fmt"
	"slices"
	"time"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
)

// inputs numbers the states of the inputs, beside the tree, from which the
// baseline flows of a switch are built.
type inputs struct{ ports, tagging uint64 }

func (e *engine) inputs(sw flow.DPID) inputs {
	p := e.edge(sw)
	p.mu.Lock()
	defer p.mu.Unlock()
	return inputs{p.changes, e.tagging.Changes()}
}

// isConfirmed reports whether a switch has confirmed the entries for these tree
// ports, in order, and their inputs have not changed since; mu is held.
func (f *flooding) isConfirmed(sw flow.DPID, s *floodSwitch, tree []flow.Port) bool {
	return s.done && slices.Equal(s.tree, tree) && s.made == f.e.inputs(sw)
}

// sendBaseline sets the baseline flows of a switch for the given tree ports, in
// order, unless they are already set, and records what may be in force.
func (f *flooding) sendBaseline(ctx context.Context, sw flow.DPID, s *floodSwitch, tree []flow.Port) error {
	made := f.e.inputs(sw)
	entries, groups := f.e.standingEntries(sw, tree, s.v10, s.table)
	if len(entries) > 0 && s.table != 0 {
		entries = append(entries, dropObscured(s.ovs)...)
		entries = append(entries, copyEntries(s.ovs)...)
	}
	digest := digestOf(entries, groups)
	f.mu.Lock()
	if s.done && digest == s.sent {
		s.made, s.tree = made, slices.Clone(tree)
		f.mu.Unlock()
		return nil
	}
	if s.refused != nil && digest == s.sent && time.Now().Before(s.until) {
		f.mu.Unlock()
		return s.refused
	}
	s.try++
	try := s.try
	s.sent, s.done = digest, false
	s.tree = union(s.tree, tree)
	guarded := s.dropping
	s.dropping = union(s.dropping, droppingPorts(entries))
	f.mu.Unlock()

	if kept := keepDropEntries(entries, guarded); len(kept) > 0 {
		if err := f.declare(ctx, sw, append(slices.Clone(entries), kept...), groups); err != nil {
			return f.failed(sw, s, err)
		}
	}
	if err := f.declare(ctx, sw, entries, groups); err != nil {
		return f.failed(sw, s, err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	s.refused, s.retry = nil, api.Retry{}
	if s.try == try {
		s.done, s.made = true, made
		s.tree, s.dropping = slices.Clone(tree), droppingPorts(entries)
	}
	return nil
}

// declare sends the whole set of a switch, and returns when it is confirmed.
func (f *flooding) declare(ctx context.Context, sw flow.DPID, entries []flow.Entry, groups []flow.Group) error {
	req := &api.SetStandingRequest{Dpid: sw.String(), Owner: flow.OwnerForwarding.String(), Flows: entryMessages(sw, entries)}
	for i := range groups {
		req.Groups = append(req.Groups, api.NewGroup(sw, &groups[i]))
	}
	resp, err := f.set(ctx, req)
	if err != nil {
		return err
	}
	return resp.Confirmed(len(entries))
}

// failed records that a switch has not confirmed its entries, and returns why. A
// switch that refuses them is asked for the same again ever more rarely.
func (f *flooding) failed(sw flow.DPID, s *floodSwitch, err error) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	pause, news := s.retry.After(err, refusedFirst, refusedFirst)
	if s.refused = nil; api.RefusedBySwitch(err) {
		s.refused, s.until = err, time.Now().Add(pause)
	}
	if news && f.switches[sw] == s {
		f.e.log.Warn("flooding not confirmed; tried again", "dpid", sw, "error", err)
	}
	return err
}

// refusedFirst is the first pause before a switch is asked again for what it has
// refused.
const refusedFirst = time.Second

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
func (e *engine) standingEntries(sw flow.DPID, tree []flow.Port, v10 bool, table uint8) ([]flow.Entry, []flow.Group) {
	if e.edge(sw).ofHybrid() {
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
		list = append(list, e.neighbourEntries(sw)...)
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
	edges, links, others := e.edge(sw).inUse(tree)
	out := slices.Concat(edges, links)
	slices.Sort(out)
	groups := floodGroups{}
	where := e.edge(sw).list()
	outputs := groups.actionsFor(0, e.tagging.Outputs(nil, sw, 0, out), v10)
	networks := e.tagging.Networks()
	var tagged [][]flow.Action // of networks, then of VLANs with fewer ports than others
	for _, vlan := range networks {
		tagged = append(tagged, groups.actionsFor(vlan, e.members(sw, vlan, where.without(out, vlan), tree), v10))
	}
	vlans := append(networks, where.vlans(networks)...)
	for _, vlan := range vlans[len(networks):] {
		tagged = append(tagged, groups.actionsFor(vlan, e.tagging.Outputs(nil, sw, 0, where.without(out, vlan)), v10))
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
	if len(others) > e.manyOthers+len(edges)*(1+len(networks)) {
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
func (e *engine) neighbourEntries(sw flow.DPID) (list []flow.Entry) {
	add := func(priority uint16, m flow.Match) *flow.Entry {
		list = append(list, flow.Entry{Table: flow.TableNeighbours, Priority: priority, Match: m, Cookie: flow.NewCookie(flow.OwnerForwarding, 0, 0)})
		return &list[len(list)-1]
	}
	for _, m := range (flow.Match{}).Unicast().ARPOrND() {
		add(flow.PriorityTrap, m).Apply = []flow.Action{flow.Output(flow.PortController)}
	}
	for _, port := range e.edge(sw).links() {
		add(flow.PriorityNeighbourLink, flow.Match{}.WithInPort(port)).Goto = flow.TableForward
	}
	seen := map[flow.EntryKey]bool{}
	for _, s := range e.subnets {
		for _, own := range flow.OwnNeighbour(flow.OwnerForwarding, flow.PriorityNeighbourOwn, s.vlan, e.cfg.RouterMAC, s.gateway) {
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
func (e *engine) members(sw flow.DPID, vlan uint16, out, tree []flow.Port) []flow.Action {
	var list []flow.Action
	var edge []flow.Port
	for _, port := range out {
		if contains(tree, port) {
			list = append(list, flow.Output(port))
		} else {
			edge = append(edge, port)
		}
	}
	return e.tagging.Outputs(list, sw, vlan, edge)
}
