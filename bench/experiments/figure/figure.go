// Package figure draws the figures of experiments. An experiment says what a
// figure shows: its panels, their axes, and series of points with their
// intervals, the paper's among them; what cannot be drawn is said below it.
package figure

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/weft-sdn/weft/test/measure"
)

// Figure is one figure.
type Figure struct {
	Name   string   `json:"name"` // as the paper has it: "Fig. 9"
	Title  string   `json:"title"`
	Panels []Panel  `json:"panels"`
	Notes  []string `json:"notes,omitempty"` // below it
}

// Panel is one pair of axes.
type Panel struct {
	Title  string   `json:"title,omitempty"`
	X      Axis     `json:"x"`
	Y      Axis     `json:"y"`
	Series []Series `json:"series,omitempty"`
	Marks  []Mark   `json:"marks,omitempty"`
	Heat   *Heat    `json:"heat,omitempty"` // instead of series
}

// Axis is one axis of a panel.
type Axis struct {
	Label string   `json:"label"`           // with the unit
	Names []string `json:"names,omitempty"` // of its points 0, 1, …; none: numbers
	Log   bool     `json:"log,omitempty"`
	Max   float64  `json:"max,omitempty"` // 0 is what there is
}

// Kind is how a series is drawn.
type Kind string

// The kinds of series.
const (
	Bars  Kind = "bars"  // beside those of the panel's other series, at each X
	Line  Kind = "line"  // with a dot at each point
	Curve Kind = "curve" // without dots
	Steps Kind = "steps" // a distribution function
	Dots  Kind = "dots"
)

// Series is what is drawn in one colour.
type Series struct {
	Name   string  `json:"name"`
	Kind   Kind    `json:"kind"`
	Points []Point `json:"points"`
	Colour int     `json:"colour"`           // 0 is grey
	Dashed bool    `json:"dashed,omitempty"` // of lines
	// Source is where the paper's values are in the paper; they are drawn in
	// black, and hollow, and told apart by their shape. Empty: measured.
	Source string `json:"source,omitempty"`
	// Hollow is drawn as an outline: a result that is not one of those beside it.
	Hollow bool `json:"hollow,omitempty"`
}

// Point is one value. NaN is not measured.
type Point struct {
	X    float64   `json:"x"`
	Y    Number    `json:"y"`
	CI95 []float64 `json:"ci95,omitempty"` // drawn as a line with two ends
	Case string    `json:"case,omitempty"` // which case of the experiment it is of
}

// At returns the point of an interval.
func At(x float64, of measure.Interval, what string) Point {
	return Point{X: x, Y: Number(of.Median), CI95: of.CI95, Case: what}
}

// Mark is a moment: a line across a panel.
type Mark struct {
	X    float64 `json:"x"`
	Text string  `json:"text"`
	Left bool    `json:"left,omitempty"` // of the line is the text
}

// Heat is a map: a value for each row and column, its text in the cell, and a
// line between what is below Iso and what is not.
type Heat struct {
	Rows   []string   `json:"rows"` // from below
	Values [][]Number `json:"values"`
	Texts  [][]string `json:"texts"`
	Cases  []string   `json:"cases"` // of the rows
	Iso    float64    `json:"iso"`
}

// Number is a value that JSON has as null where there is none.
type Number float64

// MarshalJSON writes null for NaN and infinities.
func (n Number) MarshalJSON() ([]byte, error) {
	if !finite(float64(n)) {
		return []byte("null"), nil
	}
	return json.Marshal(float64(n))
}

// UnmarshalJSON reads null as NaN.
func (n *Number) UnmarshalJSON(b []byte) error {
	if string(b) == "null" {
		*n = Number(math.NaN())
		return nil
	}
	return json.Unmarshal(b, (*float64)(n))
}

func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

// CDF returns the distribution function of all values, in percent: a step at
// each distinct one. weights are how often each came; nil is once.
func CDF(values, weights []float64, what string) []Point {
	order, all := make([]int, len(values)), 0.0
	weight := func(i int) float64 {
		if weights == nil {
			return 1
		}
		return weights[i]
	}
	for i := range order {
		order[i] = i
		all += weight(i)
	}
	slices.SortFunc(order, func(a, b int) int {
		if values[a] < values[b] {
			return -1
		}
		if values[a] > values[b] {
			return 1
		}
		return 0
	})
	var list []Point
	sum := 0.0
	for _, i := range order {
		sum += weight(i)
		p := Point{X: values[i], Y: Number(100 * sum / all), Case: what}
		if n := len(list); n > 0 && list[n-1].X == p.X {
			list[n-1] = p
			continue
		}
		list = append(list, p)
	}
	return list
}

// Cases returns the cases that figures show, each once.
func Cases(figures []Figure) (list []string) {
	add := func(what string) {
		if what != "" && !slices.Contains(list, what) {
			list = append(list, what)
		}
	}
	for _, f := range figures {
		for _, p := range f.Panels {
			if p.Heat != nil {
				for _, c := range p.Heat.Cases {
					add(c)
				}
			}
			for _, s := range p.Series {
				for _, pt := range s.Points {
					add(pt.Case)
				}
			}
		}
	}
	return list
}

// missing says what of a figure is not drawn as a value: points that were not
// measured, values that a logarithmic axis has no place for, and what is beyond
// an axis's end.
func (f Figure) missing() (notes []string) {
	var none, low, beyond []string
	for _, p := range f.Panels {
		for _, s := range p.Series {
			where := func(pt Point) string {
				if i := int(pt.X); len(p.X.Names) > i && i >= 0 {
					return s.Name + " at " + p.X.Names[i]
				}
				return s.Name + " at " + tickText(pt.X)
			}
			outside := 0
			for _, pt := range s.Points {
				switch y := float64(pt.Y); {
				case !finite(y):
					none = append(none, where(pt))
				case p.Y.Log && y <= 0:
					low = append(low, where(pt))
				case p.X.Max > 0 && pt.X > p.X.Max || p.Y.Max > 0 && y > p.Y.Max:
					outside++
				}
			}
			if outside > 0 {
				beyond = append(beyond, fmt.Sprintf("%d points of %s", outside, s.Name))
			}
		}
	}
	for _, n := range []struct {
		what string
		list []string
	}{{"Not measured", none}, {"Not above 0, drawn at the lower edge", low}, {"Beyond the axis", beyond}} {
		if len(n.list) > 0 {
			slices.Sort(n.list)
			notes = append(notes, n.what+": "+strings.Join(slices.Compact(n.list), "; ")+".")
		}
	}
	return notes
}

// sources says where the paper's values are from.
func (f Figure) sources() (notes []string) {
	for _, p := range f.Panels {
		for _, s := range p.Series {
			if note := "The paper's values: " + s.Source + "."; s.Source != "" && !slices.Contains(notes, note) {
				notes = append(notes, note)
			}
		}
	}
	return notes
}
