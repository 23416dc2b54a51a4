package report

import (
	"image/color"
	"io"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgpdf"

	"github.com/weft-sdn/weft/bench/experiments/figure"
)

// The size of a page, A4, and its margin.
const (
	pageWidth  = 21 * vg.Centimeter
	pageHeight = 29.7 * vg.Centimeter
	margin     = 1.5 * vg.Centimeter
)

// edges are where the columns of the table begin, as parts of the width.
var edges = []float64{0, .36, .52, .6, .7, .85, .93, 1.02}

// PDF writes the pages, one of each figure.
func PDF(w io.Writer, pages []Page) error {
	c := vgpdf.New(pageWidth, pageHeight)
	for i, p := range pages {
		if i > 0 {
			c.NextPage()
		}
		p.draw(draw.NewCanvas(c, pageWidth, pageHeight))
	}
	_, err := c.WriteTo(w)
	return err
}

// draw draws the page: what there is to say takes what room it needs, the figure
// is scaled to the rest, of which there is a third of the page at least: where
// there is much to say, it is said in smaller letters.
func (p Page) draw(c draw.Canvas) {
	size := 8.0
	for ; size > 3 && p.text(c, size, 0, false) > pageHeight*2/3-2*margin; size -= .25 {
	}
	room := pageHeight - 2*margin - p.text(c, size, 0, false)
	by := min(1, float64((pageWidth-2*margin)/figure.Width), float64(room/p.Figure.Height()))
	p.text(c, size, vg.Length(by)*p.Figure.Height(), true)
}

// text returns how much room it takes to say what there is to say. If asked to, it
// writes it, and draws the figure in between, in so much room.
func (p Page) text(c draw.Canvas, size float64, room vg.Length, visible bool) vg.Length {
	small, bold := figure.Letters(size), figure.Letters(size+3)
	area := draw.Canvas{Canvas: c.Canvas, Rectangle: vg.Rectangle{Min: vg.Point{X: margin, Y: margin}, Max: vg.Point{X: pageWidth - margin, Y: pageHeight - margin}}}
	y := area.Max.Y
	write := func(big bool, paragraphs ...string) {
		sty := small
		if big {
			sty = bold
		}
		if !visible {
			sty.Color = nil
		}
		y = figure.Write(area, y, sty, paragraphs) - vg.Points(size/2)
	}
	write(true, p.Figure.Name+" of "+p.Paper)
	write(false, p.Name+": "+p.Title, "The paper: "+p.Claim)
	if visible {
		c.Push()
		by := float64(room / p.Figure.Height())
		c.Translate(vg.Point{X: margin, Y: y - room})
		c.Scale(by, by)
		p.Figure.Draw(draw.NewCanvas(c.Canvas, figure.Width, p.Figure.Height()))
		c.Pop()
		y -= room
	}
	line := vg.Points(size * 9 / 7)
	width := area.Max.X - area.Min.X
	for i, cells := range p.table() {
		y -= line
		for k, cell := range cells {
			if visible {
				x := area.Min.X + width*vg.Length(edges[k])
				c.FillText(small, vg.Point{X: x, Y: y}, figure.Cut(small, cell, width*vg.Length(edges[k+1]-edges[k])-4))
			}
		}
		if i == 0 && visible {
			c.StrokeLine2(draw.LineStyle{Color: color.Gray{0x88}, Width: .5}, area.Min.X, y-2, area.Max.X, y-2)
		}
	}
	y -= vg.Points(size / 2)
	for _, f := range p.Failed {
		write(false, "Failed: "+f.Case+": "+f.Error+".")
	}
	write(false, "Conditions: "+p.Machine.String()+". "+p.Conditions.String()+". "+p.Rounds(),
		"Why it differs: "+p.Deviation, "How it was measured: "+p.Method)
	return area.Max.Y - y // which counts the figure if it is drawn
}

// table is the claims with their head; none without claims.
func (p Page) table() [][]string {
	if len(p.Claims) == 0 {
		return nil
	}
	rows := [][]string{columns}
	for _, c := range p.Claims {
		rows = append(rows, c.Cells())
	}
	return rows
}
