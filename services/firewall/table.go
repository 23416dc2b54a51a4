package firewall

// table maps 64-bit numbers to their conditions, in the order in which they
// decide: extendible hashing (Fagin, Nievergelt, Pippenger, Strong: "Extendible
// hashing", ACM TODS 1979), so that a change copies little. A table never
// changes; the next shares what stays.
type table struct {
	shift uint8    // of a hash, to its place in dir
	dir   []*shard // by the first bits of the hash; a power of two, 2 at least
	size  int      // conditions
}

// shard is the conditions whose hashes begin with the same bits.
type shard struct {
	slots []entry   // by hash, open addressing: the first of each key; a power of two, at most half of them taken
	lists [][]entry // of keys that have several
	best  uint16    // the highest priority
	depth uint8     // how many bits are the same
}

// Values of entry.list in a slot; beyond alone, it is a place in lists.
const (
	free  = iota
	alone // one condition under the key
	listed
)

// under returns the conditions under the key of a slot.
func (s *shard) under(at int) []entry {
	if n := s.slots[at].list; n >= listed {
		return s.lists[n-listed]
	}
	return s.slots[at : at+1]
}

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
	s := &shard{slots: make([]entry, 2)}
	return &table{shift: 63, dir: []*shard{s, s}}
}

func hashOf(key uint64) uint64 { return mix(key, 0x2545f4914f6cdd1d) }

// find returns the conditions under a key; none if their highest priority is
// below least. The caller must not change them.
func (t *table) find(key uint64, least int32) []entry {
	h := hashOf(key)
	s := t.dir[h>>(t.shift&63)]
	mask := len(s.slots) - 1
	for i := int(h) & mask; ; i = (i + 1) & mask {
		x := &s.slots[i]
		switch {
		case x.list == free:
			return nil
		case x.key != key:
		case int32(x.priority) < least:
			return nil
		default:
			return s.under(i)
		}
	}
}

// home returns the slot where the search for a key begins.
func (t *table) home(key uint64) *entry {
	h := hashOf(key)
	s := t.dir[h>>(t.shift&63)]
	return &s.slots[int(h)&(len(s.slots)-1)]
}

// list returns the conditions under a key. The caller must not change them.
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
		for j := range s.slots {
			if s.slots[j].list == free {
				continue
			}
			for k := range s.under(j) {
				f(&s.under(j)[k])
			}
		}
	}
}

// changed returns the table with new conditions under some keys; an empty list
// removes a key.
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
		for i := range s.slots {
			if s.slots[i].list == free {
				continue
			}
			key := s.slots[i].key
			if _, other := lists[key]; !other {
				next = append(next, keyed{key, s.under(i)})
			}
		}
		n.put(next, at, s.depth)
	}
	return n
}

// put makes one shard of the given conditions, or several if one would be too
// large. at is a hash that the shard has had.
func (t *table) put(all []keyed, at uint64, depth uint8) {
	keys := 0
	for _, k := range all {
		if len(k.list) > 0 {
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
	s := &shard{slots: make([]entry, slotsFor(keys)), depth: depth}
	mask := len(s.slots) - 1
	for _, k := range all {
		if len(k.list) == 0 {
			continue
		}
		i := int(hashOf(k.key)) & mask
		for s.slots[i].list != free {
			i = (i + 1) & mask
		}
		x := k.list[0]
		if x.key, x.list = k.key, alone; len(k.list) > 1 {
			s.lists = append(s.lists, k.list)
			x.list = uint32(len(s.lists)-1) + listed
		}
		s.slots[i] = x
		s.best = max(s.best, x.priority)
	}
	for 64-t.shift < max(depth, 1) {
		dir := make([]*shard, 2*len(t.dir))
		for i := range dir {
			dir[i] = t.dir[i/2]
		}
		t.dir = dir
		t.shift--
	}
	n := 1 << (64 - t.shift - depth) // places in dir that lead to it
	first := int(at>>t.shift) &^ (n - 1)
	for i := range n {
		t.dir[first+i] = s
	}
}

// slotsFor returns the number of slots for so many keys.
func slotsFor(keys int) int {
	n := 2
	for n < 2*keys {
		n *= 2
	}
	return n
}
