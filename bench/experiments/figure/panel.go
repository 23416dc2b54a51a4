package figure

import (
	"image/color"
	"math"
	"slices"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// colour returns the i-th colour (Okabe and Ito, told apart by the colour-blind
// too).
func colour(i int) color.Color {
	palette := []color.RGBA{
		{0x77, 0x77, 0x77, 0xff}, {0x00, 0x72, 0xb2, 0xff}, {0x00, 0x9e, 0x73, 0xff},
		{0xd5, 0x5e, 0x00, 0xff}, {0xcc, 0x79, 0xa7, 0xff}, {0xe6, 0x9f, 0x00, 0xff}, {0x56, 0xb4, 0xe9, 0xff},
	}
	return palette[i%len(palette)]
}

func (s Series) colour() color.Color {
	if s.Source != "" {
		return color.Black
	}
	return colour(s.Colour)
}

func (s Series) hollow() bool { return s.Hollow || s.Source != "" }

// line is how the series' lines are drawn.
func (s Series) line() draw.LineStyle {
	l := draw.LineStyle{Color: s.colour(), Width: vg.Points(1.2)}
	if s.Dashed || s.Source != "" {
		l.Dashes = []vg.Length{vg.Points(4), vg.Points(2.5)}
	}
	return l
}

// letters returns the style of text.
func letters(size float64) text.Style {
	return text.Style{Color: color.Black, Font: font.From(font.Font{Typeface: "Liberation", Variant: "Sans"}, vg.Points(size)), Handler: plot.DefaultTextHandler}
}

// ends returns the ends of an axis whose values are these.
func (a Axis) ends(values []float64) (low, high float64) {
	if len(a.Names) > 0 {
		return -0.6, float64(len(a.Names)) - 0.4
	}
	values = slices.DeleteFunc(values, func(v float64) bool { return !finite(v) || a.Log && v <= 0 })
	if len(values) == 0 {
		return 0.1, 1
	}
	low, high = slices.Min(values), slices.Max(values)
	if a.Max > 0 {
		high = a.Max
	}
	if a.Log {
		return around(low, high)
	}
	low = min(low, 0)
	if a.Max == 0 {
		high += 0.08 * (high - low)
	}
	if high <= low {
		high = low + 1
	}
	return low, high
}

// apply makes an axis of a plot this one.
func (a Axis) apply(to *plot.Axis, values []float64) {
	to.Label.Text, to.Label.TextStyle = a.Label, align(letters(8.5), to.Label.TextStyle)
	to.Tick.Label = align(letters(7.5), to.Tick.Label)
	to.Min, to.Max = a.ends(values)
	to.Padding = 0
	switch {
	case len(a.Names) > 0:
		ticks := make([]plot.Tick, len(a.Names))
		for i, name := range a.Names {
			ticks[i] = plot.Tick{Value: float64(i), Label: name}
		}
		to.Tick.Marker, to.Tick.Length = plot.ConstantTicks(ticks), 0
	case a.Log:
		to.Scale, to.Tick.Marker = plot.LogScale{}, logarithmic{}
	default:
		to.Tick.Marker = linear{}
	}
}

// align is a style with the alignment and rotation of another.
func align(s, like text.Style) text.Style {
	s.XAlign, s.YAlign, s.Rotation = like.XAlign, like.YAlign, like.Rotation
	return s
}

// barsAt returns how many series have bars at each X, at most, and the place of a
// series among those at an X.
func (p Panel) barsAt() (most int, place func(series int, x float64) int) {
	at := map[float64][]int{}
	for i, s := range p.Series {
		for _, pt := range s.Points {
			if s.Kind == Bars && !slices.Contains(at[pt.X], i) {
				at[pt.X] = append(at[pt.X], i)
				most = max(most, len(at[pt.X]))
			}
		}
	}
	return most, func(series int, x float64) int { return slices.Index(at[x], series) }
}

// plot returns the panel as a plot of a width.
func (p Panel) plot(room vg.Length) *plot.Plot {
	out := plot.New()
	out.Title.Text, out.Title.TextStyle = p.Title, align(letters(9), out.Title.TextStyle)
	out.Title.Padding = vg.Points(3)
	if p.Heat != nil {
		rows := Axis{Label: p.Y.Label, Names: p.Heat.Rows}
		p.X.apply(&out.X, nil)
		rows.apply(&out.Y, nil)
		out.X.Min, out.Y.Min, out.X.Max, out.Y.Max = -0.5, -0.5, float64(len(p.X.Names))-0.5, float64(len(p.Heat.Rows))-0.5
		out.Add(p.Heat)
		return out
	}
	var xs, ys []float64
	for _, s := range p.Series {
		for _, pt := range s.Points {
			xs = append(xs, pt.X)
			ys = append(append(ys, float64(pt.Y)), pt.CI95...)
		}
	}
	for _, m := range p.Marks {
		xs = append(xs, m.X)
	}
	p.X.apply(&out.X, xs)
	p.Y.apply(&out.Y, ys)
	if n := vg.Length(len(p.X.Names)); n > 0 {
		var wide vg.Length
		for _, name := range p.X.Names {
			for line := range strings.Lines(name) {
				wide = max(wide, width(letters(7.5), line))
			}
		}
		if wide*n > room-50 {
			out.X.Tick.Label.Rotation, out.X.Tick.Label.XAlign, out.X.Tick.Label.YAlign = math.Pi/5, text.XRight, text.YTop
			out.X.Tick.Length = vg.Points(6)
		}
	}
	grid := plotter.NewGrid()
	grid.Vertical.Color = nil
	grid.Horizontal.Color = color.Gray{0xdd}
	out.Add(grid)
	most, place := p.barsAt()
	for i, s := range p.Series {
		wide := 0.84 / float64(max(most, 1))
		out.Add(drawnSeries{Series: s, width: wide, offset: func(x float64) float64 {
			if s.Kind != Bars {
				return 0
			}
			return wide * (float64(place(i, x)) - float64(most-1)/2)
		}})
	}
	for _, m := range p.Marks {
		out.Add(m)
	}
	return out
}

// drawnSeries is a series in its panel.
type drawnSeries struct {
	Series
	width  float64                 // of a bar, in units of the axis
	offset func(x float64) float64 // of the bar at an X
}

// Plot draws it.
func (s drawnSeries) Plot(c draw.Canvas, p *plot.Plot) {
	toX, toY := p.Transforms(&c)
	low := p.Y.Min
	place := func(pt Point) vg.Point { // values that the axis has no place for are at its lower edge
		y := float64(pt.Y)
		if !finite(y) || y < low {
			y = low
		}
		return vg.Point{X: toX(pt.X + s.offset(pt.X)), Y: toY(y)}
	}
	var runs [][]vg.Point // a value that was not measured interrupts a line
	var run []vg.Point
	var last vg.Point
	for _, pt := range s.Points {
		at := place(pt)
		if !finite(float64(pt.Y)) {
			if s.Kind == Bars {
				sty := letters(6)
				sty.Rotation, sty.YAlign = math.Pi/2, text.YCenter
				c.FillText(sty, vg.Point{X: at.X, Y: at.Y + vg.Points(2)}, "not measured")
			}
			runs, run = append(runs, run), nil
			continue
		}
		if s.Kind == Bars {
			s.bar(&c, vg.Point{X: toX(pt.X + s.offset(pt.X) - s.width*.46), Y: toY(max(low, 0))}, vg.Point{X: toX(pt.X + s.offset(pt.X) + s.width*.46), Y: at.Y})
		}
		if s.Kind == Steps && len(run) > 0 {
			run = append(run, vg.Point{X: at.X, Y: last.Y})
		} else if s.Kind == Steps {
			run = append(run, vg.Point{X: at.X, Y: toY(low)})
		}
		run, last = append(run, at), at
		if s.Kind == Line || s.Kind == Dots {
			s.dot(&c, at)
		}
		if len(pt.CI95) == 2 {
			s.whisker(&c, at.X, toY(max(pt.CI95[0], low)), toY(max(pt.CI95[1], low)))
		}
	}
	if s.Kind == Line || s.Kind == Curve || s.Kind == Steps {
		for _, run := range append(runs, run) {
			c.StrokeLines(s.line(), c.ClipLinesXY(run)...)
		}
	}
}

// bar draws one bar.
func (s Series) bar(c *draw.Canvas, from, to vg.Point) {
	box := []vg.Point{from, {X: from.X, Y: to.Y}, to, {X: to.X, Y: from.Y}}
	if !s.hollow() {
		c.FillPolygon(s.colour(), c.ClipPolygonXY(box))
		return
	}
	c.StrokeLines(draw.LineStyle{Color: s.colour(), Width: vg.Points(1), Dashes: s.line().Dashes}, c.ClipLinesXY(append(box, from))...)
}

// dot draws one point.
func (s Series) dot(c *draw.Canvas, at vg.Point) {
	shape := draw.GlyphDrawer(draw.CircleGlyph{})
	if shapes := []draw.GlyphDrawer{draw.RingGlyph{}, draw.SquareGlyph{}, draw.TriangleGlyph{}, draw.CrossGlyph{}}; s.Source != "" {
		shape = shapes[s.Colour%len(shapes)]
	} else if s.Hollow {
		shape = shapes[0]
	}
	c.DrawGlyph(draw.GlyphStyle{Color: s.colour(), Radius: vg.Points(2.2), Shape: shape}, at)
}

// whisker draws an interval.
func (s Series) whisker(c *draw.Canvas, x, low, high vg.Length) {
	const half = 2.2
	style := draw.LineStyle{Color: color.Black, Width: vg.Points(0.7)}
	if s.Kind != Bars {
		style.Color = s.colour()
	}
	c.StrokeLines(style, c.ClipLinesXY([]vg.Point{{X: x, Y: low}, {X: x, Y: high}}, []vg.Point{{X: x - half, Y: low}, {X: x + half, Y: low}}, []vg.Point{{X: x - half, Y: high}, {X: x + half, Y: high}})...)
}

// Plot draws the line across.
func (m Mark) Plot(c draw.Canvas, p *plot.Plot) {
	toX, _ := p.Transforms(&c)
	x := toX(m.X)
	c.StrokeLine2(draw.LineStyle{Color: color.Black, Width: vg.Points(0.8), Dashes: []vg.Length{vg.Points(1.5), vg.Points(1.5)}}, x, c.Min.Y, x, c.Max.Y)
	sty := letters(7)
	sty.YAlign = text.YTop
	if m.Left {
		sty.XAlign = text.XRight
		x -= 4
	}
	c.FillText(sty, vg.Point{X: x + 2, Y: c.Max.Y - 1}, m.Text)
}

// Plot draws the map.
func (h *Heat) Plot(c draw.Canvas, p *plot.Plot) {
	toX, toY := p.Transforms(&c)
	sty := letters(6.5)
	sty.XAlign, sty.YAlign = text.XCenter, text.YCenter
	for r, row := range h.Values {
		for k, v := range row {
			x0, x1, y0, y1 := toX(float64(k)-.5), toX(float64(k)+.5), toY(float64(r)-.5), toY(float64(r)+.5)
			c.FillPolygon(h.shade(float64(v)), []vg.Point{{X: x0, Y: y0}, {X: x1, Y: y0}, {X: x1, Y: y1}, {X: x0, Y: y1}})
			c.FillText(sty, vg.Point{X: (x0 + x1) / 2, Y: (y0 + y1) / 2}, h.Texts[r][k])
		}
	}
	border := draw.LineStyle{Color: color.Black, Width: vg.Points(2)}
	below := func(r, k int) bool { return float64(h.Values[r][k]) < h.Iso }
	for r, row := range h.Values {
		for k := range row {
			if k > 0 && below(r, k) != below(r, k-1) {
				c.StrokeLine2(border, toX(float64(k)-.5), toY(float64(r)-.5), toX(float64(k)-.5), toY(float64(r)+.5))
			}
			if r > 0 && below(r, k) != below(r-1, k) {
				c.StrokeLine2(border, toX(float64(k)-.5), toY(float64(r)-.5), toX(float64(k)+.5), toY(float64(r)-.5))
			}
		}
	}
}

// shade is a value's colour: white at the iso-line, blue above it and orange
// below, the darker the farther, up to ten times.
func (h *Heat) shade(v float64) color.Color {
	if !finite(v) || v <= 0 {
		return color.Gray{0xcc}
	}
	far := max(-1, min(1, math.Log10(v/h.Iso)))
	end := color.RGBA{0x56, 0xb4, 0xe9, 0xff}
	if far < 0 {
		end, far = color.RGBA{0xe6, 0x7f, 0x20, 0xff}, -far
	}
	mix := func(to uint8) uint8 { return uint8(255 + far*(float64(to)-255)) }
	return color.RGBA{mix(end.R), mix(end.G), mix(end.B), 0xff}
}
