package nf

import (
	"testing"
	"time"
)

// Loads are between the bounds, and each rises to the highest rate.
func TestShapes(t *testing.T) {
	for _, s := range shapes() {
		for _, quick := range []bool{true, false} {
			list := s.rates(1, quick)
			most, least := 0, 1<<30
			for _, r := range list {
				most, least = max(most, r), min(least, r)
			}
			if len(list) != int(s.period(quick).Seconds()) || float64(most) < 0.94*highRate || float64(most) > 1.05*highRate || float64(least) < 0.95*lowRate-1 || float64(least) > 1.3*lowRate {
				t.Errorf("%s: %d s, from %d to %d a second", s.name, len(list), least, most)
			}
			pairs := 0
			for _, r := range list {
				pairs += r
			}
			if n := hostsFor(pairs); n%sourcePorts != 0 || n*(n-n/sourcePorts) < pairs || n > 4000 {
				t.Errorf("%s: %d hosts for %d flows", s.name, n, pairs)
			}
		}
	}
}

// The threshold wants replicas in proportion to their use at once, and fewer
// after the cooldown.
func TestThreshold(t *testing.T) {
	s := threshold{at: 0.5, min: 1, max: 4, cooldown: 5 * time.Second}
	for i, step := range []struct {
		use            float64
		replicas, want int
	}{
		{0.5, 1, 1}, {0.54, 1, 1}, {0.6, 1, 2}, {1, 2, 4}, {1, 4, 4}, {0.1, 4, 4}, {0.1, 4, 4}, {0.1, 4, 4}, {0.1, 4, 4}, {0.1, 4, 4}, {0.1, 4, 1},
	} {
		if got := s.decide(time.Duration(i)*time.Second, step.replicas, step.use); got != step.want {
			t.Errorf("after %d s: %d replicas, want %d", i, got, step.want)
		}
	}
}

// A threshold that is tuned is no worse than any other by what it is tuned for,
// and depends on the load.
func TestTune(t *testing.T) {
	w := world{capacity: 400, start: 2 * time.Second, target: 50 * time.Millisecond}
	s := threshold{min: 1, max: 3, cooldown: 8 * time.Second}
	for _, load := range shapes() {
		rates := load.rates(1, true)
		best := w.tune(rates, s)
		late, seconds := w.play(rates, best)
		if best.at < 0.4 || best.at > 0.9 || seconds < 60 || seconds > 180 || late < 0 {
			t.Errorf("%s: threshold %v, %v late, %v s", load.name, best.at, late, seconds)
		}
		if len(best.wishes) > 0 {
			t.Errorf("%s: the tuned threshold remembers the simulation", load.name)
		}
	}
	fixed := threshold{at: 0.5, min: 1, max: 1, cooldown: time.Second}
	if late, seconds := w.play([]int{100, 100, 100, 800, 800}, fixed); seconds != 5 || late < 1600 || late > 1601 {
		t.Errorf("one replica at twice what it carries for 2 s: %v late, %v s", late, seconds)
	}
}
