package firewall

import "github.com/weft-sdn/weft/flow"

// classifier finds the first of many ordered conditions that a packet meets. It
// finds conditions on IPv4 or IPv6 by pairs of address prefixes: it looks only at
// pairs that contain the packet's addresses and that some condition may ask for,
// mostly two to four among 50,000 rules. All other conditions, and those of a
// pair with many, are crowds. A classifier never changes; a builder makes the
// next from it.
type classifier struct {
	any    *crowd // conditions that do not ask for an ethertype
	v4, v6 *pairs
	other  map[uint16]*crowd // by ethertype
	used   [3]words          // what conditions look at in packets of IPv4, IPv6 and others
	odd    [3]bool           // some look at address bits that are not a prefix
	size   int
}

// pairs holds the conditions on IPv4 or IPv6, by their source and destination
// prefixes.
type pairs struct {
	width    int
	src, dst *part
	table    *table // by the ids of two prefixes
}

// pairOf is the key of two prefixes.
func pairOf(src, dst uint32) uint64 { return uint64(src)<<32 | uint64(dst) }

// kindOf numbers the kinds of packets that used distinguishes.
func kindOf(ethType uint16) int {
	switch ethType {
	case flow.EthTypeIPv4:
		return 0
	case flow.EthTypeIPv6:
		return 1
	}
	return 2
}

// search is one lookup. It is large, so the next lookup reuses it.
type search struct {
	w        *words
	best     *cond
	priority int32 // best's; -1 if there is none
	proto    uint8
	from, to uint16 // ports
	trace    *words // gathers the bits that the answer depends on, if not nil
	src, dst chain
	keys     [batch]uint64 // of pairs to be looked at
	touched  uint64        // read only to load it into the cache; has no meaning
}

// begin prepares lookups of a packet.
func (s *search) begin(w *words, trace *words) {
	ports := w[wordPorts]
	s.w, s.trace, s.best, s.priority = w, trace, nil, -1
	s.proto, s.from, s.to = uint8(w[wordProto]>>8), uint16(ports>>48), uint16(ports>>32)
}

// lookup looks for a condition that decides before the best so far. If trace is
// not nil, lookup adds the bits that the answer depends on: every packet that
// agrees with this one in those bits gets the same answer.
func (c *classifier) lookup(s *search) {
	if c == nil || c.size == 0 {
		return
	}
	w := s.w
	ethType := uint16(w[wordLink] >> 16)
	if s.trace != nil && (c.v4 != nil || c.v6 != nil || len(c.other) > 0) {
		s.trace[wordLink] |= bitsEthType
	}
	switch {
	case ethType == flow.EthTypeIPv4 && c.v4 != nil:
		src, dst := uint32(w[wordIPv4]>>32), uint32(w[wordIPv4])
		a, b := c.v4.src.leaf4(src, &s.src), c.v4.dst.leaf4(dst, &s.dst)
		i, j := a.interval4(src), b.interval4(dst)
		s.src.of(a, i)
		s.dst.of(b, j)
		if s.trace != nil {
			src, dst := c.v4.significant(w)
			s.trace[wordIPv4] |= onesOf(32, src).lo<<32 | onesOf(32, dst).lo
		}
		s.pairs(c.v4.table)
	case ethType == flow.EthTypeIPv6 && c.v6 != nil:
		c.v6.src.find6(address{w[wordSrc6], w[wordSrc6+1]}, &s.src)
		c.v6.dst.find6(address{w[wordDst6], w[wordDst6+1]}, &s.dst)
		if s.trace != nil {
			src, dst := c.v6.significant(w)
			a, b := onesOf(128, src), onesOf(128, dst)
			s.trace[wordSrc6] |= a.hi
			s.trace[wordSrc6+1] |= a.lo
			s.trace[wordDst6] |= b.hi
			s.trace[wordDst6+1] |= b.lo
		}
		s.pairs(c.v6.table)
	case len(c.other) > 0:
		s.crowd(c.other[ethType])
	}
	s.crowd(c.any)
}

// addresses returns the addresses of a packet.
func (p *pairs) addresses(w *words) (src, dst address) {
	if p.width == 32 {
		return address{lo: w[wordIPv4] >> 32}, address{lo: w[wordIPv4] & 0xffffffff}
	}
	return address{w[wordSrc6], w[wordSrc6+1]}, address{w[wordDst6], w[wordDst6+1]}
}

// significant returns how many of the first bits of a packet's addresses
// determine their prefixes.
func (p *pairs) significant(w *words) (src, dst int) {
	a, b := p.addresses(w)
	return p.src.significant(a, p.width), p.dst.significant(b, p.width)
}

// span identifies the prefixes that contain the addresses of a packet: packets of
// many hosts share it.
func (p *pairs) span(w *words) uint64 {
	if p.width == 32 {
		return pairOf(p.src.longest4(uint32(w[wordIPv4]>>32)), p.dst.longest4(uint32(w[wordIPv4])))
	}
	a, b := p.addresses(w)
	return pairOf(p.src.longest6(a), p.dst.longest6(b))
}

// batch is how many pairs are probed at once.
const batch = 16

// pairs looks at the pairs of prefixes that occur together, the longest first.
// Its steps do not wait for each other's memory.
func (s *search) pairs(t *table) {
	n := 0
	for i := s.src.n - 1; i >= 0; i-- {
		a := &s.src.at[i]
		if a.with&s.dst.bits == 0 {
			continue
		}
		for j := s.dst.n - 1; j >= 0; j-- {
			b := &s.dst.at[j]
			s.keys[n&(batch-1)] = pairOf(a.id, b.id)
			n += int((a.with >> (b.bit & 63)) & (b.with >> (a.bit & 63)) & 1)
			if n == batch {
				s.probe(t, n)
				n = 0
			}
		}
	}
	s.probe(t, n)
}

// probe looks up the first n of keys in a table.
func (s *search) probe(t *table, n int) {
	for _, key := range s.keys[:n] {
		s.touched += t.home(key).key
	}
	for _, key := range s.keys[:n] {
		if list := t.find(key, s.priority); list != nil {
			s.run(list)
		}
	}
}

// crowd looks at a crowd's tuples.
func (s *search) crowd(c *crowd) {
	if c == nil || int32(c.best) < s.priority {
		return
	}
	for _, t := range c.tuples {
		if int32(t.best) < s.priority {
			return
		}
		if s.trace != nil {
			s.trace.add(&t.shape.mask)
		}
		if list := t.table.find(t.shape.hash(s.w), s.priority); list != nil {
			s.run(list)
		}
	}
}

// run looks for the first condition of a list that the packet meets.
func (s *search) run(list []entry) {
	for i := range list {
		e := &list[i]
		if int32(e.priority) < s.priority {
			return
		}
		if e.asks&isCrowd != 0 {
			s.crowd(e.cond.crowd)
			return
		}
		if int32(e.priority) == s.priority && !e.cond.before(s.best) {
			return
		}
		if s.trace != nil {
			s.trace.add(&e.cond.shape.mask)
			if e.cond.src != everyPort {
				s.trace[wordPorts] |= bitsTPSrc
			}
			if e.cond.dst != everyPort {
				s.trace[wordPorts] |= bitsTPDst
			}
		}
		if e.src.has(s.from) && e.dst.has(s.to) && (e.asks == 0 || e.meets(s)) {
			s.best, s.priority = e.cond, int32(e.priority)
			return
		}
	}
}

// meets reports whether a packet meets an entry, ports aside.
func (e *entry) meets(s *search) bool {
	return (e.asks&asksProto == 0 || e.proto == s.proto) && (e.asks&asksMore == 0 || e.cond.meets(s.w))
}

// each calls f for all conditions.
func (c *classifier) each(f func(*cond)) {
	if c == nil {
		return
	}
	c.any.each(f)
	for _, x := range c.other {
		x.each(f)
	}
	for _, p := range []*pairs{c.v4, c.v6} {
		if p == nil {
			continue
		}
		p.table.each(func(e *entry) {
			if e.asks&isCrowd != 0 {
				e.cond.crowd.each(f)
			} else {
				f(e.cond)
			}
		})
	}
}
