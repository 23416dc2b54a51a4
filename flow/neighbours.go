package flow

import "net/netip"

// Unicast asks for a frame that is addressed to one station.
func (m Match) Unicast() Match { return m.WithEthDstMasked(MAC{}, MAC{1}) }

// Multicast asks for a frame that is addressed to a group, or to all.
func (m Match) Multicast() Match { return m.WithEthDstMasked(MAC{1}, MAC{1}) }

// ARPOrND returns the conditions of ARP and of neighbour solicitations and
// advertisements that meet m.
func (m Match) ARPOrND() []Match {
	return []Match{m.WithEthType(EthTypeARP), m.WithICMPv6Type(ICMPv6Solicit), m.WithICMPv6Type(ICMPv6Advert)}
}

// ARPOrNDGiving returns the conditions of those of ARPOrND that give the sender an
// IP address, whatever Ethernet address they give for it.
func (m Match) ARPOrNDGiving(ip netip.Addr) []Match {
	p := netip.PrefixFrom(ip, ip.BitLen())
	if ip.Is4() {
		return []Match{m.WithARPSPA(p)}
	}
	return []Match{m.WithICMPv6Type(ICMPv6Solicit).WithIPv6Src(p), m.WithICMPv6Type(ICMPv6Advert).WithNDTarget(ip)}
}

// OwnARPOrND returns the conditions of what a host says of itself, in unicast ARP
// and neighbour discovery, when it asks others or answers them: that it has an IP
// address, at its own Ethernet address. An answer to a unicast solicitation need
// not give the Ethernet address (RFC 4861 §4.4): the one that is known stays.
func (m Match) OwnARPOrND(mac MAC, ip netip.Addr) []Match {
	m = m.WithEthSrc(mac).Unicast()
	list := m.ARPOrNDGiving(ip)
	if ip.Is4() {
		return []Match{list[0].WithARPSHA(mac)}
	}
	return []Match{list[0].WithNDSLL(mac), list[1].WithNDTLL(mac), list[1].WithNDTLL(MAC{})}
}

// OwnNeighbour returns the entries of TableNeighbours for a station of the
// controller's own, such as a router: unicast ARP and neighbour discovery that is
// addressed to it, or claims one of its addresses, comes to the controller. They
// stand above those of hosts, which may be taken for the holders of its addresses.
// vlan is as in Key.
func OwnNeighbour(owner Owner, priority, vlan uint16, mac MAC, ips ...netip.Addr) (list []Entry) {
	in := Match{}.WithNoVLAN()
	if vlan != 0 {
		in = Match{}.WithVLAN(vlan)
	}
	matches := in.WithEthDst(mac).ARPOrND()
	for _, ip := range ips {
		matches = append(matches, in.Unicast().ARPOrNDGiving(ip)...)
	}
	for _, m := range matches {
		list = append(list, Entry{
			Table: TableNeighbours, Priority: priority, Match: m, Cookie: NewCookie(owner, 0, 0), Apply: []Action{Output(PortController)},
		})
	}
	return list
}
