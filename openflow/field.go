package openflow

import (
	"encoding/binary"

	"github.com/weft-sdn/weft/flow"
)

var be = binary.BigEndian

// putField writes field f of k to b, which has at least the field's width.
func putField(b []byte, k *flow.Key, f flow.Field) {
	switch f {
	case flow.FieldInPort:
		be.PutUint32(b, uint32(k.InPort))
	case flow.FieldInPhyPort:
		be.PutUint32(b, uint32(k.InPhyPort))
	case flow.FieldMetadata:
		be.PutUint64(b, k.Metadata)
	case flow.FieldEthDst:
		putMAC(b, &k.EthDst)
	case flow.FieldEthSrc:
		putMAC(b, &k.EthSrc)
	case flow.FieldEthType:
		be.PutUint16(b, k.EthType)
	case flow.FieldVLAN:
		be.PutUint16(b, k.VLAN)
	case flow.FieldVLANPCP:
		b[0] = k.VLANPCP
	case flow.FieldIPDSCP:
		b[0] = k.IPDSCP
	case flow.FieldIPECN:
		b[0] = k.IPECN
	case flow.FieldIPProto:
		b[0] = k.IPProto
	case flow.FieldIPv4Src:
		*(*[4]byte)(b) = k.IPv4Src
	case flow.FieldIPv4Dst:
		*(*[4]byte)(b) = k.IPv4Dst
	case flow.FieldTCPSrc, flow.FieldUDPSrc, flow.FieldSCTPSrc:
		be.PutUint16(b, k.TPSrc)
	case flow.FieldTCPDst, flow.FieldUDPDst, flow.FieldSCTPDst:
		be.PutUint16(b, k.TPDst)
	case flow.FieldICMPv4Type, flow.FieldICMPv6Type:
		b[0] = k.ICMPType
	case flow.FieldICMPv4Code, flow.FieldICMPv6Code:
		b[0] = k.ICMPCode
	case flow.FieldARPOp:
		be.PutUint16(b, k.ARPOp)
	case flow.FieldARPSPA:
		*(*[4]byte)(b) = k.ARPSPA
	case flow.FieldARPTPA:
		*(*[4]byte)(b) = k.ARPTPA
	case flow.FieldARPSHA:
		putMAC(b, &k.ARPSHA)
	case flow.FieldARPTHA:
		putMAC(b, &k.ARPTHA)
	case flow.FieldIPv6Src:
		*(*[16]byte)(b) = k.IPv6Src
	case flow.FieldIPv6Dst:
		*(*[16]byte)(b) = k.IPv6Dst
	case flow.FieldIPv6FLabel:
		be.PutUint32(b, k.IPv6Label)
	case flow.FieldNDTarget:
		*(*[16]byte)(b) = k.NDTarget
	case flow.FieldNDSLL:
		putMAC(b, &k.NDSLL)
	case flow.FieldNDTLL:
		putMAC(b, &k.NDTLL)
	case flow.FieldMPLSLabel:
		be.PutUint32(b, k.MPLSLabel)
	case flow.FieldMPLSTC:
		b[0] = k.MPLSTC
	case flow.FieldMPLSBOS:
		b[0] = k.MPLSBOS
	case flow.FieldPBBISID:
		b[0], b[1], b[2] = byte(k.PBBISID>>16), byte(k.PBBISID>>8), byte(k.PBBISID)
	case flow.FieldTunnelID:
		be.PutUint64(b, k.TunnelID)
	case flow.FieldIPv6ExtHdr:
		be.PutUint16(b, k.IPv6Ext)
	case flow.FieldCTState:
		be.PutUint32(b, k.CTState)
	case flow.FieldCTZone:
		be.PutUint16(b, k.CTZone)
	case flow.FieldCTMark:
		be.PutUint32(b, k.CTMark)
	case flow.FieldMPLSTTL:
		b[0] = k.MPLSTTL
	case flow.FieldIPFrag:
		b[0] = k.IPFrag
	}
}

// setField reads field f of k from b, which has the field's width.
func setField(k *flow.Key, f flow.Field, b []byte) {
	switch f {
	case flow.FieldInPort:
		k.InPort = flow.Port(be.Uint32(b))
	case flow.FieldInPhyPort:
		k.InPhyPort = flow.Port(be.Uint32(b))
	case flow.FieldMetadata:
		k.Metadata = be.Uint64(b)
	case flow.FieldEthDst:
		k.EthDst = flow.MAC(b)
	case flow.FieldEthSrc:
		k.EthSrc = flow.MAC(b)
	case flow.FieldEthType:
		k.EthType = be.Uint16(b)
	case flow.FieldVLAN:
		k.VLAN = be.Uint16(b)
	case flow.FieldVLANPCP:
		k.VLANPCP = b[0]
	case flow.FieldIPDSCP:
		k.IPDSCP = b[0]
	case flow.FieldIPECN:
		k.IPECN = b[0]
	case flow.FieldIPProto:
		k.IPProto = b[0]
	case flow.FieldIPv4Src:
		k.IPv4Src = [4]byte(b)
	case flow.FieldIPv4Dst:
		k.IPv4Dst = [4]byte(b)
	case flow.FieldTCPSrc, flow.FieldUDPSrc, flow.FieldSCTPSrc:
		k.TPSrc = be.Uint16(b)
	case flow.FieldTCPDst, flow.FieldUDPDst, flow.FieldSCTPDst:
		k.TPDst = be.Uint16(b)
	case flow.FieldICMPv4Type, flow.FieldICMPv6Type:
		k.ICMPType = b[0]
	case flow.FieldICMPv4Code, flow.FieldICMPv6Code:
		k.ICMPCode = b[0]
	case flow.FieldARPOp:
		k.ARPOp = be.Uint16(b)
	case flow.FieldARPSPA:
		k.ARPSPA = [4]byte(b)
	case flow.FieldARPTPA:
		k.ARPTPA = [4]byte(b)
	case flow.FieldARPSHA:
		k.ARPSHA = flow.MAC(b)
	case flow.FieldARPTHA:
		k.ARPTHA = flow.MAC(b)
	case flow.FieldIPv6Src:
		k.IPv6Src = [16]byte(b)
	case flow.FieldIPv6Dst:
		k.IPv6Dst = [16]byte(b)
	case flow.FieldIPv6FLabel:
		k.IPv6Label = be.Uint32(b)
	case flow.FieldNDTarget:
		k.NDTarget = [16]byte(b)
	case flow.FieldNDSLL:
		k.NDSLL = flow.MAC(b)
	case flow.FieldNDTLL:
		k.NDTLL = flow.MAC(b)
	case flow.FieldMPLSLabel:
		k.MPLSLabel = be.Uint32(b)
	case flow.FieldMPLSTC:
		k.MPLSTC = b[0]
	case flow.FieldMPLSBOS:
		k.MPLSBOS = b[0]
	case flow.FieldPBBISID:
		k.PBBISID = uint32(b[0])<<16 | uint32(b[1])<<8 | uint32(b[2])
	case flow.FieldTunnelID:
		k.TunnelID = be.Uint64(b)
	case flow.FieldIPv6ExtHdr:
		k.IPv6Ext = be.Uint16(b)
	case flow.FieldCTState:
		k.CTState = be.Uint32(b)
	case flow.FieldCTZone:
		k.CTZone = be.Uint16(b)
	case flow.FieldCTMark:
		k.CTMark = be.Uint32(b)
	case flow.FieldMPLSTTL:
		k.MPLSTTL = b[0]
	case flow.FieldIPFrag:
		k.IPFrag = b[0]
	}
}

func putMAC(b []byte, m *flow.MAC) { *(*flow.MAC)(b) = *m }
