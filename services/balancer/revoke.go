package balancer

import (
	"net/netip"
	"time"

	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/object"
	"github.com/weft-sdn/weft/packet"
)

// revoke ends the connection, or all connections of the pair, of a client that may
// not connect any more: what either end sends next comes to the controller, which
// resets both, or is dropped. The client of a single connection is made to send
// something at once.
func (t *tracker) revoke(d *flow.Decision, v *vip, c *conn, now int64) {
	t.count.revoked.Add(1)
	if c.there || c.kind == paired {
		c.removeThere(d)
	}
	if c.back {
		e := &d.AddFlow(c.egress).Entry
		c.fill(e, c.backMatch(), sealIdle)
		e.Flags, e.Goto, e.Cookie = 0, 0, c.cookie(genSeal)
		if v.refuse != refuseDrop {
			e.Apply = d.Output(flow.PortController)
			t.seals[c.backKey()] = seal{c.key.to, now + 2*sealIdle*int64(time.Second)}
		}
	}
	if v.refuse != refuseDrop && c.kind != paired && c.key.proto == flow.IPProtoTCP {
		t.provoke(d, c)
	}
	delete(t.bindings, c.key)
	t.end(c)
}

// provoke appends an empty segment that is outside any window: the client answers
// with an acknowledgement that has the sequence numbers of both ends (RFC 9293
// section 3.10.7.4).
func (t *tracker) provoke(d *flow.Decision, c *conn) {
	t.segment(d, c.key.to, c.key.client, c.key.vlan, packet.TCPFields{Flags: packet.TCPAck})
}

// segment appends the packet-out of a TCP segment to a host, if it is known where
// that is.
func (t *tracker) segment(d *flow.Decision, from, to netip.AddrPort, vlan uint16, f packet.TCPFields) {
	s, ok := t.net.find(object.In(to.Addr(), vlan))
	if !ok {
		return
	}
	src, _ := t.net.find(object.In(from.Addr(), vlan))
	if f := t.index.Load().front(object.In(from.Addr(), vlan)); f != nil && !f.shadow {
		src.MAC = f.mac
	}
	f.SrcPort, f.DstPort = from.Port(), to.Port()
	t.net.deliver(d, packet.AppendTCP(nil, packet.Ether{Dst: s.MAC, Src: src.MAC, VLAN: vlan}, packet.IP{Src: from.Addr(), Dst: to.Addr()}, f, nil), vlan, s.At)
}

// turnAway refuses a packet of a client, and resets the connection that the client
// has had at a member.
func (t *tracker) turnAway(v *vip, key connKey, in *flow.PacketIn, d *flow.Decision) {
	if v.refuse == refuseDrop {
		return
	}
	t.net.refuse(in, d)
	s, ok := packet.ParseTCP(in.Data)
	if ok && in.Time < v.leaving[key] { // the host's end of a connection that is taken over
		t.segment(d, key.client, key.to, key.vlan, packet.TCPFields{Flags: packet.TCPRst, Seq: s.Seq()})
		delete(v.leaving, key)
	}
	if len(t.seals) == 0 || !ok || s.Flags()&packet.TCPAck == 0 {
		return
	}
	for _, m := range v.pool {
		if _, sealed := t.seals.of(key.with(m.key()), in.Time); sealed {
			t.segment(d, key.client, m.key(), key.vlan, packet.TCPFields{Flags: packet.TCPRst, Seq: s.Seq()})
		}
	}
}

// sealed resets both ends of a connection of a member with a client that has lost
// its leave.
func (t *tracker) sealed(in *flow.PacketIn, d *flow.Decision, k backKey) flow.Verdict {
	x, sealed := t.seals.of(k, in.Time)
	if s, ok := packet.ParseTCP(in.Data); ok && sealed {
		t.net.refuse(in, d)
		t.segment(d, x.vip, k.client, k.vlan, packet.TCPFields{Flags: packet.TCPRst, Seq: s.Seq()})
	}
	return flow.Drop
}

// guarded handles what the balancer's own entries lead to the controller and is
// not for a VIP.
func (b *balancer) guarded(x *index, in *flow.PacketIn, d *flow.Decision, src, dst netip.Addr) flow.Verdict {
	k := &in.Key
	from, to := netip.AddrPortFrom(src, k.TPSrc), netip.AddrPortFrom(dst, k.TPDst)
	b.mu.Lock()
	defer b.mu.Unlock()
	c := b.tracker.by[connKey{from, to, k.IPProto, k.VLAN}]
	switch gen := in.Cookie.Generation(); {
	case !ofConn(in.Cookie):
	case gen&genSeal != 0:
		return b.tracker.sealed(in, d, backKey{from, to, k.IPProto, k.VLAN})
	case c != nil && c.kind == redirected:
		return b.tracker.redirect(c, in, d, false)
	case gen&genGuard != 0:
		return b.tracker.bypass(in, d, connKey{from, to, k.IPProto, k.VLAN})
	case gen&genBye != 0:
		return b.tracker.backs[backKey{from, to, k.IPProto, k.VLAN}].fromMember(b.tracker, in, d)
	}
	return b.strange(x, k)
}
