package hydra

import (
	"fmt"
	"math"
	"strconv"

	"gonum.org/v1/plot/plotter"

	"github.com/weft-sdn/weft/experiments"
	model "github.com/weft-sdn/weft/plan/converge"
	"github.com/weft-sdn/weft/plan/partition"
)

// convergenceCase is the figures of one case, in ms.
type convergenceCase struct {
	Transport  string             `json:"transport"`
	Mode       string             `json:"mode"`
	Failure    string             `json:"failure"`
	Partitions int                `json:"partitions"`
	Converged  experiments.Spread `json:"converged_ms"`
	Restored   experiments.Spread `json:"restored_ms"`
	Messages   float64            `json:"messages"` // mean
	Octets     float64            `json:"octets"`   // mean
}

// values returns a column of a case.
func values(rows [][]float64, at int) (list []float64) {
	for _, row := range rows {
		list = append(list, row[at])
	}
	return list
}

// sumConvergence compares all samples with the paper and draws them.
func sumConvergence(c *experiments.Context, names []string, g *partition.Graph) error {
	var cases []convergenceCase
	var curves []experiments.Series
	wrong, longest, colour := 0.0, 1.0, 0
	for _, name := range names {
		for _, mode := range []string{repaired, recomputed} {
			best := map[string]convergenceCase{} // by failure
			for _, kind := range failureKinds() {
				curve := experiments.Series{Name: fmt.Sprintf("%s, %s", mode, name), Colour: colour, Dashed: name == "inproc"}
				for _, n := range partitionCounts() {
					rows := column(c.Data, []string{name, mode, strconv.Itoa(n), kind})
					x := convergenceCase{
						Transport: name, Mode: mode, Failure: kind, Partitions: n,
						Converged: experiments.NewSpread(values(rows, convergenceFail)), Restored: experiments.NewSpread(values(rows, convergenceRestore)),
						Messages: orZero(mean(rows, convergenceMessages)), Octets: orZero(mean(rows, convergenceOctets)),
					}
					wrong += orZero(sum(rows, convergenceWrong))
					longest = math.Max(longest, orZero(most(rows, convergenceLongest)))
					cases = append(cases, x)
					curve.Points = append(curve.Points, plotter.XY{X: math.Log2(float64(n)), Y: x.Converged.Mean})
					if b, ok := best[kind]; !ok || x.Converged.Mean < b.Converged.Mean {
						best[kind] = x
					}
				}
				if kind == anyLink {
					curves = append(curves, curve)
					colour++
				}
			}
			b := best[anyLink]
			c.Compare(
				experiments.Claim{What: fmt.Sprintf("partitions with the least mean time, %s, %s", mode, name), Paper: "8", Value: 8, Ours: float64(b.Partitions)},
				experiments.Claim{What: fmt.Sprintf("converged, mean, at that number, %s, %s", mode, name), Paper: "-", Ours: b.Converged.Mean, Unit: "ms"}.AtMost(50),
				experiments.Claim{What: fmt.Sprintf("converged, slowest, at that number, %s, %s", mode, name), Paper: "-", Ours: b.Converged.Max, Unit: "ms"},
			)
			for _, kind := range []string{coreLink, podLink} {
				c.Compare(experiments.Claim{What: fmt.Sprintf("converged after a %s failure, mean, best at %d, %s, %s", kind, best[kind].Partitions, mode, name),
					Paper: "-", Ours: best[kind].Converged.Mean, Unit: "ms"}.AtMost(50))
			}
		}
	}
	c.Compare(
		experiments.Claim{What: "paths that differ from the flat computation in what they reach, or are none", Paper: "-", Ours: wrong}.AtMost(0),
		experiments.Claim{What: "longest path to the shortest, between edge switches", Paper: "-", Ours: longest},
	)
	c.Figure("cases", cases)
	predicted, err := predictConvergence(c, g, names[0], cases)
	if err != nil {
		return err
	}
	curves = append(curves, predicted...)
	p, err := experiments.Curves("convergence after the failure of a random link: means", "partitions, logarithm to base 2", "ms", curves)
	if err != nil {
		return err
	}
	c.Draw(p)
	return nil
}

// predictConvergence puts the model of the paper (§3.2), calibrated by four of
// the numbers of partitions, beside the measurement of all.
func predictConvergence(c *experiments.Context, g *partition.Graph, transport string, cases []convergenceCase) ([]experiments.Series, error) {
	var curves []experiments.Series
	figures := map[string][]model.Row{}
	for i, mode := range []string{repaired, recomputed} {
		var all, some []model.Measurement
		for _, x := range cases {
			if x.Transport != transport || x.Mode != mode || x.Failure != anyLink || x.Converged.Count == 0 {
				continue
			}
			r, err := partition.Partition(g, partition.Options{Partitions: x.Partitions})
			if err != nil {
				return nil, err
			}
			m := model.Measurement{Shape: model.ShapeOf(g, r).LinkFailures(g, r), Time: x.Converged.Mean}
			all = append(all, m)
			if x.Partitions != 4 && x.Partitions != 16 {
				some = append(some, m)
			}
		}
		if len(some) < 2 {
			continue
		}
		fitted, err := model.Calibrate(some)
		if err != nil {
			return nil, err
		}
		figures[mode] = fitted.Compare(all)
		curve := experiments.Series{Name: fmt.Sprintf("%s, %s, predicted", mode, transport), Colour: 5 + i, Dashed: true}
		for _, row := range figures[mode] {
			curve.Points = append(curve.Points, plotter.XY{X: math.Log2(float64(row.Partitions)), Y: row.Predicted})
			if row.Partitions == 4 || row.Partitions == 16 {
				c.Compare(experiments.Claim{What: fmt.Sprintf("measured to predicted, %d partitions, %s, %s", row.Partitions, mode, transport),
					Paper: "a model (eq. 1, 2)", Ours: experiments.Ratio(row.Measured, row.Predicted)})
			}
		}
		curves = append(curves, curve)
	}
	c.Figure("model", figures)
	return curves, nil
}
