package place

import (
	"context"
	"sync"

	"github.com/crillab/gophersat/solver"
)

// The exact solver's limits unless told otherwise.
const (
	// ExactShards is how many shards a problem may have for the exact solver to
	// be asked by itself; shards that are together count as one.
	ExactShards = 60
	// ExactConflicts is how many conflicts it may run into: about ten seconds'
	// worth.
	ExactConflicts = 200_000
)

// gophersat learns in a buffer that all its solvers of a process share, so only
// one of them may be at work.
var gophersat sync.Mutex

// answer is what the exact solver says.
type answer int

const (
	unknown answer = iota // it ran out of conflicts, or of time
	found
	none
)

// decide asks for a placement that costs at most n units. The conflicts that it
// takes are counted off the budget; without any left, or when ctx ends, the
// answer is unknown.
func (m *model) decide(ctx context.Context, n int, budget *int) (answer, []int32) {
	gophersat.Lock()
	defer gophersat.Unlock()
	s := solver.New(solver.ParsePBConstrs(m.below(n)))
	// It cannot be told to stop. But it reports every clause that it learns, and
	// fails if nobody is there to hear it.
	clauses := make(chan string)
	s.Certified, s.CertChan = true, clauses
	done := make(chan solver.Status)
	go func() {
		status := solver.Indet
		defer func() {
			recover()
			done <- status
		}()
		status = s.Solve()
	}()
	stopped := false
	hear, end := clauses, ctx.Done()
	for {
		select {
		case <-hear:
			if *budget--; *budget > 0 {
				continue
			}
		case <-end:
		case status := <-done:
			switch {
			case stopped:
				return unknown, nil
			case status == solver.Sat:
				return found, m.placement(s.Model())
			case status == solver.Unsat:
				return none, nil
			}
			return unknown, nil
		}
		stopped = true
		close(clauses)
		hear, end = nil, nil
	}
}

// exact improves on a placement until there is provably none that is cheaper,
// or the budget is used up. Without a placement to begin with it looks for any.
// It returns the best, the bound that is proven, and whether the best is proven
// to be optimal; with neither placement nor proof, ok is false and, if
// infeasible is true, there is no placement at all.
func (p *problem) exact(ctx context.Context, start result, conflicts int, tell func(Progress)) (best result, bound float64, proven bool) {
	best = start
	m := newModel(p)
	if m == nil {
		return best, 0, false
	}
	left := conflicts
	for ctx.Err() == nil {
		limit := 0
		for _, w := range m.costWeights {
			limit += w
		}
		if best.violation <= satisfied {
			limit = m.objectiveOf(best.at) - 1
		}
		if limit < 0 {
			return best, 0, true
		}
		if tell != nil {
			tell(Progress{Phase: "proof", Done: conflicts - left, Of: conflicts, Cost: best.cost, Feasible: best.violation <= satisfied})
		}
		verdict, at := m.decide(ctx, limit, &left)
		switch verdict {
		case none:
			return best, float64(limit+1) * m.unit, true
		case unknown:
			return best, 0, false
		}
		s := newState(p, at)
		if s.violation > satisfied || best.violation <= satisfied && s.cost >= best.cost {
			return best, 0, false // within rounding of a constraint, or of the best
		}
		best = result{at, s.cost, s.violation}
	}
	return best, 0, false
}

// objectiveOf is what a placement costs, in units.
func (m *model) objectiveOf(at []int32) int {
	p := m.p
	total := 0
	steps := m.steps()
	for _, e := range m.edges {
		for l, step := range steps {
			if p.delay[at[e.a]][at[e.b]] >= m.levels[l] {
				total += int(e.w * step / m.unit)
			}
		}
	}
	for k := range p.home {
		total += int(p.moving(k, int(at[k])) / m.unit)
	}
	return total
}
