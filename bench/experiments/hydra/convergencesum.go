package hydra

import (
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/weft-sdn/weft/bench/experiments"
	"github.com/weft-sdn/weft/bench/experiments/figure"
	model "github.com/weft-sdn/weft/plan/converge"
	"github.com/weft-sdn/weft/plan/partition"
	"github.com/weft-sdn/weft/test/measure"
)

// convergenceCase is the figures of one case, in ms.
type convergenceCase struct {
	Transport  string             `json:"transport"`
	Mode       string             `json:"mode"`
	Failure    string             `json:"failure"`
	Partitions int                `json:"partitions"`
	Converged  experiments.Spread `json:"converged_ms"`
	Restored   experiments.Spread `json:"restored_ms"`
	Messages   figure.Number      `json:"messages"` // mean
	Octets     figure.Number      `json:"octets"`   // mean
	interval   measure.Interval   // of the rounds' means
}

// sumConvergence compares all samples with the paper and draws them.
func sumConvergence(c *experiments.Context) error {
	g := partition.Hydra()
	names := convergenceTransports(c.Parameters)
	var cases []convergenceCase
	axis := figure.Axis{Label: "partitions"}
	for _, n := range partitionCounts() {
		axis.Names = append(axis.Names, strconv.Itoa(n))
	}
	panels := map[string]*figure.Panel{}
	for _, mode := range []string{repaired, recomputed} {
		panels[mode] = &figure.Panel{Title: mode, X: axis, Y: figure.Axis{Label: "ms, mean of a round's random failures"}}
	}
	var wrong, stretch []float64
	for at, name := range names {
		for _, mode := range []string{repaired, recomputed} {
			best := map[string]convergenceCase{} // by failure
			for _, kind := range failureKinds() {
				curve := figure.Series{Name: name, Kind: figure.Line, Colour: at + 1}
				for i, n := range partitionCounts() {
					of, where := convergenceName(name, n), experiments.Where("mode", mode, "failure", kind)
					x := convergenceCase{
						Transport: name, Mode: mode, Failure: kind, Partitions: n,
						Converged: c.Spread("converged_ms", of, where), Restored: c.Spread("restored_ms", of, where),
						Messages: figure.Number(c.Spread("messages", of, where).Mean), Octets: figure.Number(c.Spread("octets", of, where).Mean),
						interval: measure.Median(c.Means("converged_ms", of, where)),
					}
					wrong, stretch = append(wrong, c.All("wrong", of, where)...), append(stretch, c.All("stretch_max", of, where)...)
					cases = append(cases, x)
					curve.Points = append(curve.Points, figure.At(float64(i), x.interval, of))
					if b, ok := best[kind]; x.Converged.Count > 0 && (!ok || x.Converged.Mean < b.Converged.Mean) {
						best[kind] = x
					}
				}
				if kind == anyLink {
					panels[mode].Series = append(panels[mode].Series, curve)
				}
			}
			for _, kind := range failureKinds() {
				if _, ok := best[kind]; !ok {
					best[kind] = convergenceCase{interval: measure.Median(nil), Converged: experiments.NewSpread(nil)}
				}
			}
			b := best[anyLink]
			c.Compare(
				experiments.Claim{What: fmt.Sprintf("partitions with the least mean time of a round, %s, %s", mode, name), Says: c.Statement("best")}.
					Of(measure.Median(bestPartitions(c, name, mode))),
				experiments.Claim{What: fmt.Sprintf("converged, mean, with the least of all rounds, %d, %s, %s", b.Partitions, mode, name), Paper: "-", Unit: "ms"}.Of(b.interval).AtMost(50),
				experiments.Claim{What: fmt.Sprintf("converged, slowest, at that number, %s, %s", mode, name), Ours: b.Converged.Max, Unit: "ms"},
			)
			for _, kind := range []string{coreLink, podLink} {
				c.Compare(experiments.Claim{What: fmt.Sprintf("converged after a %s failure, mean, best at %d, %s, %s", kind, best[kind].Partitions, mode, name),
					Paper: "-", Unit: "ms"}.Of(best[kind].interval).AtMost(50))
			}
			random := experiments.Where("mode", mode, "failure", anyLink)
			with := func(n int) []float64 { return c.Means("converged_ms", convergenceName(name, n), random) }
			c.Compare(
				experiments.Claim{What: fmt.Sprintf("8 partitions to 1, %s, %s", mode, name), Says: c.Statement("falls")}.Of(measure.Ratio(with(8), with(1))).
					Beside(convergenceName(name, 8), convergenceName(name, 1)),
				experiments.Claim{What: fmt.Sprintf("32 partitions to 8, %s, %s", mode, name), Says: c.Statement("climbs")}.Of(measure.Ratio(with(32), with(8))).
					Beside(convergenceName(name, 32), convergenceName(name, 8)))
		}
	}
	c.Compare(
		experiments.Claim{What: "paths that differ from the flat computation in what they reach, or are none"}.Exactly(experiments.Total(wrong)).AtMost(0),
		experiments.Claim{What: "longest path to the shortest, between edge switches"}.Exactly(experiments.NewSpread(stretch).Max),
	)
	c.Figure("cases", cases)
	if err := predictConvergence(c, g, names[0], cases, panels); err != nil {
		return err
	}
	fig4 := figure.Figure{Name: "Fig. 4", Title: "convergence after the failure of a random link", Notes: []string{"The paper's figure has no numbers in its text; its least is at 8 partitions."}}
	for _, mode := range []string{repaired, recomputed} {
		panels[mode].Marks = []figure.Mark{{X: 3, Text: "the paper's least"}}
		fig4.Panels = append(fig4.Panels, *panels[mode])
	}
	c.Draw(fig4)
	return nil
}

// bestPartitions is, for each round, with how many partitions the mean of its failures
// of any link is least; NaN where a number was not measured.
func bestPartitions(c *experiments.Context, transport, mode string) []float64 {
	best, least := make([]float64, c.Runs), make([]float64, c.Runs)
	for round := range least {
		least[round] = math.Inf(1)
	}
	for _, n := range partitionCounts() {
		for round, mean := range c.Means("converged_ms", convergenceName(transport, n), experiments.Where("mode", mode, "failure", anyLink)) {
			switch {
			case math.IsNaN(mean):
				best[round], least[round] = mean, mean // and stays so
			case mean < least[round]:
				best[round], least[round] = float64(n), mean
			}
		}
	}
	return best
}

// predictConvergence puts the model of the paper (§3.2), calibrated by four of
// the numbers of partitions, beside the measurement of all.
func predictConvergence(c *experiments.Context, g *partition.Graph, transport string, cases []convergenceCase, panels map[string]*figure.Panel) error {
	figures := map[string][]model.Row{}
	for _, mode := range []string{repaired, recomputed} {
		var all, some []model.Measurement
		for _, x := range cases {
			if x.Transport != transport || x.Mode != mode || x.Failure != anyLink || x.Converged.Count == 0 {
				continue
			}
			r, err := partition.Partition(g, partition.Options{Partitions: x.Partitions})
			if err != nil {
				return err
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
			return err
		}
		figures[mode] = fitted.Compare(all)
		curve := figure.Series{Name: "predicted by the paper's model (eq. 1, 2)", Kind: figure.Curve, Dashed: true, Colour: 5}
		for _, row := range figures[mode] {
			curve.Points = append(curve.Points, figure.Point{X: float64(slices.Index(partitionCounts(), row.Partitions)), Y: figure.Number(row.Predicted)})
			if row.Partitions == 4 || row.Partitions == 16 {
				c.Compare(experiments.Claim{What: fmt.Sprintf("measured to predicted, %d partitions, %s, %s", row.Partitions, mode, transport),
					Paper: "a model (eq. 1, 2)", Ours: experiments.Ratio(row.Measured, row.Predicted)})
			}
		}
		panels[mode].Series = append(panels[mode].Series, curve)
	}
	c.Figure("model", figures)
	return nil
}
