package figure

import (
	"bytes"
	"encoding/json"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/weft-sdn/weft/test/measure"
)

// example has every kind of series, an interval, a value that was not measured,
// one that a logarithmic axis has no place for, and one beyond an axis.
func example() Figure {
	of := func(v float64) measure.Interval { return measure.Interval{Median: v, CI95: []float64{v * .9, v * 1.2}} }
	return Figure{Name: "Fig. 1", Title: "an example", Notes: []string{"A note."}, Panels: []Panel{
		{Title: "bars", X: Axis{Names: []string{"a", "b"}}, Y: Axis{Label: "latency, ms"}, Series: []Series{
			{Name: "grpc", Kind: Bars, Colour: 1, Points: []Point{At(0, of(3), "grpc"), At(1, measure.Median(nil), "grpc")}},
			{Name: "paper", Kind: Bars, Source: "text of section 4", Points: []Point{{X: 0, Y: 7}}},
		}},
		{Title: "curves", X: Axis{Label: "packets per second", Log: true}, Y: Axis{Label: "ms", Log: true}, Marks: []Mark{{X: 100, Text: "killed"}}, Series: []Series{
			{Name: "ws", Kind: Line, Colour: 2, Points: []Point{At(10, of(1), "ws"), At(100, of(10), "ws"), {X: 1000, Y: 0, Case: "ws"}}},
		}},
		{Title: "distribution", X: Axis{Label: "ms", Max: 5}, Y: Axis{Label: "%", Max: 100}, Series: []Series{
			{Name: "rest", Kind: Steps, Colour: 3, Points: CDF([]float64{3, 1, 1, 9}, nil, "rest")},
			{Name: "nats", Kind: Curve, Colour: 4, Dashed: true, Points: []Point{{X: 0, Y: 1, Case: "nats"}, {X: 3, Y: 2, Case: "nats"}}},
		}},
		{Title: "map", X: Axis{Label: "compute", Names: []string{"1 us", "10 us"}}, Heat: &Heat{Rows: []string{"grpc"}, Cases: []string{"map"}, Values: [][]Number{{.5, 2}}, Texts: [][]string{{"0.5", "2.0"}}, Iso: 1}},
	}}
}

// All that is said of a figure is in it: names, notes, and what was left out.
func TestSave(t *testing.T) {
	for _, format := range []string{"svg", "png", "pdf"} {
		var b bytes.Buffer
		if err := Save(&b, format, []Figure{example()}, []string{"two processors"}); err != nil || b.Len() < 1000 {
			t.Fatalf("%s: %d octets, %v", format, b.Len(), err)
		}
		if format != "svg" {
			continue
		}
		for _, want := range []string{"Fig. 1: an example", "grpc", "latency, ms", "killed", "paper", "The paper's values: text of section 4.", "Not measured: grpc at b.",
			"Not above 0, drawn at the lower edge: ws at 1000.", "Beyond the axis: 1 points of rest.", "A note.", "two processors", "10 us"} {
			if !strings.Contains(strings.ReplaceAll(b.String(), "&#39;", "'"), want) {
				t.Errorf("the figure does not say %q", want)
			}
		}
	}
}

func TestCases(t *testing.T) {
	if got := Cases([]Figure{example()}); !slices.Equal(got, []string{"grpc", "ws", "rest", "nats", "map"}) {
		t.Errorf("got %q", got)
	}
}

func TestCDF(t *testing.T) {
	got := CDF([]float64{2, 1, 2}, []float64{1, 2, 1}, "x")
	if len(got) != 2 || got[0].X != 1 || got[0].Y != 50 || got[1].X != 2 || got[1].Y != 100 {
		t.Errorf("got %+v", got)
	}
}

func TestTicks(t *testing.T) {
	text := func(low, high float64, log bool) (list []string) {
		ticks := linear{}.Ticks(low, high)
		if log {
			ticks = logarithmic{}.Ticks(low, high)
		}
		for _, t := range ticks {
			if t.Label != "" {
				list = append(list, t.Label)
			}
		}
		return list
	}
	for _, c := range []struct {
		low, high float64
		log       bool
		want      string
	}{{0, 5, false, "0 1 2 3 4 5"}, {0, 700_000, false, "0 100k 200k 300k 400k 500k 600k 700k"}, {0, 0.35, false, "0 0.05 0.1 0.15 0.2 0.25 0.3 0.35"}, {1, 20, true, "1 2 5 10 20"}, {0.01, 100, true, "0.01 0.1 1 10 100"}} {
		if got := strings.Join(text(c.low, c.high, c.log), " "); got != c.want {
			t.Errorf("%v to %v: %s, want %s", c.low, c.high, got, c.want)
		}
	}
}

// A figure can be kept as JSON, values that were not measured included.
func TestJSON(t *testing.T) {
	b, err := json.Marshal(example())
	if err != nil {
		t.Fatal(err)
	}
	var back Figure
	if err := json.Unmarshal(b, &back); err != nil {
		t.Fatal(err)
	}
	if y := float64(back.Panels[0].Series[0].Points[1].Y); !math.IsNaN(y) {
		t.Errorf("not measured has become %v", y)
	}
	if again, err := json.Marshal(back); err != nil || !bytes.Equal(again, b) {
		t.Errorf("%s\n%s %v", again, b, err)
	}
}
