package firewall

// leaf is a few prefixes laid out for lookups, in one piece of memory, because a
// lookup mostly waits for memory. It holds: the number of intervals of addresses
// that the prefixes make; the intervals in order, the first of which begins at 0;
// the prefixes in the order of comparePrefixes, two words each; and for IPv6
// where the intervals begin, also two words each. A leaf never changes.
//
// A word of an interval holds, from its first bits on, where the interval begins
// (32 bits, IPv4 only) and the longest prefix that contains it (16 bits at the
// end); -1 is none.
type leaf []uint64

// makeLeaf returns the leaf of intervals that begin at from and lie in the given
// prefixes.
func makeLeaf(from []address, in []int16, nodes []node, width int) leaf {
	size := 1 + len(from) + 2*len(nodes)
	if width == 128 {
		size += 2 * len(from)
	}
	l := append(make(leaf, 0, size), uint64(len(from)))
	for i, a := range from {
		begins := a.lo << 32
		if width == 128 {
			begins = 0
		}
		l = append(l, begins|uint64(uint16(in[i])))
	}
	for _, x := range nodes {
		l = append(l, x.with, uint64(x.id)<<32|uint64(uint16(x.parent))<<16|uint64(x.bit))
	}
	if width == 128 {
		for _, a := range from {
			l = append(l, a.hi, a.lo)
		}
	}
	return l
}

// intervals returns the number of intervals.
func (l leaf) intervals() int { return int(l[0]) }

// in returns the longest prefix that contains an interval, -1 if there is none.
func (l leaf) in(interval int) int16 { return int16(l[1+interval]) }

// node returns a prefix.
func (l leaf) node(i int16) node {
	at := 1 + int(l[0]) + 2*int(i)
	x := l[at : at+2 : at+2]
	return node{with: x[0], id: uint32(x[1] >> 32), parent: int16(x[1] >> 16), bit: uint8(x[1])}
}

// longest returns the id of the longest prefix that contains an interval; outer
// if there is none.
func (l leaf) longest(interval int, outer uint32) uint32 {
	if len(l) > 0 {
		if i := l.in(interval); i >= 0 {
			return l.node(i).id
		}
	}
	return outer
}

// interval returns the number of the interval that contains an address.
func (l leaf) interval(a address, width int) int {
	if width == 32 {
		return l.interval4(uint32(a.lo))
	}
	return l.interval6(a)
}

func (l leaf) interval4(a uint32) int {
	if len(l) == 0 {
		return 0
	}
	i, last := 0, uint64(a)<<32|0xffffffff
	steps := l[1:]
	for n := int(l[0]); n > 1; {
		half := n >> 1
		if steps[i+half] <= last {
			i += half
		}
		n -= half
	}
	return i
}

func (l leaf) interval6(a address) int {
	if len(l) == 0 {
		return 0
	}
	i, n := 0, int(l[0])
	from := l[len(l)-2*n:]
	for n > 1 {
		half := n >> 1
		if !a.less(address{from[2*(i+half)], from[2*(i+half)+1]}) {
			i += half
		}
		n -= half
	}
	return i
}

// begins returns where an interval begins.
func (l leaf) begins(i, width int) address {
	if width == 32 {
		return address{lo: l[1+i] >> 32}
	}
	at := len(l) - 2*(int(l[0])-i)
	return address{l[at], l[at+1]}
}

// significant returns how many of the first bits of a must be kept for all
// addresses that share them to be in the same interval.
func (l leaf) significant(a address, width int) int {
	i := l.interval(a, width)
	for n := range width {
		m := onesOf(width, n)
		all := prefix{address{a.hi & m.hi, a.lo & m.lo}, uint8(n)}
		if !all.from.less(l.begins(i, width)) && (i+1 == l.intervals() || all.last(width).less(l.begins(i+1, width))) {
			return n
		}
	}
	return width
}
