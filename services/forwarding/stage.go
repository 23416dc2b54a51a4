package forwarding

import (
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/packet"
)

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
