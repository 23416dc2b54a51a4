package httpload

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weft-sdn/weft/internal/backoff"
	"github.com/weft-sdn/weft/internal/cputime"
)

// Config is a load.
type Config struct {
	Targets        []*url.URL // connections go to each in turn
	Method         string
	Header         http.Header
	Body           []byte
	HTTP1          bool        // HTTP/1.1 instead of HTTP/2
	TLS            *tls.Config // of https targets
	Connections    int
	Streams        int       // requests outstanding on a connection; 1 for HTTP/1.1
	Arrivals       *Arrivals // nil: a closed loop
	PerConnection  int       // requests after which a connection is replaced; 0: it stays
	Warmup         time.Duration
	Duration       time.Duration
	Timeout        time.Duration // of a request, and of connecting
	InstanceHeader string        // of answers, by which they are counted; empty: they are not
}

// Most of what a load may have.
const (
	mostConnections = 10_000
	mostStreams     = 1000
	mostBody        = 16 << 10 // what fits into a frame
	mostQueued      = 1 << 20  // requests that are due and wait for a connection
)

// Validate says what is wrong.
func (c *Config) Validate() error {
	for _, u := range c.Targets {
		if u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
			return fmt.Errorf("%s: want a URL such as http://10.0.0.5:7777/path", u)
		}
	}
	switch {
	case len(c.Targets) == 0:
		return errors.New("want a URL")
	case c.Connections < 1 || c.Connections > mostConnections:
		return fmt.Errorf("connections %d: want 1 to %d", c.Connections, mostConnections)
	case c.Streams < 1 || c.Streams > mostStreams || c.HTTP1 && c.Streams > 1:
		return fmt.Errorf("streams %d: want 1 to %d, and 1 with HTTP/1.1", c.Streams, mostStreams)
	case c.Arrivals != nil && (c.Arrivals.Rate <= 0 || c.Arrivals.Rate > 1e6):
		return fmt.Errorf("rate %v: want more than 0 and at most 1000000", c.Arrivals.Rate)
	case c.Duration <= 0 || c.Warmup < 0 || c.Timeout <= 0 || c.PerConnection < 0:
		return fmt.Errorf("duration %v, warm-up %v, timeout %v, requests of a connection %d: want more than 0, and no less than 0", c.Duration, c.Warmup, c.Timeout, c.PerConnection)
	case len(c.Body) > mostBody:
		return fmt.Errorf("a body of %d octets: want at most %d", len(c.Body), mostBody)
	}
	return nil
}

// load is a load at work.
type load struct {
	Config
	from, to time.Time // what is due in between is counted
	conns    []*conn
	turn     atomic.Uint32 // which connection is asked first to send

	mu     sync.Mutex  // guards what follows
	queue  []time.Time // when requests were due that nobody has sent yet; of an open loop
	head   int         // of the queue
	unsent int         // that found the queue full
}

// Run loads the targets and returns what was measured. If nothing could be
// connected, the error says why.
func Run(ctx context.Context, cfg Config) (*Result, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	began := time.Now()
	l := &load{Config: cfg, from: began.Add(cfg.Warmup), to: began.Add(cfg.Warmup + cfg.Duration)}
	for i := range cfg.Connections {
		l.conns = append(l.conns, newConn(l, cfg.Targets[i%len(cfg.Targets)]))
	}
	var work sync.WaitGroup
	for _, c := range l.conns {
		work.Go(func() { c.run(ctx) })
	}
	work.Go(func() { l.sweep(ctx) })
	var before atomic.Int64
	warm := time.AfterFunc(cfg.Warmup, func() { before.Store(int64(cputime.Used())) })
	defer warm.Stop()
	if cfg.Arrivals != nil {
		cfg.Arrivals.Each(ctx, began, cfg.Warmup+cfg.Duration, l.offer)
	}
	_ = backoff.Sleep(ctx, time.Until(l.to))
	used := cputime.Used() - time.Duration(before.Load())
	l.drain(ctx)
	cancel()
	for _, c := range l.conns {
		c.close()
	}
	work.Wait()
	return l.result(used)
}

// offer queues a request that is due and has a connection send it.
func (l *load) offer(due time.Time) {
	l.mu.Lock()
	if len(l.queue)-l.head >= mostQueued {
		l.unsent++
		l.mu.Unlock()
		return
	}
	l.queue = append(l.queue, due)
	l.mu.Unlock()
	l.kick()
}

// kick has the connection send that has the fewest requests outstanding, if one
// may have more.
func (l *load) kick() {
	var idle *conn
	least, first := l.Streams, int(l.turn.Add(1))
	for i := range l.conns {
		c := l.conns[(first+i)%len(l.conns)]
		if n := int(c.outstanding.Load()); n < least {
			if idle, least = c, n; n == 0 {
				break
			}
		}
	}
	if idle != nil {
		idle.kick()
	}
}

// pending reports whether requests are due and not sent.
func (l *load) pending() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.queue) > l.head
}

// take returns when the next request was due; false if none is.
func (l *load) take() (time.Time, bool) {
	if l.Arrivals == nil {
		now := time.Now()
		return now, now.Before(l.to)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.head == len(l.queue) {
		l.queue, l.head = l.queue[:0], 0
		return time.Time{}, false
	}
	due := l.queue[l.head]
	l.head++
	return due, true
}

// waiting returns how many requests are due, or sent and not answered, and how
// many connections nobody knows of yet whether they can be made.
func (l *load) waiting() int {
	l.mu.Lock()
	n := len(l.queue) - l.head
	l.mu.Unlock()
	for _, c := range l.conns {
		n += int(c.outstanding.Load())
		if !c.tried.Load() {
			n++
		}
	}
	return n
}

// drain waits for answers to what has been sent, for a time.
func (l *load) drain(ctx context.Context) {
	last := time.NewTimer(l.Timeout + sweepTime)
	defer last.Stop()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for l.waiting() > 0 {
		select {
		case <-ctx.Done():
			return
		case <-last.C:
			return
		case <-tick.C:
		}
	}
}

// sweepTime is how late a timeout may be noticed.
const sweepTime = 50 * time.Millisecond

// sweep gives up requests that are not answered in time.
func (l *load) sweep(ctx context.Context) {
	tick := time.NewTicker(sweepTime)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-tick.C:
			for _, c := range l.conns {
				c.expire(now.Add(-l.Timeout))
			}
		}
	}
}
