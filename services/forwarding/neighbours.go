package forwarding

import (
	"net/netip"

	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/packet"
)

// arp answers requests for gateways, passes requests for the address of a known
// host to that host alone, which answers itself, and replies and unicast requests
// to their receivers; it floods all others.
func (pp *packetPath) arp(ports *edgePorts, in *flow.PacketIn, d *flow.Decision) {
	a, ok := packet.ParseARP(in.Data)
	if !ok {
		pp.count.malformed.Add(1)
		return
	}
	pp.releaseForSender(in, d, a.SenderIP())
	k := &in.Key
	if a.Op() != 1 {
		pp.handOver(ports, in, d)
		return
	}
	if gw := pp.gateway(a.TargetIP()); gw != nil && !pp.tagging.Has(k.VLAN) {
		pp.count.proxied.Add(1)
		pp.reply(d, in, packet.AppendARPReply(nil, k.VLAN, packet.ARPFields{
			SenderMAC: pp.cfg.RouterMAC, SenderIP: a.TargetIP(), TargetMAC: a.SenderMAC(), TargetIP: a.SenderIP(),
		}))
		return
	}
	pp.passOn(ports, in, d, a.SenderIP() == a.TargetIP() || a.SenderIP().IsUnspecified()) // an announcement or probe is for everybody
}

// passOn passes a question for an address to who has it, and to everybody if that
// is not known. The owner answers, because only it knows what to say: whether it is
// a router, whether others have the address, too (RFC 4861 §7.2.4, §7.2.7).
func (pp *packetPath) passOn(ports *edgePorts, in *flow.PacketIn, d *flow.Decision, toAll bool) {
	k := &in.Key
	switch {
	case !k.EthDst.Multicast():
		pp.handOver(ports, in, d)
	case toAll || !pp.cfg.Proxy || in.Dst == flow.Location{} || in.DstMAC == k.EthSrc:
		pp.flood(ports, in, d)
	case in.Dst != flow.Location{Switch: in.Switch, Port: k.InPort}: // else it has heard the question
		pp.count.proxied.Add(1)
		pp.handTo(d, in)
	}
}

// neighbour is arp for IPv6: neighbour solicitations and advertisements
// (RFC 4861).
func (pp *packetPath) neighbour(ports *edgePorts, in *flow.PacketIn, d *flow.Decision) {
	nd, ok := packet.ParseND(in.Data)
	if !ok {
		pp.count.malformed.Add(1)
		return
	}
	k := &in.Key
	sender := netip.AddrFrom16(k.IPv6Src)
	pp.releaseForSender(in, d, sender)
	if nd.Type() != flow.ICMPv6Solicit {
		pp.releaseForSender(in, d, nd.Target())
		pp.handOver(ports, in, d)
		return
	}
	if pp.gateway(nd.Target()) != nil && !pp.tagging.Has(k.VLAN) {
		pp.count.proxied.Add(1)
		out := packet.NDFields{SrcMAC: pp.cfg.RouterMAC, SrcIP: nd.Target(), Target: nd.Target(), TargetMAC: pp.cfg.RouterMAC, Router: true, Override: true}
		if !sender.IsUnspecified() { // else it asks whether the address is free: all learn that it is not (RFC 4861 §7.2.4)
			out.DstMAC, out.DstIP, out.Solicited = k.EthSrc, sender, true
		}
		pp.reply(d, in, packet.AppendNDAdvert(nil, k.VLAN, out))
		return
	}
	pp.passOn(ports, in, d, sender.IsUnspecified()) // duplicate address detection is for everybody
}

// handOver delivers a packet to its destination if that is one known host, else
// to everybody.
func (pp *packetPath) handOver(ports *edgePorts, in *flow.PacketIn, d *flow.Decision) {
	if destinationKnown(in) {
		pp.handTo(d, in)
		return
	}
	pp.flood(ports, in, d)
}

// flood sends a packet out of every edge port except its ingress port, directly
// at each switch: it crosses no link, so it cannot loop. Each port has an
// allowance of floods.
func (pp *packetPath) flood(ports *edgePorts, in *flow.PacketIn, d *flow.Decision) {
	if !ports.mayFlood(in.Key.InPort, in.Time, pp.cfg.FloodsPerSecond) {
		pp.count.floodsShed.Add(1)
		pp.reached.ReachAt(in.Time, "forwarding.floods_per_second", pp.cfg.FloodsPerSecond, flow.Location{Switch: in.Switch, Port: in.Key.InPort})
		return
	}
	pp.count.floods.Add(1)
	pp.toAll(d, in.Data, in.Key.VLAN, flow.Location{Switch: in.Switch, Port: in.Key.InPort})
}
