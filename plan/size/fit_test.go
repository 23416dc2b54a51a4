package size

import (
	"math"
	"strings"
	"testing"

	"github.com/weft-sdn/weft/plan/simulate"
)

// Arrivals are fitted to what was measured of batches, of waves and of both, and
// what no such arrivals have is said.
func TestFit(t *testing.T) {
	const rate = 500
	times := []float64{1e-3, 1e-2, 0.1, 1, 10}
	for name, b := range map[string]simulate.Bursts{
		"Poisson":       {},
		"batches":       {Batch: simulate.Batch{Mean: 4}},
		"one wave":      {Waves: []simulate.Wave{{Up: 0.5, Down: 0.5, Time: 0.05}}},
		"rare bursts":   {Waves: []simulate.Wave{{Up: 8, Down: 0.5, Time: 0.02}}},
		"three scales":  {Waves: []simulate.Wave{{Up: 0.5, Down: 0.3, Time: 2e-3}, {Up: 0.5, Down: 0.3, Time: 0.05}, {Up: 0.3, Down: 0.3, Time: 2}}},
		"both together": {Batch: simulate.Batch{Mean: 2}, Waves: []simulate.Wave{{Up: 1, Down: 0.5, Time: 0.1}}},
	} {
		q := Question{Rate: rate}
		for _, at := range times {
			q.Dispersion = append(q.Dispersion, MeasuredDispersion{at, b.Index(rate, at)})
		}
		a := q.arriving()
		for _, p := range q.Dispersion {
			if got := a.bursts.Index(rate, p.Time); math.Abs(got/p.Index-1) > 0.03 {
				t.Errorf("%s: %v over %v s, want %v; %+v", name, got, p.Time, p.Index, a.bursts)
			}
		}
		if a.unlike != "" {
			t.Errorf("%s: %s", name, a.unlike)
		}
	}
	for name, list := range map[string][]MeasuredDispersion{
		"falling":         {{1e-3, 8}, {1, 2}},
		"too steep":       {{1e-3, 1}, {2e-3, 40}},
		"smooth at first": {{1e-3, 0.3}, {1, 3}},
	} {
		q := Question{Rate: rate, Dispersion: list}
		if a := q.arriving(); !strings.Contains(a.unlike, "where") {
			t.Errorf("%s: %+v, %q", name, a.bursts, a.unlike)
		}
	}
	q := Question{Rate: rate, Dispersion: []MeasuredDispersion{{1, 0.25}, {10, 0.25}}}
	if a := q.arriving(); a.bursts != nil || a.law.SCV != 0.25 || a.unlike != "" {
		t.Errorf("smoother than Poisson's: %+v", a)
	}
}

// All laws of a range have the mean and the variation that they are of.
func TestLaws(t *testing.T) {
	for _, scv := range []float64{0.05, 0.5, 1, 4, 20} {
		list := laws(scv)
		if len(list) != 5 {
			t.Errorf("%v: %d laws", scv, len(list))
		}
		for i, s := range list {
			if math.Abs(s.Mean()-1) > 0.01 || math.Abs(s.SCV()-scv) > 0.02*scv+0.002 {
				t.Errorf("law %d: mean %v, squared coefficient of variation %v, want %v", i, s.Mean(), s.SCV(), scv)
			}
		}
	}
}

// BenchmarkFit measures what a question with a dispersion takes before anything is
// simulated.
func BenchmarkFit(b *testing.B) {
	points := []MeasuredDispersion{{0.01, 2}, {0.1, 9}, {1, 10}, {10, 80}}
	for b.Loop() {
		fit(500, points)
	}
}
