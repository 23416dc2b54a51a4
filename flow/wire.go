package flow

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"
)

// The first octet of an encoded value: the version of the encoding in the high
// four bits, the kind of value in the low ones.
const (
	wireVersion  = 1 << 4
	wireDecision = wireVersion | 1
	wirePacketIn = wireVersion | 2
	wireEntry    = wireVersion | 3
)

var (
	errShort    = errors.New("cut off")
	errTrailing = errors.New("octets after the end")
)

// reader reads values from the front of an encoding. The first missing one sets
// err, and from then on all are zero.
type reader struct {
	b   []byte
	err error
}

func (r *reader) fail(err error) {
	if r.err == nil {
		r.err = err
	}
	r.b = nil
}

func (r *reader) take(n int) []byte {
	if n > len(r.b) {
		r.fail(errShort)
		return nil
	}
	v := r.b[:n]
	r.b = r.b[n:]
	return v
}

func (r *reader) uint8() uint8 {
	if len(r.b) < 1 {
		r.fail(errShort)
		return 0
	}
	v := r.b[0]
	r.b = r.b[1:]
	return v
}

func (r *reader) uint16() uint16 {
	if len(r.b) < 2 {
		r.fail(errShort)
		return 0
	}
	v := binary.LittleEndian.Uint16(r.b)
	r.b = r.b[2:]
	return v
}

func (r *reader) uint32() uint32 {
	if len(r.b) < 4 {
		r.fail(errShort)
		return 0
	}
	v := binary.LittleEndian.Uint32(r.b)
	r.b = r.b[4:]
	return v
}

func (r *reader) uint64() uint64 {
	if len(r.b) < 8 {
		r.fail(errShort)
		return 0
	}
	v := binary.LittleEndian.Uint64(r.b)
	r.b = r.b[8:]
	return v
}

func (r *reader) uvarint() uint64 {
	if len(r.b) > 0 && r.b[0] < 0x80 {
		v := r.b[0]
		r.b = r.b[1:]
		return uint64(v)
	}
	v, n := binary.Uvarint(r.b)
	if n <= 0 {
		r.fail(errShort)
		return 0
	}
	r.b = r.b[n:]
	return v
}

// uvarint32 is uvarint of a value that fits 32 bits.
func (r *reader) uvarint32() uint32 {
	v := r.uvarint()
	if v > 0xffffffff {
		r.fail(errors.New("number beyond 32 bits"))
	}
	return uint32(v)
}

// bytes reads a length and that many octets.
func (r *reader) bytes() []byte {
	n := r.uvarint()
	if n > uint64(len(r.b)) {
		r.fail(errShort)
		return nil
	}
	return r.take(int(n))
}

// mac reads an address.
func (r *reader) mac() MAC {
	if len(r.b) < 6 {
		r.fail(errShort)
		return MAC{}
	}
	m := MAC(r.b[:6])
	r.b = r.b[6:]
	return m
}

// begin reads the first octet.
func (r *reader) begin(want uint8) {
	switch got := r.uint8(); {
	case r.err != nil || got == want:
	case got>>4 != want>>4:
		r.fail(fmt.Errorf("version %d of the encoding, want %d", got>>4, want>>4))
	default:
		r.fail(fmt.Errorf("value of kind %d, want %d", got&15, want&15))
	}
}

// end returns the read error, for a value of kind what.
func (r *reader) end(what string) error {
	if r.err == nil && len(r.b) > 0 {
		r.err = errTrailing
	}
	if r.err != nil {
		return fmt.Errorf("flow: decode %s: %w", what, r.err)
	}
	return nil
}

// appendNumber appends the last n octets of v in network order.
func appendNumber(b []byte, n int, hi, lo uint64) []byte {
	if n == 16 {
		b = binary.BigEndian.AppendUint64(b, hi)
		n = 8
	}
	b = binary.BigEndian.AppendUint64(b, lo<<(64-8*n))
	return b[:len(b)-8+n]
}

func (r *reader) number(n int) (hi, lo uint64) {
	if n == 16 {
		if len(r.b) < 16 {
			r.fail(errShort)
			return 0, 0
		}
		hi, lo = getUint64(r.b), getUint64(r.b[8:])
		r.b = r.b[16:]
		return hi, lo
	}
	for _, c := range r.take(n) {
		lo = lo<<8 | uint64(c)
	}
	return 0, lo
}

// appendMatch appends the set fields of a match and their masks.
func appendMatch(b []byte, m *Match) ([]byte, error) {
	if m.Set>>NumFields != 0 {
		return b, fmt.Errorf("match: there is no field number %d", bits.Len64(uint64(m.Set))-1)
	}
	b = binary.AppendUvarint(b, uint64(m.Set))
	b = binary.AppendUvarint(b, uint64(m.Masked&m.Set))
	for s := m.Set; s != 0; s &= s - 1 {
		f := Field(bits.TrailingZeros64(uint64(s)))
		if m.Masked.Has(f) {
			hi, lo := m.Key.load(f)
			b = appendNumber(b, f.Len(), hi, lo)
			hi, lo = m.Mask.load(f)
			b = appendNumber(b, f.Len(), hi, lo)
			continue
		}
		switch f { // those of nearly every entry, directly
		case FieldInPort:
			b = binary.BigEndian.AppendUint32(b, uint32(m.Key.InPort))
		case FieldEthDst:
			b = append(b, m.Key.EthDst[:]...)
		case FieldEthSrc:
			b = append(b, m.Key.EthSrc[:]...)
		case FieldEthType:
			b = binary.BigEndian.AppendUint16(b, m.Key.EthType)
		case FieldVLAN:
			b = binary.BigEndian.AppendUint16(b, m.Key.VLAN)
		case FieldIPv4Src:
			b = append(b, m.Key.IPv4Src[:]...)
		case FieldIPv4Dst:
			b = append(b, m.Key.IPv4Dst[:]...)
		default:
			hi, lo := m.Key.load(f)
			b = appendNumber(b, f.Len(), hi, lo)
		}
	}
	return b, nil
}

// match reads a match into m, which is empty, and makes it normal.
func (r *reader) match(m *Match) {
	set, masked := FieldSet(r.uvarint()), FieldSet(r.uvarint())
	if set>>NumFields != 0 || masked&^set != 0 {
		r.fail(fmt.Errorf("match of fields %#x, masked %#x: no such fields", uint64(set), uint64(masked)))
	}
	for s := set; s != 0 && r.err == nil; s &= s - 1 {
		f := Field(bits.TrailingZeros64(uint64(s)))
		if masked.Has(f) {
			vh, vl := r.number(f.Len())
			mh, ml := r.number(f.Len())
			m.put(f, vh, vl, mh, ml)
			continue
		}
		m.Set |= f.Bit()
		switch f { // as in appendMatch
		case FieldInPort:
			if v := r.take(4); v != nil {
				m.Key.InPort = Port(binary.BigEndian.Uint32(v))
			}
		case FieldEthDst:
			m.Key.EthDst = r.mac()
		case FieldEthSrc:
			m.Key.EthSrc = r.mac()
		case FieldIPv4Src:
			copy(m.Key.IPv4Src[:], r.take(4))
		case FieldIPv4Dst:
			copy(m.Key.IPv4Dst[:], r.take(4))
		default:
			vh, vl := r.number(f.Len())
			m.Key.store(f, vh, vl)
		}
	}
}

// appendActions appends a list of actions.
func appendActions(b []byte, list []Action) ([]byte, error) {
	b = binary.AppendUvarint(b, uint64(len(list)))
	for i := range list {
		a := &list[i]
		b = binary.AppendUvarint(b, uint64(a.Kind))
		switch a.Kind {
		case ActionOutput:
			b = binary.AppendUvarint(b, uint64(a.Arg))
			b = binary.AppendUvarint(b, uint64(a.MaxLen))
		case ActionSetField:
			if a.Field >= NumFields {
				return b, fmt.Errorf("set-field: there is no field number %d", uint8(a.Field))
			}
			b = append(b, uint8(a.Field))
			b = append(b, a.Value[:a.Field.Len()]...)
		case ActionExperimenter:
			b = binary.AppendUvarint(b, uint64(a.Arg))
			b = binary.AppendUvarint(b, uint64(len(a.Data)))
			b = append(b, a.Data...)
		default:
			b = binary.AppendUvarint(b, uint64(a.Arg))
		}
	}
	return b, nil
}

// actions reads a list of actions and appends it to list.
func (r *reader) actions(list []Action) []Action {
	for n := r.uvarint(); n > 0 && r.err == nil; n-- {
		if len(list) < cap(list) {
			list = list[:len(list)+1]
		} else {
			list = append(list, Action{})
		}
		a := &list[len(list)-1]
		a.Field, a.MaxLen, a.Arg, a.Value, a.Data = 0, 0, 0, [16]byte{}, ""
		kind := r.uvarint()
		if kind > 0xffff {
			r.fail(fmt.Errorf("action of kind %d: want at most 65535", kind))
		}
		switch a.Kind = ActionKind(kind); a.Kind {
		case ActionOutput:
			a.Arg = r.uvarint32()
			n := r.uvarint()
			if n > 0xffff {
				r.fail(fmt.Errorf("output of at most %d octets: want at most 65535", n))
			}
			a.MaxLen = uint16(n)
		case ActionSetField:
			if a.Field = Field(r.uint8()); a.Field >= NumFields {
				r.fail(fmt.Errorf("set-field: there is no field number %d", uint8(a.Field)))
				return list
			}
			copy(a.Value[:], r.take(a.Field.Len()))
		case ActionExperimenter:
			a.Arg = r.uvarint32()
			a.Data = string(r.bytes())
		default:
			a.Arg = r.uvarint32()
		}
	}
	return list
}
