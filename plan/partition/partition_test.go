package partition

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// cutWell cuts a graph and fails unless the result holds to Check, and is the
// same again.
func cutWell(t *testing.T, g *Graph, o Options) Result {
	t.Helper()
	r, err := Partition(g, o)
	if err != nil {
		t.Fatalf("%d partitions: %v", o.Partitions, err)
	}
	if err := Check(g, o, r); err != nil {
		t.Fatalf("%d partitions: %v", o.Partitions, err)
	}
	if again, err := Partition(g, o); err != nil || !slices.Equal(again.Of, r.Of) {
		t.Fatalf("%d partitions: another result the second time (%v)", o.Partitions, err)
	}
	return r
}

// TestProperties: on networks of many kinds every switch is in one partition,
// none is empty or too heavy, and all that the result says of itself is so.
func TestProperties(t *testing.T) {
	m := must(t)
	for name, g := range map[string]*Graph{
		"fat tree": m(FatTreeOf(6)), "hub": m(HubAndSpoke(2, 6, 4)), "ring": m(Ring(30)), "grid": m(Grid(9, 7)),
		"waxman": m(Waxman(80, 0.1, 0.3, 3)), "pieces": m(FatTree(5, 0, 2, 3)), "one": m(Grid(1, 1)), "loads": loaded(t, 60, 7),
	} {
		for _, p := range []int{1, 2, 3, 4, 7, len(g.Switches)} {
			if p > len(g.Switches) {
				continue
			}
			for _, method := range []string{Auto, ByCut} {
				t.Run(fmt.Sprintf("%s/%d/%s", name, p, method), func(t *testing.T) {
					o := Options{Partitions: p, Method: method, Tolerance: 0.3, Seed: 1, Rounds: 2}
					if name == "loads" {
						o.Tolerance = 2
						if p == len(g.Switches) {
							o.Tolerance = 50
						}
					}
					r := cutWell(t, g, o)
					if p == 1 && (r.Cut != 0 || len(r.Borders) != 0 || !r.Symmetric) {
						t.Errorf("one partition: %+v", r)
					}
				})
			}
		}
	}
}

// loaded is a random connected network with loads and weights of all sizes, some
// 0, parallel links and links of switches to themselves.
func loaded(t *testing.T, n int, seed uint64) *Graph {
	rng := rand.New(rand.NewPCG(seed, 1))
	switches := make([]Switch, n)
	var links []Link
	for i := range switches {
		switches[i] = Switch{DPID: dpids(uint64(i*i + 1))[0], Load: rng.Int64N(20)}
		if i > 0 {
			links = append(links, Link{i, rng.IntN(i), rng.Int64N(5)})
		}
		links = append(links, Link{i, rng.IntN(n), rng.Int64N(100)})
		if i%7 == 0 {
			links = append(links, Link{i, i, 50}, links[len(links)-1])
		}
	}
	return must(t)(New(switches, links))
}

// TestConnected: nothing that is connected is torn apart for a smaller cut.
func TestConnected(t *testing.T) {
	m := must(t)
	for name, g := range map[string]*Graph{"ring": m(Ring(40)), "grid": m(Grid(8, 8)), "waxman": m(Waxman(100, 0.1, 0.3, 5))} {
		for _, p := range []int{2, 4, 5} {
			if r := cutWell(t, g, Options{Partitions: p, Method: ByCut, Tolerance: 0.05}); !r.Connected() {
				t.Errorf("%s in %d partitions: %+v, want each in one piece", name, p, r.Parts)
			}
		}
	}
}

// TestKnownCuts: cuts whose least weight is known.
func TestKnownCuts(t *testing.T) {
	m := must(t)
	for _, c := range []struct {
		name string
		g    *Graph
		p    int
		most int64
	}{
		{"ring in 4", m(Ring(40)), 4, 4},
		{"grid in 2", m(Grid(16, 16)), 2, 16},
		{"grid in 4", m(Grid(16, 16)), 4, 32},
		{"grid in 16", m(Grid(16, 16)), 16, 96},
		{"fat tree in 2", m(FatTreeOf(8)), 2, 64},
	} {
		if r := cutWell(t, c.g, Options{Partitions: c.p, Method: ByCut, Tolerance: 0.05, Rounds: 4}); r.Cut > c.most {
			t.Errorf("%s: cut %d, want at most %d", c.name, r.Cut, c.most)
		}
	}
}

// planted is a network of so many groups, each with many links inside and few to
// the others, and the group of each switch.
func planted(t *testing.T, groups, each int, seed uint64) (*Graph, []int) {
	rng := rand.New(rand.NewPCG(seed, 9))
	n := groups * each
	switches, of := make([]Switch, n), make([]int, n)
	var links []Link
	for i := range n {
		switches[i] = Switch{DPID: dpids(uint64(i + 1))[0], Load: 1}
		of[i] = i / each
		for j := range i {
			switch {
			case of[j] == of[i] && rng.Float64() < 0.4:
				links = append(links, Link{j, i, 1})
			case of[j] != of[i] && rng.Float64() < 0.5/float64(each):
				links = append(links, Link{j, i, 1})
			}
		}
	}
	return must(t)(New(switches, links)), of
}

// TestPlanted: groups that were planted are found, whatever the numbers of the
// switches.
func TestPlanted(t *testing.T) {
	for seed := range uint64(4) {
		g, of := planted(t, 5, 24, seed)
		check := func(g *Graph, of []int) {
			t.Helper()
			r := cutWell(t, g, Options{Partitions: 5, Seed: seed, Rounds: 4})
			for i := range of {
				for j := range i {
					if (of[i] == of[j]) != (r.Of[i] == r.Of[j]) {
						t.Fatalf("seed %d: switches %d and %d: groups %d and %d, partitions %d and %d", seed, i, j, of[i], of[j], r.Of[i], r.Of[j])
					}
				}
			}
		}
		check(g, of)
		other, to := permuted(t, g, rand.New(rand.NewPCG(seed, 3)))
		moved := make([]int, len(of))
		for i, at := range to {
			moved[at] = of[i]
		}
		check(other, moved)
	}
}

// TestScaling: all weights or all loads many times over change nothing.
func TestScaling(t *testing.T) {
	for seed := range uint64(3) {
		g := loaded(t, 50, seed)
		o := Options{Partitions: 4, Tolerance: 0.3, Seed: seed, Rounds: 2}
		want := cutWell(t, g, o)
		scaled := &Graph{Switches: slices.Clone(g.Switches), Links: slices.Clone(g.Links)}
		for i := range scaled.Links {
			scaled.Links[i].Weight *= 1000
		}
		got := cutWell(t, scaled, o)
		if !slices.Equal(got.Of, want.Of) || got.Cut != 1000*want.Cut {
			t.Errorf("seed %d: weights times 1000: cut %d, want 1000 times %d", seed, got.Cut, want.Cut)
		}
		tree := must(t)(FatTreeOf(4))
		before := cutWell(t, tree, Options{Partitions: 3, Tolerance: 0.1})
		for i := range tree.Switches {
			tree.Switches[i].Load = 77
		}
		if after := cutWell(t, tree, Options{Partitions: 3, Tolerance: 0.1}); !slices.Equal(after.Of, before.Of) {
			t.Error("loads times 77 give other partitions")
		}
	}
}

// TestNoLoad: where no switch has a load their numbers are balanced.
func TestNoLoad(t *testing.T) {
	g := must(t)(Ring(12))
	for i := range g.Switches {
		g.Switches[i].Load = 0
	}
	for _, p := range cutWell(t, g, Options{Partitions: 4}).Parts {
		if p.Switches != 3 {
			t.Errorf("%d switches, want 3", p.Switches)
		}
	}
}
