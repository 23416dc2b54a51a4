package scp

import (
	"crypto/tls"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/internal/shares"
	"github.com/weft-sdn/weft/object"
)

// portPart is the part of the front's connections, and of each of its tables, that
// the hosts at one port of the network may have.
const portPart = 4

// places divides the connections of the front among the ports of the network at
// which clients are, however many addresses a port has; clients whose ports are not
// known share the part of one. An idle connection makes room for a new one, first one of
// the port that has the most.
type places struct {
	all     *shares.Places
	most    int
	reached *object.Limits
	refused Counter
	evicted Counter
	report  func() // logs, sparsely
}

func newPlaces(most int, reached *object.Limits, refused, evicted Counter, log *slog.Logger) *places {
	return &places{
		all:  shares.New(shares.Limits{What: "connections", Places: most, PerClient: max(1, most/portPart)}),
		most: most, reached: reached, refused: refused, evicted: evicted,
		report: shares.Sparsely(func(n uint64) {
			log.Warn("the front has no room for all connections (scp.connections): idle ones make room, others are refused; weft get health names the ports", "connections", most, "times", n)
		}),
	}
}

// room is the place of a connection.
type room struct {
	give func()
	idle func(bool) // notes whether the connection waits for its client
}

// take gives a connection from a port a place. The location of clients whose port is not
// known is zero. abort is called to end the connection in favour of another; it must not
// block.
func (p *places) take(at flow.Location, abort func()) (room, bool) {
	note := func(c Counter) {
		c.Add(1)
		p.report()
		if now := time.Now().UnixNano(); at == (flow.Location{}) {
			p.reached.Reach(now, "scp.connections", p.most, "clients at unknown ports")
		} else {
			p.reached.ReachAt(now, "scp.connections", p.most, at)
		}
	}
	place, err := p.all.TryAcquire(shares.Client{Name: at.String()}, func(error) { note(p.evicted); abort() })
	if err != nil {
		note(p.refused)
		return room{}, false
	}
	return room{place.Release, place.SetIdle}, true
}

// limited returns a listener whose connections have places; those without one are
// closed at once. locate says at which port of the network an address is.
func limited(l net.Listener, p *places, locate func(netip.Addr) (object.Station, bool)) net.Listener {
	return &limitedListener{l, p, locate}
}

type limitedListener struct {
	net.Listener
	places *places
	locate func(netip.Addr) (object.Station, bool)
}

// Accept returns the next connection for which there is room (net.Listener).
func (l *limitedListener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		from, _ := netip.ParseAddrPort(c.RemoteAddr().String()) // of TCP
		s, _ := l.locate(from.Addr().Unmap())                   // zero if that is not known
		r, ok := l.places.take(s.At, func() { c.Close() })
		if ok {
			return &limitedConn{Conn: c, room: r, once: sync.OnceFunc(r.give)}, nil
		}
		c.Close()
	}
}

type limitedConn struct {
	net.Conn
	room room
	once func()
}

// Close closes the connection (net.Conn).
func (c *limitedConn) Close() error {
	c.once()
	return c.Conn.Close()
}

func (c *limitedConn) setIdle(idle bool) { c.room.idle(idle) }

// noteState records whether a connection is idle (http.Server.ConnState).
func noteState(c net.Conn, state http.ConnState) {
	if secure, ok := c.(*tls.Conn); ok {
		c = secure.NetConn()
	}
	if c, ok := c.(interface{ setIdle(bool) }); ok {
		c.setIdle(state != http.StateActive)
	}
}
