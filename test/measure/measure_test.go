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
	i := Median([]float64{3, 1, 2, 5, 4})
	if i.Median != 3 || i.Count != 5 || i.CI95[0] < 1 || i.CI95[1] > 5 || i.CI95[0] > 3 || i.CI95[1] < 3 {
		t.Errorf("got %+v", i)
	}
	if again := Median([]float64{3, 1, 2, 5, 4}); !slices.Equal(again.CI95, i.CI95) {
		t.Errorf("the same values gave %v, then %v", i.CI95, again.CI95)
	}
	if one := Median([]float64{7}); one.Median != 7 || one.CI95 != nil || !one.Includes(1) {
		t.Errorf("of one value: %+v", one)
	}
	if two := Median([]float64{math.NaN(), 7}); two.Median != 7 || two.Count != 1 {
		t.Errorf("of one that was measured and one that was not: %+v", two)
	}
	if none := Median(nil); !math.IsNaN(none.Median) {
		t.Errorf("of none: %+v", none)
	}
}

// Of many samples of a known median, some 95 % of intervals contain it.
func TestMedianCovers(t *testing.T) {
	draw, covered := rand.New(rand.NewPCG(7, 7)), 0
	for range 300 {
		v := make([]float64, 15)
		for i := range v {
			v[i] = draw.NormFloat64()
		}
		if Median(v).Includes(0) {
			covered++
		}
	}
	if covered < 270 || covered > 298 {
		t.Errorf("%d of 300 intervals contain the median", covered)
	}
}

func TestRatio(t *testing.T) {
	r := Ratio([]float64{2, 4, 6, 8, 9}, []float64{1, 2, 3, 4, 0})
	if r.Median != 2 || r.Count != 4 || r.Includes(1) {
		t.Errorf("got %+v", r)
	}
	same := Ratio([]float64{1, 2, 3, 2}, []float64{2, 1, 2, 3})
	if !same.Includes(1) {
		t.Errorf("%+v says that there is a difference", same)
	}
}

func TestRatioOfMedians(t *testing.T) {
	r := RatioOfMedians([]float64{4, 4, 5, 4, 3, 4}, []float64{2, 2, 1.9, 2.1})
	if r.Median != 2 || r.Includes(1) || !r.Includes(2) || r.Count != 4 {
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
		{Median([]float64{2, 2}), `{"median":2,"ci95":[2,2],"count":2}`},
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
	if s := c.String(); !strings.Contains(s, "nice -15; flood_rate 0") || !strings.Contains(s, "build v1") {
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
	c := Begin("v1")
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
