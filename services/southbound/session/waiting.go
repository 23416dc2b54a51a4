package session

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/openflow"
	"github.com/weft-sdn/weft/services/southbound/admission"
)

// partBytes is what a part of an answer, or a refusal, counts for beside its
// body.
const partBytes = 64

// wait is one exchange that waits for its answer. Its messages have the xids
// first to last; the switch answers the last, and the others only if it refuses
// them.
type wait struct {
	first, last uint32
	beside      bool // who sent the messages is told of refusals in the usual way, too
	done        chan struct{}

	// Written before done is closed, read after.
	refused []rejection
	bodies  [][]byte
	size    int // bytes counted
	ended   time.Time
	err     error
}

// rejection is a message that the switch refused: its place in the exchange and
// the switch's error.
type rejection struct {
	at  int
	err openflow.Error
}

// waits are the pending exchanges of one session.
type waits struct {
	account *admission.Account

	mu     sync.Mutex // guards list and closed, and the exchanges in list
	list   []*wait
	closed bool
}

// add begins an exchange of n messages; last is the xid of the last.
func (w *waits) add(last uint32, n int) (*wait, error) {
	p := &wait{first: last - uint32(n) + 1, last: last, done: make(chan struct{})}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return nil, admission.ErrClosed
	}
	w.list = append(w.list, p)
	return p, nil
}

// addBeside is add for an exchange that only looks at what becomes of messages.
func (w *waits) addBeside(last uint32, n int) (*wait, error) {
	p, err := w.add(last, n)
	if err == nil {
		w.mu.Lock()
		p.beside = true
		w.mu.Unlock()
	}
	return p, err
}

func (w *waits) find(xid uint32) int {
	for i, p := range w.list {
		if xid-p.first <= p.last-p.first {
			return i
		}
	}
	return -1
}

func (w *waits) finish(i int, err error) {
	p := w.list[i]
	w.list = slices.Delete(w.list, i, i+1)
	p.err, p.ended = err, time.Now()
	w.account.GiveAnswer(p.size)
	close(p.done)
}

// abandon ends all exchanges that hold part of an answer.
func (w *waits) abandon(why error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i := len(w.list) - 1; i >= 0; i-- {
		if w.list[i].size > 0 {
			w.giveUp(i, why)
		}
	}
}

// giveUp ends an exchange because there is no room for its answer.
func (w *waits) giveUp(i int, why error) {
	w.list[i].bodies = nil
	w.finish(i, api.Errorf(codes.ResourceExhausted, "the answer of the switch is given up: %w", why))
}

// keep accounts for n more bytes of an answer. It returns an error, which ends
// the session, if the answer, or all that is held for the switch, is too long.
// If there is no room, kept is false and the exchange ends.
func (w *waits) keep(i, n int) (kept bool, err error) {
	p := w.list[i]
	if most := w.account.AnswerMost(); p.size+n > most {
		err = admission.NewExcess(admission.BoundAnswer, most)
	} else if err = w.account.TakeAnswer(n); err == nil {
		p.size += n
		return true, nil
	}
	w.giveUp(i, err)
	if e := (*admission.Excess)(nil); errors.As(err, &e) && e.Bound != admission.BoundAll {
		return false, err
	}
	return false, nil
}

// refuse records the switch's error and reports whether an exchange waits for
// it. An error from refuse ends the session.
func (w *waits) refuse(e openflow.Error) (waited bool, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	i := w.find(e.Xid)
	if i < 0 {
		return false, nil
	}
	p := w.list[i]
	e.Data = nil
	if e.Xid == p.last {
		w.finish(i, &e)
		return true, nil
	}
	kept, err := w.keep(i, partBytes)
	if kept {
		p.refused = append(p.refused, rejection{int(e.Xid - p.first), e})
	}
	return !p.beside, err
}

// answer completes an exchange, or adds one part to its answer. An error from
// answer ends the session.
func (w *waits) answer(xid uint32, body []byte, more bool) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	i := w.find(xid)
	if i < 0 || w.list[i].last != xid {
		return nil
	}
	if body != nil {
		if kept, err := w.keep(i, len(body)+partBytes); !kept {
			return err
		}
		w.list[i].bodies = append(w.list[i].bodies, slices.Clone(body))
	}
	if !more {
		w.finish(i, nil)
	}
	return nil
}

// forget gives up an exchange, and reports whether it had not ended.
func (w *waits) forget(p *wait, err error) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	i := slices.Index(w.list, p)
	if i >= 0 {
		w.finish(i, err)
	}
	return i >= 0
}

// forgetSilent gives up an exchange of which no part has arrived.
func (w *waits) forgetSilent(p *wait, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if i := slices.Index(w.list, p); i >= 0 && p.size == 0 {
		w.finish(i, err)
	}
}

// close ends all exchanges.
func (w *waits) close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed = true
	for len(w.list) > 0 {
		w.finish(0, admission.ErrClosed)
	}
}

// exchanges are the requests of a session and what comes back for them: those under
// way, and which kinds the switch is known to answer. Any goroutine may use it.
type exchanges struct {
	*channel
	waits   waits
	answers [openflow.MultipartPortDesc + 1]atomic.Bool // it has answered requests of the type
}

// await waits until an exchange ends, for as long as the context and the
// timeout allow.
func (x *exchanges) await(ctx context.Context, p *wait) error {
	timer := time.NewTimer(x.shared.Config.Load().ConfirmTimeout)
	defer timer.Stop()
	select {
	case <-p.done:
	case <-timer.C:
		x.waits.forget(p, api.Errorf(codes.DeadlineExceeded, "switch %v has not answered within %v", x.DPID, x.shared.Config.Load().ConfirmTimeout))
	case <-ctx.Done():
		x.waits.forget(p, api.Errorf(codes.DeadlineExceeded, "switch %v has not answered in time: %w", x.DPID, ctx.Err()))
	}
	<-p.done
	return p.err
}

// decodedShare is at most how much more memory a decoded answer takes than it
// has bytes: flow entries take ten times as much.
const decodedShare = admission.HandshakeShare - 1

// Multipart asks the switch for statistics or descriptions. It calls add with
// the bodies of the replies, in order; add returns how many elements it has
// read so far.
func (x *exchanges) Multipart(ctx context.Context, req *openflow.MultipartRequest, add func(body []byte) (int, error)) error {
	bodies, err := x.parts(ctx, req)
	if err != nil {
		return err
	}
	size := 0
	for _, b := range bodies {
		size += len(b)
	}
	if err := x.account.Take(size * decodedShare); err != nil {
		if e := (*admission.Excess)(nil); errors.As(x.recordExcess(err), &e) && e.Bound != admission.BoundAll {
			x.End(err.Error())
		}
		return api.Errorf(codes.ResourceExhausted, "switch %v: %w", x.DPID, err)
	}
	defer x.account.Give(size * decodedShare)
	most := elementsMost(req.Type)
	for i, b := range bodies {
		n, err := add(b)
		if err != nil {
			return x.Garbled(err)
		}
		if n > most.Most {
			err := x.recordExcess(most)
			x.End(err.Error())
			return api.Errorf(codes.ResourceExhausted, "switch %v: %w", x.DPID, err)
		}
		bodies[i] = nil
	}
	return nil
}

// elementsMost returns how many elements an answer may have.
func elementsMost(t openflow.MultipartType) *admission.Excess {
	switch t {
	case openflow.MultipartTable, openflow.MultipartTableFeatures:
		return admission.NewExcess(admission.BoundTables, admission.TablesMost)
	case openflow.MultipartPortStats, openflow.MultipartPortDesc:
		return admission.NewExcess(admission.BoundPorts, admission.PortsMost)
	case openflow.MultipartQueue:
		return admission.NewExcess(admission.BoundQueues, admission.QueuesMost)
	case openflow.MultipartGroup, openflow.MultipartGroupDesc:
		return admission.NewExcess(admission.BoundGroups, admission.GroupsMost)
	case openflow.MultipartMeter, openflow.MultipartMeterConfig:
		return admission.NewExcess(admission.BoundMeters, admission.MetersMost)
	case openflow.MultipartFlow:
		return admission.NewExcess(admission.BoundFlows, admission.FlowsMost)
	}
	return admission.NewExcess(admission.BoundParts, 1)
}

// silentFor is how long a switch that has answered a barrier may still take for
// what was asked before it.
const silentFor = 250 * time.Millisecond

// parts asks the switch for statistics or descriptions and returns the bodies of
// its replies. Until the switch has answered a request of the kind, a barrier
// follows it: a switch deals with all that comes before a barrier before it
// answers that (OpenFlow 1.3.5 section 7.3.8), so one that answers the barrier
// only does not answer such requests, and nobody waits for it.
func (x *exchanges) parts(ctx context.Context, req *openflow.MultipartRequest) ([][]byte, error) {
	fenced := !x.answers[req.Type].Load()
	n := 1
	if fenced {
		n = 2
	}
	xid := x.xid.Add(uint32(n)) - uint32(n) + 1
	msg, err := x.Version.AppendMultipartRequest(nil, xid, req)
	if err != nil {
		return nil, api.Errorf(codes.Unimplemented, "switch %v: %w", x.DPID, err)
	}
	p, err := x.waits.add(xid, 1)
	if err != nil {
		return nil, x.readError(err)
	}
	if fenced {
		fence, err := x.waits.add(xid+1, 1)
		if err != nil {
			x.waits.forget(p, err)
			return nil, x.readError(err)
		}
		msg = x.Version.AppendBarrierRequest(msg, xid+1)
		watched, end := context.WithCancel(ctx)
		defer end()
		go x.giveUpSilent(watched, p, fence)
	}
	if err = x.out.put(msg); err != nil {
		x.waits.forget(p, err)
	} else {
		err = x.await(ctx, p)
	}
	if err != nil {
		return nil, x.readError(err)
	}
	x.answers[req.Type].Store(true)
	return p.bodies, nil
}

// giveUpSilent ends an exchange when the switch has answered the barrier behind
// it, and no part of it silentFor later.
func (x *exchanges) giveUpSilent(ctx context.Context, p, fence *wait) {
	select {
	case <-fence.done:
	case <-p.done:
	case <-ctx.Done():
	}
	if fenced := x.waits.forget(fence, ctx.Err()); fenced || fence.err != nil {
		return // not answered, or refused
	}
	select {
	case <-p.done:
	case <-ctx.Done():
	case <-time.After(silentFor):
		x.waits.forgetSilent(p, api.Errorf(codes.Unimplemented, "switch %v has not answered such a request, but the barrier after it", x.DPID))
	}
}

// readError is the error for an answer that could not be had.
func (x *exchanges) readError(err error) error {
	if refusal := (*openflow.Error)(nil); errors.As(err, &refusal) {
		return api.Errorf(codes.Unimplemented, "switch %v: %w", x.DPID, err)
	}
	if api.KindOf(err) == codes.Unknown {
		return api.Errorf(codes.Unavailable, "switch %v: %w", x.DPID, err)
	}
	return err
}
