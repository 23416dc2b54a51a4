package figure

import (
	"bytes"
	"fmt"
	"image/color"
	"io"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// Width is that of figures.
const Width = 20 * vg.Centimeter

const (
	panelHeight = 7.4 * vg.Centimeter
	heatRow     = 0.75 * vg.Centimeter
	titleHeight = 16 // points
	legendLine  = 12
	noteLine    = 9
)

// Height is how much room a figure takes.
func (f Figure) Height() vg.Length {
	_, rows := f.grid()
	return vg.Length(rows)*f.row() + titleHeight + vg.Length(len(f.legend()))*legendLine + vg.Length(len(wrap(f.notes(), letters(7), Width)))*noteLine + 8
}

// row is the height of a row of panels.
func (f Figure) row() (h vg.Length) {
	h = panelHeight
	for _, p := range f.Panels {
		if p.Heat != nil {
			h = max(h, 2.4*vg.Centimeter+vg.Length(len(p.Heat.Rows))*heatRow)
		}
	}
	return h
}

// grid is how the panels are laid out: those with much to show below each other.
func (f Figure) grid() (columns, rows int) {
	columns = min(2, len(f.Panels))
	for _, p := range f.Panels {
		if len(p.X.Names) > 6 || p.Heat != nil {
			columns = 1
		}
	}
	columns = max(columns, 1)
	return columns, (len(f.Panels) + columns - 1) / columns
}

// notes are what is said below the figure.
func (f Figure) notes() []string { return append(append(f.sources(), f.missing()...), f.Notes...) }

// legend is the series that there are, each once, in lines.
func (f Figure) legend() (lines [][]Series) {
	var wide vg.Length
	seen := map[string]bool{}
	for _, p := range f.Panels {
		for _, s := range p.Series {
			key := fmt.Sprint(s.Name, s.Kind, s.Colour, s.Dashed, s.Source != "", s.Hollow)
			if s.Name == "" || seen[key] {
				continue
			}
			seen[key] = true
			if w := entryWidth(s); len(lines) == 0 || wide+w > Width-20 {
				lines, wide = append(lines, nil), 0
			}
			wide += entryWidth(s)
			lines[len(lines)-1] = append(lines[len(lines)-1], s)
		}
	}
	return lines
}

const thumb = 18 // points

func entryWidth(s Series) vg.Length { return width(letters(8), s.label()) + thumb + 16 }

// width is how wide text may become: where a page is looked at, another font may
// stand in.
func width(sty text.Style, text string) vg.Length { return 1.16 * sty.Width(text) }

// label is the series' name in the legend.
func (s Series) label() string {
	if s.Source != "" && !strings.Contains(s.Name, "paper") {
		return s.Name + " (paper)"
	}
	return s.Name
}

// Draw draws the figure onto a canvas, from its top, and returns what is left.
func (f Figure) Draw(c draw.Canvas) draw.Canvas {
	y := c.Max.Y
	head := letters(10)
	head.YAlign = text.YTop
	c.FillText(head, vg.Point{X: c.Min.X, Y: y}, strings.TrimPrefix(f.Name+": "+f.Title, ": "))
	y -= titleHeight
	columns, rows := f.grid()
	plots := make([][]*plot.Plot, rows)
	for r := range plots {
		plots[r] = make([]*plot.Plot, columns)
		for k := range plots[r] {
			if i := r*columns + k; i < len(f.Panels) {
				plots[r][k] = f.Panels[i].plot(Width / vg.Length(columns))
			}
		}
	}
	if rows > 0 {
		area := draw.Canvas{Canvas: c.Canvas, Rectangle: vg.Rectangle{Min: vg.Point{X: c.Min.X, Y: y - vg.Length(rows)*f.row()}, Max: vg.Point{X: c.Max.X, Y: y}}}
		for r, list := range plot.Align(plots, draw.Tiles{Rows: rows, Cols: columns, PadX: 14, PadY: 8, PadRight: 6}, area) {
			for k, tile := range list {
				if plots[r][k] != nil {
					plots[r][k].Draw(tile)
				}
			}
		}
		y = area.Min.Y
	}
	for _, line := range f.legend() {
		y -= legendLine
		x := c.Min.X + 10
		for _, s := range line {
			s.thumbnail(c, x, y)
			c.FillText(letters(8), vg.Point{X: x + thumb + 4, Y: y}, s.label())
			x += entryWidth(s)
		}
	}
	y -= 4
	y = Write(c, y, letters(7), f.notes())
	c.Max.Y = y - 4
	return c
}

// thumbnail draws a series' sign in the legend.
func (s Series) thumbnail(c draw.Canvas, x, y vg.Length) {
	if s.Kind == Bars {
		s.bar(&c, vg.Point{X: x + 4, Y: y}, vg.Point{X: x + thumb - 2, Y: y + 7})
		return
	}
	if s.Kind != Dots {
		c.StrokeLine2(s.line(), x, y+3, x+thumb, y+3)
	}
	if s.Kind != Curve && s.Kind != Steps {
		s.dot(&c, vg.Point{X: x + thumb/2, Y: y + 3})
	}
}

// Write writes paragraphs onto a canvas, the first line below y, and returns
// where the last one ends. Without a colour nothing is written.
func Write(c draw.Canvas, y vg.Length, sty text.Style, paragraphs []string) vg.Length {
	for _, line := range wrap(paragraphs, sty, c.Max.X-c.Min.X) {
		y -= sty.Font.Size * 9 / 7
		if sty.Color != nil {
			c.FillText(sty, vg.Point{X: c.Min.X, Y: y}, line)
		}
	}
	return y
}

// wrap breaks paragraphs into lines.
func wrap(paragraphs []string, sty text.Style, room vg.Length) (lines []string) {
	for _, p := range paragraphs {
		line := ""
		for _, word := range strings.Fields(p) {
			if longer := strings.TrimSpace(line + " " + word); line == "" || width(sty, longer) <= room {
				line = longer
				continue
			}
			lines, line = append(lines, line), word
		}
		lines = append(lines, line)
	}
	return lines
}

// Cut returns as much of a text as there is room for.
func Cut(sty text.Style, s string, room vg.Length) string {
	if sty.Width(s) <= room {
		return s
	}
	short := []rune(s)
	for len(short) > 0 && sty.Width(string(short)+"…") > room {
		short = short[:len(short)-1]
	}
	return string(short) + "…"
}

// Letters returns the style of text in figures, of a size in points.
func Letters(size float64) text.Style { return letters(size) }

// Save writes figures below each other, and a caption below all, as svg, png or
// pdf.
func Save(w io.Writer, format string, figures []Figure, caption []string) error {
	small := letters(7)
	height := vg.Length(len(wrap(caption, small, Width-20)))*noteLine + 24
	for _, f := range figures {
		height += f.Height() + 6
	}
	canvas, err := draw.NewFormattedCanvas(Width, height, format)
	if err != nil {
		return err
	}
	c := draw.New(canvas)
	c.FillPolygon(color.White, []vg.Point{c.Min, {X: c.Min.X, Y: c.Max.Y}, c.Max, {X: c.Max.X, Y: c.Min.Y}})
	c = draw.Crop(c, 10, -10, 6, -8)
	for _, f := range figures {
		c = f.Draw(c)
	}
	Write(c, c.Max.Y, small, caption)
	_, err = canvas.WriteTo(w)
	return err
}

// SVG returns a figure as an image for a page.
func (f Figure) SVG() (string, error) {
	var b bytes.Buffer
	if err := Save(&b, "svg", []Figure{f}, nil); err != nil {
		return "", err
	}
	text := b.String()
	return text[max(0, strings.Index(text, "<svg")):], nil
}
