package bench

import (
	"context"
	"fmt"
	"math"
	"runtime"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/weft-sdn/weft/cmd/weft/cli"
	"github.com/weft-sdn/weft/plan/simulate"
	"github.com/weft-sdn/weft/plan/size"
)

// benchSizeReport is what weft bench size prints.
type benchSizeReport struct {
	Cells []benchSizeCell `json:"cells"`
	// Within2Percent is of how many cells the answer of weft size is within 2 % of a
	// simulation with another seed.
	Within2Percent int              `json:"within_2_percent"`
	Formula        []benchSizeMarks `json:"formula"` // of the formulas alone
	Seconds        float64          `json:"seconds"`
	AnswerMost     float64          `json:"answer_s_max"` // the longest answer, all cells at work
	Seed           uint64           `json:"seed"`
}

// benchSizeCell is one combination.
type benchSizeCell struct {
	Stations   int     `json:"stations"`
	Load       float64 `json:"load"`
	ArrivalSCV float64 `json:"arrival_scv"`
	ServiceSCV float64 `json:"service_scv"`
	// Times are multiples of the service time.
	Formula      float64 `json:"formula"`
	Answer       float64 `json:"answer"` // of weft size
	AnswerCI     float64 `json:"answer_ci"`
	Simulated    float64 `json:"simulated"` // with another seed
	SimulatedCI  float64 `json:"simulated_ci"`
	FormulaError float64 `json:"formula_error"` // shares
	AnswerError  float64 `json:"answer_error"`
	Seconds      float64 `json:"seconds"`
}

// benchSizeMarks are how good a formula is.
type benchSizeMarks struct {
	Stations int     `json:"stations"`
	Load     float64 `json:"load"`
	Cells    int     `json:"cells"`
	Within5  int     `json:"within_5_percent"`
	Within10 int     `json:"within_10_percent"`
	Worst    float64 `json:"worst"`
}

func benchSizeCommand() *cobra.Command {
	var seed uint64
	var out cli.Output
	cmd := &cobra.Command{
		Use:   "size",
		Short: "Judge weft size: its formulas and answers against simulations with another seed",
		Long: `Judge what weft size computes, on 25 combinations of how much the times between
packets vary (squared coefficients of variation 0.25 to 4) and the service times (0
to 4): one station at loads of 0.8 and 0.9, and chains of four at 0.8. Each answer
is put beside a simulation with another seed, and so is what formulas alone give.
Times are multiples of the service time. The result depends on the seed only.`,
		Example: `  weft bench size
  weft bench size --seed 7 -o json`,
		Args: cobra.NoArgs,
	}
	cmd.Flags().Uint64Var(&seed, "seed", 1, "seed of the answers; the simulations beside them have the next")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		ctx, stop := cli.Signals(cmd)
		defer stop()
		report, err := benchSize(ctx, seed, benchSizeGrid())
		if err != nil {
			return err
		}
		return out.Print(cmd, report, report.table)
	}
	out.Flag(cmd)
	return cmd
}

// benchSizeGrid returns the combinations.
func benchSizeGrid() (list []benchSizeCell) {
	for _, of := range []benchSizeMarks{{Stations: 1, Load: 0.8}, {Stations: 1, Load: 0.9}, {Stations: 4, Load: 0.8}} {
		for _, a := range []float64{0.25, 0.5, 1, 2, 4} {
			for _, b := range []float64{0, 0.25, 1, 2, 4} {
				list = append(list, benchSizeCell{Stations: of.Stations, Load: of.Load, ArrivalSCV: a, ServiceSCV: b})
			}
		}
	}
	return list
}

// benchSize judges cells, as many at a time as there are processors.
func benchSize(ctx context.Context, seed uint64, cells []benchSizeCell) (*benchSizeReport, error) {
	begin := time.Now()
	r := &benchSizeReport{Cells: cells, Seed: seed}
	failed := make([]error, len(cells))
	next := make(chan int)
	var work sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		work.Go(func() {
			for i := range next {
				failed[i] = cells[i].judge(seed)
			}
		})
	}
	for i := range cells {
		if ctx.Err() == nil {
			next <- i
		}
	}
	close(next)
	work.Wait()
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	for i, c := range cells {
		if failed[i] != nil {
			return nil, fmt.Errorf("%d stations, load %g, SCV %g and %g: %w", c.Stations, c.Load, c.ArrivalSCV, c.ServiceSCV, failed[i])
		}
		r.note(c)
	}
	r.Seconds = time.Since(begin).Seconds()
	return r, nil
}

// judge asks for an answer, and simulates the same with another seed.
func (c *benchSizeCell) judge(seed uint64) error {
	begin := time.Now()
	n := float64(c.Stations)
	q := size.Question{Rate: c.Load, ArrivalSCV: c.ArrivalSCV, Service: n, ServiceSCV: c.ServiceSCV, Simulate: true, Seed: seed,
		Counts: []int{c.Stations}, Forms: []size.Form{size.InChain}, Processors: []int{0}}
	answer, err := size.Solve(q)
	if err != nil {
		return err
	}
	c.Seconds = time.Since(begin).Seconds()
	c.Formula, c.Answer, c.AnswerCI = answer.Best.Formula.Time, answer.Best.Time().Time, answer.Best.Time().CI
	system := simulate.System{Arrivals: simulate.Law{Mean: 1 / c.Load, SCV: c.ArrivalSCV}}
	for range c.Stations {
		system.Stages = append(system.Stages, simulate.Stage{Copies: 1, Service: simulate.Law{Mean: 1, SCV: c.ServiceSCV}})
	}
	other, err := simulate.Run(system, simulate.Options{Seed: seed + 1, Visits: 60_000_000, Precision: 0.006})
	if err != nil {
		return err
	}
	c.Simulated, c.SimulatedCI = other.Mean, other.MeanCI
	c.FormulaError, c.AnswerError = c.Formula/c.Simulated-1, c.Answer/c.Simulated-1
	return nil
}

// note adds a cell to the marks.
func (r *benchSizeReport) note(c benchSizeCell) {
	if math.Abs(c.AnswerError) <= 0.02 {
		r.Within2Percent++
	}
	r.AnswerMost = max(r.AnswerMost, c.Seconds)
	last := len(r.Formula) - 1
	if last < 0 || r.Formula[last].Stations != c.Stations || r.Formula[last].Load != c.Load {
		r.Formula = append(r.Formula, benchSizeMarks{Stations: c.Stations, Load: c.Load})
		last++
	}
	m := &r.Formula[last]
	m.Cells++
	m.Worst = max(m.Worst, math.Abs(c.FormulaError))
	if math.Abs(c.FormulaError) <= 0.05 {
		m.Within5++
	}
	if math.Abs(c.FormulaError) <= 0.1 {
		m.Within10++
	}
}

// table writes the report for people.
func (r *benchSizeReport) table(t *cli.Table) {
	t.Row("STATIONS", "LOAD", "ARRIVAL SCV", "SERVICE SCV", "FORMULA", "ANSWER", "+-", "OTHER SEED", "+-", "FORMULA ERROR", "ANSWER ERROR")
	for _, c := range r.Cells {
		t.Row(c.Stations, c.Load, c.ArrivalSCV, c.ServiceSCV, fmt.Sprintf("%.3f", c.Formula), fmt.Sprintf("%.3f", c.Answer), fmt.Sprintf("%.3f", c.AnswerCI),
			fmt.Sprintf("%.3f", c.Simulated), fmt.Sprintf("%.3f", c.SimulatedCI), fmt.Sprintf("%+.1f %%", 100*c.FormulaError), fmt.Sprintf("%+.1f %%", 100*c.AnswerError))
	}
	t.Row()
	t.Row("answers", fmt.Sprintf("%d of %d within 2 %%; the longest took %.2f s", r.Within2Percent, len(r.Cells), r.AnswerMost))
	for _, m := range r.Formula {
		t.Row("formula", fmt.Sprintf("%d stations, load %g: of %d, %d within 5 %%, %d within 10 %%; worst %.1f %%", m.Stations, m.Load, m.Cells, m.Within5, m.Within10, 100*m.Worst))
	}
}
