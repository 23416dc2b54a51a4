package southbound

import "weft/flow"

// later carries out a decision of stages in another process, on the goroutine
// that brings it; nil ends a series of them. What is for the session's own
// switch is gathered until then.
func (s *session) later(d *flow.Decision) {
	if d == nil {
		s.sendLate()
		return
	}
	if d.Fenced() {
		s.sendLate()
		s.hub.applyLater(d)
		return
	}
	for i := range d.Ops {
		op := &d.Ops[i]
		target := s
		if op.Switch != s.dpid {
			if target = s.hub.session(op.Switch); target == nil {
				s.hub.total.shed.away.Add(1)
				continue
			}
		}
		buf := &s.late.own
		if target != s {
			if buf = &s.late.foreign; s.late.target != target {
				s.sendForeignLate()
				s.late.target = target
			}
		}
		b, err := target.appendOp(*buf, d, op, target.xid.Add(1))
		if err != nil {
			s.hub.unsendable(target, err)
			continue
		}
		*buf = b
		target.count.op(op.Kind)
	}
	s.sendForeignLate() // before what the own switch gets: a packet goes out behind its entries
	if len(s.late.own) >= flushAt {
		s.sendLate()
	}
}

// late is what decisions of other processes have come to and has not been sent
// yet.
type late struct {
	own     []byte
	foreign []byte
	target  *session // of foreign
}

func (s *session) sendLate() {
	if len(s.late.own) == 0 {
		return
	}
	if err := s.out.put(s.late.own); err != nil {
		s.shed(err)
	}
	s.late.own = s.late.own[:0]
}

func (s *session) sendForeignLate() {
	if len(s.late.foreign) == 0 {
		return
	}
	if err := s.late.target.out.put(s.late.foreign); err != nil {
		s.late.target.shed(err)
	}
	s.late.foreign = s.late.foreign[:0]
}
