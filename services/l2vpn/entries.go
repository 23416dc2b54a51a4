package l2vpn

import (
	"cmp"
	"slices"
	"strings"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
)

// The pieces of what a switch has: each circuit, each port with ends, and what all
// probes need.
const (
	circuitPiece = "circuit "
	portPiece    = "port "
	probePiece   = "probes"
)

// pieces returns the names of the pieces of a switch.
func (b *store) pieces(sw *api.Switch) []string {
	dpid, err := flow.ParseDPID(sw.GetDpid())
	if err != nil || sw.GetOpenflow() == "1.0" {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	list := []string{probePiece}
	for name := range b.at[dpid] {
		list = append(list, circuitPiece+name)
	}
	for port := range b.taken[dpid] {
		list = append(list, portPiece+port.String())
	}
	for port := range b.sinks[dpid] {
		list = append(list, portPiece+port.String())
	}
	return list
}

// piece returns a piece of a switch.
func (b *store) piece(sw *api.Switch, name string) *api.SetStandingRequest {
	dpid, err := flow.ParseDPID(sw.GetDpid())
	if err != nil || sw.GetOpenflow() == "1.0" {
		return nil
	}
	var all set
	b.mu.Lock()
	if circuit, ok := strings.CutPrefix(name, circuitPiece); ok && b.at[dpid][circuit] {
		s := b.status[circuit]
		all.marks = b.net.marks[dpid].can
		s.entries(&all, dpid, b.cfg, &b.tunnels)
		s.asked[dpid] = s.version
	} else if port, ok := strings.CutPrefix(name, portPiece); ok {
		n, err := flow.ParsePort(port)
		if err == nil && len(b.sinks[dpid][n]) > 0 {
			all.shut(end{at: flow.Location{Switch: dpid, Port: n}})
		}
		if err == nil && len(b.taken[dpid][n]) > 0 {
			guards(&all, n, b.taken[dpid][n])
			if sendsRingProbes(b, flow.Location{Switch: dpid, Port: n}) {
				all.ringTrap(n)
			}
		}
	} else if name == probePiece {
		if b.probed(dpid) {
			all.probes()
		}
	}
	b.mu.Unlock()
	p := &api.SetStandingRequest{}
	for i := range all.entries {
		p.Flows = append(p.Flows, api.NewFlowEntry(dpid, &all.entries[i]))
	}
	for i := range all.groups {
		p.Groups = append(p.Groups, api.NewGroup(dpid, &all.groups[i]))
	}
	for i := range all.meters {
		p.Meters = append(p.Meters, api.NewMeter(dpid, &all.meters[i]))
	}
	return p
}

// redeclare has the pieces that a circuit is concerned with declared at all switches
// where it has any. It is called with mu held.
func (b *store) redeclare(s *status) {
	for _, sw := range s.touched() {
		names := []string{circuitPiece + s.circuit.Name, probePiece}
		for _, e := range s.circuit.ends {
			if e.at.Switch == sw {
				names = append(names, portPiece+e.at.Port.String())
			}
		}
		for _, at := range s.circuit.sinks() {
			if at.Switch == sw {
				names = append(names, portPiece+at.Port.String())
			}
		}
		b.declare(sw, names...)
	}
}

// entries adds the entries of a circuit at a switch.
func (s *status) entries(to *set, sw flow.DPID, cfg *Config, tunnels *tunnelTable) {
	c := s.circuit
	to.besides = s.besides
	if s.phase != inForce {
		for _, e := range c.ends {
			if e.at.Switch == sw {
				to.shut(e)
			}
		}
		return
	}
	if c.Type == vpls {
		to.lanEntries(s.fabric(cfg, tunnels), sw)
		return
	}
	for i, e := range c.ends {
		if e.at.Switch != sw {
			continue
		}
		group := uint32(0)
		if !c.local() {
			if group = tunnels.groupOf(c, i, 1-i); group == 0 { // there is no tunnel yet
				to.shut(e)
				continue
			}
		}
		if s.looped && c.Loops[0] == e.String() {
			to.loop(c, i, 1-i, group)
			continue
		}
		to.pairEntries(c, i, group, s.devices, cfg.stormOf(c))
	}
}

// lacks returns the first of what failed at a switch that is of a set; nil if nothing is.
func (s *set) lacks(failed []*api.WantedFlow) *api.WantedFlow {
	for _, f := range failed {
		_, e, err := f.GetFlow().Entry()
		switch {
		case f.Meter != 0 && slices.ContainsFunc(s.meters, func(m flow.Meter) bool { return m.ID == f.Meter }),
			f.Group != 0 && slices.ContainsFunc(s.groups, func(g flow.Group) bool { return g.ID == f.Group }),
			f.Meter == 0 && f.Group == 0 && err == nil && slices.ContainsFunc(s.entries, func(o flow.Entry) bool { return o.Key() == e.Key() }):
			return f
		}
	}
	return nil
}

// pairEntries adds the entries of an end of a vpws whose frames enter a tunnel by a
// group, or, without one, leave on the same switch, and that may send so much to all, kbit/s.
func (s *set) pairEntries(c *circuit, i int, group uint32, known devices, storm uint32) {
	e, m := c.ends[i], c.Members[i]
	switch {
	case c.ip():
		s.ipIngress(c, i, group, known)
		if group != 0 {
			s.ipEgress(c, i, known)
		}
	default:
		in := c.inlet(i)
		in.storm, in.acts = m.StormMeter, s.admit(c, i, c.spare(1-i, c.carried(i, 1-i)), s.deliver(c, i, 1-i, group))
		s.ingress(in)
		switch {
		case group != 0:
			s.egress(c, i)
		case s.looksInto(c, e):
			s.sieve(0, c, i, c.cross(1-i, i))
		}
	}
	s.rates(c, m)
	if m.StormMeter != 0 {
		s.meters = append(s.meters, stormMeter(m.StormMeter, storm))
	}
}

// carried returns how many tags frames have inside a circuit, from one end to another. Of
// a vpws one tag stays on where the far end has one and this has any, and with it its type and
// priority; but not without the customer's Ethernet header.
func (c *circuit) carried(from, to int) int {
	if c.Type == vpls || c.ip() || c.ends[from].tags() == 0 || c.ends[to].tags() != 1 {
		return 0
	}
	return 1
}

// spare returns how many tags of the customer's own may be in frames that leave at an end
// with so many carried.
func (c *circuit) spare(to, carried int) int {
	if c.ends[to].tags() == carried {
		return boundless
	}
	return tagsMax - c.ends[to].tags()
}

// boundless is more tags than a frame has.
const boundless = 1 << 10

// The marks of frames, in their tunnel_id beside what came returns, whose tags are counted:
// before, and after the first is off.
const (
	tagsAsked  = 1 << 61
	secondTags = 1 << 62
)

// admit returns the actions for frames of an end, without its tags but those that are
// carried, that let in those with so many tags of the customer's own, to the actions acts. It
// adds the entries that do, and that drop others, and count them.
func (s *set) admit(c *circuit, i, spare int, acts []flow.Action) []flow.Action {
	if spare == boundless {
		return acts
	}
	e := c.ends[i]
	next := func(mark uint64) []flow.Action {
		return []flow.Action{flow.SetTunnelID(c.came(i) | mark), flow.Resubmit{In: flow.PortIn, Table: flow.TableCircuits}.Action()}
	}
	first := acts
	if acts[0].Kind == flow.ActionPopVLAN { // of the end's last tag
		first = acts[1:]
	}
	enter := func(id uint32, above uint16, m flow.Match, acts ...flow.Action) {
		s.enter(id, flow.Entry{Table: flow.TableCircuits, Priority: flow.PriorityCircuitTagged + above, Match: m, Apply: acts})
	}
	asked := flow.Match{}.WithTunnelID(c.came(i) | tagsAsked)
	enter(0, 0, asked.WithoutVLAN(), first...)
	for _, kind := range []uint16{flow.EthTypeVLAN, flow.EthTypeQinQ} { // of a tag that the switch does not know
		enter(c.Id, 1, asked.WithEthType(kind))
	}
	switch {
	case spare == 0 || e.tags() == tagsMax: // then none that the switch knows is the customer's
		enter(c.Id, 0, asked.WithAnyVLAN())
	case e.tags() == 1: // then there is no other behind it
		enter(0, 0, asked.WithAnyVLAN(), first...)
	default:
		enter(0, 0, asked.WithAnyVLAN(), append([]flow.Action{flow.SaveTag(), flow.PopVLAN()}, next(secondTags)...)...)
		second := flow.Match{}.WithTunnelID(c.came(i) | secondTags)
		enter(c.Id, 0, second.WithAnyVLAN())
		enter(0, 0, second.WithoutVLAN(), append([]flow.Action{flow.PushVLAN(flow.EthTypeVLAN), flow.RestoreTag()}, first...)...)
	}
	return append(acts[:len(acts)-len(first):len(acts)-len(first)], next(tagsAsked)...)
}

// deliver returns the actions for frames of one end that go to another, after
// those tags that are not carried are off: by the group of a tunnel, or, without one,
// on the same switch.
func (s *set) deliver(c *circuit, from, to int, group uint32) []flow.Action {
	var acts []flow.Action
	if c.ends[from].tags() > 0 && c.carried(from, to) == 0 {
		acts = append(acts, flow.PopVLAN()) // the last of them
	}
	switch {
	case group != 0:
		return append(acts, c.cover(to, group)...)
	case s.looksInto(c, c.ends[to]):
		return append(acts, toCircuits(uint64(c.Members[to].Label))...)
	}
	return append(acts, c.cross(from, to)...)
}

// toCircuits returns the actions by which a frame comes to TableCircuits with a tunnel_id.
func toCircuits(id uint64) []flow.Action {
	return []flow.Action{flow.SetTunnelID(id), flow.Resubmit{In: flow.PortIn, Table: flow.TableCircuits}.Action()}
}

// cover returns the actions by which a frame inside a circuit goes to an end by the group of a tunnel.
func (c *circuit) cover(to int, group uint32) []flow.Action {
	return []flow.Action{flow.Encap(flow.PacketMPLS), flow.SetMPLSLabel(c.Members[to].Label), flow.SetMPLSTTL(flow.CarriedTTL),
		flow.Encap(flow.PacketEthernet), flow.ToGroup(group)}
}

// cross returns the actions by which a frame leaves at another end of the same switch.
func (c *circuit) cross(from, to int) []flow.Action {
	acts := leave(c.carried(from, to), c.ends[to])
	if c.ends[from].at == c.ends[to].at {
		acts[len(acts)-1] = flow.Output(flow.PortIn)
	}
	return append(acts, c.copiesOf(c.ends[to], false)...)
}

// leave returns the actions by which a frame with so many tags leaves at an end. A tag that is
// carried keeps its type unless the end says which.
func leave(carried int, e end) (acts []flow.Action) {
	switch {
	case carried == 1 && e.kind != 0:
		acts = append(acts, flow.SaveTag(), flow.PopVLAN(), flow.PushVLAN(e.kind), flow.RestoreTag(), flow.SetVLAN(e.vlan))
	case carried == 1:
		acts = append(acts, flow.SetVLAN(e.vlan))
	case e.inner != 0:
		acts = append(acts, flow.PushVLAN(flow.EthTypeVLAN), flow.SetVLAN(e.inner), flow.PushVLAN(cmp.Or(e.kind, flow.EthTypeQinQ)), flow.SetVLAN(e.vlan))
	case e.vlan != 0:
		acts = append(acts, flow.PushVLAN(cmp.Or(e.kind, flow.EthTypeVLAN)), flow.SetVLAN(e.vlan))
	}
	return append(acts, flow.Output(e.at.Port))
}

// egress adds the entries that take the label of an end of a vpws off and let the frames
// leave. What is under the label can be seen in TableCircuits only,
// where the label is the tunnel_id.
func (s *set) egress(c *circuit, i int) {
	e, label, carried := c.ends[i], c.Members[i].Label, c.carried(1-i, i)
	acts := append(leave(carried, e), c.copiesOf(e, false)...)
	m := flow.Match{}.WithEthType(flow.EthTypeMPLS).WithMPLSLabel(label).WithMPLSBOS(1)
	bare := []flow.Action{flow.Decap(flow.PacketNext), flow.Decap(flow.PacketEthernet)}
	in := func(id uint32, acts []flow.Action) {
		s.enter(id, flow.Entry{Table: flow.TableLabels, Priority: flow.PriorityCircuitLabel, Match: m, Apply: acts})
	}
	if e.tags() == 0 && !s.looksInto(c, e) {
		in(c.Id, append(bare, acts...))
		return
	}
	bare = append([]flow.Action{flow.SetTunnelID(uint64(label))}, bare...)
	bare = append(bare, flow.Resubmit{In: flow.PortIn, Table: flow.TableCircuits}.Action())
	if s.looksInto(c, e) && e.tags() == 0 || s.sieves(e) {
		in(0, bare)
		s.sieve(c.Id, c, i, acts)
		return
	}
	in(c.Id, bare)
	m = flow.Match{}.WithTunnelID(uint64(label))
	if carried > 0 {
		m = m.WithAnyVLAN()
	}
	s.leaving(0, c, e, flow.Entry{Table: flow.TableCircuits, Priority: flow.PriorityCircuitTags, Match: m, Apply: acts})
}

// looksInto reports whether what leaves at an end depends on more than its label.
func (s *set) looksInto(c *circuit, e end) bool { return s.sieves(e) || len(c.mapsAt(e)) > 0 }

// sieves reports whether not all frames that a circuit brings may leave at an end.
func (s *set) sieves(e end) bool { return e.list != "" || s.besides[e] != "" }

// passing returns what matches those frames on their way out, as m knows them, that may leave at an
// end, and adds the entries that drop others of a port: they would come in again, if at all, at
// another end.
func (s *set) passing(e end, m flow.Match) (list []flow.Match) {
	for _, v := range s.besides[e].blocks() {
		s.enter(0, flow.Entry{Table: flow.TableCircuits, Priority: flow.PriorityCircuitOther, Match: v.In(m)})
	}
	for _, v := range e.list.blocks() {
		list = append(list, v.In(m))
	}
	if e.list == "" {
		list = append(list, m)
	}
	return list
}

// sieve adds the entries by which those frames of a vpws leave that may leave at an end, with its label as
// tunnel_id.
func (s *set) sieve(id uint32, c *circuit, i int, acts []flow.Action) {
	for _, m := range s.passing(c.ends[i], flow.Match{}.WithTunnelID(uint64(c.Members[i].Label))) {
		s.leaving(id, c, c.ends[i], flow.Entry{Table: flow.TableCircuits, Priority: flow.PriorityCircuitTags, Match: m, Apply: acts})
	}
}

// guards adds the entries that drop a customer's labelled frames, which Open
// vSwitch 3.1 cannot encapsulate: it aborts.
func guards(to *set, port flow.Port, ends map[end]map[string]bool) {
	tables := map[uint8]uint16{flow.TableIngress: flow.PriorityCircuitLabelled}
	for e := range ends {
		if e.inner != 0 {
			tables[flow.TableCircuits] = flow.PriorityCircuitInner + 7
		}
	}
	for table, priority := range tables {
		for _, kind := range []uint16{flow.EthTypeMPLS, flow.EthTypeMPLSMC} {
			to.enter(0, flow.Entry{Table: table, Priority: priority, Match: flow.Match{}.WithInPort(port).WithEthType(kind)})
		}
	}
}
