package verify

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/stat/distuv"

	"github.com/weft-sdn/weft/api"
)

// estimate is what was measured of a quantity.
type estimate struct {
	value float64
	ci    float64 // half width of the 95 % interval
	seen  int     // events
	needs int     // events for an interval that holds; fewer are too few
}

// enough reports whether as many events were seen as the interval needs.
func (e estimate) enough() bool { return e.seen >= e.needs }

// needed is how many events an interval needs, and neededSlices how many slices.
const (
	needed       = 30
	neededSlices = 3
)

// student is the quantile of Student's distribution of a two-sided interval of
// 95 %.
func student(freedom int) float64 {
	return distuv.StudentsT{Sigma: 1, Nu: float64(freedom)}.Quantile(0.975)
}

// ofSlices returns the mean of what was measured in each slice of the time, which
// is taken to be independent of the others.
func ofSlices(list []float64) estimate {
	e := estimate{seen: len(list), needs: neededSlices}
	if len(list) == 0 {
		return e
	}
	n := float64(len(list))
	for _, v := range list {
		e.value += v / n
	}
	if len(list) < 2 {
		return e
	}
	squares := 0.0
	for _, v := range list {
		squares += (v - e.value) * (v - e.value)
	}
	e.ci = student(len(list)-1) * math.Sqrt(squares/(n-1)/n)
	return e
}

// ofSums returns the mean of n times from their sum and the sum of their squares.
func ofSums(n int, sum, squares float64) estimate {
	e := estimate{seen: n, needs: needed}
	if n == 0 {
		return e
	}
	of := float64(n)
	e.value = sum / of
	if n > 1 {
		e.ci = student(n-1) * math.Sqrt(max(0, squares-of*e.value*e.value)/(of-1)/of)
	}
	return e
}

// ofBuckets returns the median of latencies in microseconds. Its interval is that
// of order statistics, and at least half the bucket that it is in.
func ofBuckets(list []*api.LatencyBucket) estimate {
	slices.SortFunc(list, func(a, b *api.LatencyBucket) int { return int(math.Copysign(1, a.ToUs-b.ToUs)) })
	e := estimate{needs: needed}
	total := 0.0
	for _, b := range list {
		total += float64(b.Count)
	}
	if e.seen = int(total); total == 0 {
		return e
	}
	at := func(rank float64) (from, to float64) {
		below := 0.0
		for _, b := range list {
			if below += float64(b.Count); below >= rank {
				return beginOf(b.ToUs), b.ToUs
			}
		}
		last := list[len(list)-1].ToUs
		return beginOf(last), last
	}
	spread := 1.96 * math.Sqrt(total) / 2
	from, to := at(total / 2)
	least, _ := at(max(1, total/2-spread))
	_, most := at(min(total, total/2+spread))
	e.value = math.Sqrt(from * to)
	e.ci = max(e.value-least, most-e.value)
	return e
}

// beginOf returns where the bucket begins that ends there: buckets end at 5, 6, 7
// and 8 quarters of powers of two of a nanosecond.
func beginOf(end float64) float64 {
	ns := math.Round(end * 1000)
	fraction, _ := math.Frexp(ns) // from 1/2 to 1: 4 of 8 quarters is that of a power of two
	quarters := math.Round(fraction * 8)
	if quarters == 4 {
		quarters = 8
	}
	return end * (quarters - 1) / quarters
}
