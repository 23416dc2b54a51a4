package balancer

import (
	"net/netip"
	"time"

	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/object"
	"github.com/weft-sdn/weft/packet"
)

// recently is how long after a connection's entries were sent its packets count
// as already on the way, in nanoseconds.
const recently = int64(time.Second)

// packet is the stage: it redirects packets for a VIP to a member, as if the
// client had sent them there, so that forwarding routes them.
func (b *balancer) packet(in *flow.PacketIn, d *flow.Decision) flow.Verdict {
	x := b.index.Load()
	if x == nil || in.Role != flow.RoleEdge {
		return flow.Next
	}
	k := packet.Headers(in)
	if x.macs[hostKey{MAC: k.EthSrc, VLAN: k.VLAN}] {
		b.count.spoofed.Add(1)
		return flow.Drop
	}
	switch k.EthType {
	case flow.EthTypeARP:
		return b.arp(x, in, d)
	case flow.EthTypeIPv4:
		return b.ip(x, in, d, netip.AddrFrom4(k.IPv4Src), netip.AddrFrom4(k.IPv4Dst))
	case flow.EthTypeIPv6:
		if k.IPProto == flow.IPProtoICMPv6 && (k.ICMPType == flow.ICMPv6Solicit || k.ICMPType == flow.ICMPv6Advert) {
			return b.neighbour(x, in, d)
		}
		return b.ip(x, in, d, netip.AddrFrom16(k.IPv6Src), netip.AddrFrom16(k.IPv6Dst))
	}
	return b.strange(x, k)
}

// strange drops packets that are addressed to a VIP's Ethernet address but not to
// a VIP.
func (b *balancer) strange(x *index, k *flow.Key) flow.Verdict {
	if x.macs[hostKey{MAC: k.EthDst, VLAN: k.VLAN}] {
		b.count.strange.Add(1)
		return flow.Drop
	}
	return flow.Next
}

// ip handles IP packets.
func (b *balancer) ip(x *index, in *flow.PacketIn, d *flow.Decision, src, dst netip.Addr) flow.Verdict {
	k := &in.Key
	f := x.fronts[object.In(dst, k.VLAN)]
	switch {
	case f == nil && in.Cookie.Owner() == flow.OwnerBalancer:
		return b.guarded(x, in, d, src, dst)
	case f == nil:
		return b.strange(x, k)
	case f.shadow:
		return b.shadowed(f, in, d, src, dst)
	}
	if k.EthDst != f.mac && in.DstMAC == k.EthDst && in.Dst != (flow.Location{}) {
		return flow.Next // for a host that has this Ethernet address, such as a router
	}
	switch k.IPProto {
	case flow.IPProtoICMP, flow.IPProtoICMPv6:
		b.echo(f, in, d, src, dst)
		return flow.Done
	case flow.IPProtoTCP, flow.IPProtoUDP:
	default:
		b.count.strange.Add(1)
		return flow.Drop
	}
	if k.IPProto == flow.IPProtoTCP && b.answered(in, d, src, dst) {
		return flow.Done
	}
	return b.balance(in, d, connKey{
		client: netip.AddrPortFrom(src, k.TPSrc), to: netip.AddrPortFrom(dst, k.TPDst), proto: k.IPProto, vlan: k.VLAN,
	})
}

// balance sends a packet to the member of its connection, or to one chosen now.
func (b *balancer) balance(in *flow.PacketIn, d *flow.Decision, key connKey) flow.Verdict {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := key.service()
	f := b.index.Load().front(s.host)
	if f == nil {
		return flow.Drop // deleted just now
	}
	v := f.vip(s)
	if v == nil {
		b.count.closed.Add(1)
		b.net.refuse(in, d)
		return flow.Drop
	}
	c := b.assign(v, key, in)
	if c == nil {
		b.turnAway(v, key, in, d)
		return flow.Drop
	}
	if c.kind == through {
		return b.pass(c, in, d)
	}
	at, ok := b.net.reach(c.m)
	if !ok {
		b.count.unreachable.Add(1)
		return flow.Drop
	}
	b.install(c, at, in, d)
	actions := toMember(nil, at.MAC, c.to, key.to.Port(), key.proto)
	for _, a := range actions {
		if frame, ok := packet.Apply(in.Data, a); ok {
			in.Data = frame
		}
	}
	in.Key.EthDst, in.Key.TPDst = at.MAC, c.to.Port()
	if c.to.Addr().Is4() {
		in.Key.IPv4Dst = c.to.Addr().As4()
	} else {
		in.Key.IPv6Dst = c.to.Addr().As16()
	}
	in.Dst, in.DstMAC = at.At, at.MAC
	return flow.Next
}

// stick keeps a client at a member for as long as its VIP says. It is called with
// mu held.
func (b *balancer) stick(v *vip, client netip.Addr, m *member, now int64) {
	if v.sticky == 0 {
		return
	}
	if _, known := v.stuck[client]; known || len(v.stuck) < b.cfg.Load().Connections {
		v.stuck[client] = stay{m, now + int64(v.sticky)}
	}
}

// install appends the entries of a connection unless that has just been done:
// first the way back, so that it is there before the first answer. A switch that
// cannot rewrite sends every packet to the controller instead. It is called with
// mu held.
func (b *balancer) install(c *conn, s station, in *flow.PacketIn, d *flow.Decision) {
	from := flow.Location{Switch: in.Switch, Port: in.Key.InPort}
	rewrites := b.net.rewrites(in.Switch)
	if !rewrites {
		b.count.carried.Add(1)
	}
	moved := c.ingress.Switch != from.Switch
	if in.Time-c.sent < recently && !moved && c.egress == s.At.Switch && c.mac == s.MAC && c.back && (c.there || !rewrites) {
		return
	}
	if !rewrites && c.back && c.egress == s.At.Switch && in.Time-c.sent < int64(c.idle)*int64(time.Second) {
		return
	}
	if moved && c.ingress.Switch != 0 && (c.there || c.kind == paired) {
		c.removeThere(d)
	}
	if c.back && c.egress != s.At.Switch {
		c.removeBack(d)
	}
	b.table.place(c, from, s.At.Switch)
	c.mac, c.sent, c.until, c.idled = s.MAC, in.Time, 0, false
	c.addBack(d)
	if delete(b.seals, c.backKey()); c.kind != tracked && c.egress != c.ingress.Switch {
		d.Fence() // before the switch of the client lets others of the pair follow
	}
	if rewrites {
		c.addThere(d)
	}
	c.mark(rewrites, true)
	b.stick(c.m.vip, c.key.client.Addr(), c.m, in.Time)
}
