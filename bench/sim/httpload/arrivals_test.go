package httpload

import (
	"context"
	"math"
	"testing"
	"time"
)

func TestArrivals(t *testing.T) {
	first := func(a Arrivals, n int) (all []time.Duration) {
		for at := range a.Times() {
			if all = append(all, at); len(all) == n {
				return all
			}
		}
		return nil
	}
	even := first(Arrivals{Rate: 1000}, 4)
	for i, at := range even {
		if want := time.Duration(i) * time.Millisecond; at != want {
			t.Errorf("constant: the %d-th at %v, want %v", i, at, want)
		}
	}
	const n = 20_000
	a := first(Arrivals{Rate: 100, Poisson: true, Seed: 7}, n)
	b := first(Arrivals{Rate: 100, Poisson: true, Seed: 7}, n)
	c := first(Arrivals{Rate: 100, Poisson: true, Seed: 8}, n)
	if a[n-1] != b[n-1] || a[n-1] == c[n-1] {
		t.Error("the times do not follow the seed")
	}
	// Gaps of a Poisson process have the mean 1/rate and the same deviation.
	var sum, squares float64
	for i := 1; i < n; i++ {
		gap := (a[i] - a[i-1]).Seconds()
		sum, squares = sum+gap, squares+gap*gap
	}
	mean := sum / (n - 1)
	deviation := math.Sqrt(squares/(n-1) - mean*mean)
	if math.Abs(mean-0.01) > 0.0003 || math.Abs(deviation-0.01) > 0.0005 {
		t.Errorf("gaps: mean %v s, deviation %v s, want 0.01 each", mean, deviation)
	}
}

func TestEach(t *testing.T) {
	began := time.Now().Add(-time.Hour) // all is due
	n := 0
	Arrivals{Rate: 10}.Each(context.Background(), began, time.Second, func(due time.Time) {
		if want := began.Add(time.Duration(n) * 100 * time.Millisecond); !due.Equal(want) {
			t.Errorf("the %d-th is due at %v, want %v", n, due, want)
		}
		n++
	})
	if n != 10 {
		t.Errorf("%d arrivals within a second, want 10", n)
	}
	ctx, cancel := context.WithCancel(context.Background())
	n = 0
	Arrivals{Rate: 1e6}.Each(ctx, time.Now(), time.Hour, func(time.Time) {
		if n++; n == 3 {
			cancel()
		}
	})
	if n != 3 {
		t.Errorf("%d arrivals before the end, want 3", n)
	}
	if _, err := ParseArrivals("burst", 1, 1); err == nil {
		t.Error("there are bursts")
	}
}
