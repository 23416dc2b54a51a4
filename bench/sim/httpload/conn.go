package httpload

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/weft-sdn/weft/internal/backoff"
)

// conn is a place for a connection to a target: when one ends, the next takes it.
type conn struct {
	load        *load
	target      *url.URL
	outstanding atomic.Int32
	tried       atomic.Bool // a connection has been made, or refused
	kicked      chan struct{}

	mu       sync.Mutex // guards what follows
	wire     wire       // nil while there is no connection
	raw      net.Conn
	sent     int // on this connection
	closed   bool
	ever     bool  // there has been a connection
	rejected error // why the last try to connect failed
	seen     tally
}

// tally is what a conn has measured.
type tally struct {
	latency, service *hdrhistogram.Histogram // nanoseconds, from due and from sent
	due, done        int
	inTime           int // answers that came in the measured time
	octets           int64
	statuses         map[int]int
	failures         map[string]int
	instances        map[string]int
	connected        int
	connecting       *hdrhistogram.Histogram // microseconds
}

func newHistogram() *hdrhistogram.Histogram { return hdrhistogram.New(1, 100e9, 3) }

func newTally() tally {
	return tally{
		latency: newHistogram(), service: newHistogram(), connecting: hdrhistogram.New(1, 100e6, 3),
		statuses: map[int]int{}, failures: map[string]int{}, instances: map[string]int{},
	}
}

func newConn(l *load, target *url.URL) *conn {
	return &conn{load: l, target: target, kicked: make(chan struct{}, 1), seen: newTally()}
}

// request is a request that is sent and not answered.
type request struct{ due, sent time.Time }

// reply is the answer to a request.
type reply struct {
	status   int
	octets   int
	instance string
}

// wire speaks a version of HTTP on a connection. All but read is called with the
// conn's mutex held.
type wire interface {
	// room is how many requests may be sent now.
	room() int
	// send queues a request; flush sends what is queued.
	send(r request) error
	flush() error
	// read reads what has come, waits for it if nothing has, and hands over
	// what is answered; it locks mu for that. It returns when nothing more has
	// come, or with the error that ended the connection.
	read(mu sync.Locker, done func(request, reply)) error
	// expire gives up the requests sent before then, and returns them.
	expire(before time.Time) ([]request, error)
	// left returns the requests that will not be answered.
	left() []request
}

// errFinished ends a connection whose time is over, as it should.
var errFinished = errors.New("the connection has had its requests")

// Between tries to connect.
const (
	firstWait = 10 * time.Millisecond
	lastWait  = time.Second
)

// run connects, again and again, until ctx ends.
func (c *conn) run(ctx context.Context) {
	go func() {
		for {
			select {
			case <-ctx.Done():
				return
			case <-c.kicked:
				_ = c.pump() // run sees that the connection is gone
			}
		}
	}()
	pauses := backoff.Exponential{First: firstWait, Last: lastWait}
	for ctx.Err() == nil {
		began := time.Now()
		raw, w, err := c.connect(ctx)
		if err != nil {
			c.refused(ctx, err)
		}
		c.tried.Store(true)
		if err != nil {
			_ = pauses.Wait(ctx)
			continue
		}
		pauses.Reset()
		c.serve(raw, w, time.Since(began))
	}
}

// connect opens a connection.
func (c *conn) connect(ctx context.Context) (net.Conn, wire, error) {
	ctx, cancel := context.WithTimeout(ctx, c.load.Timeout)
	defer cancel()
	host := c.target.Host
	if c.target.Port() == "" {
		host = net.JoinHostPort(c.target.Hostname(), map[bool]string{true: "443", false: "80"}[c.target.Scheme == "https"])
	}
	raw, err := (&net.Dialer{}).DialContext(ctx, "tcp", host)
	if err != nil {
		return nil, nil, err
	}
	if c.target.Scheme == "https" {
		cfg := &tls.Config{}
		if c.load.TLS != nil {
			cfg = c.load.TLS.Clone()
		}
		cfg.NextProtos = []string{map[bool]string{true: "http/1.1", false: "h2"}[c.load.HTTP1]}
		if cfg.ServerName == "" {
			cfg.ServerName = c.target.Hostname()
		}
		secure := tls.Client(raw, cfg)
		if err := secure.HandshakeContext(ctx); err != nil {
			raw.Close()
			return nil, nil, err
		}
		raw = secure
	}
	if c.load.HTTP1 {
		return raw, newHTTP1(raw, c), nil
	}
	w, err := newHTTP2(raw, c)
	if err != nil {
		raw.Close()
		return nil, nil, err
	}
	return raw, w, nil
}

// refused counts a connection that was not made.
func (c *conn) refused(ctx context.Context, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if ctx.Err() == nil {
		c.rejected = err
		if now := time.Now(); !now.Before(c.load.from) && now.Before(c.load.to) {
			c.seen.failures["connect: "+Kind(err)]++
		}
	}
}

// serve sends and receives on a connection until it ends.
func (c *conn) serve(raw net.Conn, w wire, took time.Duration) {
	defer raw.Close()
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return
	}
	c.wire, c.raw, c.sent, c.ever = w, raw, 0, true
	if now := time.Now(); !now.Before(c.load.from) && now.Before(c.load.to) {
		c.seen.connected++
		_ = c.seen.connecting.RecordValue(max(1, took.Microseconds())) // within the timeout
	}
	c.mu.Unlock()
	var err error
	for err == nil {
		if err = c.pump(); err == nil {
			err = w.read(&c.mu, c.done)
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.wire, c.raw = nil, nil
	for _, r := range w.left() {
		c.failed(r, Kind(err))
	}
}

// kick has requests sent that are due.
func (c *conn) kick() {
	select {
	case c.kicked <- struct{}{}:
	default:
	}
}

// pump sends as many requests as are due and the connection may have.
func (c *conn) pump() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.wire == nil {
		return nil
	}
	some := false
	for c.load.PerConnection == 0 || c.sent < c.load.PerConnection {
		if int(c.outstanding.Load()) >= min(c.load.Streams, c.wire.room()+int(c.outstanding.Load())) {
			break
		}
		due, ok := c.load.take()
		if !ok {
			break
		}
		c.sent++
		c.outstanding.Add(1)
		if c.counts(due) {
			c.seen.due++
		}
		r := request{due: due, sent: time.Now()}
		if err := c.wire.send(r); err != nil {
			c.failed(r, Kind(err))
			return c.broken(err)
		}
		some = true
	}
	if some {
		if err := c.wire.flush(); err != nil {
			return c.broken(err)
		}
		if c.load.Arrivals != nil && c.load.pending() {
			c.load.kick() // more than this connection may have
		}
	}
	if c.load.PerConnection > 0 && c.sent >= c.load.PerConnection && c.outstanding.Load() == 0 {
		return c.broken(errFinished)
	}
	return nil
}

// broken ends a connection, and so whoever reads it; mu is held.
func (c *conn) broken(err error) error {
	c.raw.Close()
	return err
}

// counts reports whether a request that was due then is measured.
func (c *conn) counts(due time.Time) bool { return !due.Before(c.load.from) && due.Before(c.load.to) }

// done counts an answer; mu is held.
func (c *conn) done(r request, a reply) {
	c.outstanding.Add(-1)
	now := time.Now()
	if !now.Before(c.load.from) && now.Before(c.load.to) && a.status < 400 {
		c.seen.inTime++
	}
	if !c.counts(r.due) {
		return
	}
	if a.status == statusReset {
		c.seen.failures["stream reset"]++
		return
	}
	c.seen.statuses[a.status]++
	c.seen.octets += int64(a.octets)
	if a.instance != "" {
		c.seen.instances[a.instance]++
	}
	if a.status >= 400 {
		c.seen.failures["status"]++
		return
	}
	c.seen.done++
	record(c.seen.latency, now.Sub(r.due))
	record(c.seen.service, now.Sub(r.sent))
}

func record(h *hdrhistogram.Histogram, d time.Duration) {
	_ = h.RecordValue(min(max(1, int64(d)), h.HighestTrackableValue())) // within the range
}

// failed counts a request that is not answered; mu is held.
func (c *conn) failed(r request, kind string) {
	c.outstanding.Add(-1)
	if c.counts(r.due) {
		c.seen.failures[kind]++
	}
}

// expire gives up requests that were sent before then.
func (c *conn) expire(before time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.wire == nil {
		return
	}
	late, err := c.wire.expire(before)
	for _, r := range late {
		c.failed(r, "timeout")
	}
	switch {
	case err != nil:
		_ = c.broken(err)
	case len(late) > 0:
		c.kick() // others may be sent in their place
	}
}

// close ends the connection that there is, and lets no other come.
func (c *conn) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	if c.raw != nil {
		c.raw.Close()
	}
}

// http1 is HTTP/1.1, one request at a time.
type http1 struct {
	text []byte
	req  *http.Request // as its answer must be read
	name string        // of the instance's header
	r    *bufio.Reader
	w    *bufio.Writer
	open *request
}

func newHTTP1(raw net.Conn, c *conn) *http1 {
	l := c.load
	req := &http.Request{Method: l.Method, URL: c.target, Host: c.target.Host, Header: l.Header.Clone(), ProtoMajor: 1, ProtoMinor: 1, ContentLength: int64(len(l.Body))}
	if len(l.Body) > 0 {
		req.Body = io.NopCloser(strings.NewReader(string(l.Body)))
	}
	var text strings.Builder
	_ = req.Write(&text) // to memory
	return &http1{text: []byte(text.String()), req: req, name: l.InstanceHeader, r: bufio.NewReaderSize(raw, 32<<10), w: bufio.NewWriter(raw)}
}

func (h *http1) room() int {
	if h.open != nil {
		return 0
	}
	return 1
}

func (h *http1) send(r request) error {
	if _, err := h.w.Write(h.text); err != nil {
		return err
	}
	h.open = &r
	return nil
}

func (h *http1) flush() error { return h.w.Flush() }

func (h *http1) read(mu sync.Locker, done func(request, reply)) error {
	resp, err := http.ReadResponse(h.r, h.req)
	if err != nil {
		return err
	}
	n, err := io.Copy(io.Discard, resp.Body)
	if err != nil {
		return err
	}
	mu.Lock()
	defer mu.Unlock()
	if h.open == nil {
		return errors.New("an answer to no request")
	}
	done(*h.open, reply{status: resp.StatusCode, octets: int(n), instance: resp.Header.Get(h.name)})
	h.open = nil
	if resp.Close {
		return errFinished
	}
	return nil
}

func (h *http1) expire(before time.Time) ([]request, error) {
	if h.open == nil || h.open.sent.After(before) {
		return nil, nil
	}
	return h.left(), errFinished
}

func (h *http1) left() []request {
	if h.open == nil {
		return nil
	}
	r := *h.open
	h.open = nil
	return []request{r}
}
