package openflow

import (
	"fmt"
	"math/bits"

	"github.com/weft-sdn/weft/flow"
)

const (
	matchTypeOXM  = 1
	oxmBasic      = 0x8000 // OFPXMC_OPENFLOW_BASIC
	oxmHasMask    = 1 << 8
	oxmMaxLen     = 4 + 2*16
	oxmHeader     = uint32(oxmBasic) << 16
	matchMinLen   = 8
	matchHeadroom = 4 + 7 // its own header and padding
)

// appendMatch appends m as a match of OpenFlow 1.3 (§7.2.3), padded to eight.
func appendMatch(dst []byte, m *flow.Match) ([]byte, error) {
	start := len(dst)
	b := extend(dst, bits.OnesCount64(uint64(m.Set))*oxmMaxLen+matchHeadroom)
	p := start + 4
	for set := uint64(m.Set); set != 0; set &= set - 1 {
		f := flow.Field(bits.TrailingZeros64(set))
		if f >= flow.NumFields {
			return dst, unsupported(V13, "match", fmt.Sprintf("field number %d", f), badMatchField)
		}
		w := f.Len()
		h := oxmOf(f) | uint32(w)
		if !m.Masked.Has(f) {
			be.PutUint32(b[p:], h)
			putField(b[p+4:], &m.Key, f)
			p += 4 + w
			continue
		}
		be.PutUint32(b[p:], h+oxmHasMask+uint32(w))
		v, mask := b[p+4:p+4+w], b[p+4+w:p+4+2*w]
		putField(v, &m.Key, f)
		putField(mask, &m.Mask, f)
		for i := range v {
			v[i] &= mask[i]
		}
		p += 4 + 2*w
	}
	n := p - start
	be.PutUint32(b[start:], matchTypeOXM<<16|uint32(n))
	for end := start + pad8(n); p < end; p++ {
		b[p] = 0
	}
	return b[:p], nil
}

// decodeMatch reads the match at off and returns where what follows it starts.
// Fields that flow.Match has no place for set *partial and are left out; with
// partial nil they are an error.
func decodeMatch(t Type, msg []byte, off int, m *flow.Match, partial *bool) (int, error) { //nolint:unparam // the lengths before the match are the same by chance
	*m = flow.Match{}
	off, end, next, err := matchBounds(t, msg, off)
	if err != nil {
		return 0, err
	}
	var seen flow.FieldSet
	for off < end {
		if end-off < 4 {
			return 0, malformed(t, off, "match field header cut short", badMatchLen)
		}
		h := be.Uint32(msg[off:])
		n := int(h & 0xff)
		v := off + 4
		if n > end-v {
			return 0, malformed(t, off, "match field longer than the match", badMatchLen)
		}
		f, ok := fieldOf(h)
		if !ok {
			if partial == nil {
				return 0, unsupported(V13, t.String(), fmt.Sprintf("match field %d of class 0x%04x", h>>9&0x7f, h>>16), badMatchField)
			}
			*partial = true
			off = v + n
			continue
		}
		if seen.Has(f) {
			return 0, malformed(t, off, "match field "+f.String()+" given twice", badMatchDup)
		}
		if seen&samePlace(f) != 0 {
			return 0, malformed(t, off, "match field "+f.String()+" beside that of another protocol", badMatchPrereq)
		}
		seen |= f.Bit()
		w := f.Len()
		if h&oxmHasMask == 0 {
			if n != w {
				return 0, malformed(t, off, "match field "+f.String()+" of wrong length", badMatchLen)
			}
			setField(&m.Key, f, msg[v:v+w])
			m.Set |= f.Bit()
		} else {
			if n != 2*w {
				return 0, malformed(t, off, "masked match field "+f.String()+" of wrong length", badMatchLen)
			}
			setMasked(m, f, msg[v:v+w], msg[v+w:v+n])
		}
		off = v + n
	}
	return next, nil
}

// samePlace returns the fields that flow.Key has one place for, if f is one of
// them: a packet has those of one protocol, and so has a match (§7.2.3.6).
func samePlace(f flow.Field) flow.FieldSet {
	switch f {
	case flow.FieldTCPSrc, flow.FieldUDPSrc, flow.FieldSCTPSrc:
		return flow.FieldTCPSrc.Bit() | flow.FieldUDPSrc.Bit() | flow.FieldSCTPSrc.Bit()
	case flow.FieldTCPDst, flow.FieldUDPDst, flow.FieldSCTPDst:
		return flow.FieldTCPDst.Bit() | flow.FieldUDPDst.Bit() | flow.FieldSCTPDst.Bit()
	case flow.FieldICMPv4Type, flow.FieldICMPv6Type:
		return flow.FieldICMPv4Type.Bit() | flow.FieldICMPv6Type.Bit()
	case flow.FieldICMPv4Code, flow.FieldICMPv6Code:
		return flow.FieldICMPv4Code.Bit() | flow.FieldICMPv6Code.Bit()
	}
	return 0
}

// matchBounds reads the header of the match at off: where its fields start and
// end, and where what follows its padding starts.
func matchBounds(t Type, msg []byte, off int) (start, end, next int, err error) {
	if len(msg)-off < matchMinLen {
		return 0, 0, 0, malformed(t, off, "match cut short", badMatchLen)
	}
	if be.Uint16(msg[off:]) != matchTypeOXM {
		return 0, 0, 0, malformed(t, off, "match of another type than OXM", badMatchType)
	}
	n := int(be.Uint16(msg[off+2:]))
	if n < 4 {
		return 0, 0, 0, malformed(t, off+2, "match length below that of its header", badMatchLen)
	}
	if pad8(n) > len(msg)-off {
		return 0, 0, 0, malformed(t, off+2, "match longer than the message", badMatchLen)
	}
	return off + 4, off + n, off + pad8(n), nil
}

// setMasked puts a masked field into m in its normal form.
func setMasked(m *flow.Match, f flow.Field, value, mask []byte) {
	var v, k [16]byte
	copy(v[:], value)
	copy(k[:], mask)
	m.PutMasked(f, v, k)
}
