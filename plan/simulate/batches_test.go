package simulate

import (
	"math"
	"math/rand/v2"
	"testing"
)

// The interval covers the mean about 19 times in 20, with controls and without,
// and controls make it the narrower the more they explain.
func TestIntervals(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	const tries, n = 2000, 32
	covered, controlled, wide, narrow := 0, 0, 0.0, 0.0
	for range tries {
		y, x := make([]float64, n), make([][]float64, n)
		for i := range y {
			c := r.NormFloat64()
			x[i] = []float64{c, 0, 1e-9 * r.NormFloat64()}
			y[i] = 7 + 3*c + r.NormFloat64()
		}
		mean, half := interval(y)
		if math.Abs(mean-7) < half {
			covered++
		}
		wide += half
		if mean, half = regressed(y, x); math.Abs(mean-7) < half {
			controlled++
		}
		narrow += half
	}
	if covered < 0.93*tries || covered > 0.97*tries || controlled < 0.93*tries || controlled > 0.97*tries {
		t.Errorf("of %d: %d, with controls %d", tries, covered, controlled)
	}
	if narrow > 0.4*wide {
		t.Errorf("controls make the interval %v of what it is without", narrow/wide)
	}
}

// A percentile of a histogram is within its bins.
func TestQuantile(t *testing.T) {
	b := newBatches(1000, 99, nil)
	for i := range 1000 {
		b.add(float64(i+1)/1e6, false)
	}
	b.close(nil)
	if r := b.result(); math.Abs(r.Percentile-990e-6) > 0.01*990e-6 || math.Abs(r.Mean-500.5e-6) > 1e-9 {
		t.Errorf("%+v", r)
	}
}
