package flow

import "math/bits"

// Matches reports whether a packet with header fields k meets the condition.
func (m *Match) Matches(k *Key) bool {
	if m.Masked != 0 {
		for s := m.Masked & m.Set; s != 0; s &= s - 1 {
			f := Field(bits.TrailingZeros64(uint64(s)))
			kh, kl := k.load(f)
			vh, vl := m.Key.load(f)
			mh, ml := m.Mask.load(f)
			if (kh^vh)&mh|(kl^vl)&ml != 0 {
				return false
			}
		}
	}
	v := &m.Key
	for s := m.Set &^ m.Masked; s != 0; s &= s - 1 {
		equal := true
		switch Field(bits.TrailingZeros64(uint64(s))) {
		case FieldInPort:
			equal = v.InPort == k.InPort
		case FieldInPhyPort:
			equal = v.InPhyPort == k.InPhyPort
		case FieldMetadata:
			equal = v.Metadata == k.Metadata
		case FieldEthDst:
			equal = v.EthDst == k.EthDst
		case FieldEthSrc:
			equal = v.EthSrc == k.EthSrc
		case FieldEthType:
			equal = v.EthType == k.EthType
		case FieldVLAN:
			equal = v.VLAN == k.VLAN
		case FieldVLANPCP:
			equal = v.VLANPCP == k.VLANPCP
		case FieldIPDSCP:
			equal = v.IPDSCP == k.IPDSCP
		case FieldIPECN:
			equal = v.IPECN == k.IPECN
		case FieldIPProto:
			equal = v.IPProto == k.IPProto
		case FieldIPv4Src:
			equal = v.IPv4Src == k.IPv4Src
		case FieldIPv4Dst:
			equal = v.IPv4Dst == k.IPv4Dst
		case FieldTCPSrc, FieldUDPSrc, FieldSCTPSrc:
			equal = v.TPSrc == k.TPSrc
		case FieldTCPDst, FieldUDPDst, FieldSCTPDst:
			equal = v.TPDst == k.TPDst
		case FieldICMPv4Type, FieldICMPv6Type:
			equal = v.ICMPType == k.ICMPType
		case FieldICMPv4Code, FieldICMPv6Code:
			equal = v.ICMPCode == k.ICMPCode
		case FieldARPOp:
			equal = v.ARPOp == k.ARPOp
		case FieldARPSPA:
			equal = v.ARPSPA == k.ARPSPA
		case FieldARPTPA:
			equal = v.ARPTPA == k.ARPTPA
		case FieldARPSHA:
			equal = v.ARPSHA == k.ARPSHA
		case FieldARPTHA:
			equal = v.ARPTHA == k.ARPTHA
		case FieldIPv6Src:
			equal = v.IPv6Src == k.IPv6Src
		case FieldIPv6Dst:
			equal = v.IPv6Dst == k.IPv6Dst
		case FieldIPv6FLabel:
			equal = v.IPv6Label == k.IPv6Label
		case FieldNDTarget:
			equal = v.NDTarget == k.NDTarget
		case FieldNDSLL:
			equal = v.NDSLL == k.NDSLL
		case FieldNDTLL:
			equal = v.NDTLL == k.NDTLL
		case FieldMPLSLabel:
			equal = v.MPLSLabel == k.MPLSLabel
		case FieldMPLSTC:
			equal = v.MPLSTC == k.MPLSTC
		case FieldMPLSBOS:
			equal = v.MPLSBOS == k.MPLSBOS
		case FieldPBBISID:
			equal = v.PBBISID == k.PBBISID
		case FieldTunnelID:
			equal = v.TunnelID == k.TunnelID
		case FieldIPv6ExtHdr:
			equal = v.IPv6Ext == k.IPv6Ext
		case FieldCTState:
			equal = v.CTState == k.CTState
		case FieldCTZone:
			equal = v.CTZone == k.CTZone
		case FieldCTMark:
			equal = v.CTMark == k.CTMark
		case FieldMPLSTTL:
			equal = v.MPLSTTL == k.MPLSTTL
		case FieldIPFrag:
			equal = v.IPFrag == k.IPFrag
		}
		if !equal {
			return false
		}
	}
	return true
}

// Get returns the value and mask that the condition asks of a field, in wire
// order as Key.Get does; an unmasked field has a mask of f.Bits() ones. It
// reports false if the field is not part of the condition.
func (m *Match) Get(f Field) (value, mask [16]byte, ok bool) {
	if f >= NumFields || !m.Set.Has(f) {
		return value, mask, false
	}
	vh, vl, mh, ml := m.condition(f)
	return align(f, vh, vl), align(f, mh, ml), true
}

// Put asks for an exact value of a field.
func (m *Match) Put(f Field, value [16]byte) {
	if f >= NumFields {
		return
	}
	m.Set |= f.Bit()
	m.Masked &^= f.Bit()
	m.Key.Put(f, value)
	m.Mask.store(f, 0, 0)
}

// PutMasked asks that a field equal value in the bits that are one in mask,
// and leaves the match normal: a mask of all ones asks for the exact value, one
// of zeros for nothing.
func (m *Match) PutMasked(f Field, value, mask [16]byte) {
	if f >= NumFields {
		return
	}
	vh, vl := unalign(f, value)
	mh, ml := unalign(f, mask)
	m.put(f, vh, vl, mh, ml)
}

// put is PutMasked of numbers.
func (m *Match) put(f Field, vh, vl, mh, ml uint64) {
	oh, ol := f.ones()
	mh, ml = mh&oh, ml&ol
	m.Set |= f.Bit()
	m.Masked &^= f.Bit()
	switch {
	case mh|ml == 0:
		m.Set &^= f.Bit()
		m.Key.store(f, 0, 0)
		m.Mask.store(f, 0, 0)
	case mh == oh && ml == ol:
		m.Key.store(f, vh, vl)
		m.Mask.store(f, 0, 0)
	default:
		m.Masked |= f.Bit()
		m.Key.store(f, vh&mh, vl&ml)
		m.Mask.store(f, mh, ml)
	}
}

// condition returns value and mask of a field in Set as numbers.
func (m *Match) condition(f Field) (vh, vl, mh, ml uint64) {
	vh, vl = m.Key.load(f)
	if m.Masked.Has(f) {
		mh, ml = m.Mask.load(f)
		return vh & mh, vl & ml, mh, ml
	}
	mh, ml = f.ones()
	return vh, vl, mh, ml
}

// Normalize brings a match that was written field by field into the one form
// that stands for its condition, so that equal conditions are equal values:
// masks of all ones are dropped, fields whose mask is zero leave the set, bits
// outside masks, and values outside the set, become zero.
func (m *Match) Normalize() {
	var n Match
	for s := m.Set & (1<<NumFields - 1); s != 0; s &= s - 1 {
		f := Field(bits.TrailingZeros64(uint64(s)))
		vh, vl, mh, ml := m.condition(f)
		n.put(f, vh, vl, mh, ml)
	}
	*m = n
}

// Covers reports whether every packet that o matches is matched by m too: m's
// fields are a subset of o's, its masks have no bit that o's have not, and the
// values agree. This is how OpenFlow 1.3.5 §6.4 selects entries for a
// non-strict delete or modify.
func (m *Match) Covers(o *Match) bool {
	if m.Set&^o.Set != 0 {
		return false
	}
	for s := m.Set; s != 0; s &= s - 1 {
		f := Field(bits.TrailingZeros64(uint64(s)))
		vh, vl, mh, ml := m.condition(f)
		wh, wl, nh, nl := o.condition(f)
		if mh&^nh|ml&^nl|(vh^wh)&mh|(vl^wl)&ml != 0 {
			return false
		}
	}
	return true
}

// Overlaps reports whether some packet could be matched by both: no field that
// both ask about has a bit on which they differ (OpenFlow 1.3.5 §6.4,
// OFPFF_CHECK_OVERLAP).
func (m *Match) Overlaps(o *Match) bool {
	for s := m.Set & o.Set; s != 0; s &= s - 1 {
		f := Field(bits.TrailingZeros64(uint64(s)))
		vh, vl, mh, ml := m.condition(f)
		wh, wl, nh, nl := o.condition(f)
		if (vh^wh)&mh&nh|(vl^wl)&ml&nl != 0 {
			return false
		}
	}
	return true
}
