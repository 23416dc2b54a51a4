package southbound

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/openflow"
)

// partBytes is what a part of an answer, or a refusal, counts for beside its
// body.
const partBytes = 64

// wait is one exchange that waits for its answer. Its messages have the xids
// first to last; the switch answers the last, and the others only if it refuses
// them.
type wait struct {
	first, last uint32
	done        chan struct{}

	// Written before done is closed, read after.
	refused []rejection
	bodies  [][]byte
	size    int // bytes counted
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
	account *account

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
		return nil, errClosed
	}
	w.list = append(w.list, p)
	return p, nil
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
	p.err = err
	w.account.giveAnswer(p.size)
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
	if most := w.account.answerMost(); p.size+n > most {
		err = &excess{boundAnswer, most}
	} else if err = w.account.takeAnswer(n); err == nil {
		p.size += n
		return true, nil
	}
	w.giveUp(i, err)
	if e := (*excess)(nil); errors.As(err, &e) && e.bound != boundAll {
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
	return true, err
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

// forget gives up an exchange.
func (w *waits) forget(p *wait, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if i := slices.Index(w.list, p); i >= 0 {
		w.finish(i, err)
	}
}

// close ends all exchanges.
func (w *waits) close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed = true
	for len(w.list) > 0 {
		w.finish(0, errClosed)
	}
}

// await waits until an exchange ends, for as long as the context and the
// timeout allow.
func (s *session) await(ctx context.Context, p *wait) error {
	timer := time.NewTimer(s.hub.config.Load().confirmTimeout)
	defer timer.Stop()
	select {
	case <-p.done:
	case <-timer.C:
		s.waits.forget(p, api.Errorf(codes.DeadlineExceeded, "switch %v has not answered within %v", s.dpid, s.hub.config.Load().confirmTimeout))
	case <-ctx.Done():
		s.waits.forget(p, api.Errorf(codes.DeadlineExceeded, "switch %v has not answered in time: %w", s.dpid, ctx.Err()))
	}
	<-p.done
	return p.err
}

// decodedShare is at most how much more memory a decoded answer takes than it
// has bytes: flow entries take ten times as much.
const decodedShare = handshakeShare - 1

// multipart asks the switch for statistics or descriptions. It calls add with
// the bodies of the replies, in order; add returns how many elements it has
// read so far.
func (s *session) multipart(ctx context.Context, req *openflow.MultipartRequest, add func(body []byte) (int, error)) error {
	bodies, err := s.parts(ctx, req)
	if err != nil {
		return err
	}
	size := 0
	for _, b := range bodies {
		size += len(b)
	}
	if err := s.account.take(size * decodedShare); err != nil {
		if e := (*excess)(nil); errors.As(s.exceeds(err), &e) && e.bound != boundAll {
			s.end(err.Error())
		}
		return api.Errorf(codes.ResourceExhausted, "switch %v: %w", s.dpid, err)
	}
	defer s.account.give(size * decodedShare)
	most := elementsMost(req.Type)
	for i, b := range bodies {
		n, err := add(b)
		if err != nil {
			return s.garbled(err)
		}
		if n > most.most {
			err := s.exceeds(&most)
			s.end(err.Error())
			return api.Errorf(codes.ResourceExhausted, "switch %v: %w", s.dpid, err)
		}
		bodies[i] = nil
	}
	return nil
}

// elementsMost returns how many elements an answer may have.
func elementsMost(t openflow.MultipartType) excess {
	switch t {
	case openflow.MultipartTable, openflow.MultipartTableFeatures:
		return excess{boundTables, tablesMost}
	case openflow.MultipartPortStats, openflow.MultipartPortDesc:
		return excess{boundPorts, portsMost}
	case openflow.MultipartQueue:
		return excess{boundQueues, queuesMost}
	case openflow.MultipartGroup, openflow.MultipartGroupDesc:
		return excess{boundGroups, groupsMost}
	case openflow.MultipartMeter, openflow.MultipartMeterConfig:
		return excess{boundMeters, metersMost}
	case openflow.MultipartFlow:
		return excess{boundFlows, flowsMost}
	}
	return excess{boundParts, 1}
}

// parts asks the switch for statistics or descriptions and returns the bodies of
// its replies.
func (s *session) parts(ctx context.Context, req *openflow.MultipartRequest) ([][]byte, error) {
	xid := s.xid.Add(1)
	msg, err := s.version.AppendMultipartRequest(nil, xid, req)
	if err != nil {
		return nil, api.Errorf(codes.Unimplemented, "switch %v: %w", s.dpid, err)
	}
	p, err := s.waits.add(xid, 1)
	if err == nil {
		if err = s.out.put(msg); err != nil {
			s.waits.forget(p, err)
		} else {
			err = s.await(ctx, p)
		}
	}
	if err != nil {
		if refusal := (*openflow.Error)(nil); errors.As(err, &refusal) {
			err = api.Errorf(codes.Unimplemented, "switch %v: %w", s.dpid, err)
		} else if api.KindOf(err) == codes.Unknown {
			err = api.Errorf(codes.Unavailable, "switch %v: %w", s.dpid, err)
		}
		return nil, err
	}
	return p.bodies, nil
}
