package traffic

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"
)

// Times and contents follow from the seed; Poisson packets come at random
// times, and words in the numbers wanted.
func TestTrafficSchedule(t *testing.T) {
	o := Options{Rate: 1000, Seed: 3, Count: 20000, Words: []string{"attack-1", "attack-2"}, MeanWords: 2.5}
	if err := o.check(); err != nil {
		t.Fatal(err)
	}
	draw := func(o Options) (times []float64, words float64, last string) {
		s := newSchedule(o)
		payload := make([]byte, 900)
		for range o.Count {
			s.fill(payload)
			words += float64(strings.Count(string(payload), "attack-")) / float64(o.Count)
			before := s.due
			s.next()
			times = append(times, (s.due - before).Seconds())
		}
		return times, words, string(payload)
	}
	times, words, last := draw(o)
	mean, variance := moments(times)
	if math.Abs(mean*1000-1) > 0.03 || math.Abs(variance/mean/mean-1) > 0.06 || math.Abs(words/2.5-1) > 0.04 {
		t.Errorf("packets every %v s, SCV %v, with %v words", mean, variance/mean/mean, words)
	}
	if again, _, same := draw(o); again[17] != times[17] || same != last {
		t.Error("one seed gives two schedules")
	}
	s, turns := newSchedule(o), make([]int, o.Flows)
	for n := range 3 * o.Flows {
		if turns[s.flow()]++; (n+1)%o.Flows == 0 && (slices.Min(turns) != (n+1)/o.Flows || slices.Max(turns) != (n+1)/o.Flows) {
			t.Errorf("after %d packets flows have %d to %d", n+1, slices.Min(turns), slices.Max(turns))
		}
	}
	if slices.IsSorted(s.flows) {
		t.Error("flows take turns in their order")
	}
	o.Arrivals = ConstantArrivals
	times, _, _ = draw(o)
	if mean, variance := moments(times); math.Abs(mean*1000-1) > 1e-6 || variance > 1e-15 {
		t.Errorf("constant packets every %v s, variance %v", mean, variance)
	}
}

func TestTrafficOptionsAreChecked(t *testing.T) {
	for _, c := range []struct {
		o    Options
		want string
	}{
		{Options{Rate: -1}, "rate -1: want 0.1 to 1000000"},
		{Options{Arrivals: "bursts"}, `arrivals "bursts": want poisson or constant`},
		{Options{Size: 20}, "size 20: want 44 to"},
		{Options{Flows: 60000}, "flows 60000: want 1 to 50000"},
		{Options{Duration: 100 * time.Hour}, "packets: want 1 to 10000000"},
		{Options{MeanWords: 1}, "1 words in a packet, of 0 words"},
		{Options{Words: []string{strings.Repeat("x", 1000)}}, "words of up to 1000 bytes: packets have room for 956"},
	} {
		if err := c.o.check(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v, want %s", c.o, err, c.want)
		}
	}
}
