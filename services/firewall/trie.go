package firewall

import (
	"cmp"
	"math/bits"
	"slices"
)

// use is a prefix in use: what the builder knows of it.
type use struct {
	prefix
	id     uint32
	count  int    // conditions that ask for it
	with   uint64 // see node
	placed bool   // it is in the trie
}

// node is a prefix in use, for lookups.
type node struct {
	with   uint64 // a bit for each prefix of the other address that is asked for with it, by bitOf; more may be set
	id     uint32 // tells it from all others of the trie
	parent int16  // the longest prefix of the same part that it is within; -1 is none
	bit    uint8  // bitOf(id)
}

// bitOf numbers prefixes with 0 to 63.
func bitOf(id uint32) uint8 { return uint8(id * 0x9e3779b1 >> 26) }

// part is a part of a trie of prefixes, that finds those that an address is in:
// what begins with the same octets. It is a branch, with a part for each next
// octet, or a leaf, if it is few prefixes: then it is intervals of addresses. It
// is not changed once it is made.
type part struct {
	kids  *[256]kid // of a branch
	steps []step    // of a leaf: its intervals, in order; the first begins at 0
	nodes []node    // of a leaf all prefixes, of a branch those that end in its octet
	*members
}

// members is what lookups of IPv4 do not look at: a part is one line of the
// processor's cache.
type members struct {
	from []address // of a leaf, IPv6: where its intervals begin
	uses []*use    // the same as nodes
	size int       // prefixes, those of the kids, too
}

// step is an interval of a leaf.
type step struct {
	low uint32 // IPv4: where it begins
	in  int16  // the longest prefix that it is in, a number in nodes; -1 is none
}

// kid is the addresses of a branch with one next octet.
type kid struct {
	part *part  // nil if there is none
	in   int16  // the longest prefix of the branch's own; -1 is none
	id   uint32 // its id
}

// leafMost is how many prefixes a leaf has at most, but for the last octet.
const leafMost = 64

// chain is the prefixes that an address is in.
type chain struct {
	n    int
	bits uint64 // bitOf of each
	at   [129]*node
}

func (l *chain) add(nodes []node, i int16) {
	for ; i >= 0; i = nodes[i].parent {
		x := &nodes[i]
		l.at[l.n] = x
		l.n++
		l.bits |= 1 << (x.bit & 63)
	}
}

// find4 finds the prefixes that an IPv4 address is in.
func (p *part) find4(a uint32, l *chain) {
	l.n, l.bits = 0, 0
	if p == nil {
		return
	}
	for rest := a; p.kids != nil; rest <<= 8 {
		k := &p.kids[rest>>24]
		l.add(p.nodes, k.in)
		if p = k.part; p == nil {
			return
		}
	}
	l.add(p.nodes, p.steps[p.interval4(a)].in)
}

// find6 finds the prefixes that an IPv6 address is in.
func (p *part) find6(a address, l *chain) {
	l.n, l.bits = 0, 0
	if p == nil {
		return
	}
	for depth := 0; p.kids != nil; depth++ {
		k := &p.kids[a.octet(128, depth)]
		l.add(p.nodes, k.in)
		if p = k.part; p == nil {
			return
		}
	}
	l.add(p.nodes, p.steps[p.interval6(a)].in)
}

// none is the id that no prefix has.
const none = ^uint32(0)

// longest4 returns the id of the longest prefix that an IPv4 address is in, which
// says all others; none if there is none.
func (p *part) longest4(a uint32) uint32 {
	id := none
	if p == nil {
		return id
	}
	for rest := a; p.kids != nil; rest <<= 8 {
		k := &p.kids[rest>>24]
		if k.id != none {
			id = k.id
		}
		if p = k.part; p == nil {
			return id
		}
	}
	if i := p.steps[p.interval4(a)].in; i >= 0 {
		id = p.nodes[i].id
	}
	return id
}

// longest6 is longest4 for IPv6.
func (p *part) longest6(a address) uint32 {
	id := none
	if p == nil {
		return id
	}
	for depth := 0; p.kids != nil; depth++ {
		k := &p.kids[a.octet(128, depth)]
		if k.id != none {
			id = k.id
		}
		if p = k.part; p == nil {
			return id
		}
	}
	if i := p.steps[p.interval6(a)].in; i >= 0 {
		id = p.nodes[i].id
	}
	return id
}

// interval returns the number of a leaf's interval that an address is in.
func (p *part) interval(a address, width int) int {
	if width == 32 {
		return p.interval4(uint32(a.lo))
	}
	return p.interval6(a)
}

func (p *part) interval4(a uint32) int {
	i, steps := 0, p.steps
	for n := len(steps); n > 1; {
		half := n >> 1
		if steps[i+half].low <= a {
			i += half
		}
		n -= half
	}
	return i
}

func (p *part) interval6(a address) int {
	i, from := 0, p.from
	for n := len(from); n > 1; {
		half := n >> 1
		if !a.less(from[i+half]) {
			i += half
		}
		n -= half
	}
	return i
}

// begins returns where a leaf's interval begins.
func (p *part) begins(i, width int) address {
	if width == 32 {
		return address{lo: uint64(p.steps[i].low)}
	}
	return p.from[i]
}

// significant returns how many of the first bits of a must be kept for all
// addresses that share them to be in the same prefixes.
func (p *part) significant(a address, width int) int {
	n := 0
	for depth := 0; p != nil; depth++ {
		if p.kids == nil {
			return max(n, p.within(a, width))
		}
		octet := a.octet(width, depth)
		own := &p.kids[octet]
		for i := range p.kids {
			if k := &p.kids[i]; uint8(i) != octet && (k.part != nil || k.in != own.in) {
				n = max(n, 8*depth+bits.LeadingZeros8(octet^uint8(i))+1)
			}
		}
		p = own.part
	}
	return n
}

// within is significant of a leaf.
func (p *part) within(a address, width int) int {
	i := p.interval(a, width)
	count := len(p.steps)
	for n := range width {
		m := onesOf(width, n)
		all := prefix{address{a.hi & m.hi, a.lo & m.lo}, uint8(n)}
		if !all.from.less(p.begins(i, width)) && (i+1 == count || all.last(width).less(p.begins(i+1, width))) {
			return n
		}
	}
	return width
}

// changed returns the part with what has changed of the prefixes in list, which
// are in order and all within it: those that are not in use any more go, those
// that are not placed come. It returns nil if none is left.
func (p *part) changed(list []*use, width, depth int) *part {
	if p == nil {
		p = newPart()
	}
	if p.kids == nil {
		all := renewed(p.uses, list)
		if len(all) <= leafMost || depth == width/8-1 {
			return newLeaf(all, width)
		}
		return newPart().branch(all, width, depth, true)
	}
	q := p.branch(list, width, depth, false)
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
	if p.kids != nil {
		for i := range p.kids {
			if k := p.kids[i].part; k != nil {
				list = k.all(list)
			}
		}
	}
	return list
}

// branch returns a branch with what has changed of list. burst says that it is
// made of a leaf, whose prefixes list is.
func (p *part) branch(list []*use, width, depth int, burst bool) *part {
	q := &part{kids: &[256]kid{}, nodes: p.nodes, members: &members{uses: p.uses, size: p.size}}
	if p.kids != nil {
		*q.kids = *p.kids
	} else {
		for i := range q.kids {
			q.kids[i].in, q.kids[i].id = -1, none
		}
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
		q.spread(width, depth)
	}
	for len(rest) > 0 {
		octet := rest[0].from.octet(width, depth)
		n := 1
		for n < len(rest) && rest[n].from.octet(width, depth) == octet {
			n++
		}
		old := q.kids[octet].part
		part := old.changed(rest[:n], width, depth+1)
		q.kids[octet].part = part
		q.size += part.count() - old.count()
		rest = rest[n:]
	}
	return q
}

// count returns how many prefixes a part has.
func (p *part) count() int {
	if p == nil {
		return 0
	}
	return p.size
}

// spread tells the kids of a branch which of its own prefixes they are in.
func (p *part) spread(width, depth int) {
	for i := range p.kids {
		p.kids[i].in, p.kids[i].id = -1, none
	}
	slices.SortFunc(p.uses, func(a, b *use) int { return cmp.Compare(a.length, b.length) }) // outer ones first
	p.nodes = make([]node, len(p.uses))
	for i, u := range p.uses {
		first := int(u.from.octet(width, depth))
		p.nodes[i] = u.node(p.kids[first].in)
		for j := range 1 << (8*depth + 8 - int(u.length)) {
			p.kids[first+j].in, p.kids[first+j].id = int16(i), u.id
		}
	}
}

func (u *use) node(parent int16) node {
	return node{with: u.with, id: u.id, parent: parent, bit: bitOf(u.id)}
}

// newLeaf returns a leaf of prefixes that are in order.
func newLeaf(list []*use, width int) *part {
	if len(list) == 0 {
		return nil
	}
	p := &part{nodes: make([]node, len(list)), members: &members{uses: list, size: len(list)}}
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
		if top = p.nodes[top].parent; ok {
			add(after, top)
		}
	}
	for i, u := range list {
		for top >= 0 && last[top].less(u.from) {
			leave()
		}
		p.nodes[i], last[i] = u.node(top), u.last(width)
		top = int16(i)
		add(u.from, top)
	}
	for top >= 0 {
		leave()
	}
	if width == 128 {
		p.from = from
	}
	p.steps = make([]step, len(from))
	for i, a := range from {
		p.steps[i] = step{uint32(a.lo), in[i]}
	}
	return p
}

func newPart() *part { return &part{members: &members{}} }
