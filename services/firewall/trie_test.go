package firewall

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// within reports whether an address is in a prefix.
func within(a address, p prefix, width int) bool {
	return !a.less(p.from) && !p.last(width).less(a)
}

// randomPrefix returns a prefix of few networks, so that many nest.
func randomPrefix(r *rand.Rand, width int) prefix {
	length := r.IntN(width + 1)
	a := randomAddress(r, width)
	m := onesOf(width, length)
	return prefix{address{a.hi & m.hi, a.lo & m.lo}, uint8(length)}
}

func randomAddress(r *rand.Rand, width int) address {
	if width == 32 {
		return address{lo: uint64(r.IntN(2))<<31 | uint64(r.IntN(3))<<20 | uint64(r.IntN(40))<<8 | uint64(r.IntN(256))}
	}
	return address{0xfd00<<48 | uint64(r.IntN(3))<<32 | uint64(r.IntN(20)), uint64(r.IntN(2))<<63 | uint64(r.IntN(512))}
}

// TestTrieIsLinearSearch has prefixes come and go, many and few of them, and
// compares what is found with a look at each.
func TestTrieIsLinearSearch(t *testing.T) {
	for _, width := range []int{32, 128} {
		for seed := range uint64(6) {
			r := rand.New(rand.NewPCG(seed, uint64(width)))
			of := prefixes{width: width, uses: map[prefix]*use{}}
			var trie *part
			var there []*cond
			itself := func(c *cond) prefix { return c.srcIP }
			for step := range 60 {
				var add, remove []*cond
				for range r.IntN(150) {
					add = append(add, &cond{srcIP: randomPrefix(r, width)})
				}
				there = append(there, add...)
				if step > 25 || r.IntN(3) == 0 { // ends with few or none
					r.Shuffle(len(there), func(i, j int) { there[i], there[j] = there[j], there[i] })
					n := r.IntN(min(len(there), 400) + 1)
					if step == 59 {
						n = len(there)
					}
					remove, there = there[:n:n], there[n:]
				}
				trie = of.placed(trie, of.count(add, remove, itself))
				checkTrie(t, r, trie, there, &of)
			}
			if trie != nil || len(of.uses) != 0 || len(of.free) != int(of.next) {
				t.Errorf("width %d, seed %d: %v, %d prefixes and %d ids of %d are left", width, seed, trie, len(of.uses), int(of.next)-len(of.free), of.next)
			}
		}
	}
}

func checkTrie(t *testing.T, r *rand.Rand, trie *part, there []*cond, of *prefixes) {
	t.Helper()
	width := of.width
	var found chain
	var list []prefix
	for _, c := range there {
		list = append(list, c.srcIP)
	}
	slices.SortFunc(list, comparePrefixes)
	list = slices.Compact(list)
	if trie.count() != len(list) {
		t.Fatalf("width %d: %d prefixes, want %d", width, trie.count(), len(list))
	}
	for range 40 {
		a := randomAddress(r, width)
		var want, got []uint32
		longest, deepest := none, -1
		enough := 0
		for _, p := range list {
			if within(a, p, width) {
				id := of.uses[p].id
				want = append(want, id)
				if int(p.length) > deepest {
					longest, deepest = id, int(p.length)
				}
				enough = max(enough, int(p.length))
				continue
			}
			for n := range int(p.length) { // the bits that keep it out
				m := onesOf(width, n+1)
				if (a.hi^p.from.hi)&m.hi|(a.lo^p.from.lo)&m.lo != 0 {
					enough = max(enough, n+1)
					break
				}
			}
		}
		id := none
		if width == 32 {
			trie.find4(uint32(a.lo), &found)
			id = trie.longest4(uint32(a.lo))
		} else {
			trie.find6(a, &found)
			id = trie.longest6(a)
		}
		for _, x := range found.at[:found.n] {
			got = append(got, x.id)
		}
		slices.Sort(want)
		slices.Sort(got)
		if !slices.Equal(got, want) || id != longest {
			t.Fatalf("width %d: %x is in %v, the longest %d; want %v, %d", width, a, got, id, want, longest)
		}
		if n := trie.significant(a, width); n != enough {
			t.Fatalf("width %d: %d bits of %x are significant, want %d", width, n, a, enough)
		}
	}
}

// TestTableIsMap has lists come and go under keys, few of them and many.
func TestTableIsMap(t *testing.T) {
	for seed := range uint64(5) {
		r := rand.New(rand.NewPCG(seed, 9))
		x, want, size := newTable(), map[uint64][]entry{}, 0
		for step := range 60 {
			changes := map[uint64][]entry{}
			for range r.IntN(200) {
				key := uint64(r.IntN(3000))
				var list []entry
				if r.IntN(3) > 0 && step < 50 {
					list = make([]entry, 1+r.IntN(4))
					for i := range list {
						list[i].priority = uint16(100 + step)
					}
				}
				if step%20 == 3 && r.IntN(50) == 0 {
					list = make([]entry, 70_000) // far more than are alone
				}
				for i := range list {
					list[i].src.from = uint16(key)
				}
				changes[key] = list
			}
			if step == 59 {
				for key := range want {
					changes[key] = nil
				}
			}
			x = x.changed(changes)
			best := uint16(0)
			for key, list := range changes {
				size += len(list) - len(want[key])
				if want[key] = list; len(list) == 0 {
					delete(want, key)
				}
			}
			for key := range uint64(3000) {
				if got := x.list(key); len(got) != len(want[key]) || len(got) > 0 && (got[0].priority != want[key][0].priority || got[len(got)-1].src.from != uint16(key)) {
					t.Fatalf("seed %d, step %d: %d entries under %d, want %d", seed, step, len(got), key, len(want[key]))
				}
				if list := want[key]; len(list) > 0 {
					best = max(best, list[0].priority)
				}
			}
			n := 0
			x.each(func(*entry) { n++ })
			if x.size != size || n != size || x.best() != best {
				t.Fatalf("seed %d, step %d: size %d, %d entries, best %d; want %d, best %d", seed, step, x.size, n, x.best(), size, best)
			}
		}
	}
}

// TestCountKeepsAll counts beyond what is kept in one word.
func TestCountKeepsAll(t *testing.T) {
	var c count
	const packets = countMost + 3
	for range packets {
		c.add(65535)
	}
	if n, octets := c.read(); n != packets || octets != packets*65535 {
		t.Errorf("%d packets, %d octets; want %d, %d", n, octets, packets, uint64(packets)*65535)
	}
}
