package partition

import (
	"math/rand/v2"
	"slices"
)

// tries is how many first assignments the coarsest level gets.
const tries = 8

// solve finds an assignment that breaks no demand, with as little load above the
// limit as it can, in as few pieces, and with a small cut, in this order. shared
// are the nodes that may join partitions and so join their pieces; nil: none.
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
		a.mend(shared)
		rank := [3]int64{a.over(), int64(a.pieces(shared)), a.cut}
		if best == nil || slices.Compare(rank[:], bestRank[:]) < 0 {
			best, bestRank = a, rank
		}
	}
	if best == nil {
		return nil, &Infeasible{Constraint: "apart", Why: "no way was found to keep apart what is to be apart", Remedy: "ask for more partitions, or for fewer switches apart", Search: true}
	}
	return best, nil
}

// roundsFor is how many rounds suit a network of so many switches and links.
func roundsFor(switches, links int) int { return min(max(400_000/(switches+links), 3), 24) }

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
		if best == nil || a.over() < best.over() || a.over() == best.over() && a.cut < best.cut {
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

// piecesOf numbers the pieces of a partition by node; -1: not of it, or a node
// that is shared with others. A piece is joined by nodes that belong to it.
func (a *assignment) piecesOf(q int32, shared []bool) ([]int, int) {
	without := make([]bool, a.len())
	for v := range without {
		without[v] = a.part[v] != q && !a.belongs(v, q, shared)
	}
	return a.x.components(without)
}

// belongs reports whether a shared node has a link to one of a partition that is
// not shared.
func (a *assignment) belongs(v int, q int32, shared []bool) bool {
	if shared == nil || !shared[v] {
		return false
	}
	to, _ := a.x.of(v)
	return slices.ContainsFunc(to, func(u int32) bool { return a.part[u] == q && !shared[u] })
}

// pieces counts those of all partitions.
func (a *assignment) pieces(shared []bool) int {
	sum := 0
	for q := range int32(a.parts) {
		of, count := a.piecesOf(q, shared)
		sum += len(a.owned(of, count, q))
	}
	return sum
}

// owned returns, for the pieces that have a node of the partition's own, their
// nodes; the heaviest piece is first.
func (a *assignment) owned(of []int, count int, q int32) [][]int32 {
	nodes := make([][]int32, count)
	loads := make([]int64, count)
	for v, c := range of {
		if c >= 0 && a.part[v] == q {
			nodes[c] = append(nodes[c], int32(v))
			loads[c] += a.load[v]
		}
	}
	list := slices.DeleteFunc(slices.Clone(nodes), func(set []int32) bool { return len(set) == 0 })
	slices.SortStableFunc(list, func(x, y []int32) int {
		return int(max(-1, min(1, loads[of[y[0]]]-loads[of[x[0]]])))
	})
	return list
}

// mend gives pieces of a partition, all but its heaviest, to the partition with
// which they have most in common, as far as that has room and nothing forbids
// it.
func (a *assignment) mend(shared []bool) {
	for q := range int32(a.parts) {
		of, count := a.piecesOf(q, shared)
		for _, piece := range a.owned(of, count, q)[:] {
			if len(piece) < a.count[q] {
				a.give(piece, q, shared)
			}
			if of, count = a.piecesOf(q, shared); len(a.owned(of, count, q)) < 2 {
				break
			}
		}
	}
}

// give moves a piece of a partition if that joins it to another.
func (a *assignment) give(piece []int32, q int32, shared []bool) {
	of, count := a.piecesOf(q, shared)
	if list := a.owned(of, count, q); slices.Contains(list[0], piece[0]) {
		return // the heaviest stays
	}
	var load int64
	conn := make([]int64, a.parts)
	has := make([]bool, a.parts)
	for _, v := range piece {
		load += a.load[v]
		to, w := a.x.of(int(v))
		for j, u := range to {
			conn[a.part[u]] += w[j]
			has[a.part[u]] = true
		}
	}
	best := int32(-1)
	for t := range int32(a.parts) {
		if t == q || !has[t] || a.loads[t]+load > a.limit || slices.ContainsFunc(piece, func(v int32) bool { return a.blocked(v, t) }) {
			continue
		}
		if best < 0 || conn[t] > conn[best] {
			best = t
		}
	}
	if best < 0 {
		return
	}
	for _, v := range piece {
		a.move(v, best, a.gainOf(v, best))
	}
}
