package router

import (
	"net/netip"

	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/object"
	"github.com/weft-sdn/weft/packet"
)

// arp answers ARP requests for a router, and takes the answers to its questions.
func (b *store) arp(x *index, in *flow.PacketIn, d *flow.Decision) flow.Verdict {
	a, ok := packet.ParseARP(in.Data)
	if !ok || in.Role != flow.RoleEdge {
		return flow.Next // forwarding refuses what is malformed
	}
	vlan := in.Key.VLAN
	if x.owners[object.In(a.SenderIP(), vlan)] != nil {
		b.count.spoofed.Add(1)
		return flow.Drop
	}
	b.heard(in, a.SenderIP(), a.SenderMAC(), d)
	r := x.owner(object.In(a.TargetIP(), vlan), in.Switch)
	switch {
	case r == nil:
		return flow.Next
	case a.Op() == packet.ARPRequest && b.allowed(in):
		b.reply(in, d, packet.AppendARPReply(nil, vlan, packet.ARPFields{
			SenderMAC: r.mac, SenderIP: a.TargetIP(), TargetMAC: a.SenderMAC(), TargetIP: a.SenderIP(),
		}))
	}
	return flow.Done
}

// neighbour is arp for IPv6 (RFC 4861). It tells a host that tries to use a
// router's address as its own (RFC 4862 §5.4) that the address is taken.
func (b *store) neighbour(x *index, in *flow.PacketIn, d *flow.Decision) flow.Verdict {
	nd, ok := packet.ParseND(in.Data)
	if !ok || in.Role != flow.RoleEdge {
		return flow.Next
	}
	k := &in.Key
	src, dst := netip.AddrFrom16(k.IPv6Src), netip.AddrFrom16(k.IPv6Dst)
	advert := nd.Type() == flow.ICMPv6Advert
	if x.owners[object.In(src, k.VLAN)] != nil || advert && x.owners[object.In(nd.Target(), k.VLAN)] != nil {
		b.count.spoofed.Add(1)
		return flow.Drop
	}
	if advert {
		b.heard(in, nd.Target(), k.EthSrc, d)
		if x.owners[object.In(dst, k.VLAN)] != nil {
			return flow.Done
		}
		return flow.Next
	}
	b.heard(in, src, k.EthSrc, d)
	r := x.owner(object.In(nd.Target(), k.VLAN), in.Switch)
	if r == nil {
		return flow.Next
	}
	out := packet.NDFields{SrcMAC: r.mac, SrcIP: nd.Target(), Target: nd.Target(), TargetMAC: r.mac, Router: true, Override: true}
	if !src.IsUnspecified() {
		out.DstMAC, out.DstIP, out.Solicited = k.EthSrc, src, true
	}
	if b.allowed(in) {
		b.reply(in, d, packet.AppendNDAdvert(nil, k.VLAN, out))
	}
	return flow.Done
}

// heard records a neighbour that has made itself known, and sends the packets
// that have waited for it. hosts has checked the packet before.
func (b *store) heard(in *flow.PacketIn, a netip.Addr, mac flow.MAC, d *flow.Decision) {
	if !usable(a) || mac != in.Key.EthSrc || mac.Multicast() {
		return
	}
	p, s := object.In(a, in.Key.VLAN), station{MAC: mac, At: flow.Location{Switch: in.Switch, Port: in.Key.InPort}}
	b.mu.Lock()
	defer b.mu.Unlock()
	if old, known := b.neighbours.Station(p); (!known || old.At == flow.Location{}) && b.waiting.on[p] != nil {
		b.neighbours.Learn(p, s)
		b.moved()
	}
	b.release(p, s, d)
}

// own takes a packet for an address of a router: it answers pings, and rejects
// TCP and UDP as unreachable. Answers come back by the routers of the way.
func (b *store) own(w *way, in *flow.PacketIn, f datagram, d *flow.Decision) {
	m, ok := packet.ParseICMP(in.Data)
	request := packet.ICMPv4EchoRequest
	if f.src.Is6() {
		m, ok = packet.ParseICMPv6(in.Data)
		request = packet.ICMPv6EchoRequest
	}
	switch {
	case ok && m.Type() == request && len(m.Payload()) <= 9000:
		if b.allowed(in) {
			b.reply(in, d, packet.AppendICMPEcho(nil, packet.Ether{Dst: in.Key.EthSrc, Src: w.hops[0].mac, VLAN: in.Key.VLAN}, packet.IP{Src: f.dst, Dst: f.src, TTL: uint8(65 - len(w.hops))},
				packet.Echo{Reply: true, ID: m.EchoID(), Seq: m.EchoSeq(), Data: m.Payload()}))
		}
	case in.Key.IPProto == flow.IPProtoTCP || in.Key.IPProto == flow.IPProtoUDP:
		b.refuseFrom(in, f.dst, w.hops[0], noPort, d)
	default:
		b.count.strange.Add(1)
	}
}

// complaint is an ICMP error: type and code of ICMP (RFC 792) and of ICMPv6
// (RFC 4443).
type complaint struct{ v4, v6 [2]uint8 }

// The complaints.
var (
	timeExceeded = complaint{[2]uint8{11, 0}, [2]uint8{3, 0}}
	noRoute      = complaint{[2]uint8{3, 0}, [2]uint8{1, 0}}
	noHost       = complaint{[2]uint8{3, 1}, [2]uint8{1, 3}}
	noPort       = complaint{[2]uint8{3, 3}, [2]uint8{1, 4}}
)

// refuse tells the sender of a packet, in the name of router r, why the packet
// goes no further; first is the router that it was sent to.
func (b *store) refuse(in *flow.PacketIn, r, first *router, c complaint, d *flow.Decision) {
	f, ok := read(in)
	if !ok {
		return
	}
	if from, ok := r.facing(f.src); ok {
		b.refuseFrom(in, from, first, c, d)
	}
}

// quoted is how much of a packet an ICMP error contains: for IPv4 as in RFC 1812
// §4.3.2.3, for IPv6 as in RFC 4443 §3, with room left for headers of a tunnel.
const (
	quoted4 = 548
	quoted6 = 1180
)

// refuseFrom is refuse from an address. It sends nothing about errors and later
// fragments (RFC 1812 §4.3.2.7, RFC 4443 §2.4).
func (b *store) refuseFrom(in *flow.PacketIn, from netip.Addr, first *router, c complaint, d *flow.Decision) {
	var whole []byte
	var to netip.Addr
	code, limit := c.v4, quoted4
	if ip, ok := packet.ParseIPv4(in.Data); ok {
		m, isICMP := packet.ParseICMP(in.Data)
		if ip.FragmentOffset() > 0 || isICMP && m.Type() != packet.ICMPv4EchoRequest && m.Type() != packet.ICMPv4EchoReply {
			return
		}
		whole, to = ip, ip.Src()
	} else if ip, ok := packet.ParseIPv6(in.Data); ok {
		if m, ok := packet.ParseICMPv6(in.Data); ok && m.Type() < 128 {
			return
		}
		whole, to, code, limit = ip, ip.Src(), c.v6, quoted6
	} else {
		return
	}
	if !b.allowed(in) {
		return
	}
	body := append(make([]byte, 4, 4+limit), whole[:min(len(whole), limit)]...) // four unused octets
	b.reply(in, d, packet.AppendICMP(nil, packet.Ether{Dst: in.Key.EthSrc, Src: first.mac, VLAN: in.Key.VLAN}, packet.IP{Src: from, Dst: to}, code[0], code[1], body))
}

// reply appends the packet-out that returns a frame to the sender of the packet:
// to the packet's ingress port or, if that is a link, to the sender's port.
func (b *store) reply(in *flow.PacketIn, d *flow.Decision, frame []byte) {
	at := flow.Location{Switch: in.Switch, Port: in.Key.InPort}
	if in.Role == flow.RoleLink {
		at = in.Src
	}
	if at != (flow.Location{}) {
		b.deliver(d, frame, in.Key.VLAN, at)
	}
}
