package scp

import (
	"net"
	"net/netip"
	"sync"

	"github.com/weft-sdn/weft/internal/northbound"
)

// limited returns a listener that has so many connections at most, and an eighth
// of them from one client; further ones are closed at once.
func limited(l net.Listener, most int) net.Listener {
	return &limitedListener{Listener: l, most: most, each: max(1, most/8), open: map[netip.Addr]int{}}
}

type limitedListener struct {
	net.Listener
	most, each int

	mu    sync.Mutex // guards the following
	total int
	open  map[netip.Addr]int
}

// Accept returns the next connection for which there is room (net.Listener).
func (l *limitedListener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		from := northbound.Address(c.RemoteAddr().String())
		if l.take(from) {
			return &limitedConn{Conn: c, give: sync.OnceFunc(func() { l.give(from) })}, nil
		}
		c.Close()
	}
}

func (l *limitedListener) take(from netip.Addr) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.total >= l.most || l.open[from] >= l.each {
		return false
	}
	l.total++
	l.open[from]++
	return true
}

func (l *limitedListener) give(from netip.Addr) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.total--
	if l.open[from]--; l.open[from] == 0 {
		delete(l.open, from)
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
