package httpload

import (
	"context"
	"fmt"
	"iter"
	"math/rand/v2"
	"syscall"
	"time"
)

// Arrivals say when the requests of an open loop are due.
type Arrivals struct {
	Rate    float64 // a second
	Poisson bool    // at random, independently of each other, instead of evenly
	Seed    uint64  // of Poisson: the same seed, the same times
}

// ParseArrivals returns Arrivals by name: constant or poisson.
func ParseArrivals(name string, rate float64, seed uint64) (Arrivals, error) {
	switch name {
	case "constant", "poisson":
		return Arrivals{Rate: rate, Poisson: name == "poisson", Seed: seed}, nil
	}
	return Arrivals{}, fmt.Errorf("arrivals %q; allowed: constant, poisson", name)
}

// String returns the name of the arrivals.
func (a Arrivals) String() string {
	if a.Poisson {
		return "poisson"
	}
	return "constant"
}

// Times returns when each request is due, from the start, without end.
func (a Arrivals) Times() iter.Seq[time.Duration] {
	return func(yield func(time.Duration) bool) {
		random := rand.New(rand.NewPCG(a.Seed, 1))
		for n, at := 0.0, 0.0; ; n++ {
			if !a.Poisson {
				at = n / a.Rate
			} else if n > 0 {
				at += random.ExpFloat64() / a.Rate
			}
			if !yield(time.Duration(at * float64(time.Second))) {
				return
			}
		}
	}
}

// early is how long before a time Go's own timers end, which are late by up to a
// millisecond.
const early = 2 * time.Millisecond

// Each waits for each arrival before the end, and calls f when it is due, which
// must not wait: with when it was due, which may be before now.
func (a Arrivals) Each(ctx context.Context, began time.Time, last time.Duration, f func(due time.Time)) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for at := range a.Times() {
		if at >= last {
			return
		}
		due := began.Add(at)
		if wait := time.Until(due) - early; wait > 0 {
			timer.Reset(wait)
			select {
			case <-ctx.Done():
				return
			case <-timer.C:
			}
		}
		for wait := time.Until(due); wait > 0; wait = time.Until(due) {
			rest := syscall.NsecToTimespec(int64(wait))
			_ = syscall.Nanosleep(&rest, nil) // a signal ends it early
		}
		if ctx.Err() != nil {
			return
		}
		f(due)
	}
}
