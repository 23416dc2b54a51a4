package firewall

import (
	"cmp"
	"math/bits"
	"slices"
)

// use is a prefix in use, as the builder knows it.
type use struct {
	prefix
	id     uint32
	count  int    // conditions that ask for it
	with   uint64 // see node
	placed bool   // it is in the trie
}

// node is a prefix in use, for lookups.
type node struct {
	with   uint64 // bits: bitOf each prefix of the other address that occurs with it; perhaps more
	id     uint32 // identifies it in the trie
	parent int16  // the longest prefix of the same part that contains it; -1 is none
	bit    uint8  // bitOf(id)
}

// bitOf numbers prefixes with 0 to 63.
func bitOf(id uint32) uint8 { return uint8(id * 0x9e3779b1 >> 26) }

// part is a part of a trie of prefixes that begin with the same octets. It finds
// the prefixes that contain an address. It is a branch, with a part for each next
// octet, or, if it has few prefixes, a leaf of intervals of addresses. A part
// never changes.
type part struct {
	place
	uses []*use // of a leaf all prefixes, of a branch those that end in its octet
	size int    // number of prefixes, including those of the kids
}

// place is a part laid out for lookups.
type place struct {
	branch *branch // nil: it is a leaf
	leaf   leaf    // empty if it is not a leaf, or there is nothing
}

// branch is the parts with one octet more. Most lookups read only one line of the
// processor's cache.
type branch struct {
	has    [4]uint64 // octets that have a part, a bit for each
	before [4]uint8  // how many of them come before those of each word
	owns   bool      // there are nodes
	kids   []place   // of those octets, in order
	in     [256]int16
	nodes  []node  // the prefixes that end in the branch's octet
	parts  []*part // the same as kids
}

// kid returns the index of the part of an octet; -1 if there is none.
func (b *branch) kid(octet uint8) int {
	word, bit := b.has[octet>>6], uint64(1)<<(octet&63)
	if word&bit == 0 {
		return -1
	}
	return int(b.before[octet>>6]) + bits.OnesCount64(word&(bit-1))
}

// part returns the part of an octet, nil if there is none.
func (b *branch) part(octet uint8) *part {
	if i := b.kid(octet); i >= 0 {
		return b.parts[i]
	}
	return nil
}

// leafMost is the most prefixes of a leaf, except at the last octet.
const leafMost = 64

// chain is the prefixes that contain an address.
type chain struct {
	n    int
	bits uint64 // bitOf of each
	at   [129]node
}

func (l *chain) add(x node) {
	l.at[l.n] = x
	l.n++
	l.bits |= 1 << (x.bit & 63)
}

// own adds the prefixes that end in a branch's octet, the longest first.
func (l *chain) own(b *branch, in int16) {
	for ; in >= 0; in = b.nodes[in].parent {
		l.add(b.nodes[in])
	}
}

// step returns the part of an octet, nil if there is none, and adds the branch's
// own prefixes that contain the octet.
func (b *branch) step(octet uint8, l *chain) *place {
	if b.owns {
		l.own(b, b.in[octet])
	}
	i := b.kid(octet)
	if i < 0 {
		return nil
	}
	return &b.kids[i]
}

// of adds the prefixes that contain an interval of a leaf.
func (l *chain) of(x leaf, interval int) {
	if len(x) == 0 {
		return
	}
	for i := x.in(interval); i >= 0; {
		n := x.node(i)
		l.add(n)
		i = n.parent
	}
}

// find4 finds the prefixes that contain an IPv4 address.
func (p *part) find4(a uint32, l *chain) {
	x := p.leaf4(a, l)
	l.of(x, x.interval4(a))
}

// find6 finds the prefixes that contain an IPv6 address.
func (p *part) find6(a address, l *chain) {
	x := p.leaf6(a, l)
	l.of(x, x.interval6(a))
}

// leaf4 returns the leaf of an IPv4 address, and adds the prefixes of the
// branches on the way to l.
func (p *part) leaf4(a uint32, l *chain) leaf {
	l.n, l.bits = 0, 0
	if p == nil {
		return nil
	}
	at := &p.place
	for ; at.branch != nil; a <<= 8 {
		if at = at.branch.step(uint8(a>>24), l); at == nil {
			return nil
		}
	}
	return at.leaf
}

// leaf6 is leaf4 for IPv6.
func (p *part) leaf6(a address, l *chain) leaf {
	l.n, l.bits = 0, 0
	if p == nil {
		return nil
	}
	at := &p.place
	for depth := 0; at.branch != nil; depth++ {
		if at = at.branch.step(a.octet(128, depth), l); at == nil {
			return nil
		}
	}
	return at.leaf
}

// none is the id that no prefix has.
const none = ^uint32(0)

// longest4 returns the id of the longest prefix that contains an IPv4 address,
// which determines all others; none if there is none.
func (p *part) longest4(a uint32) uint32 {
	if p == nil {
		return none
	}
	id, at := none, &p.place
	for rest := a; at.branch != nil; rest <<= 8 {
		if at = at.branch.longer(uint8(rest>>24), &id); at == nil {
			return id
		}
	}
	return at.leaf.longest(at.leaf.interval4(a), id)
}

// longest6 is longest4 for IPv6.
func (p *part) longest6(a address) uint32 {
	if p == nil {
		return none
	}
	id, at := none, &p.place
	for depth := 0; at.branch != nil; depth++ {
		if at = at.branch.longer(a.octet(128, depth), &id); at == nil {
			return id
		}
	}
	return at.leaf.longest(at.leaf.interval6(a), id)
}

// longer returns the part of an octet, nil if there is none, and writes the
// longest of the branch's own prefixes that contain the octet to id.
func (b *branch) longer(octet uint8, id *uint32) *place {
	if b.owns {
		if i := b.in[octet]; i >= 0 {
			*id = b.nodes[i].id
		}
	}
	i := b.kid(octet)
	if i < 0 {
		return nil
	}
	return &b.kids[i]
}

// significant returns how many of the first bits of a must be kept so that all
// addresses that share them are in the same prefixes.
func (p *part) significant(a address, width int) int {
	n := 0
	for depth := 0; p != nil; depth++ {
		if p.branch == nil {
			return max(n, p.leaf.significant(a, width))
		}
		octet := a.octet(width, depth)
		b := p.branch
		for i := range 256 {
			if o := uint8(i); o != octet && (b.kid(o) >= 0 || b.in[o] != b.in[octet]) {
				n = max(n, 8*depth+bits.LeadingZeros8(octet^o)+1)
			}
		}
		p = b.part(octet)
	}
	return n
}

// changed returns the part after a change of the prefixes in list, which are in
// order and all within it. It removes prefixes no longer in use and adds those
// not placed yet. It returns nil if none is left.
func (p *part) changed(list []*use, width, depth int) *part {
	if p == nil {
		p = &part{}
	}
	if p.branch == nil {
		all := renewed(p.uses, list)
		if len(all) <= leafMost || depth == width/8-1 {
			return newLeaf(all, width)
		}
		return (&part{}).grown(all, width, depth, true)
	}
	q := p.grown(list, width, depth, false)
	if q.size > leafMost/2 {
		return q
	}
	return newLeaf(renewed(q.all(nil), nil), width)
}

// renewed returns the uses of a part after a change, in order.
func renewed(old, list []*use) []*use {
	all := make([]*use, 0, len(old)+len(list))
	for _, u := range old {
		if u.count > 0 {
			all = append(all, u)
		}
	}
	for _, u := range list {
		if u.count > 0 && !u.placed {
			u.placed = true
			all = append(all, u)
		}
	}
	slices.SortFunc(all, func(a, b *use) int { return comparePrefixes(a.prefix, b.prefix) })
	return all
}

// all appends the uses of a part to list.
func (p *part) all(list []*use) []*use {
	list = append(list, p.uses...)
	if p.branch != nil {
		for _, k := range p.branch.parts {
			if k != nil {
				list = k.all(list)
			}
		}
	}
	return list
}

// grown returns a branch after the changes in list. burst means that it is made
// of a leaf, whose prefixes are list.
func (p *part) grown(list []*use, width, depth int, burst bool) *part {
	b := &branch{}
	q := &part{place: place{branch: b}, uses: p.uses, size: p.size}
	if p.branch != nil {
		*b = *p.branch
	} else {
		b.spread(nil, width, depth)
	}
	if burst {
		for _, u := range list {
			u.placed = false
		}
	}
	var own, rest []*use
	for _, u := range list {
		if int(u.length) < 8*depth+8 {
			own = append(own, u)
		} else {
			rest = append(rest, u)
		}
	}
	if len(own) > 0 {
		q.uses = renewed(q.uses, own)
		q.size += len(q.uses) - len(p.uses)
		b.spread(q.uses, width, depth)
	}
	all := b.all()
	for len(rest) > 0 {
		octet := rest[0].from.octet(width, depth)
		n := 1
		for n < len(rest) && rest[n].from.octet(width, depth) == octet {
			n++
		}
		old := all[octet]
		all[octet] = old.changed(rest[:n], width, depth+1)
		q.size += all[octet].count() - old.count()
		rest = rest[n:]
	}
	b.set(&all)
	return q
}

// all returns the parts by octet; nil is none.
func (b *branch) all() (all [256]*part) {
	n := 0
	for word, set := range b.has {
		for ; set != 0; set &= set - 1 {
			all[64*word+bits.TrailingZeros64(set)] = b.parts[n]
			n++
		}
	}
	return all
}

// set sets the branch's parts by octet.
func (b *branch) set(all *[256]*part) {
	b.has, b.kids, b.parts = [4]uint64{}, make([]place, 0, len(b.parts)+1), make([]*part, 0, len(b.parts)+1)
	for octet, p := range all {
		if octet&63 == 0 {
			b.before[octet>>6] = uint8(len(b.parts))
		}
		if p != nil {
			b.has[octet>>6] |= 1 << (octet & 63)
			b.kids, b.parts = append(b.kids, p.place), append(b.parts, p)
		}
	}
}

// count returns the number of prefixes of a part.
func (p *part) count() int {
	if p == nil {
		return 0
	}
	return p.size
}

// spread sets which of the branch's own prefixes contain each octet.
func (b *branch) spread(own []*use, width, depth int) {
	for i := range b.in {
		b.in[i] = -1
	}
	slices.SortFunc(own, func(a, b *use) int { return cmp.Compare(a.length, b.length) }) // outer ones first
	b.nodes, b.owns = make([]node, len(own)), len(own) > 0
	for i, u := range own {
		first := int(u.from.octet(width, depth))
		b.nodes[i] = u.node(b.in[first])
		for j := range 1 << (8*depth + 8 - int(u.length)) {
			b.in[first+j] = int16(i)
		}
	}
}

func (u *use) node(parent int16) node {
	return node{with: u.with, id: u.id, parent: parent, bit: bitOf(u.id)}
}

// newLeaf returns a leaf of the given prefixes, which are in order.
func newLeaf(list []*use, width int) *part {
	if len(list) == 0 {
		return nil
	}
	nodes := make([]node, len(list))
	from, in := make([]address, 0, 2*len(list)+1), make([]int16, 0, 2*len(list)+1)
	last := make([]address, len(list))
	add := func(at address, top int16) {
		if n := len(from); n > 0 && from[n-1] == at {
			in[n-1] = top
			return
		}
		from, in = append(from, at), append(in, top)
	}
	add(address{}, -1)
	top := int16(-1)
	leave := func() {
		after, ok := last[top].next(width)
		if top = nodes[top].parent; ok {
			add(after, top)
		}
	}
	for i, u := range list {
		for top >= 0 && last[top].less(u.from) {
			leave()
		}
		nodes[i], last[i] = u.node(top), u.last(width)
		top = int16(i)
		add(u.from, top)
	}
	for top >= 0 {
		leave()
	}
	return &part{place{leaf: makeLeaf(from, in, nodes, width)}, list, len(list)}
}
