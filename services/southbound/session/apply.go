package session

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/internal/backoff"
	"github.com/weft-sdn/weft/openflow"
	"github.com/weft-sdn/weft/services/southbound/admission"
	"github.com/weft-sdn/weft/services/southbound/recovery"
)

// batch numbers and counts the messages of one goroutine to its session's own
// switch.
type batch struct {
	batchCounts
	xidNext, xidsLeft uint32
}

// nextXid returns a transaction id. It takes ids from the session's counter in
// blocks, because the counter is shared.
func (b *batch) nextXid(c *channel) uint32 {
	if b.xidsLeft == 0 {
		b.xidsLeft = 1 << 12
		b.xidNext = c.xid.Add(b.xidsLeft) - b.xidsLeft
	}
	b.xidsLeft--
	b.xidNext++
	return b.xidNext
}

// emit carries out the decision about a packet, on the goroutine that read it.
// It gathers messages for the session's own switch until the end of the batch,
// and sends those for other switches at once, and so before them; only a
// decision that does nothing but send a packet out of another switch waits.
func (s *Session) emit(d *flow.Decision) {
	h := s.shared
	switch {
	case h.Receiver != nil:
		h.Receiver.Carry(s.DPID, d)
		return
	case d.Trace == 0 && d.Solely(s.DPID):
		s.batch.encodeOwn(&s.channel, d, &s.in.ws.messages)
		return
	case d.Fenced():
		h.applyLater(d)
		return
	case d.Trace != 0:
		h.carryWatched(d, s, &s.in.ws.messages)
		return
	}
	if at, yes := soleTarget(d); yes && at != s.DPID {
		if target := h.Session(at); target != nil {
			s.holding.add(target, d, &s.in.ws.messages, s.at)
		} else {
			h.shedOp(recovery.Away, flow.OpPacketOut)
		}
		return
	}
	s.batch.encode(&s.channel, d, &s.in.ws.messages)
}

// encodeOwn is encode for a decision that is for the session's own switch alone.
func (b *batch) encodeOwn(c *channel, d *flow.Decision, m *messages) {
	for i := range d.Ops {
		op := &d.Ops[i]
		msg, err := c.appendOp(m.own, d, op, b.nextXid(c))
		if err != nil {
			c.shared.countUnsendable(c, op.Kind, err)
			continue
		}
		m.own = msg
		b.op(op.Kind)
	}
}

// encode appends the messages of a decision for the session's own switch to
// those that wait, and sends the others.
func (b *batch) encode(c *channel, d *flow.Decision, m *messages) {
	h := c.shared
	var target *Session
	for i := range d.Ops {
		op := &d.Ops[i]
		if op.Switch == c.DPID {
			if msg, err := c.appendOp(m.own, d, op, b.nextXid(c)); err != nil {
				h.countUnsendable(c, op.Kind, err)
			} else {
				m.own = msg
				b.op(op.Kind)
			}
			continue
		}
		if target == nil || target.DPID != op.Switch {
			m.sendForeign(target)
			if target = h.Session(op.Switch); target == nil {
				h.shedOp(recovery.Away, op.Kind)
				continue
			}
		}
		if msg, err := target.appendOp(m.foreign, d, op, target.xid.Add(1)); err != nil {
			h.countUnsendable(&target.channel, op.Kind, err)
		} else {
			m.foreign = msg
			target.count.op(op.Kind)
		}
	}
	m.sendForeign(target)
}

func (m *messages) sendForeign(target *Session) {
	if len(m.foreign) == 0 {
		return
	}
	if err := target.out.put(m.foreign); err != nil {
		target.shed(err, m.foreign)
	}
	m.foreign = m.foreign[:0]
}

// applyRemote applies a decision that stages in another process have made, on the
// goroutine that delivers it. It gathers the messages for the session's own switch
// until nil ends a series of decisions.
func (s *Session) applyRemote(d *flow.Decision) {
	switch {
	case d == nil:
		s.remote.send(&s.channel)
		s.progress.Back(s.pipeline.Returned())
	case s.shared.Receiver != nil:
		s.shared.Receiver.Carry(s.DPID, d)
	case d.Fenced():
		s.remote.send(&s.channel)
		s.shared.applyLater(d)
	default:
		if d.Trace != 0 {
			s.shared.carryWatched(d, s, &s.remote.messages)
		} else if d.Solely(s.DPID) {
			s.remote.encodeOwn(&s.channel, d, &s.remote.messages)
		} else {
			s.remote.encode(&s.channel, d, &s.remote.messages)
		}
		if len(s.remote.own) >= flushAt {
			s.remote.send(&s.channel)
		}
	}
}

// sendLimiter adds the messages of a flood limiter to those of the batch. The
// meters are confirmed before the entries that use them.
func (s *Session) sendLimiter(d *flow.Decision) {
	if s.shared.Receiver != nil {
		s.shared.Receiver.limit(s.DPID, d)
		return
	}
	s.floods.xids = s.floods.xids[:0]
	ws := s.in.ws
	barrier := false
	for i := range d.Ops {
		op := &d.Ops[i]
		if op.Kind == flow.OpFlow && !barrier {
			barrier = true
			ws.own = s.Version.AppendBarrierRequest(ws.own, s.batch.nextXid(&s.channel))
		}
		xid := s.batch.nextXid(&s.channel)
		b, err := s.appendOp(ws.own, d, op, xid)
		if err != nil {
			s.shared.countUnsendable(&s.channel, op.Kind, err)
			continue
		}
		ws.own = b
		s.floods.xids = append(s.floods.xids, xid)
		s.batch.op(op.Kind)
	}
}

// remoteOutput gathers the messages of decisions made by other processes for the
// session's own switch until they are written.
type remoteOutput struct {
	batch
	messages
}

// send writes the messages gathered.
func (r *remoteOutput) send(c *channel) {
	c.count.add(&r.batchCounts)
	if len(r.own) == 0 {
		return
	}
	if err := c.out.put(r.own); err != nil {
		c.shed(err, r.own)
	}
	r.own = r.own[:0]
}

// applyLater carries out a decision that has fences, without waiting for it.
func (h *Shared) applyLater(d *flow.Decision) {
	kept := copyOps(d)
	go func() { _, _ = h.Apply(context.Background(), kept) }()
}

// countUnsendable counts an operation that could not be encoded, by the error.
func (h *Shared) countUnsendable(c *channel, kind flow.OpKind, err error) {
	if errors.Is(err, admission.ErrClaimed) {
		h.shedOp(recovery.NotOwn, kind)
		return
	}
	h.shedOp(recovery.Unsendable, kind)
	h.Log.Warn("message cannot be sent", "dpid", c.DPID, "error", err)
}

// shedOp counts an operation that is not sent.
func (h *Shared) shedOp(why recovery.Reason, kind flow.OpKind) {
	outs := uint64(0)
	if kind == flow.OpPacketOut {
		outs = 1
	}
	h.tally.Shed(why, 1, outs)
}

// copyOps returns a copy of d that shares no memory with it.
func copyOps(d *flow.Decision) *flow.Decision {
	c := &flow.Decision{Trace: d.Trace}
	for _, op := range d.Ops {
		switch op.Kind {
		case flow.OpFlow:
			m := d.Flows[op.Index]
			m.Entry = m.Entry.Clone()
			c.Flow(op.Switch, m)
		case flow.OpGroup:
			g := d.Groups[op.Index]
			g.Group.Buckets = slices.Clone(g.Group.Buckets)
			for i := range g.Group.Buckets {
				g.Group.Buckets[i].Actions = slices.Clone(g.Group.Buckets[i].Actions)
			}
			c.Group(op.Switch, g)
		case flow.OpMeter:
			m := d.Meters[op.Index]
			m.Meter.Bands = slices.Clone(m.Meter.Bands)
			c.Meter(op.Switch, m)
		case flow.OpPacketOut:
			o := d.Outs[op.Index]
			o.Actions, o.Data = slices.Clone(o.Actions), slices.Clone(o.Data)
			c.PacketOut(op.Switch, o)
		case flow.OpFence:
			c.Fence()
		}
	}
	return c
}

// Apply answers api.Apply: it carries out a decision and waits until every
// switch that it touches has confirmed. If not all operations before a fence
// are confirmed it sends nothing more.
func (h *Shared) Apply(ctx context.Context, d *flow.Decision) (*api.ApplyResult, error) {
	h.expect(ctx, d)
	result := &api.ApplyResult{}
	for start := 0; start < len(d.Ops); {
		end := start
		for end < len(d.Ops) && d.Ops[end].Kind != flow.OpFence {
			end++
		}
		h.applySegment(ctx, d, start, end, result)
		if len(result.Failures) > 0 {
			for i := end; i < len(d.Ops); i++ {
				if op := &d.Ops[i]; op.Kind != flow.OpFence {
					result.Failures = append(result.Failures, failure(op.Switch, i, errors.New("not sent: an operation before the fence has failed"), true))
				}
			}
			break
		}
		start = end + 1
	}
	if d.Trace != 0 {
		h.appliedWatched(d, result)
	}
	return result, nil
}

// comingMost bounds how long decisions wait for a switch that is about to be
// taken over.
const comingMost = 2 * time.Second

// expect waits for the switches of a decision that are about to come up.
func (h *Shared) expect(ctx context.Context, d *flow.Decision) {
	for i := range d.Ops {
		sw := d.Ops[i].Switch
		if d.Ops[i].Kind == flow.OpFence || h.Session(sw) != nil || !h.owner.Coming(sw) {
			continue
		}
		for end := time.Now().Add(comingMost); h.Session(sw) == nil && time.Now().Before(end); {
			if backoff.Sleep(ctx, 2*time.Millisecond) != nil {
				return
			}
		}
	}
}

// share is the part of a segment that concerns one switch.
type share struct {
	s    *Session
	ops  []int // numbers in the decision
	wait *wait
}

// applySegment sends the operations from start to end, none of them a fence,
// with a barrier for each switch, and waits for the barriers.
func (h *Shared) applySegment(ctx context.Context, d *flow.Decision, start, end int, result *api.ApplyResult) {
	fail := func(sw dpid, op int, err error, transient bool) {
		result.Failures = append(result.Failures, failure(sw, op, err, transient))
	}
	shares := make([]*share, 0, 8)
	of := map[dpid]*share{}
	for i := start; i < end; i++ {
		sw := d.Ops[i].Switch
		sh := of[sw]
		if sh == nil {
			sh = &share{s: h.Session(sw)}
			of[sw] = sh
			shares = append(shares, sh)
		}
		if sh.s == nil {
			h.shedOp(recovery.Away, d.Ops[i].Kind)
			fail(sw, i, admission.ErrClosed, true)
			continue
		}
		sh.ops = append(sh.ops, i)
	}
	var buf []byte
	for _, sh := range shares {
		if len(sh.ops) == 0 {
			continue
		}
		s := sh.s
		last := s.xid.Add(uint32(len(sh.ops) + 1))
		buf = buf[:0]
		for k, i := range sh.ops {
			b, err := s.appendOp(buf, d, &d.Ops[i], last-uint32(len(sh.ops)-k))
			if err != nil {
				fail(s.DPID, i, err, false)
				continue
			}
			buf = b
			s.count.op(d.Ops[i].Kind)
		}
		buf = s.Version.AppendBarrierRequest(buf, last)
		p, err := s.waits.add(last, len(sh.ops)+1)
		if err == nil {
			if err = s.out.put(buf); err != nil {
				s.waits.forget(p, err)
				s.shed(err, buf)
			}
		}
		if err != nil {
			for _, i := range sh.ops {
				fail(s.DPID, i, err, true)
			}
			continue
		}
		sh.wait = p
	}
	for _, sh := range shares {
		if sh.wait == nil {
			continue
		}
		if err := sh.s.await(ctx, sh.wait); err != nil {
			for _, i := range sh.ops {
				fail(sh.s.DPID, i, err, true)
			}
			continue
		}
		for _, r := range sh.wait.refused {
			fail(sh.s.DPID, sh.ops[r.at], &r.err, false)
		}
	}
}

func failure(sw dpid, op int, err error, transient bool) *api.ApplyFailure {
	f := &api.ApplyFailure{Dpid: sw.String(), Op: uint32(op), Text: err.Error(), Transient: transient}
	if e := (*openflow.Error)(nil); errors.As(err, &e) {
		f.Type, f.Code = uint32(e.Type), uint32(e.Code)
	}
	return f
}

// Send answers api.Send: it queues a decision and does not wait. It sends
// consecutive operations on one switch together.
func (h *Shared) Send(ctx context.Context, d *flow.Decision) (*api.ApplyResult, error) {
	h.expect(ctx, d)
	result := &api.ApplyResult{}
	if d.Fenced() {
		h.applyLater(d)
		return result, nil
	}
	if d.Trace != 0 {
		result.Failures = h.carryWatched(d, nil, &messages{})
		return result, nil
	}
	room := h.rooms.get()
	buf := (*room)[:0]
	defer func() { *room = buf; h.rooms.put(room) }()
	var target *Session
	first := 0
	deliver := func(end int) {
		if len(buf) == 0 {
			return
		}
		if err := target.out.put(buf); err != nil {
			target.shed(err, buf)
			for i := first; i < end; i++ {
				result.Failures = append(result.Failures, failure(target.DPID, i, err, true))
			}
		}
		buf = buf[:0]
	}
	for i := range d.Ops {
		op := &d.Ops[i]
		if target == nil || target.DPID != op.Switch {
			deliver(i)
			first = i
			if target = h.Session(op.Switch); target == nil {
				h.shedOp(recovery.Away, op.Kind)
				result.Failures = append(result.Failures, failure(op.Switch, i, admission.ErrClosed, true))
				continue
			}
		}
		b, err := target.appendOp(buf, d, op, target.xid.Add(1))
		if err != nil {
			result.Failures = append(result.Failures, failure(op.Switch, i, err, false))
			continue
		}
		buf = b
		target.count.op(op.Kind)
	}
	deliver(len(d.Ops))
	return result, nil
}
