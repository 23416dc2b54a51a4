package firewall

import (
	"cmp"
	"encoding/binary"

	"github.com/weft-sdn/weft/flow"
)

// address is an IPv4 address in lo, or an IPv6 address.
type address struct{ hi, lo uint64 }

func (a address) less(b address) bool { return a.hi < b.hi || a.hi == b.hi && a.lo < b.lo }

func (a address) compare(b address) int {
	return cmp.Or(cmp.Compare(a.hi, b.hi), cmp.Compare(a.lo, b.lo))
}

// octet returns octet n of an address of the given width in bits.
func (a address) octet(width, n int) uint8 {
	switch {
	case width == 32:
		return uint8(a.lo >> (24 - 8*n))
	case n < 8:
		return uint8(a.hi >> (56 - 8*n))
	}
	return uint8(a.lo >> (120 - 8*n))
}

// next returns the address after a; false if a is the last one.
func (a address) next(width int) (address, bool) {
	a.lo++
	if width == 32 {
		return a, a.lo < 1<<32
	}
	if a.lo == 0 {
		a.hi++
	}
	return a, a.hi|a.lo != 0
}

// prefix is the first length bits of an address.
type prefix struct {
	from   address
	length uint8
}

// onesOf returns the mask of the first n of width bits.
func onesOf(width, n int) address {
	if width == 32 {
		return address{lo: uint64(uint32(0xffffffff << (32 - n)))}
	}
	return address{^uint64(0) << (64 - min(n, 64)), ^uint64(0) << (128 - max(n, 64))}
}

// last returns the last address of a prefix.
func (p prefix) last(width int) address {
	m := onesOf(width, int(p.length))
	if width == 32 {
		return address{lo: p.from.lo | ^m.lo&0xffffffff}
	}
	return address{p.from.hi | ^m.hi, p.from.lo | ^m.lo}
}

func comparePrefixes(a, b prefix) int {
	return cmp.Or(a.from.compare(b.from), cmp.Compare(a.length, b.length))
}

// prefixIn returns the prefix that a condition asks for in an address field, and
// whether the condition asks for a prefix at all. A field without a condition is
// the prefix of length 0.
func prefixIn(m *flow.Match, f flow.Field, width int) (prefix, bool) {
	value, mask, ok := m.Get(f)
	if !ok {
		return prefix{}, true
	}
	read := func(b [16]byte) address {
		if width == 32 {
			return address{lo: uint64(binary.BigEndian.Uint32(b[:4]))}
		}
		return address{binary.BigEndian.Uint64(b[:8]), binary.BigEndian.Uint64(b[8:])}
	}
	want := read(mask)
	for n := range width + 1 {
		if onesOf(width, n) == want {
			return prefix{read(value), uint8(n)}, true
		}
	}
	return prefix{}, false
}
