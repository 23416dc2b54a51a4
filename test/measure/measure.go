// Package measure is what makes a figure one that could be printed: the machine
// and the conditions that it was taken under, its interval, and an order of
// rounds in which a machine that gets faster or slower favours nobody.
package measure

import (
	"encoding/json"
	"math"
	"slices"

	"github.com/weft-sdn/weft/internal/quantile"
)

// Interval is a median and its 95 % confidence interval.
type Interval struct {
	Median float64
	// CI95 is the interval, lowest first; nil of fewer than IntervalLeast values.
	CI95 []float64
	// Count is how many values it is of.
	Count int
}

// MarshalJSON writes {"median", "ci95": [low, high], "count"}; null is what
// is not known.
func (i Interval) MarshalJSON() ([]byte, error) {
	out := struct {
		Median *float64  `json:"median"`
		CI95   []float64 `json:"ci95"`
		Count  int       `json:"count"`
	}{CI95: i.CI95, Count: i.Count}
	if !math.IsNaN(i.Median) {
		out.Median = &i.Median
	}
	return json.Marshal(out)
}

// IntervalLeast is the fewest values that a median needs to have a 95 % interval:
// even the range of five contains it with a probability of 94 % only.
const IntervalLeast = 6

// Median returns the median of values and its interval, which is between two
// of the values: those of the highest and lowest rank that have the true median
// between them with a probability of at least 95 %, however the values are
// distributed (order statistics, by the binomial distribution). It has none of
// fewer than IntervalLeast values. NaN is not measured and is left out; the median
// of none is NaN.
func Median(values []float64) Interval {
	values = measured(values)
	return Interval{Median: median(values), CI95: between(values, 0.05), Count: len(values)}
}

// measured returns the values that are numbers, ascending.
func measured(values []float64) []float64 {
	values = slices.DeleteFunc(slices.Clone(values), math.IsNaN)
	slices.Sort(values)
	return values
}

// between returns the interval of order statistics of ascending values that misses
// their true median with a probability of at most miss; nil if there is none.
func between(values []float64, miss float64) []float64 {
	n := len(values)
	below := 0.0                      // probability that the value of a rank is above the median
	each := math.Pow(0.5, float64(n)) // that exactly rank values are below it
	rank := 0
	for ; rank < n/2 && 2*(below+each) <= miss; rank++ {
		below += each
		each *= float64(n-rank) / float64(rank+1)
	}
	if rank == 0 {
		return nil
	}
	return []float64{values[rank-1], values[n-rank]}
}

// Ratio returns the median, over the rounds, of a to b in the same round, and
// its interval. Rounds in which either is missing, or b is 0, are left out.
func Ratio(a, b []float64) Interval {
	var ratios []float64
	for i := range min(len(a), len(b)) {
		if r := a[i] / b[i]; !math.IsNaN(r) && !math.IsInf(r, 0) {
			ratios = append(ratios, r)
		}
	}
	return Median(ratios)
}

// RatioOfMedians returns the ratio of two medians and its interval, for values above
// 0 that were not taken in pairs. The interval is from the lowest to the highest ratio
// of two medians within intervals of their own, which miss them with a probability of
// 2.5 % each. NaN is not measured and is left out.
func RatioOfMedians(a, b []float64) Interval {
	a, b = measured(a), measured(b)
	i := Interval{Median: median(a) / median(b), Count: min(len(a), len(b))}
	if above, below := between(a, 0.025), between(b, 0.025); above != nil && below != nil && below[0] > 0 {
		i.CI95 = []float64{above[0] / below[1], above[1] / below[0]}
	}
	return i
}

// Pooled returns the ratio of the sums of a and b, for counts of which one round has too
// few, and its interval (ratio estimator, by Student's t). The quantile is that of 97.5 %,
// because of six skewed rounds that of 95 % covers 92 % only. Rounds in which either is
// missing are left out.
func Pooled(a, b []float64) Interval {
	var x, y []float64
	sumX, sumY := 0.0, 0.0
	for i := range min(len(a), len(b)) {
		if !math.IsNaN(a[i]) && !math.IsNaN(b[i]) {
			x, y = append(x, a[i]), append(y, b[i])
			sumX, sumY = sumX+a[i], sumY+b[i]
		}
	}
	n := float64(len(x))
	i := Interval{Median: sumX / sumY, Count: len(x)}
	if len(x) < IntervalLeast || sumY == 0 {
		return i
	}
	squares := 0.0
	for k := range x {
		d := x[k] - i.Median*y[k]
		squares += d * d
	}
	off := student(n-1) * math.Sqrt(squares*n/(n-1)) / sumY
	i.CI95 = []float64{i.Median - off, i.Median + off}
	return i
}

// student returns the quantile of Student's t that both tails exceed in 2.5 % of the cases,
// with 5 degrees of freedom or more, to 1 % (Abramowitz and Stegun 26.7.5).
func student(degrees float64) float64 {
	const z = 2.241403
	z2 := z * z
	return z + z*(z2+1)/(4*degrees) + z*((5*z2+16)*z2+3)/(96*degrees*degrees) + z*(((3*z2+19)*z2+17)*z2-15)/(384*degrees*degrees*degrees)
}

// Includes reports whether v may well be the true median: a ratio that
// includes 1 shows no difference. An interval that is not known includes all.
func (i Interval) Includes(v float64) bool {
	return len(i.CI95) < 2 || i.CI95[0] <= v && v <= i.CI95[1]
}

// median returns the median of values, NaN of none.
func median(values []float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	return quantile.Median(values)
}

// Order returns in which order n subjects take their turns in a round: A B C,
// then C B A, and so on, so that none always comes first.
func Order(round, n int) []int {
	order := make([]int, n)
	for i := range order {
		order[i] = i
		if round%2 == 1 {
			order[i] = n - 1 - i
		}
	}
	return order
}
