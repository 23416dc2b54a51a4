package southbound

import (
	"slices"
	"time"

	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/openflow"
)

// guarding is the state of a session's flood limiters.
type guarding struct {
	without bool     // the switch refuses them
	xids    []uint32 // of the last messages
}

// When flood limiters are written.
const (
	guardAfter   = int64(200 * time.Millisecond) // after the limit of a port began
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
	case !s.hub.config.Load().floodMeters || s.version == openflow.V10 || s.guarding.without:
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
	if s.hub.receiver != nil {
		s.hub.receiver.limit(s.dpid, d)
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
