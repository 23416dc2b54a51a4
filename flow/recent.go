package flow

import "math/bits"

// Recent remembers values of keys used lately, such as the hosts whose packets
// come from one switch. It is a cache of sets of two, and forgets at will. It
// begins small and doubles, up to a bound, while more than a sixteenth of what
// is looked up has been forgotten, so that a quiet switch costs little. It is
// not for concurrent use. The zero value is empty and has room for
// recentFirst keys.
type Recent[K comparable, V any] struct {
	sets   [][2]recentSlot[K, V] // a power of two of them
	shift  uint8                 // 64 - log2(len(sets))
	ahead  K                     // that of the set fetched last
	gets   uint32                // since the last growth or review
	misses uint32                // of gets
}

// recentSlot holds a key and its value. A free one holds the zero key and the
// zero value.
type recentSlot[K comparable, V any] struct {
	key   K
	value V
}

// recentFirst is the room at first, in keys.
const recentFirst = 64

// Get returns the value of a key, nil if it is not there; the zero key may be
// found with the zero value. The value is valid until the next Put. hash spreads
// keys over its upper bits, see Spread.
func (c *Recent[K, V]) Get(k K, hash uint64) *V {
	c.gets++
	if len(c.sets) > 0 {
		s := &c.sets[hash>>c.shift&uint64(len(c.sets)-1)]
		if s[0].key == k {
			return &s[0].value
		}
		if s[1].key == k {
			return &s[1].value
		}
	}
	c.misses++
	return nil
}

// Fetch begins to bring the place of a hash into the processor's caches, for a
// Get soon.
func (c *Recent[K, V]) Fetch(hash uint64) {
	if len(c.sets) > 0 {
		c.ahead = c.sets[hash>>c.shift&uint64(len(c.sets)-1)][0].key // nobody waits for it
	}
}

// Put remembers the value of a key that Get has not found, in place of the older
// of two, and returns where it is. most is how many keys there may be room for.
func (c *Recent[K, V]) Put(k K, hash uint64, v V, most int) *V {
	switch {
	case len(c.sets) == 0:
		c.grow()
	case c.misses > 4*uint32(len(c.sets)):
		if c.misses > c.gets/16 && 4*len(c.sets) <= most {
			c.grow()
		}
		c.gets, c.misses = 0, 0
	}
	s := &c.sets[hash>>c.shift&uint64(len(c.sets)-1)]
	s[1] = s[0]
	s[0] = recentSlot[K, V]{k, v}
	return &s[0].value
}

// grow doubles the room, and forgets all.
func (c *Recent[K, V]) grow() {
	n := max(recentFirst/2, 2*len(c.sets))
	c.sets, c.shift = make([][2]recentSlot[K, V], n), uint8(64-bits.TrailingZeros(uint(n)))
}

// Room returns for how many keys there is room.
func (c *Recent[K, V]) Room() int { return 2 * len(c.sets) }

// Spread makes a number into a hash for Recent: every bit of n changes half of the
// upper bits (the first steps of SplitMix64). To multiply once is not enough for
// addresses that differ in few bits: a generator's thousand fell on 386 of 2,048
// sets.
func Spread(n uint64) uint64 {
	n = (n ^ n>>32) * 0xbf58476d1ce4e5b9
	return (n ^ n>>29) * 0x94d049bb133111eb
}
