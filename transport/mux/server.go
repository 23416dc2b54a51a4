package mux

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weft-sdn/weft/internal/backoff"
	"github.com/weft-sdn/weft/transport"
)

// Bounds of what one connection may have in progress at the listening side.
const (
	maxCalls  = 16 << 10
	maxOctets = 256 << 20 // of requests
)

// Server is the listening side of any number of connections to one handler.
type Server struct {
	handler transport.Handler
	beat    transport.Heartbeat

	mu       sync.Mutex // guards all below
	conns    map[*served]struct{}
	draining bool
	closed   bool
}

// NewServer returns a server without connections.
func NewServer(h transport.Handler, beat transport.Heartbeat) *Server {
	return &Server{handler: h, beat: beat.OrDefault(), conns: map[*served]struct{}{}}
}

// Serve serves one connection, whose peer has the given identities, until it
// ends.
func (s *Server) Serve(link Link, peer []string) {
	c := &served{
		server: s, calls: map[uint64]*request{}, parts: map[uint64]*part{},
		ended: make(chan struct{}), requests: make(chan work),
	}
	c.ctx, c.cancel = context.WithCancel(transport.WithPeer(context.Background(), peer))
	c.w.init(link)
	s.mu.Lock()
	if s.closed || s.draining {
		s.mu.Unlock()
		c.cancel()
		_ = link.Close() // the peer notices
		return
	}
	s.conns[c] = struct{}{}
	s.mu.Unlock()
	go c.w.run(c.ended)
	go c.watch()
	c.read()
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.conns, c)
}

// Close ends all connections and the contexts of running handlers.
func (s *Server) Close() {
	s.mu.Lock()
	s.closed = true
	conns := s.conns
	s.conns = map[*served]struct{}{}
	s.mu.Unlock()
	for c := range conns {
		c.stop()
	}
}

// Drain refuses new connections and calls and waits until the handlers have
// finished earlier ones, or ctx ends; then call Close.
func (s *Server) Drain(ctx context.Context) error {
	s.mu.Lock()
	s.draining = true
	s.mu.Unlock()
	for pauses := (backoff.Exponential{First: time.Millisecond, Last: 50 * time.Millisecond}); !s.idle(); {
		if err := pauses.Wait(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (s *Server) idle() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.conns {
		if !c.idle() {
			return false
		}
	}
	return true
}

func (s *Server) isDraining() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.draining
}

// served is one connection.
type served struct {
	server *Server
	w      writer
	ctx    context.Context // of calls
	cancel context.CancelFunc
	ended  chan struct{} // closed when the link has ended

	// Used by the reading goroutine.
	parts map[uint64]*part

	requests chan work    // to goroutines that have answered before; closed at the end
	resting  atomic.Int32 // how many of these wait, or are about to

	mu     sync.Mutex // guards all below
	calls  map[uint64]*request
	octets uint64 // of requests in progress, announced or received
}

// request is a call in progress.
type request struct {
	cancel context.CancelFunc
	size   uint64
}

// work is a complete request, to be answered.
type work struct {
	ctx    context.Context
	id     uint64
	method string
	req    []byte
	b      *Buffer // has req; nil if that has memory of its own
}

// maxResting is how many goroutines of a connection wait for requests: their
// stacks have grown to what handlers need.
const maxResting = 4

// part is an incomplete request.
type part struct {
	assembly
	name    string
	timeout time.Duration
}

var errBye = errors.New("the peer has closed the connection")

// read handles frames until the link ends.
func (c *served) read() {
	var err error
	for err == nil {
		var b *Buffer
		if b, err = c.w.link.Read(); err != nil {
			break
		}
		err = each(b.B, func(f *Frame) error { return c.take(f, b) })
		b.Release()
	}
	c.w.fail(transport.Errorf(transport.Unavailable, "the connection is lost: %v", err))
	_ = c.w.link.Close() // it has failed, or the peer wants it so
	close(c.ended)
	close(c.requests)
	c.cancel()
}

// stop ends the connection: first its answers, then the running handlers.
func (c *served) stop() {
	c.w.fail(transport.Errorf(transport.Unavailable, "the listener is closed"))
	_ = c.w.link.Close() // what matters is that it ends
	c.cancel()
}

func (c *served) idle() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.calls) == 0 && c.w.idle()
}

// take handles a frame; an error ends the connection.
func (c *served) take(f *Frame, b *Buffer) error {
	switch f.Kind {
	case Call:
		if _, twice := c.parts[f.ID]; twice {
			return errTwice
		}
		if refused, err := c.admit(f); refused || err != nil {
			return err
		}
		if f.More {
			p := &part{assembly: assembly{total: f.Total}, name: string(f.Name), timeout: f.Timeout}
			c.parts[f.ID] = p
			return p.add(f.Body, false)
		}
		c.complete(f.ID, string(f.Name), f.Timeout, f.Body, b)
	case Data:
		p := c.parts[f.ID]
		if p == nil {
			return nil // the call was refused
		}
		if err := p.add(f.Body, !f.More); err != nil {
			return err
		}
		if !f.More {
			delete(c.parts, f.ID)
			c.complete(f.ID, p.name, p.timeout, p.b, nil)
		}
	case Cancel:
		c.giveUp(f.ID)
	case Ping:
		c.w.putNow(&Frame{Kind: Pong})
	case Pong:
	case Bye:
		return errBye
	default:
		return errors.New("a frame of a kind that only the listening side sends")
	}
	return nil
}

var errTwice = errors.New("a number was used twice")

// admit makes room for a call, or answers that there is none.
func (c *served) admit(f *Frame) (refused bool, err error) {
	draining := c.server.isDraining()
	c.mu.Lock()
	_, twice := c.calls[f.ID]
	full := len(c.calls) >= maxCalls || c.octets+f.Total > maxOctets
	if !twice && !full && !draining {
		c.calls[f.ID] = &request{size: f.Total}
		c.octets += f.Total
		c.mu.Unlock()
		return false, nil
	}
	c.mu.Unlock()
	switch {
	case twice:
		return true, errTwice
	case draining:
		c.fail(f.ID, transport.Errorf(transport.Unavailable, "the listener is shutting down"))
	default:
		c.fail(f.ID, transport.Errorf(transport.ResourceExhausted,
			"too much under way on one connection: at most %d calls and %d octets of requests; make fewer at once", maxCalls, maxOctets))
	}
	return true, nil
}

// complete passes a complete request to the handler. Its bytes are in b, or in
// memory of their own if b is nil.
func (c *served) complete(id uint64, name string, timeout time.Duration, data []byte, b *Buffer) {
	if b != nil && len(data) < len(b.B)/4 { // a small part would retain the whole buffer
		data, b = append(make([]byte, 0, len(data)), data...), nil
	}
	if b != nil {
		b.hold()
	}
	var ctx context.Context
	var cancel context.CancelFunc
	if timeout > 0 {
		ctx, cancel = context.WithTimeout(c.ctx, timeout)
	} else {
		ctx, cancel = context.WithCancel(c.ctx)
	}
	c.mu.Lock()
	c.calls[id].cancel = cancel
	c.mu.Unlock()
	w := work{ctx, id, name, data, b}
	select {
	case c.requests <- w:
	default: // nobody waits
		go c.work(w)
	}
}

// work answers a request, and those that come while it rests.
func (c *served) work(w work) {
	for ok := true; ok; {
		c.answer(w)
		if c.resting.Add(1) > maxResting {
			c.resting.Add(-1)
			return
		}
		w, ok = <-c.requests
		c.resting.Add(-1)
	}
}

// answer calls the handler and sends its answer.
func (c *served) answer(w work) {
	resp, err := transport.Answer(w.ctx, c.server.handler, w.method, w.req)
	if err != nil {
		c.fail(w.id, err)
	} else {
		_ = c.w.message(c.ctx, Frame{Kind: Result, ID: w.id}, resp) // fails if the peer has gone
	}
	if w.b != nil {
		w.b.Release()
	}
	c.mu.Lock()
	r := c.calls[w.id]
	delete(c.calls, w.id)
	c.octets -= r.size
	c.mu.Unlock()
	r.cancel()
}

// fail answers a call with an error.
func (c *served) fail(id uint64, err *transport.Error) {
	text := []byte(err.Text)
	_ = c.w.put(c.ctx, &Frame{Kind: Failed, ID: id, Code: err.Code, Body: text[:min(len(text), maxText)]}) // fails if the peer has gone
}

// giveUp cancels a handler whose caller has given up, or drops the parts of an
// incomplete request.
func (c *served) giveUp(id uint64) {
	p := c.parts[id]
	delete(c.parts, id)
	c.mu.Lock()
	defer c.mu.Unlock()
	r := c.calls[id]
	switch {
	case p != nil:
		delete(c.calls, id)
		c.octets -= r.size
	case r != nil:
		r.cancel()
	}
}

// watch detects a silent peer while answers are due.
func (c *served) watch() {
	if watch(c.server.beat, c.ended, c.signs, func() { c.w.putNow(&Frame{Kind: Ping}) }) {
		_ = c.w.link.Close() // read reports the error
	}
}

func (c *served) signs() (heard uint64, underWay bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.w.signs(), len(c.calls) > 0
}
