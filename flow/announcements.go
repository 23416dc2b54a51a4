package flow

// EtherTypes, protocols and ICMPv6 types by which devices say to groups where they are.
const (
	ethTypeLLC   uint16 = 0x05ff // as Open vSwitch has frames of IEEE 802.3 with LLC
	EthTypeEAPOL uint16 = 0x888e

	ipProtoIGMP    uint8 = 2
	ipProtoVRRP    uint8 = 112
	icmp6MLDReport uint8 = 131
	icmp6MLDDone   uint8 = 132
	icmp6MLDv2     uint8 = 143
)

// Announcements returns the conditions of frames to groups that switches flood by
// themselves and by which a device that has moved is often heard first: IGMP, MLD and
// VRRP, router advertisements, EAPOL. With llc, which only Open vSwitch can match, also
// broadcasts with LLC, such as the XID by which access points and bridges announce a
// station. ARP, neighbour discovery, RARP and DHCP are not among them: they go to the
// controller alone.
func Announcements(llc bool) []Match {
	m := Match{}.Multicast()
	v4, v6 := m.WithEthType(EthTypeIPv4), m.WithEthType(EthTypeIPv6)
	list := []Match{v4.WithIPProto(ipProtoIGMP), v4.WithIPProto(ipProtoVRRP), v6.WithIPProto(ipProtoVRRP), m.WithEthType(EthTypeEAPOL)}
	for _, t := range [...]uint8{icmp6MLDReport, icmp6MLDDone, icmp6MLDv2, ICMPv6RAdvert} {
		list = append(list, m.WithICMPv6Type(t))
	}
	if llc {
		list = append(list, Match{}.WithEthDst(Broadcast).WithEthType(ethTypeLLC))
	}
	return list
}

// IsCopy reports whether the packet is a copy, by an entry for Announcements: the switch
// has passed on the packet itself.
func (p *PacketIn) IsCopy() bool {
	return p.Table == TableNeighbours && p.Key.EthDst.Multicast()
}

// IsLinkLocal reports whether no bridge passes on what is sent to an address, one of
// 01-80-C2-00-00-00 to 0F (IEEE 802.1Q §8.6.3).
func (m MAC) IsLinkLocal() bool { return m.Uint64()>>4 == 0x0180c200000 }
