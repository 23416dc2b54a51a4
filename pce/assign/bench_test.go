package assign

import (
	"math/rand/v2"
	"testing"
)

// carrier returns a network as Topology Zoo has them, with 1.15 cables of 60 Mbit/s or more for a node, and
// demands between random nodes that fill its links to some three quarters where they are fullest.
func carrier(nodes, demands int, fill float64) *Problem {
	r := rand.New(rand.NewPCG(1, uint64(nodes)))
	p := &Problem{Nodes: nodes, PacketBits: 8000}
	join := func(x, y int) {
		cable := len(p.Links)
		p.Links = append(p.Links, Link{From: x, To: y, Cable: cable}, Link{From: y, To: x, Cable: cable})
	}
	for n := range nodes {
		join(n, (n+1)%nodes)
	}
	for range nodes * 3 / 20 {
		if x, y := r.IntN(nodes), r.IntN(nodes); x != y {
			join(x, y)
		}
	}
	for range demands {
		from := r.IntN(nodes)
		p.Demands = append(p.Demands, Demand{From: from, To: (from + 1 + r.IntN(nodes-1)) % nodes, Rate: 1e6 * (0.5 + r.Float64())})
	}
	a := p.Present()
	a.Place() // the capacities are not known yet, so these are shortest paths
	for l := range p.Links {
		c := max(a.Load[l], a.Load[l^1], 60e6)
		p.Links[l].Capacity = c / fill * (0.8 + 0.4*r.Float64())
	}
	return p
}

// BenchmarkAssign places 10,000 demands on a network of the size of Colt's, improves them and finds the
// bound: at most five seconds.
func BenchmarkAssign(b *testing.B) {
	p := carrier(153, 10_000, 0.75)
	for b.Loop() {
		a := p.Present()
		a.Place()
		before := a.MeanDelay()
		a, r := a.Optimise(Terms{Gap: 1e-3, Rounds: 500})
		left := a.Place()
		worst, _ := a.WorstLoad()
		b.ReportMetric(float64(left), "unplaced")
		b.ReportMetric(worst, "worst-load")
		b.ReportMetric(a.MeanDelay()/r.Bound-1, "above-bound")
		b.ReportMetric(before/r.Bound-1, "above-bound-before")
		b.ReportMetric(r.MeanDelay/r.Bound-1, "gap")
		b.ReportMetric(float64(r.Rounds), "rounds")
	}
}
