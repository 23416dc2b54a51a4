package place

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
)

// boundsHold checks that no bound is above the optimum, whichever placement it
// begins with.
func boundsHold(t *testing.T, name string, p *problem, optimum float64) {
	t.Helper()
	if b := p.atLeast(); b > optimum*(1+1e-9)+1e-9 {
		t.Errorf("%s: bound %g of an optimum of %g", name, b, optimum)
	}
	d := newDice(1, 1)
	for try := range 4 {
		at := make([]int32, p.n)
		for k := range at {
			at[k] = int32(d.below(min(try+1, p.s)))
		}
		if b := p.atLeastBeside(at); b > optimum*(1+1e-9)+1e-9 {
			t.Errorf("%s: bound %g of an optimum of %g, from %v", name, b, optimum, at)
		}
	}
}

// tight makes an instance of equal servers that are nearly full, with much
// traffic, and a few shards that are to be apart.
func tight(seed uint64) *Instance {
	r := rand.New(rand.NewPCG(seed, 11))
	n, servers := 6+r.IntN(2), 2+r.IntN(2)
	in := &Instance{}
	var cpu int64
	for i := range n {
		s := Shard{Name: fmt.Sprint("shard", i), CPU: int64(2 + r.IntN(3)), Memory: 1}
		if seed%3 == 0 {
			s.Class = []Class{RealTime, Compute, NoClass, NoClass}[r.IntN(4)]
		}
		if seed%5 == 0 {
			s.Domain = []string{"", "a", "b", "c"}[r.IntN(4)]
		}
		cpu += s.CPU
		in.Shards = append(in.Shards, s)
	}
	for s := range servers {
		in.Servers = append(in.Servers, Server{Name: fmt.Sprint("server", s), CPU: cpu/int64(servers) + 2, Memory: int64(n)})
	}
	for a := range n {
		for b := range a {
			if r.IntN(3) > 0 {
				in.Edges = append(in.Edges, Edge{b, a, float64(1 + r.IntN(9))})
			}
		}
	}
	if seed%2 == 0 {
		in.Apart = append(in.Apart, []int{0, 1}, []int{2, 3})
	}
	return in
}

// TestBounds: bounds are below what trying everything finds, and not by much.
func TestBounds(t *testing.T) {
	shares, n := 0.0, 0
	for seed := range uint64(120) {
		in := tight(seed)
		best, any := bruteForce(in)
		if !any || best == 0 {
			continue
		}
		p := compile(in)
		boundsHold(t, fmt.Sprint("seed ", seed), p, best)
		shares, n = shares+p.atLeast()/best, n+1
	}
	if n < 60 || shares/float64(n) < 0.7 {
		t.Errorf("%d instances, of whose optima bounds are %.3f", n, shares/float64(n))
	}
}

// TestBoundOfLarge: of a large instance with much traffic between everything, the
// eigenvalues say more than what is beside each node, and what has to be routed
// between what is apart says more than both where traffic is thin.
func TestBoundOfLarge(t *testing.T) {
	for _, c := range []struct {
		config GenerateConfig
		gap    float64 // at most
	}{
		{GenerateConfig{Partitions: 8, Services: 40, Servers: 16, Seed: 1, Edges: 15_000, Background: 9}, 0.35},
		{GenerateConfig{Partitions: 16, Services: 20, Servers: 16, Seed: 1}, 0.7},
	} {
		in := generate(t, c.config)
		s, err := Solve(context.Background(), in, Options{Seed: 1, Runs: 1, Steps: 300_000})
		if err != nil {
			t.Fatal(err)
		}
		if s.Bound <= 0 || s.Gap() > c.gap {
			t.Errorf("%d shards, %d edges: cost %g, bound %g, gap %.3f; want %.2f", len(in.Shards), len(in.Edges), s.Cost, s.Bound, s.Gap(), c.gap)
		}
		if before := compile(in).atLeastOf(); before > s.Bound {
			t.Errorf("bound %g alone, %g with the others", before, s.Bound)
		}
	}
}

// atLeastOf is the bound of the instance itself, with nothing routed.
func (p *problem) atLeastOf() float64 {
	return p.beside(func(a, b int) bool { return true })
}

// A packing leaves no edge with more than it had, the same in both directions,
// and what was routed is no more than what it took.
func TestPackings(t *testing.T) {
	for seed := range uint64(100) {
		p := compile(tight(seed))
		for _, r := range p.packings() {
			took := 0.0
			for a := range p.n {
				for e := p.first[a]; e < p.first[a+1]; e++ {
					b := int(p.to[e])
					if r.w[e] < 0 || r.w[e] > p.w[e] || r.between(b, a) != r.w[e] {
						t.Fatalf("seed %d: %d to %d had %g, is left %g, and %g back", seed, a, b, p.w[e], r.w[e], r.between(b, a))
					}
					took += (p.w[e] - r.w[e]) / 2
				}
			}
			if r.routed < 0 || r.routed > took+1e-9 {
				t.Errorf("seed %d: routed %g over edges of %g", seed, r.routed, took)
			}
		}
	}
}
