package msn

import (
	"slices"
	"time"

	"github.com/weft-sdn/weft/bench/experiments"
)

// median returns the median of round trips in milliseconds.
func median(rtts []time.Duration) float64 {
	values := make([]float64, len(rtts))
	for i, d := range rtts {
		values[i] = milliseconds(d)
	}
	return experiments.NewSpread(values).Median
}

// middle returns the median of figures.
func middle(values []float64) float64 { return experiments.NewSpread(values).Median }

// sortTargets sorts the targets of a switch's controllers in the order in
// which they were given: by the length of their names first, for they are
// numbered.
func sortTargets(list []string) {
	slices.SortFunc(list, func(a, b string) int {
		if len(a) != len(b) {
			return len(a) - len(b)
		}
		return slices.Compare([]byte(a), []byte(b))
	})
}
