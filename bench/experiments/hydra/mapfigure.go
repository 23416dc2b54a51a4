package hydra

import (
	"fmt"
	"time"

	"github.com/weft-sdn/weft/bench/experiments"
	"github.com/weft-sdn/weft/bench/experiments/figure"
	"github.com/weft-sdn/weft/test/measure"
)

// mapFigure draws the maps: what a way of crossing comes to, to the same process
// under the same load and at the same compute time.
func mapFigure(c *experiments.Context, times []time.Duration) figure.Figure {
	f := figure.Figure{Name: "map", Title: "slicing by functions, to the same process: above 1 it pays", Notes: []string{
		"Below the ratio what was measured. ~ is a ratio whose interval includes 1, or is not known: it shows nothing. The thick line is 1.",
		"A second processor raises the ceiling where a packet's compute is more than a crossing's processor time, which the table has."}}
	for _, m := range []struct {
		title, column string
		value         func(ours, same []float64) measure.Interval
		text          func(v float64) string
	}{
		{"throughput per processor-second", "per_cpu_s", measure.Ratio, func(v float64) string { return perSecond(v) }},
		{"p99 of the same process to it, at 70 % of saturation", "p99_us", func(ours, same []float64) measure.Interval { return measure.Ratio(same, ours) },
			func(v float64) string { return number(float64(int(v))) + " µs" }},
		{"throughput", "answered_per_s", measure.Ratio, func(v float64) string { return perSecond(v) }},
	} {
		p := figure.Panel{Title: m.title, X: figure.Axis{Label: "compute for each packet"}, Heat: &figure.Heat{Iso: 1}}
		for _, t := range times {
			p.X.Names = append(p.X.Names, t.String())
		}
		for _, load := range mapLoads {
			for _, way := range crossings(c.Parameters) {
				var values []figure.Number
				var texts []string
				for _, t := range times {
					where := experiments.Where("load", load.name, "compute_us", micros(t))
					ratio, own := m.value(c.Rounds(m.column, way, where), c.Rounds(m.column, sameProcess, where)), c.Median(m.column, way, where)
					unsure := ""
					if ratio.Includes(1) && way != sameProcess {
						unsure = "~"
					}
					values = append(values, figure.Number(ratio.Median))
					switch {
					case own.Count == 0:
						texts = append(texts, "not measured")
						continue
					case ratio.Count == 0: // the same process was not
						texts = append(texts, "no ratio\n"+m.text(own.Median))
						continue
					}
					texts = append(texts, fmt.Sprintf("%s%.2f\n%s", unsure, ratio.Median, m.text(own.Median)))
				}
				p.Heat.Rows = append(p.Heat.Rows, way+",\n"+load.name)
				p.Heat.Cases = append(p.Heat.Cases, way)
				p.Heat.Values, p.Heat.Texts = append(p.Heat.Values, values), append(p.Heat.Texts, texts)
			}
		}
		f.Panels = append(f.Panels, p)
	}
	return f
}

// perSecond writes a rate.
func perSecond(v float64) string {
	if v >= 1e4 {
		return fmt.Sprintf("%.0fk/s", v/1e3)
	}
	return fmt.Sprintf("%.0f/s", v)
}
