package nf

import (
	"fmt"
	"strconv"

	"github.com/weft-sdn/weft/bench/experiments"
	"github.com/weft-sdn/weft/bench/experiments/figure"
	"github.com/weft-sdn/weft/test/measure"
)

func utilisation() experiments.Experiment {
	return experiments.Experiment{
		Name: "nf-utilisation", Title: "how much of its CPU an intrusion detection uses as copies and as chains, on one CPU and on one each",
		Paper: paper, Figure: "Fig. 7",
		Claim:     "From 1 to 16 instances the CPU is used for 34 % to nearly 60 % by copies on one CPU, to 90 % by a chain on one CPU; with a CPU each, use of each falls to nearly 20 %.",
		Method:    testbedMethod + ` cpu_percent is the processor time of all functions, for each CPU that they have.`,
		Deviation: testbedDeviation,
		Runs:      10, QuickRuns: 2, Transports: []string{"grpc"},
		Statements: []experiments.Statement{
			experiments.Value(grown("one CPU, copies"), .25).OfRatio().Said("one CPU, copies", "from 34 % to nearly 60 %"),
			experiments.Value(grown("one CPU, chain"), .25).OfRatio().Said("one CPU, chain", "from 34 % to 90 %"),
			experiments.Value(grown("a CPU each, copies"), .25).OfRatio().Said("a CPU each", "from 34 % to nearly 20 %"),
		},
		Columns: columns(), Lasting: true,
		Cases: func(p experiments.Parameters) []experiments.Case { return cases(p.Quick) },
		Sum:   sumUtilisation,
	}
}

// grown is the use of 16 instances to that of one.
func grown(where string) float64 {
	return paperValues.Number("Fig. 7", where, "16") / paperValues.Number("Fig. 7", where, "1")
}

// used is one line of by_way.
type used struct {
	As      string        `json:"as"`
	OwnCPU  bool          `json:"own_cpu"`
	N       int           `json:"n"`
	Percent figure.Number `json:"cpu_percent"`
	CI95    []float64     `json:"ci95"`
}

func sumUtilisation(c *experiments.Context) error {
	panel := panelOf("")
	panel.Y.Label = "% of each CPU"
	byWay := []used{}
	for i, d := range ways() {
		line := figure.Series{Name: d.String(), Kind: figure.Line, Colour: i + 1}
		list := d.counts()
		for _, n := range list {
			of := median(c, "cpu_percent", d, n)
			line.Points = append(line.Points, figure.At(at(n), of, d.String()))
			byWay = append(byWay, used{string(d.as), d.own, n, figure.Number(of.Median), of.CI95})
		}
		if d.as != functions {
			says := d.String()
			if d.own {
				says = "a CPU each"
			}
			of := func(n int) []float64 {
				return c.Rounds("cpu_percent", d.String(), experiments.Where("n", strconv.Itoa(n)))
			}
			c.Compare(experiments.Claim{Figure: "Fig. 7", What: "16 instances to one, " + d.String(), Says: c.Statement(says)}.Of(measure.Ratio(of(16), of(1))).Beside(d.String(), d.String()))
		}
		panel.Series = append(panel.Series, line)
		said := paperValues.Series("Fig. 7", d.String(), figure.Dots, panel.X)
		if len(said.Points) > 0 {
			panel.Series = append(panel.Series, said)
		}
		for _, n := range list {
			claim := experiments.Claim{Figure: "Fig. 7", What: fmt.Sprintf("%s, n = %d", d, n), Paper: "-", Unit: "%"}.Of(median(c, "cpu_percent", d, n))
			for _, p := range said.Points {
				if p.X == at(n) {
					claim.Value, claim.Paper = float64(p.Y), fmt.Sprint(float64(p.Y))
				}
			}
			c.Compare(claim)
		}
	}
	c.Figure("by_way", byWay)
	c.Draw(figure.Figure{Name: "Fig. 7", Title: "use of CPUs by the number of instances", Panels: []figure.Panel{panel}})
	return nil
}
