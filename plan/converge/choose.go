package converge

import (
	"fmt"
	"math"
)

// Choice is a number of partitions, and what speaks for it.
type Choice struct {
	Partitions int     `json:"partitions"` // the smallest within the tolerance of the best
	Best       int     `json:"best"`       // that with the least time
	Tolerance  float64 `json:"tolerance"`
	Curve      []Point `json:"curve"` // all that were looked at
}

// Point is a number of partitions and its time.
type Point struct {
	Partitions int     `json:"partitions"`
	Time       float64 `json:"ms"`
}

// Curve returns the expected times of shapes.
func (c Constants) Curve(shapes []Shape) ([]Point, error) {
	curve := make([]Point, len(shapes))
	for i, s := range shapes {
		if err := s.Check(); err != nil {
			return nil, fmt.Errorf("choice %d: %w", i+1, err)
		}
		curve[i] = Point{s.Partitions, c.Predict(s)}
	}
	return curve, nil
}

// Choose returns the number of partitions with the least time on a curve, and
// the smallest that is at most so much slower, as a share: 0.02 is 2 %. Curves
// are often flat about their least, and fewer partitions are less to run.
func Choose(curve []Point, tolerance float64) (Choice, error) {
	if len(curve) == 0 {
		return Choice{}, fmt.Errorf("there is no number of partitions to choose from")
	}
	if !(tolerance >= 0) || math.IsInf(tolerance, 0) {
		return Choice{}, fmt.Errorf("tolerance %v: want a share of the least time, such as 0.02", tolerance)
	}
	x := Choice{Tolerance: tolerance, Curve: curve}
	least := math.Inf(1)
	for _, p := range curve {
		if !(p.Time >= 0) {
			return Choice{}, fmt.Errorf("%d partitions take %v ms: want a time", p.Partitions, p.Time)
		}
		if p.Time < least || p.Time == least && p.Partitions < x.Best {
			least, x.Best = p.Time, p.Partitions
		}
	}
	x.Partitions = x.Best
	for _, p := range curve {
		if p.Time <= least*(1+tolerance) {
			x.Partitions = min(x.Partitions, p.Partitions)
		}
	}
	return x, nil
}
