// Package quantile computes medians and other quantiles of values. It imports the
// standard library only.
package quantile

import (
	"cmp"
	"math"
	"slices"
)

// Median returns the middle value, of an even number the mean of the two in the
// middle; 0 of none.
func Median[T ~int64 | ~uint64 | ~float64](values []T) T {
	return Middle(slices.Sorted(slices.Values(values)))
}

// Middle is Median of sorted values.
func Middle[T ~int64 | ~uint64 | ~float64](sorted []T) T {
	if len(sorted) == 0 {
		return 0
	}
	return (sorted[(len(sorted)-1)/2] + sorted[len(sorted)/2]) / 2
}

// Nearest returns the quantile q, from 0 to 1, of sorted values by nearest rank: the
// lowest one that a share q of all does not exceed. There must be a value.
func Nearest[T cmp.Ordered](sorted []T, q float64) T {
	rank := int(math.Ceil(q * float64(len(sorted))))
	return sorted[min(max(rank, 1), len(sorted))-1]
}
