package firewall

import (
	"slices"
	"strings"

	"github.com/weft-sdn/weft/flow"
)

// portRange is a range of transport ports, both ends in it.
type portRange struct{ from, to uint16 }

// everyPort is the range of all ports.
var everyPort = portRange{0, 65535}

func (r portRange) has(p uint16) bool { return p-r.from <= r.to-r.from }

// family is the packets that a condition may concern at all: those of its
// ethertype, if it asks for one.
type family struct {
	ethType uint16
	typed   bool
}

// addressFields returns the address fields of a family, and how wide they are;
// 0 if it has none.
func (f family) addressFields() (width int, src, dst flow.Field) {
	switch {
	case f.typed && f.ethType == flow.EthTypeIPv4:
		return 32, flow.FieldIPv4Src, flow.FieldIPv4Dst
	case f.typed && f.ethType == flow.EthTypeIPv6:
		return 128, flow.FieldIPv6Src, flow.FieldIPv6Dst
	}
	return 0, 0, 0
}

// shape is what conditions of a family have in common: the bits of the fields
// that they ask for, prefixes of addresses aside.
type shape struct {
	shapeKey
	at    []uint8 // the words of mask that are not zero
	few   [3]looked
	odd   bool // they ask for address bits that are not a prefix
	count int  // conditions of this shape; the builder's
	ports int  // those of them that ask for ranges of ports
}

// shapeKey identifies a shape. Its mask leaves out the ethertype, which the
// family has, and prefixes of addresses, which conditions have.
type shapeKey struct {
	family
	mask words
}

// looked is a word and a mask of the bits to look at.
type looked struct {
	mask uint64
	word uint8
}

func newShape(k shapeKey, odd bool) *shape {
	s := &shape{shapeKey: k, odd: odd}
	for i, v := range k.mask {
		if v != 0 {
			s.at = append(s.at, uint8(i))
		}
	}
	for j, i := range s.at[:min(len(s.at), len(s.few))] {
		s.few[j] = looked{s.mask[i], i}
	}
	return s
}

// hash hashes the fields of a packet, or of a condition, that the shape covers.
func (s *shape) hash(w *words) uint64 {
	h := mix(0, w[s.few[0].word]&s.few[0].mask)
	h = mix(h, w[s.few[1].word]&s.few[1].mask)
	h = mix(h, w[s.few[2].word]&s.few[2].mask)
	if len(s.at) > len(s.few) {
		for _, i := range s.at[len(s.few):] {
			h = mix(h, w[i]&s.mask[i])
		}
	}
	return h
}

// cond is one condition of a rule. A rule applies to a packet that meets one of
// its conditions.
type cond struct {
	priority uint16
	deny     bool
	src, dst portRange
	rule     *rule
	shape    *shape
	value    []uint64 // what it asks for, by shape.at
	srcIP    prefix   // where the family has addresses
	dstIP    prefix
	pair     uint64 // the ids of those, when it is in a classifier
	hash     uint64 // of value, as computed by shape.hash
	entry    entry
	crowd    *crowd // if it stands for many, of one pair of prefixes
}

// entry is a condition as lookups see it.
type entry struct {
	src, dst portRange // exact ports, too
	priority uint16
	proto    uint8
	asks     asks
	list     uint32 // of the first under a key, in the table that has it
	cond     *cond
	key      uint64 // in the table
}

// asks is what an entry asks for, ports aside.
type asks uint8

const (
	asksProto asks = 1 << iota // proto
	asksMore                   // what only the condition has
	isCrowd                    // nothing: the condition stands for a crowd
)

// newCond returns the condition of a rule with match m and ranges of ports;
// shaped finds its shape.
func newCond(r *rule, m *flow.Match, src, dst portRange, shaped func(shapeKey, bool) *shape) *cond {
	c := &cond{priority: r.priority, deny: r.deny, rule: r, src: src, dst: dst}
	var k shapeKey
	var value words
	value, k.mask = maskOf(m)
	if m.Set.Has(flow.FieldEthType) {
		k.typed, k.ethType = true, m.Key.EthType
		k.mask[wordLink] &^= bitsEthType
	}
	odd := false
	if width, from, to := k.addressFields(); width > 0 {
		var whole, too bool
		if c.srcIP, whole = prefixIn(m, from, width); whole {
			k.mask.forget(from)
		}
		if c.dstIP, too = prefixIn(m, to, width); too {
			k.mask.forget(to)
		}
		odd = !whole || !too
	}
	c.shape = shaped(k, odd)
	c.value = make([]uint64, len(c.shape.at))
	for j, i := range c.shape.at {
		c.value[j] = value[i] & k.mask[i]
	}
	c.hash = c.shape.hash(&value)
	c.entry = entry{src: src, dst: dst, priority: c.priority, cond: c}
	rest := k.mask
	if k.mask[wordProto]&bitsProto != 0 {
		c.entry.asks, c.entry.proto = asksProto, uint8(value[wordProto]>>8)
		rest[wordProto] &^= bitsProto
	}
	if k.mask[wordPorts]&bitsTPSrc == bitsTPSrc {
		p := uint16(value[wordPorts] >> 48)
		c.entry.src = portRange{p, p}
		rest[wordPorts] &^= bitsTPSrc
	}
	if k.mask[wordPorts]&bitsTPDst == bitsTPDst {
		p := uint16(value[wordPorts] >> 32)
		c.entry.dst = portRange{p, p}
		rest[wordPorts] &^= bitsTPDst
	}
	if rest != (words{}) {
		c.entry.asks |= asksMore
	}
	return c
}

// ranged reports whether a condition asks for ranges of ports.
func (c *cond) ranged() bool { return c.src != everyPort || c.dst != everyPort }

// meets reports whether a packet meets a condition, leaving out the ethertype,
// prefixes of addresses and ranges of ports.
func (c *cond) meets(w *words) bool {
	for j, i := range c.shape.at {
		if w[i]&c.shape.mask[i] != c.value[j] {
			return false
		}
	}
	return true
}

// before reports whether c decides when a packet meets both conditions.
func (c *cond) before(b *cond) bool {
	return c.priority > b.priority || c.priority == b.priority && c.rule.id < b.rule.id
}

func compareConds(a, b *cond) int {
	if a.priority != b.priority {
		return int(b.priority) - int(a.priority)
	}
	return strings.Compare(a.rule.id, b.rule.id)
}

// mayConcern reports whether some packet of a verdict may meet the condition.
func (c *cond) mayConcern(v *verdict) bool {
	if c.shape.typed && (uint64(c.shape.ethType)<<16^v.value[wordLink])&bitsEthType&v.mask[wordLink] != 0 {
		return false
	}
	for j, i := range c.shape.at {
		if (c.value[j]^v.value[i])&c.shape.mask[i]&v.mask[i] != 0 {
			return false
		}
	}
	switch width, _, _ := c.shape.addressFields(); width {
	case 32:
		want := c.srcIP.from.lo<<32 | c.dstIP.from.lo
		mask := onesOf(32, int(c.srcIP.length)).lo<<32 | onesOf(32, int(c.dstIP.length)).lo
		return (want^v.value[wordIPv4])&mask&v.mask[wordIPv4] == 0
	case 128:
		for _, side := range []struct {
			prefix
			word int
		}{{c.srcIP, wordSrc6}, {c.dstIP, wordDst6}} {
			m := onesOf(128, int(side.length))
			if (side.from.hi^v.value[side.word])&m.hi&v.mask[side.word]|(side.from.lo^v.value[side.word+1])&m.lo&v.mask[side.word+1] != 0 {
				return false
			}
		}
	}
	return true
}

// merged returns a list of entries in the order in which they decide, with the
// conditions of add and without those of gone.
func merged(list []entry, add []*cond, gone map[*cond]bool) []entry {
	next := make([]entry, 0, len(list)+len(add))
	slices.SortFunc(add, compareConds)
	for i := range list {
		for len(add) > 0 && compareConds(add[0], list[i].cond) <= 0 {
			if !gone[add[0]] {
				next = append(next, add[0].entry)
			}
			add = add[1:]
		}
		if !gone[list[i].cond] {
			next = append(next, list[i])
		}
	}
	for _, c := range add {
		if !gone[c] {
			next = append(next, c.entry)
		}
	}
	return next
}
