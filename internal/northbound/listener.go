// Package northbound is what the services have in common that answer clients
// over HTTP: a listener that gives operators precedence when there are too many
// connections, a bound on the octets that requests and answers hold, and texts
// of errors that quote little. Services that listen import it.
package northbound

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/netip"
	"sync"
	"syscall"
	"time"

	"github.com/weft-sdn/weft/internal/localsocket"
)

// Rank orders clients by what they may do.
type Rank int

// The ranks; each gets in before those before it.
const (
	Stranger Rank = iota // has not said who it is, or was not let in
	Reader               // may look
	Operator             // may change the network
)

// Limits bound what the clients of a Listener take together.
type Limits struct {
	Connections     int                // in all
	PerClient       int                // of them
	Octets          int                // that requests and answers hold in all; half of them for clients below Operator
	OctetsPerClient int                // of them
	Newcomer        func(uid int) Rank // of a user of this machine before it says who it is; it counts until then
	Refused         func()             // counts connections that were closed at once
	Closed          func()             // counts connections that were closed to make room
}

// patience is how long a connection has at least to say whose it is before it is
// closed to make room.
const patience = time.Second / 2

// client is whose a connection is, as far as that is known when it is accepted:
// the user, within this machine, and else the address (Address).
type client struct {
	address netip.Addr
	local   bool
	uid     int
}

// Listener is a listener for an http.Server. When it has as many connections as
// it may, in all or of one client, it closes one of them for the next: one below
// Operator that is idle or whose handshake is not finished, that for longest;
// then one that waits for its client, follows events, or is served; and an
// operator's last, if it is not being served. ConnContext has to be that of the
// server, and Enter be called for each request.
type Listener struct {
	net.Listener
	limits   Limits
	patience time.Duration
	done     chan struct{}
	close    func() error

	freed chan struct{} // has one when a connection has gone

	mu      sync.Mutex // guards what follows, and all of conn
	all     queues
	low     int // octets of clients below Operator
	octets  int
	clients map[client]*share
}

// share is what one client has.
type share struct {
	of     client
	queues queues
	octets int
}

// Listen returns a listener with limits. RLIMIT_NOFILE lowers that of
// connections: they never take more than a quarter of the files that the process
// may have open.
func Listen(l net.Listener, limits Limits) *Listener {
	var files syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &files) == nil {
		limits.Connections = max(1, int(min(uint64(limits.Connections), files.Cur/4)))
	}
	x := &Listener{
		Listener: localsocket.Peers(l), limits: limits, patience: patience, done: make(chan struct{}), freed: make(chan struct{}, 1), clients: map[client]*share{},
	}
	x.close = sync.OnceValue(func() error {
		close(x.done)
		return x.Listener.Close()
	})
	return x
}

// Limit returns how many connections there may be.
func (l *Listener) Limit() int { return l.limits.Connections }

// Close ends listening; connections stay (net.Listener).
func (l *Listener) Close() error { return l.close() }

// Accept returns the next connection that there is room for (net.Listener).
func (l *Listener) Accept() (net.Conn, error) {
	for {
		raw, err := l.Listener.Accept()
		if err != nil {
			if (errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE)) && l.drop() {
				continue
			}
			return nil, err
		}
		c := &conn{Conn: raw, listener: l}
		from := l.recognize(c)
		for {
			wait, ok := l.admit(c, from)
			if ok {
				return c, nil
			}
			if wait == 0 {
				l.limits.Refused()
				raw.Close()
				break
			}
			select {
			case <-l.done:
				raw.Close()
				return nil, net.ErrClosed
			case <-l.freed:
			case <-time.After(wait):
			}
		}
	}
}

// recognize returns whose a connection is, and sets the rank that it has until
// it has said so itself.
func (l *Listener) recognize(c *conn) client {
	remote, local := Address(c.RemoteAddr().String()), Address(c.LocalAddr().String())
	from := client{address: remote}
	if !remote.IsLoopback() && remote != local {
		return from
	}
	if uid, err := localsocket.UserAt(c.RemoteAddr()); err == nil {
		from = client{local: true, uid: uid}
		c.rank = l.limits.Newcomer(uid)
	}
	return from
}

// admit takes a connection in, for which another may have to go. If it cannot,
// it returns how long to wait; 0: there is no room.
func (l *Listener) admit(c *conn, from client) (wait time.Duration, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	s := l.clients[from]
	if s != nil && s.queues.len() >= l.limits.PerClient {
		goes := s.queues.goes(now.Add(-l.patience))
		if goes == nil {
			return 0, false
		}
		if wait := l.spared(goes, now); wait > 0 && c.rank == Operator { // others would hold up all
			return wait, false
		}
		l.evict(goes)
	} else if l.all.len() >= l.limits.Connections {
		goes := l.all.goes(now.Add(-l.patience))
		if goes == nil {
			return 0, false
		}
		if wait := l.spared(goes, now); wait > 0 {
			return wait, false
		}
		l.evict(goes)
	}
	if s = l.clients[from]; s == nil {
		s = &share{of: from}
		l.clients[from] = s
	}
	c.share, c.since = s, now
	l.insert(c)
	return 0, true
}

// spared returns for how long a connection is not to be closed, since it has yet
// to say whose it is.
func (l *Listener) spared(c *conn, now time.Time) time.Duration {
	if c.state != quiet {
		return 0
	}
	return c.since.Add(l.patience).Sub(now)
}

// drop closes a connection as there are too many open files; false if there is
// none to close.
func (l *Listener) drop() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	goes := l.all.goes(time.Now())
	if goes != nil {
		l.evict(goes)
	}
	return goes != nil
}

// evict closes a connection to make room; mu is held.
func (l *Listener) evict(c *conn) {
	l.forget(c)
	l.limits.Closed()
	c.Conn.Close()
}

// forget ends that a connection counts; mu is held.
func (l *Listener) forget(c *conn) {
	if c.gone {
		return
	}
	l.remove(c)
	c.gone, c.octets = true, 0
	if c.share.queues.len() == 0 {
		delete(l.clients, c.share.of)
	}
	select {
	case l.freed <- struct{}{}:
	default:
	}
}

// insert and remove put a connection into the queues and sums, and take it out;
// mu is held.
func (l *Listener) insert(c *conn) {
	c.inAll = l.all.insert(c)
	c.inShare = c.share.queues.insert(c)
	l.count(c, c.octets)
}

func (l *Listener) remove(c *conn) {
	l.all.remove(c, c.inAll)
	c.share.queues.remove(c, c.inShare)
	l.count(c, -c.octets)
}

func (l *Listener) count(c *conn, octets int) {
	l.octets += octets
	c.share.octets += octets
	if c.rank < Operator {
		l.low += octets
	}
}

// ConnContext lets the requests of a connection know it (http.Server).
func (l *Listener) ConnContext(ctx context.Context, c net.Conn) context.Context {
	if secure, ok := c.(*tls.Conn); ok {
		c = secure.NetConn()
	}
	if c, ok := c.(*conn); ok {
		return context.WithValue(ctx, connKey{}, c)
	}
	return ctx
}

// connKey is the context's key for the connection that a request came by.
type connKey struct{}

// Address returns the address in HOST:PORT. For IPv6 it is the /64 network,
// because one machine has many addresses in it.
func Address(from string) netip.Addr {
	host, _, err := net.SplitHostPort(from)
	if err != nil {
		host = from
	}
	a, err := netip.ParseAddr(host)
	if err != nil {
		return netip.Addr{}
	}
	a = a.Unmap().WithZone("")
	if a.Is6() && !a.IsLoopback() {
		if p, err := a.Prefix(64); err == nil {
			a = p.Addr()
		}
	}
	return a
}
