package size_test

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/weft-sdn/weft/plan/simulate"
	"github.com/weft-sdn/weft/plan/size"
)

// paperQuestion is the paper's function.
func paperQuestion() size.Question {
	return size.Question{Rate: 970, ArrivalSCV: 1, Service: 0.6e-3, ServiceSCV: 1, Idle: 0.248e-3, Seed: 1}
}

func solve(t *testing.T, q size.Question) size.Answer {
	t.Helper()
	a, err := size.Solve(q)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// The best deployment has the fewest processors and then instances of those that
// reach the target; a longer target never takes more.
func TestSolve(t *testing.T) {
	last := math.MaxInt
	for _, target := range []float64{0.64e-3, 0.7e-3, 0.8e-3, 0.9e-3, 1.2e-3, 2e-3} {
		q := paperQuestion()
		q.Target = target
		a := solve(t, q)
		if !a.Met || a.Best.Time().Time > target || a.Best.CPUs > last {
			t.Errorf("target %v: %+v", target, a.Best)
		}
		last = a.Best.CPUs
		for _, p := range a.Curve {
			if p.Time().Time <= target && (p.CPUs < a.Best.CPUs || p.CPUs == a.Best.CPUs && p.N < a.Best.N) {
				t.Errorf("target %v: %+v would do, not %+v", target, p, a.Best)
			}
		}
	}
	q := paperQuestion()
	q.Simulate, q.Counts = true, []int{1, 2, 4}
	first := solve(t, q)
	for _, p := range first.Curve {
		if math.Abs(p.Formula.Time/p.Simulated.Time-1) > 0.06 || !(p.Simulated.CI > 0) {
			t.Errorf("%+v", p)
		}
	}
	if again := solve(t, q); !slices.Equal(first.Curve, again.Curve) {
		t.Error("the same question has two answers")
	}
}

// What cannot be reached has the nearest answer, and says which load could be
// carried.
func TestSolveUnreachable(t *testing.T) {
	q := paperQuestion()
	q.Target = 1e-5
	if a := solve(t, q); a.Met || a.Best.N == 0 || !strings.Contains(a.Note, "nearest") {
		t.Errorf("%+v, %q", a.Best, a.Note)
	}
	q.Counts, q.Target = []int{1}, 1e-3
	if a := solve(t, q); a.Met || !strings.Contains(a.Note, "at about 666.7 packets/s") { // 1/0.6 - 1/1
		t.Errorf("%q", a.Note)
	}
	q = paperQuestion()
	q.Rate, q.Target = 50_000, 1e-3
	if a := solve(t, q); !a.Met || a.Best.N != 75 || a.Best.As != size.Copies { // 50/(1/0.6-1)
		t.Errorf("more than 16: %+v", a.Best)
	}
	q.Rate, q.Target = 2000, 0
	q.Counts = []int{1}
	if _, err := size.Solve(q); err == nil || !strings.Contains(err.Error(), "these can serve at most about 1667 packets/s; 2 copies") {
		t.Errorf("overloaded: %v", err)
	}
}

// Without a formula there is a simulation: a chain of four in which bursts meet
// constant service. Every such answer is within 2 % of one with another seed.
func TestSolveFallsBack(t *testing.T) {
	for _, scv := range [][2]float64{{4, 0}, {4, 1}} {
		q := size.Question{Rate: 800, ArrivalSCV: scv[0], Service: 4e-3, ServiceSCV: scv[1], Simulate: true, Seed: 1,
			Counts: []int{4}, Forms: []size.Form{size.InChain}, Processors: []int{0}}
		a := solve(t, q)
		q.Seed = 2
		b := solve(t, q)
		near(t, "with another seed", a.Best.Time().Time, b.Best.Time().Time, 0.02)
	}
}

// Finite queues lose packets, dispatch matters, and dispersion is taken into
// account.
func TestSolveVariants(t *testing.T) {
	q := paperQuestion()
	q.Simulate, q.Counts, q.Processors, q.Forms, q.Room = true, []int{1}, []int{0}, []size.Form{size.Copies}, 3
	q.Rate = 2000
	p := solve(t, q).Best
	near(t, "lost", p.Formula.Loss, p.Simulated.Loss, 0.03)
	times := []float64{}
	for _, d := range []simulate.Dispatch{simulate.Random, simulate.RoundRobin, simulate.Shortest, simulate.Central} {
		q := size.Question{Rate: 12_800, ArrivalSCV: 1, Service: 1e-3, ServiceSCV: 1, Simulate: true, Seed: 1, Dispatch: d, Counts: []int{16}, Forms: []size.Form{size.Copies}, Processors: []int{0}}
		times = append(times, solve(t, q).Best.Time().Time*1e3)
	}
	for i, want := range []float64{5, 2.83, 1.205, 1.098} { // of which random and central are exact
		near(t, "dispatch", times[i], want, 0.02)
	}
	q = paperQuestion()
	q.Simulate, q.Counts, q.Dispersion = true, []int{1}, []size.MeasuredDispersion{{Time: 1e-3, Index: 1.2}, {Time: 1, Index: 6}}
	burst := solve(t, q).Best
	if burst.Simulated.Time < 1.4*1.43e-3 || math.Abs(burst.Formula.Time/burst.Simulated.Time-1) > 0.3 {
		t.Errorf("bursts: %+v", burst)
	}
}

// What is wrong with a question is said.
func TestQuestionErrors(t *testing.T) {
	for want, change := range map[string]func(*size.Question){
		"rate 0":                func(q *size.Question) { q.Rate = 0 },
		"rate NaN":              func(q *size.Question) { q.Rate = math.NaN() },
		"service 0":             func(q *size.Question) { q.Service = 0 },
		"service +Inf":          func(q *size.Question) { q.Service = math.Inf(1) },
		"idle 1s: want at most": func(q *size.Question) { q.Idle = 1 },
		"idle -1s":              func(q *size.Question) { q.Idle = -1 },
		"percentile 100":        func(q *size.Question) { q.Percentile = 100 },
		"percentile 0.5":        func(q *size.Question) { q.Percentile = 0.5 },
		"instances 0":           func(q *size.Question) { q.Counts = []int{0} },
		"instances 1000":        func(q *size.Question) { q.Counts = []int{1000} },
		`as "mesh"`:             func(q *size.Question) { q.Forms = []size.Form{"mesh"} },
		"cpus -1":               func(q *size.Question) { q.Processors = []int{-1} },
		`dispatch "x"`:          func(q *size.Question) { q.Dispatch = "x" },
		"dispersion 1s=1": func(q *size.Question) {
			q.Dispersion = []size.MeasuredDispersion{{Time: 2, Index: 1}, {Time: 1, Index: 1}}
		},
		"loss 0.1: without": func(q *size.Question) { q.Loss = 0.1 },
	} {
		q := paperQuestion()
		change(&q)
		if _, err := size.Solve(q); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// An overhead grows with the number of instances: formula and simulation have it,
// copies for each packet, the parts of a chain together.
func TestOverhead(t *testing.T) {
	q := paperQuestion()
	q.Idle, q.Simulate, q.Counts, q.Processors = 0, true, []int{1, 2, 4, 8}, []int{0}
	q.Overhead = []size.MeasuredOverhead{{N: 2, Time: 0.01e-3}, {N: 4, Time: 0.05e-3}}
	added := map[int]float64{1: 0, 2: 0.01e-3, 4: 0.05e-3, 8: 0.13e-3} // beyond the last two on their line
	for _, p := range solve(t, q).Curve {
		n := float64(p.N)
		want := 1 / (1/(q.Service+added[p.N]) - q.Rate/n) // M/M/1
		if p.As == size.InChain {
			want = n / (n/(q.Service+added[p.N]) - q.Rate)
		}
		if math.Abs(p.Formula.Time/want-1) > 1e-6 || math.Abs(p.Simulated.Time/want-1) > 0.03 {
			t.Errorf("%d as %s: formula %v and simulated %v, want %v", p.N, p.As, p.Formula.Time, p.Simulated.Time, want)
		}
	}
	for _, wrong := range [][]size.MeasuredOverhead{{{N: 0, Time: 1}}, {{N: 4, Time: 1}, {N: 2, Time: 2}}, {{N: 2, Time: -1}}, {{N: 2, Time: math.NaN()}}} {
		q.Overhead = wrong
		if _, err := size.Solve(q); err == nil || !strings.Contains(err.Error(), "want rising numbers of instances") {
			t.Errorf("overhead %v: %v", wrong, err)
		}
	}
	q = paperQuestion()
	q.Counts, q.Overhead = []int{1, 16}, []size.MeasuredOverhead{{N: 16, Time: 5e-3}}
	if a := solve(t, q); a.Best.N != 1 {
		t.Errorf("16 copies that cost ten times as much each: %+v", a.Best)
	}
}
