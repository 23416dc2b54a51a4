package pce

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// TestWidestPair compares, on random networks, what is free on the narrowest link of a pair with that of all pairs.
func TestWidestPair(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 7))
	narrow := func(g *Graph, list ...Path) (free uint64) {
		free = 1 << 62
		for _, l := range slices.Concat(list...) {
			free = min(free, g.Links[l].Free(Priorities-1))
		}
		return free
	}
	found := 0
	for range 3000 {
		g := randomGraph(t, r, 3+r.IntN(4), 5+r.IntN(7))
		d := &Demand{From: 0, To: g.Nodes - 1, Minimise: Widest, Setup: Priorities - 1, Hold: Priorities - 1}
		best, there := uint64(0), false
		for _, p := range everyPath(g, d.From, d.To) {
			other := *d
			other.Apart = []Apart{{From: p, Cables: true}}
			for _, q := range everyPath(g, d.From, d.To) {
				if d.Verify(g, p) == nil && other.Verify(g, q) == nil {
					best, there = max(best, narrow(g, p, q)), true
				}
			}
		}
		got, err := g.Pair(d, Apart{})
		if (err == nil) != there {
			t.Fatalf("%+v: %v, %v; there is one: %v", g.Links, got, err, there)
		}
		if err != nil {
			continue
		}
		if is := narrow(g, got[0].Path, got[1].Path); is != best {
			t.Fatalf("%+v: %v has %d free, but there is one with %d", g.Links, got, is, best)
		}
		found++
	}
	if found < 500 {
		t.Errorf("%d pairs: too few to say anything", found)
	}
}
