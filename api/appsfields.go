package api

import "github.com/weft-sdn/weft/flow"

// headerFields returns the match that a packet with these header fields, and
// as far as they tell no other, meets.
func headerFields(k *flow.Key) flow.Match {
	m := flow.Match{Key: *k}
	add := func(present bool, fields ...flow.Field) {
		for _, f := range fields {
			if present {
				m.Set |= f.Bit()
			}
		}
	}
	add(k.InPort != 0, flow.FieldInPort)
	add(k.InPhyPort != 0, flow.FieldInPhyPort)
	add(k.Metadata != 0, flow.FieldMetadata)
	add(k.TunnelID != 0, flow.FieldTunnelID)
	add(true, flow.FieldEthDst, flow.FieldEthSrc, flow.FieldEthType)
	add(k.VLAN&flow.VLANPresent != 0, flow.FieldVLAN, flow.FieldVLANPCP)
	switch k.EthType {
	case flow.EthTypeARP:
		add(true, flow.FieldARPOp, flow.FieldARPSPA, flow.FieldARPTPA, flow.FieldARPSHA, flow.FieldARPTHA)
	case flow.EthTypeIPv4:
		add(true, flow.FieldIPDSCP, flow.FieldIPECN, flow.FieldIPProto, flow.FieldIPv4Src, flow.FieldIPv4Dst)
		add(k.IPProto == flow.IPProtoICMP, flow.FieldICMPv4Type, flow.FieldICMPv4Code)
	case flow.EthTypeIPv6:
		add(true, flow.FieldIPDSCP, flow.FieldIPECN, flow.FieldIPProto, flow.FieldIPv6Src, flow.FieldIPv6Dst)
		add(k.IPv6Label != 0, flow.FieldIPv6FLabel)
		if k.IPProto == flow.IPProtoICMPv6 {
			add(true, flow.FieldICMPv6Type, flow.FieldICMPv6Code)
			add(k.ICMPType == flow.ICMPv6Solicit || k.ICMPType == flow.ICMPv6Advert, flow.FieldNDTarget)
			add(k.ICMPType == flow.ICMPv6Solicit && k.NDSLL != (flow.MAC{}), flow.FieldNDSLL)
			add(k.ICMPType == flow.ICMPv6Advert && k.NDTLL != (flow.MAC{}), flow.FieldNDTLL)
		}
	case flow.EthTypeMPLS, flow.EthTypeMPLSMC:
		add(true, flow.FieldMPLSLabel, flow.FieldMPLSTC, flow.FieldMPLSBOS)
	case flow.EthTypePBB:
		add(true, flow.FieldPBBISID)
	}
	if k.EthType == flow.EthTypeIPv4 || k.EthType == flow.EthTypeIPv6 {
		ports := k.TPSrc != 0 || k.TPDst != 0 // of fragments, only the first has them
		add(ports && k.IPProto == flow.IPProtoTCP, flow.FieldTCPSrc, flow.FieldTCPDst)
		add(ports && k.IPProto == flow.IPProtoUDP, flow.FieldUDPSrc, flow.FieldUDPDst)
		add(ports && k.IPProto == flow.IPProtoSCTP, flow.FieldSCTPSrc, flow.FieldSCTPDst)
	}
	return m
}
