package simulate

import (
	"errors"
	"math"
	"testing"
)

// one is a station of some copies that serve one packet in a unit of time each.
func one(rate, arrivals, service float64, copies int, d Dispatch) System {
	return System{Arrivals: Law{Mean: 1 / rate, SCV: arrivals}, Stages: []Stage{{Copies: copies, Dispatch: d, Service: Law{Mean: 1, SCV: service}}}}
}

func chain(rate, arrivals, service float64, stages int) System {
	s := one(rate, arrivals, service, 1, "")
	for range stages - 1 {
		s.Stages = append(s.Stages, s.Stages[0])
	}
	return s
}

// run fails the test if the result is not within 2 % of what is known.
func run(t *testing.T, name string, s System, want float64) Result {
	t.Helper()
	r, err := Run(s, Options{Seed: 1, Visits: 3_000_000, Precision: 0.005})
	if err != nil || math.Abs(r.Mean-want) > 0.02*want {
		t.Errorf("%s: %+v, %v; want %v", name, r, err, want)
	}
	return r
}

// What has a closed form is met.
func TestClosedForms(t *testing.T) {
	run(t, "M/M/1", one(0.8, 1, 1, 1, ""), 5)
	run(t, "M/D/1", one(0.9, 1, 0, 1, ""), 1+0.9/0.2)
	run(t, "M/G/1", one(0.7, 1, 4, 1, ""), 1+0.7*5/2/0.3)
	run(t, "M/M/4", one(3.2, 1, 1, 4, Central), 1+0.5964/0.8)
	run(t, "random M/M/1", one(3.2, 1, 1, 4, Random), 5)
	run(t, "four M/M/1", chain(0.8, 1, 1, 4), 20)
	run(t, "D/D/1", one(0.9, 0, 0, 1, ""), 1)
	batches := one(0.5, 1, 1, 1, "")
	batches.Bursts = &Bursts{Batch: Batch{Mean: 4}}
	run(t, "geometric batches before M/1", batches, 8)
	batches.Bursts = &Bursts{Batch: Batch{Mean: 4, Constant: true}}
	run(t, "constant batches before M/1", batches, 1+1.5+0.125*(4+16)/2/0.5)
	batches.Bursts = &Bursts{Batch: Batch{Mean: 4}}
	batches.Arrivals.Mean, batches.Stages[0].Copies, batches.Stages[0].Dispatch = 0.5, 4, Random
	run(t, "batches dealt to four", batches, 2*(1+0.75)) // of 1.75 packets each
	shared := one(0.8, 1, 4, 1<<20, Central)
	shared.Processors = 1
	run(t, "M/G/1, processor sharing", shared, 5)
	delay := one(3, 1, 4, 1<<20, Central)
	delay.Processors, delay.Stages[0].Idle = 1, 1
	run(t, "M/G/∞", delay, 1)
	back := one(0.4, 1, 1, 1, "")
	back.Route = [][]float64{{0.5}}
	run(t, "M/M/1 with feedback", back, 2*1/(1-0.8))
	two := chain(0.5, 1, 1, 2)
	two.Route = [][]float64{{0, 0.5}, {0.2, 0}} // Jackson: 0.5/0.9 and half of it
	run(t, "mesh", two, (1/(1-0.5/0.9)+0.5/(1-0.25/0.9))/0.9)
}

// M/M/1/K loses what its closed form says, by both engines; so does Erlang's loss
// system.
func TestLoss(t *testing.T) {
	const rho, k = 0.9, 5
	p := (1 - rho) * math.Pow(rho, k) / (1 - math.Pow(rho, k+1))
	number, total := 0.0, 0.0
	for i := 0; i <= k; i++ {
		number += float64(i) * math.Pow(rho, float64(i))
		total += math.Pow(rho, float64(i))
	}
	s := one(rho, 1, 1, 1, "")
	s.Stages[0].Room = k
	sojourn := number / total / (rho * (1 - p))
	r := run(t, "M/M/1/5", s, sojourn)
	s.Route = [][]float64{{0}}
	e := run(t, "M/M/1/5, by events", s, sojourn)
	erlang := one(3, 1, 4, 3, Central)
	erlang.Stages[0].Room = 3
	b := run(t, "M/G/3/3", erlang, 1)
	for got, want := range map[float64]float64{r.Loss: p, e.Loss: p, b.Loss: 4.5 / (1 + 3 + 4.5 + 4.5)} {
		if math.Abs(got-want) > 0.02*want {
			t.Errorf("lost %v, want %v", got, want)
		}
	}
}

// Both engines agree, for every dispatch, in mean and percentile.
func TestEngines(t *testing.T) {
	o := Options{Seed: 3, Visits: 1_500_000, Percentile: 95}
	for _, d := range Dispatches() {
		s := one(3, 2, 0.5, 4, d)
		a, err := Run(s, o)
		s.Route = [][]float64{{0}}
		b, other := Run(s, o)
		if err != nil || other != nil || math.Abs(a.Mean-b.Mean) > 0.03*a.Mean || math.Abs(a.Percentile-b.Percentile) > 0.03*a.Percentile {
			t.Errorf("%s: %+v, %v; by events %+v, %v", d, a, err, b, other)
		}
	}
	s := chain(0.7, 4, 0.25, 3)
	s.Bursts = &Bursts{Waves: []Wave{{Up: 0.5, Down: 0.5, Time: 5}}}
	a, _ := Run(s, o)
	s.Route = [][]float64{{0, 1, 0}, {0, 0, 1}, {0, 0, 0}}
	if b, err := Run(s, o); err != nil || math.Abs(a.Mean-b.Mean) > 0.04*a.Mean {
		t.Errorf("a chain: %+v; by events %+v, %v", a, b, err)
	}
}

// The same seed gives the same, another within the intervals.
func TestSeeds(t *testing.T) {
	s := chain(0.8, 4, 0, 4)
	o := Options{Seed: 1, Visits: 4_000_000, Precision: 0.006}
	a, _ := Run(s, o)
	if b, _ := Run(s, o); a != b {
		t.Errorf("%+v and %+v", a, b)
	}
	o.Seed = 2
	if b, _ := Run(s, o); a == b || math.Abs(a.Mean-b.Mean) > 0.02*a.Mean {
		t.Errorf("%+v; with another seed %+v", a, b)
	}
}

// What cannot be simulated is said.
func TestImpossible(t *testing.T) {
	s := one(1, 1, 1, 1, "")
	if _, err := Run(s, Options{Visits: 1000}); !errors.Is(err, ErrOverload) {
		t.Errorf("a load of 1: %v", err)
	}
	forever := one(0.5, 1, 1, 1, "")
	forever.Route = [][]float64{{1}}
	shared := chain(0.5, 1, 1, 3)
	shared.Processors = 1
	waves, half := one(0.5, 1, 1, 1, ""), one(0.5, 1, 1, 1, "")
	waves.Bursts = &Bursts{Waves: []Wave{{1, 0.6, 1}, {1, 0.6, 1}}}
	half.Bursts = &Bursts{Batch: Batch{Mean: 0.5}}
	for name, s := range map[string]System{
		"nothing": {}, "no stages": {Arrivals: Law{Mean: 1, SCV: 1}}, "negative": one(-1, 1, 1, 1, ""), "NaN": one(0.5, math.NaN(), 1, 1, ""),
		"no copies": one(0.5, 1, 1, 0, ""), "waves below 0": waves, "a batch of half": half, "forever": forever, "three stages on one processor": shared,
	} {
		if _, err := Run(s, Options{Visits: 1000}); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	s.Stages[0].Room = 10
	if r, err := Run(s, Options{Visits: 100_000}); err != nil || r.Loss == 0 {
		t.Errorf("a load of 1 with room for 10: %+v, %v", r, err)
	}
}
