package nat

import (
	"net/netip"

	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/packet"
)

// packet is the stage: it answers for the addresses of gateways, and brings
// packets for a gateway to its switch, whose entries translate them.
func (b *store) packet(in *flow.PacketIn, d *flow.Decision) flow.Verdict {
	x := b.index.Load()
	if x == nil {
		return flow.Next
	}
	k := packet.Headers(in)
	at := flow.Location{Switch: in.Switch, Port: in.Key.InPort}
	if g := x.macs[k.EthSrc]; g != nil {
		if in.Role == flow.RoleEdge && at != g.at {
			b.strays.Add(1)
			return flow.Drop // somebody pretends to be the gateway
		}
		return flow.Next // translated, on its way to a host inside
	}
	if k.EthType == flow.EthTypeARP {
		if in.Role != flow.RoleEdge || k.VLAN != 0 {
			return flow.Next
		}
		return b.arp(x, in, d, at)
	}
	if k.EthType == flow.EthTypeIPv6 && k.IPProto == flow.IPProtoICMPv6 && (k.ICMPType == flow.ICMPv6Solicit || k.ICMPType == flow.ICMPv6Advert) {
		if in.Role != flow.RoleEdge || k.VLAN != 0 {
			return flow.Next
		}
		return b.neighbour(x, in, d, at)
	}
	g := x.macs[k.EthDst]
	var src, dst netip.Addr // neither: within no gateway
	switch k.EthType {
	case flow.EthTypeIPv4:
		src, dst = netip.AddrFrom4(k.IPv4Src), netip.AddrFrom4(k.IPv4Dst)
	case flow.EthTypeIPv6:
		src, dst = netip.AddrFrom16(k.IPv6Src), netip.AddrFrom16(k.IPv6Dst)
	}
	if g == nil {
		if x.leaks(in, src, dst) {
			b.strays.Add(1)
			return flow.Drop
		}
		return flow.Next
	}
	switch {
	case k.VLAN != 0 || at == g.at || !g.within(src) || in.Reason == flow.ReasonInvalidTTL:
	case dst == g.addr:
		b.echo(g, in, d, src)
		return flow.Done
	case g.within(dst) || g.pooled(dst) || g.hopMAC == (flow.MAC{}):
	case in.Role == flow.RoleEdge && in.Switch != g.at.Switch:
		b.translate(g, in, d)
		// Forwarding makes the way to the gateway and back. It must not deliver
		// the packet at the end, because nobody has translated the packet there:
		// it delivers a question for the next hop instead.
		in.Dst, in.DstMAC = g.at, g.mac
		in.Data = g.question()
		return flow.Next
	case in.Role == flow.RoleEdge || in.Role == flow.RoleLink:
		b.translate(g, in, d)
		return flow.Done
	}
	b.strays.Add(1)
	return flow.Drop
}

// leaks reports whether a packet that is not for a gateway would leave inside
// untranslated: to a host at the port outside, or to everybody.
func (x *index) leaks(in *flow.PacketIn, src, dst netip.Addr) bool {
	if in.Key.VLAN&0xfff != 0 || !src.IsValid() || dst.IsMulticast() {
		return false
	}
	for _, g := range x.list {
		if g.within(src) && !g.within(dst) && dst != broadcast && (in.Dst == g.at || in.Key.EthDst.Multicast()) {
			return true
		}
	}
	return false
}

// broadcast is the address of all hosts of a network.
var broadcast = netip.AddrFrom4([4]byte{255, 255, 255, 255})

// translate makes the gateway's switch translate a packet and send it on.
func (b *store) translate(g *gateway, in *flow.PacketIn, d *flow.Decision) {
	ports := in.Key.IPProto == flow.IPProtoTCP || in.Key.IPProto == flow.IPProtoUDP
	d.PacketOut(g.at.Switch, flow.PacketOut{
		BufferID: flow.BufferNone, InPort: flow.PortController, Actions: d.Actions(g.track(ports)), Data: append([]byte(nil), in.Data...),
	})
}

// echo answers a ping of the gateway's address. It takes the host's place from
// hosts: the packet may come from the gateway's switch.
func (b *store) echo(g *gateway, in *flow.PacketIn, d *flow.Decision, src netip.Addr) {
	m, ok := packet.ParseICMP(in.Data)
	request := packet.ICMPv4EchoRequest
	if g.v6() {
		m, ok = packet.ParseICMPv6(in.Data)
		request = packet.ICMPv6EchoRequest
	}
	if !ok || m.Type() != request || len(m.Payload()) > 1500 || in.Src == (flow.Location{}) {
		b.strays.Add(1)
		return
	}
	g.send(d, in.Src, packet.AppendICMPEcho(nil, packet.Ether{Dst: in.Key.EthSrc, Src: g.mac}, packet.IP{Src: g.addr, Dst: src},
		packet.Echo{Reply: true, ID: m.EchoID(), Seq: m.EchoSeq(), Data: m.Payload()}))
}
