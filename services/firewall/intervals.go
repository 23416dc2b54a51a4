package firewall

import (
	"cmp"
	"encoding/binary"
	"net/netip"
	"slices"
	"sort"

	"weft/flow"
)

// address is an IPv4 address in lo, or an IPv6 address.
type address struct{ hi, lo uint64 }

func (a address) less(b address) bool { return a.hi < b.hi || a.hi == b.hi && a.lo < b.lo }

func (a address) compare(b address) int {
	return cmp.Or(cmp.Compare(a.hi, b.hi), cmp.Compare(a.lo, b.lo))
}

// next returns the address after a; false if a is the last there is.
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

// addressOf returns an address as a number.
func addressOf(a netip.Addr) address {
	if a.Is4() {
		b := a.As4()
		return address{lo: uint64(binary.BigEndian.Uint32(b[:]))}
	}
	b := a.As16()
	return address{binary.BigEndian.Uint64(b[:8]), binary.BigEndian.Uint64(b[8:])}
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

// bucketOf numbers the lengths of prefixes with 0 to 63: a set of them is a
// word. Two of IPv6's may share a number, which costs a look, never an answer.
func bucketOf(width int, length uint8) uint8 {
	if width == 32 {
		return length
	}
	return uint8((int(length) + 1) / 2 * 63 / 64)
}

// intervals tells, of an address, which lengths the prefixes in use have that
// it is in. It is not changed once it is made.
type intervals struct {
	width int       // of an address, in bits
	from  []address // where each interval begins, in order; the first at 0
	sets  []uint64  // its lengths, by bucketOf
	index []uint32  // for IPv4: by the first 16 bits of an address, the interval of the first such
	low   []uint32  // for IPv4: from, as numbers of 32 bits
}

// newIntervals makes the index of prefixes that are sorted by address, and the
// shorter before the longer.
func newIntervals(width int, sorted []prefix) *intervals {
	x := &intervals{width: width}
	type open struct {
		last address
		set  uint64
	}
	var stack []open
	add := func(from address, set uint64) {
		if n := len(x.from); n > 0 && x.from[n-1] == from {
			x.sets[n-1] = set
			return
		} else if n > 0 && x.sets[n-1] == set {
			return
		}
		x.from, x.sets = append(x.from, from), append(x.sets, set)
	}
	below := func() uint64 {
		if len(stack) == 0 {
			return 0
		}
		return stack[len(stack)-1].set
	}
	add(address{}, 0)
	closeUntil := func(limit address, all bool) {
		for len(stack) > 0 {
			top := stack[len(stack)-1]
			if !all && !top.last.less(limit) {
				return
			}
			stack = stack[:len(stack)-1]
			if after, ok := top.last.next(width); ok {
				add(after, below())
			}
		}
	}
	for _, p := range sorted {
		closeUntil(p.from, false)
		set := below() | 1<<bucketOf(width, p.length)
		stack = append(stack, open{p.last(width), set})
		add(p.from, set)
	}
	closeUntil(address{}, true)
	if width == 32 {
		x.direct()
	}
	return x
}

// direct makes the index by the first 16 bits.
func (x *intervals) direct() {
	x.low = make([]uint32, len(x.from))
	for i, a := range x.from {
		x.low[i] = uint32(a.lo)
	}
	x.index = make([]uint32, 1<<16+1)
	at := uint32(0)
	for i := range uint32(1 << 16) {
		for int(at)+1 < len(x.low) && x.low[at+1] <= i<<16 {
			at++
		}
		x.index[i] = at
	}
	x.index[1<<16] = uint32(len(x.low) - 1)
}

// find returns the number of the interval that an address is in.
func (x *intervals) find(a address) int {
	if x.width == 32 {
		v := uint32(a.lo)
		i, j := x.index[v>>16], x.index[v>>16+1]+1
		for j-i > 1 { // low[i] <= v < low[j]
			m := (i + j) >> 1
			if x.low[m] <= v {
				i = m
			} else {
				j = m
			}
		}
		return int(i)
	}
	return sort.Search(len(x.from), func(i int) bool { return a.less(x.from[i]) }) - 1
}

// lengths returns which lengths the prefixes have that a is in, by bucketOf.
func (x *intervals) lengths(a address) uint64 { return x.sets[x.find(a)] }

// significant returns how many of the first bits of a must be kept for all
// addresses that share them to be in the same interval.
func (x *intervals) significant(a address) int {
	i := x.find(a)
	from := x.from[i]
	n, most := 0, x.width
	for ; n < most; n++ {
		m := onesOf(x.width, n)
		p := prefix{address{a.hi & m.hi, a.lo & m.lo}, uint8(n)}
		if p.from.less(from) {
			continue
		}
		if i+1 < len(x.from) && !p.last(x.width).less(x.from[i+1]) {
			continue
		}
		break
	}
	return n
}

// prefixes counts the prefixes that conditions have, for an index of them.
type prefixes struct {
	width  int
	count  map[prefix]int
	sorted []prefix
}

func newPrefixes(width int) *prefixes { return &prefixes{width: width, count: map[prefix]int{}} }

func comparePrefixes(a, b prefix) int {
	return cmp.Or(a.from.compare(b.from), cmp.Compare(a.length, b.length))
}

// change adds and removes prefixes. It returns a new index, nil if the one in
// use stays right.
func (p *prefixes) change(add, remove []prefix) *intervals {
	changed := false
	var fresh []prefix
	for _, x := range add {
		if p.count[x]++; p.count[x] == 1 {
			fresh = append(fresh, x)
			changed = true
		}
	}
	for _, x := range remove {
		if p.count[x]--; p.count[x] == 0 {
			delete(p.count, x)
			changed = true
		}
	}
	if !changed {
		return nil
	}
	slices.SortFunc(fresh, comparePrefixes)
	merged := make([]prefix, 0, len(p.sorted)+len(fresh))
	i := 0
	for _, x := range p.sorted {
		for ; i < len(fresh) && comparePrefixes(fresh[i], x) < 0; i++ {
			merged = append(merged, fresh[i])
		}
		merged = append(merged, x)
	}
	merged = append(merged, fresh[i:]...)
	p.sorted = slices.DeleteFunc(slices.Compact(merged), func(x prefix) bool { return p.count[x] == 0 })
	return newIntervals(p.width, p.sorted)
}

// prefixIn returns the prefix that a condition asks of an address field, and
// whether what it asks is one; a field that it does not ask about is the
// prefix of length 0.
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
