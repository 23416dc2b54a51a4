package plan

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/weft-sdn/weft"
)

// textWidth is the width of a drawing in a terminal, in columns, unless a
// single box is wider.
const textWidth = 100

// A chart is a plan that is to be drawn, with what declares its services.
type chart struct {
	*Plan
	specs []weft.Spec
}

// Text draws the plan for a terminal: workers as boxes with their services, the
// way of a packet-in through them, and the other traffic between them.
func (p *Plan) Text(specs []weft.Spec) string {
	ch := &chart{p, specs}
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s in %s; between workers %s, events %s, packet-ins balanced by %s\n",
		p.Name, count(len(p.Services()), "service"), count(len(p.Instances()), "process"), p.Transport, p.Events, p.Balance)
	for _, g := range ch.groups() {
		b.WriteString("\n")
		if g.title != "" {
			b.WriteString(g.title + "\n")
		}
		ch.boxRows(&b, g.workers)
	}
	for _, name := range ch.withPipeline() {
		b.WriteString("\n" + ch.wayText(name))
	}
	b.WriteString(ch.appsText())
	ch.trafficText(&b, p.Traffic(specs))
	return b.String()
}

func count(n int, what string) string {
	switch {
	case n == 1:
		return "1 " + what
	case strings.HasSuffix(what, "s"):
		return fmt.Sprintf("%d %ses", n, what)
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// group are the workers of one partition, or those of none.
type group struct {
	partition string
	title     string
	workers   []*Worker
}

// groups returns the workers by partition, those of none last.
func (ch *chart) groups() []group {
	var list []group
	for i := range ch.Partitions {
		x := &ch.Partitions[i]
		list = append(list, group{partition: x.Name, title: "partition " + x.Name + ": switches " + x.short()})
	}
	none := group{}
	if len(ch.Partitions) > 0 {
		none.title = "for all partitions"
	}
	list = append(list, none)
	for i := range list {
		for k := range ch.Workers {
			of := ch.Workers[k].Partition
			if of == list[i].partition || i == len(list)-1 && ch.Partition(of) == nil {
				list[i].workers = append(list[i].workers, &ch.Workers[k])
			}
		}
	}
	if len(list[len(list)-1].workers) == 0 {
		list = list[:len(list)-1]
	}
	return list
}

// short returns the switches of a partition without leading zeros, the first
// few of them.
func (x *Partition) short() string {
	var parts []string
	for i, r := range x.Switches {
		if i == 4 {
			parts = append(parts, fmt.Sprintf("and %d more", len(x.Switches)-i))
			break
		}
		s := fmt.Sprintf("%x", uint64(r.First))
		if r.Last > r.First {
			s += fmt.Sprintf("-%x", uint64(r.Last))
		}
		parts = append(parts, s)
	}
	if x.Rest && len(x.Switches) == 0 {
		parts = append(parts, "that are in no other")
	} else if x.Rest {
		parts = append(parts, "and those that are in no other")
	}
	return strings.Join(parts, ", ")
}

// withPipeline returns the partitions whose switches have a pipeline; a single
// empty name if the plan has no partitions.
func (ch *chart) withPipeline() (names []string) {
	all := ch.partitionNames()
	if len(all) == 0 {
		all = []string{""}
	}
	for _, name := range all {
		if len(ch.Way(ch.specs, name)) > 0 {
			names = append(names, name)
		}
	}
	return names
}

// facts returns what distinguishes a worker besides its services.
func (w *Worker) facts(specs []weft.Spec) (facts []string) {
	facts = append(facts, w.ClassOf(specs).String())
	if w.Nice != 0 {
		facts = append(facts, fmt.Sprintf("nice %d", w.Nice))
	}
	if w.CPUs != "" {
		facts = append(facts, "cpu "+w.CPUs)
	}
	if w.Memory > 0 {
		facts = append(facts, w.Memory.String())
	}
	if w.Standby > 0 {
		facts = append(facts, fmt.Sprintf("%d standby", w.Standby))
	}
	if w.Machine != "" {
		facts = append(facts, "on "+w.Machine)
	}
	return facts
}

// title returns a worker's name with the number of its replicas.
func (w *Worker) title() string {
	if w.Replicas > 1 {
		return fmt.Sprintf("%s ×%d", w.Name, w.Replicas)
	}
	return w.Name
}

// box returns the lines of a worker's box.
func (ch *chart) box(w *Worker) []string {
	facts := strings.Join(w.facts(ch.specs), ", ")
	wide := max(utf8.RuneCountInString(w.title())+2, utf8.RuneCountInString(facts)+2)
	var inside []string
	for _, s := range w.Services {
		inside = append(inside, ch.mark(s))
		wide = max(wide, utf8.RuneCountInString(ch.mark(s))+2)
	}
	fill := func(s, with string) string { return s + strings.Repeat(with, wide-utf8.RuneCountInString(s)) }
	lines := []string{"┌" + fill(" "+w.title()+" ", "─") + "┐"}
	for _, s := range inside {
		lines = append(lines, "│"+fill(" "+s, " ")+"│")
	}
	return append(lines, "└"+fill(" "+facts+" ", "─")+"┘")
}

// mark returns a service's name after its place in the pipeline.
func (ch *chart) mark(service string) string {
	if s := specOf(ch.specs, service); s != nil && (s.Pipeline || s.Beside != nil) {
		return "> " + service
	}
	for i, stage := range ch.Stages(ch.specs) {
		if stage == service {
			return fmt.Sprintf("%d %s", i+1, service)
		}
	}
	return "  " + service
}

// boxRows writes as many boxes side by side as fit in a row.
func (ch *chart) boxRows(b *strings.Builder, workers []*Worker) {
	var row [][]string
	used := 0
	flush := func() {
		height := 0
		for _, box := range row {
			height = max(height, len(box))
		}
		for i := range height {
			var line strings.Builder
			for _, box := range row {
				wide := utf8.RuneCountInString(box[0])
				if i < len(box) {
					line.WriteString(box[i] + "  ")
				} else {
					line.WriteString(strings.Repeat(" ", wide+2))
				}
			}
			b.WriteString(strings.TrimRight(line.String(), " ") + "\n")
		}
		row, used = nil, 0
	}
	for _, w := range workers {
		box := ch.box(w)
		wide := utf8.RuneCountInString(box[0])
		if len(row) > 0 && used+wide > textWidth {
			flush()
		}
		row = append(row, box)
		used += wide + 2
	}
	flush()
}

// wayText returns the way of a packet-in, a line for each worker on it.
func (ch *chart) wayText(partition string) string {
	var b strings.Builder
	b.WriteString("packet-in")
	if partition != "" {
		b.WriteString(" of partition " + partition)
	}
	ch.legsText(&b, ch.Way(ch.specs, partition))
	for i := range ch.specs {
		if s := &ch.specs[i]; s.Beside != nil {
			if way := ch.wayFrom(ch.specs, s, partition); way != nil {
				b.WriteString("packet-in by " + s.Name)
				ch.legsText(&b, way)
			}
		}
	}
	return b.String()
}

// legsText writes the number of crossings of a way, and a line for each of its
// legs.
func (ch *chart) legsText(b *strings.Builder, way []Leg) {
	fmt.Fprintf(b, ": %s\n", count(len(way)-1, "crossing"))
	for i, leg := range way {
		stages := strings.Join(leg.Stages, " > ")
		if stages == "" {
			stages = "receives it"
		}
		if i == 0 {
			fmt.Fprintf(b, "  %s: %s\n", leg.Worker, stages)
			continue
		}
		fmt.Fprintf(b, "  ──%s─▶ %s%s: %s\n", leg.Transport, leg.Worker, ch.spread(leg.Worker), stages)
	}
}

// spread says which replica of a worker a packet-in goes to.
func (ch *chart) spread(worker string) string {
	if w := ch.Worker(worker); w.Replicas > 1 {
		return fmt.Sprintf(" (one of %d, by %s)", w.Replicas, w.Balance)
	}
	return ""
}

// trafficText writes calls and events between workers as a table.
func (ch *chart) trafficText(b *strings.Builder, traffic []Traffic) {
	if len(traffic) == 0 {
		return
	}
	rows := [][]string{{"FROM", "TO", "CALLS", "EVENTS"}}
	for _, t := range traffic {
		cells := []string{t.From, t.To, "", ""}
		if len(t.Calls) > 0 {
			cells[2] = fmt.Sprintf("%d by %s", len(t.Calls), t.Transport)
		}
		if len(t.Events) > 0 {
			cells[3] = fmt.Sprintf("%d by %s", len(t.Events), ch.Events)
		}
		rows = append(rows, cells)
	}
	wide := make([]int, len(rows[0]))
	for _, r := range rows {
		for i, c := range r {
			if c == "" {
				r[i] = "-"
			}
			wide[i] = max(wide[i], len(r[i]))
		}
	}
	b.WriteString("\n")
	for _, r := range rows {
		var line strings.Builder
		for i, c := range r {
			line.WriteString(c + strings.Repeat(" ", wide[i]-len(c)+2))
		}
		b.WriteString(strings.TrimRight(line.String(), " ") + "\n")
	}
}

// appsText says where in the pipeline each app is, empty if there is none.
func (ch *chart) appsText() string {
	var b strings.Builder
	for i, stage := range ch.Stages(ch.specs) {
		a := ch.App(stage)
		if a == nil {
			continue
		}
		before, after := "first", "the last stage"
		if i > 0 {
			before = "after " + ch.Stages(ch.specs)[i-1]
		}
		if list := ch.Stages(ch.specs); i+1 < len(list) {
			after = "before " + list[i+1]
		}
		b.WriteString("\napp " + a.Name + ": " + before + ", " + after + "; " + map[string]string{
			AbsentHold: "packets wait while it is absent", AbsentSkip: "skipped while it is absent", AbsentDrop: "packets are dropped while it is absent",
		}[a.Absent] + " or does not answer within " + a.Timeout.String() + "\n")
	}
	return b.String()
}
