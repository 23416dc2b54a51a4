package gateway

import (
	"net"
	"net/netip"
	"sync"
)

// fair is a listener that takes so many connections of one address (peerOf) only,
// so that one client does not keep out all others.
type fair struct {
	net.Listener
	most    int
	refused func()

	mu    sync.Mutex // guards count
	count map[netip.Addr]int
}

func newFair(l net.Listener, most int, refused func()) *fair {
	return &fair{Listener: l, most: most, refused: refused, count: map[netip.Addr]int{}}
}

// Accept returns the next connection of an address that has not too many
// (net.Listener).
func (f *fair) Accept() (net.Conn, error) {
	for {
		conn, err := f.Listener.Accept()
		if err != nil {
			return nil, err
		}
		peer := peerOf(conn.RemoteAddr().String())
		if f.enter(peer) {
			return &counted{Conn: conn, leave: sync.OnceFunc(func() { f.leave(peer) })}, nil
		}
		f.refused()
		conn.Close()
	}
}

func (f *fair) enter(peer netip.Addr) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.count[peer] >= f.most {
		return false
	}
	f.count[peer]++
	return true
}

func (f *fair) leave(peer netip.Addr) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.count[peer]--; f.count[peer] == 0 {
		delete(f.count, peer)
	}
}

// counted is a connection that is counted until it is closed.
type counted struct {
	net.Conn
	leave func()
}

// Close closes the connection (net.Conn).
func (c *counted) Close() error {
	defer c.leave()
	return c.Conn.Close()
}
