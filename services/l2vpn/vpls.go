package l2vpn

import (
	"slices"

	"github.com/weft-sdn/weft/flow"
)

// A fabric is all that the entries of a vpls follow from.
type fabric struct {
	*circuit
	lan    *lan
	active []arc // of the tree that ends send to
	trees  [][]arc
	storm  uint32                          // kbit/s that an end may send to all
	group  func(from, to flow.DPID) uint32 // of a tunnel; 0 if there is none
}

// Frames of a vpls, and of payload ip, on their way through a switch are known by their tunnel_id: this
// bit, the number of the circuit, and of one that has come in here the label of its end.
const lanBit = 1 << 63

// leafBit marks those that a leaf has sent.
const leafBit = 1 << 60

func (c *circuit) number() uint64 { return lanBit | uint64(c.Id)<<20 }

// anyEnd is the mask of tunnel_id for all ends of a vpls.
const anyEnd = ^uint64(flow.LabelMax)

// came returns the tunnel_id of frames from an end.
func (c *circuit) came(i int) uint64 {
	n := c.number() | uint64(c.Members[i].Label)
	if c.leaf(i) {
		n |= leafBit
	}
	return n
}

// local returns the ends at a switch, by their index.
func (f *fabric) local(sw flow.DPID) (list []int) {
	for i, e := range f.ends {
		if _, shut := f.lan.blocked[e]; e.at.Switch == sw && !shut {
			list = append(list, i)
		}
	}
	return list
}

// lanEntries adds the entries of a vpls at a switch. A frame of an end is first known by its
// sender (TableCircuits), then by its destination (TableLabels). Frames to all go
// along the tree; those to an address that is known straight to its end.
func (s *set) lanEntries(f *fabric, sw flow.DPID) {
	local := f.local(sw)
	for i, e := range f.ends {
		switch {
		case e.at.Switch != sw:
		case slices.Contains(local, i):
			s.sender(f, i)
			s.flood(f, i, local)
			s.arrive(f.Members[i].Label)
			s.exit(f, i, local)
		default: // blocked: nothing is carried
			s.take(f, i)
			s.enter(f.circuit.Id, flow.Entry{Table: flow.TableCircuits, Priority: flow.PriorityLANForged, Match: flow.Match{}.WithTunnelID(f.came(i))})
		}
	}
	if len(local) > 0 {
		s.destinations(f, sw, local)
	}
	for _, tree := range f.trees {
		for _, a := range tree {
			if a.to == sw {
				s.branch(f, a, ahead(tree, sw, a.from, a.leaves), local)
			}
		}
	}
}

// take adds the entries that take in the frames of an end, without its tags, and the
// meter of all that it sends.
func (s *set) take(f *fabric, i int) {
	var acts []flow.Action
	if f.ends[i].tags() > 0 {
		acts = append(acts, flow.PopVLAN()) // the last of them
	}
	s.rates(f.circuit, f.Members[i])
	acts = append(acts, flow.SetTunnelID(f.came(i)), flow.Resubmit{In: flow.PortIn, Table: flow.TableCircuits}.Action())
	spare := boundless // of all ends: a frame goes to all or to none
	for to := range f.ends {
		if f.reaches(i, to) {
			spare = min(spare, f.spare(to, 0))
		}
	}
	in := f.inlet(i)
	in.acts = s.admit(f.circuit, i, spare, acts)
	s.ingress(in)
}

// sender adds the entries that take in the frames of an end, and send to the controller,
// too, those whose sender is not known there.
func (s *set) sender(f *fabric, i int) {
	e := f.ends[i]
	s.take(f, i)
	m := flow.Match{}.WithTunnelID(f.came(i))
	s.enter(f.circuit.Id, flow.Entry{Table: flow.TableCircuits, Priority: flow.PriorityLANForged, Match: m.WithEthSrcMasked(toMany, toMany)})
	for _, mac := range f.lan.macs() {
		if x := f.lan.known[mac]; x.at == e && !x.asked {
			s.enter(0, flow.Entry{Table: flow.TableCircuits, Priority: flow.PriorityLANSender, Match: m.WithEthSrc(mac), Goto: flow.TableLabels})
		}
	}
	unknown := flow.Entry{Table: flow.TableCircuits, Priority: flow.PriorityLANUnknown, Match: m, Goto: flow.TableLabels}
	if f.lan.hears(e) {
		unknown.Apply = []flow.Action{flow.Output(flow.PortController)}
	}
	s.enter(0, unknown)
}

// flood adds the entry that sends to all others what comes from an end and whose
// destination is not known, and the meter that it passes.
func (s *set) flood(f *fabric, i int, local []int) {
	acts := f.copies(local, func(to int) bool { return f.reaches(i, to) })
	if on := ahead(f.active, f.ends[i].at.Switch, 0, f.leaf(i)); len(on) > 0 {
		if tunnels := f.onward(on); len(tunnels) > 0 {
			acts = append(acts, flow.Encap(flow.PacketMPLS), flow.SetMPLSLabel(on[0].label), flow.SetMPLSTTL(flow.CarriedTTL), flow.Encap(flow.PacketEthernet))
			acts = append(acts, tunnels...)
		}
	}
	e := flow.Entry{Table: flow.TableLabels, Priority: flow.PriorityLANFlood, Match: flow.Match{}.WithTunnelID(f.came(i)), Apply: acts}
	if m := f.Members[i].StormMeter; m != 0 {
		e.Meter = m
		s.meters = append(s.meters, stormMeter(m, f.storm))
	}
	s.enter(0, e)
}

// onward returns the actions that send copies of a labelled frame along arcs.
func (f *fabric) onward(arcs []arc) (acts []flow.Action) {
	for _, a := range arcs {
		if g := f.group(a.from, a.to); g != 0 {
			acts = append(acts, flow.SetMPLSLabel(a.label), flow.ToGroup(g))
		}
	}
	return acts
}

// reaches reports whether frames of an end may get to another.
func (c *circuit) reaches(from, to int) bool { return from != to && !(c.leaf(from) && c.leaf(to)) }

// copies returns the actions that send a frame without tags to those ends of its
// switch that may get it, and leave it as it was.
func (f *fabric) copies(local []int, gets func(i int) bool) (acts []flow.Action) {
	for _, i := range local {
		if gets(i) {
			acts = append(acts, f.to(i)...)
		}
	}
	return acts
}

// to returns the actions that send a frame without tags to an end of its switch, and
// leave it as it was: they lead to the entries of exit.
func (f *fabric) to(i int) []flow.Action {
	return toCircuits(uint64(f.Members[i].Label))
}

// arrive adds the entry that takes the label of an end off.
func (s *set) arrive(label uint32) {
	s.enter(0, flow.Entry{Table: flow.TableLabels, Priority: flow.PriorityCircuitLabel,
		Match: flow.Match{}.WithEthType(flow.EthTypeMPLS).WithMPLSLabel(label).WithMPLSBOS(1),
		Apply: []flow.Action{flow.SetTunnelID(uint64(label)), flow.Decap(flow.PacketNext), flow.Decap(flow.PacketEthernet),
			flow.Resubmit{In: flow.PortIn, Table: flow.TableCircuits}.Action()}})
}

// exit adds the entries by which all frames leave at an end, and are counted. One that came
// in by the same port, for another end there, goes back by it; if there is no other end,
// it came from this one.
func (s *set) exit(f *fabric, i int, local []int) {
	e := f.ends[i]
	m := flow.Match{}.WithTunnelID(uint64(f.Members[i].Label))
	leaving := func(by flow.Port) []flow.Action {
		acts := leave(0, e)
		acts[len(acts)-1] = flow.Output(by)
		acts = append(acts, f.copiesOf(e, false)...)
		for range e.tags() {
			acts = append(acts, flow.PopVLAN())
		}
		return acts
	}
	for _, m := range s.passing(e, m) {
		s.leaving(f.circuit.Id, f.circuit, e, flow.Entry{Table: flow.TableCircuits, Priority: flow.PriorityLANOut, Match: m, Apply: leaving(e.at.Port)})
		back := m.WithInPort(e.at.Port)
		if f.alone(i, local) {
			s.enter(0, flow.Entry{Table: flow.TableCircuits, Priority: flow.PriorityLANBack, Match: back})
			continue
		}
		s.leaving(f.circuit.Id, f.circuit, e, flow.Entry{Table: flow.TableCircuits, Priority: flow.PriorityLANBack, Match: back, Apply: leaving(flow.PortIn)})
	}
}

// alone reports whether no other end is at the port of an end.
func (f *fabric) alone(i int, local []int) bool {
	return !slices.ContainsFunc(local, func(o int) bool { return o != i && f.ends[o].at == f.ends[i].at })
}

// destinations adds the entries of addresses that are known: to an end of this switch, or
// by a tunnel to that of another.
func (s *set) destinations(f *fabric, sw flow.DPID, local []int) {
	for _, mac := range f.lan.macs() {
		to := slices.Index(f.ends, f.lan.known[mac].at)
		if to < 0 {
			continue
		}
		far := f.ends[to]
		sent := anyEnd // by whom
		switch {
		case f.leaf(to):
			s.enter(0, flow.Entry{Table: flow.TableLabels, Priority: flow.PriorityLANKnown, Match: flow.Match{}.WithTunnelIDMasked(f.number()|leafBit, anyEnd).WithEthDst(mac)})
		case len(f.leaves) > 0:
			sent &^= leafBit
		}
		e := flow.Entry{Table: flow.TableLabels, Priority: flow.PriorityLANKnown, Match: flow.Match{}.WithTunnelIDMasked(f.number(), sent).WithEthDst(mac)}
		if far.at.Switch == sw {
			e.Apply = f.to(to)
			s.enter(0, e)
			if !f.alone(to, local) {
				s.enter(0, flow.Entry{Table: flow.TableLabels, Priority: flow.PriorityLANSelf, Match: flow.Match{}.WithTunnelID(f.came(to)).WithEthDst(mac)})
			}
		} else if g := f.group(sw, far.at.Switch); g != 0 {
			e.Apply = []flow.Action{flow.Encap(flow.PacketMPLS), flow.SetMPLSLabel(f.Members[to].Label), flow.SetMPLSTTL(flow.CarriedTTL), flow.Encap(flow.PacketEthernet), flow.ToGroup(g)}
			s.enter(0, e)
		}
	}
}

// branch adds the entries for frames that come along an arc: copies go on along the
// others, and to the ends of this switch.
func (s *set) branch(f *fabric, a arc, on []arc, local []int) {
	acts := f.onward(on)
	if len(acts) > 0 {
		acts = append([]flow.Action{flow.ForgetInPort(), flow.DecMPLSTTL()}, acts...) // a tunnel may go on where another has come from
	}
	copies := f.copies(local, func(to int) bool { return !a.leaves || !f.leaf(to) })
	if len(copies) > 0 {
		acts = append(acts, flow.SetTunnelID(uint64(a.label)), flow.Decap(flow.PacketNext), flow.Decap(flow.PacketEthernet),
			flow.Resubmit{In: flow.PortIn, Table: flow.TableCircuits}.Action())
		s.enter(0, flow.Entry{Table: flow.TableCircuits, Priority: flow.PriorityCircuitTags,
			Match: flow.Match{}.WithTunnelID(uint64(a.label)), Apply: copies})
	}
	s.enter(0, flow.Entry{Table: flow.TableLabels, Priority: flow.PriorityCircuitLabel,
		Match: flow.Match{}.WithEthType(flow.EthTypeMPLS).WithMPLSLabel(a.label).WithMPLSBOS(1), Apply: acts})
}
