package place

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/weft-sdn/weft/internal/testwait"
)

// generate makes an instance or fails.
func generate(t testing.TB, c GenerateConfig) *Instance {
	t.Helper()
	in, err := Generate(c)
	if err != nil {
		t.Fatal(err)
	}
	return in
}

// solve solves an instance and has it checked.
func solve(t *testing.T, in *Instance, o Options) *Solution {
	t.Helper()
	if o.Runs == 0 {
		o.Runs = 8 // the proof does the rest
	}
	s, err := Solve(context.Background(), in, o)
	if err != nil {
		t.Fatal(err)
	}
	cost, broken := Check(in, s.Server)
	if len(broken) > 0 || cost != s.Cost || s.Bound > cost {
		t.Fatalf("cost %g, bound %g, checked %g, broken %v", s.Cost, s.Bound, cost, broken)
	}
	return s
}

// TestProvenOptima holds the solver to optima that it has proven before.
func TestProvenOptima(t *testing.T) {
	for _, g := range []struct {
		partitions, services, servers int
		seed                          uint64
		plain                         bool
		cost                          float64
	}{
		{8, 4, 8, 1, false, 17871}, {8, 4, 8, 2, false, 24479}, {8, 4, 8, 3, false, 27968}, {8, 4, 8, 5, false, 25753},
		{8, 4, 8, 1, true, 1124}, {8, 4, 8, 2, true, 3273}, {8, 4, 8, 3, true, 1090}, {8, 4, 8, 4, true, 4729}, {8, 4, 8, 5, true, 0},
	} {
		name := fmt.Sprintf("%d_%d_%d_%d plain %v", g.partitions, g.services, g.servers, g.seed, g.plain)
		in := generate(t, GenerateConfig{Partitions: g.partitions, Services: g.services, Servers: g.servers, Seed: g.seed, Plain: g.plain})
		s := solve(t, in, Options{Seed: 1})
		if !s.Proven || s.Cost != g.cost || s.Bound != g.cost {
			t.Errorf("%s: cost %g, bound %g, proven %v; want %g, proven", name, s.Cost, s.Bound, s.Proven, g.cost)
		}
		boundsHold(t, name, compile(in), s.Cost)
	}
}

// random makes a tiny instance with constraints of all kinds.
func random(seed uint64) *Instance {
	r := rand.New(rand.NewPCG(seed, 7))
	n, servers := 3+r.IntN(4), 2+r.IntN(2)
	in := &Instance{}
	for i := range n {
		s := Shard{Name: fmt.Sprint("shard", i), CPU: int64(1 + r.IntN(5)), Memory: int64(1 + r.IntN(5)), Class: Class(r.IntN(8)), Move: float64(r.IntN(9))}
		if s.Class > Compute {
			s.Class = NoClass
		}
		if r.IntN(6) == 0 {
			s.Servers = []int{r.IntN(servers), r.IntN(servers)}
		}
		if r.IntN(5) == 0 {
			s.Domain = []string{"a", "b"}[r.IntN(2)]
		}
		in.Shards = append(in.Shards, s)
	}
	for s := range servers {
		in.Servers = append(in.Servers, Server{Name: fmt.Sprint("server", s), CPU: int64(6 + r.IntN(10)), Memory: int64(6 + r.IntN(10)), Domain: []string{"", "x", "y"}[r.IntN(3)]})
	}
	pair := func() (int, int) {
		a, b := r.IntN(n), r.IntN(n-1)
		if b >= a {
			b++
		}
		return a, b
	}
	for range n + r.IntN(n) {
		a, b := pair()
		in.Edges = append(in.Edges, Edge{a, b, float64(r.IntN(20))})
	}
	for range r.IntN(3) {
		in.Paths = append(in.Paths, Path{Shards: r.Perm(n)[:2+r.IntN(2)], Weight: float64(r.IntN(5)), Deadline: float64(r.IntN(4))})
	}
	for _, sets := range []*[][]int{&in.Apart, &in.ApartDomains, &in.Together} {
		if a, b := pair(); r.IntN(3) == 0 {
			*sets = append(*sets, []int{a, b})
		}
	}
	if r.IntN(2) == 0 {
		in.Delay = make([][]float64, servers)
		for s := range servers {
			in.Delay[s] = make([]float64, servers)
			for u := range s {
				in.Delay[s][u] = float64(1 + r.IntN(3))
				in.Delay[u][s] = in.Delay[s][u]
			}
		}
	}
	if r.IntN(3) == 0 {
		for range n {
			in.Current = append(in.Current, r.IntN(servers+1)-1)
		}
	}
	return in
}

// bruteForce tries every placement.
func bruteForce(in *Instance) (best float64, any bool) {
	at := make([]int, len(in.Shards))
	best = math.Inf(1)
	for {
		if cost, broken := Check(in, at); len(broken) == 0 {
			best, any = min(best, cost), true
		}
		i := 0
		for ; i < len(at); i++ {
			if at[i]++; at[i] < len(in.Servers) {
				break
			}
			at[i] = 0
		}
		if i == len(at) {
			return best, any
		}
	}
}

// TestBruteForce: what is proven is true, and what is said not to go does not.
func TestBruteForce(t *testing.T) {
	feasible := 0
	for seed := range uint64(200) {
		in := random(seed)
		best, any := bruteForce(in)
		s, err := Solve(context.Background(), in, Options{Seed: seed, Runs: 2, Steps: 2000})
		var infeasible *InfeasibleError
		switch {
		case any && err != nil:
			t.Errorf("seed %d: %v; there is one of cost %g", seed, err, best)
		case any:
			feasible++
			if !s.Proven || s.Cost != best || s.Bound != best {
				t.Errorf("seed %d: cost %g, bound %g, proven %v; want %g", seed, s.Cost, s.Bound, s.Proven, best)
			}
			boundsHold(t, fmt.Sprint("seed ", seed), compile(in), best)
		case !errors.As(err, &infeasible):
			t.Errorf("seed %d: %v, %+v; want infeasible", seed, err, s)
		case !infeasible.Proven || len(infeasible.Conflicts) == 0:
			t.Errorf("seed %d: %v; want a proof and a reason", seed, err)
		}
	}
	if feasible < 60 {
		t.Errorf("only %d of 200 have a placement", feasible)
	}
}

// TestSearchAlone: on small instances the search finds what is proven to be the
// optimum, without the proof.
func TestSearchAlone(t *testing.T) {
	for seed := uint64(1); seed <= 4; seed++ {
		in := generate(t, GenerateConfig{Partitions: 4, Services: 5, Servers: 5, Seed: seed})
		exact := solve(t, in, Options{Seed: 1})
		alone := solve(t, in, Options{Seed: 1, Runs: 24, Conflicts: -1})
		if !exact.Proven || alone.Cost != exact.Cost || alone.Proven && alone.Bound != alone.Cost {
			t.Errorf("seed %d: %g alone, %g, proven %v", seed, alone.Cost, exact.Cost, exact.Proven)
		}
	}
}

func TestDeterministic(t *testing.T) {
	for _, in := range []*Instance{
		generate(t, GenerateConfig{Partitions: 12, Services: 20, Servers: 12, Seed: 3, Edges: 3000}),
		generate(t, GenerateConfig{Partitions: 5, Services: 5, Servers: 5, Seed: 3}),
	} {
		o := Options{Seed: 5, Runs: 3, Steps: 20_000, Workers: 1, Conflicts: -1}
		one := solve(t, in, o)
		o.Workers = 3
		if three := solve(t, in, o); !reflect.DeepEqual(one, three) {
			t.Errorf("cost %g with one worker, %g with three", one.Cost, three.Cost)
		}
		again, err := Generate(GenerateConfig{Partitions: 5, Services: 5, Servers: 5, Seed: 3})
		if err != nil || len(in.Shards) == 25 && !reflect.DeepEqual(in, again) {
			t.Errorf("another instance of the same seed: %v", err)
		}
	}
}

// TestMetamorphic: the optimum does not depend on names and order, grows with
// the weights, and never with the capacity.
func TestMetamorphic(t *testing.T) {
	for seed := uint64(1); seed <= 4; seed++ {
		in := generate(t, GenerateConfig{Partitions: 4, Services: 4, Servers: 4, Seed: seed})
		optimum := solve(t, in, Options{})
		r := rand.New(rand.NewPCG(seed, 1))

		order := r.Perm(len(in.Shards)) // shard i becomes order[i]
		mixed := *in
		mixed.Shards = make([]Shard, len(in.Shards))
		for i, s := range in.Shards {
			mixed.Shards[order[i]] = s
		}
		mixed.Edges, mixed.Paths, mixed.Apart = nil, nil, nil
		for _, e := range in.Edges {
			mixed.Edges = append(mixed.Edges, Edge{order[e.B], order[e.A], e.Weight})
		}
		renamed := func(list []int) (out []int) {
			for _, i := range list {
				out = append(out, order[i])
			}
			return out
		}
		for _, p := range in.Paths {
			p.Shards = renamed(p.Shards)
			slices.Reverse(p.Shards)
			mixed.Paths = append(mixed.Paths, p)
		}
		for _, set := range in.Apart {
			mixed.Apart = append(mixed.Apart, renamed(set))
		}
		if s := solve(t, &mixed, Options{Seed: 9}); s.Cost != optimum.Cost || !s.Proven {
			t.Errorf("seed %d: %g in another order, %g before", seed, s.Cost, optimum.Cost)
		}

		scaled := *in
		scaled.Edges = slices.Clone(in.Edges)
		for k := range scaled.Edges {
			scaled.Edges[k].Weight *= 2.5
		}
		if s := solve(t, &scaled, Options{}); math.Abs(s.Cost-2.5*optimum.Cost) > 1e-6*s.Cost || !s.Proven {
			t.Errorf("seed %d: %g of weights 2.5 times as large, %g before", seed, s.Cost, optimum.Cost)
		}

		larger := *in
		larger.Servers = slices.Clone(in.Servers)
		larger.Servers[0].CPU *= 2
		larger.Servers[0].Memory *= 2
		if s := solve(t, &larger, Options{}); s.Cost > optimum.Cost || !s.Proven {
			t.Errorf("seed %d: %g with more capacity, %g before", seed, s.Cost, optimum.Cost)
		}
	}
}

// TestMoves: with dear moves nothing moves, with cheap ones the optimum is
// found, and the dearer they are the fewer there are.
func TestMoves(t *testing.T) {
	in := generate(t, GenerateConfig{Partitions: 4, Services: 4, Servers: 4, Seed: 1})
	optimum := solve(t, in, Options{})
	silent := *in // of which any placement is an optimum
	silent.Edges = nil
	start, err := Solve(context.Background(), &silent, Options{Runs: 1})
	if err == nil {
		start.Cost, _ = Check(in, start.Server)
	}
	if err != nil || start.Cost == optimum.Cost {
		t.Fatalf("%v, a start of cost %g, the optimum is %g", err, start.Cost, optimum.Cost)
	}
	moved := func(price float64) (*Solution, int) {
		out := *in
		out.Shards = slices.Clone(in.Shards)
		for i := range out.Shards {
			out.Shards[i].Move = price
		}
		out.Current = start.Server
		s := solve(t, &out, Options{})
		n := 0
		for i := range s.Server {
			if s.Server[i] != start.Server[i] {
				n++
			}
		}
		return s, n
	}
	if s, n := moved(1e6); n != 0 || s.Cost != start.Cost {
		t.Errorf("%d dear moves to a cost of %g; want none, %g", n, s.Cost, start.Cost)
	}
	free, many := moved(0)
	if free.Cost != optimum.Cost {
		t.Errorf("cost %g with free moves, the optimum is %g", free.Cost, optimum.Cost)
	}
	if s, n := moved(start.Cost / 20); n > many || s.Cost > start.Cost || s.Latency < optimum.Cost {
		t.Errorf("%d moves to %g, of which %g latency; free ones are %d", n, s.Cost, s.Latency, many)
	}
}

func TestLarge(t *testing.T) {
	in := generate(t, GenerateConfig{Partitions: 16, Services: 20, Servers: 16, Seed: 1, Edges: 4000})
	s := solve(t, in, Options{Runs: 2, Steps: 60_000})
	if s.Bound <= 0 || s.Gap() <= 0 || s.Gap() >= 1 {
		t.Errorf("cost %g, bound %g", s.Cost, s.Bound)
	}
	if trivial := solve(t, in, Options{Runs: 2, Steps: 100}); trivial.Cost < s.Cost {
		t.Errorf("%g with few steps, %g with many", trivial.Cost, s.Cost)
	}
}

// TestStops: the search and the proof end with the context.
func TestStops(t *testing.T) {
	in := generate(t, GenerateConfig{Partitions: 32, Services: 20, Servers: 32, Seed: 1})
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := Solve(ctx, in, Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v of a search that was stopped", err)
	}
	in = generate(t, GenerateConfig{Partitions: 10, Services: 5, Servers: 10, Seed: 1})
	ctx, cancel = context.WithTimeout(context.Background(), testwait.Limit)
	defer cancel()
	s, err := Solve(ctx, in, Options{Runs: 8, Progress: func(p Progress) {
		if p.Phase == "proof" {
			cancel()
		}
	}})
	if err != nil || s.Proven {
		t.Errorf("%v, %+v of a proof that was stopped; want the placement, unproven", err, s)
	}
}

// TestBudget: a proof that runs out of conflicts leaves the placement, with a
// bound, and the solver can be used again.
// ending is a context that ends when it was asked a number of times.
type ending struct {
	context.Context
	left atomic.Int64
}

func (c *ending) Err() error {
	if c.left.Add(-1) < 0 {
		return context.DeadlineExceeded
	}
	return nil
}

// A search that is ended has the best of what it has found, in whichever phase.
func TestEndedSearchKeepsItsBest(t *testing.T) {
	in := generate(t, GenerateConfig{Partitions: 4, Services: 4, Servers: 8, Seed: 1, Plain: true})
	p := compile(in)
	o := Options{Runs: 4, Steps: 20_000, Workers: 1}
	whole, err := heuristic(context.Background(), p, o)
	if err != nil {
		t.Fatal(err)
	}
	ended := 0
	for asked := int64(2); ; asked++ {
		ctx := &ending{Context: context.Background()}
		ctx.left.Store(asked)
		best, err := heuristic(ctx, p, o)
		if err == nil {
			break
		}
		ended++
		if !errors.Is(err, context.DeadlineExceeded) || best.violation > satisfied || best.cost < whole.cost {
			t.Errorf("ended when asked %d times: %v, cost %g, violation %g; the whole search has %g", asked, err, best.cost, best.violation, whole.cost)
		}
	}
	if ended < 5 {
		t.Errorf("it was ended %d times only", ended)
	}
}

func TestBudget(t *testing.T) {
	if testing.Short() { // the race detector's runs: it cannot be stopped without what that calls a race
		return
	}
	in := generate(t, GenerateConfig{Partitions: 10, Services: 5, Servers: 10, Seed: 1})
	for range 2 {
		s := solve(t, in, Options{Conflicts: 500})
		if s.Proven || s.Bound <= 0 || s.Bound >= s.Cost || s.Gap() <= 0 {
			t.Errorf("cost %g, bound %g, proven %v; want no proof with 500 conflicts", s.Cost, s.Bound, s.Proven)
		}
	}
}

// TestInfeasible: what no arithmetic finds is told with what would help.
func TestInfeasible(t *testing.T) {
	in := small() // items of 5, 5, 4, 4, 3, 3 CPUs on servers of 8, 8, 8: 24 in all, and only 5+3 5+3 4+4
	for i, n := range []int64{5, 5, 4, 4, 3, 3} {
		in.Shards[i].CPU = n * 1000
	}
	for s := range in.Servers {
		in.Servers[s].CPU = 8000
	}
	if s := solve(t, in, Options{}); !s.Proven {
		t.Errorf("not proven: %+v", s)
	}
	in.Apart = [][]int{{2, 3}, {0, 1}}
	_, err := Solve(context.Background(), in, Options{})
	var e *InfeasibleError
	if !errors.As(err, &e) || !e.Proven || len(e.Violations) == 0 || e.Nearest == nil {
		t.Fatalf("%v, %+v; want a proof that there is none", err, e)
	}
	for _, want := range []string{"1 of the 2 sets of shards on different servers are too many beside the other constraints: those of firewall/east, southbound/west", "1 more server of 8 CPUs"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%v; want %s", err, want)
		}
	}
}
