package firewall

import (
	"cmp"
	"encoding/binary"
	"slices"
	"sort"
	"sync/atomic"

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

// intervals tells, of an address, which of the prefixes in use it is in. It is
// not changed once it is made, but for what uses say.
type intervals struct {
	width int       // of an address, in bits
	from  []address // where each interval begins, in order; the first at 0
	in    []int32   // the longest prefix that it is in, a number in nodes; -1 is none
	nodes []node
	index []uint32 // for IPv4: by the first 16 bits of an address, the interval of the first such
	low   []uint32 // for IPv4: from, as numbers of 32 bits
}

// node is a prefix in use. What is asked for with it is set before a condition
// can be found, and may stay when it has gone: it spares looks, and never hides
// anything.
type node struct {
	with   uint64 // changed and read atomically
	parent int32  // the longest prefix that it is within; -1 is none
	bucket uint8
	length uint8
}

// use is what is known of a prefix in use: how many conditions ask for it, and
// which lengths the prefixes of the other address have that they ask for.
type use struct {
	count int
	with  uint64
}

// usedPrefix is a prefix with its use.
type usedPrefix struct {
	prefix
	use *use
}

// newIntervals makes the index of prefixes that are sorted by address, and the
// shorter before the longer.
func newIntervals(width int, sorted []usedPrefix) *intervals {
	x := &intervals{width: width, from: make([]address, 0, 2*len(sorted)+1), in: make([]int32, 0, 2*len(sorted)+1), nodes: make([]node, len(sorted))}
	add := func(from address, in int32) {
		if n := len(x.from); n > 0 && x.from[n-1] == from {
			x.in[n-1] = in
			return
		}
		x.from, x.in = append(x.from, from), append(x.in, in)
	}
	add(address{}, -1)
	top, last := int32(-1), make([]address, len(sorted))
	for i, p := range sorted {
		for top >= 0 && last[top].less(p.from) {
			after, _ := last[top].next(width)
			top = x.nodes[top].parent
			add(after, top)
		}
		n := &x.nodes[i]
		n.parent, n.bucket, n.length = top, bucketOf(width, p.length), p.length
		n.with = p.use.with
		top, last[i] = int32(i), p.last(width)
		add(p.from, top)
	}
	for top >= 0 {
		after, ok := last[top].next(width)
		top = x.nodes[top].parent
		if ok {
			add(after, top)
		}
	}
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

// lengths is the prefixes that an address is in: their lengths, and of each
// those of the other address that are asked for with it.
type lengths struct {
	set  uint64
	with [64]uint64 // only where set says so
}

// lengths finds the prefixes that a is in.
func (x *intervals) lengths(a address, l *lengths) {
	l.set = 0
	for i := x.in[x.find(a)]; i >= 0; {
		n := &x.nodes[i]
		b := n.bucket & 63
		if bit := uint64(1) << b; l.set&bit == 0 {
			l.set |= bit
			l.with[b] = atomic.LoadUint64(&n.with)
		} else {
			l.with[b] |= atomic.LoadUint64(&n.with)
		}
		i = n.parent
	}
}

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
	uses   map[prefix]*use
	sorted []usedPrefix
	stale  int // that nothing asks for any more
	now    *intervals
}

func newPrefixes(width int) *prefixes {
	return &prefixes{width: width, uses: map[prefix]*use{}, now: newIntervals(width, nil)}
}

func comparePrefixes(a, b prefix) int {
	return cmp.Or(a.from.compare(b.from), cmp.Compare(a.length, b.length))
}

// asked is a prefix that a condition asks for, and the length, by bucketOf, of
// that of the other address.
type asked struct {
	prefix
	other uint8
}

// staleMost is how many prefixes that nothing asks for may stay in an index, for
// making it anew takes longer than looking past them, as may a quarter of all.
const staleMost = 256

// change adds and removes prefixes. It returns the index of those that are
// left: the same, if they are.
func (p *prefixes) change(add, remove []asked) *intervals {
	var fresh []usedPrefix
	for _, x := range add {
		u := p.uses[x.prefix]
		if u == nil {
			u = &use{}
			p.uses[x.prefix] = u
			fresh = append(fresh, usedPrefix{x.prefix, u})
		} else if u.count == 0 {
			p.stale--
		}
		u.count++
		u.with |= 1 << x.other
	}
	for _, x := range remove {
		u := p.uses[x.prefix]
		if u.count--; u.count == 0 {
			p.stale++
		}
	}
	if len(fresh) == 0 && p.stale <= staleMost+len(p.sorted)/4 {
		for _, x := range add {
			p.now.allow(x.prefix, p.uses[x.prefix].with)
		}
		return p.now
	}
	slices.SortFunc(fresh, func(a, b usedPrefix) int { return comparePrefixes(a.prefix, b.prefix) })
	merged := make([]usedPrefix, 0, len(p.sorted)+len(fresh))
	rest := p.sorted
	for _, x := range fresh {
		n, _ := slices.BinarySearchFunc(rest, x.prefix, func(u usedPrefix, at prefix) int { return comparePrefixes(u.prefix, at) })
		merged = append(append(merged, rest[:n]...), x)
		rest = rest[n:]
	}
	merged = append(merged, rest...)
	if p.stale > 0 {
		merged = slices.DeleteFunc(merged, func(x usedPrefix) bool {
			if x.use.count == 0 {
				delete(p.uses, x.prefix)
			}
			return x.use.count == 0
		})
		p.stale = 0
	}
	p.sorted, p.now = merged, newIntervals(p.width, merged)
	return p.now
}

// allow has the lengths in with looked for, too, in packets whose address is in
// a prefix that is in use.
func (x *intervals) allow(p prefix, with uint64) {
	for i := x.in[x.find(p.from)]; i >= 0; i = x.nodes[i].parent {
		if x.nodes[i].length == p.length {
			atomic.OrUint64(&x.nodes[i].with, with)
			return
		}
	}
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
