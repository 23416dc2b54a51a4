package planner

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/weft-sdn/weft/cmd/weft/cli"
	"github.com/weft-sdn/weft/internal/companion"
	"github.com/weft-sdn/weft/plan/size"
)

// SizeReport is what weft size prints. Times are null where there are none: the
// deployment is overloaded, has no formula, or nothing was simulated.
type SizeReport struct {
	Rate     float64   `json:"rate"`
	Of       string    `json:"of"` // what times are: mean, or p99
	TargetMS *float64  `json:"target_ms"`
	Met      bool      `json:"met"`
	Note     string    `json:"note,omitempty"`
	Best     SizePoint `json:"best"`
	// RangeMS is where the percentile of best lies, over laws of the service time with
	// the mean and the variation that were given; absent with a histogram.
	RangeMS []float64   `json:"range_ms,omitempty"`
	Curve   []SizePoint `json:"curve"`
	Seed    uint64      `json:"seed"`
}

// SizePoint is one deployment.
type SizePoint struct {
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

func newSizeReport(q size.Question, a size.Answer) *SizeReport {
	r := &SizeReport{Rate: q.Rate, Of: "mean", Met: a.Met, Note: a.Note, Seed: q.Seed, Best: newSizePoint(q, a.Best)}
	if q.Percentile > 0 {
		r.Of = fmt.Sprintf("p%g", q.Percentile)
	}
	if q.Target > 0 {
		r.TargetMS = milliseconds(q.Target)
	}
	if a.Range.High > 0 {
		r.RangeMS = []float64{rounded(a.Range.Low * 1e3), rounded(a.Range.High * 1e3)}
	}
	for _, p := range a.Curve {
		r.Curve = append(r.Curve, newSizePoint(q, p))
	}
	return r
}

func newSizePoint(q size.Question, p size.Point) SizePoint {
	out := SizePoint{N: p.N, As: string(p.As), CPUs: p.CPUs, FormulaMS: milliseconds(p.Formula.Time), SimulatedMS: milliseconds(p.Simulated.Time),
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

// Time is what counts of a point, NaN if there is none.
func (p SizePoint) Time() float64 {
	if t := cmp.Or(p.SimulatedMS, p.FormulaMS); t != nil {
		return *t
	}
	return math.NaN()
}

// sizeBar is how many characters the longest bar of the table has.
const sizeBar = 30

// table writes the curve for people, with bars, and the answer below.
func (r *SizeReport) table(t *cli.Table) {
	most := 0.0
	for _, p := range r.Curve {
		if p.Time() <= 20*r.Best.Time() {
			most = max(most, p.Time())
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
		if v := p.Time(); !math.IsNaN(v) {
			bar = strings.Repeat("#", max(1, min(sizeBar, int(math.Round(sizeBar*v/most)))))
		}
		if p.N == r.Best.N && p.As == r.Best.As && p.CPUs == r.Best.CPUs {
			bar += " best"
		}
		t.Row(p.N, p.As, p.CPUs, written(p.FormulaMS), written(p.SimulatedMS), written(p.CIMS), fmt.Sprintf("%.0f %%", 100*p.Processor), written(p.Loss), bar)
	}
	t.Row()
	t.Row("best", fmt.Sprintf("%d as %s on %d processors: %s of %.4g ms", r.Best.N, r.Best.As, r.Best.CPUs, r.Of, r.Best.Time()))
	if r.TargetMS != nil {
		t.Row("target", fmt.Sprintf("%g ms, met: %s", *r.TargetMS, cli.Yes(r.Met)))
	}
	if r.RangeMS != nil {
		t.Row("range", fmt.Sprintf("%.4g to %.4g ms, as the service times are distributed: give a histogram, --service-times", r.RangeMS[0], r.RangeMS[1]))
	}
	if r.Note != "" {
		t.Row("note", r.Note)
	}
}

// sizePlotFormats is what a plot can be written as.
var sizePlotFormats = []string{".svg", ".png", ".pdf"}

// DrawSize is the command of weft-bench that draws a report.
const DrawSize = "draw-size"

// draw has weft-bench draw the curve.
func (r *SizeReport) draw(ctx context.Context, file string) (err error) {
	program, err := companion.Find("weft-bench")
	if err != nil {
		return fmt.Errorf("--plot: %w", err)
	}
	report, err := json.Marshal(r)
	if err != nil {
		return err
	}
	f, err := create(file)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	var said bytes.Buffer
	c := exec.CommandContext(ctx, program, DrawSize, strings.TrimPrefix(strings.ToLower(filepath.Ext(file)), "."))
	c.Stdin, c.Stdout, c.Stderr = bytes.NewReader(report), f, &said
	if err := c.Run(); err != nil {
		return fmt.Errorf("--plot: %w: %s", err, &said)
	}
	return nil
}
