package scp

import (
	"net"
	"net/netip"
	"sync"

	"github.com/weft-sdn/weft/internal/northbound"
)

// shares bounds what all have together, and what each one has of it.
type shares[K comparable] struct {
	most, each int

	mu    sync.Mutex // guards the following
	total int
	of    map[K]int
}

func newShares[K comparable](most, each int) *shares[K] {
	return &shares[K]{most: most, each: max(1, each), of: map[K]int{}}
}

// take takes one for k. It reports whether there was room.
func (s *shares[K]) take(k K) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.total >= s.most || s.of[k] >= s.each {
		return false
	}
	s.total++
	s.of[k]++
	return true
}

func (s *shares[K]) give(k K) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.total--
	if s.of[k]--; s.of[k] == 0 {
		delete(s.of, k)
	}
}

// has returns how many k has.
func (s *shares[K]) has(k K) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.of[k]
}

// taken returns how many are taken.
func (s *shares[K]) taken() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.total
}

// limited returns a listener that has so many connections at most, and an eighth
// of them from one client; further ones are closed at once.
func limited(l net.Listener, most int) net.Listener {
	return &limitedListener{l, newShares[netip.Addr](most, most/8)}
}

type limitedListener struct {
	net.Listener
	open *shares[netip.Addr]
}

// Accept returns the next connection for which there is room (net.Listener).
func (l *limitedListener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		from := northbound.Address(c.RemoteAddr().String())
		if l.open.take(from) {
			return &limitedConn{Conn: c, give: sync.OnceFunc(func() { l.open.give(from) })}, nil
		}
		c.Close()
	}
}

type limitedConn struct {
	net.Conn
	give func()
}

// Close closes the connection (net.Conn).
func (c *limitedConn) Close() error {
	c.give()
	return c.Conn.Close()
}
