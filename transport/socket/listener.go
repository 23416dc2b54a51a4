package socket

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"github.com/weft-sdn/weft/transport"
)

// Config is how a Listener treats those who connect.
type Config struct {
	TLS      *tls.Config   // nil: none, and then only this machine may connect
	MaxConns int           // at once; further ones are closed at once; default 4096
	Hello    time.Duration // until TLS is set up and the protocol known; default 10 s

	admit func(net.Conn) error // who may connect without TLS; nil: the user who runs the process, and root
}

// Listener is a listening socket that distinguishes HTTP/2 from HTTP/1.1.
type Listener struct {
	config  Config
	l       net.Listener
	address string
	http1   *queue
	http2   *queue

	mu     sync.Mutex // guards below
	conns  map[*counted]struct{}
	closed bool
}

// Listen listens at an address. Errors are *transport.Error.
func Listen(address string, c Config) (*Listener, error) {
	if c.MaxConns == 0 {
		c.MaxConns = 4096
	}
	if c.Hello == 0 {
		c.Hello = 10 * time.Second
	}
	if c.admit == nil {
		c.admit = admit
	}
	l, err := open(address, c.TLS != nil)
	if err != nil {
		return nil, transport.Errorf(transport.Unavailable, "listen on %s: %v", address, err)
	}
	s := &Listener{config: c, l: l, conns: map[*counted]struct{}{}}
	s.address = l.Addr().String()
	if l.Addr().Network() == "unix" {
		s.address = "unix:" + s.address
	}
	s.http1, s.http2 = newQueue(l.Addr()), newQueue(l.Addr())
	if c.TLS != nil {
		s.config.TLS = c.TLS.Clone()
		// Who knows both means HTTP in general; gRPC offers h2 only.
		s.config.TLS.NextProtos = []string{"http/1.1", "h2"}
	}
	go s.accept()
	return s, nil
}

// Address is where to dial.
func (s *Listener) Address() string { return s.address }

// HTTP1 gives the connections that do not speak HTTP/2 from the start, as
// *tls.Conn if they have TLS. Closing it refuses them.
func (s *Listener) HTTP1() net.Listener { return s.http1 }

// HTTP2 gives the connections that do.
func (s *Listener) HTTP2() net.Listener { return s.http2 }

// Stop ends listening and leaves the connections.
func (s *Listener) Stop() error {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	err := s.l.Close()
	if errors.Is(err, net.ErrClosed) {
		err = nil
	}
	_ = s.http1.Close() // never fails
	_ = s.http2.Close()
	return err
}

// Close ends listening and all connections.
func (s *Listener) Close() error {
	err := s.Stop()
	s.mu.Lock()
	conns := s.conns
	s.conns = map[*counted]struct{}{}
	s.mu.Unlock()
	for c := range conns {
		_ = c.Conn.Close() // whoever has it sees that it has ended
	}
	return err
}

func (s *Listener) accept() {
	for {
		conn, err := s.l.Accept()
		if err != nil {
			if s.isClosed() || errors.Is(err, net.ErrClosed) {
				return
			}
			time.Sleep(20 * time.Millisecond) // out of file descriptors, most likely
			continue
		}
		prepare(conn)
		c := &counted{Conn: &meter{Conn: conn}, raw: conn, listener: s}
		s.mu.Lock()
		full := s.closed || len(s.conns) >= s.config.MaxConns
		if !full {
			s.conns[c] = struct{}{}
		}
		s.mu.Unlock()
		if full {
			_ = conn.Close() // the peer learns it from that
			continue
		}
		go s.greet(c)
	}
}

func (s *Listener) isClosed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closed
}

// greet sets up TLS, finds out the protocol and passes the connection on.
func (s *Listener) greet(c *counted) {
	ctx, cancel := context.WithTimeout(context.Background(), s.config.Hello)
	defer cancel()
	to, conn := s.http1, net.Conn(c)
	_ = c.SetDeadline(time.Now().Add(s.config.Hello)) // fails if the connection has ended; so will reading
	if s.config.TLS == nil {
		if err := s.config.admit(c.raw); err != nil {
			turnAway(c, err)
			return
		}
	}
	if s.config.TLS != nil {
		t := tls.Server(c, s.config.TLS)
		if err := t.HandshakeContext(ctx); err != nil {
			_ = c.Close() // the peer has been told by TLS
			return
		}
		if conn = t; t.ConnectionState().NegotiatedProtocol == "h2" {
			to = s.http2
		}
	} else {
		if _, err := io.ReadFull(c.Conn, c.first[:]); err != nil {
			_ = c.Close() // it has said nothing
			return
		}
		if c.unread = c.first[:]; string(c.unread) == "PRI" {
			to = s.http2
		}
	}
	_ = c.SetDeadline(time.Time{})
	to.put(conn)
}

// turnAway closes a connection, and says why to those who speak HTTP/1.1.
func turnAway(c *counted, why error) {
	_ = c.SetDeadline(time.Now().Add(200 * time.Millisecond)) // the peer may have gone, which is as well: so below
	_, _ = fmt.Fprintf(c, "HTTP/1.1 403 Forbidden\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\r\n%v\n", why)
	if half, ok := c.raw.(interface{ CloseWrite() error }); ok {
		_ = half.CloseWrite()
		_, _ = io.Copy(io.Discard, io.LimitReader(c.raw, 64<<10)) // else what is unread would have the answer discarded
	}
	_ = c.Close()
}

// counted is an accepted connection, one of those that are bounded. It reads
// again what was read to find out the protocol.
type counted struct {
	net.Conn
	raw      net.Conn // what was accepted
	listener *Listener
	first    [3]byte // "PRI" begins HTTP/2
	unread   []byte
}

// NetConn returns the connection below.
func (c *counted) NetConn() net.Conn { return c.Conn }

func (c *counted) Read(p []byte) (int, error) {
	if len(c.unread) > 0 {
		n := copy(p, c.unread)
		c.unread = c.unread[n:]
		return n, nil
	}
	return c.Conn.Read(p)
}

func (c *counted) Close() error {
	c.listener.mu.Lock()
	delete(c.listener.conns, c)
	c.listener.mu.Unlock()
	return c.Conn.Close()
}

// queue is a net.Listener of connections accepted elsewhere.
type queue struct {
	addr   net.Addr
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func newQueue(addr net.Addr) *queue {
	return &queue{addr: addr, conns: make(chan net.Conn), closed: make(chan struct{})}
}

func (q *queue) put(conn net.Conn) {
	select {
	case q.conns <- conn:
	case <-q.closed:
		_ = conn.Close() // the peer learns it from that
	}
}

func (q *queue) Accept() (net.Conn, error) {
	select {
	case conn := <-q.conns:
		return conn, nil
	case <-q.closed:
		return nil, net.ErrClosed
	}
}

func (q *queue) Addr() net.Addr { return q.addr }

func (q *queue) Close() error {
	q.once.Do(func() { close(q.closed) })
	return nil
}
