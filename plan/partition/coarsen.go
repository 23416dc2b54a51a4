package partition

import (
	"math/rand/v2"
	"slices"
)

// coarsestEach is the number of nodes per partition at which coarsening stops,
// in one round and the next: few nodes make good first assignments where
// partitions are small, many leave refinement more choice.
func coarsestEach(round int) int { return [...]int{4, 16}[round%2] }

// coarsest is the least number of nodes.
const coarsest = 32

// level is a problem, and its relation to the finer one.
type level struct {
	*problem
	of []int32 // by node of the finer level: its node here
}

// coarsen returns ever coarser problems, the finest first. It merges nodes with
// heavy links between them (Karypis and Kumar, "A fast and high quality
// multilevel scheme for partitioning irregular graphs", SIAM J. Sci. Comput.
// 1998: heavy-edge matching). It does not merge nodes of apart sets with each
// other.
func (p *problem) coarsen(rng *rand.Rand, each int) []level {
	levels := []level{{problem: p}}
	target := max(coarsest, each*p.parts)
	var total, heaviest int64
	for _, w := range p.load {
		total += w
		heaviest = max(heaviest, w)
	}
	most := max(heaviest, 3*total/int64(2*target))
	for {
		fine := levels[len(levels)-1].problem
		if fine.len() <= target {
			return levels
		}
		of, count := fine.match(rng, most)
		if count > fine.len()*19/20 {
			return levels
		}
		levels = append(levels, level{fine.contract(of, count), of})
	}
}

// match pairs each node with the neighbour to which it has the most weight for
// the loads of both; a pair is no heavier than most.
func (p *problem) match(rng *rand.Rand, most int64) ([]int32, int) {
	mate := make([]int32, p.len())
	for i := range mate {
		mate[i] = -1
	}
	for _, v := range rng.Perm(p.len()) {
		if mate[v] >= 0 {
			continue
		}
		best, rating := -1, -1.0
		to, w := p.x.of(v)
		for j, u := range to {
			if mate[u] >= 0 || p.load[v]+p.load[u] > most || !p.mayJoin(int32(v), u) {
				continue
			}
			r := float64(w[j]) * float64(w[j]) / (float64(max(1, p.load[v])) * float64(max(1, p.load[u])))
			if r > rating {
				best, rating = int(u), r
			}
		}
		if best < 0 {
			best = v
		}
		mate[v], mate[best] = int32(best), int32(v)
	}
	of := make([]int32, p.len())
	count := int32(0)
	for v := range of {
		if u := mate[v]; int(u) < v {
			of[v] = of[u]
			continue
		}
		of[v] = count
		count++
	}
	return of, int(count)
}

// mayJoin reports whether two nodes may be merged.
func (p *problem) mayJoin(a, b int32) bool {
	if len(p.sets[a]) > 0 && len(p.sets[b]) > 0 {
		return false
	}
	if p.fixed[a] == p.fixed[b] {
		return true
	}
	// a fixed node and one that is in an apart set could not stay where it is
	return p.fixed[a] < 0 && len(p.sets[a]) == 0 || p.fixed[b] < 0 && len(p.sets[b]) == 0
}

// contract makes the coarser problem.
func (p *problem) contract(of []int32, count int) *problem {
	c := &problem{load: make([]int64, count), fixed: make([]int32, count), sets: make([][]int32, count), nsets: p.nsets, parts: p.parts, limit: p.limit, shares: p.shares}
	for i := range c.fixed {
		c.fixed[i] = -1
	}
	for v, x := range of {
		c.load[x] += p.load[v]
		c.fixed[x] = max(c.fixed[x], p.fixed[v])
		c.sets[x] = slices.Concat(c.sets[x], p.sets[v])
	}
	c.x = fold(count, func(add func(a, b int32, w int64)) {
		for v := range of {
			to, w := p.x.of(v)
			for j, u := range to {
				if int(u) > v && of[v] != of[u] {
					add(of[v], of[u], w[j])
				}
			}
		}
	})
	return c
}
