package nat

import (
	"net/netip"

	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/packet"
)

// question returns the frame that asks for the next hop.
func (g *gateway) question() []byte {
	if g.v6() {
		return packet.AppendNDSolicit(nil, 0, packet.NDFields{SrcMAC: g.mac, SrcIP: g.first, Target: g.hop})
	}
	return packet.AppendARPRequest(nil, 0, packet.ARPFields{SenderMAC: g.mac, SenderIP: g.first, TargetIP: g.hop})
}

// arp answers ARP requests for a gateway's address, inside or outside, and takes
// the answers of next hops.
func (b *store) arp(x *index, in *flow.PacketIn, d *flow.Decision, at flow.Location) flow.Verdict {
	a, ok := packet.ParseARP(in.Data)
	if !ok {
		return flow.Next // forwarding refuses it
	}
	g := x.ports[outside{at, false}]
	if g == nil {
		if g = x.addrs[a.TargetIP()]; g != nil && a.Op() == packet.ARPRequest {
			g.reply(in, d, a, g.addr)
			return flow.Done
		}
		if o := x.addrs[a.SenderIP()]; o != nil {
			b.strays.Add(1)
			return flow.Drop
		}
		return flow.Next
	}
	if a.SenderIP() == g.hop && a.SenderMAC() == in.Key.EthSrc && !a.SenderMAC().Multicast() {
		b.answered(g, a.SenderMAC(), in.Time)
	}
	switch {
	case a.Op() == packet.ARPRequest && g.pooled(a.TargetIP()):
		g.reply(in, d, a, a.TargetIP())
		return flow.Done
	case in.Key.EthDst == g.mac:
		return flow.Done
	}
	return flow.Next
}

// reply appends the answer to an ARP request.
func (g *gateway) reply(in *flow.PacketIn, d *flow.Decision, a packet.ARP, addr netip.Addr) {
	g.send(d, flow.Location{Switch: in.Switch, Port: in.Key.InPort}, packet.AppendARPReply(nil, 0, packet.ARPFields{
		SenderMAC: g.mac, SenderIP: addr, TargetMAC: a.SenderMAC(), TargetIP: a.SenderIP(),
	}))
}

// neighbour is arp for IPv6 (RFC 4861). It tells a host that tries to use the
// gateway's address as its own (RFC 4862 section 5.4) that the address is taken.
func (b *store) neighbour(x *index, in *flow.PacketIn, d *flow.Decision, at flow.Location) flow.Verdict {
	nd, ok := packet.ParseND(in.Data)
	if !ok {
		return flow.Next // forwarding refuses it
	}
	k := &in.Key
	src, target, advert := netip.AddrFrom16(k.IPv6Src), nd.Target(), nd.Type() == flow.ICMPv6Advert
	g := x.ports[outside{at, true}]
	switch {
	case g != nil:
		g.reported(b, in, nd, src)
		if !advert && g.pooled(target) {
			g.advertise(in, d, src, target)
			return flow.Done
		}
	case x.addrs[src] != nil || advert && x.addrs[target] != nil:
		b.strays.Add(1)
		return flow.Drop
	case x.addrs[target] != nil:
		x.addrs[target].advertise(in, d, src, target)
		return flow.Done
	}
	if x.macs[k.EthDst] != nil {
		return flow.Done // an answer to a gateway
	}
	return flow.Next
}

// told takes what the next hop reports about itself: in its answers, and in its
// own questions.
func (g *gateway) reported(b *store, in *flow.PacketIn, nd packet.ND, src netip.Addr) {
	who := src
	mac, said := nd.SourceMAC()
	if nd.Type() == flow.ICMPv6Advert {
		who = nd.Target()
		if mac, said = nd.TargetMAC(); !said {
			mac, said = in.Key.EthSrc, true // RFC 4861 section 4.4: it may be left out
		}
	}
	if said && who == g.hop && mac == in.Key.EthSrc && !mac.Multicast() {
		b.answered(g, mac, in.Time)
	}
}

// advertise appends the answer to a neighbour solicitation for an address of the
// gateway; the answer goes to everybody if the asker has no address yet.
func (g *gateway) advertise(in *flow.PacketIn, d *flow.Decision, asks, target netip.Addr) {
	f := packet.NDFields{SrcMAC: g.mac, SrcIP: target, Target: target, TargetMAC: g.mac, Router: true, Override: true}
	if !asks.IsUnspecified() {
		f.DstMAC, f.DstIP, f.Solicited = in.Key.EthSrc, asks, true
	}
	g.send(d, flow.Location{Switch: in.Switch, Port: in.Key.InPort}, packet.AppendNDAdvert(nil, 0, f))
}

func (g *gateway) send(d *flow.Decision, at flow.Location, frame []byte) {
	d.PacketOut(at.Switch, flow.PacketOut{BufferID: flow.BufferNone, InPort: flow.PortController, Actions: d.Actions(flow.Output(at.Port)), Data: frame})
}
