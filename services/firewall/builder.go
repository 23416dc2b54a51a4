package firewall

import (
	"slices"

	"github.com/weft-sdn/weft/flow"
)

// builder makes each classifier from the one before. The two share what does not
// change, so that a change of one rule costs little however many there are.
type builder struct {
	shapes map[shapeKey]*shape
	v4, v6 [2]prefixes // of sources and destinations
	now    *classifier
}

// prefixes is the prefixes in use of one address field.
type prefixes struct {
	width int
	uses  map[prefix]*use
	free  []uint32 // free ids below next
	next  uint32
}

// The sizes of pairs: those with more conditions than crowdFrom become crowds,
// and those with fewer than crowdTo lists again.
const (
	crowdFrom = 12
	crowdTo   = 6
)

func newBuilder() *builder {
	b := &builder{shapes: map[shapeKey]*shape{}, now: &classifier{}}
	for i := range b.v4 {
		b.v4[i] = prefixes{width: 32, uses: map[prefix]*use{}}
		b.v6[i] = prefixes{width: 128, uses: map[prefix]*use{}}
	}
	return b
}

// cond returns the condition of a rule with match m and ranges of ports.
func (b *builder) cond(r *rule, m *flow.Match, src, dst portRange) *cond {
	return newCond(r, m, src, dst, func(k shapeKey, odd bool) *shape {
		s := b.shapes[k]
		if s == nil {
			s = newShape(k, odd)
			b.shapes[k] = s
		}
		s.odd = s.odd || odd
		return s
	})
}

// change returns the classifier with conditions added and removed.
func (b *builder) change(add, remove []*cond) *classifier {
	next := *b.now
	next.size += len(add) - len(remove)
	gone := make(map[*cond]bool, len(remove))
	for _, c := range remove {
		gone[c] = true
	}
	b.count(add, remove)
	added, removed := byFamily(add), byFamily(remove)
	families := make(map[family]bool, len(added)+len(removed))
	for f := range added {
		families[f] = true
	}
	for f := range removed {
		families[f] = true
	}
	for f := range families {
		plus, minus := added[f], removed[f]
		switch width, _, _ := f.addressFields(); {
		case width == 32:
			next.v4 = b.now.v4.changed(&b.v4, plus, minus, gone)
		case width == 128:
			next.v6 = b.now.v6.changed(&b.v6, plus, minus, gone)
		case !f.typed:
			next.any = b.now.any.changed(plus, minus, gone)
		default:
			other := make(map[uint16]*crowd, len(next.other)+1)
			for t, x := range next.other {
				other[t] = x
			}
			if other[f.ethType] = other[f.ethType].changed(plus, minus, gone); other[f.ethType] == nil {
				delete(other, f.ethType)
			}
			next.other = other
		}
	}
	b.used(&next)
	b.now = &next
	return b.now
}

func byFamily(list []*cond) map[family][]*cond {
	m := map[family][]*cond{}
	for _, c := range list {
		m[c.shape.family] = append(m[c.shape.family], c)
	}
	return m
}

// count counts the conditions of each shape.
func (b *builder) count(add, remove []*cond) {
	for _, c := range add {
		if c.shape.count++; c.ranged() {
			c.shape.ports++
		}
	}
	for _, c := range remove {
		if c.ranged() {
			c.shape.ports--
		}
		if c.shape.count--; c.shape.count == 0 {
			delete(b.shapes, c.shape.shapeKey)
		}
	}
}

// used sets what the conditions look at in packets of each kind.
func (b *builder) used(c *classifier) {
	c.used, c.odd = [3]words{}, [3]bool{}
	for _, s := range b.shapes {
		if s.count == 0 {
			continue
		}
		first, last := 0, 2
		if s.typed {
			first = kindOf(s.ethType)
			last = first
		}
		for kind := first; kind <= last; kind++ {
			u := &c.used[kind]
			u.add(&s.mask)
			u[wordLink] |= bitsEthType
			c.odd[kind] = c.odd[kind] || s.odd
			if s.ports > 0 {
				u[wordPorts] |= bitsTPSrc | bitsTPDst
			}
		}
	}
	if c.v4 != nil {
		c.used[0][wordIPv4] = ^uint64(0)
	}
	if c.v6 != nil {
		for i := wordSrc6; i < wordDst6+2; i++ {
			c.used[1][i] = ^uint64(0)
		}
	}
}

// changed returns pairs with conditions added and removed, nil if none is left.
func (p *pairs) changed(of *[2]prefixes, add, remove []*cond, gone map[*cond]bool) *pairs {
	if p == nil {
		p = &pairs{width: of[0].width, table: newTable()}
	}
	n := &pairs{width: p.width}
	src, dst := of[0].count(add, remove, sourceOf), of[1].count(add, remove, destinationOf)
	for _, c := range add {
		a, b := of[0].uses[c.srcIP], of[1].uses[c.dstIP]
		c.pair = pairOf(a.id, b.id)
		a.with |= 1 << bitOf(b.id)
		b.with |= 1 << bitOf(a.id)
	}
	n.src, n.dst = of[0].placed(p.src, src), of[1].placed(p.dst, dst)
	plus, minus := map[uint64][]*cond{}, map[uint64][]*cond{}
	for _, c := range add {
		plus[c.pair] = append(plus[c.pair], c)
	}
	for _, c := range remove {
		minus[c.pair] = append(minus[c.pair], c)
	}
	lists := make(map[uint64][]entry, len(plus)+len(minus))
	for key, list := range plus {
		lists[key] = gathered(p.table.list(key), list, minus[key], gone)
	}
	for key, list := range minus {
		if _, done := lists[key]; !done {
			lists[key] = gathered(p.table.list(key), nil, list, gone)
		}
	}
	if n.table = p.table.changed(lists); n.table.size == 0 {
		return nil
	}
	return n
}

func sourceOf(c *cond) prefix      { return c.srcIP }
func destinationOf(c *cond) prefix { return c.dstIP }

// gathered returns the conditions of a pair of prefixes after a change: a list of
// them, or one crowd.
func gathered(old []entry, add, remove []*cond, gone map[*cond]bool) []entry {
	var c *crowd
	if len(old) == 1 && old[0].asks&isCrowd != 0 {
		c = old[0].cond.crowd.changed(add, remove, gone)
	} else {
		list := merged(old, add, gone)
		if len(list) <= crowdFrom {
			return list
		}
		all := make([]*cond, len(list))
		for i := range list {
			all[i] = list[i].cond
		}
		c = c.changed(all, nil, nil)
	}
	switch {
	case c == nil:
		return nil
	case c.size >= crowdTo:
		return []entry{{priority: c.best, asks: isCrowd, cond: &cond{crowd: c}}}
	}
	var rest []*cond
	c.each(func(x *cond) { rest = append(rest, x) })
	return merged(nil, rest, nil)
}

// count counts the prefixes that conditions ask for, and returns those that may
// have changed.
func (p *prefixes) count(add, remove []*cond, of func(*cond) prefix) []*use {
	list := make([]*use, 0, len(add)+len(remove))
	for _, c := range add {
		at := of(c)
		u := p.uses[at]
		if u == nil {
			u = &use{prefix: at, id: p.id()}
			p.uses[at] = u
		}
		u.count++
		list = append(list, u)
	}
	for _, c := range remove {
		u := p.uses[of(c)]
		if u.count--; u.count == 0 {
			list = append(list, u)
		}
	}
	slices.SortFunc(list, func(a, b *use) int { return comparePrefixes(a.prefix, b.prefix) })
	return slices.Compact(list)
}

// placed returns a trie with the changed prefixes.
func (p *prefixes) placed(t *part, list []*use) *part {
	if len(list) == 0 {
		return t
	}
	t = t.changed(list, p.width, 0)
	for _, u := range list {
		if u.count == 0 {
			delete(p.uses, u.prefix)
			p.free = append(p.free, u.id)
		}
	}
	return t
}

// id returns an id that no prefix has.
func (p *prefixes) id() uint32 {
	if n := len(p.free); n > 0 {
		id := p.free[n-1]
		p.free = p.free[:n-1]
		return id
	}
	p.next++
	return p.next - 1
}
