package stats

import (
	"math"
	"testing"
	"time"
)

func TestGrowth(t *testing.T) {
	for name, c := range map[string]struct {
		before, after, n uint64
		known            bool
	}{
		"grown":                {10, 25, 15, true},
		"the same":             {10, 10, 0, true},
		"32 bits wrapped":      {1<<32 - 10, 5, 15, true},
		"64 bits wrapped":      {math.MaxUint64 - 10, 4, 15, true},
		"reset":                {1000, 5, 0, false},
		"reset from above 2³²": {1 << 40, 5, 0, false},
		"too far for a wrap":   {1<<31 + 1, 1<<31 - 1, 0, false},
		"not counted":          {math.MaxUint64, math.MaxUint64, 0, false},
		"counted from now on":  {math.MaxUint64, 5, 0, false},
	} {
		if n, known := growth(c.before, c.after); n != c.n || known != c.known {
			t.Errorf("%s: growth(%d, %d) = %d, %v, want %d, %v", name, c.before, c.after, n, known, c.n, c.known)
		}
	}
	if r := perSecond(100, 600, 2*time.Second); r != 250 {
		t.Errorf("rate %v, want 250", r)
	}
	if r := perSecond(100, 600, 0); r != 0 {
		t.Errorf("rate over no time %v", r)
	}
}

func TestIntervals(t *testing.T) {
	c := defaults()
	for name, x := range map[string]struct {
		load  load
		pace  pace
		ports time.Duration
		flows time.Duration
	}{
		"small and fast":    {load{switches: 10}, pace{took: time.Millisecond}, 5 * time.Second, 15 * time.Second},
		"1,000 switches":    {load{switches: 1000}, pace{}, 20 * time.Second, time.Minute},
		"many entries":      {load{switches: 10, entries: 100_000}, pace{}, 5 * time.Second, 100 * time.Second},
		"a slow switch":     {load{switches: 10}, pace{took: 2 * time.Second}, 20 * time.Second, time.Minute},
		"slow to list":      {load{switches: 10}, pace{flowTook: 9 * time.Second}, 5 * time.Second, 90 * time.Second},
		"failing":           {load{switches: 10}, pace{failures: 2}, 20 * time.Second, time.Minute},
		"failing for long":  {load{switches: 10}, pace{failures: 1000}, 5 * time.Minute, 15 * time.Minute},
		"a network of 100k": {load{switches: 100_000}, pace{}, 2000 * time.Second, 6000 * time.Second},
	} {
		if d := portInterval(c, x.load, x.pace); d != x.ports {
			t.Errorf("%s: ports every %v, want %v", name, d, x.ports)
		}
		if d := flowInterval(c, x.load, x.pace); d != x.flows {
			t.Errorf("%s: flow entries every %v, want %v", name, d, x.flows)
		}
	}
}
