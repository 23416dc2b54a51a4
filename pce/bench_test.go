package pce

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// carrier returns a network of nodes in a ring with chords, four links a node.
func carrier(b *testing.B, nodes int) *Graph {
	r := rand.New(rand.NewPCG(5, 5))
	var links []Link
	for c := range 2 * nodes {
		from, to := c%nodes, (c+1)%nodes
		if c >= nodes {
			if to = r.IntN(nodes); to == from {
				to = (from + 2) % nodes
			}
		}
		delay, cost := 100+r.Uint32N(5000), 1+r.Uint32N(100)
		for range 2 {
			l := Link{From: from, To: to, Cable: c, Cost: cost, Delay: delay, Capacity: 10_000_000, Colours: r.Uint64N(16), Risks: []int{c / 10}}
			l.Booked[4] = r.Uint64N(9_000_000)
			links = append(links, l)
			from, to = to, from
		}
	}
	g, err := NewGraph(nodes, links)
	if err != nil {
		b.Fatal(err)
	}
	return g
}

// BenchmarkFind computes paths in a network of 1,000 nodes and 2,000 cables.
func BenchmarkFind(b *testing.B) {
	g := carrier(b, 1000)
	for name, d := range map[string]Demand{
		"cost":             {Setup: 7, Hold: 7},
		"bandwidth":        {Setup: 7, Hold: 7, Bandwidth: 1_000_000},
		"bandwidth+delay":  {Setup: 7, Hold: 7, Bandwidth: 1_000_000, MaxDelay: 20_000},
		"delay+hops":       {Setup: 7, Hold: 7, Bandwidth: 1_000_000, MaxDelay: 25_000, MaxHops: 9},
		"colours+risks":    {Setup: 7, Hold: 7, ExcludeAny: 1, ExcludeRisks: []int{3, 5, 7}},
		"none: no such bw": {Setup: 7, Hold: 7, Bandwidth: 20_000_000},
	} {
		b.Run(name, func(b *testing.B) {
			found := 0
			for i := range b.N {
				d.From, d.To = i*7%1000, (i*13+500)%1000
				if d.From == d.To {
					d.To = (d.To + 1) % 1000
				}
				if _, err := g.Find(&d); err == nil {
					found++
				}
			}
			b.ReportMetric(float64(found)/float64(b.N), "found/op")
		})
	}
}

// BenchmarkPair computes disjoint pairs in the same network.
func BenchmarkPair(b *testing.B) {
	g := carrier(b, 1000)
	for name, kinds := range map[string]Apart{"cables": {Cables: true}, "nodes": {Nodes: true}, "risks": {Cables: true, Risks: true}} {
		b.Run(name, func(b *testing.B) {
			for i := range b.N {
				if _, err := g.Pair(&Demand{From: i * 7 % 1000, To: (i*7 + 500) % 1000, Setup: 7, Hold: 7}, kinds); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkTree joins ends in the same network.
func BenchmarkTree(b *testing.B) {
	g := carrier(b, 1000)
	for _, ends := range []int{3, 10, 50} {
		b.Run(fmt.Sprint(ends), func(b *testing.B) {
			terminals := make([]int, ends)
			for i := range terminals {
				terminals[i] = i * 1000 / ends
			}
			for range b.N {
				if _, err := g.SteinerTree(&Demand{Setup: 7, Hold: 7}, terminals); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
