package bench

import (
	"fmt"
	"image/color"
	"math"
	"path/filepath"
	"slices"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
)

// benchPlotFormats is what a plot can be written as.
var benchPlotFormats = []string{".svg", ".png", ".pdf"}

func benchCheckPlot(file string) error {
	if file != "" && !slices.Contains(benchPlotFormats, strings.ToLower(filepath.Ext(file))) {
		return fmt.Errorf("--plot %q: want a file name that ends in %s", file, strings.Join(benchPlotFormats, ", "))
	}
	return nil
}

// benchPlot draws the distribution of latency of every subject: latency over
// the percentile, both logarithmic, the percentile towards 100.
func benchPlot(file string, r *benchReport, subjects []*benchSubject) error {
	p := plot.New()
	p.Title.Text = fmt.Sprintf("%s of %s: OpenFlow %s, %d switches, %s answers/s", r.Mode, r.Controller, r.OpenFlow, r.Switches, benchCount(r.AnswersPerS))
	p.X.Label.Text = "percentile"
	p.Y.Label.Text = "latency, µs"
	p.Y.Scale, p.Y.Tick.Marker = plot.LogScale{}, plot.LogTicks{Prec: -1}
	p.X.Tick.Marker = plot.ConstantTicks{
		{Value: 0, Label: "0"}, {Value: 1, Label: "90"}, {Value: 2, Label: "99"}, {Value: 3, Label: "99.9"},
		{Value: 4, Label: "99.99"}, {Value: 5, Label: "99.999"}, {Value: 6, Label: "99.9999"},
	}
	p.Add(plotter.NewGrid())
	colors := []color.Color{color.RGBA{R: 0x77, G: 0x77, B: 0x77, A: 0xff}, color.RGBA{R: 0x1f, G: 0x5f, B: 0xbf, A: 0xff}}
	for i, s := range subjects {
		var line plotter.XYs
		for x, most := 0.0, math.Log10(float64(max(s.latency.TotalCount(), 1))); x <= min(most, 6); x += 0.02 {
			ns := s.latency.ValueAtPercentile(100 - math.Pow(10, 2-x))
			line = append(line, plotter.XY{X: x, Y: math.Max(float64(ns)/1e3, 0.001)})
		}
		if len(line) == 0 {
			continue
		}
		l, err := plotter.NewLine(line)
		if err != nil {
			return fmt.Errorf("plot %s: %w", s.name, err)
		}
		l.Color, l.Width = colors[len(colors)-len(subjects)+i], vg.Points(1.5)
		p.Add(l)
		p.Legend.Add(s.name, l)
	}
	p.Legend.Top, p.Legend.Left = true, true
	p.X.Max += 0.2 // room for the last label
	if err := p.Save(18*vg.Centimeter, 11*vg.Centimeter, file); err != nil {
		return fmt.Errorf("--plot %s: %w", file, err)
	}
	return nil
}
