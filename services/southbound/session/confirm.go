package session

import (
	"context"
	"slices"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/services/southbound/admission"
	"github.com/weft-sdn/weft/services/southbound/recovery"
)

// confirmingMost is how many decisions wait at once for switches to confirm
// what those who watch packets want to know.
const confirmingMost = 512

// watchedShare is the part of a watched decision that is for one switch.
type watchedShare struct {
	s      *Session // nil: not connected
	dpid   dpid
	xid    uint32 // of its next message
	left   int    // messages
	wait   *wait  // nil: it has nothing to confirm
	failed map[int]error
}

func (w *watchedShare) fail(op int, err error) {
	if w.failed == nil {
		w.failed = map[int]error{}
	}
	w.failed[op] = err
}

// carryWatched carries out a decision about a packet that somebody watches, as
// encode does: own, if it is not nil, has its messages appended to m. Behind the
// last message for each switch that the decision changes goes a barrier, and a
// goroutine tells what the switches answer.
func (h *Shared) carryWatched(d *flow.Decision, own *Session, m *messages) (failures []*api.ApplyFailure) {
	kept := copyOps(d)
	asks := h.confirming.Add(1) <= confirmingMost
	shares := h.shareWatched(kept, asks)
	var last *watchedShare
	first := 0 // operation in m.foreign
	flush := func(end int) {
		if last == nil || len(m.foreign) == 0 {
			return
		}
		err := last.s.out.put(m.foreign)
		if err != nil {
			last.s.shed(err, m.foreign)
			for i := first; i < end; i++ {
				last.fail(i, err)
				failures = append(failures, failure(last.dpid, i, err, true))
			}
		}
		m.foreign = m.foreign[:0]
	}
	for i := range kept.Ops {
		op := &kept.Ops[i]
		sh := shares.of(op.Switch)
		if sh != last {
			flush(i)
			last, first = sh, i
		}
		if sh.s == nil {
			h.shedOp(recovery.Away, op.Kind)
			sh.fail(i, admission.ErrClosed)
			failures = append(failures, failure(op.Switch, i, admission.ErrClosed, true))
			continue
		}
		to := &m.foreign
		if sh.s == own {
			to = &m.own
		}
		b, err := sh.s.appendOp(*to, kept, op, sh.xid)
		if err != nil {
			h.countUnsendable(&sh.s.channel, op.Kind, err)
			sh.fail(i, err)
			failures = append(failures, failure(op.Switch, i, err, false))
		} else {
			*to = b
			sh.s.count.op(op.Kind)
		}
		sh.xid++
		if sh.left--; sh.left == 0 && sh.wait != nil {
			*to = sh.s.Version.AppendBarrierRequest(*to, sh.xid)
		}
	}
	flush(len(kept.Ops))
	go func() {
		defer h.confirming.Add(-1)
		ctx, cancel := context.WithTimeout(context.Background(), h.Config.Load().ConfirmTimeout)
		defer cancel()
		for _, sw := range kept.Programs(0) {
			sh := shares.of(sw)
			h.reportConfirmed(ctx, kept, sh, asks)
		}
	}()
	return failures
}

// watchedShares are the shares of a decision, in the order of their first
// operations.
type watchedShares []*watchedShare

func (l watchedShares) of(sw dpid) *watchedShare {
	for _, sh := range l {
		if sh.dpid == sw {
			return sh
		}
	}
	return nil
}

// shareWatched divides a decision among switches, and takes transaction ids for
// its messages.
func (h *Shared) shareWatched(d *flow.Decision, asks bool) (shares watchedShares) {
	programs := d.Programs(0)
	for i := range d.Ops {
		sw := d.Ops[i].Switch
		sh := shares.of(sw)
		if sh == nil {
			sh = &watchedShare{s: h.Session(sw), dpid: sw}
			shares = append(shares, sh)
		}
		sh.left++
	}
	for _, sh := range shares {
		if sh.s == nil {
			continue
		}
		last := sh.s.xid.Add(uint32(sh.left + 1)) // that of the barrier
		sh.xid = last - uint32(sh.left)
		if asks && slices.Contains(programs, sh.dpid) {
			if w, err := sh.s.waits.addBeside(last, sh.left+1); err == nil {
				sh.wait = w
			}
		}
	}
	return shares
}

// reportConfirmed waits until the switch of a share has answered, and tells what.
func (h *Shared) reportConfirmed(ctx context.Context, d *flow.Decision, sh *watchedShare, asks bool) {
	c := &flow.Confirmation{Decision: d, Switch: sh.dpid, Ended: time.Now(), Failed: sh.failed}
	var err error
	switch {
	case sh.wait != nil:
		err = sh.s.await(ctx, sh.wait)
		c.Ended = sh.wait.ended
		if err == nil && !h.fence.Open() {
			err = errFenced // it may have answered the barrier alone
		}
		for _, r := range sh.wait.refused {
			sh.fail(sh.opAt(d, r.at), api.Errorf(codes.FailedPrecondition, "%w", &r.err))
		}
	case !asks:
		err = api.Errorf(codes.ResourceExhausted, "the switch is not asked, as too many others are being waited for")
	default:
		err = admission.ErrClosed
	}
	for i := range d.Ops {
		if op := &d.Ops[i]; err != nil && op.Switch == sh.dpid && sh.failed[i] == nil {
			sh.fail(i, err)
		}
	}
	c.Failed = sh.failed
	h.Confirmed(c)
}

// opAt returns the number of the operation of a share's message.
func (w *watchedShare) opAt(d *flow.Decision, at int) int {
	for i := range d.Ops {
		if d.Ops[i].Switch == w.dpid {
			if at == 0 {
				return i
			}
			at--
		}
	}
	return len(d.Ops)
}

// appliedWatched tells what became of a decision whose end has been waited for.
func (h *Shared) appliedWatched(d *flow.Decision, r *api.ApplyResult) {
	failed := map[int]error{}
	for _, f := range r.GetFailures() {
		kind := codes.FailedPrecondition
		if f.Transient {
			kind = codes.Unavailable
		}
		failed[int(f.Op)] = api.Errorf(kind, "%s", f.Text)
	}
	for _, sw := range d.Programs(0) {
		h.Confirmed(&flow.Confirmation{Decision: d, Switch: sw, Ended: time.Now(), Failed: failed})
	}
}
