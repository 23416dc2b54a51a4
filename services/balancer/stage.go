package balancer

import (
	"net/netip"

	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/object"
	"github.com/weft-sdn/weft/packet"
)

// packet is the stage: it redirects packets for a VIP to a member, as if the
// client had sent them there, so that forwarding routes them.
func (b *balancer) packet(in *flow.PacketIn, d *flow.Decision) flow.Verdict {
	x := b.index.Load()
	if ofConn(in.Cookie) && in.Cookie.Generation()&genWatch != 0 {
		b.copied(in)
		return flow.Done
	}
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
	case f == nil && x.given[in.Cookie] != "":
		return ownAddress(b, x.given[in.Cookie], in, d, connKey{client: netip.AddrPortFrom(src, k.TPSrc), to: netip.AddrPortFrom(dst, k.TPDst), proto: k.IPProto, vlan: k.VLAN})
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
	c := b.tracker.assign(v, key, in)
	if c == nil {
		b.tracker.turnAway(v, key, in, d)
		return flow.Drop
	}
	if c.kind == through {
		return b.tracker.pass(c, in, d)
	}
	at, ok := b.net.reach(c.m)
	if !ok {
		b.count.unreachable.Add(1)
		return flow.Drop
	}
	if !opens(in) {
		c.retiring(b.tracker, in, d)
	}
	b.tracker.install(c, at, in, d)
	c.rewrite(in, at)
	if c.attended() {
		return c.fromClient(b.tracker, in, d)
	}
	return flow.Next
}

// rewrite rewrites a packet of the client for the member, as the entry there does.
func (c *conn) rewrite(in *flow.PacketIn, at station) {
	for _, a := range c.toMember(nil, at.MAC) {
		if frame, ok := packet.Apply(in.Data, a); ok {
			in.Data = frame
		}
	}
	if c.kind.aliases() {
		in.Key.TPSrc = c.source().Port()
	}
	in.Key.EthDst, in.Key.TPDst = at.MAC, c.to.Port()
	if c.to.Addr().Is4() {
		in.Key.IPv4Dst = c.to.Addr().As4()
	} else {
		in.Key.IPv6Dst = c.to.Addr().As16()
	}
	in.Dst, in.DstMAC = at.At, at.MAC
}
