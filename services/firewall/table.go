package firewall

// table leads from numbers of 64 bits to the conditions under them, in the
// order in which they decide: extendible hashing (Fagin, Nievergelt, Pippenger,
// Strong: "Extendible hashing", ACM TODS 1979), so that a change copies little.
// It is not changed once it is made; the next shares what stays.
type table struct {
	shift uint8    // of a hash, to its place in dir
	dir   []*shard // by the first bits of the hash; a power of two, 2 at least
	size  int      // conditions
}

// shard is the conditions whose hashes begin with the same bits.
type shard struct {
	slots   []slot // open addressing; a power of two, at most half of them taken
	entries []entry
	long    []extent // of keys that have too many conditions for a slot
	best    uint16   // the highest priority
	depth   uint8    // how many bits are the same
}

// slot leads to the conditions under a key: from its first bits on, 16 bits of
// the key's hash, the highest priority, and where the conditions are and how
// many; all ones for that is a place in long. 0 is free.
type slot uint64

// longSlot is how many conditions a slot does not count.
const longSlot = 1<<16 - 1

// extent is where conditions are.
type extent struct{ from, n int }

func (x slot) tag() uint64  { return uint64(x) >> 48 }
func (x slot) best() uint16 { return uint16(x >> 32) }

// entriesAt returns what a slot leads to.
func (s *shard) entriesAt(x slot) []entry {
	from, n := int(uint16(x>>16)), int(uint16(x))
	if n == longSlot {
		from, n = s.long[from].from, s.long[from].n
	}
	return s.entries[from : from+n]
}

// tagOf returns the bits of a hash that slots keep; not those that lead to them.
func tagOf(h uint64) uint64 { return h >> 20 & 0xffff }

// The limits of shards.
const (
	shardMost = 256 // keys
	depthMost = 20
)

// keyed is the conditions under one key.
type keyed struct {
	key  uint64
	list []entry
}

func newTable() *table {
	s := &shard{slots: make([]slot, 2)}
	return &table{shift: 63, dir: []*shard{s, s}}
}

func hashOf(key uint64) uint64 { return mix(key, 0x2545f4914f6cdd1d) }

// find returns the conditions under a key, none if the highest priority of them
// is below least. They must not be changed.
func (t *table) find(key uint64, least int32) []entry {
	h := hashOf(key)
	s := t.dir[h>>(t.shift&63)]
	mask, tag := uint64(len(s.slots)-1), tagOf(h)
	for i := h & mask; ; i = (i + 1) & mask {
		x := s.slots[i]
		if x == 0 {
			return nil
		}
		if x.tag() != tag || int32(x.best()) < least {
			continue
		}
		if list := s.entriesAt(x); list[0].key == key { // else it has the same tag
			return list
		}
	}
}

// list returns the conditions under a key. They must not be changed.
func (t *table) list(key uint64) []entry { return t.find(key, -1) }

// shard returns the shard of a key.
func (t *table) shard(key uint64) *shard { return t.dir[hashOf(key)>>(t.shift&63)] }

// best returns the highest priority.
func (t *table) best() (best uint16) {
	for _, s := range t.dir {
		best = max(best, s.best)
	}
	return best
}

// each calls f for all conditions.
func (t *table) each(f func(*entry)) {
	for i, s := range t.dir {
		if i > 0 && t.dir[i-1] == s {
			continue
		}
		for j := range s.entries {
			f(&s.entries[j])
		}
	}
}

// changed returns the table with other conditions under some keys; an empty list
// is none.
func (t *table) changed(lists map[uint64][]entry) *table {
	n := &table{shift: t.shift, dir: append([]*shard(nil), t.dir...), size: t.size}
	touched := map[*shard][]keyed{}
	for key, list := range lists {
		s := t.shard(key)
		n.size += len(list) - len(t.list(key))
		touched[s] = append(touched[s], keyed{key, list})
	}
	if n.size == 0 {
		return newTable()
	}
	for s, next := range touched {
		at := hashOf(next[0].key)
		for _, x := range s.slots {
			if x == 0 {
				continue
			}
			list := s.entriesAt(x)
			if _, other := lists[list[0].key]; !other {
				next = append(next, keyed{list[0].key, list})
			}
		}
		n.put(next, at, s.depth)
	}
	return n
}

// put makes a shard of what it is to have, or several, if that is too much. at is
// a hash that the shard has had.
func (t *table) put(all []keyed, at uint64, depth uint8) {
	keys, entries := 0, 0
	for _, k := range all {
		if entries += len(k.list); len(k.list) > 0 {
			keys++
		}
	}
	if keys > shardMost && depth < depthMost {
		bit := uint64(1) << (63 - depth)
		var halves [2][]keyed
		for _, k := range all {
			i := 0
			if hashOf(k.key)&bit != 0 {
				i = 1
			}
			halves[i] = append(halves[i], k)
		}
		t.put(halves[0], at&^bit, depth+1)
		t.put(halves[1], at|bit, depth+1)
		return
	}
	s := &shard{slots: make([]slot, slotsFor(keys)), entries: make([]entry, 0, entries), depth: depth}
	mask := uint64(len(s.slots) - 1)
	for _, k := range all {
		if len(k.list) == 0 {
			continue
		}
		h := hashOf(k.key)
		i := h & mask
		for s.slots[i] != 0 {
			i = (i + 1) & mask
		}
		best, from, n := k.list[0].priority, len(s.entries), len(k.list)
		if n >= longSlot || from > 1<<16-1 {
			s.long = append(s.long, extent{from, n})
			from, n = len(s.long)-1, longSlot
		}
		s.slots[i] = slot(tagOf(h)<<48 | uint64(best)<<32 | uint64(from)<<16 | uint64(n))
		s.entries = append(s.entries, k.list...)
		for j := len(s.entries) - len(k.list); j < len(s.entries); j++ {
			s.entries[j].key = k.key
		}
		s.best = max(s.best, best)
	}
	for 64-t.shift < max(depth, 1) {
		dir := make([]*shard, 2*len(t.dir))
		for i := range dir {
			dir[i] = t.dir[i/2]
		}
		t.dir = dir
		t.shift--
	}
	n := 1 << (64 - t.shift - depth) // places that lead to it
	first := int(at>>t.shift) &^ (n - 1)
	for i := range n {
		t.dir[first+i] = s
	}
}

// slotsFor returns how many slots so many keys take.
func slotsFor(keys int) int {
	n := 2
	for n < 2*keys {
		n *= 2
	}
	return n
}
