package size

import (
	"fmt"
	"math"
	"slices"
	"time"

	"gonum.org/v1/gonum/mat"

	"github.com/weft-sdn/weft/plan/simulate"
)

// arriving is how packets come in a simulation.
type arriving struct {
	law    simulate.Law
	bursts *simulate.Bursts
	// unlike says that a dispersion that was measured is not reached; empty: it is.
	unlike string
}

// reached is within which share of a measured dispersion simulated arrivals are
// said to have it.
const reached = 0.1

// arriving returns arrivals as the question says, or fitted to the dispersion that
// was measured.
func (q *Question) arriving() arriving {
	a := arriving{law: simulate.Law{Mean: 1 / q.Rate, SCV: q.ArrivalSCV, Shape: q.Between}}
	if len(q.Dispersion) == 0 {
		if q.Batch.Mean > 1 {
			a.bursts = &simulate.Bursts{Batch: q.Batch}
		}
		return a
	}
	index := func(t float64) float64 { return a.bursts.Index(q.Rate, t) }
	if last := q.Dispersion[len(q.Dispersion)-1].Index; last < 1 {
		a.law.SCV = last
		index = renewal(q.Rate, last)
	} else {
		a.bursts = fit(q.Rate, q.Dispersion)
	}
	worst := reached
	for _, p := range q.Dispersion {
		if off := math.Abs(index(p.Time)/p.Index - 1); off > worst {
			worst = off
			a.unlike = fmt.Sprintf("the arrivals that were simulated have an index of dispersion of %.3g over %v, where %.3g was measured: the answer goes by the formula",
				index(p.Time), time.Duration(p.Time*1e9).Round(time.Microsecond), p.Index)
		}
	}
	return a
}

// between is the weight of the straight lines between measured points, which choose
// among the arrivals that go through these.
const between = 0.02

// fit returns arrivals whose index of dispersion comes as near as can be to what
// was measured, by least squares of the relative errors: geometric batches and
// waves of a Poisson process's rate, a Markov-modulated Poisson process. Its index
// never sinks with time.
func fit(rate float64, points []MeasuredDispersion) *simulate.Bursts {
	shortest := max(points[0].Time/2, 0.1/rate) // shorter waves are batches
	var times []float64
	for t := shortest; t <= max(10*points[len(points)-1].Time, shortest); t *= 1.2 {
		times = append(times, t)
	}
	var weights []float64
	aims := slices.Clone(points)
	for i := range points[1:] {
		for share := 0.25; share < 1; share += 0.25 {
			t := points[i].Time * math.Pow(points[i+1].Time/points[i].Time, share)
			aims = append(aims, MeasuredDispersion{t, Interpolated(points)(t)})
		}
	}
	for i, p := range aims {
		if weights = append(weights, 1/p.Index); i >= len(points) {
			weights[i] *= between
		}
	}
	left, right := mat.NewDense(len(aims), len(times)+1, nil), mat.NewVecDense(len(aims), nil)
	for i, p := range aims {
		right.SetVec(i, (p.Index-1)*weights[i])
		left.Set(i, 0, weights[i])
		for k, t := range times {
			one := simulate.Bursts{Waves: []simulate.Wave{{Up: 1, Down: 1, Time: t}}}
			left.Set(i, k+1, (one.Index(1, p.Time)-1)/t*weights[i])
		}
	}
	x := fewest(left, right, len(points))
	b := &simulate.Bursts{}
	if x[0] > 0 { // the index of geometric batches of a mean m is 2m-1
		b.Batch.Mean = 1 + x[0]/2
	}
	down := 0.0
	for k, t := range times {
		if square := x[k+1] / t / rate; square > 1e-9 {
			swing := math.Sqrt(square)
			b.Waves = append(b.Waves, simulate.Wave{Up: swing, Down: swing, Time: t})
			down += swing
		}
	}
	for i := range b.Waves { // no rate is below 0; what is missing below goes above
		if w := &b.Waves[i]; down > 1 {
			w.Up, w.Down = w.Up*down, w.Down/down
		}
	}
	return b
}

// alike is within which share of measured indices fewer waves are as good as more.
const alike = 0.02

// fewest returns the solution of nonNegative with one wave or two, if that meets the
// first rows, which are relative errors of what was measured; else with any number.
// Column 0 are the batches.
func fewest(left *mat.Dense, right *mat.VecDense, measured int) []float64 {
	_, n := left.Dims()
	var best []float64
	least := alike
	try := func(columns ...int) {
		rows, _ := left.Dims()
		some := mat.NewDense(rows, len(columns), nil)
		for i, k := range columns {
			some.SetCol(i, mat.Col(nil, k, left))
		}
		x := nonNegative(some, right)
		var off mat.VecDense
		off.MulVec(some, mat.NewVecDense(len(x), x))
		off.SubVec(&off, right)
		worst := mat.Norm(off.SliceVec(0, measured), math.Inf(1))
		if worst >= least {
			return
		}
		best, least = make([]float64, n), worst
		for i, k := range columns {
			best[k] = x[i]
		}
	}
	for i := 1; i < n; i++ {
		try(0, i)
	}
	for i := 1; i < n && best == nil; i++ {
		for j := i + 1; j < n; j++ {
			try(0, i, j)
		}
	}
	if best == nil {
		return nonNegative(left, right)
	}
	return best
}

// nonNegative returns the x of at least 0 for which the square of left·x-right is
// least (Lawson and Hanson, Solving Least Squares Problems, 1974, chapter 23).
func nonNegative(left *mat.Dense, right *mat.VecDense) []float64 {
	rows, n := left.Dims()
	x, free := make([]float64, n), make([]bool, n)
	for range 3 * n {
		var rest, gradient mat.VecDense
		rest.MulVec(left, mat.NewVecDense(n, x))
		rest.SubVec(right, &rest)
		gradient.MulVec(left.T(), &rest)
		best, most := -1, 1e-9
		for k := range n {
			if g := gradient.AtVec(k); !free[k] && g > most {
				best, most = k, g
			}
		}
		if best < 0 || count(free) == rows {
			return x
		}
		free[best] = true
		for count(free) > 0 {
			s, ok := unbounded(left, right, free)
			if !ok {
				free[best] = false
				return x
			}
			share, blocked := 1.0, false
			for k := range n {
				if free[k] && s[k] <= 0 {
					share, blocked = min(share, x[k]/(x[k]-s[k])), true
				}
			}
			for k := range n {
				if x[k] += share * (s[k] - x[k]); blocked && free[k] && x[k] <= 1e-12 {
					x[k], free[k] = 0, false
				}
			}
			if !blocked {
				break
			}
		}
	}
	return x
}

func count(set []bool) (n int) {
	for _, is := range set {
		if is {
			n++
		}
	}
	return n
}

// unbounded returns the least squares of some unknowns, with the others 0.
func unbounded(left *mat.Dense, right *mat.VecDense, free []bool) (x []float64, ok bool) {
	rows, n := left.Dims()
	some := mat.NewDense(rows, count(free), nil)
	column := 0
	for k := range n {
		if free[k] {
			some.SetCol(column, mat.Col(nil, k, left))
			column++
		}
	}
	var solved mat.VecDense
	if solved.SolveVec(some, right) != nil {
		return nil, false
	}
	x, column = make([]float64, n), 0
	for k := range n {
		if free[k] {
			x[k] = solved.AtVec(column)
			column++
		}
	}
	return x, true
}
