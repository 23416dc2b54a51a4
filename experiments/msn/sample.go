package msn

import (
	"slices"
	"time"

	"github.com/weft-sdn/weft/experiments"
)

// column returns the figures of one column of the samples whose first columns
// are a key.
func column(d *experiments.Data, at int, key ...string) []float64 {
	var values []float64
	for _, row := range d.Rows() {
		if slices.Equal(row[:len(key)], key) {
			if v, ok := read(row[at]); ok {
				values = append(values, v)
			}
		}
	}
	return values
}

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
