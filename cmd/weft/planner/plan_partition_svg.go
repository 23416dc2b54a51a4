package planner

import (
	"fmt"
	"html"
	"math"
	"strings"

	"github.com/weft-sdn/weft/plan/partition"
)

// drawnMost is the largest network of which a drawing shows anything.
const drawnMost = 1000

// svg draws the network: each partition a disc with its switches, border
// switches that belong to several in the middle, links between partitions red.
func (r *PartitionReport) svg() (string, error) {
	if n := len(r.graph.Switches); n > drawnMost {
		return "", fmt.Errorf("a drawing of %d switches shows nothing: want at most %d; use -o table, json or yaml", n, drawnMost)
	}
	at, discs, size := r.layout()
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="%.0f %.0f %.0f %.0f" font-family="sans-serif" font-size="9" text-anchor="middle">`+"\n", -size, -size, 2*size, 2*size)
	fmt.Fprintf(&b, "<title>%s in %s</title>\n", html.EscapeString(r.Network), partitionCount(len(r.Partitions)))
	fmt.Fprintf(&b, `<rect x="%.0f" y="%.0f" width="%.0f" height="%.0f" fill="#fff"/>`+"\n", -size, -size, 2*size, 2*size)
	for i, d := range discs {
		fmt.Fprintf(&b, `<circle cx="%.1f" cy="%.1f" r="%.1f" fill="hsl(%d 60%% 93%%)"/><text x="%.1f" y="%.1f" font-size="14">%s</text>`+"\n",
			d.x, d.y, d.r, i*360/len(discs), d.x, d.y-d.r-4, html.EscapeString(r.Partitions[i].Name))
	}
	for _, l := range r.graph.Links {
		style := `stroke="#999"`
		if r.of[l.A] != r.of[l.B] {
			style = `stroke="#c22" stroke-opacity="0.6"`
		}
		fmt.Fprintf(&b, `<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" %s/>`+"\n", at[l.A].x, at[l.A].y, at[l.B].x, at[l.B].y, style)
	}
	for i, s := range r.graph.Switches {
		fmt.Fprintf(&b, `<circle cx="%.1f" cy="%.1f" r="9" fill="hsl(%d 60%% 80%%)" stroke="#357"><title>%v, DPID %v, in %s</title></circle><text x="%.1f" y="%.1f">%s</text>`+"\n",
			at[i].x, at[i].y, r.of[i]*360/len(discs), html.EscapeString(s.String()), s.DPID, html.EscapeString(r.Partitions[r.of[i]].Name), at[i].x, at[i].y+3, html.EscapeString(s.Name))
	}
	b.WriteString("</svg>\n")
	return b.String(), nil
}

// spot is a place in a drawing, or a disc about it.
type spot struct{ x, y, r float64 }

// layout places switches, and discs for partitions, about the origin.
func (r *PartitionReport) layout() (at, discs []spot, size float64) {
	const each = 24.0 // from switch to switch
	inside := make([][]int, len(r.Partitions)+1)
	for i, p := range r.of {
		if r.Shared && r.border[i] {
			p = len(r.Partitions)
		}
		inside[p] = append(inside[p], i)
	}
	largest := 0.0
	radius := func(n int) float64 { return each*math.Sqrt(float64(n))*0.85 + each }
	for _, list := range inside[:len(r.Partitions)] {
		largest = max(largest, radius(len(list)))
	}
	middle := radius(len(inside[len(r.Partitions)]))
	ring := 0.0
	if n := len(r.Partitions); n > 1 {
		ring = max(largest+middle, 1.1*largest/math.Sin(math.Pi/float64(n)))
	}
	at = make([]spot, len(r.of))
	place := func(list []int, x, y float64) {
		for k, i := range list { // as the seeds of a sunflower
			turn, far := float64(k)*2.39996, each*math.Sqrt(float64(k))*0.85
			at[i] = spot{x: x + far*math.Cos(turn), y: y + far*math.Sin(turn)}
		}
	}
	for p := range r.Partitions {
		turn := 2 * math.Pi * float64(p) / float64(len(r.Partitions))
		d := spot{ring * math.Sin(turn), -ring * math.Cos(turn), radius(len(inside[p]))}
		discs = append(discs, d)
		place(inside[p], d.x, d.y)
	}
	place(inside[len(r.Partitions)], 0, 0)
	return at, discs, ring + largest + 2*each
}

// borderOf marks border switches.
func borderOf(cut partition.Result) []bool {
	list := make([]bool, len(cut.Of))
	for _, b := range cut.Borders {
		list[b] = true
	}
	return list
}
