package scp

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/weft-sdn/weft/object"
)

// target is a producer to which the stack has connections.
type target struct {
	object.Station
	conns int
	left  int64 // when it had the last one
}

// reach connects to a producer.
func (w *wire) reach(ctx context.Context, to netip.AddrPort) (net.Conn, error) {
	s, known := w.locate(to.Addr())
	if !known {
		return nil, fmt.Errorf("%v has not been seen in the network", to.Addr())
	}
	count := func(n int) {
		w.mu.Lock()
		defer w.mu.Unlock()
		r := w.targets[to.Addr()]
		if r == nil {
			r = &target{}
			w.targets[to.Addr()] = r
		}
		if r.conns += n; n > 0 {
			r.Station = s
		}
		r.left = time.Now().UnixNano()
	}
	count(1)
	c, err := w.stack.dial(ctx, to)
	if err != nil {
		count(-1)
		return nil, err
	}
	return &targetConn{c, sync.OnceFunc(func() { count(-1) })}, nil
}

// targetConn is a connection to a producer.
type targetConn struct {
	net.Conn
	end func()
}

// Close closes the connection (net.Conn).
func (c *targetConn) Close() error {
	c.end()
	return c.Conn.Close()
}

// isTarget reports whether the stack has, or has just had, connections to an address.
func (w *wire) isTarget(a netip.Addr) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.targets[a] != nil
}

// station returns where the receiver of the stack's own packets is, nil if that is
// not known.
func (w *wire) station(to netip.Addr) *object.Station {
	if to == w.nrf.Addr() {
		return w.there.Load()
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if r := w.targets[to]; r != nil {
		at := r.Station // which may change
		return &at
	}
	return nil
}

// source returns the source of an IP packet of the stack's.
func source(ip []byte) netip.Addr {
	from := ip[8:24]
	if ip[0]>>4 == 4 {
		from = ip[12:16]
	}
	a, _ := netip.AddrFromSlice(from)
	return a
}
