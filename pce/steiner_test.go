package pce

import (
	"math/bits"
	"math/rand/v2"
	"slices"
	"testing"
)

// span returns the cost and the number of leaves of a set of branches, false if they are no tree
// that joins the terminals, without ends that join nothing.
func span(f *forest, chosen uint, terminals []int) (cost uint64, leaves int, ok bool) {
	sets, degree := newSets(len(f.at)), make([]int, len(f.at))
	for i, b := range f.branches {
		if chosen&(1<<i) == 0 {
			continue
		}
		if !sets.join(b.a, b.b) {
			return 0, 0, false
		}
		degree[b.a]++
		degree[b.b]++
		cost += b.cost
	}
	for n, d := range degree {
		if d == 1 {
			leaves++
		}
		if d == 1 && !slices.Contains(terminals, n) || d > 0 && sets.root(n) != sets.root(terminals[0]) {
			return 0, 0, false
		}
	}
	for _, t := range terminals {
		if sets.root(t) != sets.root(terminals[0]) {
			return 0, 0, false
		}
	}
	return cost, leaves, true
}

// TestSteinerTree: on random networks, a tree spans its terminals without a loop or loose end and costs
// at most 2(1-1/l) times the least, of a tree of l leaves that is found by trying all.
func TestSteinerTree(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 4))
	found, none, dearer := 0, 0, 0
	for range 2000 {
		g := randomGraph(t, r, 4+r.IntN(5), 6+r.IntN(7))
		terminals := r.Perm(g.Nodes)[:2+r.IntN(3)]
		d := &Demand{Bandwidth: pick(r, uint64(0), 20), Setup: 7, Hold: 7, ExcludeAny: pick(r, uint64(0), 0, 1)}
		f, err := g.branches(d, terminals)
		if err != nil {
			t.Fatal(err)
		}
		var best uint64
		leaves := 0
		for chosen := range uint(1) << len(f.branches) {
			if bits.OnesCount(chosen) >= g.Nodes {
				continue
			}
			if cost, l, ok := span(f, chosen, terminals); ok && (leaves == 0 || cost < best || cost == best && l < leaves) {
				best, leaves = cost, l
			}
		}
		tree, err := g.SteinerTree(d, terminals)
		star, err2 := g.StarTree(d, terminals, -1, r)
		if (err == nil) != (leaves > 0) || (err2 == nil) != (err == nil) {
			t.Fatalf("%+v: %v, %v; the best costs %d", g.Links, err, err2, best)
		}
		if err != nil {
			none++
			continue
		}
		found++
		for i, got := range []Tree{tree, star} {
			var chosen uint
			for n, b := range f.branches {
				if slices.Contains(got.Cables, b.cable) {
					chosen |= 1 << n
				}
			}
			ends := terminals
			if i == 1 { // its hub may be an end
				for n := range g.Nodes {
					if _, _, ok := span(f, chosen, append(slices.Clone(terminals), n)); ok {
						ends = append(slices.Clone(terminals), n)
					}
				}
			}
			if cost, _, ok := span(f, chosen, ends); !ok || cost != got.Cost || bits.OnesCount(chosen) != len(got.Cables) {
				t.Fatalf("%v for %v in %+v: no tree of that cost: %d %v", got, terminals, f.branches, cost, ok)
			}
		}
		if tree.Cost*uint64(leaves) > 2*uint64(leaves-1)*best {
			t.Fatalf("%v for %v in %+v: the best costs %d, with %d leaves", tree, terminals, f.branches, best, leaves)
		}
		if tree.Cost > best {
			dearer++
		}
	}
	t.Logf("%d trees, %d dearer than the best; %d times none", found, dearer, none)
	if found < 300 || none < 100 {
		t.Error("too little came of it to say anything")
	}
}

func TestTreeErrors(t *testing.T) {
	g := line(t, 1, 1)
	for _, terminals := range [][]int{nil, {1}, {1, 1}, {0, 3}, {-1, 0}} {
		if tree, err := g.SteinerTree(&Demand{}, terminals); err == nil {
			t.Errorf("%v: %v", terminals, tree)
		}
	}
	if tree, err := g.StarTree(&Demand{}, []int{0, 1}, 3, nil); err == nil {
		t.Errorf("hub 3: %v", tree)
	}
	if tree, err := g.StarTree(&Demand{}, []int{0, 1}, 2, nil); err != nil || !slices.Equal(tree.Cables, []int{0, 1}) {
		t.Errorf("hub 2: %v, %v", tree, err)
	}
}
