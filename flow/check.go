package flow

import (
	"fmt"
	"math/bits"
)

// Check returns an error if OpenFlow 1.3.5 does not allow the match (§7.2.3.8,
// §7.2.3.9): a value or mask wider than its field, a mask on a field that takes
// none, a missing prerequisite. The error names the field and what to change.
func (m *Match) Check() error {
	for s := m.Set; s != 0; s &= s - 1 {
		f := Field(bits.TrailingZeros64(uint64(s)))
		if f >= NumFields {
			return fmt.Errorf("match: there is no field number %d", uint8(f))
		}
		if err := m.checkValue(f); err != nil {
			return err
		}
		if err := m.checkPrerequisite(f); err != nil {
			return err
		}
	}
	return nil
}

// checkValue checks the range of a field's value and mask.
func (m *Match) checkValue(f Field) error {
	oh, ol := f.ones()
	vh, vl := m.Key.load(f)
	if vh&^oh|vl&^ol != 0 {
		return fmt.Errorf("match %v=%#x: want at most %#x (%d bits)", f, vl, ol, f.Bits())
	}
	if m.Masked.Has(f) {
		if !f.Maskable() {
			return fmt.Errorf("match %v: takes no mask; give the exact value", f)
		}
		if mh, ml := m.Mask.load(f); mh&^oh|ml&^ol != 0 {
			return fmt.Errorf("match %v: mask %#x: want at most %#x (%d bits)", f, ml, ol, f.Bits())
		}
	} else if f == FieldVLAN && vl != 0 && vl&uint64(VLANPresent) == 0 {
		return fmt.Errorf("match %v=%#x: a VLAN identifier needs the bit 0x1000 (OFPVID_PRESENT)", f, vl)
	}
	return nil
}

// checkPrerequisite checks that the match asks for the fields that f depends on.
func (m *Match) checkPrerequisite(f Field) error {
	k := &m.Key
	ethType := func(types ...uint16) error { return oneOf(m, f, FieldEthType, k.EthType, "%#04x", types) }
	proto := func(types ...uint8) error { return oneOf(m, f, FieldIPProto, k.IPProto, "%d", types) }
	icmp6 := func(types ...uint8) error { return oneOf(m, f, FieldICMPv6Type, k.ICMPType, "%d", types) }
	switch f {
	case FieldInPhyPort:
		if !m.Set.Has(FieldInPort) {
			return fmt.Errorf("match %v: needs in_port as well", f)
		}
	case FieldVLANPCP:
		if _, v, _, mask := m.condition(FieldVLAN); !m.Set.Has(FieldVLAN) || v&mask&uint64(VLANPresent) == 0 {
			return fmt.Errorf("match %v: needs a tagged frame: add vlan_vid=N, or vlan_vid=any for every VLAN", f)
		}
	case FieldIPDSCP, FieldIPECN, FieldIPProto, FieldIPFrag:
		return ethType(EthTypeIPv4, EthTypeIPv6)
	case FieldIPv4Src, FieldIPv4Dst:
		return ethType(EthTypeIPv4)
	case FieldIPv6Src, FieldIPv6Dst, FieldIPv6FLabel, FieldIPv6ExtHdr:
		return ethType(EthTypeIPv6)
	case FieldTCPSrc, FieldTCPDst:
		return proto(IPProtoTCP)
	case FieldUDPSrc, FieldUDPDst:
		return proto(IPProtoUDP)
	case FieldSCTPSrc, FieldSCTPDst:
		return proto(IPProtoSCTP)
	case FieldICMPv4Type, FieldICMPv4Code:
		if err := ethType(EthTypeIPv4); err != nil {
			return err
		}
		return proto(IPProtoICMP)
	case FieldICMPv6Type, FieldICMPv6Code:
		if err := ethType(EthTypeIPv6); err != nil {
			return err
		}
		return proto(IPProtoICMPv6)
	case FieldARPOp, FieldARPSPA, FieldARPTPA, FieldARPSHA, FieldARPTHA:
		return ethType(EthTypeARP)
	case FieldNDTarget:
		return icmp6(ICMPv6Solicit, ICMPv6Advert)
	case FieldNDSLL:
		return icmp6(ICMPv6Solicit)
	case FieldNDTLL:
		return icmp6(ICMPv6Advert)
	case FieldMPLSLabel, FieldMPLSTC, FieldMPLSBOS, FieldMPLSTTL:
		return ethType(EthTypeMPLS, EthTypeMPLSMC)
	case FieldPBBISID:
		return ethType(EthTypePBB)
	}
	return nil
}

// oneOf checks that the match asks for f's prerequisite with an allowed value.
func oneOf[V uint8 | uint16](m *Match, f, prerequisite Field, got V, format string, want []V) error {
	hint := ""
	for i, w := range want {
		if m.Set.Has(prerequisite) && got == w {
			return nil
		}
		if i > 0 {
			hint += " or "
		}
		hint += fmt.Sprintf("%v="+format, prerequisite, w)
	}
	if m.Set.Has(prerequisite) {
		return fmt.Errorf("match %v: needs %s, but %v is "+format, f, hint, prerequisite, got)
	}
	return fmt.Errorf("match %v: needs a prerequisite: add %s", f, hint)
}
