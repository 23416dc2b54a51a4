package packet

import "github.com/weft-sdn/weft/flow"

// Headers returns the header fields of a packet-in. Whoever is first to ask
// pays for reading what lies behind Ethernet.
func Headers(in *flow.PacketIn) *flow.Key {
	if !in.Parsed {
		Parse(in.Data, &in.Key)
		in.Parsed = true
	}
	return &in.Key
}

// ParseEthernet reads addresses, VLAN and type of a frame into k and leaves
// the rest of k alone. It reports false, and changes nothing, if the frame is
// too short to have them.
func ParseEthernet(frame []byte, k *flow.Key) bool {
	if len(frame) < ethernetLen {
		return false
	}
	k.EthDst, k.EthSrc = flow.MAC(frame[0:6]), flow.MAC(frame[6:12])
	k.VLAN, k.VLANPCP = 0, 0
	k.EthType = be16(frame[12:14])
	if k.EthType == flow.EthTypeVLAN || k.EthType == flow.EthTypeQinQ || k.EthType < 0x0600 {
		var l layers
		locate(frame, &l)
		l.ethernet(frame, k)
	}
	return true
}

// frag returns the bits of flow.Key.IPFrag.
func (l *layers) frag() uint8 {
	switch {
	case !l.fragment:
		return 0
	case l.l4 == 0:
		return flow.FragAny | flow.FragLater
	}
	return flow.FragAny
}

// ethernet sets type and outer tag.
func (l *layers) ethernet(frame []byte, k *flow.Key) {
	k.EthType = l.ethType
	if l.tags > 0 {
		tci := be16(frame[14:16])
		k.VLAN, k.VLANPCP = tci&0xfff|flow.VLANPresent, uint8(tci>>13)
	}
}

// Parse extracts the header fields of a frame as OpenFlow 1.3.5 §7.2.3.7 names
// them. It keeps InPort, InPhyPort, Metadata and TunnelID of k and sets all
// other fields; those that the packet does not have are zero.
//
// VLAN is the outer tag, EthType what follows the last one. Fragments other
// than the first have no transport fields; over IPv6 their protocol is 44, the
// fragment header, as Open vSwitch has it. What lies behind MPLS labels or a
// PBB tag is not looked at. A header that is cut off or malformed leaves its
// fields, and those of what it would carry, zero; Parse then reports false.
// So it does if the packet is shorter than its IP header says, which is usual
// where a switch sends only the beginning of it; what is there is parsed.
func Parse(frame []byte, k *flow.Key) bool {
	port, phy, metadata, tunnel := k.InPort, k.InPhyPort, k.Metadata, k.TunnelID
	*k = flow.Key{} // in place: it is large
	k.InPort, k.InPhyPort, k.Metadata, k.TunnelID = port, phy, metadata, tunnel
	var l layers
	if !locate(frame, &l) {
		return false
	}
	k.EthDst, k.EthSrc = flow.MAC(frame[0:6]), flow.MAC(frame[6:12])
	l.ethernet(frame, k)
	if l.l3 == 0 {
		return false
	}
	b := frame[l.l3:l.end]
	switch l.ethType {
	case flow.EthTypeIPv4:
		k.IPDSCP, k.IPECN, k.IPProto = b[1]>>2, b[1]&3, b[9]
		k.IPv4Src, k.IPv4Dst, k.IPFrag = [4]byte(b[12:16]), [4]byte(b[16:20]), l.frag()
	case flow.EthTypeIPv6:
		head := be32(b[0:4])
		k.IPDSCP, k.IPECN, k.IPv6Label = uint8(head>>22)&63, uint8(head>>20)&3, head&0xfffff
		k.IPv6Src, k.IPv6Dst = [16]byte(b[8:24]), [16]byte(b[24:40])
		k.IPProto, k.IPv6Ext, k.IPFrag = l.proto, l.ext, l.frag()
	case flow.EthTypeARP:
		a, ok := arpAt(b)
		if !ok {
			return false
		}
		k.ARPOp = a.Op()
		k.ARPSHA, k.ARPTHA = a.SenderMAC(), a.TargetMAC()
		k.ARPSPA, k.ARPTPA = [4]byte(a[14:18]), [4]byte(a[24:28])
	case flow.EthTypeMPLS, flow.EthTypeMPLSMC:
		if len(b) < mplsLen {
			return false
		}
		lse := be32(b)
		k.MPLSLabel, k.MPLSTC, k.MPLSBOS = lse>>12, uint8(lse>>9)&7, uint8(lse>>8)&1
		k.MPLSTTL = uint8(lse)
	case flow.EthTypePBB:
		if len(b) < 4 {
			return false
		}
		k.PBBISID = be32(b) & 0xffffff
	}
	if l.l4 != 0 {
		return transport(frame[l.l4:l.end], &l, k)
	}
	return l.whole
}

// transport extracts the fields of what IP carries.
func transport(b []byte, l *layers, k *flow.Key) bool {
	need := 0
	switch l.proto {
	case flow.IPProtoTCP:
		need = tcpLen
	case flow.IPProtoUDP:
		need = udpLen
	case flow.IPProtoSCTP:
		need = sctpLen
	case flow.IPProtoICMP:
		if l.ethType != flow.EthTypeIPv4 {
			return l.whole
		}
		if len(b) < icmpLen {
			return false
		}
		k.ICMPType, k.ICMPCode = b[0], b[1]
		return l.whole
	case flow.IPProtoICMPv6:
		if l.ethType != flow.EthTypeIPv6 {
			return l.whole
		}
		if len(b) < icmpLen {
			return false
		}
		k.ICMPType, k.ICMPCode = b[0], b[1]
		if (b[0] == flow.ICMPv6Solicit || b[0] == flow.ICMPv6Advert) && b[1] == 0 {
			return neighbour(b, k) && l.whole
		}
		return l.whole
	default:
		return l.whole
	}
	if len(b) < need {
		return false
	}
	if l.proto == flow.IPProtoTCP {
		if head := int(b[12]>>4) * 4; head < tcpLen || head > len(b) && l.whole {
			return false
		}
	}
	k.TPSrc, k.TPDst = be16(b[0:2]), be16(b[2:4])
	return l.whole
}

// neighbour extracts the fields of a neighbour solicitation or advertisement;
// none of them if the options are malformed.
func neighbour(b []byte, k *flow.Key) bool {
	if len(b) < ndLen || !optionsWhole(b[ndLen:]) {
		return false
	}
	nd := ND(b)
	k.NDTarget = [16]byte(b[8:24])
	k.NDSLL, _ = nd.SourceMAC()
	k.NDTLL, _ = nd.TargetMAC()
	return true
}
