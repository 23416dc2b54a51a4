package partition

import (
	"fmt"
	"math/rand/v2"
)

// problem is a graph whose nodes are to be given to partitions: units of
// switches, or, on the coarser levels, several of them.
type problem struct {
	x     *adjacency
	load  []int64
	fixed []int32   // by node: its partition, or -1
	sets  [][]int32 // by node: the apart sets it is in
	nsets int
	parts int
	limit int64 // of the load of a partition

	shares []int64 // by partition: how many times the limit it may have; nil: once
}

// most is the largest load that a partition may have.
func (p *problem) most(q int32) int64 {
	if p.shares == nil {
		return p.limit
	}
	return p.limit * p.shares[q]
}

func (p *problem) len() int { return len(p.load) }

// newProblem makes the problem of units.
func newProblem(g *Graph, d *demands, u *units, tolerance float64) *problem {
	p := &problem{load: make([]int64, u.count), fixed: u.fixed, sets: u.sets, nsets: len(d.apart), parts: d.parts}
	loads, limit := balance(g, d.parts, tolerance)
	p.limit = limit
	for i, x := range u.of {
		p.load[x] += loads[i]
	}
	p.x = fold(u.count, func(add func(a, b int32, w int64)) {
		for _, l := range g.Links {
			if a, b := u.of[l.A], u.of[l.B]; a != b {
				add(a, b, l.Weight)
			}
		}
	})
	return p
}

// balance returns the loads of switches as they are balanced, and the largest
// that a partition may have: 1 + tolerance times the mean, rounded up to what
// the loads can make. If no switch has a load all count the same.
func balance(g *Graph, parts int, tolerance float64) ([]int64, int64) {
	loads := make([]int64, len(g.Switches))
	var grain, sum int64
	for i, s := range g.Switches {
		loads[i] = s.Load
		grain = gcd(grain, s.Load)
		sum += s.Load
	}
	if sum == 0 {
		for i := range loads {
			loads[i] = 1
		}
		grain, sum = 1, int64(len(loads))
	}
	return loads, limitOf(grain, sum, parts, tolerance)
}

func limitOf(grain, sum int64, parts int, tolerance float64) int64 {
	mean := (sum/grain + int64(parts) - 1) / int64(parts)
	return int64((1+tolerance)*float64(mean)+1e-9) * grain
}

func gcd(a, b int64) int64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// colour gives every node that is fixed or in an apart set a partition such that
// no demand is broken, and the others none (-1). It starts with those that have
// the fewest partitions left, and steps back where there is none; the order of
// partitions is random. It gives up after so many steps.
func (p *problem) colour(rng *rand.Rand, steps int) ([]int32, error) {
	part := make([]int32, p.len())
	members := make([][]int32, p.nsets)
	var nodes []int32
	for v := range part {
		part[v] = -1
		for _, s := range p.sets[v] {
			members[s] = append(members[s], int32(v))
		}
		if p.fixed[v] >= 0 {
			part[v] = p.fixed[v]
		} else if len(p.sets[v]) > 0 {
			nodes = append(nodes, int32(v))
		}
	}
	used := make([]bool, p.nsets*p.parts)
	count := make([]int, p.parts) // of the nodes that partitions have; those without are alike
	mark := func(v, q int32, to bool) {
		if count[q]--; to {
			count[q] += 2
		}
		for _, s := range p.sets[v] {
			used[int(s)*p.parts+int(q)] = to
		}
	}
	for v, q := range part {
		if q >= 0 {
			mark(int32(v), q, true)
		}
	}
	free := func(v, q int32) bool {
		for _, s := range p.sets[v] {
			if used[int(s)*p.parts+int(q)] {
				return false
			}
		}
		return true
	}
	gaveUp := false
	var place func(done int) bool
	place = func(done int) bool {
		if done == len(nodes) {
			return true
		}
		if steps--; steps < 0 {
			gaveUp = true
			return false
		}
		best, least := -1, p.parts+1
		for i := done; i < len(nodes); i++ {
			left := 0
			for q := range p.parts {
				if free(nodes[i], int32(q)) {
					left++
				}
			}
			if left < least {
				best, least = i, left
			}
		}
		nodes[done], nodes[best] = nodes[best], nodes[done]
		v := nodes[done]
		empty := false
		for _, q := range rng.Perm(p.parts) {
			if !free(v, int32(q)) || empty && count[q] == 0 {
				continue
			}
			empty = empty || count[q] == 0
			part[v] = int32(q)
			mark(v, int32(q), true)
			if place(done + 1) {
				return true
			}
			mark(v, int32(q), false)
			part[v] = -1
			if gaveUp {
				return false
			}
		}
		return false
	}
	if place(0) {
		return part, nil
	}
	e := &Infeasible{Constraint: "apart", Why: fmt.Sprintf("what is to be apart does not fit into %d partitions all at once", p.parts),
		Remedy: "ask for more partitions, or for fewer switches apart", Search: gaveUp}
	if gaveUp {
		e.Why = fmt.Sprintf("no way was found to keep apart what is to be apart in %d partitions", p.parts)
	}
	return nil, e
}
