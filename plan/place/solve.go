package place

import (
	"context"
	"errors"
	"math"
	"time"
)

// Options are how much is tried. The zero value is right for most.
type Options struct {
	// Seed of all that is chosen at random; the same instance, seed and numbers
	// below give the same placement, however many CPUs there are.
	Seed uint64
	// Runs are independent searches, of which the best counts; 0: by the size.
	Runs int
	// Steps are those of each run, moves and swaps tried; 0: by the size.
	Steps int
	// Workers are how many runs go on at a time; 0: as many as there are CPUs.
	// It does not change the result.
	Workers int
	// Conflicts is the budget of the exact solver; 0: ExactConflicts for up to
	// ExactShards shards and nothing above; -1: it is not asked.
	Conflicts int
	// Settle takes the best placement that was found when the deadline of ctx ends
	// the search, in place of ctx's error; half of the time is for search, the other
	// for proof.
	Settle bool
	// Progress, if set, is told what is done; not concurrently.
	Progress func(Progress)
}

// Progress is how far Solve is.
type Progress struct {
	Phase    string // search, combine or proof
	Done, Of int    // of the phase
	Cost     float64
	Feasible bool
}

// Solution is a placement that keeps all constraints.
type Solution struct {
	Server    []int   // where each shard runs
	Cost      float64 // Latency + Migration, as Check has it
	Latency   float64 // eq. 4
	Migration float64
	// Bound is what every placement costs at least. Cost less Bound is the gap.
	Bound float64
	// Proven is true if there is no cheaper placement, but for rounding: a few
	// millionths where weights and delays are not whole numbers.
	Proven bool
}

// Gap is how far Cost may be above the optimum, as a share of Cost.
func (s *Solution) Gap() float64 {
	if s.Proven || s.Cost <= 0 {
		return 0
	}
	return max(0, (s.Cost-s.Bound)/s.Cost)
}

// Solve places the shards: by search, and for few shards then by proof. The
// error is an *InvalidError, an *InfeasibleError, or ctx's if it ends before
// there is a placement; if it ends later, the placement is returned unproven.
// Without a deadline in ctx the result depends on the instance and the options
// only.
func Solve(ctx context.Context, in *Instance, o Options) (*Solution, error) {
	if err := in.Validate(); err != nil {
		return nil, err
	}
	p := compile(in)
	bound := p.atLeast()
	best, err := o.search(ctx, p)
	if err != nil {
		return nil, err
	}
	conflicts := o.Conflicts
	if conflicts == 0 && p.n <= ExactShards {
		conflicts = ExactConflicts
	}
	proven := best.violation <= satisfied && best.cost <= bound*(1+tolerance)
	if conflicts > 0 && !proven {
		var b float64
		best, b, proven = p.exact(ctx, best, conflicts, o.Progress)
		bound = max(bound, b)
	}
	if best.violation > satisfied {
		return nil, explain(ctx, in, p.shards(best.at), proven)
	}
	if !proven && (ctx.Err() == nil || o.Settle && p.n <= smallNodes) {
		bound = max(bound, p.atLeastBeside(best.at))
	}
	s := &Solution{Server: p.shards(best.at), Proven: proven}
	cost, broken := Check(in, s.Server)
	if len(broken) > 0 { // the search and the judge differ: never trust the search
		return nil, &InfeasibleError{Conflicts: conflictsOf(broken), Nearest: s.Server, Violations: broken}
	}
	s.Cost, s.Latency, s.Migration = cost, LatencyCost(in, s.Server), MigrationCost(in, s.Server)
	if s.Bound = min(bound, cost); proven {
		s.Bound = cost
	}
	if math.IsNaN(s.Bound) || s.Bound < 0 {
		s.Bound = 0
	}
	return s, nil
}

// search is the heuristic, for as long as the options allow.
func (o Options) search(ctx context.Context, p *problem) (result, error) {
	deadline, bounded := ctx.Deadline()
	if !o.Settle || !bounded {
		return heuristic(ctx, p, o)
	}
	half, cancel := context.WithTimeout(ctx, time.Until(deadline)/2)
	defer cancel()
	best, err := heuristic(half, p, o)
	if errors.Is(err, context.DeadlineExceeded) && best.violation <= satisfied {
		return best, nil
	}
	return best, err
}
