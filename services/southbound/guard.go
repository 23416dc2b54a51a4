package southbound

import (
	"slices"
	"time"

	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/openflow"
)

// guard is a flood limiter: a meter in the switch of a limited port, and
// entries that send through it what would come to the controller. The entries
// time out, and are rewritten as long as the flood lasts.
type guard struct {
	pushed int64 // when they were last written, in ns; 0 if they are not in the switch
	rate   uint32
	traps  bool // it has entries for ARP, neighbour discovery and DHCP
	misses bool // it has entries for packets that match no other entry
}

// guarding is the state of a session's flood limiters.
type guarding struct {
	without bool     // the switch refuses them
	xids    []uint32 // of the last messages
}

// When flood limiters are written.
const (
	guardAfter   = int64(200 * time.Millisecond) // after the limit of a port began
	guardTimeout = 10                            // seconds until the switch removes the entries
	guardRefresh = int64(4 * time.Second)
)

// guard maintains the flood limiter of a port: it writes the limiter when the
// flood has lasted a while, and again before it times out if the flood goes on.
// The limiter affects only what would go to the controller; packets that match
// other entries pass.
func (s *session) guard(l *portLimit, now int64) {
	traps, misses := l.class == classNeighbours, l.class != classNeighbours
	g := &l.guard
	lasting := g.pushed != 0 && now-g.pushed < int64(guardTimeout)*1e9
	if !lasting {
		g.pushed = 0
	}
	table := flow.ForwardTable(uint32(s.feature.Tables), s.version == openflow.V10)
	switch {
	case !s.hub.cfg.Load().FloodMeters || s.version == openflow.V10 || s.guarding.without:
		return
	case l.calm > 0 || now-l.since < guardAfter || l.table != table || !l.port.Physical() || l.port > 0xffff:
		return
	case lasting && (g.traps || !traps) && (g.misses || !misses) && now-g.pushed < guardRefresh:
		return
	}
	g.traps, g.misses = traps || lasting && g.traps, misses || lasting && g.misses
	g.rate = uint32(l.rate + l.rate/4) // above the limit: shows whether the flood lasts
	g.pushed = now
	d := &flow.Decision{}
	meter := flow.Meter{ID: flow.GuardMeters + uint32(l.port), Flags: openflow.MeterFlagPktps | openflow.MeterFlagBurst,
		Bands: []flow.Band{{Kind: flow.MeterDrop, Rate: g.rate, BurstSize: max(1, g.rate/4)}}}
	if !lasting {
		d.Meter(s.dpid, flow.MeterMod{Command: flow.Delete, Meter: flow.Meter{ID: meter.ID}}) // from an earlier run
		d.Meter(s.dpid, flow.MeterMod{Command: flow.Add, Meter: meter})
	} else {
		d.Meter(s.dpid, flow.MeterMod{Command: flow.Modify, Meter: meter})
	}
	for _, e := range guardEntries(g, table, l.port, l.mac) {
		m := d.AddFlow(s.dpid)
		m.Entry = e
		m.Entry.Meter = meter.ID
		m.Entry.Apply = d.Actions(flow.ToController(s.hub.number(), flow.ReasonAction))
	}
	s.sendGuard(d)
}

// guardEntries returns the entries of a flood limiter, without their
// instructions.
func guardEntries(g *guard, table uint8, port flow.Port, from flow.MAC) (list []flow.Entry) {
	add := func(priority uint16, m flow.Match) {
		if from != (flow.MAC{}) {
			m = m.WithEthSrc(from)
		}
		list = append(list, flow.Entry{
			Table: table, Priority: priority, HardTimeout: guardTimeout, Match: m.WithInPort(port),
			Cookie: flow.NewCookie(flow.OwnerGuard, 0, uint32(port)),
		})
	}
	if g.misses {
		add(flow.PriorityLimitedMiss, flow.Match{})
	}
	if g.traps {
		add(flow.PriorityLimitedTrap, flow.Match{}.WithEthType(flow.EthTypeARP))
		add(flow.PriorityLimitedTrap, flow.Match{}.WithICMPv6Type(flow.ICMPv6Solicit))
		add(flow.PriorityLimitedTrap, flow.Match{}.WithICMPv6Type(flow.ICMPv6Advert))
		for _, dhcp := range []struct {
			ethType, port uint16
		}{{flow.EthTypeIPv4, 67}, {flow.EthTypeIPv4, 68}, {flow.EthTypeIPv6, 546}, {flow.EthTypeIPv6, 547}} {
			add(flow.PriorityLimitedTrap, flow.Match{}.WithEthType(dhcp.ethType).WithUDPDst(dhcp.port))
		}
	}
	return list
}

// unguard removes the flood limiter of a port whose flood is over. With the
// meter the switch removes the entries that use it (OpenFlow 1.3.5 §6.5).
func (s *session) unguard(l *portLimit) {
	if l.guard.pushed == 0 || s.guarding.without {
		return
	}
	l.guard.pushed = 0
	d := &flow.Decision{}
	d.Meter(s.dpid, flow.MeterMod{Command: flow.Delete, Meter: flow.Meter{ID: flow.GuardMeters + uint32(l.port)}})
	s.sendGuard(d)
}

// sendGuard adds the messages of a flood limiter to those of the batch. The
// meters are confirmed before the entries that use them.
func (s *session) sendGuard(d *flow.Decision) {
	if s.hub.intake != nil {
		s.hub.intake.guard(s.dpid, d)
		return
	}
	s.guarding.xids = s.guarding.xids[:0]
	ws := s.in.ws
	barrier := false
	for i := range d.Ops {
		op := &d.Ops[i]
		if op.Kind == flow.OpFlow && !barrier {
			barrier = true
			ws.own = s.version.AppendBarrierRequest(ws.own, s.batch.nextXid(s))
		}
		xid := s.batch.nextXid(s)
		b, err := s.appendOp(ws.own, d, op, xid)
		if err != nil {
			s.hub.unsendable(s, err)
			continue
		}
		ws.own = b
		s.guarding.xids = append(s.guarding.xids, xid)
		s.batch.op(op.Kind)
	}
}

// refused handles the switch's refusal of a flood limiter's message, and
// reports whether it was one. From then on floods are shed on arrival.
func (g *guarding) refused(s *session, e openflow.Error) bool {
	if !slices.Contains(g.xids, e.Xid) {
		return false
	}
	if !g.without {
		g.without = true
		s.hub.log.Warn("switch takes no meters: floods are shed on arrival only", "dpid", s.dpid, "error", e.Error())
	}
	for _, l := range s.admission.limited {
		l.guard.pushed = 0
	}
	return true
}
