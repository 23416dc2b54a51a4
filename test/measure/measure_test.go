package measure

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

func TestMedian(t *testing.T) {
	i := Median([]float64{3, 1, 2, 6, 5, 4})
	if i.Median != 3.5 || i.Count != 6 || !slices.Equal(i.CI95, []float64{1, 6}) {
		t.Errorf("of six: %+v, want their range", i)
	}
	if five := Median([]float64{3, 1, 2, 5, 4}); five.Median != 3 || five.CI95 != nil || !five.Includes(100) {
		t.Errorf("of five: %+v, want no interval", five)
	}
	if two := Median([]float64{math.NaN(), 7}); two.Median != 7 || two.Count != 1 {
		t.Errorf("of one that was measured and one that was not: %+v", two)
	}
	if none := Median(nil); !math.IsNaN(none.Median) {
		t.Errorf("of none: %+v", none)
	}
}

// The ranks are those of the tables of the sign test (two-sided, 5 %).
func TestIntervalRanks(t *testing.T) {
	for n, low := range map[int]float64{6: 1, 8: 1, 9: 2, 11: 2, 12: 3, 15: 4, 17: 5, 20: 6, 25: 8, 30: 10} {
		v := make([]float64, n)
		for i := range v {
			v[i] = float64(i + 1)
		}
		if got := Median(v).CI95; !slices.Equal(got, []float64{low, float64(n) + 1 - low}) {
			t.Errorf("of %d: ranks %v, want from %v", n, got, low)
		}
	}
}

// Of 6 to 30 values, however distributed, the intervals that are printed contain
// the true median, or ratio of medians, in 93 % of the cases or more.
func TestIntervalCovers(t *testing.T) {
	const trials = 1000
	draw := rand.New(rand.NewPCG(7, 7))
	for _, d := range []struct {
		name   string
		value  func() float64
		median float64
	}{
		{"normal", draw.NormFloat64, 0},
		{"lognormal", func() float64 { return math.Exp(draw.NormFloat64()) }, 1},
		{"one in ten", func() float64 { // is ten times as slow
			v := draw.ExpFloat64()
			if draw.IntN(10) == 0 {
				v *= 10
			}
			return v
		}, 0.79207},
	} {
		for n := IntervalLeast; n <= 30; n++ {
			covered, ratios, printed := 0, 0, 0
			for range trials {
				a, b := make([]float64, n), make([]float64, n)
				for i := range a {
					a[i], b[i] = d.value(), d.value()
				}
				if Median(a).Includes(d.median) {
					covered++
				}
				if r := RatioOfMedians(a, b); d.median > 0 && r.CI95 != nil {
					printed++
					if r.Includes(1) {
						ratios++
					}
				}
			}
			if covered < trials*93/100 {
				t.Errorf("%s, %d values: %d of %d intervals contain the median", d.name, n, covered, trials)
			}
			if ratios < printed*93/100 {
				t.Errorf("%s, %d values: %d of %d intervals contain the ratio of the medians", d.name, n, ratios, printed)
			}
		}
	}
}

// The share that an event of 20 packets, seen in three rounds of five, has in some 60
// packets of a round is within the interval in 93 % of the cases or more.
func TestPooledIntervalCovers(t *testing.T) {
	const trials = 1000
	draw := rand.New(rand.NewPCG(8, 8))
	for n := IntervalLeast; n <= 30; n++ {
		covered := 0
		for range trials {
			a, b := make([]float64, n), make([]float64, n)
			for i := range a {
				if b[i] = 50 + float64(draw.IntN(21)); draw.IntN(5) < 3 {
					a[i] = 20
				}
			}
			if Pooled(a, b).Includes(12. / 60) {
				covered++
			}
		}
		if covered < trials*93/100 {
			t.Errorf("%d rounds: %d of %d intervals contain the share", n, covered, trials)
		}
	}
	if p := Pooled([]float64{1, 2, math.NaN()}, []float64{10, 20, 30}); p.Median != 0.1 || p.Count != 2 || p.CI95 != nil {
		t.Errorf("of two rounds: %+v", p)
	}
	for degrees, want := range map[float64]float64{5: 3.163, 9: 2.685, 29: 2.364} {
		if got := student(degrees); math.Abs(got-want) > 0.01*want {
			t.Errorf("Student's t of %v: %v, want %v", degrees, got, want)
		}
	}
}

func TestRatio(t *testing.T) {
	r := Ratio([]float64{2, 4, 6, 8, 10, 12, 9}, []float64{1, 2, 3, 4, 5, 6, 0})
	if r.Median != 2 || r.Count != 6 || r.Includes(1) {
		t.Errorf("got %+v", r)
	}
	same := Ratio([]float64{1, 2, 3, 2}, []float64{2, 1, 2, 3})
	if !same.Includes(1) {
		t.Errorf("%+v says that there is a difference", same)
	}
}

func TestRatioOfMedians(t *testing.T) {
	r := RatioOfMedians([]float64{4, 4, 5, 4, 3, 4, 4}, []float64{2, 2, 1.9, 2.1, 2, 2, 2, 2})
	if r.Median != 2 || r.Includes(1) || !r.Includes(2) || r.Count != 7 {
		t.Errorf("got %+v", r)
	}
	if one := RatioOfMedians([]float64{4}, []float64{2, 2}); one.Median != 2 || one.CI95 != nil {
		t.Errorf("got %+v", one)
	}
}

func TestOrder(t *testing.T) {
	if a, b := Order(0, 3), Order(1, 3); !slices.Equal(a, []int{0, 1, 2}) || !slices.Equal(b, []int{2, 1, 0}) {
		t.Errorf("got %v, %v", a, b)
	}
}

func TestJSON(t *testing.T) {
	for _, c := range []struct {
		of   Interval
		want string
	}{
		{Median(nil), `{"median":null,"ci95":null,"count":0}`},
		{Median([]float64{2, 2}), `{"median":2,"ci95":null,"count":2}`},
	} {
		if b, err := json.Marshal(c.of); err != nil || string(b) != c.want {
			t.Errorf("got %s, %v; want %s", b, err, c.want)
		}
	}
}

func TestConditions(t *testing.T) {
	c := Begin("v1", "nice -15")
	c.Also("flood_rate 0")
	c.End()
	if s := c.String(); !strings.Contains(s, "nice -15") || !strings.Contains(s, "flood_rate 0") || !strings.Contains(s, "build v1") {
		t.Errorf("got %q", s)
	}
	if c.BusyBefore < 0 || c.BusyBefore > 100 || c.StealPercent < 0 || c.StealPercent > 100 {
		t.Errorf("got %+v", c)
	}
	if m := ThisMachine(); m.Cores < 1 || m.Processor == "" || m.Kernel == "" || m.MemoryBytes == 0 {
		t.Errorf("got %+v", m)
	}
}

func TestDiffers(t *testing.T) {
	c := &Conditions{Build: "v1"}
	ctx := Collect(t.Context(), c)
	Differs(ctx, "a", "b")
	Differs(ctx, "b", "c")
	Differs(t.Context(), "nobody collects it")
	if !slices.Equal(c.Differs, []string{"a", "b", "c"}) {
		t.Errorf("got %q", c.Differs)
	}
	if list := grouped([]string{"a: x", "y", "b: x", "b: z"}); !slices.Equal(list, []string{"x (a, b)", "y", "z (b)"}) {
		t.Errorf("grouped: %q", list)
	}
	earlier := Conditions{Differs: []string{"z", "a"}, StealPercent: 7, Disturbed: "by others", LoadBefore: 3}
	both := c.After(earlier)
	if !slices.Equal(both.Differs, []string{"z", "a", "b", "c"}) || both.Disturbed != "by others" || both.LoadBefore != 3 || both.StealPercent != 7 {
		t.Errorf("got %+v", both)
	}
}
