package hosts

import (
	"net/netip"
	"slices"

	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/packet"
)

// A sighting is a packet of a host at an edge port.
type sighting struct {
	now  int64
	who  id
	at   flow.Location
	says []evidence
	// answer says that the packet answers a question of ours.
	answer bool
	// source is the IP address that the packet has as its source.
	source netip.Addr
}

// uses reports whether a sighting shows that its sender uses an address.
func (s *sighting) uses(ip netip.Addr) bool {
	return s.source == ip || slices.ContainsFunc(s.says, func(e evidence) bool { return e.ip == ip && e.who == s.who })
}

// evidence is what a packet proves about a host's addresses, beyond the
// presence of its sender. Ordinary IPv4 and IPv6 packets prove nothing: their
// source address may be that of a host behind a router.
type evidence struct {
	ip     netip.Addr
	who    id // the host that has the address
	advert advertFlags
}

// carries reports whether a packet may hold evidence, from its key alone.
func carries(k *flow.Key) bool {
	switch k.EthType {
	case flow.EthTypeARP:
		return true
	case flow.EthTypeIPv4:
		return k.IPProto == flow.IPProtoUDP && k.TPSrc == packet.DHCPv4ServerPort
	case flow.EthTypeIPv6:
		return k.IPProto == flow.IPProtoICMPv6 && (k.ICMPType == flow.ICMPv6Solicit || k.ICMPType == flow.ICMPv6Advert || k.ICMPType == flow.ICMPv6RSolicit) ||
			k.IPProto == flow.IPProtoUDP && k.TPSrc == packet.DHCPv6ServerPort
	}
	return false
}

// appendEvidence appends the evidence in a packet. It refuses ARP and ND whose sender
// is not the sender of the frame.
func appendEvidence(k *flow.Key, frame []byte, list []evidence) ([]evidence, refusal) {
	who := newID(k.EthSrc, k.VLAN)
	switch k.EthType {
	case flow.EthTypeARP:
		if k.ARPOp == 0 {
			return list, accepted // not ARP for IPv4 over Ethernet
		}
		if k.ARPSHA != k.EthSrc {
			return list, spoofed
		}
		list = add(list, evidence{ip: netip.AddrFrom4(k.ARPSPA), who: who})
	case flow.EthTypeIPv4:
		if d, ok := packet.ParseDHCPv4(frame); ok && d.Type() == packet.DHCPAck {
			list = add(list, evidence{ip: d.YourIP(), who: newID(d.ClientMAC(), k.VLAN)})
		}
	case flow.EthTypeIPv6:
		if k.IPProto == flow.IPProtoUDP {
			return reply6(k, frame, list), accepted
		}
		nd, ok := packet.ParseND(frame)
		if !ok {
			return list, accepted // RFC 4861 makes hosts ignore it, too
		}
		if m, ok := nd.SourceMAC(); ok && m != k.EthSrc {
			return list, spoofed
		}
		if m, ok := nd.TargetMAC(); ok && m != k.EthSrc {
			return list, spoofed
		}
		switch nd.Type() {
		case flow.ICMPv6Solicit, flow.ICMPv6RSolicit:
			list = add(list, evidence{ip: netip.AddrFrom16(k.IPv6Src), who: who})
		case flow.ICMPv6Advert:
			list = add(list, evidence{ip: nd.Target(), who: who, advert: advertFlags{true, nd.Router(), nd.Override()}})
		}
	}
	return list, accepted
}

// reply6 appends the addresses that a DHCPv6 server assigns to the host that
// gets its reply.
func reply6(k *flow.Key, frame []byte, list []evidence) []evidence {
	d, ok := packet.ParseDHCPv6(frame)
	if !ok || d.Type() != packet.DHCPv6Reply || k.EthDst.Multicast() {
		return list
	}
	for _, a := range d.Addresses(nil) {
		if a.Valid > 0 {
			list = add(list, evidence{ip: a.Addr, who: newID(k.EthDst, k.VLAN)})
		}
	}
	return list
}

// add appends evidence of an address that a host may have.
func add(list []evidence, e evidence) []evidence {
	if e.ip = usable(e.ip); !e.ip.IsValid() {
		return list
	}
	return append(list, e)
}

// usable returns an address that a host may have; not valid if it is another.
func usable(ip netip.Addr) netip.Addr {
	if ip = ip.Unmap(); ip.IsUnspecified() || ip.IsMulticast() || ip.IsLoopback() || ip == broadcast4 {
		return netip.Addr{}
	}
	return ip
}

var broadcast4 = netip.AddrFrom4([4]byte{255, 255, 255, 255})
