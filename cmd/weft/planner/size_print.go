package planner

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"strings"

	"github.com/weft-sdn/weft/bench/experiments/figure"
	"github.com/weft-sdn/weft/cmd/weft/cli"
	"github.com/weft-sdn/weft/plan/size"
)

// sizeReport is what weft size prints. Times are null where there are none: the
// deployment is overloaded, has no formula, or nothing was simulated.
type sizeReport struct {
	Rate     float64     `json:"rate"`
	Of       string      `json:"of"` // what times are: mean, or p99
	TargetMS *float64    `json:"target_ms"`
	Met      bool        `json:"met"`
	Note     string      `json:"note,omitempty"`
	Best     sizePoint   `json:"best"`
	Curve    []sizePoint `json:"curve"`
	Seed     uint64      `json:"seed"`
}

type sizePoint struct {
	N           int      `json:"n"`
	As          string   `json:"as"`
	CPUs        int      `json:"cpus"`
	FormulaMS   *float64 `json:"formula_ms"`
	SimulatedMS *float64 `json:"simulated_ms"`
	CIMS        *float64 `json:"ci_ms"` // half width at 95 %
	Utilisation float64  `json:"utilisation"`
	Processor   float64  `json:"cpu_utilisation"`
	Loss        *float64 `json:"loss,omitempty"`
	Overloaded  bool     `json:"overloaded,omitempty"`
}

func newSizeReport(q size.Question, a size.Answer) *sizeReport {
	r := &sizeReport{Rate: q.Rate, Of: "mean", Met: a.Met, Note: a.Note, Seed: q.Seed, Best: newSizePoint(q, a.Best)}
	if q.Percentile > 0 {
		r.Of = fmt.Sprintf("p%g", q.Percentile)
	}
	if q.Target > 0 {
		r.TargetMS = milliseconds(q.Target)
	}
	for _, p := range a.Curve {
		r.Curve = append(r.Curve, newSizePoint(q, p))
	}
	return r
}

func newSizePoint(q size.Question, p size.Point) sizePoint {
	out := sizePoint{N: p.N, As: string(p.As), CPUs: p.CPUs, FormulaMS: milliseconds(p.Formula.Time), SimulatedMS: milliseconds(p.Simulated.Time),
		Utilisation: rounded(p.Utilisation), Processor: rounded(p.Processor), Overloaded: math.IsInf(p.Time().Time, 1)}
	if out.SimulatedMS != nil {
		out.CIMS = milliseconds(p.Simulated.CI)
	}
	if loss := p.Time().Loss; q.Room > 0 && !math.IsNaN(loss) {
		out.Loss = &loss
	}
	return out
}

// rounded returns a number with six digits.
func rounded(v float64) float64 {
	if v == 0 || math.IsInf(v, 0) || math.IsNaN(v) {
		return 0
	}
	scale := math.Pow(10, 5-math.Floor(math.Log10(math.Abs(v))))
	return math.Round(v*scale) / scale
}

// milliseconds returns a time as it is printed, nil if there is none.
func milliseconds(seconds float64) *float64 {
	if math.IsNaN(seconds) || math.IsInf(seconds, 0) {
		return nil
	}
	ms := rounded(seconds * 1e3)
	return &ms
}

// time is what counts of a point, NaN if there is none.
func (p sizePoint) time() float64 {
	if t := cmp.Or(p.SimulatedMS, p.FormulaMS); t != nil {
		return *t
	}
	return math.NaN()
}

// sizeBar is how many characters the longest bar of the table has.
const sizeBar = 30

// table writes the curve for people, with bars, and the answer below.
func (r *sizeReport) table(t *cli.Table) {
	most := 0.0
	for _, p := range r.Curve {
		if p.time() <= 20*r.Best.time() {
			most = max(most, p.time())
		}
	}
	written := func(v *float64) string {
		if v == nil {
			return "-"
		}
		return fmt.Sprintf("%.4g", *v)
	}
	t.Row("N", "AS", "CPUS", "FORMULA MS", "SIMULATED MS", "+-", "CPU", "LOSS", strings.ToUpper(r.Of)+" TIME")
	for _, p := range r.Curve {
		bar := "overloaded"
		if v := p.time(); !math.IsNaN(v) {
			bar = strings.Repeat("#", max(1, min(sizeBar, int(math.Round(sizeBar*v/most)))))
		}
		if p.N == r.Best.N && p.As == r.Best.As && p.CPUs == r.Best.CPUs {
			bar += " best"
		}
		t.Row(p.N, p.As, p.CPUs, written(p.FormulaMS), written(p.SimulatedMS), written(p.CIMS), fmt.Sprintf("%.0f %%", 100*p.Processor), written(p.Loss), bar)
	}
	t.Row()
	t.Row("best", fmt.Sprintf("%d as %s on %d processors: %s of %.4g ms", r.Best.N, r.Best.As, r.Best.CPUs, r.Of, r.Best.time()))
	if r.TargetMS != nil {
		t.Row("target", fmt.Sprintf("%g ms, met: %s", *r.TargetMS, cli.Yes(r.Met)))
	}
	if r.Note != "" {
		t.Row("note", r.Note)
	}
}

// sizePlotFormats is what a plot can be written as.
var sizePlotFormats = []string{".svg", ".png", ".pdf"}

// draw draws the curve.
func (r *sizeReport) draw(file string) (err error) {
	panel := figure.Panel{X: figure.Axis{Label: "instances"}, Y: figure.Axis{Label: r.Of + " time of a packet, ms"},
		Marks: []figure.Mark{{X: float64(r.Best.N), Text: "best"}}}
	at := map[string]int{}
	for _, p := range r.Curve {
		name := fmt.Sprintf("%s, %d processors", p.As, p.CPUs)
		switch {
		case p.CPUs == p.N && p.N > 1:
			name = p.As + ", a processor each"
		case p.CPUs == 1:
			name = p.As + ", one processor"
		}
		i, there := at[name]
		if !there {
			i = len(panel.Series)
			at[name] = i
			panel.Series = append(panel.Series, figure.Series{Name: name, Kind: figure.Line, Colour: i/2 + 1},
				figure.Series{Name: name + ", formula", Kind: figure.Curve, Colour: i/2 + 1, Dashed: true})
		}
		point := figure.Point{X: float64(p.N), Y: figure.Number(p.time())}
		if p.CIMS != nil {
			point.CI95 = []float64{p.time() - *p.CIMS, p.time() + *p.CIMS}
		}
		panel.Series[i].Points = append(panel.Series[i].Points, point)
		if point.CI95, point.Y = nil, figure.Number(math.NaN()); p.FormulaMS != nil {
			point.Y = figure.Number(*p.FormulaMS)
		}
		panel.Series[i+1].Points = append(panel.Series[i+1].Points, point)
	}
	f, err := create(file)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	title := fmt.Sprintf("%g packets/s: %d as %s on %d processors", r.Rate, r.Best.N, r.Best.As, r.Best.CPUs)
	return figure.Save(f, strings.TrimPrefix(strings.ToLower(filepath.Ext(file)), "."), []figure.Figure{{Name: "weft size", Title: title, Panels: []figure.Panel{panel}}}, nil)
}
