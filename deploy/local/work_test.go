package local

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"
)

// TestDispersion compares the index of dispersion with that of processes for
// which it is known.
func TestDispersion(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	began := time.Unix(1000, 0)
	index := func(next func(i int) float64) map[time.Duration]float64 {
		w := &Work{}
		at := 0.0
		for i := 0; at < 41; i++ {
			w.arriveAt(1, began.Add(time.Duration(at*1e9)).UnixNano())
			at += next(i)
		}
		found := map[time.Duration]float64{}
		for _, d := range w.Dispersion(began.Add(40 * time.Second)) {
			found[d.Over] = d.Index
		}
		if r, ok := w.Rate(began.Add(40*time.Second), 10*time.Second); !ok || math.Abs(r-1000) > 300 {
			t.Errorf("rate %v, want about 1000", r)
		}
		return found
	}
	poisson := index(func(int) float64 { return random.ExpFloat64() / 1000 })
	constant := index(func(int) float64 { return 0.001 })
	// Batches of 50 at once: 50 times that of a Poisson process.
	batches := index(func(i int) float64 {
		if i%50 != 49 {
			return 0
		}
		return random.ExpFloat64() / 20
	})
	ramp := make([]uint32, 4000) // from nothing to 4000/s
	for i := range ramp {
		ramp[i] = uint32(i / 100)
	}
	for _, d := range dispersion(ramp) {
		if d.Over <= time.Second && d.Index > 5 {
			t.Errorf("a rate that rises slowly: %.3g over %v", d.Index, d.Over)
		}
	}
	for over, tolerance := range map[time.Duration]float64{10 * time.Millisecond: 0.1, 100 * time.Millisecond: 0.2, time.Second: 0.6} {
		for name, c := range map[string]struct{ got, want float64 }{
			"Poisson": {poisson[over], 1}, "constant": {constant[over] + 1, 1}, "batches": {batches[over] / 50, 1},
		} {
			if math.Abs(c.got-c.want) > tolerance {
				t.Errorf("%s over %v: %.3g, want %v", name, over, c.got, c.want)
			}
		}
	}
	if _, ok := poisson[10*time.Second]; !ok {
		t.Error("no index over 10 s")
	}
	if got := (&Work{}).Dispersion(began); got != nil {
		t.Errorf("without arrivals: %v", got)
	}
}

// TestArrivalsOfLapsBefore checks that a window does not count what arrived a
// lap before, and that the clock may go back.
func TestArrivalsOfLapsBefore(t *testing.T) {
	w := &Work{}
	at := int64(1e18)
	lap := slots * slotLength
	for _, step := range []int64{0, lap, 3 * lap, -lap} {
		w.arriveAt(7, at+step)
		if r, _ := w.Rate(time.Unix(0, at+step+slotLength), 10*time.Millisecond); step >= 0 && r != 700 {
			t.Errorf("after %d laps: %v/s, want 700", step/lap, r)
		}
	}
	if w.Count() != 28 {
		t.Errorf("%d arrivals, want 28", w.Count())
	}
}

// TestTimes checks mean and variation of what is measured.
func TestTimes(t *testing.T) {
	w := &Work{}
	for _, d := range []time.Duration{time.Millisecond, 3 * time.Millisecond} {
		w.took(d)
		w.waited(d - 2*time.Millisecond)
	}
	if got := w.Times(); math.Abs(got.Mean()-0.002) > 1e-12 || math.Abs(got.SCV()-0.25) > 1e-9 || got.Waits != 2 || math.Abs(got.WaitSum-0.001) > 1e-12 {
		t.Errorf("%+v: mean %v, scv %v", got, got.Mean(), got.SCV())
	}
	if got := w.Times().Since(w.Times()); got.Count != 0 || got.Mean() != 0 || got.SCV() != 0 {
		t.Errorf("nothing since: %+v", got)
	}
	n := 0
	for i := range uint64(64_000) {
		if chosen(i) {
			n++
		}
	}
	if n < 990 || n > 1010 {
		t.Errorf("%d of 64,000 are measured, want 1 in 64", n)
	}
}

// The histogram of service times has them in buckets that are at most 6 % wide, and
// takes no memory but at the first.
func TestWorkHistogram(t *testing.T) {
	w := &Work{}
	if services, passages := w.Histograms(); services != nil || passages != nil {
		t.Error("a histogram of nothing")
	}
	took := []time.Duration{50, 3 * time.Microsecond, 3*time.Microsecond + 10, time.Millisecond, time.Minute}
	for _, d := range took {
		w.took(d)
	}
	w.passed(time.Second)
	list, passages := w.Histograms()
	total := uint32(0)
	for _, b := range list {
		total += b.Count
	}
	if total != 5 || len(list) != 4 || list[1].Count != 2 || list[1].From > took[1] || list[1].To <= took[2] {
		t.Errorf("%+v", list)
	}
	if len(passages) != 1 || passages[0].Count != 1 {
		t.Errorf("passages: %+v", passages)
	}
	if n := testing.AllocsPerRun(100, func() { w.took(time.Millisecond) }); n != 0 {
		t.Errorf("%v allocations for a time", n)
	}
}
