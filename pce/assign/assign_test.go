package assign

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// random returns a small problem: a ring with chords, some links of which nothing is known, closed or slow,
// and demands with constraints.
func random(r *rand.Rand, nodes, demands int) *Problem {
	p := &Problem{Nodes: nodes, PacketBits: 8000}
	join := func(x, y int) {
		cable := len(p.Links)
		for range 2 {
			l := Link{From: x, To: y, Cable: cable, Capacity: float64(5+r.IntN(10)) * 1e6, Delay: float64(r.IntN(5)) * 1e-3, Latency: float64(r.IntN(5)) * 1e-3}
			if r.IntN(12) == 0 {
				l.Capacity = 0
			}
			l.Closed = r.IntN(20) == 0
			if r.IntN(3) == 0 {
				l.Risks = []int{r.IntN(3)}
			}
			p.Links = append(p.Links, l)
			x, y = y, x
		}
	}
	for n := range nodes {
		join(n, (n+1)%nodes)
	}
	for range nodes / 2 {
		if x, y := r.IntN(nodes), r.IntN(nodes); x != y {
			join(x, y)
		}
	}
	for i := range demands {
		d := Demand{From: r.IntN(nodes), Rate: float64(1+r.IntN(4)) * 1e6, Priority: r.IntN(3)}
		d.To = (d.From + 1 + r.IntN(nodes-1)) % nodes
		switch r.IntN(5) {
		case 0:
			d.MaxHops = 1 + r.IntN(nodes)
		case 1:
			d.MaxDelay = float64(1+r.IntN(12)) * 1e-3
		case 2:
			d.Avoid = make([]bool, len(p.Links))
			d.Avoid[r.IntN(len(p.Links))] = true
		case 3:
			if i > 0 {
				d.Apart = []Apart{{r.IntN(i), r.IntN(2) == 0, r.IntN(2) == 0}}
			}
		}
		p.Demands = append(p.Demands, d)
	}
	return p
}

// verify fails if a path does not meet its demand, or loads are wrong or too large.
func verify(t *testing.T, a *Assignment) {
	t.Helper()
	load := make([]float64, len(a.p.Links))
	for i, path := range a.Paths {
		d := a.p.Demands[i]
		at, delay := d.From, 0.0
		for _, l := range path {
			k := a.p.Links[l]
			if k.From != at || k.Closed || d.Avoid != nil && d.Avoid[l] {
				t.Fatalf("demand %d uses link %d from %d at %d", i, l, k.From, at)
			}
			at, delay = k.To, delay+k.Latency
			load[l] += d.Rate
		}
		if len(path) > 0 && (at != d.To || d.MaxHops > 0 && len(path) > d.MaxHops || d.MaxDelay > 0 && delay > d.MaxDelay+1e-9) {
			t.Fatalf("demand %d: path %v ends at %d after %v s", i, path, at, delay)
		}
		for _, x := range d.Apart {
			other := a.p.Demands[x.Demand]
			for _, l := range path {
				for _, m := range a.Paths[x.Demand] {
					k, o := a.p.Links[l], a.p.Links[m]
					node := x.Nodes && k.To == o.To && k.To != d.To && o.To != other.To
					risk := x.Risks && slices.ContainsFunc(k.Risks, func(n int) bool { return slices.Contains(o.Risks, n) })
					if k.Cable == o.Cable || node || risk {
						t.Fatalf("demands %d and %d share something of links %d and %d", i, x.Demand, l, m)
					}
				}
			}
		}
	}
	for l, sum := range load {
		if math.Abs(sum-a.Load[l]) > 1e-3 || !a.p.fits(l, sum, 0) {
			t.Fatalf("link %d has load %v, said to be %v, of %v", l, sum, a.Load[l], a.p.Links[l].Capacity)
		}
	}
}

// least returns the least mean delay of all assignments that give the demands that have a path
// one, by trying all.
func least(a *Assignment) float64 {
	p := a.p
	best := math.Inf(1)
	try := p.Present()
	for i := range try.Paths {
		try.take(i)
	}
	var place func(i int)
	var walk func(i, at int, path []int, seen map[int]bool)
	walk = func(i, at int, path []int, seen map[int]bool) {
		d := &p.Demands[i]
		if at == d.To {
			if p.within(d, path) && try.allowed(i, path) {
				try.put(i, slices.Clone(path))
				place(i + 1)
				try.take(i)
			}
			return
		}
		for l, k := range p.Links {
			if k.From == at && !seen[k.To] && !k.Closed && !(d.Avoid != nil && d.Avoid[l]) && p.fits(l, try.Load[l], d.Rate) {
				seen[k.To] = true
				walk(i, k.To, append(path, l), seen)
				delete(seen, k.To)
			}
		}
	}
	place = func(i int) {
		switch {
		case i == len(p.Demands):
			best = min(best, try.MeanDelay())
		case len(a.Paths[i]) == 0:
			place(i + 1)
		default:
			walk(i, p.Demands[i].From, nil, map[int]bool{p.Demands[i].From: true})
		}
	}
	place(0)
	return best
}

// The bound is no more than the optimum, which is no more than what Optimise reaches; that is
// the optimum nearly always, and each step on the way is no worse than the one before.
func TestOptimum(t *testing.T) {
	same, count, sum := 0, 0, 0.0
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 1))
		p := random(r, 4+r.IntN(2), 2+r.IntN(3))
		if err := p.Check(); err != nil {
			t.Fatal(err)
		}
		a := p.Present()
		a.Place()
		verify(t, a)
		if a.Placed() == 0 {
			continue
		}
		start := a.MeanDelay()
		a, x := a.Optimise(Terms{Gap: 1e-6, Rounds: 1000})
		verify(t, a)
		ours, optimum := a.MeanDelay(), least(a)
		if x.Bound > optimum*(1+1e-9) || optimum > ours*(1+1e-9) || ours > start*(1+1e-9) || x.Bound > x.MeanDelay*(1+1e-9) || x.MeanDelay > ours*(1+1e-9) {
			t.Fatalf("seed %d: bound %v, relaxed %v, optimum %v, ours %v, at first %v", seed, x.Bound, x.MeanDelay, optimum, ours, start)
		}
		if count++; ours < optimum*(1+1e-6) || ours == optimum {
			same++
		} else {
			sum += ours/optimum - 1
		}
	}
	if same*100 < count*99 || sum/float64(count) > 0.02 {
		t.Errorf("%d of %d are optimal, the others add up to %.3f above", same, count, sum)
	}
}

// The mean delay falls with each round of flow deviation and with each move, and flow deviation
// closes the gap.
func TestMonotone(t *testing.T) {
	for seed := range uint64(20) {
		p := carrier(20, 200, 0.6+float64(seed)/60)
		a := p.Present()
		a.Place()
		r := a.relaxation()
		for range 60 {
			was, low := r.total, r.low
			if r.step(); r.total > was*(1+1e-12) || r.low < low || r.low > r.total {
				t.Fatalf("seed %d: round %d: %v after %v, bound %v after %v", seed, r.Rounds, r.total, was, r.low, low)
			}
		}
		if gap := 1 - r.low/r.total; gap > 5e-3 {
			t.Errorf("seed %d: the gap is %v", seed, gap)
		}
		for range 3 {
			for i := range a.Paths {
				was := a.p.total(a.Load)
				gain := a.improve(i, 0)
				if now := a.p.total(a.Load); now > was*(1+1e-12) || math.Abs(was-now-gain) > 1e-6*was {
					t.Fatalf("seed %d: demand %d: %v after %v, said to gain %v", seed, i, now, was, gain)
				}
			}
		}
		verify(t, a)
	}
}

// Moves lead from one assignment to the other; no link holds too much on the way, and what
// is apart stays apart.
func TestMoves(t *testing.T) {
	made := 0
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 3))
		p := random(r, 8, 12)
		a := p.Present()
		a.Place()
		for i := range p.Demands { // any paths that meet the demands
			d := &p.Demands[i]
			d.Path = a.Paths[i]
			d.Fixed = r.IntN(8) == 0
		}
		for l := range p.Links {
			if c := &p.Links[l].Capacity; *c > 0 {
				*c = max(a.Load[l], *c*(0.5+r.Float64()))
			}
		}
		before, to := p.Present(), p.Present()
		to, _ = to.Optimise(Terms{Least: 1e-3, Gap: 1e-3, Rounds: 100})
		verify(t, to)
		atOnce := 1 + r.IntN(3)
		gain := 0.0
		now := p.Present()
		for _, step := range to.Moves(atOnce) {
			if len(step) == 0 || len(step) > atOnce {
				t.Fatalf("seed %d: a step of %d moves", seed, len(step))
			}
			held := slices.Clone(now.Load)
			for _, m := range step {
				if !slices.Equal(now.Paths[m.Demand], m.From) || p.Demands[m.Demand].Fixed {
					t.Fatalf("seed %d: %+v from %v", seed, m, now.Paths[m.Demand])
				}
				for _, l := range m.To {
					if !slices.Contains(m.From, l) {
						held[l] += p.Demands[m.Demand].Rate
					}
				}
				now.Set(m.Demand, m.To)
				gain += m.Gain
				made++
			}
			for l, sum := range held {
				if !p.fits(l, sum, 0) {
					t.Fatalf("seed %d: link %d holds %v of %v", seed, l, sum, p.Links[l].Capacity)
				}
			}
			verify(t, now)
		}
		if math.Abs(before.MeanDelay()-now.MeanDelay()-gain) > 1e-9 || math.Abs(now.MeanDelay()-to.MeanDelay()) > 1e-12 {
			t.Errorf("seed %d: %v after %v, want %v; moves gain %v", seed, now.MeanDelay(), before.MeanDelay(), to.MeanDelay(), gain)
		}
	}
	if made < 100 {
		t.Errorf("%d moves", made)
	}
}

// What cannot be is refused.
func TestCheck(t *testing.T) {
	for name, spoil := range map[string]func(p *Problem){
		"packets":    func(p *Problem) { p.PacketBits = 0 },
		"node":       func(p *Problem) { p.Links[0].To = 9 },
		"loop":       func(p *Problem) { p.Links[0].To = p.Links[0].From },
		"cable":      func(p *Problem) { p.Links[0].Cable = -1 },
		"capacity":   func(p *Problem) { p.Links[0].Capacity = math.NaN() },
		"end":        func(p *Problem) { p.Demands[0].To = p.Demands[0].From },
		"rate":       func(p *Problem) { p.Demands[0].Rate = 0 },
		"hops":       func(p *Problem) { p.Demands[0].MaxHops = -1 },
		"avoid":      func(p *Problem) { p.Demands[0].Avoid = []bool{true} },
		"apart":      func(p *Problem) { p.Demands[0].Apart = []Apart{{Demand: 0}} },
		"path":       func(p *Problem) { p.Demands[0].Path = []int{len(p.Links)} },
		"path's end": func(p *Problem) { p.Demands[0].From, p.Demands[0].To, p.Demands[0].Path = 0, 2, []int{0} },
	} {
		p := random(rand.New(rand.NewPCG(1, 1)), 4, 2)
		if err := p.Check(); err != nil {
			t.Fatal(err)
		}
		if spoil(p); p.Check() == nil {
			t.Errorf("%s is not refused", name)
		}
	}
}

// The more important demands are placed first, and one for which there is no room has no path.
func TestPriority(t *testing.T) {
	p := &Problem{Nodes: 2, PacketBits: 8000, Links: []Link{{From: 0, To: 1, Capacity: 10e6}},
		Demands: []Demand{{To: 1, Rate: 6e6, Priority: 7}, {To: 1, Rate: 5e6, Priority: 3}, {To: 1, Rate: 5e6, Priority: 3}}}
	a := p.Present()
	if left := a.Place(); left != 1 || a.Paths[0] != nil {
		t.Errorf("%d are left, paths %v", left, a.Paths)
	}
	if share, link := a.WorstLoad(); share != 1 || link != 0 || math.IsInf(a.MeanDelay(), 0) || a.MeanLoad() != 1 {
		t.Errorf("link %d has load %v, mean delay %v", link, share, a.MeanDelay())
	}
}
