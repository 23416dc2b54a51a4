package experiments

import (
	"math"
	"slices"
)

// Spread is how values are distributed, in their unit.
type Spread struct {
	Count  int     `json:"count"`
	Mean   float64 `json:"mean"`
	Median float64 `json:"median"`
	P5     float64 `json:"p5"`
	P95    float64 `json:"p95"`
	Max    float64 `json:"max"`
	// Variation is the coefficient of variation, standard deviation to mean.
	Variation float64 `json:"variation"`
}

// NewSpread sums values up; of none it is zero.
func NewSpread(values []float64) Spread {
	if len(values) == 0 {
		return Spread{}
	}
	v := slices.Sorted(slices.Values(values))
	s := Spread{Count: len(v), Median: (v[(len(v)-1)/2] + v[len(v)/2]) / 2, P5: Percentile(v, 5), P95: Percentile(v, 95), Max: v[len(v)-1]}
	for _, x := range v {
		s.Mean += x / float64(len(v))
	}
	if len(v) > 1 && s.Mean != 0 {
		sum := 0.0
		for _, x := range v {
			sum += (x - s.Mean) * (x - s.Mean)
		}
		s.Variation = math.Sqrt(sum/float64(len(v)-1)) / math.Abs(s.Mean)
	}
	return s
}

// Percentile returns the p-th percentile of sorted values by nearest rank, the
// lowest value that p percent do not exceed; NaN of none.
func Percentile(sorted []float64, p float64) float64 {
	if len(sorted) == 0 {
		return math.NaN()
	}
	rank := int(math.Ceil(p / 100 * float64(len(sorted))))
	return sorted[min(max(rank, 1), len(sorted))-1]
}

// Ratio returns a to b, NaN where there is no b.
func Ratio(a, b float64) float64 {
	if b == 0 {
		return math.NaN()
	}
	return a / b
}
