package bench

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/weft-sdn/weft/bench/sim"
	"github.com/weft-sdn/weft/internal/quantile"
	"github.com/weft-sdn/weft/openflow"
	"github.com/weft-sdn/weft/test/measure"
)

// benchFigures is the rounds of one subject: medians, and the extremes of the
// rates. Latency beyond the medians is of all rounds together.
type benchFigures struct {
	AnswersPerS    float64 `json:"answers_per_s"`
	AnswersPerSMin float64 `json:"answers_per_s_min"`
	AnswersPerSMax float64 `json:"answers_per_s_max"`
	P50US          float64 `json:"p50_us"`
	P99US          float64 `json:"p99_us"`
	P999US         float64 `json:"p999_us"`
	MaxUS          float64 `json:"max_us"`
	CPU            float64 `json:"cpu_percent"`           // of one processor; 0 is not known
	GeneratorCPU   float64 `json:"generator_cpu_percent"` // of one processor
	sim.Counts
}

// benchReport is what a load prints. The figures at the top are those of the
// controller.
type benchReport struct {
	benchTaken
	Mode           benchMode `json:"mode"`
	Controller     string    `json:"controller"`
	OpenFlow       string    `json:"openflow"`
	Switches       int       `json:"switches"`
	HostsPerSwitch int       `json:"hosts_per_switch"`
	Window         int       `json:"window"`
	Rate           float64   `json:"rate,omitempty"`
	Unbuffered     bool      `json:"unbuffered,omitempty"`
	DurationS      float64   `json:"duration_s"`
	Rounds         int       `json:"rounds"`
	ControllerOn   int       `json:"controller_processor"` // -1: not pinned
	GeneratorOn    int       `json:"generator_processor"`
	benchFigures
	CI95         benchCI95     `json:"ci95"` // of the figures at the top and of ratios
	Marks        []benchMark   `json:"marks,omitempty"`
	MemoryBytes  int64         `json:"controller_memory_bytes,omitempty"`
	FloorRatio   float64       `json:"floor_ratio,omitempty"`     // of answers/s to the floor's, median over the rounds
	FloorP50     float64       `json:"floor_p50_ratio,omitempty"` // of median latencies to the floor's, likewise
	Floor        *benchFigures `json:"floor,omitempty"`
	Splits       []benchSplit  `json:"splits,omitempty"`
	Rules        int           `json:"firewall_rules,omitempty"`
	WithoutRules *benchFigures `json:"without_rules,omitempty"`
	RulesRatio   float64       `json:"rules_ratio,omitempty"` // of answers/s to those without rules, likewise
	Detail       []benchRound  `json:"detail"`
	FloorDetail  []benchRound  `json:"floor_detail,omitempty"`
}

// newBenchReport sums the rounds up; floor is the subject itself if there was
// none.
func newBenchReport(c benchConfig, cpus benchCPUs, subject, floor *benchSubject) *benchReport {
	r := &benchReport{
		Mode: c.mode, Controller: subject.name, OpenFlow: "1.0", Switches: c.switches, HostsPerSwitch: c.hosts,
		Window: c.window, Rate: c.rate, Unbuffered: c.unbuffered, DurationS: c.duration.Seconds(), Rounds: c.rounds,
		ControllerOn: cpus.subject, GeneratorOn: cpus.load,
		benchFigures: subject.figures(), Detail: subject.rounds, MemoryBytes: benchMemory("VmRSS", subject.child.All()...),
	}
	r.CI95 = benchCI95{"answers_per_s": measure.Median(subject.each(benchAnswers)).CI95, "p50_us": measure.Median(subject.each(benchP50)).CI95}
	if subject.child == nil {
		r.ControllerOn = -1
	}
	if c.version == openflow.V13 {
		r.OpenFlow = "1.3"
	}
	if floor != subject {
		f := floor.figures()
		r.Floor, r.FloorDetail = &f, floor.rounds
		r.FloorRatio = r.ratio("floor_ratio", subject, floor, benchAnswers)
		r.FloorP50 = r.ratio("floor_p50_ratio", subject, floor, benchP50)
		if least, ok := benchFloorLeast[r.OpenFlow]; ok && c.mode == benchThroughput && c.rate == 0 && c.command == "" && c.controller == "" {
			r.Marks = append(r.Marks, newBenchLeast("answers/s to the floor's", measure.Interval{Median: r.FloorRatio, CI95: r.CI95["floor_ratio"]}, least))
		}
	}
	return r
}

// benchFloorLeast is what throughput is to be to the floor's, by OpenFlow
// version; benchSplitLeast what that of several processes is to be to one's, by
// transport.
var (
	benchFloorLeast = map[string]float64{"1.0": 0.5, "1.3": 0.45}
	benchSplitLeast = map[string]float64{"shm": 0.6, "grpc": 0.5}
)

func benchAnswers(r benchRound) float64 { return r.AnswersPerS }
func benchP50(r benchRound) float64     { return r.P50US }

// each returns a figure of all rounds.
func (s *benchSubject) each(figure func(benchRound) float64) []float64 {
	v := make([]float64, len(s.rounds))
	for i, r := range s.rounds {
		v[i] = figure(r)
	}
	return v
}

// ratio returns the ratio of a figure, and notes its interval.
func (r *benchReport) ratio(name string, a, b *benchSubject, figure func(benchRound) float64) float64 {
	ratio := measure.Ratio(a.each(figure), b.each(figure))
	r.CI95[name] = ratio.CI95
	return benchNumber(ratio.Median)
}

// splits adds the figures of controllers in several processes.
func (r *benchReport) splits(list []benchSplit, single *benchSubject, subjects []*benchSubject) {
	for i, split := range list {
		name := "single_ratio " + split.String()
		split.benchFigures = subjects[i].figures()
		split.Ratio = r.ratio(name, subjects[i], single, benchAnswers)
		if least, ok := benchSplitLeast[split.String()]; ok {
			r.Marks = append(r.Marks, newBenchLeast("answers/s of "+split.String()+" to one process's", measure.Interval{Median: split.Ratio, CI95: r.CI95[name]}, least))
		}
		r.Splits = append(r.Splits, split)
	}
}

func benchRatio(a, b float64) float64 {
	if b == 0 {
		return 0
	}
	return a / b
}

// figures sums the rounds up.
func (s *benchSubject) figures() benchFigures {
	pick := func(f func(benchRound) float64) []float64 {
		v := make([]float64, len(s.rounds))
		for i, r := range s.rounds {
			v[i] = f(r)
		}
		slices.Sort(v)
		return v
	}
	median := func(f func(benchRound) float64) float64 { return quantile.Middle(pick(f)) }
	rates := pick(func(r benchRound) float64 { return r.AnswersPerS })
	f := benchFigures{
		AnswersPerS:    median(func(r benchRound) float64 { return r.AnswersPerS }),
		AnswersPerSMin: rates[0], AnswersPerSMax: rates[len(rates)-1],
		P50US:        median(func(r benchRound) float64 { return r.P50US }),
		P99US:        median(func(r benchRound) float64 { return r.P99US }),
		P999US:       float64(s.latency.ValueAtPercentile(99.9)) / 1e3,
		MaxUS:        float64(s.latency.Max()) / 1e3,
		CPU:          median(func(r benchRound) float64 { return r.CPU }),
		GeneratorCPU: median(func(r benchRound) float64 { return r.GeneratorCPU }),
	}
	for _, r := range s.rounds {
		f.Counts.Add(r.Counts)
	}
	return f
}

func benchCheckOutput(output string) error {
	if output != "table" && output != "json" {
		return fmt.Errorf("--output %q: want table or json", output)
	}
	return nil
}

// benchJSON writes v indented.
func benchJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

// write prints the report.
func (r *benchReport) write(w io.Writer, output string) error {
	if output == "json" {
		return benchJSON(w, r)
	}
	load := fmt.Sprintf("%d outstanding per switch", r.Window)
	if r.Rate > 0 {
		load = benchCount(r.Rate) + " packet-ins/s"
	}
	fmt.Fprintf(w, "%s of %s: OpenFlow %s, %d switches with %d hosts each, %s, medians of %d rounds of %gs\n",
		r.Mode, r.Controller, r.OpenFlow, r.Switches, r.HostsPerSwitch, load, r.Rounds, r.DurationS)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	head := "\tcontroller\t"
	figures := []*benchFigures{&r.benchFigures}
	if r.Floor != nil {
		head += "floor\tratio\t"
		figures = append(figures, r.Floor)
	}
	fmt.Fprintln(t, head)
	row := func(name string, text func(*benchFigures) string, ratio float64) {
		line := name + "\t"
		for _, f := range figures {
			line += text(f) + "\t"
		}
		if r.Floor != nil {
			if ratio > 0 {
				line += fmt.Sprintf("%.2f", ratio)
			}
			line += "\t"
		}
		fmt.Fprintln(t, line)
	}
	us := func(get func(*benchFigures) float64) func(*benchFigures) string {
		return func(f *benchFigures) string { return fmt.Sprintf("%.1f", get(f)) }
	}
	row("answers/s", func(f *benchFigures) string { return benchCount(f.AnswersPerS) }, r.FloorRatio)
	row("lowest", func(f *benchFigures) string { return benchCount(f.AnswersPerSMin) }, 0)
	row("highest", func(f *benchFigures) string { return benchCount(f.AnswersPerSMax) }, 0)
	row("p50 µs", us(func(f *benchFigures) float64 { return f.P50US }), r.FloorP50)
	row("p99 µs", us(func(f *benchFigures) float64 { return f.P99US }), 0)
	row("p99.9 µs", us(func(f *benchFigures) float64 { return f.P999US }), 0)
	row("highest µs", us(func(f *benchFigures) float64 { return f.MaxUS }), 0)
	row("its CPU %", func(f *benchFigures) string {
		if f.CPU == 0 {
			return "-"
		}
		return fmt.Sprintf("%.0f", f.CPU)
	}, 0)
	row("generator's CPU %", func(f *benchFigures) string { return fmt.Sprintf("%.0f", f.GeneratorCPU) }, 0)
	if err := t.Flush(); err != nil {
		return err
	}
	if r.WithoutRules != nil {
		fmt.Fprintf(w, "without rules: %s answers/s; with %d rules %.2f of that\n", benchCount(r.WithoutRules.AnswersPerS), r.Rules, r.RulesRatio)
	}
	if r.MemoryBytes > 0 {
		fmt.Fprintf(w, "controller's memory: %d MB\n", r.MemoryBytes>>20)
	}
	fmt.Fprintln(w, "answers of the controller:", benchCounts(r.Counts))
	fmt.Fprintf(w, "95 %%: answers/s %s, p50 µs %s\n", r.CI95.text("answers_per_s", benchCount), r.CI95.text("p50_us", benchTwo))
	for _, s := range r.Splits {
		fmt.Fprintf(w, "in several processes over %s: %s answers/s, %.2f of one process; p50 %.1f µs, p99 %.1f µs; %s\n",
			s, benchCount(s.AnswersPerS), s.Ratio, s.P50US, s.P99US, benchCounts(s.Counts))
	}
	for _, m := range r.Marks {
		fmt.Fprintln(w, m)
	}
	return r.writeTaken(w)
}

// benchCounts tells what became of the packets.
func benchCounts(c sim.Counts) string {
	share := func(n uint64) string { return fmt.Sprintf("%.1f%%", 100*benchRatio(float64(n), float64(c.Answered))) }
	text := []string{share(c.ToHost) + " to the host's port", share(c.Flooded) + " flooded"}
	for _, p := range []struct {
		n    uint64
		what string
	}{
		{c.Elsewhere, "to another port"}, {c.Nowhere, "to no port"}, {c.Lost, "packets lost"}, {c.Unsent, "packets unsent"},
		{c.Duplicates, "duplicates"}, {c.Late, "late"}, {c.Wrong, "wrong"}, {c.Nameless, "flow-mods without buffer_id"},
	} {
		if p.n > 0 {
			text = append(text, fmt.Sprintf("%d %s", p.n, p.what))
		}
	}
	return strings.Join(text, ", ")
}

// benchCount writes a rate as people read it.
func benchCount(v float64) string {
	switch {
	case v >= 1e6:
		return fmt.Sprintf("%.2fM", v/1e6)
	case v >= 1e4:
		return fmt.Sprintf("%.1fk", v/1e3)
	}
	return fmt.Sprintf("%.0f", v)
}
