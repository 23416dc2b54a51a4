package local

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/weft-sdn/weft/api"
)

// TestLatencyBuckets checks that every time lies within its bucket, and that
// buckets are no wider than a quarter of their start.
func TestLatencyBuckets(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 10_000 {
		d := time.Duration(random.Uint64N(1 << (1 + random.IntN(36))))
		at := latencyBucket(d)
		start := time.Duration(0)
		if at > 0 {
			start = latencyBound(at - 1)
		}
		end := latencyBound(at)
		if d < start || d >= end || at > 0 && float64(end-start) > 0.25*float64(start)+1 {
			t.Fatalf("%d ns is in bucket %d, which is from %d to %d", d, at, start, end)
		}
		if got := bucketAt(microseconds(end)); got != at {
			t.Fatalf("bucket %d, which ends at %d, is read as %d", at, end, got)
		}
	}
	if latencyBucket(-1) != 0 || latencyBucket(math.MaxInt64) != latencies-1 {
		t.Error("times out of range are not in the first and the last bucket")
	}
}

// TestCrossingsRates checks rates over 10 s, quantiles, and that they forget.
func TestCrossingsRates(t *testing.T) {
	c := newCrossings()
	of := CrossingOf{From: "forwarding", To: "paths", Kind: sentCall, Name: "paths.GetPath"}
	tally := c.Of(of)
	now := tally.born
	second := func(n int, took time.Duration) {
		for range n {
			tally.Add(1)
			tally.Took(took, 1)
		}
		now = now.Add(time.Second)
		c.beat(now)
	}
	check := func(what string, rate float64, total uint64, p50 float64) {
		t.Helper()
		x := c.List("p", now)[0]
		if math.Abs(x.PerS-rate) > 0.01*rate || x.Total != total || math.Abs(x.P50Us-p50) > 0.13*p50 || x.P99Us < x.P50Us {
			t.Errorf("%s: %+v; want %v/s, total %d, median %v us", what, x, rate, total, p50)
		}
	}
	second(200, time.Millisecond)
	check("after one second", 200, 200, 1000)
	for range 14 {
		second(100, time.Millisecond)
	}
	check("after 15 s", 100, 1600, 1000)
	for range 20 {
		second(50, 100*time.Microsecond)
	}
	check("20 slower seconds on", 50, 2600, 100)
	for range 25 {
		second(0, 0)
	}
	check("long after", 0, 2600, 0)
	if tally.sparse.Load() {
		t.Error("sparse without messages")
	}
	second(2000, time.Millisecond)
	if !tally.sparse.Load() {
		t.Error("2,000 in a second are all measured")
	}
}

// TestCrossingsAreBounded checks that processes that come and go take no more
// than some memory, and that what is within this process stays.
func TestCrossingsAreBounded(t *testing.T) {
	c := newCrossings()
	own := CrossingOf{From: "a", To: "b", Kind: sentEvent}
	c.held(own).Add(1)
	busy := CrossingOf{From: "a", To: "b", Kind: sentEvent, ToProcess: "busy"}
	for i := range 3 * tallyMost {
		c.Of(CrossingOf{From: "a", To: "b", Kind: sentEvent, ToProcess: fmt.Sprint(i)}).Add(1)
		if i%100 == 0 {
			c.Of(busy).Add(1)
			c.beat(time.Now())
		}
	}
	if len(c.all) != tallyMost || c.all[own] == nil || c.all[busy] == nil || c.all[busy].total.Load() != (3*tallyMost+99)/100 {
		t.Errorf("%d crossings; own %v, busy %v", len(c.all), c.all[own], c.all[busy])
	}
}

// TestCrossingsAtOnce counts from several goroutines while the rates are taken;
// no message is lost.
func TestCrossingsAtOnce(t *testing.T) {
	c := newCrossings()
	var work sync.WaitGroup
	for range 4 {
		work.Go(func() {
			for i := range 5000 {
				x := c.Of(CrossingOf{From: "a", To: fmt.Sprint(i % 7), Kind: sentCall})
				if x.count() {
					x.Took(time.Duration(i), 1)
				}
			}
		})
	}
	for range 50 {
		c.beat(time.Now())
		c.List("p", time.Now())
	}
	work.Wait()
	var sum uint64
	for _, x := range c.List("p", time.Now()) {
		sum += x.Total
	}
	if sum != 20_000 {
		t.Errorf("%d messages, want 20,000", sum)
	}
}

// TestAddLatency checks the sum of two histograms.
func TestAddLatency(t *testing.T) {
	histogram := func(times ...time.Duration) *api.Crossing {
		x := &api.Crossing{}
		slices.Sort(times)
		for _, d := range times {
			x.Latency = append(x.Latency, &api.LatencyBucket{ToUs: microseconds(latencyBound(latencyBucket(d))), Count: 100})
		}
		return x
	}
	x := histogram(time.Millisecond)
	AddLatency(x, histogram(3*time.Millisecond))
	if math.Abs(x.P50Us-4000) > 800 || len(x.Latency) != 1 || x.Latency[0].Count != 100 {
		t.Errorf("1 ms and then 3 ms: %v", x)
	}
	AddLatency(x, &api.Crossing{})
	if len(x.Latency) != 1 {
		t.Errorf("nothing more: %v", x)
	}
	x = &api.Crossing{}
	AddLatency(x, histogram(10*time.Microsecond, time.Second))
	if len(x.Latency) != 2 || x.P99Us < 800_000 {
		t.Errorf("only what follows: %v", x)
	}
}
