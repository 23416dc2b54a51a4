package hydra

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/weft-sdn/weft/bench/experiments"
	"github.com/weft-sdn/weft/bench/experiments/figure"
	"github.com/weft-sdn/weft/test/measure"
)

// lateMost is the share of the heartbeats, in percent, that may take longer than 10
// ms, and by how much it may exceed that of a bare responder.
const lateMost = 0.1

// share is, in each round, the share of a case's heartbeats, in percent, that a
// column counts; NaN if it was not measured.
func share(c *experiments.Context, b beatCase, column string) []float64 {
	list, due := c.Rounds(column, b.of, b.where()), c.Rounds("due", b.of, b.where())
	for i := range list {
		list[i] *= 100 / due[i]
	}
	return list
}

// late is the share of a case's heartbeats that took longer than 10 ms.
func late(c *experiments.Context, b beatCase) measure.Interval {
	return measure.Median(share(c, b, "over_10ms"))
}

// lateMore is by how many percentage points more of a case's heartbeats took longer
// than 10 ms than of those of a bare responder in the same round.
func lateMore(c *experiments.Context, b beatCase) measure.Interval {
	list, least := share(c, b, "over_10ms"), share(c, b.in(bareOrder), "over_10ms")
	for i := range list {
		list[i] -= least[i]
	}
	return measure.Median(list)
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

// sumHeartbeats compares the samples with the paper and draws them.
func sumHeartbeats(c *experiments.Context) error {
	figures, byLoad := map[string]any{}, map[string]any{}
	var cases []beatCase
	for _, of := range beatSlices(c.Quick) {
		cases = append(cases, bothOrders(beatCases(of.String()))...)
	}
	for _, b := range cases {
		name, of := b.String(), late(c, b)
		median := func(column string) measure.Interval { return c.Median(column, b.of, b.where()) }
		if of.Count > 0 {
			in10 := 100 - of.Median
			if b.rate == 10 && b.asked == byController { // it does not know what is late by then
				in10 = math.NaN()
			}
			figures[name] = map[string]figure.Number{
				"in_10ms_percent": figure.Number(in10), "over_100ms": figure.Number(median("over_100ms").Median),
				"missed": figure.Number(median("missed").Median), "saturation_per_s": figure.Number(median("saturation_per_s").Median),
			}
		}
		at := "Fig. 9"
		if b.rate == 10 {
			at = "Fig. 7"
		}
		claim := func(what, paper, unit string, of measure.Interval) experiments.Claim {
			return experiments.Claim{Figure: at, What: what + ", " + name, Paper: paper, Unit: unit}.Of(of)
		}
		c.Compare(claim("saturation, the heartbeats included", "-", "/s", median("saturation_per_s")))
		switch {
		case b.rate == 100 && b.order == prioritised:
			more := claim("later than 10 ms, more than a bare responder", "-", "percentage points", lateMore(c, b))
			inTime := claim("later than 10 ms", "", "%", of)
			inTime.Says = c.Statement("in time with priority")
			c.Compare(inTime, more.AtMost(lateMost), markClaim(c, b))
			c.Compare(experiments.Claim{Figure: at, What: "later than 10 ms, " + b.in(bareOrder).String(), Paper: "-", Unit: "%"}.Of(late(c, b.in(bareOrder))))
			byLoad[name] = loadFigures(c, b)
		case b.rate == 100:
			all := claim("later than 10 ms", "", "%", of)
			all.Says = c.Statement("late without priority")
			c.Compare(all)
		case b.asked == byController:
			missed := claim("missed their deadline of 100 ms", "", "%", measure.Median(share(c, b, "missed")))
			switch {
			case b.apart() && b.order == prioritised:
				missed.Says = c.Statement("Hydra misses none")
			case !b.apart() && b.order == inOrder:
				missed.Says = c.Statement("topological slicing misses")
			}
			c.Compare(missed)
		default:
			c.Compare(claim("99th percentile", p99Paper(b), "ms", median("p99_ms")))
		}
		if b.asked == bySwitch {
			longest := claim("longest of a round", longestPaper(b), "ms", median("max_ms"))
			if b.order == prioritised && b.rate == 100 {
				longest = longest.AtMost(100)
			}
			c.Compare(longest)
		}
	}
	for _, of := range beatSlices(c.Quick) {
		b := beatCase{of: of.String(), rate: 100, order: prioritised}
		asked, asks := b, b
		asked.asked, asks.asked = bySwitch, byController
		c.Compare(experiments.Claim{Figure: "Fig. 9", What: "saturation, the controller asking to the switches asking, 100/s, " + b.of, Paper: "-"}.
			Of(measure.Ratio(c.Rounds("saturation_per_s", b.of, asks.where()), c.Rounds("saturation_per_s", b.of, asked.where()))))
	}
	compareOrders(c)
	c.Figure("heartbeats", figures)
	c.Figure("in_10ms_percent_by_load", byLoad)
	title := fmt.Sprintf("heartbeats beside packet-ins at %d %% of saturation, ", nearSaturation)
	c.Draw(
		beatFigure(c, "Fig. 7", title+"10 a second", 10, 100, orders()),
		beatFigure(c, "Fig. 8", title+"10 a second: what priority does", 10, 10, orders()),
		beatFigure(c, "Fig. 9", title+"100 a second", 100, 0, append(orders(), bareOrder)),
		beatFigure(c, "Fig. 10", title+"100 a second, to 100 ms", 100, 100, append(orders(), bareOrder)))
	return nil
}

// beatFigure draws the distribution of all heartbeats at a rate up to a latency,
// 0 being the longest, by who asks.
func beatFigure(c *experiments.Context, name, title string, rate int, to float64, orders []string) figure.Figure {
	f := figure.Figure{Name: name, Title: title, Notes: []string{"What is missing from 100 % was not answered before the next was due, where the controller asks, or at all."}}
	for _, asked := range []string{byController, bySwitch} {
		p := figure.Panel{Title: "asked by the " + asked, X: figure.Axis{Label: "latency, ms", Max: to}, Y: figure.Axis{Label: "% of heartbeats", Max: 100}}
		for i, of := range beatSlices(c.Quick) {
			for _, order := range orders {
				b := beatCase{of: of.String(), rate: rate, asked: asked, order: order}
				values, counts := latencies(c, b)
				s := figure.Series{Name: b.of + ", " + order, Kind: figure.Steps, Colour: i + 1, Dashed: order != prioritised, Points: figure.CDF(values, counts, b.of)}
				if n := len(s.Points); n > 0 && math.IsInf(s.Points[n-1].X, 1) { // never; the curve ends below 100 %
					s.Points = s.Points[:n-1]
				}
				if len(s.Points) == 0 {
					s.Points = []figure.Point{{X: 0, Y: figure.Number(math.NaN()), Case: b.of}}
				}
				p.Series = append(p.Series, s)
			}
		}
		for i, series := range []string{"hybrid with priority", "topological", "in order"} {
			if s := paperValues.Series(name, series, figure.Dots, p.X); asked == byController && len(s.Points) > 0 {
				s.Colour = i
				p.Series = append(p.Series, s)
			}
		}
		f.Panels = append(f.Panels, p)
	}
	return f
}

// latencies reads those of all rounds of a case, and how often each came.
func latencies(c *experiments.Context, b beatCase) (values, counts []float64) {
	for _, text := range c.Texts("latencies", b.of, b.where()) {
		for _, one := range strings.Fields(text) {
			at, n, _ := strings.Cut(one, ":")
			v, err := strconv.ParseFloat(at, 64)
			count, bad := strconv.ParseFloat(n, 64)
			if err == nil && bad == nil {
				values, counts = append(values, v), append(counts, count)
			}
		}
	}
	return values, counts
}

// allLoads are those at which a mark is looked at, ascending.
func allLoads() []int { return append(lowerLoads(), nearSaturation) }

// markClaim says up to which load the mark is kept.
func markClaim(c *experiments.Context, b beatCase) experiments.Claim {
	return experiments.Claim{
		Figure: "Fig. 9", What: fmt.Sprintf("load up to which %v %% are within 10 ms, %v", 100-lateMost, b), Paper: "-", Unit: "% of saturation",
		Ours: keeps(allLoads(), func(load int) float64 { return late(c, b.at(load)).Median }),
	}
}

// loadFigures is the share of the heartbeats within 10 ms by load, both in percent.
func loadFigures(c *experiments.Context, b beatCase) map[string]figure.Number {
	all := map[string]figure.Number{}
	for _, load := range allLoads() {
		all[strconv.Itoa(load)] = figure.Number(100 - late(c, b.at(load)).Median)
	}
	return all
}

// apart reports whether a case has path computation in another process.
func (b beatCase) apart() bool {
	return strings.HasPrefix(b.of, string(hybridSlicing)) || strings.HasPrefix(b.of, string(functionalSlicing))
}

// compareOrders compares the percentiles at 10 heartbeats a second that the switches ask
// for: of topological slicing without priority with those of hybrid slicing with it, which
// a quick run leaves out, and of each slicing with and without.
func compareOrders(c *experiments.Context) {
	of := func(slicing, order, column string) []float64 {
		b := beatCase{of: slicing, rate: 10, asked: bySwitch, order: order}
		return c.Rounds(column, b.of, b.where())
	}
	all := beatSlices(false)
	topological, hybrid := all[0].String(), all[2].String()
	c.Compare(experiments.Claim{Figure: "Fig. 7", What: "95th percentile of topological slicing in order to the 99th of hybrid with priority", Says: c.Statement("95th to 99th")}.
		Of(measure.Ratio(of(topological, inOrder, "p95_ms"), of(hybrid, prioritised, "p99_ms"))).Beside(topological, hybrid, experiments.AboutProcessors))
	for _, b := range beatSlices(c.Quick) {
		c.Compare(experiments.Claim{Figure: "Fig. 8", What: "99th percentile, in order to priority, " + b.String(), Says: c.Statement("priority at 10/s")}.
			Of(measure.Ratio(of(b.String(), inOrder, "p99_ms"), of(b.String(), prioritised, "p99_ms"))).Beside(b.String(), b.String()))
	}
}

func p99Paper(b beatCase) string {
	if b.apart() && b.order == prioritised {
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
