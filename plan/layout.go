package plan

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// Measures of the drawing in pixels. The fonts are monospaced, so that the
// width of a text is known: 0.602 em for each character, rounded up.
const (
	margin     = 24.0
	boxPad     = 12.0
	minBox     = 132.0
	headHeight = 44.0 // of a box: name and facts
	lineHeight = 24.0 // of a service in it
	gapAcross  = 118.0
	gapBelow   = 26.0 // between a box and the arcs at it
	arcStep    = 17.0 // extra height of an arc for each further box
	rowGap     = 84.0
	frameGap   = 20.0 // between unrelated partitions
	maxInRow   = 5
	stackStep  = 5.0 // offset of the boxes behind one with replicas
)

func textWide(s string, size float64) float64 {
	return float64(utf8.RuneCountInString(s)) * size * 0.61
}

// placed is a worker's box in a drawing.
type placed struct {
	*Worker
	x, y, w, h float64
	row, slot  int
	above      bool // arcs within its row go above it, not below
	facts      string
}

// frame is the outline of a partition.
type frame struct {
	title      string
	x, y, w, h float64
}

// picture is a plan laid out.
type picture struct {
	boxes  []*placed
	frames []frame
	w, h   float64
}

func (g *picture) box(worker string) *placed {
	if i := slices.IndexFunc(g.boxes, func(b *placed) bool { return b.Name == worker }); i >= 0 {
		return g.boxes[i]
	}
	return nil
}

// curve is a line to draw between two workers.
type curve struct {
	from, to  string
	both      bool // has arrowheads at both ends
	transport string
	events    bool
	title     string
}

// curves returns the lines of calls and events: one of each kind for a pair of
// workers.
func (ch *chart) curves() (list []curve) {
	add := func(c curve, what []string) {
		c.title = fmt.Sprintf("%s to %s by %s: %s", c.from, c.to, c.transport, strings.Join(what, ", "))
		for i, o := range list {
			if o.events == c.events && o.transport == c.transport && o.from == c.to && o.to == c.from {
				list[i].both = true
				list[i].title += "; " + c.title
				return
			}
		}
		list = append(list, c)
	}
	for _, t := range ch.Traffic(ch.specs) {
		if len(t.Calls) > 0 {
			add(curve{from: t.From, to: t.To, transport: t.Transport}, t.Calls)
		}
		if len(t.Events) > 0 {
			add(curve{from: t.From, to: t.To, transport: ch.Events, events: true}, t.Events)
		}
	}
	return list
}

// arrange places all boxes: the workers of a partition in a frame, those that a
// packet-in passes in a row, from left to right in that order, the others
// below. The picture has at least this width.
func (ch *chart) arrange(lines []curve, wide float64) *picture {
	g := &picture{w: wide}
	apart := rowGap // between frames
	if !ch.crosses(lines) {
		apart = frameGap
	}
	y := margin + 58 // title
	row := 0
	for _, group := range ch.groups() {
		top := y
		if group.title != "" {
			y += 34
		}
		rows := ch.rows(group)
		for _, r := range rows {
			boxes := make([]*placed, len(r.workers))
			for i, w := range r.workers {
				boxes[i] = ch.measure(w)
				boxes[i].row, boxes[i].slot, boxes[i].above = row, i, r.way
			}
			reach := arcs(boxes, lines)
			if r.way && reach > 0 {
				y += gapBelow + arcStep*float64(reach)
			}
			x, height := margin+boxPad, 0.0
			if r.way {
				x += 96 // the arrow of the packet-in
			}
			for _, b := range boxes {
				b.x, b.y = x, y
				x += b.w + gapAcross
				height = max(height, b.h)
			}
			y += height
			if !r.way && reach > 0 {
				y += gapBelow + arcStep*float64(reach)
			}
			g.boxes = append(g.boxes, boxes...)
			g.w = max(g.w, x-gapAcross+margin+2*boxPad)
			y += rowGap
			row++
		}
		if len(rows) > 0 {
			y -= rowGap
		}
		if group.title != "" {
			y += 20
			g.frames = append(g.frames, frame{title: group.title, x: margin, y: top, h: y - top})
			g.w = max(g.w, textWide(group.title, 12)+2*margin+2*boxPad)
		}
		y += apart
	}
	g.h = y - apart + 16
	for i := range g.frames {
		g.frames[i].w = g.w - 2*margin
	}
	g.centre()
	return g
}

// crosses reports whether traffic goes between workers of different partitions,
// or between one partition and workers of none.
func (ch *chart) crosses(lines []curve) bool {
	for _, l := range lines {
		if ch.Worker(l.from).Partition != ch.Worker(l.to).Partition {
			return true
		}
	}
	for _, name := range ch.partitionNames() {
		for _, leg := range ch.Way(ch.specs, name) {
			if ch.Worker(leg.Worker).Partition != name {
				return true
			}
		}
	}
	return false
}

// centre centres the rows that packets do not pass.
func (g *picture) centre() {
	for i := 0; i < len(g.boxes); {
		k := i
		for k < len(g.boxes) && g.boxes[k].row == g.boxes[i].row {
			k++
		}
		first, last := g.boxes[i], g.boxes[k-1]
		if !first.above {
			shift := max(0, (g.w-(last.x+last.w-first.x))/2-first.x)
			for _, b := range g.boxes[i:k] {
				b.x += shift
			}
		}
		i = k
	}
}

type boxRow struct {
	workers []*Worker
	way     bool
}

// rows returns the workers of a group row by row.
func (ch *chart) rows(g group) (rows []boxRow) {
	way := boxRow{way: true}
	if ch.Partition(g.partition) != nil || len(ch.Partitions) == 0 {
		for _, leg := range ch.Way(ch.specs, g.partition) {
			w := ch.Worker(leg.Worker)
			if w.Partition == g.partition && !slices.Contains(way.workers, w) {
				way.workers = append(way.workers, w)
			}
		}
	}
	if len(way.workers) > 0 {
		rows = append(rows, way)
	}
	var rest []*Worker
	for _, w := range g.workers {
		if !slices.Contains(way.workers, w) {
			rest = append(rest, w)
		}
	}
	for part := range slices.Chunk(rest, maxInRow) {
		rows = append(rows, boxRow{workers: part})
	}
	return rows
}

// measure returns a worker's box, as large as its texts.
func (ch *chart) measure(w *Worker) *placed {
	b := &placed{Worker: w, w: minBox, facts: strings.Join(w.facts(ch.specs), " · ")}
	b.w = max(b.w, textWide(w.title(), 14)+2*boxPad, textWide(b.facts, 10)+2*boxPad)
	for _, s := range w.Services {
		b.w = max(b.w, textWide(ch.mark(s), 12)+2*boxPad+16)
	}
	b.h = headHeight + lineHeight*float64(len(w.Services)) + 8
	return b
}

// arcs returns over how many boxes the widest line within a row goes.
func arcs(boxes []*placed, lines []curve) (reach int) {
	at := func(name string) int { return slices.IndexFunc(boxes, func(b *placed) bool { return b.Name == name }) }
	for _, l := range lines {
		if a, b := at(l.from), at(l.to); a >= 0 && b >= 0 {
			reach = max(reach, a-b, b-a)
		}
	}
	return reach
}

// end is an end of a line at a box.
type end struct {
	curve int
	first bool // the curve's from
	box   *placed
	top   bool
	far   float64 // position of the other end, for the order along the edge
	x, y  float64
}

// ends spreads the ends of lines along the edges of the boxes: ends of lines to
// the left come first.
func (g *picture) ends(lines []curve) map[int][2]end {
	edges := map[*placed]*[2][]*end{}
	var all []*end
	for i, l := range lines {
		a, b := g.box(l.from), g.box(l.to)
		for _, e := range []*end{{curve: i, first: true, box: a}, {curve: i, box: b}} {
			other := b
			if e.box == b {
				other = a
			}
			e.far = other.x + other.w/2
			e.top = other.row < e.box.row || other.row == e.box.row && e.box.above
			if edges[e.box] == nil {
				edges[e.box] = &[2][]*end{}
			}
			side := 0
			if e.top {
				side = 1
			}
			edges[e.box][side] = append(edges[e.box][side], e)
			all = append(all, e)
		}
	}
	for _, sides := range edges {
		for _, list := range sides {
			slices.SortStableFunc(list, func(a, b *end) int { return cmp.Or(cmp.Compare(a.far, b.far), cmp.Compare(a.curve, b.curve)) })
			for i, e := range list {
				e.x = e.box.x + e.box.w*float64(i+1)/float64(len(list)+1)
				e.y = e.box.y + e.box.h
				if e.top {
					e.y = e.box.y
					if e.box.Replicas > 1 { // the boxes behind it stand out at the top
						e.y -= stackStep * float64(min(e.box.Replicas, 3)-1)
					}
				}
			}
		}
	}
	found := map[int][2]end{}
	for _, e := range all {
		pair := found[e.curve]
		if e.first {
			pair[0] = *e
		} else {
			pair[1] = *e
		}
		found[e.curve] = pair
	}
	return found
}
