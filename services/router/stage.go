package router

import (
	"net/netip"

	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/object"
	"github.com/weft-sdn/weft/packet"
)

// packet is the stage: it answers for the addresses of routers, and redirects
// packets sent to a router's Ethernet address to the next neighbour, so that
// forwarding delivers them.
func (b *store) packet(in *flow.PacketIn, d *flow.Decision) flow.Verdict {
	x := b.index.Load()
	if x == nil {
		return flow.Next
	}
	k := packet.Headers(in)
	if x.macs[k.EthSrc] != nil && in.Role == flow.RoleEdge {
		b.count.spoofed.Add(1)
		return flow.Drop
	}
	switch {
	case k.EthType == flow.EthTypeARP:
		return b.arp(x, in, d)
	case k.EthType == flow.EthTypeIPv6 && k.IPProto == flow.IPProtoICMPv6 && (k.ICMPType == flow.ICMPv6Solicit || k.ICMPType == flow.ICMPv6Advert):
		return b.neighbour(x, in, d)
	}
	r := x.macs[k.EthDst]
	if r == nil {
		return flow.Next
	}
	f, ok := read(in)
	if !ok || r.vlan != k.VLAN {
		b.count.strange.Add(1)
		return flow.Drop
	}
	return b.route(x, r, in, f, d)
}

// datagram is an IP packet as a router sees it.
type datagram struct {
	src, dst netip.Addr
	ttl      int
}

// read returns the IP packet in a frame, false if there is none or it is not
// routed.
func read(in *flow.PacketIn) (f datagram, ok bool) {
	switch in.Key.EthType {
	case flow.EthTypeIPv4:
		ip, ok := packet.ParseIPv4(in.Data)
		if !ok {
			return f, false
		}
		f = datagram{ip.Src(), ip.Dst(), int(ip.TTL())}
	case flow.EthTypeIPv6:
		ip, ok := packet.ParseIPv6(in.Data)
		if !ok {
			return f, false
		}
		f = datagram{ip.Src(), ip.Dst(), int(ip.HopLimit())}
	default:
		return f, false
	}
	return f, usable(f.src) && usable(f.dst) && !f.dst.IsLinkLocalUnicast()
}

// route routes a packet that was sent to a router.
func (b *store) route(x *index, r *router, in *flow.PacketIn, f datagram, d *flow.Decision) flow.Verdict {
	w := x.walk(r, one(f.dst))
	if w.end != endOwn && !(routable(f.src) && routable(f.dst)) {
		b.count.strange.Add(1)
		return flow.Drop
	}
	if in.Reason == flow.ReasonInvalidTTL {
		f.ttl = 1
	}
	if n := max(f.ttl, 1) - 1; n < len(w.hops)-1 || n < len(w.hops) && w.end != endOwn {
		b.count.expired.Add(1)
		b.refuse(in, w.hops[n], r, timeExceeded, d)
		return flow.Done
	}
	switch w.end {
	case endOwn:
		b.own(&w, in, f, d)
		return flow.Done
	case endUnreachable:
		b.count.unroutable.Add(1)
		b.refuse(in, w.last(), r, noRoute, d)
		return flow.Done
	case endLoop:
		b.count.expired.Add(1)
		b.refuse(in, w.last(), r, timeExceeded, d)
		return flow.Done
	}
	b.mu.Lock()
	s, known := b.neighbours.Station(object.In(w.to, r.vlan))
	if !known || s.At == (flow.Location{}) {
		b.hold(in, w, d)
		b.mu.Unlock()
		return flow.Done
	}
	b.mu.Unlock()
	b.count.carried.Add(1)
	in.Data = w.rewrite(in.Data, s.MAC)
	in.Key.EthDst = s.MAC
	in.Dst, in.DstMAC = s.At, s.MAC
	if in.Role == flow.RoleEdge && s.At == (flow.Location{Switch: in.Switch, Port: in.Key.InPort}) {
		b.deliver(d, append([]byte(nil), in.Data...), in.Key.VLAN, s.At) // forwarding sends nothing back
		return flow.Done
	}
	return flow.Next
}

// rewrite rewrites a frame as the routers of a way do.
func (w *way) rewrite(frame []byte, mac flow.MAC) []byte {
	for _, a := range w.actions(mac) {
		frame, _ = packet.Apply(frame, a)
	}
	return frame
}

// deliver appends the packet-out of a frame of a VLAN at a port.
func (b *store) deliver(d *flow.Decision, frame []byte, vlan uint16, at flow.Location) {
	tag, ok := b.tagging.Egress(at, vlan)
	if !ok {
		return
	}
	actions := append(append(make([]flow.Action, 0, 4), tag...), flow.Output(at.Port))
	d.PacketOut(at.Switch, flow.PacketOut{BufferID: flow.BufferNone, InPort: flow.PortController, Actions: d.Actions(actions...), Data: frame})
}
