package nf

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/weft-sdn/weft/bench/experiments"
	"github.com/weft-sdn/weft/bench/experiments/figure"
	"github.com/weft-sdn/weft/plan/size"
	"github.com/weft-sdn/weft/test/measure"
)

const testbedMethod = `weft nf ids with 200 rules that were made up, each text searched for by itself, appends an alert to a file for
each rule that a packet meets, with O_DSYNC. Packets of 1,000 bytes of 1,024 flows come at random times; they have texts of rules in them,
so many on average that a packet is idle for 0.248 ms on the disk of this machine (found out beforehand), and so many come that one
instance works for 58 % of its time, at most 970 a second. One Open vSwitch, by static OpenFlow entries: copies get flows by the low bits of their source port,
a chain is from port to port, each part with every nth rule. All functions that share a CPU are on the last, those with one each on one each from the last on; source, sink
and Open vSwitch are on the first. Delays are by the kernel's clock at both ends.`

const testbedDeviation = `The function is not Snort: it is smaller, so that a packet takes less of the processor and switches of contexts cost less. This
machine's CPUs are few: with one each there are as many instances as CPUs, the last of which has the switch, too; more are simulated, and marked
so. Writes of several instances meet at one disk.`

func delay() experiments.Experiment {
	return experiments.Experiment{
		Name: "nf-delay", Title: "delay of an intrusion detection as copies and as chains, on one CPU and on one each, and what was predicted",
		Paper: paper, Figure: "Figs. 3, 4, 6 and 8",
		Claim: `On one CPU the delay is least with 2 or 4 instances, with a CPU each with 2, 4, 8 or 16, and copies are faster than chains there. Copies cost
0.0005 ms for two to split and more switches of contexts than chains; a chain of two costs 0.002 ms. The equations are off by 2 % to 48 %.`,
		Method:    testbedMethod + ` From one and two instances the others are predicted by plan/size (predicted_ms) before they are looked at.`,
		Deviation: testbedDeviation,
		Runs:      10, QuickRuns: 2, Transports: []string{"grpc"},
		Statements: delayStatements(),
		Columns:    columns(), Lasting: true,
		Cases: func(p experiments.Parameters) []experiments.Case { return cases(p.Quick) },
		Sum:   sumDelay,
	}
}

// delayStatements are those of sections IV.A.1 and IV.B.1.
func delayStatements() []experiments.Statement {
	best := func(where string) experiments.Statement {
		return experiments.Range(paperValues.Number("Fig. 6", where, "fewest"), paperValues.Number("Fig. 6", where, "most"), 0)
	}
	split, chained := paperValues.Number("Fig. 3", "traffic distribution", "2"), paperValues.Number("Fig. 3", "microservice overhead", "2")
	return []experiments.Statement{
		experiments.Above().Said("switches of contexts", "copies switch contexts more than chains"),
		experiments.Value(split/chained, .25).OfRatio().Said("splitting to chaining", "0.0005 to 0.002 ms for two"),
		best("best n, one CPU").Said("best n, one CPU", "2 or 4"),
		best("best n, a CPU each").Said("best n, a CPU each", "2, 4, 8 or 16"),
		experiments.Below().Said("copies to chain", "less for copies, for all n"),
	}
}

// median returns that of a column of a way with n instances.
func median(c *experiments.Context, column string, d deployed, n int) measure.Interval {
	return measure.Median(c.Rounds(column, d.String(), experiments.Where("n", strconv.Itoa(n))))
}

// instanceOf returns the medians of a way; one instance is the same in all ways.
func instanceOf(c *experiments.Context, d deployed, n int) instance {
	of := func(column string) float64 {
		if n > 1 {
			return median(c, column, d, n).Median
		}
		var all []float64
		for _, d := range ways() {
			all = append(all, c.Rounds(column, d.String(), experiments.Where("n", "1"))...)
		}
		return measure.Median(all).Median
	}
	return instance{delay: of("delay_ms"), work: of("work_ms"), idle: of("idle_ms"), scv: of("service_scv"), switching: of("switching_us") / 1e3}
}

// predicted returns the prediction of a way; ok is false if it cannot be made.
func predicted(c *experiments.Context, d deployed) (p prediction, ok bool) {
	if d.as == functions {
		return p, false
	}
	p = prediction{d: d, rate: median(c, "rate", d, 1).Median, one: instanceOf(c, d, 1), two: instanceOf(c, d, 2)}
	return p, !math.IsNaN(p.one.delay + p.two.delay + p.rate)
}

// point is one line of by_way, null where there is nothing.
type point struct {
	As        string        `json:"as"`
	OwnCPU    bool          `json:"own_cpu"`
	N         int           `json:"n"`
	Measured  figure.Number `json:"measured_ms"`
	CI95      []float64     `json:"ci95"`
	Predicted figure.Number `json:"predicted_ms"`
	Error     figure.Number `json:"error_percent"` // of the prediction, to the measured
	Simulated bool          `json:"simulated"`     // not run: predicted_ms is by simulation from measured parts
	Work      figure.Number `json:"work_ms"`
	Idle      figure.Number `json:"idle_ms"`
	Voluntary figure.Number `json:"switches_voluntary"`
	Forced    figure.Number `json:"switches_involuntary"`
}

// points are all numbers of instances of a way, those that can only be simulated, too.
func points(c *experiments.Context, d deployed) (list []point) {
	p, known := predicted(c, d)
	really := d.counts()
	all := size.PaperCounts()
	if d.as == functions {
		all = really
	}
	var delays []float64
	if known {
		delays = p.delays(all)
	}
	nan := figure.Number(math.NaN())
	for i, n := range all {
		x := point{As: string(d.as), OwnCPU: d.own, N: n, Measured: nan, Predicted: nan, Error: nan, Work: nan, Idle: nan, Voluntary: nan, Forced: nan}
		x.Simulated = true
		for _, m := range really {
			x.Simulated = x.Simulated && m != n
		}
		if !x.Simulated {
			m := median(c, "delay_ms", d, n)
			x.Measured, x.CI95 = figure.Number(m.Median), m.CI95
			for column, to := range map[string]*figure.Number{"work_ms": &x.Work, "idle_ms": &x.Idle, "voluntary": &x.Voluntary, "involuntary": &x.Forced} {
				*to = figure.Number(median(c, column, d, n).Median)
			}
		}
		if known {
			x.Predicted = figure.Number(delays[i])
			x.Error = figure.Number(100 * math.Abs(float64(x.Measured-x.Predicted)) / float64(x.Measured))
		}
		list = append(list, x)
	}
	return list
}

// at is where n instances stand on the axis of a panel.
func at(n int) float64 { return math.Log2(float64(n)) }

func sumDelay(c *experiments.Context) error {
	delays := [2]figure.Panel{panelOf("one CPU"), panelOf("a CPU each")}
	errs := panelOf("")
	errs.Y.Label = "error of the prediction, %"
	byWay := []point{}
	for i, d := range ways() {
		list := points(c, d)
		byWay = append(byWay, list...)
		panel := &delays[0]
		if d.own {
			panel = &delays[1]
		}
		ours := figure.Series{Name: string(d.as), Kind: figure.Line, Colour: i + 1}
		guess := figure.Series{Name: string(d.as) + ", predicted", Kind: figure.Line, Colour: i + 1, Dashed: true}
		wrong := figure.Series{Name: d.String(), Kind: figure.Bars, Colour: i + 1}
		for _, x := range list {
			if !x.Simulated {
				ours.Points = append(ours.Points, figure.At(at(x.N), median(c, "delay_ms", d, x.N), d.String()))
			}
			if !math.IsNaN(float64(x.Predicted)) {
				guess.Points = append(guess.Points, figure.Point{X: at(x.N), Y: x.Predicted})
			}
			if x.N > 2 && !math.IsNaN(float64(x.Error)) {
				wrong.Points = append(wrong.Points, figure.Point{X: at(x.N), Y: x.Error})
				c.Compare(experiments.Claim{Figure: "Fig. 8", What: fmt.Sprintf("error of the prediction, %s, n = %d", d, x.N), Paper: "2 to 48 %, of another model", Unit: "%"}.
					Of(errorOf(median(c, "delay_ms", d, x.N), float64(x.Predicted))).AtMost(15))
			}
		}
		panel.Series = append(panel.Series, ours)
		if len(guess.Points) > 0 {
			panel.Series = append(panel.Series, guess)
		}
		if len(wrong.Points) > 0 {
			errs.Series = append(errs.Series, wrong)
		}
		compareBest(c, d, list)
	}
	c.Figure("by_way", byWay)
	fig6 := figure.Figure{Name: "Fig. 6", Title: "delay by the number of instances", Panels: delays[:],
		Notes: []string{fmt.Sprintf("With a CPU each more than %d instances are simulated from measured parts.", len(ownCPUs()))}}
	c.Draw(overheads(c, "Fig. 3", false), overheads(c, "Fig. 4", true), fig6, figure.Figure{Name: "Fig. 8", Title: "error of what was predicted from one and two instances", Panels: []figure.Panel{errs}})
	return nil
}

// compareBest compares the number of instances that the prediction chooses with the best one that was measured.
func compareBest(c *experiments.Context, d deployed, list []point) {
	best, chosen := -1, -1
	for i, x := range list {
		if x.Simulated || math.IsNaN(float64(x.Measured)) {
			continue
		}
		if best < 0 || x.Measured < list[best].Measured {
			best = i
		}
		if !math.IsNaN(float64(x.Predicted)) && (chosen < 0 || x.Predicted < list[chosen].Predicted) {
			chosen = i
		}
	}
	if d.as == functions || best < 0 || chosen < 0 {
		return
	}
	said := "best n, one CPU"
	if d.own {
		said = "best n, a CPU each"
	}
	byCount := map[int][]float64{}
	for _, n := range d.counts() {
		byCount[n] = c.Rounds("delay_ms", d.String(), experiments.Where("n", strconv.Itoa(n)))
	}
	over := slices.Clone(byCount[list[chosen].N])
	for round := range over {
		over[round] = 100 * (over[round]/byCount[list[best].N][round] - 1)
	}
	c.Compare(experiments.Claim{Figure: "Fig. 6", What: "n of the least delay of a round, " + d.String(), Says: c.Statement(said)}.Of(measure.Median(leastOf(d.counts(), byCount))),
		experiments.Claim{Figure: "Fig. 6", What: fmt.Sprintf("delay with the n chosen, %d, above that with the least of all rounds, %d, %s", list[chosen].N, list[best].N, d), Unit: "%"}.
			Of(measure.Median(over)).AtMost(5))
}

// errorOf is by how much a prediction is off a measured median, in percent of it, with the
// interval that follows from the median's.
func errorOf(measured measure.Interval, predicted float64) measure.Interval {
	off := func(v float64) float64 { return 100 * math.Abs(v-predicted) / v }
	of := measure.Interval{Median: off(measured.Median), Count: measured.Count}
	if ci := measured.CI95; len(ci) == 2 {
		of.CI95 = []float64{min(off(ci[0]), off(ci[1])), max(off(ci[0]), off(ci[1]))}
		if ci[0] <= predicted && predicted <= ci[1] {
			of.CI95[0] = 0
		}
	}
	return of
}

// compareForms compares copies with chains, on one CPU or on one each, round by round.
func compareForms(c *experiments.Context, name string, own bool) {
	of := func(as form, column string, n int) []float64 {
		return c.Rounds(column, deployed{own, as}.String(), experiments.Where("n", strconv.Itoa(n)))
	}
	switches := func(as form, n int) []float64 {
		list := of(as, "voluntary", n)
		for i, v := range of(as, "involuntary", n) {
			list[i] += v
		}
		return list
	}
	cost := func(as form, work float64) []float64 { // of the second part, in ms
		list := of(as, "switching_us", 2)
		for i, one := range of(as, "switching_us", 1) {
			list[i] = (list[i]-one)/1e3 + work*(of(as, "work_ms", 2)[i]-of(as, "work_ms", 1)[i])
		}
		return list
	}
	where := map[bool]string{false: "one CPU", true: "a CPU each"}[own]
	claim := func(figure, what, statement string, a, b []float64) {
		c.Compare(experiments.Claim{Figure: figure, What: what + ", " + where, Says: c.Statement(statement)}.Of(measure.Ratio(a, b)).
			Beside(deployed{own, copies}.String(), deployed{own, chain}.String()))
	}
	for _, n := range (deployed{own, copies}).counts()[1:] {
		claim(name, fmt.Sprintf("switches of contexts, %d copies to a chain of %d", n, n), "switches of contexts", switches(copies, n), switches(chain, n))
		if own {
			claim("Fig. 6", fmt.Sprintf("delay, %d copies to a chain of %d", n, n), "copies to chain", of(copies, "delay_ms", n), of(chain, "delay_ms", n))
		}
	}
	claim(name, "splitting for two to a chain of two", "splitting to chaining", cost(copies, 0), cost(chain, 1))
}

// overheads draws what n instances take of processors more than one does, and compares it for two.
func overheads(c *experiments.Context, name string, own bool) figure.Figure {
	compareForms(c, name, own)
	work, switches := panelOf("processor time more than with one"), panelOf("switches of contexts")
	work.Y.Label, switches.Y.Label = "ms for each packet", "for each packet"
	for i, as := range []form{copies, chain} {
		d := deployed{own, as}
		one := instanceOf(c, d, 1)
		function := figure.Series{Name: string(as) + ", functions", Kind: figure.Line, Colour: i + 1}
		splitter := figure.Series{Name: string(as) + ", Open vSwitch", Kind: figure.Line, Colour: i + 1, Dashed: true}
		both := figure.Series{Name: string(as), Kind: figure.Line, Colour: i + 1}
		for _, n := range d.counts() {
			of := instanceOf(c, d, n)
			if median(c, "work_ms", d, n).Count == 0 { // though one instance of another way is known
				of.work, of.switching = math.NaN(), math.NaN()
			}
			function.Points = append(function.Points, figure.Point{X: at(n), Y: figure.Number(of.work - one.work), Case: d.String()})
			splitter.Points = append(splitter.Points, figure.Point{X: at(n), Y: figure.Number(of.switching - one.switching), Case: d.String()})
			both.Points = append(both.Points, figure.Point{X: at(n), Y: figure.Number(median(c, "voluntary", d, n).Median + median(c, "involuntary", d, n).Median), Case: d.String()})
		}
		work.Series, switches.Series = append(work.Series, function, splitter), append(switches.Series, both)
		two := instanceOf(c, d, 2)
		claim := experiments.Claim{Figure: name, What: "the second part costs, " + d.String(), Paper: "0.002", Value: 0.002, Ours: two.work + two.switching - one.work - one.switching, Unit: "ms"}
		if as == copies {
			claim.What, claim.Paper, claim.Value, claim.Ours = "splitting for two costs Open vSwitch, "+d.String(), "0.0005", 0.0005, two.switching-one.switching
		}
		c.Compare(claim)
	}
	return figure.Figure{Name: name, Title: strings.TrimSuffix("overheads, "+map[bool]string{false: "one CPU", true: "a CPU each"}[own], ", "), Panels: []figure.Panel{work, switches}}
}
