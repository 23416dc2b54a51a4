package balancer

import (
	"time"

	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/object"
	"github.com/weft-sdn/weft/packet"
)

// A member that retires gets no new connections, as one that is drained, and no new requests
// on those that it has: packets of these come to the controller, which puts a GOAWAY of HTTP/2
// into what the client gets. From then on the client's view of the connection is ahead of the
// member's by the length of that frame, so its packets come to the controller until it ends.
// Requests under way go on.

const (
	retireSettle = int64(100 * time.Millisecond) // until all packets of a connection come to the controller
	retireGrace  = int64(500 * time.Millisecond) // within which a request that comes first goes on
	retireAgain  = int64(200 * time.Millisecond) // between two GOAWAYs, if one may be lost
)

// farewell is a connection of a member that retires.
type farewell struct {
	since   int64
	client  flow.MAC
	strange int    // segments of either end that are not HTTP/2
	heard   bool   // the member has sent something since,
	first   uint32 // from here on
	based   bool   // the client has all that the member has sent before
	high    uint32 // the octet after what the member has sent
	frames  frames // of what the member sends
	window  uint16 // of the member

	told  bool   // the client was sent GOAWAY,
	at    uint32 // there, in what the member sends,
	frame []byte // which is this,
	sent  int64  // then

	cut    bool   // the member gets nothing more of the client,
	end    uint32 // from this octet on,
	answer uint32 // and the client is told that it has got all up to this
}

// retireStrange is after how many segments that are not HTTP/2 a connection is left alone.
const retireStrange = 16

// attended reports whether the packets of a conn come to the controller.
func (c *conn) attended() bool { return c.bye != nil && c.bye.strange < retireStrange }

// retires reports whether the connections of a member are to end: it retires, and another
// one serves. It is called with the balancer's mu held.
func (m *member) retires(tr *tracker) bool {
	if m.wish != retire || m.vip.at.proto != flow.IPProtoTCP || !m.pooled() {
		return false
	}
	for _, o := range m.vip.pool {
		if _, ok := tr.net.reach(o); ok && o.wish == serve && o.grade() != bad {
			return true
		}
	}
	return false
}

// retire has the packets of a member's connections come to the controller if the member
// retires, and undoes that if it does not any more. It is called with the balancer's mu held.
func (m *member) retire(tr *tracker, d *flow.Decision, now int64) {
	is := m.retires(tr)
	for c := range m.conns {
		switch {
		case c.kind != tracked && c.kind != redirected || is == (c.bye != nil):
			continue
		case is:
			c.bye = &farewell{since: now}
		case c.bye.told:
			continue
		default:
			c.bye = nil
		}
		c.renew(d)
	}
}

// renew appends the entries that a connection has, as they are now.
func (c *conn) renew(d *flow.Decision) {
	if c.back {
		c.addBack(d)
	}
	if c.there {
		c.addThere(d)
	}
}

// retiring begins the farewell of a connection whose packet has come to the controller, if
// its member retires. It is called with the balancer's mu held.
func (c *conn) retiring(tr *tracker, in *flow.PacketIn, d *flow.Decision) {
	if c.kind != tracked && c.kind != redirected || c.bye != nil || !c.m.retires(tr) {
		return
	}
	if c.bye = (&farewell{since: in.Time}); c.there || c.back {
		c.renew(d)
	}
	if in.Time-c.m.retired >= retireGrace { // it was silent, so nothing is on its way
		c.bye.since = in.Time - retireSettle
	}
}

// fromClient handles a segment of a client on a connection with a farewell, which has been
// rewritten for the member. It is called with the balancer's mu held.
func (c *conn) fromClient(tr *tracker, in *flow.PacketIn, d *flow.Decision) flow.Verdict {
	f := c.bye
	t, ok := packet.ParseTCP(in.Data)
	if f.client = in.Key.EthSrc; !ok {
		return flow.Next
	}
	if !f.told && t.Flags()&(packet.TCPRst|packet.TCPFin|packet.TCPAck) == packet.TCPAck {
		c.consider(tr, t, in.Time, d)
	}
	if !f.told {
		return flow.Next
	}
	if t.Flags()&packet.TCPAck != 0 && before(t.Ack(), f.at+1) && in.Time-f.sent >= retireAgain {
		c.sendAway(tr, t, d, in.Time)
	}
	x := packet.TCPFields{SrcPort: t.SrcPort(), DstPort: t.DstPort(), Seq: t.Seq(), Ack: f.acked(t.Ack()), Flags: t.Flags(), Window: t.Window(), Options: withoutSACK(t.Options())}
	payload := t.Payload()
	if f.cut {
		after := t.Seq() + uint32(len(payload))
		if len(payload) > 0 && before(f.answer, after) {
			f.answer = after
		}
		if len(payload) > 0 && !before(t.Seq(), f.end) {
			c.toClient(tr, d, packet.TCPFields{Seq: f.shifted(f.high), Ack: f.answer, Flags: packet.TCPAck, Window: f.window}, nil)
		}
		switch keep := int64(int32(f.end - t.Seq())); {
		case keep >= int64(len(payload)): // all of it
		case keep > 0:
			payload = payload[:keep]
		default:
			payload, x.Seq, x.Flags = nil, f.end, x.Flags&^packet.TCPPsh
			if x.Flags&packet.TCPFin == 0 && before(f.answer, t.Seq()) { // after its end
				x.Seq++
			}
		}
	}
	in.Data = packet.AppendTCP(nil, packet.Ether{Dst: c.mac, Src: in.Key.EthSrc, VLAN: in.Key.VLAN}, packet.IP{Src: c.key.client.Addr(), Dst: c.to.Addr()}, x, payload)
	return flow.Next
}

// consider sends a client GOAWAY before its segment goes on, if the member has nothing on its
// way to it. A request that begins in the segment is not passed on if the member has been
// retiring for some time. It is called with the balancer's mu held.
func (c *conn) consider(tr *tracker, t packet.TCP, now int64, d *flow.Decision) {
	f, payload := c.bye, t.Payload()
	_, _, _, is := frame(payload)
	if len(payload) > 0 && !is {
		if f.strange++; f.strange >= retireStrange { // TLS, or HTTP/1.1
			c.leaveAlone(d)
		}
		return
	}
	if now-f.since < retireSettle || hasSACK(t.Options()) {
		return
	}
	if !f.based && (!f.heard || !before(t.Ack(), f.first)) {
		f.based = true // it has all that has not come to the controller
		if !f.heard {
			f.high = t.Ack()
		}
	}
	if f.based && before(f.high, t.Ack()) {
		f.frames.lose()
		f.high = t.Ack()
	}
	if !f.based || t.Ack() != f.high || !f.frames.between() || len(payload) == 0 && !f.frames.seen {
		return
	}
	last := uint32(lastStream)
	if stream, at, ok := newStream(payload); ok && now-c.m.retired >= retireGrace {
		last = max(stream, 2) - 2
		f.cut, f.end, f.answer = true, t.Seq()+uint32(at), t.Seq()+uint32(len(payload))
	}
	tr.count.retired.Add(1)
	f.told, f.at, f.frame = true, f.high, goAway(last)
	c.sendAway(tr, t, d, now)
}

// leaveAlone ends the farewell of a connection that is not of HTTP/2, which goes on with its
// member. It is called with the balancer's mu held.
func (c *conn) leaveAlone(d *flow.Decision) {
	c.bye = &farewell{strange: retireStrange}
	c.renew(d)
}

// sendAway appends the segment with GOAWAY to a client; t is one of its own. It is called
// with the balancer's mu held.
func (c *conn) sendAway(tr *tracker, t packet.TCP, d *flow.Decision, now int64) {
	f := c.bye
	ack := t.Seq() // what follows the member has to acknowledge itself
	if f.cut {
		ack = f.answer
	}
	f.sent = now
	c.toClient(tr, d, packet.TCPFields{Seq: f.at, Ack: ack, Flags: packet.TCPAck | packet.TCPPsh, Window: f.window, Options: answering(t.Options())}, f.frame)
}

// toClient appends a segment from a VIP to the client of a connection. It is called with
// the balancer's mu held.
func (c *conn) toClient(tr *tracker, d *flow.Decision, x packet.TCPFields, payload []byte) {
	x.SrcPort, x.DstPort = c.key.to.Port(), c.key.client.Port()
	if x.Window == 0 {
		x.Window = 1024 // that of the member is not known
	}
	at, mac := c.ingress, c.bye.client
	if mac == (flow.MAC{}) || at.Port == 0 { // it has sent nothing since
		s, ok := tr.net.find(object.In(c.key.client.Addr(), c.key.vlan))
		if !ok {
			return
		}
		at, mac = s.At, s.MAC
	}
	e := packet.Ether{Dst: mac, Src: c.mac, VLAN: c.key.vlan}
	tr.net.deliver(d, packet.AppendTCP(nil, e, packet.IP{Src: c.key.to.Addr(), Dst: c.key.client.Addr()}, x, payload), c.key.vlan, at)
}

// fromMember handles a segment of a member on a connection with a farewell. It is called
// with the balancer's mu held.
func (c *conn) fromMember(tr *tracker, in *flow.PacketIn, d *flow.Decision) flow.Verdict {
	t, ok := packet.ParseTCP(in.Data)
	if c == nil || c.bye == nil || !ok { // it has just ended
		return flow.Drop
	}
	f, payload := c.bye, t.Payload()
	x := packet.TCPFields{Seq: t.Seq(), Ack: t.Ack(), Flags: t.Flags(), Window: t.Window(), Options: t.Options()}
	f.window = t.Window()
	after := t.Seq() + uint32(len(payload))
	switch {
	case len(payload) == 0:
	case !f.heard && !f.based:
		f.frames.follow(payload)
		f.heard, f.first, f.high = true, t.Seq(), after
	case t.Seq() == f.high:
		f.frames.follow(payload)
		f.high = after
	case before(f.high, after):
		f.frames.lose()
		f.high = after
	}
	if f.told {
		switch {
		case !before(t.Seq(), f.at):
			x.Seq = f.shifted(t.Seq())
		case before(f.at, after): // it sends again what is before GOAWAY, with what is behind
			payload = payload[:f.at-t.Seq()]
			x.Flags &^= packet.TCPFin
		}
		if f.cut {
			x.Options = withoutSACK(x.Options)
			if x.Ack = f.answer; before(f.end, t.Ack()) { // it has got the client's end
				x.Ack++
			}
		}
	}
	c.toClient(tr, d, x, payload)
	if now := in.Time; !f.told && f.based && len(payload) > 0 && after == f.high && f.frames.left == 0 && x.Flags&(packet.TCPFin|packet.TCPRst) == 0 && now-f.since >= retireSettle {
		tr.count.retired.Add(1)
		f.told, f.at, f.frame, f.sent = true, f.high, goAway(lastStream), now
		x.Seq, x.Flags = f.at, packet.TCPAck|packet.TCPPsh
		c.toClient(tr, d, x, f.frame)
	}
	return flow.Done
}

// shifted returns the sequence number by which the client knows one of the member's, and
// acked the member's for one that the client acknowledges.
func (f *farewell) shifted(seq uint32) uint32 { return seq + uint32(len(f.frame)) }

func (f *farewell) acked(ack uint32) uint32 {
	switch {
	case !before(ack, f.shifted(f.at)):
		return ack - uint32(len(f.frame))
	case before(f.at, ack):
		return f.at
	}
	return ack
}

// before reports whether a sequence number is before another (RFC 9293, 3.4).
func before(a, b uint32) bool { return int32(a-b) < 0 }

// The options of TCP that count here.
const (
	optionEnd  = 0
	optionNop  = 1
	optionSACK = 5
	optionTime = 8
)

// eachOption calls f with each option that has a length, as it is in the list.
func eachOption(list []byte, f func(kind uint8, o []byte)) {
	for i := 0; i < len(list) && list[i] != optionEnd; {
		if list[i] == optionNop {
			i++
			continue
		}
		if i+1 >= len(list) || list[i+1] < 2 || i+int(list[i+1]) > len(list) {
			return
		}
		f(list[i], list[i:i+int(list[i+1])])
		i += int(list[i+1])
	}
}

// hasSACK reports whether there are selective acknowledgements among options.
func hasSACK(list []byte) (has bool) {
	eachOption(list, func(kind uint8, _ []byte) { has = has || kind == optionSACK })
	return has
}

// withoutSACK returns options without selective acknowledgements, whose sequence numbers
// would not be right.
func withoutSACK(list []byte) []byte {
	list = append([]byte(nil), list...)
	eachOption(list, func(kind uint8, o []byte) {
		if kind == optionSACK {
			for i := range o {
				o[i] = optionNop
			}
		}
	})
	return list
}

// answering returns the options of a segment to the sender of one with these: its timestamps.
func answering(list []byte) (own []byte) {
	eachOption(list, func(kind uint8, o []byte) {
		if kind == optionTime && len(o) == 10 {
			own = append([]byte{optionNop, optionNop, optionTime, 10}, o[6:10]...)
			own = append(own, o[2:6]...)
		}
	})
	return own
}

// farewell returns the conn of an entry that leads to the controller, for its member
// retires. One of an earlier run does not go on: what its client was told is not known. It
// is called with the balancer's mu held.
func (t *connections) farewell(sw flow.DPID, o *seenEntry) *conn {
	k := o.key
	if c := t.by[k]; c != nil && c.id == o.id && c.attended() && c.ingress.Switch == sw {
		return c
	}
	if c := t.backs[backKey{k.client, k.to, k.proto, k.vlan}]; c != nil && c.id == o.id && c.attended() && c.egress == sw {
		o.part = back
		return c
	}
	return nil
}
