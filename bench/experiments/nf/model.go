package nf

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/weft-sdn/weft/bench/experiments"
	"github.com/weft-sdn/weft/bench/experiments/figure"
	"github.com/weft-sdn/weft/plan/simulate"
	"github.com/weft-sdn/weft/plan/size"
	"github.com/weft-sdn/weft/test/measure"
)

// modelled is one line of Fig. 5: copies on one CPU or on one each, with an
// overhead in milliseconds that each packet has.
type modelled struct {
	shared   bool
	overhead float64
}

func (d modelled) String() string {
	where := "a CPU each"
	if d.shared {
		where = "one CPU"
	}
	return fmt.Sprintf("%s, overhead %g ms", where, d.overhead)
}

func lines() (list []modelled) {
	for _, shared := range []bool{true, false} {
		for _, o := range size.PaperOverheads() {
			list = append(list, modelled{shared, o})
		}
	}
	return list
}

func model() experiments.Experiment {
	return experiments.Experiment{
		Name: "nf-model", Title: "delay of a network function by the number of its instances: the paper's equations as printed, beside a simulation",
		Paper: paper, Figure: "Fig. 5",
		Claim: `On a single CPU the best n of 1, 2, 4, 8, 16 is 16, 8, 4, 2, 2 for overheads of 0, 0.005, 0.01, 0.015, 0.02 ms; with a
CPU each, the delay always falls, with 4, 8 and 16 close.`,
		Method: `Equations 5 and 6 as printed, with λ = 0.97/ms, I = 0.248 ms and the T that Fig. 7's 34 % of the CPU gives. Beside them
the same function simulated: n copies with exponential times, of which a share of I/T needs no CPU, Poisson packets dealt to
them at random, on one CPU that they share equally or on one each. Each round is another seed. Every statement of the
text is checked against the equations as printed (statements).`,
		Deviation: `The equations for a single CPU credit (n-1)/2 idle times to each instance, without bound; as printed, service times
become negative. Packets can be idle at the same time only as far as there are packets: a simulation that gives the CPU to
another instance while one is idle gains far less.`,
		Runs: 10, QuickRuns: 6, Transports: []string{"grpc"},
		Statements: modelStatements(),
		Columns:    []string{"n", "printed_ms", "simulated_ms"},
		Cases: func(p experiments.Parameters) (list []experiments.Case) {
			for _, d := range lines() {
				list = append(list, experiments.Case{Name: d.String(), Setup: experiments.Setup{Services: "none: it is simulated", Priority: experiments.AsStarted, Processors: d.String(), Load: "λ = 0.97/ms"}, Open: func(_ context.Context, c *experiments.Context) (experiments.Subject, error) {
					return experiments.Once(func(_ context.Context, round int) ([][]string, error) {
						return d.sample(c.Seed+uint64(round)-1, c.Quick)
					}), nil
				}})
			}
			return list
		},
		Sum: sum,
	}
}

// bestStatement is the name of the statement on the best number of a line.
func (d modelled) bestStatement() string { return "best n, " + d.String() }

// modelStatements are those of section IV.A.
func modelStatements() (list []experiments.Statement) {
	for _, d := range lines() {
		if d.shared {
			best := paperValues.Number("Fig. 5", "best n", fmt.Sprint(d.overhead))
			list = append(list, experiments.Value(best, 0).Said(d.bestStatement(), fmt.Sprintf("best n is %.0f", best)))
		}
	}
	return append(list, experiments.Below().Said("falls", "always falls with n"))
}

// printed is the delay by the paper's equation, which may be no delay at all.
func (d modelled) printed(n int) float64 {
	if d.shared {
		return size.PaperFunction().SharedCopies(n, d.overhead)
	}
	return size.PaperFunction().OwnCopies(n, d.overhead)
}

// sample computes and simulates all numbers of instances.
func (d modelled) sample(seed uint64, quick bool) (rows [][]string, err error) {
	p := size.PaperFunction()
	o := simulate.Options{Seed: seed, Visits: 1_000_000, Precision: 0.006}
	if quick {
		o.Visits, o.Precision = 200_000, 0.01
	}
	for _, n := range size.PaperCounts() {
		service := p.Service + d.overhead
		stage := simulate.Stage{Copies: n, Service: simulate.Law{Mean: service, SCV: 1}, Idle: p.Idle / service}
		system := simulate.System{Arrivals: simulate.Law{Mean: 1 / p.Rate, SCV: 1}, Stages: []simulate.Stage{stage}}
		if d.shared {
			system.Processors = 1
		}
		r, err := simulate.Run(system, o)
		if err != nil {
			return nil, err
		}
		rows = append(rows, []string{strconv.Itoa(n), written(d.printed(n)), written(r.Mean)})
	}
	return rows, nil
}

func written(v float64) string { return strconv.FormatFloat(v, 'f', 4, 64) }

// sum draws Fig. 5 and compares what the paper says of it.
func sum(c *experiments.Context) error {
	list := statements()
	c.Figure("statements", list)
	fig := figure.Figure{Name: "Fig. 5", Title: "delay by the number of instances"}
	for _, s := range list {
		if !s.Reproduced {
			fig.Notes = append(fig.Notes, fmt.Sprintf("%s: the paper says %s; as printed: %s.", s.What, s.Paper, s.AsPrinted))
		}
	}
	single, own := panelOf("one CPU: eq. 5 and simulation"), panelOf("a CPU each: eq. 6 and simulation")
	for i, d := range lines() {
		colour := i%len(size.PaperOverheads()) + 1
		printed := figure.Series{Name: fmt.Sprintf("printed, %g ms", d.overhead), Kind: figure.Curve, Colour: colour, Dashed: true}
		simulated := figure.Series{Name: fmt.Sprintf("simulated, %g ms", d.overhead), Kind: figure.Line, Colour: colour}
		byCount := map[int][]float64{} // of each round
		for at, n := range size.PaperCounts() {
			byCount[n] = c.Rounds("simulated_ms", d.String(), experiments.Where("n", strconv.Itoa(n)))
			simulated.Points = append(simulated.Points, figure.At(float64(at), measure.Median(byCount[n]), d.String()))
			y := d.printed(n)
			if y <= 0 {
				y = math.NaN() // a negative delay
			}
			printed.Points = append(printed.Points, figure.Point{X: float64(at), Y: figure.Number(y)})
		}
		panel, best := &own, experiments.Claim{What: "best n simulated, " + d.String(), Seeded: true}.Of(measure.Median(leastOf(size.PaperCounts(), byCount)))
		if d.shared {
			panel, best.Says = &single, c.Statement(d.bestStatement())
		} else {
			c.Compare(experiments.Claim{What: "worst step of n simulated, to the n before, " + d.String(), Says: c.Statement("falls"), Seeded: true}.
				Of(measure.Median(worstStep(size.PaperCounts(), byCount))).Beside(d.String(), d.String()))
		}
		panel.Series = append(panel.Series, printed, simulated)
		c.Compare(best)
	}
	fig.Panels = []figure.Panel{single, own}
	c.Draw(fig)
	return nil
}

// leastOf is, for each round, the count with the least value; NaN where one was not
// measured.
func leastOf(counts []int, byCount map[int][]float64) []float64 {
	best, least := slices.Clone(byCount[counts[0]]), slices.Clone(byCount[counts[0]])
	for round := range best {
		if best[round] = float64(counts[0]); math.IsNaN(least[round]) {
			best[round] = math.NaN()
		}
		for _, n := range counts[1:] {
			switch v := byCount[n][round]; {
			case math.IsNaN(v):
				best[round], least[round] = v, v
			case v < least[round]:
				best[round], least[round] = float64(n), v
			}
		}
	}
	return best
}

// worstStep is, for each round, the largest ratio of the value of a count to that of the
// count before: below 1 if the values always fall. NaN where one was not measured.
func worstStep(counts []int, byCount map[int][]float64) []float64 {
	worst := make([]float64, len(byCount[counts[0]]))
	for round := range worst {
		for i, n := range counts[1:] {
			worst[round] = max(worst[round], byCount[n][round]/byCount[counts[i]][round])
		}
	}
	return worst
}

func panelOf(title string) figure.Panel {
	names := make([]string, len(size.PaperCounts()))
	for i, n := range size.PaperCounts() {
		names[i] = strconv.Itoa(n)
	}
	return figure.Panel{Title: title, X: figure.Axis{Label: "instances", Names: names}, Y: figure.Axis{Label: "mean delay, ms"}}
}
