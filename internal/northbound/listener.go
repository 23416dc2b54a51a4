// Package northbound is the common part of services that answer clients over
// HTTP: a listener that gives operators precedence when there are too many
// connections, a bound on the bytes that requests and answers hold, and error
// texts that quote little. Services that listen import it.
package northbound

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"syscall"
	"time"

	"github.com/weft-sdn/weft/internal/localsocket"
)

// Rank orders clients by their rights.
type Rank int

// The ranks; a higher one takes precedence.
const (
	Stranger      Rank = iota // has not authenticated, or was rejected
	Reader                    // may look
	Operator                  // may change the network
	Administrator             // may do everything
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

// patience is how long a connection may at least take to authenticate before it
// is closed to make room.
const patience = time.Second / 2

// vanished is how long what is sent may stay without acknowledgement, or without
// room at the other end, before the kernel ends the connection: nobody else
// notices that a machine is gone while an answer waits for it.
const vanished = time.Minute

// tcpUserTimeout is TCP_USER_TIMEOUT (tcp(7)), which syscall lacks.
const tcpUserTimeout = 18

// Client identifies the owner of a connection as far as it is known at accept:
// the user, within this machine, or else the address (Address).
type Client struct {
	address netip.Addr
	local   bool
	uid     int
}

// ClientAt returns the client at an address, HOST:PORT, of which no more is known.
func ClientAt(from string) Client { return Client{address: Address(from)} }

// ClientOf returns the client that made a request from an address.
func ClientOf(ctx context.Context, from string) Client {
	if c, ok := ctx.Value(connKey{}).(*conn); ok {
		return c.share.of // which never changes
	}
	return ClientAt(from)
}

// String names the client (fmt.Stringer).
func (c Client) String() string {
	if c.local {
		return fmt.Sprintf("user %d of this machine", c.uid)
	}
	return c.address.String()
}

// Listener is a listener for an http.Server. When it is full, in all or for one
// client, it closes a connection for the next one: first the one below Operator
// that has been idle, or in its handshake, for longest; then one that waits for
// its client, follows events, or is being served; then an operator's that is not
// being served; and last such a one of an administrator. ConnContext must be that of the server, and every
// request must call Enter.
type Listener struct {
	net.Listener
	limits   Limits
	patience time.Duration
	done     chan struct{}
	close    func() error

	freed chan struct{} // has one value after a connection has ended

	mu      sync.Mutex // guards what follows, and all of conn
	all     queues
	low     int // octets of clients below Operator
	octets  int
	clients map[Client]*share
}

// share is what one client uses.
type share struct {
	of     Client
	queues queues
	octets int
}

// Listen returns a listener with limits. RLIMIT_NOFILE lowers the limit of
// connections: they never take more than a quarter of the process's open files.
func Listen(l net.Listener, limits Limits) *Listener {
	var files syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &files) == nil {
		limits.Connections = max(1, int(min(uint64(limits.Connections), files.Cur/4)))
	}
	x := &Listener{
		Listener: localsocket.Peers(l), limits: limits, patience: patience, done: make(chan struct{}), freed: make(chan struct{}, 1), clients: map[Client]*share{},
	}
	x.close = sync.OnceValue(func() error {
		close(x.done)
		return x.Listener.Close()
	})
	return x
}

// Limit returns the largest number of connections.
func (l *Listener) Limit() int { return l.limits.Connections }

// Close ends listening; connections stay (net.Listener).
func (l *Listener) Close() error { return l.close() }

// Accept returns the next connection for which there is room (net.Listener).
func (l *Listener) Accept() (net.Conn, error) {
	for {
		raw, err := l.Listener.Accept()
		if err != nil {
			if (errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE)) && l.drop() {
				continue
			}
			return nil, err
		}
		giveUp(raw)
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

// giveUp has the kernel end a connection whose client has vanished. A listener's
// option would not do: connections of a listener of MPTCP, which net uses, do not
// take it over.
func giveUp(c net.Conn) {
	if within, ok := c.(interface{ NetConn() net.Conn }); ok {
		c = within.NetConn()
	}
	s, ok := c.(syscall.Conn)
	if !ok {
		return
	}
	if raw, err := s.SyscallConn(); err == nil {
		_ = raw.Control(func(fd uintptr) { // it is closed if it fails
			_ = syscall.SetsockoptInt(int(fd), syscall.IPPROTO_TCP, tcpUserTimeout, int(vanished.Milliseconds()))
		})
	}
}

// recognize returns the owner of a connection, and sets its rank until it
// authenticates.
func (l *Listener) recognize(c *conn) Client {
	remote, local := Address(c.RemoteAddr().String()), Address(c.LocalAddr().String())
	from := Client{address: remote}
	if !remote.IsLoopback() && remote != local {
		return from
	}
	if uid, err := localsocket.UserAt(c.RemoteAddr()); err == nil {
		from = Client{local: true, uid: uid}
		c.rank = l.limits.Newcomer(uid)
	}
	return from
}

// admit accepts a connection; it may close another one for it. If it cannot, it
// returns how long to wait; 0: there is no room.
func (l *Listener) admit(c *conn, from Client) (wait time.Duration, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	s := l.clients[from]
	if s != nil && s.queues.len() >= l.limits.PerClient {
		goes := s.queues.goes(now.Add(-l.patience))
		if goes == nil {
			return 0, false
		}
		if wait := l.spared(goes, now); wait > 0 && c.rank == Operator { // others would delay everybody
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

// spared returns for how long a connection must not be closed yet, because it
// may still authenticate.
func (l *Listener) spared(c *conn, now time.Time) time.Duration {
	if c.state != quiet {
		return 0
	}
	return c.since.Add(l.patience).Sub(now)
}

// drop closes a connection because there are too many open files; false if
// there is none to close.
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

// forget removes a connection from the counts; mu is held.
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

// insert and remove add a connection to the queues and sums, and remove it; mu
// is held.
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

// ConnContext adds the connection to the context of its requests (http.Server).
func (l *Listener) ConnContext(ctx context.Context, c net.Conn) context.Context {
	if secure, ok := c.(*tls.Conn); ok {
		c = secure.NetConn()
	}
	if c, ok := c.(*conn); ok {
		return context.WithValue(ctx, connKey{}, c)
	}
	return ctx
}

// connKey is the context's key for the connection of a request.
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
