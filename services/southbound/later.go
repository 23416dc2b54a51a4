package southbound

import "github.com/weft-sdn/weft/flow"

// later carries out a decision that stages in another process have made, on the
// goroutine that delivers it; nil ends a series of decisions. Until then it
// gathers what is for the session's own switch.
func (s *session) later(d *flow.Decision) {
	if s.hub.intake != nil {
		if d != nil {
			s.hub.intake.cfg.Carry(s.dpid, d)
		} else {
			s.progress.back(s.pipeline.Returned())
		}
		return
	}
	if d == nil {
		s.sendLate()
		s.progress.back(s.pipeline.Returned())
		return
	}
	if d.Fenced() {
		s.sendLate()
		s.hub.applyLater(d)
		return
	}
	for i := range d.Ops {
		op := &d.Ops[i]
		if op.Switch == s.dpid {
			b, err := s.appendOp(s.late.own, d, op, s.late.nextXid(s))
			if err != nil {
				s.hub.unsendable(s, err)
				continue
			}
			s.late.own = b
			s.late.batch.op(op.Kind)
			continue
		}
		target := s.late.target
		if target == nil || target.dpid != op.Switch {
			s.sendForeignLate()
			if target = s.hub.session(op.Switch); target == nil {
				s.hub.total.shed.away.Add(1)
				continue
			}
			s.late.target = target
		}
		b, err := target.appendOp(s.late.foreign, d, op, target.xid.Add(1))
		if err != nil {
			s.hub.unsendable(target, err)
			continue
		}
		s.late.foreign = b
		target.count.op(op.Kind)
	}
	s.sendForeignLate() // before the own switch's messages: a packet goes out behind its entries
	if len(s.late.own) >= flushAt {
		s.sendLate()
	}
}

// late is the output of decisions of other processes that is not sent yet.
type late struct {
	own      []byte
	foreign  []byte
	target   *session // for foreign
	batch    batchCounts
	xidNext  uint32
	xidsLeft uint32
}

// nextXid returns a transaction id for a message to the session's own switch,
// from a block of the session's ids.
func (l *late) nextXid(s *session) uint32 {
	if l.xidsLeft == 0 {
		l.xidsLeft = 1 << 12
		l.xidNext = s.xid.Add(l.xidsLeft) - l.xidsLeft
	}
	l.xidsLeft--
	l.xidNext++
	return l.xidNext
}

func (s *session) sendLate() {
	s.count.add(&s.late.batch)
	if len(s.late.own) == 0 {
		return
	}
	if err := s.out.put(s.late.own); err != nil {
		s.shed(err)
	}
	s.late.own = s.late.own[:0]
}

func (s *session) sendForeignLate() {
	if len(s.late.foreign) > 0 {
		if err := s.late.target.out.put(s.late.foreign); err != nil {
			s.late.target.shed(err)
		}
	}
	s.late.foreign, s.late.target = s.late.foreign[:0], nil
}
