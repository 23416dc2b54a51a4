package l2vpn

import (
	"cmp"
	"slices"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/services/l2vpn/cfm"
)

// controls adds the entries for control protocols that an end has beside its others: in a table, from a
// priority on, for frames that are the end's by a match.
func (s *set) controls(in inlet, table uint8, priority uint16, m flow.Match, acts []flow.Action) {
	for _, k := range in.controls {
		for _, f := range k.frames {
			e := flow.Entry{Table: table, Priority: priority + k.above, Match: f.in(m)}
			switch k.action {
			case peered:
				e.Apply = []flow.Action{flow.Output(flow.PortController)}
				s.enter(0, e)
				continue
			case tunnelled:
				if e.Meter, e.Apply = in.storm, acts; in.storm == 0 {
					e.Meter = in.meter
				}
			}
			s.enter(in.id, e)
		}
	}
}

// leaving adds an entry by which frames leave at an end, and those for frames whose code points change: the
// priority of a tag counts before DSCP. Behind its output a frame is as it was.
func (s *set) leaving(id uint32, c *circuit, e end, out flow.Entry) {
	s.enter(id, out)
	at := slices.IndexFunc(out.Apply, func(a flow.Action) bool { return a.Kind == flow.ActionOutput })
	tagged := slices.ContainsFunc(out.Apply[:max(at, 0)], func(a flow.Action) bool { return a.Kind == flow.ActionPushVLAN })
	for _, m := range c.mapsAt(e) {
		matches := m.from.of(out.Match)
		if !m.from.pcp && m.to.pcp && !tagged && !out.Match.Set.Has(flow.FieldVLAN) {
			matches = m.from.of(out.Match.WithAnyVLAN()) // else there is no tag
		}
		if m.from.pcp && !m.to.pcp {
			tags := matches[0]
			matches = []flow.Match{tags.WithEthType(flow.EthTypeIPv4), tags.WithEthType(flow.EthTypeIPv6)}
		}
		mapped := out
		mapped.Priority++
		if m.from.pcp {
			mapped.Priority++
		}
		mapped.Apply = slices.Insert(slices.Clone(out.Apply), at, m.to.set())
		if c.Type == vpls && !(m.to.pcp && tagged) { // copies to other ends follow
			mapped.Apply = append(mapped.Apply, m.from.set())
		}
		for _, mapped.Match = range matches {
			s.enter(id, mapped)
		}
	}
}

// rates adds the meters of an end. What is above the rate and within the excess passes, marked where the
// switch's meters can; where customers mark what is discardable, that has a meter, and the excess, of its own.
func (s *set) rates(c *circuit, m *api.CircuitMember) {
	if m.Meter != 0 {
		all := c.RateKbps
		if len(c.yellow) == 0 {
			all += c.ExcessKbps
		}
		meter := meter(m.Meter, all)
		if s.marks && all > c.RateKbps {
			mark := meter.Bands[0]
			mark.Kind, mark.Rate, mark.PrecLevel = flow.MeterDSCPRemark, uint32(c.RateKbps), 1
			meter.Bands = append([]flow.Band{mark}, meter.Bands...)
		}
		s.meters = append(s.meters, meter)
	}
	if m.YellowMeter != 0 {
		s.meters = append(s.meters, meter(m.YellowMeter, c.ExcessKbps))
	}
}

// oam adds the entries that give the controller the frames of an end's maintenance end point, from a priority on.
func (s *set) oam(in inlet, table uint8, priority uint16, m flow.Match) {
	if in.mep == nil {
		return
	}
	for _, to := range []flow.MAC{cfm.Group(in.mep.Level), in.mep.MAC} {
		s.enter(0, flow.Entry{Table: table, Priority: priority, Match: m.WithEthType(cfm.EthType).WithEthDst(to), Apply: []flow.Action{flow.Output(flow.PortController)}})
	}
}

// The flags of a meter (OFPMF_KBPS and OFPMF_BURST).
const (
	meterKbps  = 1
	meterBurst = 4
)

// The burst of a meter, kilobits: what its rate is in a time, so that one TCP
// connection, which answers a loss by half its rate, has nearly all of it; and not less
// than some of the largest packets, which the switch may be given before they are segmented.
const (
	burstTime  = 4 // parts of a second
	leastBurst = 4 * 64 * 8
)

// meter returns the meter of an end that may send at a rate.
func meter(id uint32, kbps uint64) flow.Meter {
	return flow.Meter{ID: id, Flags: meterKbps | meterBurst,
		Bands: []flow.Band{{Kind: flow.MeterDrop, Rate: uint32(kbps), BurstSize: uint32(max(kbps/burstTime, leastBurst))}}}
}

// stormMeter returns the meter of what an end may send to all others.
func stormMeter(id, kbps uint32) flow.Meter {
	return flow.Meter{ID: id, Flags: meterKbps | meterBurst, Bands: []flow.Band{{Kind: flow.MeterDrop, Rate: kbps, BurstSize: kbps / 5}}}
}

// toMany is the bit of an Ethernet address that broadcast and multicast have.
var toMany = flow.MAC{1}

// An inlet is what becomes of the frames that come in at an end.
type inlet struct {
	id       uint32 // of the circuit for which entries count; 0: of none
	at       end
	meter    uint32      // that they pass; 0: none
	storm    uint32      // that those to many pass instead; 0: the other
	yellow   uint32      // that discardable ones pass instead; 0: the other
	points   []codePoint // of these
	controls []control
	mep      *mep
	copies   []flow.Action // that send copies of frames as they came
	acts     []flow.Action
}

// inlet returns what becomes of the frames of an end, but for what is done to them.
func (c *circuit) inlet(i int) inlet {
	m := c.Members[i]
	return inlet{id: c.Id, at: c.ends[i], meter: m.Meter, yellow: m.YellowMeter, points: c.yellow, controls: c.controls, mep: c.mepAt(c.ends[i]), copies: c.copiesOf(c.ends[i], true)}
}

// ingress adds the entries for what comes in at an end. Frames with two tags come to
// TableCircuits, the first in the metadata.
func (s *set) ingress(in inlet) {
	enter := func(table uint8, at rungs, m flow.Match, acts []flow.Action) {
		s.enter(in.id, flow.Entry{Table: table, Priority: at.all, Match: m, Meter: in.meter, Apply: acts})
		if in.yellow != 0 {
			for _, p := range in.points {
				for _, m := range p.of(m) {
					s.enter(in.id, flow.Entry{Table: table, Priority: at.yellow, Match: m, Meter: in.yellow, Apply: acts})
				}
			}
		}
		if in.storm != 0 {
			s.enter(in.id, flow.Entry{Table: table, Priority: at.cast, Match: m.WithEthDstMasked(toMany, toMany), Meter: in.storm, Apply: acts})
		}
		s.controls(in, table, at.control, m, acts)
		s.oam(in, table, at.oam, m)
	}
	e := in.at
	acts := slices.Concat(in.copies, in.acts)
	m := flow.Match{}.WithInPort(e.at.Port)
	own := rungs{flow.PriorityCircuit, flow.PriorityCircuitYellow, flow.PriorityCircuitCast, flow.PriorityCircuitControl, flow.PriorityCircuitOAM}
	switch {
	case s.besides[e] != "":
		enter(flow.TableIngress, rungsFrom(flow.PriorityCircuitRest), m, acts)
	case e.list != "":
		for _, v := range e.list.blocks() {
			enter(flow.TableIngress, own, v.In(m), acts)
		}
	case e.inner != 0:
		outer := uint64(flow.VLANPresent | e.vlan)
		s.enter(0, flow.Entry{Table: flow.TableIngress, Priority: flow.PriorityCircuit, Match: m.WithVLAN(e.vlan),
			Apply: []flow.Action{flow.PopVLAN()}, Metadata: outer, MetaMask: ^uint64(0), Goto: flow.TableCircuits})
		m = m.WithMetadata(outer, ^uint64(0)).WithTunnelID(0).WithVLAN(e.inner) // not once more, of a customer's own tag
		if len(in.copies) > 0 {
			acts = slices.Concat([]flow.Action{flow.PushVLAN(cmp.Or(e.kind, flow.EthTypeQinQ)), flow.SetVLAN(e.vlan)}, in.copies, []flow.Action{flow.PopVLAN()}, in.acts)
		}
		enter(flow.TableCircuits, rungsFrom(flow.PriorityCircuitInner), m, acts)
	case e.vlan != 0:
		enter(flow.TableIngress, own, m.WithVLAN(e.vlan), acts)
	default:
		enter(flow.TableIngress, own, m, acts)
	}
}

// rungs are the priorities of the entries of an end: of all frames, of those that have a meter of their
// own, of the first of control protocols, and of a maintenance end point.
type rungs struct{ all, yellow, cast, control, oam uint16 }

// rungsFrom returns priorities that follow each other.
func rungsFrom(first uint16) rungs { return rungs{first, first + 1, first + 2, first + 3, first + 6} }

// shut adds the entries that drop, uncounted, the frames of an end from which nothing is
// carried: they would be of the ordinary network else.
func (s *set) shut(e end) { s.ingress(inlet{at: e}) }
