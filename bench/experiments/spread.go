package experiments

import (
	"encoding/json"
	"math"
	"slices"

	"github.com/weft-sdn/weft/internal/quantile"
)

// Spread is how values are distributed, in their unit; of none all but Count is NaN, in
// JSON null.
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

// MarshalJSON writes null for values that were not measured.
func (s Spread) MarshalJSON() ([]byte, error) {
	type plain Spread // without this method
	if s.Count > 0 {
		return json.Marshal(plain(s))
	}
	return []byte(`{"count":0,"mean":null,"median":null,"p5":null,"p95":null,"max":null,"variation":null}`), nil
}

// NewSpread sums values up.
func NewSpread(values []float64) Spread {
	if len(values) == 0 {
		none := math.NaN()
		return Spread{0, none, none, none, none, none, none}
	}
	v := slices.Sorted(slices.Values(values))
	s := Spread{Count: len(v), Median: quantile.Middle(v), P5: quantile.Nearest(v, 0.05), P95: quantile.Nearest(v, 0.95), Max: v[len(v)-1]}
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

// Total returns the sum of counts, NaN of none: what nobody counted is not 0.
func Total(counts []float64) float64 {
	if len(counts) == 0 {
		return math.NaN()
	}
	sum := 0.0
	for _, v := range counts {
		sum += v
	}
	return sum
}

// Ratio returns a to b, NaN where there is no b.
func Ratio(a, b float64) float64 {
	if b == 0 {
		return math.NaN()
	}
	return a / b
}
