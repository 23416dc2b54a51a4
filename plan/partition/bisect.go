package partition

import "math/rand/v2"

// bisections is how many assignments are tried for each bisection.
const bisections = 4

// bisect makes a first assignment where nothing is fixed and nothing apart: it
// cuts the graph in two, and each half again.
func (p *problem) bisect(rng *rand.Rand) *assignment {
	part := make([]int32, p.len())
	nodes := make([]int32, p.len())
	for i := range nodes {
		nodes[i] = int32(i)
	}
	p.halve(rng, nodes, 0, p.parts, part, make([]int32, p.len()))
	return newAssignment(p, part)
}

// halve assigns nodes to parts partitions from first on. place is scratch
// memory.
func (p *problem) halve(rng *rand.Rand, nodes []int32, first, parts int, part, place []int32) {
	if parts == 1 {
		for _, v := range nodes {
			part[v] = int32(first)
		}
		return
	}
	left := parts / 2
	sub := p.within(nodes, place)
	sub.parts, sub.shares = 2, []int64{int64(left), int64(parts - left)}
	var best *assignment
	for range bisections {
		a := sub.grow(rng, sub.fixed)
		a.refine(rng)
		if best == nil || a.over < best.over || a.over == best.over && a.cut < best.cut {
			best = a
		}
	}
	var halves [2][]int32
	for i, q := range best.part {
		halves[q] = append(halves[q], nodes[i])
	}
	for q, need := range [2]int{left, parts - left} { // each partition needs a node
		for len(halves[q]) < need {
			other := halves[1-q]
			halves[q], halves[1-q] = append(halves[q], other[len(other)-1]), other[:len(other)-1]
		}
	}
	p.halve(rng, halves[0], first, left, part, place)
	p.halve(rng, halves[1], first+left, parts-left, part, place)
}

// within returns the subproblem of some nodes, without fixed nodes and apart
// sets.
func (p *problem) within(nodes, place []int32) *problem {
	sub := &problem{load: make([]int64, len(nodes)), fixed: make([]int32, len(nodes)), sets: make([][]int32, len(nodes)), parts: p.parts, limit: p.limit}
	for i := range place {
		place[i] = -1
	}
	for i, v := range nodes {
		sub.load[i], sub.fixed[i], place[v] = p.load[v], -1, int32(i)
	}
	sub.x = fold(len(nodes), func(add func(a, b int32, w int64)) {
		for i, v := range nodes {
			to, w := p.x.of(int(v))
			for j, u := range to {
				if u > v && place[u] >= 0 {
					add(int32(i), place[u], w[j])
				}
			}
		}
	})
	return sub
}
