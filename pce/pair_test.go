package pce

import (
	"errors"
	"math/rand/v2"
	"slices"
	"testing"
)

// bestPair returns the sums of the best pair of paths, by trying all.
func bestPair(g *Graph, d *Demand, kinds Apart) (best []uint64) {
	var right []Path
	for _, p := range everyPath(g, d.From, d.To) {
		if d.Verify(g, p) == nil {
			right = append(right, p)
		}
	}
	for i, p := range right {
		for _, q := range right[:i+1] {
			other := *d
			kinds.From = p
			other.Apart = append(slices.Clone(d.Apart), kinds)
			if other.Verify(g, q) != nil {
				continue
			}
			a, b := rank(g, d, p), rank(g, d, q)
			sum := []uint64{a[0] + b[0], a[1] + b[1]}
			if best == nil || slices.Compare(sum, best) < 0 {
				best = sum
			}
		}
	}
	return best
}

// TestPairIsBest compares, on random networks, what Pair returns with the best of all
// pairs.
func TestPairIsBest(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 2))
	found, none := 0, 0
	for range 8000 {
		g := randomGraph(t, r, 3+r.IntN(4), 5+r.IntN(7))
		d := randomDemand(r, g)
		if d.Minimise == Widest { // see TestWidestPair
			d.Minimise = LeastCost
		}
		kinds := Apart{Nodes: r.IntN(3) == 0, Risks: r.IntN(4) == 0}
		got, err := g.Pair(d, kinds)
		kinds.Cables = true
		polite := *d
		polite.Setup = Priorities - 1
		want := bestPair(g, &polite, kinds)
		if want == nil {
			want = bestPair(g, d, kinds)
		}
		if want == nil {
			e := &Infeasible{}
			if !errors.As(err, &e) {
				t.Fatalf("%+v %+v in %+v: %v, %v, but there is none", d, kinds, g.Links, got, err)
			}
			none++
			continue
		}
		if err != nil {
			t.Fatalf("%+v %+v in %+v: %v, but there is one of %v", d, kinds, g.Links, err, want)
		}
		other := *d
		kinds.From = got[0].Path
		other.Apart = append(slices.Clone(d.Apart), kinds)
		if err := errors.Join(d.Verify(g, got[0].Path), other.Verify(g, got[1].Path)); err != nil {
			t.Fatalf("%+v %+v in %+v: %v: %v", d, kinds, g.Links, got, err)
		}
		a, b := rank(g, d, got[0].Path), rank(g, d, got[1].Path)
		if sum := []uint64{a[0] + b[0], a[1] + b[1]}; !slices.Equal(sum, want) || slices.Compare(a[:], b[:]) > 0 {
			t.Fatalf("%+v %+v in %+v: %v of %v, but there is one of %v", d, kinds, g.Links, got, sum, want)
		}
		found++
	}
	t.Logf("%d found, %d times none", found, none)
	if found < 1000 || none < 1000 {
		t.Error("too little came of it to say anything")
	}
}

// TestPlace: what several demands get together fits into the network; all or none are placed if
// that is asked for; and what fails would fail after the others.
func TestPlace(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 3))
	placed, refused, reordered := 0, 0, 0
	for range 3000 {
		g := randomGraph(t, r, 4+r.IntN(4), 8+r.IntN(8))
		var demands []Demand
		plain := r.IntN(2) == 0
		for range 1 + r.IntN(5) {
			d := randomDemand(r, g)
			d.Bandwidth = pick(r, uint64(20), 50)
			if plain {
				d = &Demand{From: d.From, To: d.To, Bandwidth: pick(r, uint64(40), 90), Setup: 7, Hold: 7}
			}
			if r.IntN(4) == 0 {
				d.Pair = &Apart{Nodes: r.IntN(2) == 0}
			}
			demands = append(demands, *d)
		}
		before := slices.Clone(g.Links)
		results, ok := g.Place(demands, false)
		if !ok || len(results) != len(demands) {
			t.Fatal(results, ok)
		}
		one := true
		state := &Graph{Nodes: g.Nodes, Links: slices.Clone(g.Links), out: g.out, in: g.in, cables: g.cables}
		for setup := range uint8(Priorities) {
			for i := range demands {
				if demands[i].Setup != setup {
					continue
				}
				d := &demands[i]
				if results[i].Err != nil {
					one = false
					if p := bestOf(state, d); p != nil && d.Pair == nil {
						t.Fatalf("%+v: %v, but there is %v", d, results[i].Err, p)
					}
					continue
				}
				for n := range results[i].Routes {
					r := &results[i].Routes[n]
					if err := d.Verify(state, r.Path); err != nil || n > 1 {
						t.Fatalf("%+v: %v: %v", d, results[i], err)
					}
					state.Book(d, r)
				}
				if (len(results[i].Routes) == 2) != (d.Pair != nil) {
					t.Fatalf("%+v: %v", d, results[i])
				}
			}
		}
		all, ok := g.Place(demands, true)
		switch {
		case one && !ok:
			t.Fatalf("%+v: all are placed one by one, but not together", demands)
		case ok && slices.ContainsFunc(all, func(x Result) bool { return x.Err != nil }):
			t.Fatalf("%+v", all)
		case !ok && !slices.ContainsFunc(all, func(x Result) bool { return x.Err != nil }):
			t.Fatalf("%+v: refused without a reason", all)
		case ok && !one:
			reordered++
		case ok:
			placed++
		default:
			refused++
		}
		if !slices.EqualFunc(before, g.Links, func(a, b Link) bool { return a.Booked == b.Booked }) {
			t.Fatal("the graph has changed")
		}
	}
	t.Logf("%d sets placed, %d by another order, %d refused", placed, reordered, refused)
	if placed < 100 || reordered == 0 || refused < 100 {
		t.Error("too little came of it to say anything")
	}
}
