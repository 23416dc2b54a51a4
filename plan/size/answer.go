package size

import (
	"fmt"
	"math"
	"runtime"
	"slices"
	"strings"
	"sync"
)

// Answer says how many instances there should be.
type Answer struct {
	Best  Point
	Met   bool   // the target, and the loss
	Note  string // why not, or what is not plain
	Curve []Point
	// Range is in which range a percentile of Best lies where only two moments of the
	// service time are given; zero: no percentile was simulated, or a histogram given.
	Range Range
}

// Point is one deployment. Times are in seconds.
type Point struct {
	N           int
	As          Form
	CPUs        int
	Formula     Estimate
	Simulated   Estimate // NaN if nothing was simulated
	Utilisation float64  // of the busiest, a processor or an instance
	Processor   float64  // of each processor
	Unlike      bool     // what was simulated has not the arrivals that were measured
}

// Time is what counts: what was simulated, else what the formula gives.
func (p Point) Time() Estimate {
	if math.IsNaN(p.Simulated.Time) || p.Unlike && !math.IsNaN(p.Formula.Time) {
		return p.Formula
	}
	return p.Simulated
}

// budget is how much is simulated for an answer, in units of cell.price; a unit
// takes about 25 ns.
const budget = 160_000_000

// near is by which share the time may be longer than the least if that saves
// processors or instances.
const near = 0.02

// Solve answers a question. It depends on nothing but the question.
func Solve(q Question) (Answer, error) {
	if err := q.Check(); err != nil {
		return Answer{}, err
	}
	numbers := q.Counts
	if numbers == nil {
		numbers = q.enough(counts())
	}
	cells := q.cells(numbers)
	a := Answer{Curve: make([]Point, len(cells))}
	each := budget / 2 / len(cells)
	q.all(len(cells), func(i int) { a.Curve[i] = cells[i].point(each) })
	for range 3 { // the choice is looked at more closely
		i := a.choose(&q)
		if i < 0 || !q.Simulate || a.Curve[i].Simulated.CI <= precision*a.Curve[i].Simulated.Time || each >= budget/6 {
			break
		}
		a.Curve[i].Simulated = cells[i].simulated(budget/6, q.Times)
		if a.choose(&q) == i {
			break
		}
	}
	i := a.choose(&q)
	if i < 0 {
		return a, fmt.Errorf("overloaded: %s", q.overload(cells))
	}
	a.Best = a.Curve[i]
	a.Met = q.meets(a.Best)
	if q.Percentile > 0 && q.Simulate && q.Times == nil && q.ServiceSCV > 0 && !a.Best.Unlike {
		a.Range = cells[i].spread(a.Best.Time(), budget/24)
	}
	a.Note = q.note(a)
	if q.Simulate && q.arrives.unlike != "" {
		a.Note = strings.TrimPrefix(a.Note+"; "+q.arrives.unlike, "; ")
	}
	return a, nil
}

// all calls do for 0 to n-1, on all processors.
func (q *Question) all(n int, do func(i int)) {
	var work sync.WaitGroup
	next := make(chan int)
	for range min(n, runtime.GOMAXPROCS(0)) {
		work.Go(func() {
			for i := range next {
				do(i)
			}
		})
	}
	for i := range n {
		next <- i
	}
	close(next)
	work.Wait()
}

func (c cell) point(budget int) Point {
	p := Point{N: c.n, As: c.form, CPUs: c.cpus, Formula: c.formula(), Simulated: Estimate{Time: math.NaN()}}
	p.Utilisation, p.Processor = c.load()
	if c.q.Simulate {
		p.Simulated, p.Unlike = c.simulated(budget, c.q.Times), c.q.arrives.unlike != ""
	}
	return p
}

// enough adds larger numbers of instances if formulas say that none of those
// suffices, and a larger one does.
func (q *Question) enough(numbers []int) []int {
	good := func(n int) bool {
		return slices.ContainsFunc(q.cells([]int{n}), func(c cell) bool {
			p := Point{Formula: c.formula(), Simulated: Estimate{Time: math.NaN()}}
			return !math.IsInf(p.Formula.Time, 1) && !math.IsNaN(p.Formula.Time) && q.meets(p)
		})
	}
	if slices.ContainsFunc(numbers, good) {
		return numbers
	}
	last := numbers[len(numbers)-1]
	for low, high := last, last*3/2; low < Most; low, high = high, high*3/2 {
		if high = min(high, Most); !good(high) {
			continue
		}
		for high-low > 1 {
			if middle := (low + high) / 2; good(middle) {
				high = middle
			} else {
				low = middle
			}
		}
		for _, more := range []int{high, min(Most, high+max(1, high/8)), min(Most, 2*high)} {
			if more > last {
				numbers, last = append(numbers, more), more
			}
		}
		return numbers
	}
	target := q.Target
	if q.Target = 0; target > 0 { // at least one that carries the load
		numbers = q.enough(numbers)
	}
	q.Target = target
	return numbers
}

// meets reports whether a deployment does what is asked.
func (q *Question) meets(p Point) bool {
	e := p.Time()
	return (q.Target == 0 || e.Time <= q.Target) && (q.Room == 0 || !(e.Loss > q.Loss))
}

// choose returns the best deployment: the fewest processors and then instances of
// those that do what is asked; without a target of those about as fast as the
// fastest; the fastest if none does what is asked. -1: all are overloaded.
func (a *Answer) choose(q *Question) int {
	best := -1
	least := math.Inf(1)
	for _, p := range a.Curve {
		if t := p.Time().Time; q.meets(p) && t < least {
			least = t
		}
	}
	for i, p := range a.Curve {
		t := p.Time().Time
		if math.IsNaN(t) || math.IsInf(t, 1) {
			continue
		}
		if math.IsInf(least, 1) { // none does what is asked
			if best < 0 || q.Room > 0 && p.Time().Loss < a.Curve[best].Time().Loss || q.Room == 0 && t < a.Curve[best].Time().Time {
				best = i
			}
			continue
		}
		if !q.meets(p) || q.Target == 0 && t > least*(1+near) {
			continue
		}
		if best < 0 || cheaper(p, a.Curve[best]) {
			best = i
		}
	}
	return best
}

// cheaper reports whether a deployment takes fewer processors, or instances, or
// is copies and about as fast as a chain.
func cheaper(p, than Point) bool {
	switch {
	case p.CPUs != than.CPUs:
		return p.CPUs < than.CPUs
	case p.N != than.N:
		return p.N < than.N
	}
	if p.As == Copies {
		return p.Time().Time < than.Time().Time*(1+near)
	}
	return p.Time().Time*(1+near) < than.Time().Time
}

// note says what is not plain of an answer.
func (q *Question) note(a Answer) string {
	e := a.Best.Time()
	switch {
	case a.Met && q.Target > 0 && e.Time+e.CI > q.Target:
		return "the target is within the interval of the simulation"
	case a.Met:
		return ""
	case q.Room > 0 && e.Loss > q.Loss:
		return fmt.Sprintf("nothing that was looked at loses as few packets; the least that is lost is a share of %.3g", e.Loss)
	}
	note := "nothing that was looked at reaches the target; this is the nearest"
	if rate := q.carried(a.Best); rate > 0 {
		note += fmt.Sprintf(", which would reach it at about %.4g packets/s", rate)
	}
	return note
}

// carried is at which rate a deployment would reach the target, by the formula;
// 0 if at none.
func (q *Question) carried(p Point) float64 {
	at := func(rate float64) float64 {
		slower := *q
		slower.Rate = rate
		return cell{&slower, p.N, p.As, p.CPUs}.formula().Time
	}
	low, high := q.Rate*1e-6, q.Rate
	if !(at(low) <= q.Target) {
		return 0
	}
	for range 60 {
		if middle := math.Sqrt(low * high); at(middle) <= q.Target {
			low = middle
		} else {
			high = middle
		}
	}
	return low
}

// overload says why nothing carries the load.
func (q *Question) overload(cells []cell) string {
	load, of := math.Inf(1), cells[0]
	for _, c := range cells {
		if l, _ := c.load(); l < load {
			load, of = l, c
		}
	}
	text := fmt.Sprintf("%.4g packets/s keep %d as %s on %d processors busy for %.3g of the time: these can serve at most about %.4g packets/s",
		q.Rate, of.n, of.form, of.cpus, load, q.Rate/load)
	best, most := 0, 0.0
	for n := 1; n <= Most; n++ {
		l, _ := (cell{q, n, Copies, n}).load()
		if l < 1 {
			return fmt.Sprintf("%s; %d copies on a processor each would carry it", text, n)
		}
		if q.Rate/l > most {
			best, most = n, q.Rate/l
		}
	}
	return fmt.Sprintf("%s, and no number up to %d copies on a processor each more than the %.4g of %d", text, Most, most, best)
}
