package pce

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

func pick[T any](r *rand.Rand, list ...T) T { return list[r.IntN(len(list))] }

// randomGraph returns a small network: cables of two directions, some without one, parallel ones
// among them.
func randomGraph(t testing.TB, r *rand.Rand, nodes, cables int) *Graph {
	t.Helper()
	var links []Link
	for c := range cables {
		a := r.IntN(nodes)
		b := (a + 1 + r.IntN(nodes-1)) % nodes
		risks := []int{}
		if r.IntN(3) == 0 {
			risks = append(risks, r.IntN(4))
		}
		colours := r.Uint64N(8)
		for range 2 {
			l := Link{From: a, To: b, Cable: c, Cost: 1 + r.Uint32N(5), Delay: pick(r, uint32(0), 10, 20, 50), Capacity: 100, Colours: colours, Risks: risks, Drained: r.IntN(20) == 0}
			for range r.IntN(4) {
				l.Booked[r.IntN(Priorities)] += pick(r, uint64(10), 30, 50)
			}
			if r.IntN(15) > 0 {
				links = append(links, l)
			}
			a, b = b, a
		}
	}
	if len(links) < cables {
		for i := range links {
			links[i].Cable %= max(len(links), 1)
		}
	}
	g, err := NewGraph(nodes, links)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// randomDemand returns a demand with some of all conditions.
func randomDemand(r *rand.Rand, g *Graph) *Demand {
	d := &Demand{From: r.IntN(g.Nodes)}
	d.To = (d.From + 1 + r.IntN(g.Nodes-1)) % g.Nodes
	some := func(n int) bool { return r.IntN(n) == 0 }
	if some(2) {
		d.Bandwidth = pick(r, uint64(20), 50, 90)
		d.Setup = uint8(r.IntN(Priorities))
		d.Hold = uint8(r.IntN(int(d.Setup) + 1))
	}
	if some(3) {
		d.MaxDelay = pick(r, uint64(20), 60, 100)
	}
	if some(3) {
		d.MaxHops = 1 + r.IntN(4)
	}
	if some(3) {
		d.Minimise = LeastDelay
	} else if some(3) {
		d.Minimise = Widest
	}
	if some(5) {
		d.IncludeAny = r.Uint64N(8)
	}
	if some(8) {
		d.IncludeAll = 1 << r.IntN(3)
	}
	if some(6) {
		d.ExcludeAny = 1 << r.IntN(3)
	}
	if some(5) {
		d.ExcludeNodes = []int{r.IntN(g.Nodes)}
	}
	if some(5) {
		d.ExcludeCables = []int{r.IntN(g.cables)}
	}
	if some(5) {
		d.ExcludeRisks = []int{r.IntN(4)}
	}
	for range pick(r, 0, 0, 0, 1, 2) {
		v := Via{some(2), r.IntN(g.Nodes)}
		if v.IsCable {
			v.ID = r.IntN(g.cables)
		}
		if !slices.Contains(d.Via, v) {
			d.Via = append(d.Via, v)
		}
	}
	if some(4) {
		if all := everyPath(g, d.From, d.To); len(all) > 0 {
			d.Apart = append(d.Apart, Apart{From: pick(r, all...), Cables: some(2), Nodes: some(2), Risks: some(2)})
		}
	}
	return d
}

// everyPath returns all paths between two nodes that visit none twice.
func everyPath(g *Graph, from, to int) (list []Path) {
	var p Path
	seen := make([]bool, g.Nodes)
	var walk func(n int)
	walk = func(n int) {
		if n == to {
			list = append(list, slices.Clone(p))
			return
		}
		seen[n] = true
		for i := range g.Links {
			if l := &g.Links[i]; l.From == n && !seen[l.To] {
				p = append(p, i)
				walk(l.To)
				p = p[:len(p)-1]
			}
		}
		seen[n] = false
	}
	walk(from)
	return list
}

// rank returns by what paths are compared.
func rank(g *Graph, d *Demand, p Path) [3]uint64 {
	if d.Minimise == LeastDelay {
		return [3]uint64{p.Delay(g), p.Cost(g), uint64(len(p))}
	}
	if d.Minimise == Widest {
		free := uint64(math.MaxUint64)
		for _, l := range p {
			free = min(free, g.Links[l].Free(Priorities-1))
		}
		if free < d.Bandwidth {
			free = 0 // others would lose theirs
		}
		return [3]uint64{math.MaxUint64 - free, p.Cost(g), p.Delay(g)}
	}
	return [3]uint64{p.Cost(g), p.Delay(g), uint64(len(p))}
}

// bestOf returns the best of the paths that meet a demand, by trying all.
func bestOf(g *Graph, d *Demand) (best Path) {
	for _, p := range everyPath(g, d.From, d.To) {
		if d.Verify(g, p) != nil {
			continue
		}
		a, b := rank(g, d, p), [3]uint64{}
		if best != nil {
			b = rank(g, d, best)
		}
		if best == nil || slices.Compare(a[:], b[:]) < 0 {
			best = p
		}
	}
	return best
}
