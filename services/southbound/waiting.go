package southbound

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc/codes"

	"weft/api"
	"weft/openflow"
)

// replyMax bounds the replies to one request that are kept.
const replyMax = 256 << 20

// wait is one exchange that waits for its answer: the messages first to last,
// of which the last is the one that is answered, all others only if refused.
type wait struct {
	first, last uint32
	done        chan struct{}

	// Written before done is closed, read after.
	refused []refusal
	bodies  [][]byte
	size    int
	err     error
}

// refusal is a message that the switch has refused: its place in the exchange
// and the switch's error.
type refusal struct {
	at  int
	err openflow.Error
}

// waits are the exchanges of one session that wait.
type waits struct {
	mu     sync.Mutex // guards list and closed, and what is in the list
	list   []*wait
	closed bool
}

// add begins an exchange of n messages whose last has the given xid.
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
	close(p.done)
}

// refuse records the switch's error; it reports whether somebody waits for it.
func (w *waits) refuse(e openflow.Error) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	i := w.find(e.Xid)
	if i < 0 {
		return false
	}
	p := w.list[i]
	e.Data = nil
	if e.Xid == p.last {
		w.finish(i, &e)
		return true
	}
	p.refused = append(p.refused, refusal{int(e.Xid - p.first), e})
	return true
}

// answer completes an exchange, or adds one part to its answer.
func (w *waits) answer(xid uint32, body []byte, more bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	i := w.find(xid)
	if i < 0 || w.list[i].last != xid {
		return
	}
	p := w.list[i]
	p.size += len(body)
	if p.size > replyMax {
		w.finish(i, api.Errorf(codes.ResourceExhausted, "the answer of the switch is longer than %d MiB", replyMax>>20))
		return
	}
	if body != nil {
		p.bodies = append(p.bodies, slices.Clone(body))
	}
	if !more {
		w.finish(i, nil)
	}
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

// await waits for the end of an exchange, for as long as the context and the
// timeout allow.
func (s *session) await(ctx context.Context, p *wait) error {
	timer := time.NewTimer(s.hub.cfg.Load().ConfirmTimeout)
	defer timer.Stop()
	select {
	case <-p.done:
	case <-timer.C:
		s.waits.forget(p, api.Errorf(codes.DeadlineExceeded, "switch %v has not answered within %v", s.dpid, s.hub.cfg.Load().ConfirmTimeout))
	case <-ctx.Done():
		s.waits.forget(p, api.Errorf(codes.DeadlineExceeded, "switch %v has not answered in time: %w", s.dpid, ctx.Err()))
	}
	<-p.done
	return p.err
}

// multipart asks the switch for statistics or descriptions and returns the
// bodies of its replies, in order.
func (s *session) multipart(ctx context.Context, req *openflow.MultipartRequest) ([][]byte, error) {
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
