package simulate

import (
	"math"
	"math/rand/v2"
	"testing"
)

// Times have the moments of their law, and arrivals dealt to one of several
// copies have the law that deal returns.
func TestLaws(t *testing.T) {
	moments := func(draw func() float64) (mean, scv float64) {
		const n = 200_000
		squares := 0.0
		for range n {
			x := draw()
			if !(x >= 0) {
				t.Fatalf("a time of %v", x)
			}
			mean += x / n
			squares += x * x / n
		}
		return mean, squares/(mean*mean) - 1
	}
	check := func(what string, l Law, mean, scv float64) {
		if math.Abs(mean-l.Mean) > 0.02*l.Mean || math.Abs(scv-l.SCV) > 0.05*l.SCV+0.001 {
			t.Errorf("%s: mean %v, squared coefficient of variation %v, want %+v", what, mean, scv, l)
		}
	}
	for _, scv := range []float64{0, 0.01, 0.0625, 0.1, 0.25, 0.3, 0.5, 0.7, 0.999, 1, 1.001, 2, 4, 9} {
		l := Law{Mean: 3, SCV: scv}
		mean, got := moments(newSampler(l, rand.NewPCG(1, 2)).draw)
		check("a law", l, mean, got)
		for _, d := range []Dispatch{Random, RoundRobin} {
			a := newArrivals(l, nil, rand.NewPCG(3, 4))
			dealt := a.deal(3, d)
			mean, got := moments(a.draw)
			check(string(d), dealt, mean, got)
		}
	}
	if mean, scv := moments(newSampler(Law{SCV: 4}, rand.NewPCG(1, 2)).draw); mean != 0 && !math.IsNaN(scv) {
		t.Errorf("a mean of 0: %v", mean)
	}
}

// Bursts keep the rate, and have the index of dispersion that their comment says.
func TestBursts(t *testing.T) {
	b := Bursts{Swing: 0.8, Period: 20}
	a := newArrivals(Law{Mean: 1, SCV: 1}, &b, rand.NewPCG(1, 1))
	const window, windows = 2000.0, 3000
	var sum, squares float64
	left := 0.0
	for range windows {
		n := 0.0
		for left < window {
			left += a.draw()
			n++
		}
		left -= window
		sum += n / windows
		squares += n * n / windows
	}
	if want := 1 + b.Swing*b.Swing*b.Period; math.Abs(sum-window) > 0.01*window || math.Abs((squares-sum*sum)/sum-want) > 0.1*want {
		t.Errorf("%v packets, dispersion %v; want %v, %v", sum, (squares-sum*sum)/sum, window, want)
	}
}
