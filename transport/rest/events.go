package rest

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/weft-sdn/weft/transport"
)

// keepAliveAfter is how long the wire of events may be idle before a ping on
// it keeps the peer from closing it.
const keepAliveAfter = time.Minute

// events sends the events of a connection over one wire, each before the
// answers to those before it. The peer answers one when it has been handled.
type events struct {
	conn *conn
	wire *wire
	wake chan struct{} // there is something to write, or the end
	done chan struct{} // closed when all is over

	mu      sync.Mutex    // guards all below
	pending []byte        // requests to be written
	spare   []byte        // memory for the next
	sizes   []int         // of events not answered, in order; -1 for a ping
	count   int           // of events among them
	octets  int           // theirs
	room    chan struct{} // closed when there may be room; nil if nobody waits
	closing bool
	failed  bool
	last    time.Time // of something written
}

func newEvents(c *conn, w *wire) *events {
	e := &events{conn: c, wire: w, wake: make(chan struct{}, 1), done: make(chan struct{}), last: time.Now()}
	go e.write()
	go e.read()
	return e
}

func (e *events) send(ctx context.Context, subject string, event []byte) error {
	e.mu.Lock()
	for !e.closing && !e.failed && (e.count >= transport.Window || e.count > 0 && e.octets+len(event) > transport.WindowOctets) {
		if e.room == nil {
			e.room = make(chan struct{})
		}
		room := e.room
		e.mu.Unlock()
		select {
		case <-room:
		case <-ctx.Done():
			return transport.ErrorOf(ctx.Err())
		}
		e.mu.Lock()
	}
	defer e.mu.Unlock()
	if e.closing || e.failed {
		return e.conn.lost()
	}
	e.pending = e.wire.appendRequest(e.pending, http.MethodPost, EventPath, subject, 0, len(event))
	e.pending = append(e.pending, event...)
	e.sizes = append(e.sizes, len(event))
	e.count++
	e.octets += len(event)
	e.signal()
	return nil
}

func (e *events) signal() {
	select {
	case e.wake <- struct{}{}:
	default:
	}
}

func (e *events) underWay() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.sizes) > 0
}

// keepAlive sends a ping if nothing has been sent for long.
func (e *events) keepAlive() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.sizes) == 0 && !e.closing && !e.failed && time.Since(e.last) > keepAliveAfter {
		e.pending = e.wire.appendRequest(e.pending, http.MethodGet, PingPath, "", 0, 0)
		e.sizes = append(e.sizes, -1)
		e.signal()
	}
}

// write writes requests until the wire ends.
func (e *events) write() {
	for {
		select {
		case <-e.wake:
		case <-e.done:
			return
		}
		e.mu.Lock()
		b := e.pending
		e.pending, e.spare = e.spare, nil
		e.last = time.Now()
		e.mu.Unlock()
		if len(b) == 0 {
			continue
		}
		if _, err := e.wire.conn.Write(b); err != nil {
			_ = e.wire.conn.Close() // the reader says the rest
			return
		}
		e.mu.Lock()
		if e.spare == nil && cap(b) <= 1<<20 {
			e.spare = b[:0]
		}
		e.mu.Unlock()
	}
}

// read takes answers until the wire ends.
func (e *events) read() {
	defer close(e.done)
	var err error
	for {
		if _, err = e.wire.r.Peek(1); err != nil { // wait, for an answer or the end
			break
		}
		if _, _, err = e.wire.answer(); err != nil {
			break
		}
		e.conn.heard.Add(1)
		if !e.answered() {
			break
		}
	}
	_ = e.wire.conn.Close() // it is of no further use
	e.conn.refuse(transport.Errorf(transport.Unavailable, "the connection to %s is lost: %v", e.conn.address, err))
	e.mu.Lock()
	defer e.mu.Unlock()
	e.failed = true
	e.wakeSenders()
}

// answered takes note that the first event is handled. It says whether more
// are to come.
func (e *events) answered() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.sizes) == 0 {
		return false // an answer to nothing
	}
	if n := e.sizes[0]; n >= 0 {
		e.count--
		e.octets -= n
	}
	e.sizes = e.sizes[1:]
	e.wakeSenders()
	return !e.closing || len(e.sizes) > 0
}

// wakeSenders is called with the lock held.
func (e *events) wakeSenders() {
	if e.room != nil {
		close(e.room)
		e.room = nil
	}
}

// close ends the wire when all events are answered.
func (e *events) close() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.closing = true
	e.wakeSenders()
	if len(e.sizes) == 0 {
		_ = e.wire.conn.Close() // the reader ends
	}
}

// fail ends the wire.
func (e *events) fail() {
	_ = e.wire.conn.Close() // the reader ends
}
