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

// gophersat guards a variable of that library, bufLits in its learn.go: a buffer in
// which all its solvers of a process learn, whoever made them, so only one of them
// may be at work. The other way to learn that it has, by cutting planes, does not
// use the buffer, but cannot be stopped either, as it says nothing of what it learns. The
// exception is listed in internal/archtest/table.go.
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
	// It cannot be told to stop. But it sends every clause that it learns, and
	// panics if the channel is closed: closing is not synchronised with sending on
	// purpose (the race detector says so).
	clauses := make(chan string)
	s.Certified, s.CertChan = true, clauses
	done := make(chan solver.Status)
	go func() {
		status := solver.Indet
		defer func() {
			recover() //nolint:errcheck // the status says it
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
// or the budget is used up; then it looks for what can be proven with the rest
// of it. Without a placement to begin with it looks for any, and proven means
// that there is none. The bound is of the cost.
func (p *problem) exact(ctx context.Context, start result, conflicts int, tell func(Progress)) (best result, bound float64, proven bool) {
	m := newModel(p)
	if m == nil {
		return start, 0, false
	}
	x := prover{m: m, best: start, conflicts: conflicts, left: conflicts, tell: tell}
	reserve := 0
	if start.violation <= satisfied {
		reserve = conflicts / 4
	}
	for {
		limit := x.limit()
		if limit < 0 {
			return x.best, 0, true // it costs nothing
		}
		switch x.decide(ctx, limit, x.left-reserve) {
		case none:
			return x.best, float64(limit+1) * m.unit, true
		case unknown:
			return x.best, x.bound(ctx, reserve), false
		}
	}
}

// prover is a proof at work.
type prover struct {
	m               *model
	best            result
	conflicts, left int // there were, there are
	tell            func(Progress)
}

// limit is the most that a better placement than the best may cost, in units.
func (x *prover) limit() int {
	if x.best.violation <= satisfied {
		return x.m.objectiveOf(x.best.at) - 1
	}
	limit := 0
	for _, w := range x.m.costWeights {
		limit += w
	}
	return limit
}

// decide asks for a placement that costs at most limit units, and takes it if
// there is one. The answer found means a better one than before.
func (x *prover) decide(ctx context.Context, limit, conflicts int) answer {
	if conflicts <= 0 || ctx.Err() != nil {
		return unknown
	}
	if x.tell != nil {
		x.tell(Progress{Phase: "proof", Done: x.conflicts - x.left, Of: x.conflicts, Cost: x.best.cost, Feasible: x.best.violation <= satisfied})
	}
	if ctx.Err() != nil { // meanwhile
		return unknown
	}
	budget := conflicts
	verdict, at := x.m.decide(ctx, limit, &budget)
	x.left -= conflicts - max(budget, 0)
	if verdict == found {
		s := newState(x.m.p, at)
		r := result{at, s.cost, s.violation}
		if r.violation > satisfied || !r.better(x.best) {
			return unknown // within rounding of a constraint, or of the best
		}
		x.best = r
	}
	return verdict
}

// bound is the highest of a few shares of the best cost of which is proven that
// nothing is below.
func (x *prover) bound(ctx context.Context, conflicts int) float64 {
	if x.best.violation > satisfied {
		return 0
	}
	shares := []float64{0.97, 0.93, 0.85, 0.75, 0.6}
	for _, share := range shares {
		limit := int(float64(x.limit()) * share)
		if limit > 0 && x.decide(ctx, limit, conflicts/len(shares)) == none {
			return float64(limit+1) * x.m.unit
		}
	}
	return 0
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
