package nib

import (
	"maps"
	"math/rand/v2"
	"testing"
)

// TestMap compares a Map with Go's map, and differences with those of the two.
func TestMap(t *testing.T) {
	for seed := range uint64(40) {
		rng := rand.New(rand.NewPCG(seed, 0))
		var m Map[int, int]
		plain := map[int]int{}
		then, plainThen := m, maps.Clone(plain)
		for step := range 3000 {
			k := rng.IntN(1 + int(seed)*20)
			if rng.IntN(3) == 0 {
				m = m.without(k)
				delete(plain, k)
			} else {
				v := 1 + rng.IntN(3)
				m, plain[k] = m.with(k, v), v
			}
			if rng.IntN(50) != 0 {
				continue
			}
			same(t, m, plain)
			same(t, then, plainThen) // it is as it was
			n := 0
			differences(then, m, func(k, was, is int) {
				n++
				if plainThen[k] != was || plain[k] != is || was == is {
					t.Fatalf("seed %d step %d: %d was %d and is %d, want %d and %d", seed, step, k, was, is, plainThen[k], plain[k])
				}
			})
			want := 0
			for k := range 1 + int(seed)*20 {
				if plainThen[k] != plain[k] {
					want++
				}
			}
			if n != want {
				t.Fatalf("seed %d step %d: %d differences, want %d", seed, step, n, want)
			}
			then, plainThen = m, maps.Clone(plain)
		}
	}
}

func same(t *testing.T, m Map[int, int], plain map[int]int) {
	t.Helper()
	if got := maps.Collect(m.All()); !maps.Equal(got, plain) || m.Len() != len(plain) {
		t.Fatalf("%d entries, Len %d; want %d", len(got), m.Len(), len(plain))
	}
	for k, v := range plain {
		if got, there := m.Get(k); !there || got != v {
			t.Fatalf("%d: %d, %v; want %d", k, got, there, v)
		}
	}
}

// TestMapCollisions is about the node that holds entries whose hashes are equal.
func TestMapCollisions(t *testing.T) {
	const below = hashBits + 1
	var n *node[int, int]
	for k := range 5 {
		n, _ = n.with(7, below, slot[int, int]{key: k, value: k})
	}
	was := n
	n, _ = n.with(7, below, slot[int, int]{key: 2, value: 9})
	n = n.without(7, below, 4)
	for k, want := range []int{0, 1, 9, 3} {
		if got, there := n.get(7, below, k); got != want || !there {
			t.Errorf("%d: %d, want %d", k, got, want)
		}
	}
	changed := map[int]int{}
	differ(was, n, below, func(k, _, is int) { changed[k] = is })
	if !maps.Equal(changed, map[int]int{2: 9, 4: 0}) {
		t.Errorf("differences: %v", changed)
	}
	for k := range 4 {
		n = n.without(7, below, k)
	}
	if n != nil {
		t.Errorf("%v is left", n)
	}
}
