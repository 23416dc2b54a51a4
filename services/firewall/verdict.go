package firewall

import (
	"encoding/binary"

	"github.com/weft-sdn/weft/flow"
)

// fieldAt is the place of a header field in words.
type fieldAt struct {
	field flow.Field
	word  uint8
	shift uint8
}

// fieldsAt are the fields of one word, but for the ports and ICMP fields, which
// depend on the protocol.
var fieldsAt = [...]fieldAt{
	{flow.FieldInPort, 0, 32}, {flow.FieldEthType, 0, 16}, {flow.FieldVLAN, 0, 0},
	{flow.FieldEthDst, 1, 16}, {flow.FieldIPProto, 1, 8}, {flow.FieldIPDSCP, 1, 0},
	{flow.FieldEthSrc, 2, 16}, {flow.FieldVLANPCP, 2, 8}, {flow.FieldIPECN, 2, 0},
	{flow.FieldIPv4Src, 3, 32}, {flow.FieldIPv4Dst, 3, 0}, {flow.FieldARPOp, 4, 0},
	{flow.FieldARPSPA, 9, 32}, {flow.FieldARPTPA, 9, 0},
	{flow.FieldARPSHA, 10, 16}, {flow.FieldMPLSTC, 10, 8}, {flow.FieldMPLSBOS, 10, 0}, {flow.FieldARPTHA, 11, 16}, {flow.FieldIPFrag, 11, 8}, {flow.FieldMPLSTTL, 11, 0},
	{flow.FieldNDSLL, 14, 16}, {flow.FieldIPv6ExtHdr, 14, 0}, {flow.FieldNDTLL, 15, 16},
	{flow.FieldIPv6FLabel, 16, 32}, {flow.FieldMPLSLabel, 16, 0},
	{flow.FieldMetadata, 17, 0}, {flow.FieldTunnelID, 18, 0}, {flow.FieldInPhyPort, 19, 32}, {flow.FieldPBBISID, 19, 0},
}

// wideAt are the fields of two words.
var wideAt = [...]fieldAt{{flow.FieldIPv6Src, 5, 0}, {flow.FieldIPv6Dst, 7, 0}, {flow.FieldNDTarget, 12, 0}}

// portsOf returns the port fields of a packet, or its type and code; false if it
// has none.
func portsOf(ethType uint16, proto uint8) (first, second flow.Field, icmp, ok bool) {
	switch proto {
	case flow.IPProtoTCP:
		return flow.FieldTCPSrc, flow.FieldTCPDst, false, true
	case flow.IPProtoUDP:
		return flow.FieldUDPSrc, flow.FieldUDPDst, false, true
	case flow.IPProtoSCTP:
		return flow.FieldSCTPSrc, flow.FieldSCTPDst, false, true
	case flow.IPProtoICMP:
		return flow.FieldICMPv4Type, flow.FieldICMPv4Code, true, ethType == flow.EthTypeIPv4
	case flow.IPProtoICMPv6:
		return flow.FieldICMPv6Type, flow.FieldICMPv6Code, true, ethType == flow.EthTypeIPv6
	}
	return 0, 0, false, false
}

// matchOf returns the match of all packets that agree with a packet in the bits
// of mask. It leaves out fields that the packet does not have and that the others
// cannot have either, because the bits that decide this agree.
func matchOf(w, mask *words) (m flow.Match, err error) {
	put := func(f flow.Field, value, bits uint64) {
		if n := f.Bits(); n < 64 {
			bits &= 1<<n - 1
		}
		if bits == 0 {
			return
		}
		var v, b [16]byte
		binary.BigEndian.PutUint64(v[:], value<<(64-8*f.Len()))
		binary.BigEndian.PutUint64(b[:], bits<<(64-8*f.Len()))
		m.PutMasked(f, v, b)
	}
	for _, at := range fieldsAt {
		if at.field == flow.FieldVLANPCP && w[0]&uint64(flow.VLANPresent) == 0 {
			continue
		}
		put(at.field, w[at.word]>>at.shift, mask[at.word]>>at.shift)
	}
	for _, at := range wideAt {
		if mask[at.word]|mask[at.word+1] == 0 {
			continue
		}
		var v, b [16]byte
		binary.BigEndian.PutUint64(v[:8], w[at.word])
		binary.BigEndian.PutUint64(v[8:], w[at.word+1])
		binary.BigEndian.PutUint64(b[:8], mask[at.word])
		binary.BigEndian.PutUint64(b[8:], mask[at.word+1])
		m.PutMasked(at.field, v, b)
	}
	if first, second, icmp, ok := portsOf(uint16(w[0]>>16), uint8(w[1]>>8)); ok && icmp {
		put(first, w[wordPorts]>>24, mask[wordPorts]>>24)
		put(second, w[wordPorts]>>16, mask[wordPorts]>>16)
	} else if ok {
		put(first, w[wordPorts]>>48, mask[wordPorts]>>48)
		put(second, w[wordPorts]>>32, mask[wordPorts]>>32)
	}
	m.Normalize()
	return m, m.Check()
}
