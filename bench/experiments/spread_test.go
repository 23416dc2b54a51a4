package experiments

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
)

func TestSpread(t *testing.T) {
	hundred := make([]float64, 100)
	for i := range hundred {
		hundred[i] = float64(100 - i)
	}
	for name, test := range map[string]struct {
		values []float64
		want   Spread
	}{
		"one":     {[]float64{3}, Spread{Count: 1, Mean: 3, Median: 3, P5: 3, P95: 3, Max: 3}},
		"two":     {[]float64{3, 1}, Spread{Count: 2, Mean: 2, Median: 2, P5: 1, P95: 3, Max: 3, Variation: math.Sqrt2 / 2}},
		"hundred": {hundred, Spread{Count: 100, Mean: 50.5, Median: 50.5, P5: 5, P95: 95, Max: 100, Variation: 29.011491975882016 / 50.5}},
	} {
		got := NewSpread(test.values)
		for _, pair := range [][2]float64{
			{float64(got.Count), float64(test.want.Count)}, {got.Mean, test.want.Mean}, {got.Median, test.want.Median}, {got.P5, test.want.P5},
			{got.P95, test.want.P95}, {got.Max, test.want.Max}, {got.Variation, test.want.Variation},
		} {
			if math.Abs(pair[0]-pair[1]) > 1e-9 {
				t.Errorf("%s: %+v, want %+v", name, got, test.want)
				break
			}
		}
	}
	if none := NewSpread(nil); none.Count != 0 || !math.IsNaN(none.Mean) || !math.IsNaN(none.Max) {
		t.Errorf("of none: %+v", none)
	}
	for want, of := range map[string]Spread{`"median":null`: NewSpread(nil), `"median":3`: NewSpread([]float64{3})} {
		if b, err := json.Marshal(of); err != nil || !strings.Contains(string(b), want) {
			t.Errorf("%s, %v: want %s", b, err, want)
		}
	}
	if none := Total(nil); !math.IsNaN(none) || Total([]float64{1, 2}) != 3 {
		t.Errorf("the sum of no counts is %v", none)
	}
	if r := Ratio(1, 0); !math.IsNaN(r) {
		t.Errorf("ratio to nothing is %v", r)
	}
}
