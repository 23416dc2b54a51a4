package bus

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nuid"

	"github.com/weft-sdn/weft/transport"
)

const (
	// claimWait is how long a new listener waits for others at its address.
	claimWait = 50 * time.Millisecond
	// dialWait bounds Dial if its context does not.
	dialWait = 5 * time.Second
	// The other servers of a cluster know of a new listener after at most
	// newsTries times newsPause.
	newsTries = 5
	newsPause = 20 * time.Millisecond
	// awayLimit is how long a connection waits for an unreachable peer before
	// it is lost.
	awayLimit = 5 * time.Second
)

// peers is the transport over a store's connection to NATS. An address is any
// text; all users of the same NATS reach it.
//
// Connections survive the loss of the connection to NATS: calls in progress,
// and those made meanwhile, fail with Unavailable. A connection is lost when
// the listener or its process ends, or is unreachable for awayLimit.
type peers struct {
	store *Store

	mu        sync.Mutex // guards those below
	closed    bool
	listeners map[*listener]struct{}
	dialed    map[*dialed]struct{}
}

func newPeers(s *Store) *peers {
	return &peers{store: s, listeners: map[*listener]struct{}{}, dialed: map[*dialed]struct{}{}}
}

// at returns the subject for a purpose at an address.
func at(address, purpose string) string {
	var b strings.Builder
	b.WriteString("weft.at.")
	for i := range len(address) {
		c := address[i]
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '_' {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String() + "." + purpose
}

// ends returns the two subjects of a connection.
func ends(id string) (up, down string) { return "weft.peer." + id + ".up", "weft.peer." + id + ".down" }

// Listen serves a handler at an address. It takes claimWait, to find out
// whether another listener uses the address.
func (p *peers) Listen(address string, h transport.Handler) (transport.Listener, error) {
	if address == "" {
		return nil, transport.Errorf(transport.Unavailable, "listen: the address is empty; give it a name")
	}
	l := &listener{peers: p, address: address, handler: h, id: nuid.Next(), accepted: map[*accepted]struct{}{}}
	l.ctx, l.cancel = context.WithCancel(context.Background())
	if err := l.open(); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	p.mu.Lock()
	closed := p.closed
	p.listeners[l] = struct{}{}
	p.mu.Unlock()
	if closed {
		return nil, errors.Join(transport.Errorf(transport.Unavailable, "listen at %q: the store is closed", address), l.Close())
	}
	return l, nil
}

// Dial connects to an address.
func (p *peers) Dial(ctx context.Context, address string) (transport.Conn, error) {
	if err := expired(ctx); err != nil {
		return nil, err
	}
	c := newDialed(p, address)
	nc := p.store.conn
	sub, err := nc.Subscribe(c.out.reply, c.take)
	if err != nil {
		return nil, transport.Errorf(transport.Unavailable, "dial %q: %v", address, err)
	}
	c.sub = sub
	if err := errors.Join(sub.SetPendingLimits(-1, -1), p.request(ctx, c)); err != nil {
		c.end()
		return nil, transport.ErrorOf(err)
	}
	p.mu.Lock()
	closed := p.closed
	p.dialed[c] = struct{}{}
	p.mu.Unlock()
	if closed {
		c.end()
		return nil, c.lost()
	}
	return c, nil
}

// request asks the listener to accept a new connection.
func (p *peers) request(ctx context.Context, c *dialed) error {
	waiting, cancel := context.WithTimeout(ctx, dialWait)
	defer cancel()
	alive, _ := p.store.link.state()
	defer context.AfterFunc(alive, cancel)()
	tries := 1
	if p.store.conn.ConnectedClusterName() != "" {
		tries = newsTries // a new listener may not be known at this server yet
	}
	var err error
	for try := range tries {
		if try > 0 {
			time.Sleep(newsPause)
		}
		_, err = p.store.conn.RequestWithContext(waiting, at(c.address, "open"), []byte(c.id))
		if !errors.Is(err, nats.ErrNoResponders) {
			break
		}
	}
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return transport.ErrorOf(ctx.Err())
	case alive.Err() != nil:
		return transport.Errorf(transport.Unavailable, "dial %q: the connection to the bus is lost", c.address)
	case errors.Is(err, nats.ErrNoResponders):
		return transport.Errorf(transport.Unavailable, "dial: nobody listens at %q on the bus", c.address)
	case waiting.Err() != nil:
		return transport.Errorf(transport.Unavailable, "dial: %q does not answer on the bus", c.address)
	}
	return transport.Errorf(transport.Unavailable, "dial %q on the bus: %v", c.address, err)
}

// expired returns an error if ctx has ended, even if its timer has not fired
// yet.
func expired(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return transport.ErrorOf(err)
	}
	if deadline, ok := ctx.Deadline(); ok && !time.Now().Before(deadline) {
		return transport.ErrorOf(context.DeadlineExceeded)
	}
	return nil
}

// sendable returns an error if a call must not begin.
func sendable(ctx context.Context, name string, message []byte) error {
	if err := transport.Sendable(ctx, name, message); err != nil {
		return err
	}
	return expired(ctx)
}

// each calls f for all listeners and connections, without the lock.
func (p *peers) each(listening func(*listener), dialing func(*dialed)) {
	p.mu.Lock()
	var ls []*listener
	for l := range p.listeners {
		ls = append(ls, l)
	}
	var cs []*dialed
	for c := range p.dialed {
		cs = append(cs, c)
	}
	p.mu.Unlock()
	for _, l := range ls {
		listening(l)
	}
	for _, c := range cs {
		dialing(c)
	}
}

// cut is called when the connection to NATS is lost, mend when it is back.
func (p *peers) cut()  { p.each((*listener).cut, (*dialed).cut) }
func (p *peers) mend() { p.each((*listener).mend, (*dialed).mend) }

// close ends everything, while the connection to NATS is up.
func (p *peers) close() {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.each(func(l *listener) { _ = l.Close() }, (*dialed).end) // peers that are not notified time out
	p.flush()
}

// flush waits up to a second until the server has everything that was sent
// before. If it does not answer, the peers time out.
func (p *peers) flush() {
	if p.store.conn.IsConnected() {
		_ = p.store.conn.FlushTimeout(time.Second)
	}
}
