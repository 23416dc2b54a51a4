package experiments

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
)

func TestStatement(t *testing.T) {
	for name, test := range map[string]struct {
		of                 Statement
		below, in, above   []float64
		what, low, highest string // in JSON
	}{
		"a value":  {Value(8, .25), []float64{0, 5.9}, []float64{6, 8, 10}, []float64{10.1, math.Inf(1)}, "value", "6", "10"},
		"a range":  {Range(2, 4, .25), []float64{1}, []float64{1.5, 2, 5}, []float64{5.1}, "range", "1.5", "5"},
		"most":     {AtMost(6, 0), nil, []float64{-1, 0, 6}, []float64{6.1}, "limit", "null", "6"},
		"least":    {AtLeast(100, .05), []float64{94}, []float64{95, 200}, nil, "limit", "95", "null"},
		"below":    {Below(), nil, []float64{.2, .99}, []float64{1, 2}, "order", "null", "1"},
		"above":    {Above(), []float64{.5, 1}, []float64{1.01, 7}, nil, "order", "1", "null"},
		"negative": {Value(-1, .25), []float64{-2}, []float64{-1.25, -.75}, []float64{-.5, 1}, "value", "-1.25", "-0.75"},
	} {
		s := test.of.Said(name, "so")
		if err := s.Check(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		for want, list := range map[int][]float64{-1: test.below, 0: test.in, 1: test.above} {
			for _, v := range list {
				if got := s.place(v); got != want {
					t.Errorf("%s: %v is at %d, want %d", name, v, got, want)
				}
			}
		}
		b, err := json.Marshal(s)
		if want := `"reproduced_from":` + test.low + `,"reproduced_to":` + test.highest; err != nil || !strings.Contains(string(b), want) || !strings.Contains(string(b), `"kind":"`+test.what) {
			t.Errorf("%s: %s, %v; want %s", name, b, err, want)
		}
	}
}

func TestStatementCheck(t *testing.T) {
	for want, s := range map[string]Statement{
		"want a name":               Value(1, 0),
		"want 0 to 0.25":            Value(1, .3).Said("a", "b"),
		"every number, or none":     Range(2, 1, 0).Said("a", "b"),
		"NaN to 1":                  Range(math.NaN(), 1, 0).Said("a", "b"),
		"has 1, which is no differ": Range(1.11, 1.19, .2).OfRatio().Said("a", "b"),
	} {
		if err := s.Check(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, want %s", s, err, want)
		}
	}
	for _, s := range []Statement{Value(1, .25).OfRatio(), Below(), AtMost(1.1, 0).OfRatio()} {
		if err := s.Said("a", "b").Check(); err != nil {
			t.Error(err)
		}
	}
}
