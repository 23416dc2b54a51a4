package nib

import (
	"hash/maphash"
	"iter"
	"math/bits"
	"slices"
)

// hashSeed makes the hashes of keys unpredictable to those who choose them, such
// as hosts their addresses.
var hashSeed = maphash.MakeSeed()

// trieBits is how many bits of a hash choose the slot of a node; hashBits is how
// many bits there are.
const (
	trieBits = 5
	hashBits = 64
)

// Map is a persistent map, a hash array mapped trie (Bagwell 2001): with and
// without return a further map and leave the old one as it is. Both share all
// nodes but those on the way to the key, so the work grows with the logarithm of
// the size to the base 32. The zero Map is empty.
type Map[K, V comparable] struct {
	root *node[K, V]
	n    int
}

// node is one level of the trie; it never changes. A node below all bits of the
// hash holds the entries whose hashes are equal, in no order.
type node[K, V comparable] struct {
	used  uint32 // which slots there are
	slots []slot[K, V]
}

// slot is a node, or an entry if that is nil.
type slot[K, V comparable] struct {
	node  *node[K, V]
	key   K
	value V
}

func hash[K comparable](k K) uint64 { return maphash.Comparable(hashSeed, k) }

// place returns the bit of a hash at a level, and the index of its slot.
func (n *node[K, V]) place(h uint64, shift uint) (bit uint32, at int) {
	bit = 1 << (h >> shift & (1<<trieBits - 1))
	return bit, bits.OnesCount32(n.used & (bit - 1))
}

// Len returns the number of entries.
func (m Map[K, V]) Len() int { return m.n }

// Get returns the value of a key.
func (m Map[K, V]) Get(k K) (value V, there bool) {
	if m.root == nil {
		return value, false
	}
	return m.root.get(hash(k), 0, k)
}

func (n *node[K, V]) get(h uint64, shift uint, k K) (value V, there bool) {
	for ; shift < hashBits; shift += trieBits {
		bit, at := n.place(h, shift)
		if n.used&bit == 0 {
			return value, false
		}
		s := &n.slots[at]
		if s.node == nil {
			if s.key == k {
				return s.value, true
			}
			return value, false
		}
		n = s.node
	}
	for i := range n.slots {
		if n.slots[i].key == k {
			return n.slots[i].value, true
		}
	}
	return value, false
}

// with returns a map that has the value, too.
func (m Map[K, V]) with(k K, v V) Map[K, V] {
	root, added := m.root.with(hash(k), 0, slot[K, V]{key: k, value: v})
	if added {
		m.n++
	}
	m.root = root
	return m
}

func (n *node[K, V]) with(h uint64, shift uint, s slot[K, V]) (made *node[K, V], added bool) {
	if n == nil {
		n = &node[K, V]{}
	}
	if shift >= hashBits {
		for i := range n.slots {
			if n.slots[i].key == s.key {
				return n.replaced(i, s), false
			}
		}
		return &node[K, V]{slots: append(slices.Clip(n.slots), s)}, true
	}
	bit, at := n.place(h, shift)
	if n.used&bit == 0 {
		slots := make([]slot[K, V], len(n.slots)+1)
		copy(slots, n.slots[:at])
		slots[at] = s
		copy(slots[at+1:], n.slots[at:])
		return &node[K, V]{n.used | bit, slots}, true
	}
	old := &n.slots[at]
	if old.node == nil && old.key == s.key {
		return n.replaced(at, s), false
	}
	below := old.node
	if below == nil {
		below, _ = below.with(hash(old.key), shift+trieBits, *old)
	}
	below, added = below.with(h, shift+trieBits, s)
	return n.replaced(at, slot[K, V]{node: below}), added
}

// replaced returns the node with another slot.
func (n *node[K, V]) replaced(at int, s slot[K, V]) *node[K, V] {
	slots := slices.Clone(n.slots)
	slots[at] = s
	return &node[K, V]{n.used, slots}
}

// without returns a map that has no value of the key.
func (m Map[K, V]) without(k K) Map[K, V] {
	if _, there := m.Get(k); !there {
		return m
	}
	return Map[K, V]{m.root.without(hash(k), 0, k), m.n - 1}
}

// without returns the node without a key that it has; nil if it is empty then.
func (n *node[K, V]) without(h uint64, shift uint, k K) *node[K, V] {
	if shift >= hashBits {
		at := slices.IndexFunc(n.slots, func(s slot[K, V]) bool { return s.key == k })
		return n.cut(0, at)
	}
	bit, at := n.place(h, shift)
	s := &n.slots[at]
	if s.node == nil {
		return n.cut(bit, at)
	}
	switch below := s.node.without(h, shift+trieBits, k); {
	case below == nil:
		return n.cut(bit, at)
	case len(below.slots) == 1 && below.slots[0].node == nil:
		return n.replaced(at, below.slots[0]) // so that equal maps have equal shapes
	default:
		return n.replaced(at, slot[K, V]{node: below})
	}
}

func (n *node[K, V]) cut(bit uint32, at int) *node[K, V] {
	if len(n.slots) == 1 {
		return nil
	}
	return &node[K, V]{n.used &^ bit, slices.Concat(n.slots[:at], n.slots[at+1:])}
}

// All returns the entries in no particular order.
func (m Map[K, V]) All() iter.Seq2[K, V] {
	return func(yield func(K, V) bool) { m.root.all(yield) }
}

func (n *node[K, V]) all(yield func(K, V) bool) bool {
	if n == nil {
		return true
	}
	for i := range n.slots {
		if s := &n.slots[i]; s.node != nil && !s.node.all(yield) || s.node == nil && !yield(s.key, s.value) {
			return false
		}
	}
	return true
}

// differences calls f for each key whose value is not the same in two maps, with
// the zero value where there is none. It looks only at nodes that the maps do not
// share.
func differences[K, V comparable](was, is Map[K, V], f func(k K, was, is V)) {
	differ(was.root, is.root, 0, f)
}

func differ[K, V comparable](was, is *node[K, V], shift uint, f func(k K, was, is V)) {
	var none V
	switch {
	case was == is:
	case was == nil || is == nil || shift >= hashBits:
		was.all(func(k K, v V) bool {
			var now V
			if is != nil {
				now, _ = is.get(0, shift, k)
			}
			if now != v {
				f(k, v, now)
			}
			return true
		})
		is.all(func(k K, v V) bool {
			there := false
			if was != nil {
				_, there = was.get(0, shift, k)
			}
			if !there {
				f(k, none, v)
			}
			return true
		})
	default:
		for used := was.used | is.used; used != 0; used &= used - 1 {
			bit := used & -used
			differSlots(was.at(bit), is.at(bit), shift+trieBits, f)
		}
	}
}

// at returns the slot of a bit, nil if there is none.
func (n *node[K, V]) at(bit uint32) *slot[K, V] {
	if n.used&bit == 0 {
		return nil
	}
	return &n.slots[bits.OnesCount32(n.used&(bit-1))]
}

func differSlots[K, V comparable](was, is *slot[K, V], shift uint, f func(k K, was, is V)) {
	var none V
	switch {
	case was == nil:
		is.all(func(k K, v V) bool { f(k, none, v); return true })
	case is == nil:
		was.all(func(k K, v V) bool { f(k, v, none); return true })
	case was.node != nil && is.node != nil:
		differ(was.node, is.node, shift, f)
	case was.node == nil && is.node == nil && was.key == is.key:
		if was.value != is.value {
			f(was.key, was.value, is.value)
		}
	default: // at least one is an entry
		was.all(func(k K, v V) bool {
			if now := is.get(k, shift); now != v {
				f(k, v, now)
			}
			return true
		})
		is.all(func(k K, v V) bool {
			if then := was.get(k, shift); then == none {
				f(k, none, v)
			}
			return true
		})
	}
}

func (s *slot[K, V]) all(yield func(K, V) bool) bool {
	if s.node != nil {
		return s.node.all(yield)
	}
	return yield(s.key, s.value)
}

// get returns the value of a key in a slot above the given level.
func (s *slot[K, V]) get(k K, shift uint) (value V) {
	if s.node != nil {
		value, _ = s.node.get(hash(k), shift, k)
	} else if s.key == k {
		value = s.value
	}
	return value
}
