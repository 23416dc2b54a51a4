package firewall

import (
	"math/bits"
	"slices"

	"weft/flow"
)

// classifier finds the first of many ordered conditions that a packet meets: a
// tuple space search (Srinivasan, Suri, Varghese: "Packet classification using
// tuple space search", SIGCOMM 1999), pruned by the lengths of the prefixes
// that the addresses of the packet are in. It is not changed once it is made;
// a builder makes the next from it.
type classifier struct {
	any    *class // conditions that do not ask for an ethertype
	v4, v6 *protocols
	other  map[uint16]*class // by ethertype
	used   [3]words          // what conditions look at in packets of IPv4, IPv6 and others
	odd    [3]bool           // some look at parts of addresses that are no prefixes
	size   int
}

// protocols are the conditions about IPv4 or IPv6.
type protocols struct {
	src, dst *intervals
	class    [anyProto + 1]*class
	narrow   int // classes of one protocol
}

// anyProto is the place of the class that does not ask for a protocol.
const anyProto = 256

// class is the tuples of one family.
type class struct {
	best  uint16
	grid  *grid // nil where there are no prefixes: all tuples are in the first cell
	cells []cell
}

// grid leads from the lengths of two prefixes to the cell of that pair.
type grid struct {
	rows [64]uint64 // for each length of the source, those of the destination
	at   [64 * 64]uint16
}

// cell is the tuples of one pair of prefix lengths, that of highest priority
// first.
type cell struct{ tuples []ranked }

// ranked is a tuple with its highest priority.
type ranked struct {
	best uint16
	*tuple
}

// kindOf numbers the kinds of packets that used is about.
func kindOf(ethType uint16) int {
	switch ethType {
	case flow.EthTypeIPv4:
		return 0
	case flow.EthTypeIPv6:
		return 1
	}
	return 2
}

// search is one lookup.
type search struct {
	w        *words
	best     *cond
	trace    *words // gathers the bits that the answer depends on, if not nil
	src, dst lengths
}

// lookup returns the condition that decides, nil if the packet meets none. If
// trace is not nil, the bits that the answer depends on are added to it: every
// packet that agrees with this one in those gets the same answer. best is what
// has been found elsewhere.
func (c *classifier) lookup(w *words, best *cond, trace *words) *cond {
	if c == nil || c.size == 0 {
		return best
	}
	var s search
	s.w, s.best, s.trace = w, best, trace
	ethType := uint16(w[wordLink] >> 16)
	if trace != nil && (c.v4 != nil || c.v6 != nil || len(c.other) > 0) {
		trace[wordLink] |= bitsEthType
	}
	switch {
	case ethType == flow.EthTypeIPv4 && c.v4 != nil:
		src, dst := address{lo: w[wordIPv4] >> 32}, address{lo: w[wordIPv4] & 0xffffffff}
		s.addresses(c.v4, src, dst)
		if trace != nil {
			trace[wordIPv4] |= onesOf(32, c.v4.src.significant(src)).lo<<32 | onesOf(32, c.v4.dst.significant(dst)).lo
		}
		s.protocols(c.v4)
	case ethType == flow.EthTypeIPv6 && c.v6 != nil:
		src, dst := address{w[wordSrc6], w[wordSrc6+1]}, address{w[wordDst6], w[wordDst6+1]}
		s.addresses(c.v6, src, dst)
		if trace != nil {
			a, b := onesOf(128, c.v6.src.significant(src)), onesOf(128, c.v6.dst.significant(dst))
			trace[wordSrc6] |= a.hi
			trace[wordSrc6+1] |= a.lo
			trace[wordDst6] |= b.hi
			trace[wordDst6+1] |= b.lo
		}
		s.protocols(c.v6)
	case len(c.other) > 0:
		s.class(c.other[ethType])
	}
	s.class(c.any)
	return s.best
}

// addresses finds the lengths of the prefixes that addresses are in.
func (s *search) addresses(p *protocols, src, dst address) {
	p.src.lengths(src, &s.src)
	p.dst.lengths(dst, &s.dst)
}

func (s *search) protocols(p *protocols) {
	if p.narrow > 0 {
		if s.trace != nil {
			s.trace[wordProto] |= bitsProto
		}
		s.class(p.class[uint8(s.w[wordProto]>>8)])
	}
	s.class(p.class[anyProto])
}

// class looks through the cells that can have something, the longest prefixes
// first: they mostly have the highest priorities.
func (s *search) class(c *class) {
	if c == nil || s.best != nil && c.best < s.best.priority {
		return
	}
	if c.grid == nil {
		s.cell(&c.cells[0])
		return
	}
	for rest := s.src.set; rest != 0; {
		i := (63 - bits.LeadingZeros64(rest)) & 63
		rest &^= 1 << i
		for row := c.grid.rows[i] & s.src.with[i] & s.dst.set; row != 0; {
			j := (63 - bits.LeadingZeros64(row)) & 63
			row &^= 1 << j
			if s.dst.with[j]>>i&1 != 0 {
				s.cell(&c.cells[c.grid.at[i<<6|j]])
			}
		}
	}
}

func (s *search) cell(c *cell) {
	for _, t := range c.tuples {
		if s.best != nil && t.best < s.best.priority {
			return
		}
		if s.trace != nil {
			for _, i := range t.at {
				s.trace[i] |= t.mask[i]
			}
		}
		for _, x := range t.find(s.w) {
			if s.best != nil && !x.before(s.best) {
				break
			}
			if x.ranged {
				if s.trace != nil {
					if x.src != everyPort {
						s.trace[wordPorts] |= bitsTPSrc
					}
					if x.dst != everyPort {
						s.trace[wordPorts] |= bitsTPDst
					}
				}
				ports := s.w[wordPorts]
				if !x.src.has(uint16(ports>>48)) || !x.dst.has(uint16(ports>>32)) {
					continue
				}
			}
			s.best = x
			break
		}
	}
}

// builder makes classifiers, each from the one before: what does not change is
// shared.
type builder struct {
	shapes   map[shapeKey]*shape
	tuples   map[*shape]*tuple
	prefixes [2][2]*prefixes // of IPv4 and IPv6: of sources and destinations
	now      *classifier
}

func newBuilder() *builder {
	return &builder{
		shapes: map[shapeKey]*shape{}, tuples: map[*shape]*tuple{},
		prefixes: [2][2]*prefixes{{newPrefixes(32), newPrefixes(32)}, {newPrefixes(128), newPrefixes(128)}},
		now:      &classifier{},
	}
}

// cond returns the condition of a rule that m and ranges of ports describe.
func (b *builder) cond(r *rule, m *flow.Match, src, dst portRange) *cond {
	k, value, srcIP, dstIP, odd := shapeOf(m)
	s := b.shapes[k]
	if s == nil {
		s = &shape{family: k.family, mask: k.mask, src: k.src, dst: k.dst, odd: odd}
		for i, v := range k.mask {
			if v != 0 {
				s.at = append(s.at, uint8(i))
			}
		}
		b.shapes[k] = s
	}
	c := &cond{priority: r.priority, deny: r.deny, rule: r, shape: s, src: src, dst: dst,
		ranged: src != everyPort || dst != everyPort, srcIP: srcIP, dstIP: dstIP}
	c.key = make([]uint64, len(s.at))
	for j, i := range s.at {
		c.key[j] = value[i] & s.mask[i]
	}
	return c
}

// change returns the classifier with conditions added and removed.
func (b *builder) change(add, remove []*cond) *classifier {
	type change struct{ add, remove []*cond }
	changes := map[*shape]*change{}
	of := func(s *shape) *change {
		c := changes[s]
		if c == nil {
			c = &change{}
			changes[s] = c
		}
		return c
	}
	for _, c := range add {
		x := of(c.shape)
		x.add = append(x.add, c)
	}
	for _, c := range remove {
		x := of(c.shape)
		x.remove = append(x.remove, c)
	}
	next := *b.now
	next.size += len(add) - len(remove)
	touched := map[family]bool{}
	for s, x := range changes {
		old := b.tuples[s]
		if old == nil {
			old = newTuple(s)
		}
		t := old.changed(x.add, x.remove)
		if b.tuples[s] = t; t == nil {
			delete(b.tuples, s)
			delete(b.shapes, shapeKey{s.family, s.mask, s.src, s.dst})
		}
		touched[s.family] = true
	}
	b.index(&next, add, remove)
	for f := range touched {
		b.family(&next, f)
	}
	next.used, next.odd = b.used()
	b.now = &next
	return b.now
}

// index renews the indices of prefixes where they have changed.
func (b *builder) index(next *classifier, add, remove []*cond) {
	for n, at := range []struct {
		ethType uint16
		to      **protocols
	}{{flow.EthTypeIPv4, &next.v4}, {flow.EthTypeIPv6, &next.v6}} {
		var src, dst [2][]asked
		for i, list := range [][]*cond{add, remove} {
			for _, c := range list {
				if c.shape.typed && c.shape.ethType == at.ethType {
					src[i], dst[i] = append(src[i], asked{c.srcIP, c.shape.dst}), append(dst[i], asked{c.dstIP, c.shape.src})
				}
			}
		}
		if len(src[0])+len(src[1]) == 0 {
			continue
		}
		p := &protocols{}
		if *at.to != nil {
			*p = **at.to
		}
		p.src, p.dst = b.prefixes[n][0].change(src[0], src[1]), b.prefixes[n][1].change(dst[0], dst[1])
		*at.to = p // a copy of this classifier's own
	}
}

// family puts the tuples of a family together again.
func (b *builder) family(next *classifier, f family) {
	c := b.class(f)
	width, _, _ := addressFields(f)
	switch {
	case !f.typed:
		next.any = c
	case width == 0:
		other := make(map[uint16]*class, len(next.other)+1)
		for t, x := range next.other {
			other[t] = x
		}
		if other[f.ethType] = c; c == nil {
			delete(other, f.ethType)
		}
		next.other = other
	default:
		p := next.v4
		if width == 128 {
			p = next.v6
		}
		at := anyProto
		if f.protocol {
			at = int(f.proto)
		}
		if at != anyProto && (p.class[at] == nil) != (c == nil) {
			if c == nil {
				p.narrow--
			} else {
				p.narrow++
			}
		}
		p.class[at] = c
	}
}

// class returns the class of a family, nil if it has no conditions.
func (b *builder) class(f family) *class {
	c := &class{}
	if width, _, _ := addressFields(f); width > 0 {
		c.grid, c.cells = &grid{}, make([]cell, 1) // the first stays empty
	}
	for _, t := range b.tuples {
		if t.family != f {
			continue
		}
		at := 0
		if c.grid != nil {
			place := &c.grid.at[int(t.src)<<6|int(t.dst)]
			if *place == 0 {
				c.cells = append(c.cells, cell{})
				*place = uint16(len(c.cells) - 1)
				c.grid.rows[t.src] |= 1 << t.dst
			}
			at = int(*place)
		} else if len(c.cells) == 0 {
			c.cells = make([]cell, 1)
		}
		c.cells[at].tuples = append(c.cells[at].tuples, ranked{t.best, t})
		c.best = max(c.best, t.best)
	}
	any := false
	for i := range c.cells {
		list := c.cells[i].tuples
		any = any || len(list) > 0
		slices.SortFunc(list, func(a, b ranked) int { return int(b.best) - int(a.best) })
	}
	if !any {
		return nil
	}
	return c
}

// used returns what the conditions look at in packets of each kind.
func (b *builder) used() (used [3]words, odd [3]bool) {
	for _, t := range b.tuples {
		first, last := 0, 2
		if t.typed {
			first = kindOf(t.ethType)
			last = first
		}
		for kind := first; kind <= last; kind++ {
			for _, i := range t.at {
				used[kind][i] |= t.mask[i]
			}
			used[kind][wordLink] |= bitsEthType
			odd[kind] = odd[kind] || t.odd
			if t.ranged {
				used[kind][wordPorts] |= bitsTPSrc | bitsTPDst
			}
			if t.protocol {
				used[kind][wordProto] |= bitsProto
			}
		}
	}
	return used, odd
}
