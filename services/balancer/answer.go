package balancer

import (
	"net/netip"

	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/object"
	"github.com/weft-sdn/weft/packet"
)

// arp answers ARP requests for a VIP, and takes the answers to checks.
func (b *balancer) arp(x *index, in *flow.PacketIn, d *flow.Decision) flow.Verdict {
	a, ok := packet.ParseARP(in.Data)
	if !ok {
		return flow.Next // forwarding refuses it
	}
	vlan := in.Key.VLAN
	if x.own(a.SenderIP(), vlan) {
		b.count.spoofed.Add(1)
		return flow.Drop
	}
	f := x.fronts[object.In(a.TargetIP(), vlan)]
	switch {
	case f == nil:
		return flow.Next
	case f.shadow:
		if a.Op() != 1 {
			b.passed(checkARP, object.In(a.SenderIP(), vlan), a.TargetIP(), 0, in.Time)
		}
		return flow.Next
	}
	if a.Op() == 1 {
		b.count.answered.Add(1)
		b.net.reply(d, in, packet.AppendARPReply(nil, vlan, packet.ARPFields{
			SenderMAC: f.mac, SenderIP: a.TargetIP(), TargetMAC: a.SenderMAC(), TargetIP: a.SenderIP(),
		}))
		return flow.Done
	}
	b.passed(checkARP, object.In(a.SenderIP(), vlan), a.TargetIP(), 0, in.Time)
	return flow.Done
}

// neighbour is arp for IPv6 (RFC 4861). It tells a host that tries to use a VIP
// as its own address (RFC 4862 §5.4) that the address is taken.
func (b *balancer) neighbour(x *index, in *flow.PacketIn, d *flow.Decision) flow.Verdict {
	nd, ok := packet.ParseND(in.Data)
	if !ok {
		return flow.Next
	}
	k := &in.Key
	src, dst := netip.AddrFrom16(k.IPv6Src), netip.AddrFrom16(k.IPv6Dst)
	if x.own(src, k.VLAN) || nd.Type() == flow.ICMPv6Advert && x.own(nd.Target(), k.VLAN) {
		b.count.spoofed.Add(1)
		return flow.Drop
	}
	if nd.Type() == flow.ICMPv6Advert {
		if x.fronts[object.In(dst, k.VLAN)] == nil {
			return flow.Next
		}
		b.passed(checkARP, object.In(nd.Target(), k.VLAN), dst, 0, in.Time)
		if !x.own(dst, k.VLAN) {
			return flow.Next
		}
		return flow.Done
	}
	f := x.fronts[object.In(nd.Target(), k.VLAN)]
	if f == nil || f.shadow {
		return flow.Next
	}
	b.count.answered.Add(1)
	out := packet.NDFields{SrcMAC: f.mac, SrcIP: nd.Target(), Target: nd.Target(), TargetMAC: f.mac, Override: true}
	if !src.IsUnspecified() {
		out.DstMAC, out.DstIP, out.Solicited = k.EthSrc, src, true
	}
	b.net.reply(d, in, packet.AppendNDAdvert(nil, k.VLAN, out))
	return flow.Done
}

// echo answers pings of a VIP and takes the answers to checks by ICMP.
func (b *balancer) echo(f *front, in *flow.PacketIn, d *flow.Decision, src, dst netip.Addr) {
	k := &in.Key
	m, ok := packet.ParseICMP(in.Data)
	request, reply := packet.ICMPv4EchoRequest, packet.ICMPv4EchoReply
	if src.Is6() {
		m, ok = packet.ParseICMPv6(in.Data)
		request, reply = packet.ICMPv6EchoRequest, packet.ICMPv6EchoReply
	}
	if !ok {
		return
	}
	switch m.Type() {
	case request:
		if len(m.Payload()) > 1500 {
			return
		}
		b.count.answered.Add(1)
		b.net.reply(d, in, packet.AppendICMPEcho(nil, packet.Ether{Dst: k.EthSrc, Src: f.mac, VLAN: k.VLAN}, packet.IP{Src: dst, Dst: src},
			packet.Echo{Reply: true, ID: m.EchoID(), Seq: m.EchoSeq(), Data: m.Payload()}))
	case reply:
		b.passed(checkICMP, object.In(src, k.VLAN), dst, uint32(m.EchoID())<<16|uint32(m.EchoSeq()), in.Time)
	}
}
