package hydra

import "math"

// orZero is what JSON can hold of a figure.
func orZero(v float64) float64 {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return 0
	}
	return v
}
