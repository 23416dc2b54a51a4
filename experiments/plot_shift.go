package experiments

import (
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// shifted draws the lines of a series of bars where its bars are.
type shifted struct {
	*plotter.YErrorBars
	by vg.Length
}

// Plot draws them.
func (s shifted) Plot(c draw.Canvas, p *plot.Plot) {
	c.Min.X += s.by
	c.Max.X += s.by
	s.YErrorBars.Plot(c, p)
}

// GlyphBoxes says how much room they take: none beside that of the bars.
func (s shifted) GlyphBoxes(*plot.Plot) []plot.GlyphBox { return nil }
