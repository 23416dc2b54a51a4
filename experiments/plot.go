package experiments

import (
	"fmt"
	"image/color"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
)

// Group is one series of bars: a value for each of the names below the axis.
type Group struct {
	Name    string
	Spreads []Spread
}

// colour returns the i-th colour of a plot (Okabe and Ito, told apart by the
// colour-blind too).
func colour(i int) color.Color {
	palette := []color.RGBA{
		{0x77, 0x77, 0x77, 0xff}, {0x00, 0x72, 0xb2, 0xff}, {0x00, 0x9e, 0x73, 0xff},
		{0xd5, 0x5e, 0x00, 0xff}, {0xcc, 0x79, 0xa7, 0xff}, {0xe6, 0x9f, 0x00, 0xff}, {0x56, 0xb4, 0xe9, 0xff},
	}
	return palette[i%len(palette)]
}

// Bars draws medians as groups of bars, with a line from the 5th to the 95th
// percentile.
func Bars(title, unit string, names []string, groups []Group) (*plot.Plot, error) {
	p := plot.New()
	p.Title.Text, p.Y.Label.Text = title, unit
	p.Y.Min = 0
	p.Legend.Top = true
	width := vg.Points(min(26, 300/float64(max(len(groups)*len(names), 1))))
	for i, g := range groups {
		values := make(plotter.Values, len(g.Spreads))
		lines := &spreads{}
		for j, s := range g.Spreads {
			values[j] = s.Median
			lines.XYs = append(lines.XYs, plotter.XY{X: float64(j), Y: s.Median})
			lines.YErrors = append(lines.YErrors, struct{ Low, High float64 }{s.Median - s.P5, s.P95 - s.Median})
		}
		bars, err := plotter.NewBarChart(values, width)
		if err != nil {
			return nil, fmt.Errorf("plot %s: %w", g.Name, err)
		}
		bars.Color, bars.LineStyle.Width = colour(i), 0
		bars.Offset = width * vg.Length(float64(i)-float64(len(groups)-1)/2)
		p.Add(bars)
		p.Legend.Add(g.Name, bars)
		whiskers, err := plotter.NewYErrorBars(lines)
		if err != nil {
			return nil, fmt.Errorf("plot %s: %w", g.Name, err)
		}
		p.Add(shifted{whiskers, bars.Offset})
	}
	p.NominalX(names...)
	p.X.Max += 0.8 // room for the legend
	return p, nil
}

// spreads are the lines over bars.
type spreads struct {
	plotter.XYs
	plotter.YErrors
}

// Series is a curve.
type Series struct {
	Name   string
	Points plotter.XYs
	Dashed bool
	Colour int // which colour of the palette
}

// Curves draws values over time or another quantity, the values on a
// logarithmic scale.
func Curves(title, x, y string, list []Series) (*plot.Plot, error) {
	p := plot.New()
	p.Title.Text, p.X.Label.Text, p.Y.Label.Text = title, x, y
	p.Y.Scale, p.Y.Tick.Marker = plot.LogScale{}, plot.LogTicks{Prec: -1}
	p.Add(plotter.NewGrid())
	p.Legend.Top = true
	for _, s := range list {
		points := make(plotter.XYs, 0, len(s.Points))
		for _, pt := range s.Points {
			if pt.Y > 0 { // others have no logarithm
				points = append(points, pt)
			}
		}
		if len(points) == 0 {
			continue
		}
		l, err := plotter.NewLine(points)
		if err != nil {
			return nil, fmt.Errorf("plot %s: %w", s.Name, err)
		}
		l.Color, l.Width = colour(s.Colour), vg.Points(1.2)
		if s.Dashed {
			l.Dashes = []vg.Length{vg.Points(4), vg.Points(3)}
		}
		p.Add(l)
		p.Legend.Add(s.Name, l)
	}
	if p.Y.Min <= 0 || p.Y.Max <= p.Y.Min { // of no curve at all
		p.Y.Min, p.Y.Max = 0.1, 10
	}
	p.Y.Max *= 10 // room for the legend
	return p, nil
}
