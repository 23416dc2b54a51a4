package firewall

import (
	"slices"
	"strings"

	"weft/flow"
)

// portRange is a range of transport ports, both ends in it.
type portRange struct{ from, to uint16 }

// everyPort is the range that asks for nothing.
var everyPort = portRange{0, 65535}

func (r portRange) has(p uint16) bool { return p-r.from <= r.to-r.from }

// family is the packets that a condition may be about at all: those of an
// ethertype, and of an IP protocol, where it asks for one.
type family struct {
	ethType  uint16
	typed    bool
	proto    uint8
	protocol bool
}

// shape is what the conditions of a tuple have in common: which bits of which
// fields they ask for.
type shape struct {
	family
	mask     words   // without the ethertype and the protocol, which the family has
	at       []uint8 // the words of mask that are not zero
	src, dst uint8   // lengths of the address prefixes, by bucketOf; 0 also for masks that are none
	odd      bool    // it has such masks
}

// shapeKey is what makes shapes equal.
type shapeKey struct {
	family
	mask     words
	src, dst uint8
}

// cond is one condition of a rule: a packet that meets one of a rule's is what
// the rule is about.
type cond struct {
	priority uint16
	deny     bool
	ranged   bool // src or dst ask for something
	src, dst portRange
	rule     *rule
	shape    *shape
	key      []uint64 // the values that it asks for, by shape.at
	srcIP    prefix   // counted in the index of prefixes, where the family has one
	dstIP    prefix
}

// before reports whether a decides where both conditions are met.
func (a *cond) before(b *cond) bool {
	return a.priority > b.priority || a.priority == b.priority && a.rule.id < b.rule.id
}

func compareConds(a, b *cond) int {
	if a.priority != b.priority {
		return int(b.priority) - int(a.priority)
	}
	return strings.Compare(a.rule.id, b.rule.id)
}

// shapeOf returns the shape of a condition, without its list of words, and the
// values that it asks for.
func shapeOf(m *flow.Match) (k shapeKey, value words, src, dst prefix, odd bool) {
	value, k.mask = maskOf(m)
	if m.Set.Has(flow.FieldEthType) {
		k.typed, k.ethType = true, m.Key.EthType
		k.mask[wordLink] &^= bitsEthType
	}
	if m.Set.Has(flow.FieldIPProto) {
		k.protocol, k.proto = true, m.Key.IPProto
		k.mask[wordProto] &^= bitsProto
	}
	if width, from, to := addressFields(k.family); width > 0 {
		var ok, both bool
		if src, ok = prefixIn(m, from, width); ok {
			k.src = bucketOf(width, src.length)
		}
		if dst, both = prefixIn(m, to, width); both {
			k.dst = bucketOf(width, dst.length)
		}
		odd = !ok || !both
	}
	return k, value, src, dst, odd
}

// addressFields returns the address fields of a family, and how wide they are;
// 0 if it has none.
func addressFields(f family) (width int, src, dst flow.Field) {
	switch {
	case f.typed && f.ethType == flow.EthTypeIPv4:
		return 32, flow.FieldIPv4Src, flow.FieldIPv4Dst
	case f.typed && f.ethType == flow.EthTypeIPv6:
		return 128, flow.FieldIPv6Src, flow.FieldIPv6Dst
	}
	return 0, 0, 0
}

// tuple is the conditions of one shape, found by hashing what they ask for. It
// is not changed once it is in a classifier.
type tuple struct {
	*shape
	few    [3]looked // for hashing: the first words of at, all if there are no more
	best   uint16    // the highest priority
	size   int       // conditions
	slots  []slot    // open addressing; a power of two, at most half of them taken
	keys   []uint64
	chains [][]*cond // for each key its conditions, the one that decides first
	empty  int       // chains without any
	ranged bool      // some ask for ranges of ports
}

// slot leads to a key.
type slot struct {
	hash uint32
	at   uint32 // number of the key and 1; 0 is free
}

// looked is a word and the bits of it that are looked at.
type looked struct {
	mask uint64
	word uint8
}

func newTuple(s *shape) *tuple {
	t := &tuple{shape: s, slots: make([]slot, 4)}
	for j, i := range s.at[:min(len(s.at), len(t.few))] {
		t.few[j] = looked{s.mask[i], i}
	}
	return t
}

// hash hashes the fields of a packet that the tuple asks for. Words that few has
// no use for are hashed as zeros, as hashKey does.
func (t *tuple) hash(w *words) uint64 {
	h := mix(0, w[t.few[0].word]&t.few[0].mask)
	h = mix(h, w[t.few[1].word]&t.few[1].mask)
	h = mix(h, w[t.few[2].word]&t.few[2].mask)
	if len(t.at) > len(t.few) {
		for _, i := range t.at[len(t.few):] {
			h = mix(h, w[i]&t.mask[i])
		}
	}
	return h
}

func hashKey(key []uint64) uint64 {
	h := uint64(0)
	for i := range max(len(key), len(tuple{}.few)) {
		v := uint64(0)
		if i < len(key) {
			v = key[i]
		}
		h = mix(h, v)
	}
	return h
}

// find returns the conditions that ask for what the packet has, but for ranges.
func (t *tuple) find(w *words) []*cond {
	h := t.hash(w)
	mask := uint32(len(t.slots) - 1)
	for i := uint32(h) & mask; ; i = (i + 1) & mask {
		s := t.slots[i]
		if s.at == 0 {
			return nil
		}
		if s.hash == uint32(h>>32) && t.is(int(s.at-1), w) {
			return t.chains[s.at-1]
		}
	}
}

// is reports whether a packet has what a key asks for.
func (t *tuple) is(n int, w *words) bool {
	key := t.keys[n*len(t.at) : (n+1)*len(t.at)]
	for j, i := range t.at[:len(key)] {
		if w[i]&t.mask[i] != key[j] {
			return false
		}
	}
	return true
}

// place returns the number of a key, -1 if it is not there.
func (t *tuple) place(key []uint64) int {
	h := hashKey(key)
	mask := uint32(len(t.slots) - 1)
	for i := uint32(h) & mask; t.slots[i].at != 0; i = (i + 1) & mask {
		s := t.slots[i]
		n := int(s.at - 1)
		if s.hash == uint32(h>>32) && slices.Equal(t.keys[n*len(key):(n+1)*len(key)], key) {
			return n
		}
	}
	return -1
}

// changed returns a tuple with conditions added and removed, nil if none is
// left. What t has is left as it is.
func (t *tuple) changed(add, remove []*cond) *tuple {
	n := &tuple{shape: t.shape, few: t.few, size: t.size, empty: t.empty, best: t.best, ranged: t.ranged,
		slots: slices.Clone(t.slots), keys: slices.Clone(t.keys), chains: slices.Clone(t.chains)}
	worst := false
	for _, c := range remove {
		at := n.place(c.key)
		if at < 0 {
			continue
		}
		chain := slices.DeleteFunc(slices.Clone(n.chains[at]), func(o *cond) bool { return o == c })
		n.size -= len(n.chains[at]) - len(chain)
		if n.chains[at] = chain; len(chain) == 0 {
			n.empty++
		}
		worst = worst || c.priority == n.best
	}
	for _, c := range add {
		n.insert(c)
	}
	switch {
	case n.size == 0:
		return nil
	case n.empty > len(n.chains)/2:
		return n.packed()
	case worst:
		n.best = 0
		for _, chain := range n.chains {
			if len(chain) > 0 {
				n.best = max(n.best, chain[0].priority)
			}
		}
	}
	return n
}

// insert adds a condition to a tuple that nobody looks at yet.
func (t *tuple) insert(c *cond) {
	at := t.place(c.key)
	if at < 0 {
		if 2*(len(t.chains)+1) > len(t.slots) {
			t.grow()
		}
		at = len(t.chains)
		t.keys = append(t.keys, c.key...)
		t.chains = append(t.chains, nil)
		t.empty++
		t.link(at, hashKey(c.key))
	}
	chain := t.chains[at]
	if len(chain) == 0 {
		t.empty--
	}
	i, _ := slices.BinarySearchFunc(chain, c, compareConds)
	t.chains[at] = slices.Insert(slices.Clip(chain), i, c)
	t.size++
	t.ranged = t.ranged || c.ranged
	if t.size == 1 || c.priority > t.best {
		t.best = c.priority
	}
}

// link enters a key into the slots.
func (t *tuple) link(at int, h uint64) {
	mask := uint32(len(t.slots) - 1)
	i := uint32(h) & mask
	for t.slots[i].at != 0 {
		i = (i + 1) & mask
	}
	t.slots[i] = slot{uint32(h >> 32), uint32(at + 1)}
}

func (t *tuple) grow() {
	t.slots = make([]slot, 2*len(t.slots))
	for at := range t.chains {
		t.link(at, hashKey(t.keys[at*len(t.at):(at+1)*len(t.at)]))
	}
}

// packed returns the tuple without its empty chains.
func (t *tuple) packed() *tuple {
	n := newTuple(t.shape)
	for _, chain := range t.chains {
		for _, c := range chain {
			n.insert(c)
		}
	}
	return n
}
