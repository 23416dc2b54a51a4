package node

import (
	"net/netip"

	"github.com/weft-sdn/weft/flow"
)

const (
	etherIPv4 = 0x0800
	etherIPv6 = 0x86dd
	protoOSPF = 89
	protoGRE  = 47
	portVXLAN = 4789

	// Where neighbours of a routing protocol speak BFD (RFC 5881, 5883).
	bfdSingleHop = 3784
	bfdEcho      = 3785
	bfdMultihop  = 4784
)

// Entries returns what a node needs to be a router: all that comes by a port goes
// to its internal port, and back. What a service takes of it stands above. From
// customers come neither routing protocols nor what is for protected addresses.
func (n *Node) Entries() []flow.Entry {
	var all []flow.Entry
	add := func(priority uint16, m flow.Match, actions ...flow.Action) {
		all = append(all, flow.Entry{Table: flow.TableIngress, Priority: priority, Cookie: flow.NodeCookie, Match: m, Apply: actions})
	}
	for _, p := range n.Ports {
		outside, inside := flow.Match{}.WithInPort(flow.Port(p.Port)), flow.Match{}.WithInPort(flow.Port(p.Internal))
		add(flow.PriorityCoexist, outside, flow.Output(flow.Port(p.Internal)))
		add(flow.PriorityCoexist, inside, flow.Output(flow.Port(p.Port)))
		if !p.Customer {
			continue
		}
		for _, ip := range []uint16{etherIPv4, etherIPv6} {
			add(flow.PriorityCoexistGuard, outside.WithEthType(ip).WithIPProto(protoOSPF))
			for _, port := range []uint16{bfdSingleHop, bfdEcho, bfdMultihop} {
				add(flow.PriorityCoexistGuard, outside.WithEthType(ip).WithUDPDst(port))
			}
		}
		for _, to := range n.Loopbacks {
			at := outside.WithEthType(etherOf(to)).WithIPDst(to)
			add(flow.PriorityCoexistGuard, at.WithUDPDst(portVXLAN))
			add(flow.PriorityCoexistGuard, at.WithIPProto(protoGRE))
		}
		for _, to := range n.Protected {
			add(flow.PriorityCoexistGuard, outside.WithEthType(etherOf(to)).WithIPDst(to))
		}
	}
	return all
}

func etherOf(p netip.Prefix) uint16 {
	if p.Addr().Is4() {
		return etherIPv4
	}
	return etherIPv6
}
