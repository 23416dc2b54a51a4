// Package measure is what makes a figure one that could be printed: the machine
// and the conditions that it was taken under, its interval, and an order of
// rounds in which a machine that gets faster or slower favours nobody.
package measure

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/weft-sdn/weft/internal/quantile"
)

// Interval is a median and its 95 % confidence interval.
type Interval struct {
	Median float64
	// CI95 is the interval, lowest first; nil of fewer than two values.
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

// resamples is how many samples the bootstrap draws.
const resamples = 4000

// Median returns the median of values and its interval by the percentile
// bootstrap (Efron 1979). It draws the same samples for the same values. NaN is
// not measured and is left out; the median of none is NaN.
func Median(values []float64) Interval {
	values = slices.DeleteFunc(slices.Clone(values), math.IsNaN)
	i := Interval{Median: median(values), Count: len(values)}
	if len(values) < 2 {
		return i
	}
	draw := rand.New(rand.NewPCG(1, uint64(len(values))))
	medians, sample := make([]float64, resamples), make([]float64, len(values))
	for m := range medians {
		for s := range sample {
			sample[s] = values[draw.IntN(len(values))]
		}
		slices.Sort(sample)
		medians[m] = quantile.Middle(sample)
	}
	slices.Sort(medians)
	i.CI95 = []float64{medians[resamples*25/1000], medians[resamples*975/1000-1]}
	return i
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

// RatioOfMedians returns the ratio of two medians and its interval, for values
// that were not taken in pairs.
func RatioOfMedians(a, b []float64) Interval {
	i := Interval{Median: median(a) / median(b), Count: min(len(a), len(b))}
	if i.Count < 2 {
		return i
	}
	draw := rand.New(rand.NewPCG(2, uint64(len(a)+len(b))))
	ratios := make([]float64, resamples)
	resample := func(values []float64) float64 {
		sample := make([]float64, len(values))
		for s := range sample {
			sample[s] = values[draw.IntN(len(values))]
		}
		slices.Sort(sample)
		return quantile.Middle(sample)
	}
	for m := range ratios {
		ratios[m] = resample(a) / resample(b)
	}
	slices.Sort(ratios)
	i.CI95 = []float64{ratios[resamples*25/1000], ratios[resamples*975/1000-1]}
	return i
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
