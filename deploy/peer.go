package deploy

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"weft/plan"
	"weft/transport"
)

// peer is one run of another process, and our connections to it: one for each
// transport in use. Which transport a request takes is looked up in the plan in
// force every time, so that it may change at any moment; a connection that is
// no longer wanted is closed when the last answer has come.
type peer struct {
	node  *Node
	entry atomic.Pointer[Entry] // of one incarnation

	outstanding atomic.Int64
	oldest      atomic.Int64 // when the request was sent that has waited longest, ns; 0 if none waits
	stalled     atomic.Bool  // it does not answer, though its connection lasts
	failed      atomic.Int64 // when it could not be reached last, ns; 0 if it was since

	mu     sync.Mutex // guards what follows
	conns  map[string]*link
	closed bool
}

// link is a connection over one transport.
type link struct {
	transport string
	ready     chan struct{} // closed when dialled
	conn      transport.Conn
	err       error
	users     int  // guarded by the peer's lock
	retired   bool // to be closed when nobody uses it; guarded by the peer's lock
}

// meet keeps the peer of a process whose entry has changed; it is called with
// the node's lock.
func (n *Node) meet(process string, e *Entry) {
	p := n.peers[process]
	if p != nil && (e == nil || p.entry.Load().Incarnation != e.Incarnation) {
		delete(n.peers, process)
		go p.close()
		p = nil
	}
	switch {
	case e == nil:
	case p == nil:
		p = &peer{node: n, conns: map[string]*link{}}
		p.entry.Store(e)
		n.peers[process] = p
	default:
		p.entry.Store(e)
	}
}

// dead reports whether nobody has been reached for a while.
func (p *peer) dead() bool {
	if failed := p.failed.Load(); failed != 0 && time.Since(time.Unix(0, failed)) < time.Minute {
		ctx, cancel := context.WithTimeout(context.Background(), stallPing)
		defer cancel()
		_, err := p.request(ctx, PingMethod, nil)
		return err != nil
	}
	return false
}

// transportOf returns the transport by which a kind of request goes to the
// peer.
func (p *peer) transportOf(method string) string {
	v := p.node.view.Load()
	if v.current == nil {
		return "grpc"
	}
	if method == eventsMethod {
		return v.current.plan.Events
	}
	t := v.current.plan.TransportBetween(v.mine.Worker, p.entry.Load().Worker)
	if t == plan.Inproc { // two processes that were one, or will be, while a plan is being applied
		t = v.current.plan.Transport
	}
	return t
}

// acquire returns a connection of the wanted transport, dialled if need be.
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

// dialTimeout bounds the making of one connection.
const dialTimeout = 2 * time.Second

func (p *peer) dial(l *link) {
	defer close(l.ready)
	ctx, cancel := context.WithTimeout(context.Background(), dialTimeout)
	defer cancel()
	e := p.entry.Load()
	t, address := p.node.config.Transports[l.transport], e.Addresses[l.transport]
	switch {
	case t == nil:
		l.err = transport.Errorf(transport.Unavailable, "this process has no transport %s", l.transport)
	case address == "":
		l.err = transport.Errorf(transport.Unavailable, "process %s does not listen by %s", e.Process, l.transport)
	default:
		l.conn, l.err = t.Dial(ctx, address)
	}
	if l.err != nil {
		p.discard(l)
	}
}

// discard sees that a connection is not used again.
func (p *peer) discard(l *link) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.conns[l.transport] == l {
		delete(p.conns, l.transport)
	}
	p.retire(l)
}

// retire closes a connection when its last user has left; it is called with
// the lock.
func (p *peer) retire(l *link) {
	l.retired = true
	if l.users == 0 && l.conn != nil {
		conn := l.conn
		l.conn = nil
		go conn.Close()
	}
}

func (p *peer) release(l *link) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if l.users--; l.retired {
		p.retire(l)
	}
}

// request makes one request. Its errors are those of the connection: what the
// other side has to say is in the answer.
func (p *peer) request(ctx context.Context, method string, req []byte) ([]byte, error) {
	wanted := p.transportOf(method)
	l, err := p.acquire(ctx, wanted)
	if err != nil {
		if ctx.Err() == nil {
			p.failed.Store(time.Now().UnixNano())
		}
		return nil, err
	}
	p.begin()
	resp, err := l.conn.Call(ctx, method, req)
	p.end()
	if err == nil {
		p.failed.Store(0)
		p.stalled.Store(false)
	} else if transport.ErrorOf(err).Code == transport.Unavailable {
		p.failed.Store(time.Now().UnixNano())
		p.discard(l)
	}
	p.release(l)
	p.retireUnwanted(wanted, method)
	return resp, err
}

// retireUnwanted closes connections of transports that the plan no longer
// gives this link.
func (p *peer) retireUnwanted(wanted, method string) {
	if method == eventsMethod {
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
		default: // somebody is waiting for it
		}
	}
}

// begin and end keep the time of the oldest request roughly: that of the first
// since nothing was outstanding, moved on with every answer.
func (p *peer) begin() {
	if p.outstanding.Add(1) == 1 {
		p.oldest.Store(time.Now().UnixNano())
	}
}

func (p *peer) end() {
	if p.outstanding.Add(-1) == 0 {
		p.oldest.Store(0)
	} else {
		p.oldest.Store(time.Now().UnixNano())
	}
}

// close ends all connections.
func (p *peer) close() {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.hangUp()
}

// hangUp closes the connections, so that what waits for an answer goes
// elsewhere.
func (p *peer) hangUp() {
	p.mu.Lock()
	conns := p.conns
	p.conns = map[string]*link{}
	p.mu.Unlock()
	for _, l := range conns {
		go func() {
			<-l.ready
			p.mu.Lock()
			conn := l.conn
			l.conn, l.retired = nil, true
			p.mu.Unlock()
			if conn != nil {
				conn.Close()
			}
		}()
	}
}

// watchPeers asks peers that take long to answer for a sign of life, and hangs
// up on those that give none.
func (n *Node) watchPeers(ctx context.Context) {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		n.mu.Lock()
		var slow []*peer
		for _, p := range n.peers {
			oldest := p.oldest.Load()
			if p.stalled.Load() || oldest != 0 && time.Since(time.Unix(0, oldest)) > stallAfter {
				slow = append(slow, p)
			}
		}
		n.mu.Unlock()
		var asked sync.WaitGroup
		for _, p := range slow {
			asked.Go(func() { p.check(ctx) })
		}
		asked.Wait()
	}
}

// check asks a peer for a sign of life.
func (p *peer) check(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, stallPing)
	defer cancel()
	if _, err := p.request(ctx, PingMethod, nil); err != nil && p.outstanding.Load() > 0 {
		if !p.stalled.Swap(true) {
			p.node.log.Warn("process does not answer; what it was sent goes elsewhere or waits", "process", p.entry.Load().Process, "error", err)
		}
		p.hangUp()
	}
}

// usable reports whether the peer is worth trying now.
func (p *peer) usable() bool {
	if p.stalled.Load() {
		return false
	}
	failed := p.failed.Load()
	return failed == 0 || time.Since(time.Unix(0, failed)) > redialAfter
}

// order puts targets that are worth trying first, keeping their order.
func usableFirst(list []*target) []*target {
	ok := func(t *target) bool { return t.peer == nil || t.peer.usable() }
	if !slices.ContainsFunc(list, func(t *target) bool { return !ok(t) }) {
		return list
	}
	out := make([]*target, 0, len(list))
	for _, t := range list {
		if ok(t) {
			out = append(out, t)
		}
	}
	return out
}
