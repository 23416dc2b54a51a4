package scp

import (
	"context"
	"net/netip"
	"sync"
	"time"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
	"gvisor.dev/gvisor/pkg/tcpip/transport/tcp"

	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/internal/backoff"
	"github.com/weft-sdn/weft/packet"
)

// older is the connections that the NRF has when a front without a host begins to
// serve. Each goes on with the NRF until it has been idle, so that no request is cut;
// then both ends are reset, and its client comes to the front.
type older struct {
	mu    sync.Mutex // guards the following
	began int64      // when the front did
	of    *table[netip.AddrPort, olderConn]
}

// olderConn is one connection, by its client.
type olderConn struct {
	at       flow.Location
	mac, via flow.MAC // its own, and to which it sends
	last     int64
	asked    int64 // when its client was made to say where it is; 0: it was not
	over     bool
}

// For how long older connections go on, when one is idle, and how long its client may take
// to say where it is.
const (
	olderTime   = int64(5 * time.Minute)
	olderIdle   = int64(5 * time.Second)
	olderAnswer = int64(2 * time.Second)
)

func newOlder(most int) *older { return &older{of: newTable[netip.AddrPort, olderConn](most)} }

// begin notes that the front begins to serve.
func (o *older) begin(now int64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.began = now
}

// has reports whether a stack has a connection of a client to an address.
func (n *netstack) has(client, to netip.AddrPort) bool {
	id := stack.TransportEndpointID{LocalPort: to.Port(), LocalAddress: tcpip.AddrFromSlice(to.Addr().AsSlice()), RemotePort: client.Port(), RemoteAddress: tcpip.AddrFromSlice(client.Addr().AsSlice())}
	return n.stack.FindTransportEndpoint(protocolOf(to.Addr()), tcp.ProtocolNumber, id, stackNIC) != nil
}

// olderPacket handles a segment for the NRF that is of no connection of the front's, if it
// may be of an older one. It reports whether it was.
func (w *wire) olderPacket(in *flow.PacketIn, d *flow.Decision, src netip.Addr) (flow.Verdict, bool) {
	t, ok := packet.ParseTCP(in.Data)
	client := netip.AddrPortFrom(src, in.Key.TPSrc)
	if !ok || t.Flags()&(packet.TCPSyn|packet.TCPRst|packet.TCPAck) != packet.TCPAck || w.stack.has(client, w.nrf) {
		return flow.Next, false
	}
	o := w.older
	o.mu.Lock()
	defer o.mu.Unlock()
	if in.Time-o.began > olderTime {
		return flow.Next, false
	}
	c, _ := o.of.use(client, flow.Location{Switch: in.Switch, Port: in.Key.InPort})
	if c.over = c.asked != 0 && in.Time-c.asked < olderAnswer; c.over {
		c.asked = 0
		w.resetOlder(d, c, client, t)
		return flow.Done, true
	}
	*c = olderConn{at: flow.Location{Switch: in.Switch, Port: in.Key.InPort}, mac: in.Key.EthSrc, via: in.Key.EthDst, last: in.Time}
	return flow.Next, true
}

// resetOlder resets both ends of a connection, where a segment of its client says that
// they are.
func (w *wire) resetOlder(d *flow.Decision, c *olderConn, client netip.AddrPort, t packet.TCP) {
	w.toClient(d, c, client, packet.TCPFields{Flags: packet.TCPRst, Seq: t.Ack()})
	if s := w.there.Load(); s != nil {
		w.deliver(d, packet.AppendTCP(nil, packet.Ether{Dst: s.MAC, Src: c.mac, VLAN: w.vlan}, packet.IP{Src: client.Addr(), Dst: w.nrf.Addr()},
			packet.TCPFields{SrcPort: client.Port(), DstPort: w.nrf.Port(), Flags: packet.TCPRst, Seq: t.Seq()}, nil), s.At)
	}
}

// toClient appends the packet-out of a segment as if from the NRF.
func (w *wire) toClient(d *flow.Decision, c *olderConn, client netip.AddrPort, f packet.TCPFields) {
	f.SrcPort, f.DstPort = w.nrf.Port(), client.Port()
	w.deliver(d, packet.AppendTCP(nil, packet.Ether{Dst: c.mac, Src: c.via, VLAN: w.vlan}, packet.IP{Src: w.nrf.Addr(), Dst: client.Addr()}, f, nil), c.at)
}

// askOlder has the clients of idle connections say where they are: by a segment outside
// any window, which they acknowledge (RFC 9293 section 3.10.7.4).
func (w *wire) askOlder(now int64) *flow.Decision {
	d, o := &flow.Decision{}, w.older
	o.mu.Lock()
	defer o.mu.Unlock()
	o.of.all(func(client netip.AddrPort, c *olderConn) {
		switch {
		case c.over || now-c.last < olderIdle:
		case c.asked == 0:
			c.asked = now
			w.toClient(d, c, client, packet.TCPFields{Flags: packet.TCPAck})
		case now-c.asked >= olderAnswer: // it has gone
			c.over = true
		}
	})
	return d
}

// leadOver asks idle older connections, until ctx ends.
func (w *wire) leadOver(ctx context.Context) {
	for backoff.Sleep(ctx, time.Second) == nil {
		if d := w.askOlder(time.Now().UnixNano()); !d.Empty() {
			w.send(ctx, d)
		}
	}
}
