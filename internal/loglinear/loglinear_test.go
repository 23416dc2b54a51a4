package loglinear

import (
	"testing"
	"time"
)

// Buckets follow each other without gaps, are narrow, and have the times within
// their bounds.
func TestBuckets(t *testing.T) {
	last := time.Duration(0)
	for i := range Buckets {
		from, to := Bounds(i)
		if from != last || i > 0 && i < Buckets-1 && float64(to-from) > 0.0626*float64(from) {
			t.Errorf("bucket %d is from %v to %v, after %v", i, from, to, last)
		}
		if Of(from) != i || i < Buckets-1 && Of(to-1) != i {
			t.Errorf("bucket %d, from %v to %v: has %d and %d", i, from, to, Of(from), Of(to-1))
		}
		last = to
	}
	for d, want := range map[time.Duration]int{-1: 0, 0: 0, time.Hour: Buckets - 1} {
		if got := Of(d); got != want {
			t.Errorf("%v is in bucket %d, want %d", d, got, want)
		}
	}
}
