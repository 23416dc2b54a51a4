package partition

import (
	"math/rand/v2"
	"slices"
)

// tries is how many first assignments the coarsest level gets.
const tries = 8

// mendings is how often torn partitions are mended by force.
const mendings = 3

// rank orders assignments: by the load above the limit, the pieces, and the
// cut.
func (a *assignment) rank(shared []bool) [3]int64 {
	return [3]int64{a.over, int64(a.pieces(shared)), a.cut}
}

// solve finds an assignment that keeps all demands and has little load above
// the limit, few pieces, and a small cut, in this order. shared are the nodes
// that may join partitions and so their pieces; nil: none.
func (p *problem) solve(rng *rand.Rand, rounds int, shared []bool) (*assignment, error) {
	steps := 1000 + 20*p.len()
	if _, err := p.colour(rng, steps); err != nil {
		return nil, err
	}
	var best *assignment
	var bestRank [3]int64
	for i := range rounds {
		a := p.round(rng, steps, coarsestEach(i))
		if a == nil {
			continue
		}
		a.mend(shared, false)
		rank := a.rank(shared)
		for range mendings {
			if rank[1] <= int64(p.parts) {
				break
			}
			b := a.clone()
			b.mend(shared, true)
			b.refine(rng)
			b.mend(shared, false)
			if r := b.rank(shared); slices.Compare(r[:], rank[:]) < 0 {
				a, rank = b, r
			}
		}
		if best == nil || slices.Compare(rank[:], bestRank[:]) < 0 {
			best, bestRank = a, rank
		}
	}
	if best == nil {
		return nil, &Infeasible{Constraint: "apart", Why: "no way was found to keep apart what is to be apart", Remedy: "ask for more partitions, or for fewer switches apart", Search: true}
	}
	return best, nil
}

// roundsFor returns the number of rounds for a network of that many switches
// and links in that many partitions.
func roundsFor(switches, links, parts int) int {
	return min(max(400_000/((switches+links)*(1+parts/32)), 2), 24)
}

// round is one search, from the coarsest level to the finest; nil if it finds no
// first assignment.
func (p *problem) round(rng *rand.Rand, steps, each int) *assignment {
	levels := p.coarsen(rng, each)
	var best *assignment
	coarse := levels[len(levels)-1].problem
	for i := range tries {
		coloured, err := coarse.colour(rng, steps)
		if err != nil {
			continue
		}
		var a *assignment
		if i < tries/2 && p.parts > 2 && !slices.ContainsFunc(coloured, func(q int32) bool { return q >= 0 }) {
			a = coarse.bisect(rng)
		} else {
			a = coarse.grow(rng, coloured)
		}
		a.refine(rng)
		if best == nil || a.over < best.over || a.over == best.over && a.cut < best.cut {
			best = a
		}
	}
	for l := len(levels) - 1; l > 0 && best != nil; l-- {
		part := make([]int32, levels[l-1].len())
		for v := range part {
			part[v] = best.part[levels[l].of[v]]
		}
		best = newAssignment(levels[l-1].problem, part)
		best.refine(rng)
	}
	return best
}
