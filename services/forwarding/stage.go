package forwarding

import (
	"net/netip"
	"time"

	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/packet"
)

// A packetPath decides about the packets that come to the controller.
type packetPath struct {
	*platform
	*portTable
	*routing
	deferral deferral
	held     *holding
}

// open returns the stage for the packets of one switch.
func (pp *packetPath) open(sw flow.DPID) func(*flow.PacketIn, *flow.Decision) flow.Verdict {
	ports, just := pp.edge(sw), &recentCache{}
	return func(in *flow.PacketIn, d *flow.Decision) flow.Verdict {
		k := packet.Headers(in)
		if len(in.HeldBy) > 0 {
			pp.count.unapproved.Add(1)
			return flow.Drop
		}
		if in.Role == flow.RoleLink {
			return pp.handleTransit(in, d)
		}
		if in.Role != flow.RoleEdge {
			pp.count.unsettled.Add(1)
			return flow.Drop
		}
		switch {
		case k.EthType == flow.EthTypeARP:
			pp.arp(ports, in, d)
		case k.EthType == flow.EthTypeIPv6 && k.IPProto == flow.IPProtoICMPv6 && (k.ICMPType == flow.ICMPv6Solicit || k.ICMPType == flow.ICMPv6Advert):
			pp.neighbour(ports, in, d)
		case k.EthDst.IsLinkLocal():
			pp.count.linkLocal.Add(1)
		case k.EthDst.Multicast():
			pp.flood(ports, in, d)
		case k.EthDst == pp.cfg.RouterMAC && len(pp.subnets) > 0 && !pp.tagging.Has(k.VLAN):
			pp.routePacket(in, d)
		case destinationKnown(in):
			just.fetch(in.Following)
			if !just.deliver(pp, in, d) {
				pp.connect(in, d, pair{src: k.EthSrc, dst: k.EthDst, vlan: k.VLAN}, nil, just)
			}
		default:
			pp.count.unknown.Add(1)
			pp.flood(ports, in, d)
		}
		return flow.Done
	}
}

// destinationKnown reports whether the host that a packet is addressed to is known. To
// know only the host of its IP address is not enough: only a router's packets
// may go there.
func destinationKnown(in *flow.PacketIn) bool {
	return in.Dst != flow.Location{} && in.DstMAC == in.Key.EthDst
}

// handleTransit handles a packet that a switch in the middle did not know: its entry
// is on the way, or has gone. It delivers the packet to a known destination,
// and never floods it, because the ingress switch does.
func (pp *packetPath) handleTransit(in *flow.PacketIn, d *flow.Decision) flow.Verdict {
	if !destinationKnown(in) {
		pp.count.stray.Add(1)
		return flow.Drop
	}
	pp.count.transit.Add(1)
	pp.handTo(d, in)
	return flow.Done
}

// deliver appends the packet-out that sends a frame to the host at a port.
func deliver(d *flow.Decision, frame []byte, at flow.Location, rewrite []flow.Action) {
	o := flow.PacketOut{BufferID: flow.BufferNone, InPort: flow.PortController, Data: frame}
	if len(rewrite) == 0 {
		o.Actions = d.Output(at.Port)
	} else {
		o.Actions = d.Actions(append(append(make([]flow.Action, 0, 8), rewrite...), flow.Output(at.Port))...)
	}
	d.PacketOut(at.Switch, o)
}

// handTo appends the packet-out that sends a packet to its destination.
func (pp *packetPath) handTo(d *flow.Decision, in *flow.PacketIn) {
	tag, ok := pp.tagging.Egress(in.Dst, in.Key.VLAN)
	if !ok {
		pp.count.unreachable.Add(1)
		return
	}
	deliver(d, in.Data, in.Dst, tag)
}

// recently is how long after a route was programmed its packets are assumed to
// have been on the way before.
const recently = int64(time.Second)

// connect programs the route of a pair, and the way back, unless this was just
// done, and releases the packet behind the last switch. If it would have to
// wait for the path, or packets of the pair are already waiting, it postpones
// this. What was just done it notes in just, unless that is nil.
func (pp *packetPath) connect(in *flow.PacketIn, d *flow.Decision, p pair, rewrite []flow.Action, just *recentCache) {
	if pp.deferral.hasWaiting(p) || pp.connectBy(pp.findNow, in, d, p, rewrite, just) != nil {
		d.Kept = pp.postpone(in, p, rewrite)
	}
}

// connectBy is connect with paths from the given finder. If the finder does not
// know the path, connectBy does nothing.
func (pp *packetPath) connectBy(find finder, in *flow.PacketIn, d *flow.Decision, p pair, rewrite []flow.Action, just *recentCache) error {
	from, to := flow.Location{Switch: in.Switch, Port: in.Key.InPort}, in.Dst
	if from == to {
		pp.count.hairpin.Add(1)
		return nil
	}
	rewrite, ok := pp.leave(p, to, rewrite)
	if !ok {
		pp.count.unreachable.Add(1)
		return nil
	}
	if in.Unapproved {
		deliver(d, in.Data, to, rewrite) // the stages that held it have let it pass
		return nil
	}
	if pp.hosts.holds(p, rewrite) {
		pp.count.unapproved.Add(1) // held meanwhile; or chosen by a later stage
		return nil
	}
	var fresh, full bool
	pp.routes.with(p, func(s *routeShard) {
		r := s.m[p]
		fresh = r != nil && in.Time-r.sent < recently && r.last() == hop{to.Switch, r.last().in, to.Port} && r.first().sw == from.Switch && r.first().in == from.Port
		full = r == nil && len(s.m) >= pp.perShard()
		if fresh && just != nil {
			just.note(pp, in, r.sent, s)
		}
	})
	if fresh || full {
		if full {
			pp.count.full.Add(1)
			pp.reached.Reach(in.Time, "forwarding.max_routes", pp.cfg.MaxRoutes, "")
		}
		deliver(d, in.Data, to, rewrite)
		return nil
	}
	r, err := pp.compute(find, p, from, to, rewrite)
	if err != nil {
		return err
	}
	if r == nil {
		pp.count.unreachable.Add(1)
		return nil
	}
	r.since, r.sent = in.Time, in.Time
	if !p.ip.IsValid() {
		back := pair{src: p.dst, dst: p.src, vlan: p.vlan}
		br, err := pp.compute(find, back, to, from, nil)
		if err != nil {
			return err
		}
		if br != nil {
			br.since, br.sent = in.Time, in.Time
			pp.install(d, br, nil)
		}
	}
	pp.install(d, r, func() { deliver(d, in.Data, to, rewrite) })
	return nil
}

// gateway returns the subnet whose router address is a.
func (pp *packetPath) gateway(a netip.Addr) *subnet {
	for i := range pp.subnets {
		if pp.subnets[i].gateway == a {
			return &pp.subnets[i]
		}
	}
	return nil
}
