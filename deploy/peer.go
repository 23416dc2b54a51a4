package deploy

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weft-sdn/weft/plan"
	"github.com/weft-sdn/weft/transport"
)

// peer is one run of another process, and our connections to it: one for each
// transport in use. Every request looks up its transport in the plan in force,
// so the transport may change at any moment. A connection that is no longer
// wanted is closed after the last answer.
type peer struct {
	links *links
	entry atomic.Pointer[Entry] // its incarnation is fixed

	outstanding atomic.Int64
	stalled     atomic.Bool  // it does not answer, but its connection lasts
	failed      atomic.Int64 // when it was last found unreachable, ns; 0 after a success
	failures    atomic.Int64 // consecutive failures

	mu     sync.Mutex // guards what follows
	conns  map[string]*link
	closed bool
	oldest time.Time // how long an answer has been due; zero if none is
}

// links says how this process reaches others.
type links struct {
	transports map[string]transport.Transport
	machine    string // host name of this one; without one, no process counts as on the same machine
	log        *slog.Logger
	view       atomic.Pointer[view] // of now
}

// link is a connection over one transport.
type link struct {
	transport string
	ready     chan struct{}  // closed when dialing is done
	conn      transport.Conn // valid after ready, or err is
	err       error

	users   int  // guarded by the peer's lock, as is retired
	retired bool // to be closed when unused
	closed  bool
}

// newPeer returns the peer for a run of another process.
func newPeer(l *links, e *Entry) *peer {
	p := &peer{links: l, conns: map[string]*link{}}
	p.entry.Store(e)
	return p
}

// dead reports whether nobody listens at the process's address. A process that
// merely does not answer may still be running.
func (p *peer) dead(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, stallPing)
	defer cancel()
	name := p.transportOf(PingMethod)
	t, address := p.links.transports[name], p.entry.Load().Addresses[name]
	if t == nil || address == "" {
		return false
	}
	conn, err := t.Dial(ctx, address)
	if err == nil {
		_ = conn.Close() // nothing was sent
		return false
	}
	return ctx.Err() == nil && transport.ErrorOf(err).Code == transport.Unavailable
}

// transportOf returns the transport for a kind of request to the peer.
func (p *peer) transportOf(method string) string {
	v := p.links.view.Load()
	if v.current == nil || method == askMethod {
		return "grpc"
	}
	if method == eventsMethod {
		return v.current.InForce().Events
	}
	t := v.current.InForce().TransportBetween(v.mine.Worker, p.entry.Load().Worker)
	if t == plan.Inproc { // two processes that were one, or will be, while a plan is being applied
		t = v.current.InForce().Transport
	}
	return t
}

// acquire returns a connection of the wanted transport; it dials if there is
// none.
func (p *peer) acquire(ctx context.Context, name string) (*link, error) {
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return nil, transport.Errorf(transport.Unavailable, "process %s is gone", p.entry.Load().Process)
	}
	l := p.conns[name]
	if l == nil {
		l = &link{transport: name, ready: make(chan struct{})}
		p.conns[name] = l
		go p.dial(l)
	}
	l.users++
	p.mu.Unlock()
	select {
	case <-l.ready:
	case <-ctx.Done():
		p.release(l)
		return nil, transport.ErrorOf(ctx.Err())
	}
	if l.err != nil {
		p.release(l)
		return nil, l.err
	}
	return l, nil
}

// Time limits of requests to other processes.
const (
	redialAfter = 20 * time.Millisecond  // before a peer that was unreachable is tried again
	redialMost  = 200 * time.Millisecond // the most that redialAfter grows to
	stallAfter  = 400 * time.Millisecond // an answer takes longer: ping the peer
	stallPing   = 400 * time.Millisecond // time that the peer has to answer the ping
)

// LocalAddress is the key, among the addresses of a process, of the abstract
// Unix socket, unix:@NAME, at which others on its machine reach it by grpc, ws
// and rest without the network stack.
const LocalAddress = "local"

// dialTimeout bounds one dial.
const dialTimeout = 2 * time.Second

func (p *peer) dial(l *link) {
	defer close(l.ready)
	ctx, cancel := context.WithTimeout(context.Background(), dialTimeout)
	defer cancel()
	e := p.entry.Load()
	t, address := p.links.transports[l.transport], e.Addresses[l.transport]
	switch {
	case t == nil:
		l.err = transport.Errorf(transport.Unavailable, "this process has no transport %s", l.transport)
	case address == "":
		l.err = transport.Errorf(transport.Unavailable, "process %s does not listen by %s", e.Process, l.transport)
	default:
		if local := e.Addresses[LocalAddress]; local != "" && e.Machine != "" && e.Machine == p.links.machine && l.transport != plan.NATS {
			l.conn, l.err = t.Dial(ctx, local)
		}
		if l.conn == nil { // on another machine, or in its own network namespace
			l.conn, l.err = t.Dial(ctx, address)
		}
	}
	if l.err != nil {
		if transport.ErrorOf(l.err).Code == transport.DeadlineExceeded { // ours, not that of the caller, which tries again
			l.err = transport.Errorf(transport.Unavailable, "process %s cannot be reached by %s within %v", e.Process, l.transport, dialTimeout)
		}
		p.discard(l)
	}
}

// discard prevents further use of a connection.
func (p *peer) discard(l *link) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.conns[l.transport] == l {
		delete(p.conns, l.transport)
	}
	p.retire(l)
}

// retire closes a connection when its last user has left. The caller holds the
// lock.
func (p *peer) retire(l *link) {
	l.retired = true
	if l.users == 0 {
		l.close()
	}
}

// close closes a dialed connection. The caller holds the peer's lock.
func (l *link) close() {
	if !l.closed && l.conn != nil {
		l.closed = true
		go l.conn.Close()
	}
}

func (p *peer) release(l *link) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if l.users--; l.retired {
		select {
		case <-l.ready:
			p.retire(l)
		default: // hangUp waits for it
		}
	}
}

// request makes a request that needs no stamp.
func (p *peer) request(ctx context.Context, method string, req []byte) ([]byte, error) {
	return p.send(ctx, method, nil, req)
}

// send makes a request, with a stamp unless it is nil. Its errors are those of
// the connection: errors of the peer are in the answer.
func (p *peer) send(ctx context.Context, method string, s *stamp, req []byte) ([]byte, error) {
	wanted, began := p.transportOf(method), time.Now()
	l, err := p.acquire(ctx, wanted)
	if err != nil {
		if ctx.Err() == nil {
			p.fail()
			if time.Since(began) > stallAfter {
				p.stalled.Store(true) // until it answers a ping of watchPeers
			}
		}
		return nil, err
	}
	name := method
	if s != nil && p.entry.Load().Stamps {
		name = s.on(method)
	}
	p.begin()
	resp, err := l.conn.Call(ctx, name, req)
	p.end()
	if err == nil {
		p.failed.Store(0)
		p.failures.Store(0)
		p.stalled.Store(false)
	} else if transport.ErrorOf(err).Code == transport.Unavailable {
		p.fail()
		p.discard(l)
	}
	p.release(l)
	p.retireUnwanted(wanted, method)
	return resp, err
}

// fail records that the peer was unreachable.
func (p *peer) fail() {
	p.failed.Store(time.Now().UnixNano())
	p.failures.Add(1)
}

// retireUnwanted closes connections of transports that the plan does not use
// for this link any more.
func (p *peer) retireUnwanted(wanted, method string) {
	if method == eventsMethod || method == askMethod {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.conns) < 2 {
		return
	}
	for name, l := range p.conns {
		if name == wanted || name == p.transportOf(eventsMethod) {
			continue
		}
		select {
		case <-l.ready:
			delete(p.conns, name)
			p.retire(l)
		default: // a goroutine waits for it
		}
	}
}

// begin and end track roughly how long the oldest request is outstanding: since
// the first request after an idle time, or since the last answer.
func (p *peer) begin() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.outstanding.Add(1) == 1 {
		p.oldest = time.Now()
	}
}

func (p *peer) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.oldest = time.Now()
	if p.outstanding.Add(-1) == 0 {
		p.oldest = time.Time{}
	}
}

// slow reports whether an answer is overdue.
func (p *peer) slow() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.stalled.Load() || !p.oldest.IsZero() && time.Since(p.oldest) > stallAfter
}

// close ends all connections.
func (p *peer) close() {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.hangUp()
}

// hangUp closes the connections, so that requests that wait for an answer are
// repeated elsewhere.
func (p *peer) hangUp() {
	p.mu.Lock()
	conns := p.conns
	p.conns = map[string]*link{}
	for _, l := range conns {
		l.retired = true
	}
	p.mu.Unlock()
	for _, l := range conns {
		go func() {
			<-l.ready
			p.mu.Lock()
			defer p.mu.Unlock()
			l.close()
		}()
	}
}

// check pings a peer.
func (p *peer) check(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, stallPing)
	defer cancel()
	if _, err := p.request(ctx, PingMethod, nil); err != nil && p.outstanding.Load() > 0 {
		if !p.stalled.Swap(true) {
			p.links.log.Warn("process does not answer; what it was sent goes elsewhere or waits", "process", p.entry.Load().Process, "error", err)
		}
		p.hangUp()
	}
}

// usable reports whether the peer is worth trying now: after a failure it is
// tried again after a pause that doubles.
func (p *peer) usable() bool {
	if p.stalled.Load() {
		return false
	}
	failed := p.failed.Load()
	return failed == 0 || time.Since(time.Unix(0, failed)) > min(redialAfter<<max(0, min(p.failures.Load()-1, 10)), redialMost)
}

// usable returns the targets that are worth trying, in the same order.
func usable(list []*target) []*target {
	return slices.DeleteFunc(list, func(t *target) bool { return t.peer != nil && !t.peer.usable() })
}
