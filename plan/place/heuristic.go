package place

import (
	"context"
	"math"
	"runtime"
	"slices"
	"sync"
)

// How much a search does unless told otherwise.
const (
	smallNodes = 150    // up to this many nodes: many short runs without coarsening
	smallRuns  = 96     // of them
	smallSteps = 50_000 // of each; longer ones miss optima (one annealing run is unreliable, restarts are not)
	largeRuns  = 4
	rounds     = 6  // of combining what the runs have found
	eliteRuns  = 16 // how many placements of a small problem are combined
)

// result is what a run has found.
type result struct {
	at              []int32
	cost, violation float64
}

func (r result) better(than result) bool {
	return better(r.cost, r.violation, than.cost, than.violation)
}

// bestOf returns the best of several, the first of equals.
func bestOf(list []result) result {
	best := list[0]
	for _, r := range list[1:] {
		if r.better(best) {
			best = r
		}
	}
	return best
}

// heuristic searches: independent runs, then rounds in which any two placements
// are combined. The number of workers does not change
// what is found. It ends early, with an error and the best that was found until
// then, only if ctx ends.
func heuristic(ctx context.Context, p *problem, o Options) (result, error) {
	small := p.n <= smallNodes
	runs, steps := o.Runs, o.Steps
	if runs <= 0 {
		if runs = largeRuns; small {
			runs = smallRuns
		}
	}
	if steps <= 0 {
		if steps = max(2_000_000, 4000*p.n); small {
			steps = smallSteps
		}
	}
	t := team{workers: o.Workers, tell: o.Progress}
	if t.workers <= 0 {
		t.workers = runtime.GOMAXPROCS(0)
	}
	found := t.all(ctx, "search", runs, func(r int) result {
		if small && r%8 == 7 {
			return p.run(ctx, newDice(o.Seed, uint64(r)), 8*steps, r) // some optima want patience
		}
		return p.run(ctx, newDice(o.Seed, uint64(r)), steps, r)
	})
	if small {
		found = elite(found)
	}
	for round := 0; round < rounds && len(found) > 1 && ctx.Err() == nil; round++ {
		runs, before := len(found), found
		found = t.all(ctx, "combine", runs, func(r int) result {
			other := (r + 1 + round%(runs-1)) % runs
			return p.combine(found[r], found[other], newDice(o.Seed, uint64((round+1)*runs+r)), steps/2)
		})
		if ctx.Err() != nil { // not all were combined
			found = append(found, before...)
		}
	}
	return bestOf(found), ctx.Err()
}

// team does runs side by side.
type team struct {
	workers int
	tell    func(Progress)
}

// all does runs, numbered from 0, and waits for them; those that ctx left no
// time for break everything.
func (t team) all(ctx context.Context, phase string, runs int, run func(r int) result) []result {
	results := make([]result, runs)
	next := make(chan int)
	var wg sync.WaitGroup
	var mu sync.Mutex // guards done and best
	best, done := result{violation: math.Inf(1)}, 0
	for range min(t.workers, runs) {
		wg.Go(func() {
			for r := range next {
				if results[r].violation = math.Inf(1); ctx.Err() == nil {
					results[r] = run(r)
				}
				mu.Lock()
				if done++; results[r].better(best) {
					best = results[r]
				}
				if t.tell != nil {
					t.tell(Progress{Phase: phase, Done: done, Of: runs, Cost: best.cost, Feasible: best.violation <= satisfied})
				}
				mu.Unlock()
			}
		})
	}
	for r := range runs {
		next <- r
	}
	close(next)
	wg.Wait()
	return results
}

// Schedules of annealing, as shares of the mean weight of a node.
const (
	hot, cold   = 0.3, 0.001 // from nothing
	coldSmall   = 0.003      // of small problems
	hotFiner    = 0.02       // of what the coarser level has found
	hotCombined = 0.1        // of two placements overlaid, at the coarsest level
	hotBelow    = 0.01       // at the finer ones
	hotCurrent  = 0.03       // of where the shards are now
)

// run is one search from nothing; every second one starts from where the shards
// are now, if they are anywhere.
func (p *problem) run(ctx context.Context, d *dice, steps, number int) result {
	if start := p.current(d); start != nil && number%2 == 0 {
		s := newSearch(p, start, d)
		s.descend()
		s.refine(schedule{steps / 2, hotCurrent, cold})
		s.repair(steps / 4)
		return s.result()
	}
	levels := []level{{p: p}}
	if p.n > smallNodes {
		levels = coarsen(p, d)
	}
	last := len(levels) - 1
	s := newSearch(levels[last].p, levels[last].p.spread(d), d)
	c := schedule{steps / (last + 2), hot, cold}
	if last == 0 {
		c.cold = coldSmall
	}
	s.refine(c)
	for l := last - 1; l >= 0 && ctx.Err() == nil; l-- {
		s = newSearch(levels[l].p, project(s.best, levels[l].into), d)
		s.refine(schedule{steps / (last + 2) * (1 + int(bit(l == 0))), hotFiner, cold})
	}
	if ctx.Err() != nil && last > 0 { // it has not come to the shards themselves
		return result{violation: math.Inf(1)}
	}
	s.repair(steps / 4)
	return s.result()
}

// combine searches for a placement that is better than two: what both have on
// one server moves as a whole first (as in evolutionary partitioning, Sanders
// and Schulz 2012).
func (p *problem) combine(a, b result, d *dice, steps int) result {
	if a.at == nil || b.at == nil {
		return a
	}
	at := a.at
	if b.better(a) {
		at = b.at
	}
	levels := p.overlay(d, a, b)
	last := len(levels) - 1
	for k, l := range levels[:last] {
		at = lift(at, l.into, levels[k+1].p.n)
	}
	s := newSearch(levels[last].p, at, d)
	s.refine(schedule{steps / len(levels), hotCombined, cold})
	for l := last - 1; l >= 0; l-- {
		s = newSearch(levels[l].p, project(s.best, levels[l].into), d)
		s.refine(schedule{steps / len(levels), hotBelow, cold})
	}
	if r := s.result(); !a.better(r) {
		return r
	}
	return a
}

// elite returns the best of what was found, each cost once.
func elite(found []result) []result {
	list := slices.Clone(found)
	slices.SortStableFunc(list, func(a, b result) int { return int(bit(b.better(a)) - bit(a.better(b))) })
	list = slices.CompactFunc(list, func(a, b result) bool { return !a.better(b) && !b.better(a) })
	return list[:min(len(list), eliteRuns)]
}

// overlay coarsens to what two placements have in common: of a large problem
// stage by stage, of a small one at once, all that is on one server in both.
func (p *problem) overlay(d *dice, a, b result) []level {
	if p.n > smallNodes {
		return coarsen(p, d, a.at, b.at)
	}
	if max(a.violation, b.violation) > satisfied {
		return []level{{p: p}} // what is on one server may not have to be
	}
	number := map[[2]int32]int{}
	into := make([]int, p.n)
	for k := range into {
		servers := [2]int32{a.at[k], b.at[k]}
		if _, there := number[servers]; !there {
			number[servers] = len(number)
		}
		into[k] = number[servers]
	}
	return []level{{p, into}, {p: p.contract(into, len(number))}}
}

// refine anneals, and descends from the best that was seen.
func (s *search) refine(c schedule) {
	s.anneal(c)
	s.restore()
	s.descend()
}

// repair anneals on from the best placement while it breaks a constraint, a few
// times.
func (s *search) repair(steps int) {
	for try := 0; try < 4 && s.bestViolation > satisfied; try++ {
		s.restore()
		s.refine(schedule{steps, 0.1, cold})
	}
}

// result is the best placement.
func (s *search) result() result { return result{s.best, s.bestCost, s.bestViolation} }

// current is the placement that there is, with nodes that are nowhere at
// random; nil if nothing runs.
func (p *problem) current(d *dice) []int32 {
	if p.home == nil {
		return nil
	}
	at := p.spread(d)
	for k, list := range p.home {
		if len(list) > 0 {
			if s := p.in.Current[list[0]]; p.may(k, s) {
				at[k] = int32(s)
			}
		}
	}
	return at
}

// spread places nodes at random where their pins allow.
func (p *problem) spread(d *dice) []int32 {
	at := make([]int32, p.n)
	for k := range at {
		at[k] = int32(d.below(p.s))
		if p.allowed[k] == nil {
			continue
		}
		var list []int32
		for s, ok := range p.allowed[k] {
			if ok {
				list = append(list, int32(s))
			}
		}
		at[k] = list[d.below(len(list))]
	}
	return at
}
