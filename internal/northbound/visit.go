package northbound

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"sync/atomic"
	"time"
)

// RequestOctets is what a request counts before its body is read.
const RequestOctets = 32 << 10

// Visit is a request in progress.
type Visit struct {
	conn    *conn
	octets  int         // guarded by conn.listener.mu
	follows atomic.Bool // its answer lasts
}

// visitKey is the context's key for the Visit of a request.
type visitKey struct{}

// Full is the error of a request for which there is no room.
type Full struct{ text string }

// Error returns the limit as text (error).
func (f *Full) Error() string { return f.text }

// Identify sets the rank of the client that made a request.
func Identify(ctx context.Context, rank Rank) {
	c, ok := ctx.Value(connKey{}).(*conn)
	if !ok {
		return
	}
	c.change(func() {
		if !c.known || rank > c.rank {
			c.rank, c.known = rank, true
		}
	})
}

// Enter begins a request of a client with a rank; End ends it. The error, a
// *Full, says that requests already hold too many bytes.
func Enter(ctx context.Context, rank Rank) (*Visit, error) {
	Identify(ctx, rank)
	c, ok := ctx.Value(connKey{}).(*conn)
	if !ok {
		return &Visit{}, nil
	}
	v := &Visit{conn: c}
	c.change(func() { c.requests++ })
	if err := v.hold(RequestOctets); err != nil {
		v.End()
		return nil, err
	}
	return v, nil
}

// End ends the request.
func (v *Visit) End() {
	if v.conn == nil {
		return
	}
	v.conn.change(func() {
		v.conn.requests--
		v.conn.octets -= v.octets
	})
}

// Request returns a copy of r that counts the bytes read from its body, and
// whose context holds the visit.
func (v *Visit) Request(r *http.Request) *http.Request {
	r = r.WithContext(context.WithValue(r.Context(), visitKey{}, v))
	if v.conn != nil {
		r.Body = &counted{r.Body, v}
	}
	return r
}

// Writer returns a writer of the answer that reports when it waits for the
// client.
func (v *Visit) Writer(w http.ResponseWriter) http.ResponseWriter {
	if v.conn == nil {
		return w
	}
	return &writer{w, v}
}

// followerPatience is how long a client that follows something may take to accept
// a part of the answer.
const followerPatience = 10 * time.Second

// Follow records that a request follows events from now on, until it ends: its
// answer may take as long as it likes, but the client must take each part of it
// within followerPatience.
func Follow(ctx context.Context) (end func()) {
	v, ok := ctx.Value(visitKey{}).(*Visit)
	if !ok || v.conn == nil {
		return func() {}
	}
	v.follows.Store(true)
	v.conn.change(func() { v.conn.streams++ })
	return func() { v.conn.change(func() { v.conn.streams-- }) }
}

// Hold counts bytes that a request holds until it ends, besides those of its
// body: its decoded form and its answer. The error is a *Full.
func Hold(ctx context.Context, octets int) error {
	v, ok := ctx.Value(visitKey{}).(*Visit)
	if !ok || v.conn == nil {
		return nil
	}
	return v.hold(octets)
}

// hold counts bytes. Beyond the limit it first ends requests that wait for
// their clients; one request may exceed the limit if others leave half of it.
func (v *Visit) hold(octets int) error {
	c, l := v.conn, v.conn.listener
	l.mu.Lock()
	defer l.mu.Unlock()
	if c.gone {
		return &Full{"the connection was closed to make room for others"}
	}
	for _, bound := range []struct {
		held   *int
		limit  int
		queues *queues
		whose  string
	}{
		{&c.share.octets, l.limits.OctetsPerClient, &c.share.queues, "this client's requests and answers"},
		{&l.low, l.limits.Octets / 2, &l.all, "requests and answers of clients that may only read"},
		{&l.octets, l.limits.Octets, &l.all, "requests and answers"},
	} {
		if bound.held == &l.low && c.rank >= Operator {
			continue
		}
		for *bound.held+octets > bound.limit && *bound.held-v.octets > bound.limit/2 {
			waits := bound.queues.waits(c.rank, c, time.Now().Add(-l.patience))
			if waits == nil {
				return &Full{fmt.Sprintf("%s hold %d octets already, and %d are the limit; try again when some of them have ended", bound.whose, *bound.held, bound.limit)}
			}
			l.evict(waits)
		}
	}
	v.octets += octets
	c.octets += octets
	l.count(c, octets)
	return nil
}

// waiting marks the request as waiting for its client until f returns.
func (v *Visit) waiting(f func() (int, error)) (int, error) {
	v.conn.change(func() { v.conn.waiting++ })
	defer v.conn.change(func() { v.conn.waiting-- })
	return f()
}

// counted is the body of a request.
type counted struct {
	io.ReadCloser
	visit *Visit
}

// Read reads from the body (io.Reader).
func (b *counted) Read(p []byte) (int, error) {
	n, err := b.visit.waiting(func() (int, error) { return b.ReadCloser.Read(p) })
	if n > 0 {
		if full := b.visit.hold(n); full != nil {
			return 0, full
		}
	}
	return n, err
}

// writer is the writer of an answer.
type writer struct {
	http.ResponseWriter
	visit *Visit
}

// Write writes a part of the answer (http.ResponseWriter).
func (w *writer) Write(p []byte) (int, error) {
	return w.visit.waiting(func() (int, error) {
		defer w.bound()()
		return w.ResponseWriter.Write(p)
	})
}

// FlushError sends what was written (http.ResponseController).
func (w *writer) FlushError() error {
	_, err := w.visit.waiting(func() (int, error) {
		defer w.bound()()
		return 0, http.NewResponseController(w.ResponseWriter).Flush()
	})
	return err
}

// Flush is FlushError for those who ask for no error (http.Flusher).
func (w *writer) Flush() { _ = w.FlushError() }

// bound bounds how long a follower may take to accept a part, until free.
func (w *writer) bound() (free func()) {
	if !w.visit.follows.Load() {
		return func() {}
	}
	control := http.NewResponseController(w.ResponseWriter)
	_ = control.SetWriteDeadline(time.Now().Add(followerPatience)) // not on all writers of tests
	return func() { _ = control.SetWriteDeadline(time.Time{}) }
}

// Unwrap returns the writer below (http.ResponseController).
func (w *writer) Unwrap() http.ResponseWriter { return w.ResponseWriter }
