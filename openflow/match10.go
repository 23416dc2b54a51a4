package openflow

import (
	"math/bits"

	"github.com/weft-sdn/weft/flow"
)

// The match of OpenFlow 1.0.1 §5.2.3.
const (
	match10Len = 40

	wildInPort   uint32 = 1 << 0
	wildDLVLAN   uint32 = 1 << 1
	wildDLSrc    uint32 = 1 << 2
	wildDLDst    uint32 = 1 << 3
	wildDLType   uint32 = 1 << 4
	wildNwProto  uint32 = 1 << 5
	wildTPSrc    uint32 = 1 << 6
	wildTPDst    uint32 = 1 << 7
	wildNwSrc           = 8 // shift of a count of wildcarded low bits
	wildNwDst           = 14
	wildPCP      uint32 = 1 << 20
	wildNwTOS    uint32 = 1 << 21
	wildAll      uint32 = 1<<22 - 1
	wildNwBits   uint32 = 63
	vlanNone10   uint16 = 0xffff // a frame without a tag
	vlanVIDMask  uint16 = 0x0fff
	tosDSCPShift        = 2
)

// appendMatch10 appends m as a match of OpenFlow 1.0.
func appendMatch10(dst []byte, op string, m *flow.Match) ([]byte, error) {
	start := len(dst)
	out := extend(dst, match10Len)
	b := out[start : start+match10Len]
	clear(b)
	w := wildAll
	k := &m.Key
	for set := uint64(m.Set); set != 0; set &= set - 1 {
		f := flow.Field(bits.TrailingZeros64(set))
		masked := m.Masked.Has(f)
		switch f {
		case flow.FieldInPort:
			p, ok := port10(k.InPort)
			if !ok {
				return dst, unsupported(V10, op, "port "+k.InPort.String(), badRequestPort)
			}
			be.PutUint16(b[4:], p)
			w &^= wildInPort
		case flow.FieldEthSrc:
			putMAC(b[6:], &k.EthSrc)
			w &^= wildDLSrc
		case flow.FieldEthDst:
			putMAC(b[12:], &k.EthDst)
			w &^= wildDLDst
		case flow.FieldVLAN:
			switch {
			case masked:
				// "any tag" can be said only by giving a priority
				if k.VLAN != flow.VLANPresent || m.Mask.VLAN != flow.VLANPresent || !m.Set.Has(flow.FieldVLANPCP) {
					return dst, unsupported(V10, op, "masked vlan_vid", badMatchField)
				}
				masked = false
			case k.VLAN&flow.VLANPresent == 0:
				be.PutUint16(b[18:], vlanNone10)
				w &^= wildDLVLAN
			default:
				be.PutUint16(b[18:], k.VLAN&vlanVIDMask)
				w &^= wildDLVLAN
			}
		case flow.FieldVLANPCP:
			if !m.Set.Has(flow.FieldVLAN) || k.VLAN&flow.VLANPresent == 0 {
				return dst, unsupported(V10, op, "vlan_pcp without vlan_vid of a tagged frame", badMatchPrereq)
			}
			b[20] = k.VLANPCP
			w &^= wildPCP
		case flow.FieldEthType:
			be.PutUint16(b[22:], k.EthType)
			w &^= wildDLType
		case flow.FieldIPDSCP:
			b[24] = k.IPDSCP << tosDSCPShift
			w &^= wildNwTOS
		case flow.FieldIPProto:
			b[25] = k.IPProto
			w &^= wildNwProto
		case flow.FieldARPOp:
			if k.ARPOp > 0xff {
				return dst, unsupported(V10, op, "arp_op over 255", badMatchField)
			}
			b[25] = byte(k.ARPOp)
			w &^= wildNwProto
		case flow.FieldIPv4Src, flow.FieldARPSPA, flow.FieldIPv4Dst, flow.FieldARPTPA:
			addr, mask, at, shift := &k.IPv4Src, &m.Mask.IPv4Src, 28, wildNwSrc
			switch f {
			case flow.FieldARPSPA:
				addr, mask = &k.ARPSPA, &m.Mask.ARPSPA
			case flow.FieldIPv4Dst:
				addr, mask, at, shift = &k.IPv4Dst, &m.Mask.IPv4Dst, 32, wildNwDst
			case flow.FieldARPTPA:
				addr, mask, at, shift = &k.ARPTPA, &m.Mask.ARPTPA, 32, wildNwDst
			}
			ones := uint32(0xffffffff)
			if masked {
				ones = be.Uint32(mask[:])
				if ^ones&(^ones+1) != 0 {
					return dst, unsupported(V10, op, f.String()+" with a mask that is no prefix", badMatchField)
				}
				masked = false
			}
			be.PutUint32(b[at:], be.Uint32(addr[:])&ones)
			w = w&^(wildNwBits<<shift) | uint32(bits.TrailingZeros32(ones))<<shift
		case flow.FieldTCPSrc, flow.FieldUDPSrc:
			be.PutUint16(b[36:], k.TPSrc)
			w &^= wildTPSrc
		case flow.FieldTCPDst, flow.FieldUDPDst:
			be.PutUint16(b[38:], k.TPDst)
			w &^= wildTPDst
		case flow.FieldICMPv4Type:
			b[37] = k.ICMPType
			w &^= wildTPSrc
		case flow.FieldICMPv4Code:
			b[39] = k.ICMPCode
			w &^= wildTPDst
		default:
			return dst, unsupported(V10, op, f.String(), badMatchField)
		}
		if masked {
			return dst, unsupported(V10, op, "masked "+f.String(), badMatchField)
		}
		if f > flow.FieldEthType && f != flow.FieldVLAN && f != flow.FieldVLANPCP {
			if err := check10(op, m, f); err != nil {
				return dst, err
			}
		}
	}
	be.PutUint32(b, w)
	return out, nil
}

// check10 refuses what a switch would pass over in silence: a network or
// transport field whose ethertype or protocol OpenFlow 1.0 does not look into.
func check10(op string, m *flow.Match, f flow.Field) error {
	if reason := missing(m, f); reason != "" {
		return unsupported(V10, op, f.String()+", which "+reason, badMatchPrereq)
	}
	if ether(m, flow.EthTypeIPv6) {
		return unsupported(V10, op, f.String()+" of IPv6", badMatchField)
	}
	return nil
}

// decodeMatch10 reads a match of OpenFlow 1.0 from b, match10Len long.
// Fields that the ethertype or the protocol does not have are passed over, as
// a switch does.
func decodeMatch10(b []byte, m *flow.Match) {
	*m = flow.Match{}
	_ = b[match10Len-1]
	w := be.Uint32(b)
	k := &m.Key
	if w&wildInPort == 0 {
		m.Set |= flow.FieldInPort.Bit()
		k.InPort = portFrom10(be.Uint16(b[4:]))
	}
	if w&wildDLSrc == 0 {
		m.Set |= flow.FieldEthSrc.Bit()
		k.EthSrc = flow.MAC(b[6:12])
	}
	if w&wildDLDst == 0 {
		m.Set |= flow.FieldEthDst.Bit()
		k.EthDst = flow.MAC(b[12:18])
	}
	vlan := be.Uint16(b[18:])
	untagged := w&wildDLVLAN == 0 && vlan == vlanNone10
	switch {
	case untagged:
		m.Set |= flow.FieldVLAN.Bit()
	case w&wildDLVLAN == 0:
		m.Set |= flow.FieldVLAN.Bit()
		k.VLAN = flow.VLANPresent | vlan&vlanVIDMask
	case w&wildPCP == 0:
		m.Set |= flow.FieldVLAN.Bit()
		m.Masked |= flow.FieldVLAN.Bit()
		k.VLAN, m.Mask.VLAN = flow.VLANPresent, flow.VLANPresent
	}
	if w&wildPCP == 0 && !untagged {
		m.Set |= flow.FieldVLANPCP.Bit()
		k.VLANPCP = b[20] & 7
	}
	if w&wildDLType != 0 {
		return
	}
	m.Set |= flow.FieldEthType.Bit()
	k.EthType = be.Uint16(b[22:])
	switch k.EthType {
	case flow.EthTypeARP:
		if w&wildNwProto == 0 {
			m.Set |= flow.FieldARPOp.Bit()
			k.ARPOp = uint16(b[25])
		}
		prefix10(m, flow.FieldARPSPA, b[28:32], w>>wildNwSrc)
		prefix10(m, flow.FieldARPTPA, b[32:36], w>>wildNwDst)
	case flow.EthTypeIPv4:
		if w&wildNwTOS == 0 {
			m.Set |= flow.FieldIPDSCP.Bit()
			k.IPDSCP = b[24] >> tosDSCPShift
		}
		prefix10(m, flow.FieldIPv4Src, b[28:32], w>>wildNwSrc)
		prefix10(m, flow.FieldIPv4Dst, b[32:36], w>>wildNwDst)
		if w&wildNwProto == 0 {
			m.Set |= flow.FieldIPProto.Bit()
			k.IPProto = b[25]
			transport10(m, w, b[36:40])
		}
	}
}

func prefix10(m *flow.Match, f flow.Field, addr []byte, wild uint32) {
	wild &= wildNwBits
	if wild >= 32 {
		return
	}
	mask := [4]byte{}
	be.PutUint32(mask[:], ^uint32(0)<<wild)
	setMasked(m, f, addr, mask[:])
}

func transport10(m *flow.Match, w uint32, b []byte) {
	src, dst := flow.FieldTCPSrc, flow.FieldTCPDst
	switch m.Key.IPProto {
	case flow.IPProtoTCP:
	case flow.IPProtoUDP:
		src, dst = flow.FieldUDPSrc, flow.FieldUDPDst
	case flow.IPProtoICMP:
		src, dst = flow.FieldICMPv4Type, flow.FieldICMPv4Code
	default:
		return
	}
	if w&wildTPSrc == 0 {
		m.Set |= src.Bit()
		setField(&m.Key, src, b[2-src.Len():2])
	}
	if w&wildTPDst == 0 {
		m.Set |= dst.Bit()
		setField(&m.Key, dst, b[4-dst.Len():4])
	}
}

// port10 is the 16-bit number of p (OpenFlow 1.0.1 §5.2.1), false if it has none.
func port10(p flow.Port) (uint16, bool) {
	return uint16(p), p < 0xff00 || p >= flow.PortIn
}

// portFrom10 is the port whose 16-bit number is p.
func portFrom10(p uint16) flow.Port {
	if p >= 0xfff8 {
		return 0xffff0000 | flow.Port(p)
	}
	return flow.Port(p)
}
