package hydra

import (
	"fmt"
	"math"
	"strconv"

	"gonum.org/v1/plot/plotter"

	"github.com/weft-sdn/weft/experiments"
)

// Columns of the samples.
const (
	beatSaturation = 6
	beatDue        = 11
	beatMissed     = 12
	beatOver10     = 13
	beatOver100    = 14
	beatP50        = 15
	beatMax        = 19
)

// lateMost is the share of the heartbeats, in percent, that may take longer than 10 ms.
const lateMost = 0.1

// lateShare is the share of a case's heartbeats, in percent, that took longer than
// 10 ms; NaN if it was not measured.
func lateShare(d *experiments.Data, b beatCase) float64 {
	all := column(d, b.key())
	return 100 * sum(all, beatOver10) / sum(all, beatDue)
}

// keeps is the highest of the loads, which ascend, up to which no more are late than
// may be: at it and at all below it. 0 if there is none, NaN if one was not measured.
func keeps(loads []int, late func(load int) float64) float64 {
	highest := 0
	for _, load := range loads {
		l := late(load)
		if math.IsNaN(l) {
			return l
		}
		if l > lateMost {
			break
		}
		highest = load
	}
	return float64(highest)
}

// sumHeartbeats compares the samples of cases with the paper and draws them.
func sumHeartbeats(c *experiments.Context, cases []beatCase) error {
	figures, byLoad := map[string]any{}, map[string]any{}
	var curves []experiments.Series
	for _, b := range bothOrders(cases) {
		all, late, name := column(c.Data, b.key()), lateShare(c.Data, b), b.String()
		in10 := 100 - late
		if b.rate == 10 && b.asked == byController { // it knows what is late by then only
			in10 = math.NaN()
		}
		figures[name] = map[string]float64{
			"in_10ms_percent": orZero(in10), "over_100ms": orZero(sum(all, beatOver100)), "missed": orZero(sum(all, beatMissed)), "saturation_per_s": orZero(mean(all, beatSaturation)),
		}
		switch {
		case b.rate == 100 && b.order == prioritised:
			c.Compare(experiments.Claim{What: "later than 10 ms, " + name, Paper: "almost none", Ours: late, Unit: "%"}.AtMost(lateMost))
			c.Compare(markClaim(c, b))
			byLoad[name] = loadFigures(c, b)
		case b.rate == 100:
			c.Compare(experiments.Claim{What: "later than 10 ms, " + name, Paper: "all", Value: 100, Ours: late, Unit: "%"})
		case b.asked == byController:
			c.Compare(experiments.Claim{What: "missed their deadline of 100 ms, " + name, Paper: missPaper(b), Ours: 100 * sum(all, beatMissed) / sum(all, beatDue), Unit: "%"})
		default:
			c.Compare(experiments.Claim{What: "99th percentile, " + name, Paper: p99Paper(b), Ours: mean(all, beatP50+2), Unit: "ms"})
		}
		if b.asked == bySwitch {
			longest := experiments.Claim{What: "longest, " + name, Paper: longestPaper(b), Ours: most(all, beatMax), Unit: "ms"}
			if b.order == prioritised && b.rate == 100 {
				longest = longest.AtMost(100)
			}
			c.Compare(longest)
			curves = append(curves, quantiles(name, all, len(curves), b.order == inOrder))
		}
	}
	c.Figure("heartbeats", figures)
	c.Figure("in_10ms_percent_by_load", byLoad)
	if len(curves) == 0 {
		return nil
	}
	p, err := experiments.Curves(fmt.Sprintf("heartbeats asked by switches, beside packet-ins at %d %% of saturation", nearSaturation), "nines of the heartbeats: 1 is 90 %, 2 is 99 %", "latency, ms", curves)
	if err != nil {
		return err
	}
	c.Draw(p)
	return nil
}

// allLoads are those at which a mark is looked at, ascending.
func allLoads(quick bool) []int { return append(lowerLoads(quick), nearSaturation) }

// markClaim says up to which load the mark is kept.
func markClaim(c *experiments.Context, b beatCase) experiments.Claim {
	return experiments.Claim{
		What: fmt.Sprintf("load up to which %v %% are within 10 ms, %v", 100-lateMost, b), Paper: "-", Unit: "% of saturation",
		Ours: keeps(allLoads(c.Quick), func(load int) float64 { return lateShare(c.Data, b.at(load)) }),
	}
}

// loadFigures is the share of the heartbeats within 10 ms by load, both in percent.
func loadFigures(c *experiments.Context, b beatCase) map[string]float64 {
	all := map[string]float64{}
	for _, load := range allLoads(c.Quick) {
		all[strconv.Itoa(load)] = orZero(100 - lateShare(c.Data, b.at(load)))
	}
	return all
}

func missPaper(b beatCase) string {
	if b.slicing != topologicalSlicing && b.order == prioritised {
		return "none"
	}
	if b.slicing == topologicalSlicing && b.order == inOrder {
		return "3 %"
	}
	return "-"
}

func p99Paper(b beatCase) string {
	if b.slicing != topologicalSlicing && b.order == prioritised {
		return "about 10 ms"
	}
	return "-"
}

func longestPaper(b beatCase) string {
	if b.rate == 100 && b.order == inOrder {
		return "1800 ms"
	}
	return "-"
}

// quantiles draws what a share of the heartbeats does not exceed: the
// distribution function turned round, so that its tail can be read.
func quantiles(name string, rows [][]float64, colour int, dashed bool) experiments.Series {
	s := experiments.Series{Name: name, Colour: colour, Dashed: dashed}
	for i, nines := range []float64{0.3, 1.3, 2, 3, 5} { // 50, 95, 99, 99.9 %, the longest
		if v := mean(rows, beatP50+i); v > 0 {
			s.Points = append(s.Points, plotter.XY{X: nines, Y: v})
		}
	}
	return s
}
