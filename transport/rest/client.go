package rest

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weft-sdn/weft/transport"
)

const (
	// maxWires is how many calls may be in progress at once; further ones wait.
	maxWires = 256
	// idleTime is how long an idle wire is kept, well below the time after
	// which the peer closes it.
	idleTime = time.Minute
)

// conn is a connection: a first wire, which detects the end of the peer, and
// one wire for each concurrent call.
type conn struct {
	t       *Transport
	address string
	beat    transport.Heartbeat
	heard   atomic.Uint64 // answers
	slots   chan struct{} // of calls under way
	first   *wire
	ended   chan struct{} // closed when no more calls are made
	gone    chan struct{} // closed when the first wire has ended

	mu      sync.Mutex // guards all below
	idle    []*wire    // the last used last
	busy    map[*wire]struct{}
	failed  *transport.Error
	probing bool
}

// Dial connects to an address.
func (t *Transport) Dial(ctx context.Context, address string) (transport.Conn, error) {
	if err := ctx.Err(); err != nil {
		return nil, transport.ErrorOf(err)
	}
	w, err := dialWire(ctx, address, t.tls)
	if err != nil {
		return nil, err
	}
	c := &conn{
		t: t, address: address, beat: t.Heartbeat.OrDefault(), slots: make(chan struct{}, maxWires),
		first: w, busy: map[*wire]struct{}{}, ended: make(chan struct{}), gone: make(chan struct{}),
	}
	_ = w.conn.SetDeadline(time.Now().Add(10 * time.Second)) // if it fails, so will writing
	stop := context.AfterFunc(ctx, func() { _ = w.conn.Close() })
	_, failed, err := w.call(http.MethodGet, PingPath, "", 0, nil)
	if failed != nil {
		err = failed
	}
	if !stop() || err != nil {
		_ = w.conn.Close() // it is of no use
		if e := ctx.Err(); e != nil {
			return nil, transport.ErrorOf(e)
		}
		return nil, transport.Errorf(transport.Unavailable, "dial %s: %v", address, err)
	}
	_ = w.conn.SetDeadline(time.Time{}) // if it fails, so will reading
	go c.presence()
	go c.watch()
	return c, nil
}

// Call makes a call.
func (c *conn) Call(ctx context.Context, method string, req []byte) ([]byte, error) {
	if err := transport.Sendable(ctx, method, req); err != nil {
		return nil, err
	}
	select {
	case c.slots <- struct{}{}:
	default:
		select {
		case c.slots <- struct{}{}:
		case <-ctx.Done():
			return nil, transport.ErrorOf(ctx.Err())
		case <-c.ended:
			return nil, c.lost()
		}
	}
	defer func() { <-c.slots }()
	w, err := c.take(ctx)
	if err != nil {
		return nil, err
	}
	var timeout time.Duration
	if deadline, ok := ctx.Deadline(); ok {
		timeout = max(time.Until(deadline), time.Microsecond)
	}
	var stop func() bool
	if ctx.Done() != nil {
		stop = context.AfterFunc(ctx, func() { _ = w.conn.SetDeadline(time.Unix(1, 0)) }) // ends the call
	}
	resp, failed, err := w.call(http.MethodPost, CallPath, method, timeout, req)
	givenUp := stop != nil && !stop()
	switch alive := c.release(w, err == nil && !givenUp); {
	case !alive: // an answer that came during the end does not count
		return nil, c.lost()
	case failed != nil:
		return nil, failed
	case err == nil || errors.Is(err, errClosing):
		c.heard.Add(1)
		return resp, nil
	case givenUp:
		return nil, transport.ErrorOf(ctx.Err())
	}
	c.fail(transport.Errorf(transport.Unavailable, "the connection to %s is lost: %v", c.address, err))
	return nil, c.lost()
}

// take returns a wire for one request.
func (c *conn) take(ctx context.Context) (*wire, error) {
	c.mu.Lock()
	if c.failed != nil {
		c.mu.Unlock()
		return nil, c.lost()
	}
	if n := len(c.idle); n > 0 {
		w := c.idle[n-1]
		c.idle = c.idle[:n-1]
		c.busy[w] = struct{}{}
		c.mu.Unlock()
		return w, nil
	}
	c.mu.Unlock()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() { // dialling ends with the connection
		select {
		case <-c.ended:
			cancel()
		case <-ctx.Done():
		}
	}()
	w, err := dialWire(ctx, c.address, c.t.tls)
	if err != nil {
		if c.hasFailed() {
			err = c.lost()
		}
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.failed != nil {
		_ = w.conn.Close() // never used
		return nil, &transport.Error{Code: c.failed.Code, Text: c.failed.Text}
	}
	c.busy[w] = struct{}{}
	return w, nil
}

// release returns a wire for reuse, or closes it if it cannot be reused. It
// reports whether the connection is still open.
func (c *conn) release(w *wire, usable bool) (alive bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.busy, w)
	if !usable || c.failed != nil {
		_ = w.conn.Close() // it is of no further use
		return c.failed == nil
	}
	if cap(w.buf) > largeBody {
		w.buf = nil
	}
	w.since = time.Now()
	c.idle = append(c.idle, w)
	return true
}

// Close ends the connection.
func (c *conn) Close() error {
	c.fail(transport.Errorf(transport.Unavailable, "the connection to %s is closed", c.address))
	<-c.gone
	return nil
}

func (c *conn) lost() *transport.Error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return &transport.Error{Code: c.failed.Code, Text: c.failed.Text}
}

func (c *conn) hasFailed() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.failed != nil
}

// fail ends all calls and wires and refuses further calls.
func (c *conn) fail(err *transport.Error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.failed != nil {
		return
	}
	c.failed = err
	close(c.ended)
	for w := range c.busy {
		_ = w.conn.Close() // its user notices
	}
	for _, w := range c.idle {
		_ = w.conn.Close() // nobody uses it
	}
	c.idle = nil
	_ = c.first.conn.Close() // presence sees that
}

// watch detects a silent peer and closes idle wires.
func (c *conn) watch() {
	t := time.NewTicker(c.beat.Tick())
	defer t.Stop()
	var p transport.Pulse
	kept := time.Now()
	for {
		select {
		case <-t.C:
		case <-c.gone:
			return
		}
		c.mu.Lock()
		underWay := len(c.busy) > 0
		for len(c.idle) > 0 && time.Since(c.idle[0].since) > idleTime {
			_ = c.idle[0].conn.Close() // nobody uses it
			c.idle = c.idle[1:]
		}
		c.mu.Unlock()
		ask, dead := p.Tick(c.heard.Load(), underWay, c.beat)
		if dead {
			c.fail(transport.Errorf(transport.Unavailable, "%s has been silent for %v", c.address, c.beat.Dead))
			return
		}
		if ask {
			go c.probe()
		}
		if time.Since(kept) > keepAliveAfter {
			c.keepAlive()
			kept = time.Now()
		}
	}
}

// probe pings the peer, on a separate wire: a wire with a call in progress
// shows nothing.
func (c *conn) probe() {
	c.mu.Lock()
	if c.probing {
		c.mu.Unlock()
		return
	}
	c.probing = true
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.probing = false
	}()
	ctx, cancel := context.WithTimeout(context.Background(), c.beat.Dead)
	defer cancel()
	w, err := dialWire(ctx, c.address, c.t.tls)
	if err != nil {
		return // silence
	}
	defer w.conn.Close()
	_ = w.conn.SetDeadline(time.Now().Add(c.beat.Dead)) // if it fails, so will writing
	if _, _, err := w.call(http.MethodGet, PingPath, "", 0, nil); err == nil {
		c.heard.Add(1)
	}
}
