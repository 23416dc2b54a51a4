package forwarding

import "github.com/weft-sdn/weft/flow"

// dropObscured returns the entries that drop packets whose content hosts
// understand but a switch's tables cannot match: no policy could apply to them.
//
//   - A tag of VLAN 0 before another tag. A switch looks behind one tag or two; Linux
//     takes any number of tags of VLAN 0 off (net/8021q).
//   - A first fragment of TCP, UDP or SCTP without ports. TCP's header may be cut
//     (RFC 1858 §3); the others' never are, so that this also drops the first fragments of
//     an Open vSwitch that gives ports to none of them, because somebody else
//     configured it so.
//   - IPv6 whose chain of headers is cut off (RFC 7112), or that gives a payload of
//     length zero: Open vSwitch has protocol 0 for it.
//
// Only Open vSwitch can match the latter two.
func dropObscured(ovs bool) (list []flow.Entry) {
	drop := func(m flow.Match) {
		list = append(list, flow.Entry{Table: flow.TableFirewall, Priority: flow.PriorityHidden, Match: m, Cookie: flow.NewCookie(flow.OwnerForwarding, 0, 0)})
	}
	for _, kind := range [...]uint16{flow.EthTypeVLAN, flow.EthTypeQinQ} {
		drop(flow.Match{}.WithVLAN(0).WithEthType(kind))
	}
	if !ovs {
		return list
	}
	for _, kind := range [...]uint16{flow.EthTypeIPv4, flow.EthTypeIPv6} {
		first := flow.Match{}.WithEthType(kind).WithFirstFragment()
		drop(first.WithTCPSrc(0).WithTCPDst(0))
		drop(first.WithUDPSrc(0).WithUDPDst(0))
		drop(first.WithSCTPSrc(0).WithSCTPDst(0))
	}
	drop(flow.Match{}.WithEthType(flow.EthTypeIPv6).WithIPProto(0))
	return list
}
