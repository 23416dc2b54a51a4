package firewall

import (
	"cmp"
	"slices"
)

// crowd is a set of conditions looked up by what they ask for beside addresses: a
// tuple space (Srinivasan, Suri, Varghese: "Packet classification using tuple
// space search", SIGCOMM 1999). A crowd never changes.
type crowd struct {
	best   uint16
	size   int
	tuples []*tuple // that of highest priority first
}

// tuple is the conditions of one shape, by the hash of their values.
type tuple struct {
	shape *shape
	best  uint16
	table *table
}

// changed returns a crowd with the conditions of add and without those of gone,
// some of which (remove) are in the crowd; nil if none is left.
func (c *crowd) changed(add, remove []*cond, gone map[*cond]bool) *crowd {
	lists := map[*shape]map[uint64][]*cond{}
	touch := func(x *cond) map[uint64][]*cond {
		list := lists[x.shape]
		if list == nil {
			list = map[uint64][]*cond{}
			lists[x.shape] = list
		}
		return list
	}
	for _, x := range add {
		list := touch(x)
		list[x.hash] = append(list[x.hash], x)
	}
	for _, x := range remove {
		if list := touch(x); list[x.hash] == nil {
			list[x.hash] = nil
		}
	}
	n := &crowd{}
	take := func(s *shape, t *table, changes map[uint64][]*cond) {
		next := make(map[uint64][]entry, len(changes))
		for hash, list := range changes {
			next[hash] = merged(t.list(hash), list, gone)
		}
		if t = t.changed(next); t.size > 0 {
			n.tuples = append(n.tuples, &tuple{s, t.best(), t})
		}
	}
	if c != nil {
		for _, t := range c.tuples {
			changes, touched := lists[t.shape]
			if !touched {
				n.tuples = append(n.tuples, t)
				continue
			}
			take(t.shape, t.table, changes)
			delete(lists, t.shape)
		}
	}
	for s, changes := range lists {
		take(s, newTable(), changes)
	}
	if len(n.tuples) == 0 {
		return nil
	}
	for _, t := range n.tuples {
		n.size += t.table.size
		n.best = max(n.best, t.best)
	}
	slices.SortFunc(n.tuples, func(a, b *tuple) int { return cmp.Compare(b.best, a.best) })
	return n
}

// each calls f for all conditions.
func (c *crowd) each(f func(*cond)) {
	if c != nil {
		for _, t := range c.tuples {
			t.table.each(func(e *entry) { f(e.cond) })
		}
	}
}
