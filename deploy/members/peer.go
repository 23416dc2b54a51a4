package members

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weft-sdn/weft/internal/backoff"
	"github.com/weft-sdn/weft/plan"
	"github.com/weft-sdn/weft/transport"
)

// Peer is one run of another process, and our connections to it: one for each
// transport in use. Every request looks up its transport in the plan in force,
// so the transport may change at any moment. A connection that is no longer
// wanted is closed after the last answer.
type Peer struct {
	links *Links
	Entry atomic.Pointer[Entry] // its incarnation is fixed

	Outstanding atomic.Int64
	stalled     atomic.Bool  // it does not answer, but its connection lasts
	failed      atomic.Int64 // when it was last found unreachable, ns; 0 after a success
	failures    atomic.Int64 // consecutive failures
	checking    atomic.Bool  // a ping of Check is under way

	mu     sync.Mutex // guards what follows
	late   lateness
	conns  map[string]*Link
	closed bool
	oldest time.Time // how long an answer has been due; zero if none is
}

// Links says how this process reaches others.
type Links struct {
	Transports map[string]transport.Transport
	Machine    string // host name of this one; without one, no process counts as on the same machine
	Log        *slog.Logger
	View       atomic.Pointer[View] // of now
}

// Link is a connection over one transport.
type Link struct {
	Transport string
	Ready     chan struct{}  // closed when dialing is done
	Conn      transport.Conn // valid after ready, or err is
	Err       error

	users   int  // guarded by the peer's lock, as is retired
	retired bool // to be closed when unused
	closed  bool
}

// NewPeer returns the peer for a run of another process.
func NewPeer(l *Links, e *Entry) *Peer {
	p := &Peer{links: l, conns: map[string]*Link{}}
	p.Entry.Store(e)
	return p
}

// Dead reports whether nobody listens at the process's address. A process that
// merely does not answer may still be running.
func (p *Peer) Dead(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, StallPing)
	defer cancel()
	name := p.TransportOf(PingMethod)
	t, address := p.links.Transports[name], p.Entry.Load().Addresses[name]
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

// TransportOf returns the transport for a kind of request to the peer.
func (p *Peer) TransportOf(method string) string {
	v := p.links.View.Load()
	if v.Current == nil || method == AskMethod {
		return "grpc"
	}
	if method == EventsMethod {
		return v.Current.InForce().Events
	}
	t := v.Current.InForce().TransportBetween(v.Mine.Worker, p.Entry.Load().Worker)
	if t == plan.Inproc { // two processes that were one, or will be, while a plan is being applied
		t = v.Current.InForce().Transport
	}
	return t
}

// acquire returns a connection of the wanted transport; it dials if there is
// none.
func (p *Peer) acquire(ctx context.Context, name string) (*Link, error) {
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return nil, transport.Errorf(transport.Unavailable, "process %s is gone", p.Entry.Load().Process)
	}
	l := p.conns[name]
	if l == nil {
		l = &Link{Transport: name, Ready: make(chan struct{})}
		p.conns[name] = l
		go p.Dial(l)
	}
	l.users++
	p.mu.Unlock()
	select {
	case <-l.Ready:
	case <-ctx.Done():
		p.release(l)
		return nil, transport.ErrorOf(ctx.Err())
	}
	if l.Err != nil {
		p.release(l)
		return nil, l.Err
	}
	return l, nil
}

// Time limits of requests to other processes.
const (
	RedialAfter = 20 * time.Millisecond  // before a peer that was unreachable is tried again
	redialMost  = 200 * time.Millisecond // the most that redialAfter grows to
	stallAfter  = 400 * time.Millisecond // an answer takes longer: ping the peer
	StallPing   = 400 * time.Millisecond // time that the peer has to answer the ping, unless it was late before
	StatePing   = 2 * time.Second        // the same, before the peer is listed as unresponsive
)

// A lateness is how late the answers of a peer to pings have lately been. On a busy machine
// all peers are late, and to give up connections makes them more so: each is to be made
// anew, and what waited for an answer is sent again. So every ping without an answer doubles
// the time that the next may take, up to eight times, as in Lifeguard (Dadgar et al., 2018);
// and the doubling is undone step by step while answers come early.
type lateness struct {
	doublings int
	since     time.Time // when the doublings were last found right
}

const (
	mostDoublings = 3
	undoneAfter   = 5 * time.Second // one doubling
)

// limit returns how long the peer may take for an answer to a ping.
func (l *lateness) limit(now time.Time) time.Duration {
	return StallPing << l.left(now)
}

func (l *lateness) left(now time.Time) int {
	return max(0, l.doublings-int(now.Sub(l.since)/undoneAfter))
}

// missed records that no answer came within the limit.
func (l *lateness) missed(now time.Time) {
	l.doublings, l.since = min(l.left(now)+1, mostDoublings), now
}

// answered records an answer that took a time.
func (l *lateness) answered(now time.Time, took time.Duration) {
	if left := l.left(now); took > StallPing<<left/2 {
		l.doublings, l.since = left, now
	}
}

// Patience returns how long the peer may take for an answer to a ping.
func (p *Peer) Patience() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.late.limit(time.Now())
}

// LocalAddress is the key, among the addresses of a process, of the abstract
// Unix socket, unix:@NAME, at which others on its machine reach it by grpc, ws
// and rest without the network stack.
const LocalAddress = "local"

// dialPings bounds one dial: as many times what an answer to a ping may take, 2 s at least.
const dialPings = 5

func (p *Peer) Dial(l *Link) {
	defer close(l.Ready)
	limit := dialPings * p.Patience()
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	e := p.Entry.Load()
	t, address := p.links.Transports[l.Transport], e.Addresses[l.Transport]
	switch {
	case t == nil:
		l.Err = transport.Errorf(transport.Unavailable, "this process has no transport %s", l.Transport)
	case address == "":
		l.Err = transport.Errorf(transport.Unavailable, "process %s does not listen by %s", e.Process, l.Transport)
	default:
		if local := e.Addresses[LocalAddress]; local != "" && e.Machine != "" && e.Machine == p.links.Machine && l.Transport != plan.NATS && l.Transport != plan.SHM {
			l.Conn, l.Err = t.Dial(ctx, local)
		}
		if l.Conn == nil { // on another machine, or in its own network namespace
			l.Conn, l.Err = t.Dial(ctx, address)
		}
	}
	if l.Err != nil {
		if transport.ErrorOf(l.Err).Code == transport.DeadlineExceeded { // ours, not that of the caller, which tries again
			l.Err = transport.Errorf(transport.Unavailable, "process %s cannot be reached by %s within %v", e.Process, l.Transport, limit)
		}
		p.discard(l)
	}
}

// discard prevents further use of a connection.
func (p *Peer) discard(l *Link) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.conns[l.Transport] == l {
		delete(p.conns, l.Transport)
	}
	p.retire(l)
}

// retire closes a connection when its last user has left. The caller holds the
// lock.
func (p *Peer) retire(l *Link) {
	l.retired = true
	if l.users == 0 {
		l.close()
	}
}

// close closes a dialed connection. The caller holds the peer's lock.
func (l *Link) close() {
	if !l.closed && l.Conn != nil {
		l.closed = true
		go l.Conn.Close()
	}
}

func (p *Peer) release(l *Link) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if l.users--; l.retired && l.dialed() { // else hangUp waits for it
		p.retire(l)
	}
}

// Request makes a request that needs no stamp.
func (p *Peer) Request(ctx context.Context, method string, req []byte) ([]byte, error) {
	return p.Send(ctx, method, nil, req)
}

// Send makes a request, with a stamp unless it is nil. Its errors are those of
// the connection: errors of the peer are in the answer.
func (p *Peer) Send(ctx context.Context, method string, s *Stamp, req []byte) ([]byte, error) {
	wanted, began := p.TransportOf(method), time.Now()
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
	if e := p.Entry.Load(); s != nil && e.Stamps {
		name = s.on(method, e.Numbers)
	}
	p.begin()
	resp, err := l.Conn.Call(ctx, name, req)
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
func (p *Peer) fail() {
	p.failed.Store(time.Now().UnixNano())
	p.failures.Add(1)
}

// retireUnwanted closes connections of transports that the plan does not use
// for this link any more.
func (p *Peer) retireUnwanted(wanted, method string) {
	if method == EventsMethod || method == AskMethod {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.conns) < 2 {
		return
	}
	for name, l := range p.conns {
		if name == wanted || name == p.TransportOf(EventsMethod) {
			continue
		}
		if l.dialed() { // else a goroutine waits for it
			delete(p.conns, name)
			p.retire(l)
		}
	}
}

// begin and end track roughly how long the oldest request is outstanding: since
// the first request after an idle time, or since the last answer.
func (p *Peer) begin() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.Outstanding.Add(1) == 1 {
		p.oldest = time.Now()
	}
}

func (p *Peer) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.oldest = time.Now()
	if p.Outstanding.Add(-1) == 0 {
		p.oldest = time.Time{}
	}
}

// Slow reports whether an answer is overdue.
func (p *Peer) Slow() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.stalled.Load() || !p.oldest.IsZero() && time.Since(p.oldest) > stallAfter
}

// Close ends all connections.
func (p *Peer) Close() {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.hangUp(func(*Link) bool { return true })
}

// dialed reports whether dialing is done.
func (l *Link) dialed() bool {
	select {
	case <-l.Ready:
		return true
	default:
		return false
	}
}

// hangUp closes the connections that are chosen, so that requests that wait for an answer
// are repeated elsewhere.
func (p *Peer) hangUp(chosen func(*Link) bool) {
	p.mu.Lock()
	var conns []*Link
	for name, l := range p.conns {
		if chosen(l) {
			delete(p.conns, name)
			l.retired = true
			conns = append(conns, l)
		}
	}
	p.mu.Unlock()
	for _, l := range conns {
		go func() {
			<-l.Ready
			p.mu.Lock()
			defer p.mu.Unlock()
			l.close()
		}()
	}
}

// Check pings a peer, unless another ping of it is under way, and hangs up if no answer comes
// within its patience. What is still being dialed has a limit of its own, and goes on.
func (p *Peer) Check(ctx context.Context) {
	if p.checking.Swap(true) {
		return
	}
	defer p.checking.Store(false)
	ctx, cancel := context.WithTimeout(ctx, p.Patience())
	defer cancel()
	began := time.Now()
	_, err := p.Request(ctx, PingMethod, nil)
	p.mu.Lock()
	switch now := time.Now(); {
	case err == nil:
		p.late.answered(now, now.Sub(began))
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		p.late.missed(now)
	}
	p.mu.Unlock()
	if err != nil && p.Outstanding.Load() > 0 {
		if !p.stalled.Swap(true) {
			p.links.Log.Warn("process does not answer; what it was sent goes elsewhere or waits", "process", p.Entry.Load().Process, "error", err)
		}
		p.hangUp((*Link).dialed)
	}
}

// Sign asks a peer for its sign of life until it answers, or the context ends. A peer that
// is slow is asked again when others have given its connections up for that (Check). The
// error is the context's if the peer has not answered, another if nobody is there.
func (p *Peer) Sign(ctx context.Context) ([]byte, error) {
	for {
		sign, err := p.Request(ctx, PingMethod, nil)
		switch {
		case err == nil:
			return sign, nil
		case ctx.Err() == nil && (!p.stalled.Load() || p.Dead(ctx)):
			return nil, err
		case backoff.Sleep(ctx, RedialAfter) != nil:
			return nil, ctx.Err()
		}
	}
}

// Usable reports whether the peer is worth trying now: after a failure it is
// tried again after a pause that doubles.
func (p *Peer) Usable() bool {
	if p.stalled.Load() {
		return false
	}
	failed := p.failed.Load()
	return failed == 0 || time.Since(time.Unix(0, failed)) > min(RedialAfter<<max(0, min(p.failures.Load()-1, 10)), redialMost)
}

// Usable returns the targets that are worth trying, in the same order.
func Usable(list []*Target) []*Target {
	return slices.DeleteFunc(list, func(t *Target) bool { return t.Peer != nil && !t.Peer.Usable() })
}
