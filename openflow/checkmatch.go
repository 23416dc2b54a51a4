package openflow

import (
	"math/bits"

	"github.com/weft-sdn/weft/flow"
)

// CheckMatch reports whether m obeys OpenFlow 1.3.5 §7.2.3.7 and §7.2.3.8, as
// a switch checks it: masks only where they are allowed, values that fit their
// field, and every field's prerequisites there. The error is a *MatchError.
func CheckMatch(m *flow.Match) error {
	for set := uint64(m.Set); set != 0; set &= set - 1 {
		f := flow.Field(bits.TrailingZeros64(set))
		if f >= flow.NumFields {
			return &MatchError{f, BadMatchBadField, "no such field"}
		}
		if m.Masked.Has(f) && !f.Maskable() {
			return &MatchError{f, BadMatchBadMask, "this field cannot be masked"}
		}
		if reason := badValue(&m.Key, f); reason != "" {
			return &MatchError{f, BadMatchBadValue, reason}
		}
		if reason := missing(m, f); reason != "" {
			return &MatchError{f, BadMatchBadPrereq, reason}
		}
	}
	return nil
}

func badValue(k *flow.Key, f flow.Field) string {
	switch {
	case f == flow.FieldVLAN && k.VLAN > 0x1fff:
		return "value over 13 bits"
	case f == flow.FieldVLANPCP && k.VLANPCP > 7, f == flow.FieldMPLSTC && k.MPLSTC > 7:
		return "value over 3 bits"
	case f == flow.FieldIPDSCP && k.IPDSCP > 63:
		return "value over 6 bits"
	case f == flow.FieldIPFrag && k.IPFrag > 3:
		return "value over 2 bits"
	case f == flow.FieldIPECN && k.IPECN > 3:
		return "value over 2 bits"
	case f == flow.FieldMPLSBOS && k.MPLSBOS > 1:
		return "value over 1 bit"
	case f == flow.FieldMPLSLabel && k.MPLSLabel > 0xfffff, f == flow.FieldIPv6FLabel && k.IPv6Label > 0xfffff:
		return "value over 20 bits"
	case f == flow.FieldPBBISID && k.PBBISID > 0xffffff:
		return "value over 24 bits"
	case f == flow.FieldIPv6ExtHdr && k.IPv6Ext > 0x1ff:
		return "value over 9 bits"
	}
	return ""
}

// missing names the prerequisite of f that m lacks.
func missing(m *flow.Match, f flow.Field) string {
	switch f {
	case flow.FieldInPhyPort:
		if !m.Set.Has(flow.FieldInPort) {
			return "needs in_port"
		}
	case flow.FieldVLANPCP:
		if !m.Set.Has(flow.FieldVLAN) || m.Key.VLAN == 0 {
			return "needs vlan_vid of a tagged frame"
		}
	case flow.FieldIPDSCP, flow.FieldIPECN, flow.FieldIPProto, flow.FieldIPFrag:
		if !ether(m, flow.EthTypeIPv4) && !ether(m, flow.EthTypeIPv6) {
			return "needs eth_type=0x0800 or 0x86dd"
		}
	case flow.FieldIPv4Src, flow.FieldIPv4Dst:
		if !ether(m, flow.EthTypeIPv4) {
			return "needs eth_type=0x0800"
		}
	case flow.FieldTCPSrc, flow.FieldTCPDst:
		if !proto(m, flow.IPProtoTCP) {
			return "needs ip_proto=6"
		}
	case flow.FieldUDPSrc, flow.FieldUDPDst:
		if !proto(m, flow.IPProtoUDP) {
			return "needs ip_proto=17"
		}
	case flow.FieldSCTPSrc, flow.FieldSCTPDst:
		if !proto(m, flow.IPProtoSCTP) {
			return "needs ip_proto=132"
		}
	case flow.FieldICMPv4Type, flow.FieldICMPv4Code:
		if !proto(m, flow.IPProtoICMP) || !ether(m, flow.EthTypeIPv4) {
			return "needs eth_type=0x0800 and ip_proto=1"
		}
	case flow.FieldICMPv6Type, flow.FieldICMPv6Code:
		if !proto(m, flow.IPProtoICMPv6) || !ether(m, flow.EthTypeIPv6) {
			return "needs eth_type=0x86dd and ip_proto=58"
		}
	case flow.FieldARPOp, flow.FieldARPSPA, flow.FieldARPTPA, flow.FieldARPSHA, flow.FieldARPTHA:
		if !ether(m, flow.EthTypeARP) {
			return "needs eth_type=0x0806"
		}
	case flow.FieldIPv6Src, flow.FieldIPv6Dst, flow.FieldIPv6FLabel, flow.FieldIPv6ExtHdr:
		if !ether(m, flow.EthTypeIPv6) {
			return "needs eth_type=0x86dd"
		}
	case flow.FieldNDTarget:
		if !icmpv6(m, flow.ICMPv6Solicit) && !icmpv6(m, flow.ICMPv6Advert) {
			return "needs icmpv6_type=135 or 136"
		}
	case flow.FieldNDSLL:
		if !icmpv6(m, flow.ICMPv6Solicit) {
			return "needs icmpv6_type=135"
		}
	case flow.FieldNDTLL:
		if !icmpv6(m, flow.ICMPv6Advert) {
			return "needs icmpv6_type=136"
		}
	case flow.FieldMPLSLabel, flow.FieldMPLSTC, flow.FieldMPLSBOS, flow.FieldMPLSTTL:
		if !ether(m, flow.EthTypeMPLS) && !ether(m, flow.EthTypeMPLSMC) {
			return "needs eth_type=0x8847 or 0x8848"
		}
	case flow.FieldPBBISID:
		if !ether(m, flow.EthTypePBB) {
			return "needs eth_type=0x88e7"
		}
	}
	return ""
}

func ether(m *flow.Match, t uint16) bool { return m.Set.Has(flow.FieldEthType) && m.Key.EthType == t }

func proto(m *flow.Match, p uint8) bool { return m.Set.Has(flow.FieldIPProto) && m.Key.IPProto == p }

func icmpv6(m *flow.Match, t uint8) bool {
	return m.Set.Has(flow.FieldICMPv6Type) && m.Key.ICMPType == t
}
