package plan

import (
	"fmt"
	"html"
	"math"
	"slices"
	"strings"

	"github.com/weft-sdn/weft"
)

// colours of the transports, on light and on dark ground.
var colours = []struct{ transport, light, dark string }{
	{GRPC, "#1f6fd1", "#6db1ff"},
	{WS, "#12805c", "#4fd1a5"},
	{REST, "#b85c00", "#ffb15c"},
	{SHM, "#b3123f", "#ff8fa8"},
	{NATS, "#8e44ad", "#d49bf0"},
}

// style is the look of the drawing: light, or dark if the reader prefers that.
func style() string {
	var b strings.Builder
	b.WriteString(`text{font-family:"DejaVu Sans Mono",ui-monospace,Menlo,Consolas,monospace;fill:#1c2733}
.ground{fill:#ffffff}.soft{fill:#5b6875}.frame{fill:#f5f7f9;stroke:#a8b3bf;stroke-dasharray:6 4}
.box{fill:#ffffff;stroke:#5b6875;stroke-width:1.5}.head{fill:#e9eef3;stroke:none}
.service{fill:#f1f4f7;stroke:none}.stage{fill:#ffe9c2;stroke:none}
.line{fill:none;stroke-width:1.2;opacity:.75}.events{stroke-dasharray:4 3}.packets{fill:none;stroke-width:4}
.outside{stroke:#5b6875}.h-outside{fill:#5b6875}
`)
	for _, c := range colours {
		fmt.Fprintf(&b, ".%s{stroke:%s}.h-%s{fill:%s}\n", c.transport, c.light, c.transport, c.light)
	}
	b.WriteString(`@media (prefers-color-scheme:dark){text{fill:#e6edf3}
.ground{fill:#12171d}.soft{fill:#9aa7b4}.frame{fill:#182028;stroke:#566473}
.box{fill:#1e2832;stroke:#8896a5}.head{fill:#2a3744}.service{fill:#273340}.stage{fill:#5a4519}
.outside{stroke:#9aa7b4}.h-outside{fill:#9aa7b4}
`)
	for _, c := range colours {
		fmt.Fprintf(&b, ".%s{stroke:%s}.h-%s{fill:%s}\n", c.transport, c.dark, c.transport, c.dark)
	}
	b.WriteString("}\n")
	return b.String()
}

// drawing writes an SVG document.
type drawing struct {
	strings.Builder
	*picture
}

// SVG draws the plan as a picture: workers as boxes with their services, those
// of a partition in a frame; the way of a packet-in as bold arrows, calls as
// thin lines and events as dashed ones, in the colours of their transports. It
// follows the reader's choice of light or dark ground.
func (p *Plan) SVG(specs []weft.Spec) string {
	title := fmt.Sprintf("%s · %s in %s", p.Name, count(len(p.Services()), "service"), count(len(p.Instances()), "process"))
	facts := fmt.Sprintf("between workers %s, events %s, packet-ins balanced by %s", p.Transport, p.Events, p.Balance)
	for _, a := range p.Apps {
		facts += fmt.Sprintf(", app %s (stage %d)", a.Name, slices.Index(p.Stages(specs), a.Name)+1)
	}
	ch := &chart{p, specs}
	lines := ch.curves()
	d := &drawing{picture: ch.arrange(lines, max(textWide(title, 17), textWide(facts, 11))+2*margin)}
	rows := legendRows(ch.legend(lines), d.w)
	high := d.h + 20*float64(len(rows)) + 12

	fmt.Fprintf(d, `<svg xmlns="http://www.w3.org/2000/svg" width="%.0f" height="%.0f" viewBox="0 0 %.0f %.0f">`+"\n", d.w, high, d.w, high)
	fmt.Fprintf(d, "<title>%s</title>\n<style>\n%s</style>\n<defs>\n", escape(title), style())
	for _, name := range append(Transports(), "outside") {
		fmt.Fprintf(d, `<marker id="thin-%s" class="h-%s" viewBox="0 0 8 8" refX="7.5" refY="4" markerWidth="7" markerHeight="7" markerUnits="userSpaceOnUse" orient="auto-start-reverse"><path d="M0 .5L8 4L0 7.5z"/></marker>`+"\n", name, name)
		fmt.Fprintf(d, `<marker id="bold-%s" class="h-%s" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="15" markerHeight="15" markerUnits="userSpaceOnUse" orient="auto"><path d="M0 0L8 4L0 8z"/></marker>`+"\n", name, name)
	}
	d.WriteString("</defs>\n<rect class=\"ground\" width=\"100%\" height=\"100%\"/>\n")
	d.text(margin, margin+12, 17, `font-weight="bold"`, title)
	d.text(margin, margin+32, 11, `class="soft"`, facts)
	for _, f := range d.frames {
		fmt.Fprintf(d, `<rect class="frame" x="%.1f" y="%.1f" width="%.1f" height="%.1f" rx="8"/>`+"\n", f.x, f.y, f.w, f.h)
		d.text(f.x+boxPad, f.y+19, 12, `class="soft"`, f.title)
	}
	ends := d.ends(lines)
	for i, l := range lines {
		d.thin(l, ends[i])
	}
	for _, name := range ch.withPipeline() {
		d.way(p.Way(specs, name))
	}
	for _, b := range d.boxes {
		d.worker(ch, b)
	}
	for _, name := range ch.withPipeline() {
		d.labels(p.Way(specs, name))
	}
	d.legend(rows, d.h)
	d.WriteString("</svg>\n")
	return d.String()
}

func escape(s string) string { return html.EscapeString(s) }

func (d *drawing) text(x, y, size float64, attributes, s string) {
	if attributes != "" {
		attributes = " " + attributes
	}
	fmt.Fprintf(d, `<text x="%.1f" y="%.1f" font-size="%g"%s>%s</text>`+"\n", x, y, size, attributes, escape(s))
}

// worker draws a box; the replicas stand behind it.
func (d *drawing) worker(ch *chart, b *placed) {
	fmt.Fprintf(d, "<g><title>worker %s: %s</title>\n", escape(b.Name), escape(b.summary()))
	for n := min(b.Replicas, 3) - 1; n >= 0; n-- {
		shift := stackStep * float64(n)
		fmt.Fprintf(d, `<rect class="box" x="%.1f" y="%.1f" width="%.1f" height="%.1f" rx="6"/>`+"\n", b.x+shift, b.y-shift, b.w, b.h)
	}
	fmt.Fprintf(d, `<rect class="head" x="%.1f" y="%.1f" width="%.1f" height="%.1f" rx="5"/>`+"\n", b.x+1, b.y+1, b.w-2, headHeight-4)
	d.text(b.x+boxPad, b.y+19, 14, `font-weight="bold"`, b.title())
	d.text(b.x+boxPad, b.y+33, 10, `class="soft"`, b.facts)
	for i, s := range b.Services {
		class, y := "service", b.y+headHeight+lineHeight*float64(i)
		mark := strings.TrimSpace(ch.mark(s))
		if mark != s {
			class = "stage"
		}
		doc := ""
		if spec := specOf(ch.specs, s); spec != nil {
			doc = spec.Doc
		}
		fmt.Fprintf(d, `<rect class="%s" x="%.1f" y="%.1f" width="%.1f" height="%.1f" rx="4"><title>%s: %s</title></rect>`+"\n", class, b.x+8, y, b.w-16, lineHeight-4, escape(s), escape(doc))
		d.text(b.x+8+boxPad/2, y+14.5, 12, "", mark)
	}
	d.WriteString("</g>\n")
}

// bend is the distance of a line's control points from its ends: half way to
// the other row, or the height of the arc within a row.
func bend(a, b end) (float64, float64) {
	if a.box.row != b.box.row {
		dy := max(math.Abs(b.y-a.y)*.5, 30)
		if a.box.row < b.box.row {
			return dy, -dy
		}
		return -dy, dy
	}
	far := a.box.slot - b.box.slot
	dy := (gapBelow + arcStep*float64(max(far, -far))) * 1.2
	if a.box.above {
		dy = -dy
	}
	return dy, dy
}

func (d *drawing) thin(l curve, at [2]end) {
	a, b := at[0], at[1]
	up, down := bend(a, b)
	class := "line " + l.transport
	if l.events {
		class += " events"
	}
	start := ""
	if l.both {
		start = fmt.Sprintf(` marker-start="url(#thin-%s)"`, l.transport)
	}
	fmt.Fprintf(d, `<path class="%s" d="M%.1f %.1fC%.1f %.1f %.1f %.1f %.1f %.1f"%s marker-end="url(#thin-%s)"><title>%s</title></path>`+"\n",
		class, a.x, a.y, a.x, a.y+up, b.x, b.y+down, b.x, b.y, start, l.transport, escape(l.title))
}

// hop returns the ends of the bold arrow to a leg.
func (d *drawing) hop(from, to *placed) (x1, y1, x2, y2 float64) {
	mid := headHeight/2 - 2
	if from.row != to.row {
		return from.x + from.w - boxPad, from.y + from.h, to.x + boxPad, to.y
	}
	if from.x < to.x {
		shift := 0.0
		if from.Replicas > 1 {
			shift = stackStep * float64(min(from.Replicas, 3)-1)
		}
		return from.x + from.w + shift, from.y + mid, to.x, to.y + mid
	}
	return from.x, from.y + mid + 16, to.x + to.w, to.y + mid + 16
}

// way draws the bold arrows.
func (d *drawing) way(way []Leg) {
	if b := d.box(way[0].Worker); b.above {
		y := b.y + headHeight/2 - 2
		fmt.Fprintf(d, `<path class="packets outside" d="M%.1f %.1fL%.1f %.1f" marker-end="url(#bold-outside)"><title>packet-ins from the switches</title></path>`+"\n", b.x-84, y, b.x-1, y)
	}
	for i, leg := range way[1:] {
		from, to := d.box(way[i].Worker), d.box(leg.Worker)
		x1, y1, x2, y2 := d.hop(from, to)
		curve := fmt.Sprintf("L%.1f %.1f", x2, y2)
		if from.row != to.row {
			curve = fmt.Sprintf("C%.1f %.1f %.1f %.1f %.1f %.1f", x1, y1+40, x2, y2-40, x2, y2)
		}
		fmt.Fprintf(d, `<path class="packets %s" d="M%.1f %.1f%s" marker-end="url(#bold-%s)"><title>%s</title></path>`+"\n",
			leg.Transport, x1, y1, curve, leg.Transport, escape(fmt.Sprintf("packet-ins from %s to %s by %s", from.Name, to.Name, leg.Transport)))
	}
}

// labels names the transports of the bold arrows.
func (d *drawing) labels(way []Leg) {
	if b := d.box(way[0].Worker); b.above {
		d.text(b.x-84, b.y+headHeight/2-10, 11, "", "packet-in")
	}
	told := map[string]bool{}
	for i, leg := range way[1:] {
		from, to := d.box(way[i].Worker), d.box(leg.Worker)
		x1, y1, x2, y2 := d.hop(from, to)
		key := fmt.Sprint(x1, y1, x2, y2)
		if told[key] {
			continue
		}
		told[key] = true
		x, y := (x1+x2)/2, (y1+y2)/2
		// Beside a neighbour there is room above the arrow; a longer arrow runs
		// behind boxes.
		if from.row == to.row && to.slot != from.slot+1 && to.slot != from.slot-1 {
			x = x2 - gapAcross/2
			if from.x > to.x {
				x = x2 + gapAcross/2
			}
		}
		d.text(x, y-8, 11, fmt.Sprintf(`class="h-%s" font-weight="bold" text-anchor="middle"`, leg.Transport), leg.Transport)
		if to.Replicas > 1 {
			d.text(x, y+15, 10, `class="soft" text-anchor="middle"`, "by "+to.Balance)
		}
	}
}

// sample is an entry of the legend.
type sample struct{ class, marker, text string }

func (s sample) wide() float64 { return 44 + textWide(s.text, 11) + 20 }

// legend returns the entries for the drawing's elements.
func (ch *chart) legend(lines []curve) (list []sample) {
	add := func(s sample) {
		if !slices.Contains(list, s) {
			list = append(list, s)
		}
	}
	for _, name := range ch.withPipeline() {
		add(sample{"packets outside", "bold-outside", "packet-in"})
		for _, leg := range ch.Way(ch.specs, name)[1:] {
			add(sample{"packets " + leg.Transport, "bold-" + leg.Transport, "packet-in by " + leg.Transport})
		}
	}
	for _, events := range []bool{false, true} {
		for _, l := range lines {
			switch {
			case l.events != events:
			case events:
				add(sample{"line events " + l.transport, "thin-" + l.transport, "events by " + l.transport})
			default:
				add(sample{"line " + l.transport, "thin-" + l.transport, "calls by " + l.transport})
			}
		}
	}
	return list
}

// legendRows breaks the legend into rows.
func legendRows(list []sample, wide float64) (rows [][]sample) {
	x := wide
	for _, s := range list {
		if x+s.wide() > wide-margin {
			rows, x = append(rows, nil), margin
		}
		rows[len(rows)-1] = append(rows[len(rows)-1], s)
		x += s.wide()
	}
	return rows
}

func (d *drawing) legend(rows [][]sample, y float64) {
	for _, row := range rows {
		x := margin
		for _, s := range row {
			fmt.Fprintf(d, `<path class="%s" d="M%.1f %.1fh32" marker-end="url(#%s)"/>`+"\n", s.class, x, y+8, s.marker)
			d.text(x+44, y+12, 11, "", s.text)
			x += s.wide()
		}
		y += 20
	}
}
