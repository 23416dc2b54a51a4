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

// Bursts keep the rate, and have the index of dispersion that Index says, over
// short times and long ones; so has what one of several copies gets of them.
func TestBursts(t *testing.T) {
	for name, b := range map[string]Bursts{
		"a wave":                {Waves: []Wave{{Up: 0.8, Down: 0.8, Time: 10}}},
		"rare bursts":           {Waves: []Wave{{Up: 9, Down: 0.5, Time: 2}}},
		"geometric batches":     {Batch: Batch{Mean: 4}},
		"constant batches":      {Batch: Batch{Mean: 2.5, Constant: true}},
		"batches on two waves":  {Batch: Batch{Mean: 3}, Waves: []Wave{{Up: 1, Down: 0.5, Time: 1}, {Up: 0.5, Down: 0.5, Time: 30}}},
		"as many as come alone": {Batch: Batch{Mean: 1}},
	} {
		for _, copies := range []int{1, 3} {
			a := newArrivals(Law{Mean: 1, SCV: 1}, &b, rand.NewPCG(1, 1))
			if copies > 1 {
				a.deal(copies, Random)
			}
			for _, window := range []float64{0.5, 200} {
				const windows = 20000
				rate, sum, squares, left := 1/float64(copies), 0.0, 0.0, a.draw()
				for range windows {
					n := 0.0
					for ; left < window; n++ {
						left += a.draw()
					}
					left -= window
					sum += n / windows
					squares += n * n / windows
				}
				want := 1 + (b.Index(1, window)-1)/float64(copies)
				if got := (squares - sum*sum) / sum; math.Abs(sum-window*rate) > 0.1*window*rate || math.Abs(got-want) > 0.15*want {
					t.Errorf("%s, one of %d copies, over %v: %v packets, dispersion %v; want %v, %v", name, copies, window, sum, got, window*rate, want)
				}
			}
		}
	}
}

// A histogram has the moments of its bins, is drawn as it is, and is scaled to a
// mean.
func TestShape(t *testing.T) {
	s, err := NewShape([]Bin{{1, 1, 600}, {2, 4, 300}, {10, 10, 100}, {5, 6, 0}})
	if err != nil {
		t.Fatal(err)
	}
	mean, second := 0.6+0.3*3+0.1*10, 0.6+0.3*(4+8+16)/3+0.1*100
	if math.Abs(s.Mean()-mean) > 1e-12 || math.Abs(s.SCV()-(second/mean/mean-1)) > 1e-12 {
		t.Errorf("mean %v, squared coefficient of variation %v", s.Mean(), s.SCV())
	}
	draws, of := newSampler(Law{Mean: 5, SCV: s.SCV(), Shape: s}, rand.NewPCG(1, 2)), [3]int{}
	const n = 100_000
	for range n {
		switch x := draws.draw() * mean / 5; {
		case math.Abs(x-1) < 1e-9:
			of[0]++
		case x >= 2 && x <= 4:
			of[1]++
		case math.Abs(x-10) < 1e-9:
			of[2]++
		default:
			t.Fatalf("a time of %v", x)
		}
	}
	for i, want := range []float64{0.6, 0.3, 0.1} {
		if math.Abs(float64(of[i])/n-want) > 0.01 {
			t.Errorf("%v of %d", of, n)
		}
	}
	for name, bins := range map[string][]Bin{"nothing": nil, "no time": {{0, 0, 5}}, "falling": {{2, 1, 5}}, "negative": {{1, 2, -1}}, "NaN": {{math.NaN(), 2, 1}}} {
		if _, err := NewShape(bins); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
