package scaler

import (
	"math"
	"slices"
	"time"
)

// Errors is how far off the predictions of the last hour were: minute by minute, what was
// predicted beside what was measured. The zero Errors has seen none.
type Errors struct {
	since     time.Time // of the minute under way
	predicted float64   // sum over its decisions
	decisions int
	times     map[bucket]uint64 // that were measured in it
	minutes   []minute          // of the last hour
	// Measured is the percentile, or the mean, of the last minute with enough times, and Count
	// of how many it is.
	Measured float64
	Count    uint64
}

// bucket is times from one to another, in seconds.
type bucket struct{ from, to float64 }

// minute is what was predicted and measured in one.
type minute struct {
	at  time.Time
	off float64 // the difference, as a share of what was measured
}

const (
	// fewestTimes is how many have to be measured in a minute for its percentile to count.
	fewestTimes = 100
	hour        = time.Hour
)

// Times takes how many times of a bucket were measured since the last decision.
func (e *Errors) Times(from, to float64, count uint64) {
	if e.times == nil {
		e.times = map[bucket]uint64{}
	}
	e.times[bucket{from, to}] += count
}

// Decided takes what was predicted for the replicas that there are, 0 if nothing, and ends a
// minute.
func (e *Errors) Decided(percentile, predicted float64, now time.Time) {
	if e.since.IsZero() {
		e.since = now
	}
	if predicted > 0 {
		e.predicted += predicted
		e.decisions++
	}
	if now.Sub(e.since) < time.Minute {
		return
	}
	if value, n := quantile(e.times, percentile); n >= fewestTimes && e.decisions > 0 {
		e.Measured, e.Count = value, n
		e.minutes = append(e.minutes, minute{now, math.Abs(e.predicted/float64(e.decisions)-value) / value})
	}
	e.minutes = slices.DeleteFunc(e.minutes, func(m minute) bool { return now.Sub(m.at) > hour })
	e.since, e.predicted, e.decisions, e.times = now, 0, 0, nil
}

// Median returns the median of the errors of the last hour, and of how many minutes it is.
func (e *Errors) Median() (off float64, minutes int) {
	if len(e.minutes) == 0 {
		return 0, 0
	}
	var list []float64
	for _, m := range e.minutes {
		list = append(list, m.off)
	}
	slices.Sort(list)
	return list[len(list)/2], len(list)
}

// quantile returns a percentile of a histogram, within a bucket by interpolation, or with 0 its
// mean; and how many times it has.
func quantile(times map[bucket]uint64, percentile float64) (value float64, total uint64) {
	list, sum := make([]bucket, 0, len(times)), 0.0
	for b, n := range times {
		list = append(list, b)
		total += n
		sum += float64(n) * (b.from + b.to) / 2
	}
	if total == 0 || percentile == 0 {
		return sum / math.Max(1, float64(total)), total
	}
	slices.SortFunc(list, func(a, b bucket) int {
		if a.from < b.from {
			return -1
		}
		return 1
	})
	rank, below := percentile/100*float64(total), 0.0
	for _, b := range list {
		n := float64(times[b])
		if below+n >= rank {
			return b.from + (b.to-b.from)*(rank-below)/n, total
		}
		below += n
	}
	return list[len(list)-1].to, total
}
