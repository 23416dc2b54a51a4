package flow

import (
	"fmt"
	"strings"
)

// fieldInfo is a row of OpenFlow 1.3.5 §7.2.3.7, table 12.
type fieldInfo struct {
	name     string
	len      uint8 // octets on the wire
	bits     uint8
	maskable bool
}

var fieldTable = [NumFields]fieldInfo{
	FieldInPort:     {"in_port", 4, 32, false},
	FieldInPhyPort:  {"in_phy_port", 4, 32, false},
	FieldMetadata:   {"metadata", 8, 64, true},
	FieldEthDst:     {"eth_dst", 6, 48, true},
	FieldEthSrc:     {"eth_src", 6, 48, true},
	FieldEthType:    {"eth_type", 2, 16, false},
	FieldVLAN:       {"vlan_vid", 2, 13, true},
	FieldVLANPCP:    {"vlan_pcp", 1, 3, false},
	FieldIPDSCP:     {"ip_dscp", 1, 6, false},
	FieldIPECN:      {"ip_ecn", 1, 2, false},
	FieldIPProto:    {"ip_proto", 1, 8, false},
	FieldIPv4Src:    {"ipv4_src", 4, 32, true},
	FieldIPv4Dst:    {"ipv4_dst", 4, 32, true},
	FieldTCPSrc:     {"tcp_src", 2, 16, true},
	FieldTCPDst:     {"tcp_dst", 2, 16, true},
	FieldUDPSrc:     {"udp_src", 2, 16, true},
	FieldUDPDst:     {"udp_dst", 2, 16, true},
	FieldSCTPSrc:    {"sctp_src", 2, 16, true},
	FieldSCTPDst:    {"sctp_dst", 2, 16, true},
	FieldICMPv4Type: {"icmpv4_type", 1, 8, false},
	FieldICMPv4Code: {"icmpv4_code", 1, 8, false},
	FieldARPOp:      {"arp_op", 2, 16, false},
	FieldARPSPA:     {"arp_spa", 4, 32, true},
	FieldARPTPA:     {"arp_tpa", 4, 32, true},
	FieldARPSHA:     {"arp_sha", 6, 48, true},
	FieldARPTHA:     {"arp_tha", 6, 48, true},
	FieldIPv6Src:    {"ipv6_src", 16, 128, true},
	FieldIPv6Dst:    {"ipv6_dst", 16, 128, true},
	FieldIPv6FLabel: {"ipv6_flabel", 4, 20, true},
	FieldICMPv6Type: {"icmpv6_type", 1, 8, false},
	FieldICMPv6Code: {"icmpv6_code", 1, 8, false},
	FieldNDTarget:   {"ipv6_nd_target", 16, 128, false},
	FieldNDSLL:      {"ipv6_nd_sll", 6, 48, false},
	FieldNDTLL:      {"ipv6_nd_tll", 6, 48, false},
	FieldMPLSLabel:  {"mpls_label", 4, 20, false},
	FieldMPLSTC:     {"mpls_tc", 1, 3, false},
	FieldMPLSBOS:    {"mpls_bos", 1, 1, false},
	FieldPBBISID:    {"pbb_isid", 3, 24, true},
	FieldTunnelID:   {"tunnel_id", 8, 64, true},
	FieldIPv6ExtHdr: {"ipv6_exthdr", 2, 9, true},
	FieldCTState:    {"ct_state", 4, 8, true},
	FieldCTZone:     {"ct_zone", 2, 16, false},
	FieldCTMark:     {"ct_mark", 4, 32, true},
	FieldMPLSTTL:    {"mpls_ttl", 1, 8, false},
	FieldIPFrag:     {"ip_frag", 1, 2, true},
}

// info returns the row of f, an empty one if there is no such field.
func (f Field) info() *fieldInfo {
	if f < NumFields {
		return &fieldTable[f]
	}
	return &fieldInfo{}
}

// Len returns the length of the field's value on the wire in octets, 0 if
// there is no such field.
func (f Field) Len() int { return int(f.info().len) }

// Bits returns how many bits of the value count: the low ones.
func (f Field) Bits() int { return int(f.info().bits) }

// Maskable reports whether a match may mask the field: OpenFlow 1.3.5 says so,
// or, of transport ports, Open vSwitch, which takes a mask where the standard has
// none. Other switches may refuse it.
func (f Field) Maskable() bool { return f.info().maskable }

// String returns the field's OXM name in lower case, such as "ipv4_dst".
func (f Field) String() string {
	if f < NumFields {
		return fieldTable[f].name
	}
	return fmt.Sprintf("field-%d", uint8(f))
}

// ParseField reads an OXM name as String writes it; case does not matter.
func ParseField(s string) (Field, error) {
	for f := range fieldTable {
		if strings.EqualFold(s, fieldTable[f].name) {
			return Field(f), nil
		}
	}
	names := make([]string, NumFields)
	for f := range fieldTable {
		names[f] = fieldTable[f].name
	}
	return 0, fmt.Errorf("match field %q: want one of %s", s, strings.Join(names, ", "))
}

// Get returns the value of a field in wire order, left-aligned: the first
// f.Len() octets hold it, the others are zero.
func (k *Key) Get(f Field) (value [16]byte) {
	hi, lo := k.load(f)
	return align(f, hi, lo)
}

// Put sets a field to the first f.Len() octets of value, in wire order. Bits
// beyond f.Bits() are kept as they are; Match.Check finds them.
func (k *Key) Put(f Field, value [16]byte) {
	hi, lo := unalign(f, value)
	k.store(f, hi, lo)
}

// ones returns the number whose counting bits are all one.
func (f Field) ones() (hi, lo uint64) {
	switch b := f.Bits(); {
	case b == 128:
		return ^uint64(0), ^uint64(0)
	default:
		return 0, ^uint64(0) >> (64 - b)
	}
}

// align returns the number hi<<64|lo in wire order, left-aligned to f.
func align(f Field, hi, lo uint64) (v [16]byte) {
	n := f.Len()
	if n == 16 {
		putUint64(v[0:8], hi)
		putUint64(v[8:16], lo)
		return v
	}
	if n > 0 {
		putUint64(v[0:8], lo<<(64-8*n))
	}
	return v
}

// unalign returns the number that v holds in the first octets of f's length.
func unalign(f Field, v [16]byte) (hi, lo uint64) {
	n := f.Len()
	if n == 16 {
		return getUint64(v[0:8]), getUint64(v[8:16])
	}
	if n == 0 {
		return 0, 0
	}
	return 0, getUint64(v[0:8]) >> (64 - 8*n)
}

func getUint64(b []byte) uint64 {
	_ = b[7]
	return uint64(b[0])<<56 | uint64(b[1])<<48 | uint64(b[2])<<40 | uint64(b[3])<<32 |
		uint64(b[4])<<24 | uint64(b[5])<<16 | uint64(b[6])<<8 | uint64(b[7])
}

func putUint64(b []byte, v uint64) {
	_ = b[7]
	b[0], b[1], b[2], b[3] = byte(v>>56), byte(v>>48), byte(v>>40), byte(v>>32)
	b[4], b[5], b[6], b[7] = byte(v>>24), byte(v>>16), byte(v>>8), byte(v)
}

func getUint32(b [4]byte) uint64 {
	return uint64(b[0])<<24 | uint64(b[1])<<16 | uint64(b[2])<<8 | uint64(b[3])
}

func toIPv4(v uint64) [4]byte { return [4]byte{byte(v >> 24), byte(v >> 16), byte(v >> 8), byte(v)} }

// load returns a field as the number hi<<64|lo; hi is 0 but for IPv6 addresses.
func (k *Key) load(f Field) (hi, lo uint64) {
	switch f {
	case FieldInPort:
		lo = uint64(k.InPort)
	case FieldInPhyPort:
		lo = uint64(k.InPhyPort)
	case FieldMetadata:
		lo = k.Metadata
	case FieldEthDst:
		lo = k.EthDst.Uint64()
	case FieldEthSrc:
		lo = k.EthSrc.Uint64()
	case FieldEthType:
		lo = uint64(k.EthType)
	case FieldVLAN:
		lo = uint64(k.VLAN)
	case FieldVLANPCP:
		lo = uint64(k.VLANPCP)
	case FieldIPDSCP:
		lo = uint64(k.IPDSCP)
	case FieldIPECN:
		lo = uint64(k.IPECN)
	case FieldIPProto:
		lo = uint64(k.IPProto)
	case FieldIPv4Src:
		lo = getUint32(k.IPv4Src)
	case FieldIPv4Dst:
		lo = getUint32(k.IPv4Dst)
	case FieldTCPSrc, FieldUDPSrc, FieldSCTPSrc:
		lo = uint64(k.TPSrc)
	case FieldTCPDst, FieldUDPDst, FieldSCTPDst:
		lo = uint64(k.TPDst)
	case FieldICMPv4Type, FieldICMPv6Type:
		lo = uint64(k.ICMPType)
	case FieldICMPv4Code, FieldICMPv6Code:
		lo = uint64(k.ICMPCode)
	case FieldARPOp:
		lo = uint64(k.ARPOp)
	case FieldARPSPA:
		lo = getUint32(k.ARPSPA)
	case FieldARPTPA:
		lo = getUint32(k.ARPTPA)
	case FieldARPSHA:
		lo = k.ARPSHA.Uint64()
	case FieldARPTHA:
		lo = k.ARPTHA.Uint64()
	case FieldIPv6Src:
		hi, lo = getUint64(k.IPv6Src[0:8]), getUint64(k.IPv6Src[8:16])
	case FieldIPv6Dst:
		hi, lo = getUint64(k.IPv6Dst[0:8]), getUint64(k.IPv6Dst[8:16])
	case FieldIPv6FLabel:
		lo = uint64(k.IPv6Label)
	case FieldNDTarget:
		hi, lo = getUint64(k.NDTarget[0:8]), getUint64(k.NDTarget[8:16])
	case FieldNDSLL:
		lo = k.NDSLL.Uint64()
	case FieldNDTLL:
		lo = k.NDTLL.Uint64()
	case FieldMPLSLabel:
		lo = uint64(k.MPLSLabel)
	case FieldMPLSTC:
		lo = uint64(k.MPLSTC)
	case FieldMPLSBOS:
		lo = uint64(k.MPLSBOS)
	case FieldPBBISID:
		lo = uint64(k.PBBISID)
	case FieldTunnelID:
		lo = k.TunnelID
	case FieldIPv6ExtHdr:
		lo = uint64(k.IPv6Ext)
	case FieldCTState:
		lo = uint64(k.CTState)
	case FieldCTZone:
		lo = uint64(k.CTZone)
	case FieldCTMark:
		lo = uint64(k.CTMark)
	case FieldMPLSTTL:
		lo = uint64(k.MPLSTTL)
	case FieldIPFrag:
		lo = uint64(k.IPFrag)
	}
	return hi, lo
}

// store sets a field to the number hi<<64|lo.
func (k *Key) store(f Field, hi, lo uint64) {
	switch f {
	case FieldInPort:
		k.InPort = Port(lo)
	case FieldInPhyPort:
		k.InPhyPort = Port(lo)
	case FieldMetadata:
		k.Metadata = lo
	case FieldEthDst:
		k.EthDst = MACFrom(lo)
	case FieldEthSrc:
		k.EthSrc = MACFrom(lo)
	case FieldEthType:
		k.EthType = uint16(lo)
	case FieldVLAN:
		k.VLAN = uint16(lo)
	case FieldVLANPCP:
		k.VLANPCP = uint8(lo)
	case FieldIPDSCP:
		k.IPDSCP = uint8(lo)
	case FieldIPECN:
		k.IPECN = uint8(lo)
	case FieldIPProto:
		k.IPProto = uint8(lo)
	case FieldIPv4Src:
		k.IPv4Src = toIPv4(lo)
	case FieldIPv4Dst:
		k.IPv4Dst = toIPv4(lo)
	case FieldTCPSrc, FieldUDPSrc, FieldSCTPSrc:
		k.TPSrc = uint16(lo)
	case FieldTCPDst, FieldUDPDst, FieldSCTPDst:
		k.TPDst = uint16(lo)
	case FieldICMPv4Type, FieldICMPv6Type:
		k.ICMPType = uint8(lo)
	case FieldICMPv4Code, FieldICMPv6Code:
		k.ICMPCode = uint8(lo)
	case FieldARPOp:
		k.ARPOp = uint16(lo)
	case FieldARPSPA:
		k.ARPSPA = toIPv4(lo)
	case FieldARPTPA:
		k.ARPTPA = toIPv4(lo)
	case FieldARPSHA:
		k.ARPSHA = MACFrom(lo)
	case FieldARPTHA:
		k.ARPTHA = MACFrom(lo)
	case FieldIPv6Src:
		putUint64(k.IPv6Src[0:8], hi)
		putUint64(k.IPv6Src[8:16], lo)
	case FieldIPv6Dst:
		putUint64(k.IPv6Dst[0:8], hi)
		putUint64(k.IPv6Dst[8:16], lo)
	case FieldIPv6FLabel:
		k.IPv6Label = uint32(lo)
	case FieldNDTarget:
		putUint64(k.NDTarget[0:8], hi)
		putUint64(k.NDTarget[8:16], lo)
	case FieldNDSLL:
		k.NDSLL = MACFrom(lo)
	case FieldNDTLL:
		k.NDTLL = MACFrom(lo)
	case FieldMPLSLabel:
		k.MPLSLabel = uint32(lo)
	case FieldMPLSTC:
		k.MPLSTC = uint8(lo)
	case FieldMPLSBOS:
		k.MPLSBOS = uint8(lo)
	case FieldPBBISID:
		k.PBBISID = uint32(lo)
	case FieldTunnelID:
		k.TunnelID = lo
	case FieldIPv6ExtHdr:
		k.IPv6Ext = uint16(lo)
	case FieldCTState:
		k.CTState = uint32(lo)
	case FieldCTZone:
		k.CTZone = uint16(lo)
	case FieldCTMark:
		k.CTMark = uint32(lo)
	case FieldMPLSTTL:
		k.MPLSTTL = uint8(lo)
	case FieldIPFrag:
		k.IPFrag = uint8(lo)
	}
}
