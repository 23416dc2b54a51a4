package msn

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"

	"github.com/weft-sdn/weft/bench/experiments"
	"github.com/weft-sdn/weft/bench/experiments/figure"
	"github.com/weft-sdn/weft/internal/quantile"
	"github.com/weft-sdn/weft/test/measure"
)

// point is one message: when it was due, in seconds, and its delay in
// milliseconds, negative if it was not answered.
type point struct{ at, delay float64 }

// outcome is what came of one run, or of all runs over one transport.
type outcome struct {
	Transport  string  `json:"transport"`
	Sent       int     `json:"sent"`
	Answered   int     `json:"answered"`
	Shed       int     `json:"shed"`
	Lost       int     `json:"lost"`
	Duplicates int     `json:"duplicates"`
	DataSent   int     `json:"data_sent"`
	DataLost   int     `json:"data_lost"`
	Restart    float64 `json:"restart_s"`  // from the kill to the start of the new process; the longest
	Recovery   float64 `json:"recovery_s"` // from the start of the new process until no answer is late; the longest

	ControlBefore figure.Number `json:"control_before_ms"` // medians; NaN where nothing was answered
	ControlPeak   figure.Number `json:"control_peak_ms"`
	ControlAfter  figure.Number `json:"control_after_ms"`
	DataBefore    figure.Number `json:"data_before_ms"`
	DataPeak      figure.Number `json:"data_peak_ms"`
	DataAfter     figure.Number `json:"data_after_ms"`
}

// flight is the samples of one run.
type flight struct {
	control, data     []point
	killed, restarted float64
	shed, duplicates  int
}

// flightOf reads the samples of one run.
func flightOf(rows [][]string, transport, run string) flight {
	var f flight
	for _, row := range rows {
		if row[0] != transport || row[1] != run {
			continue
		}
		when, _ := read(row[3])
		p := point{when, -1}
		if v, ok := read(row[4]); ok {
			p.delay = v
		}
		switch row[2] {
		case kindControl:
			f.control = append(f.control, p)
		case kindData:
			f.data = append(f.data, p)
		case kindKilled:
			f.killed = when
		case kindRestarted:
			f.restarted = when
		case kindShed:
			f.shed = int(p.delay)
		case kindDuplicate:
			f.duplicates = int(p.delay)
		}
	}
	return f
}

// late is when an answer is: after this many milliseconds more than the median
// before the kill. calm is for how many seconds none is late when all is well.
const (
	late = 20
	calm = 0.2
)

// recovered returns when all was well again after a kill and a restart: when
// the last late answer had come before the first time of calm, or at the end.
func recovered(list []point, killed, restarted, limit float64) float64 {
	when := restarted
	began, since := false, 0.0 // of the calm
	for _, p := range list {
		if p.at+max(p.delay, 0)/1e3 < killed {
			continue
		}
		if p.delay < 0 || p.delay > limit {
			when, began = max(when, p.at+max(p.delay, 0)/1e3), false
			continue
		}
		if !began {
			began, since = true, p.at
		}
		if p.at >= restarted && p.at-since >= calm {
			return max(when, since)
		}
	}
	return when
}

// outcome sums a run up.
func (f flight) outcome(transport string) outcome {
	o := outcome{Transport: transport, Sent: len(f.control), DataSent: len(f.data), Duplicates: f.duplicates, Restart: f.restarted - f.killed}
	var before []float64
	for _, p := range f.control {
		if p.delay >= 0 {
			o.Answered++
			if p.at < f.killed {
				before = append(before, p.delay)
			}
		}
	}
	o.Shed = min(f.shed, o.Sent-o.Answered) // others than ours may have been shed too
	o.Lost = o.Sent - o.Answered - o.Shed
	well := recovered(f.control, f.killed, f.restarted, late+quantile.Median(before))
	o.Recovery = well - f.restarted
	o.ControlBefore, o.ControlPeak, o.ControlAfter = phases(f.control, f.killed, well)
	o.DataBefore, o.DataPeak, o.DataAfter = phases(f.data, f.killed, well)
	for _, p := range f.data {
		if p.delay < 0 {
			o.DataLost++
		}
	}
	return o
}

// phases returns the median delay before the kill, the longest from then until
// the recovery, and the median after that; NaN where nothing was answered.
func phases(list []point, killed, recovered float64) (before, peak, after figure.Number) {
	var a, between, b []float64
	for _, p := range list {
		switch {
		case p.delay < 0:
		case p.at < killed-1:
			a = append(a, p.delay)
		case p.at <= recovered:
			between = append(between, p.delay)
		default:
			b = append(b, p.delay)
		}
	}
	return figure.Number(experiments.NewSpread(a).Median), figure.Number(experiments.NewSpread(between).Max), figure.Number(experiments.NewSpread(b).Median)
}

// add adds another run over the same transport.
func (o *outcome) add(n outcome) {
	o.Sent, o.Answered, o.Shed, o.Lost, o.Duplicates = o.Sent+n.Sent, o.Answered+n.Answered, o.Shed+n.Shed, o.Lost+n.Lost, o.Duplicates+n.Duplicates
	o.DataSent, o.DataLost = o.DataSent+n.DataSent, o.DataLost+n.DataLost
	o.Restart, o.Recovery = max(o.Restart, n.Restart), max(o.Recovery, n.Recovery)
	o.ControlPeak, o.DataPeak = max(o.ControlPeak, n.ControlPeak), max(o.DataPeak, n.DataPeak)
}

// sumResilience compares all runs with the paper and draws them.
func sumResilience(c *experiments.Context) error {
	var all outcome
	var list []outcome
	fig10 := figure.Figure{Name: "Fig. 10", Title: fmt.Sprintf("delay of messages around the kill of the routing process, %d packet-ins a second", rate)}
	for _, transport := range c.Transports {
		var sum outcome
		var flights []flight
		var recovery, peak, dataPeak, change []float64
		for run := 1; run <= c.Runs; run++ {
			f := flightOf(c.Data.Rows(), transport, strconv.Itoa(run))
			if len(f.control) == 0 {
				continue
			}
			o := f.outcome(transport)
			flights, recovery, peak, dataPeak = append(flights, f), append(recovery, o.Recovery), append(peak, float64(o.ControlPeak)), append(dataPeak, float64(o.DataPeak))
			change = append(change, experiments.Ratio(float64(o.ControlAfter), float64(o.ControlBefore)))
			if len(flights) > 1 {
				sum.add(o)
				continue
			}
			sum = o
		}
		all.add(sum)
		if len(flights) > 0 {
			list = append(list, sum)
		}
		lost := math.NaN()
		if len(flights) > 0 {
			lost = float64(sum.Lost)
			c.Compare(
				experiments.Claim{What: "messages shed, " + transport}.Exactly(float64(sum.Shed)),
				experiments.Claim{What: "packets of an established flow lost, " + transport, Says: c.Statement("no loss")}.Exactly(float64(sum.DataLost)).AtMost(0))
		}
		c.Compare(
			experiments.Claim{What: "messages lost, " + transport, Says: c.Statement("no loss")}.Exactly(lost).AtMost(0),
			experiments.Claim{What: "recovery after the restart, " + transport, Paper: "small glitches", Unit: "s"}.Of(measure.Median(recovery)).AtMost(1),
			experiments.Claim{What: "longest delay, control plane, " + transport, Paper: "small glitches", Unit: "ms"}.Of(measure.Median(peak)),
			experiments.Claim{What: "delay after to before, control plane, " + transport, Says: c.Statement("small glitches")}.Of(measure.Median(change)).Beside(transport, transport),
			experiments.Claim{What: "longest delay, data plane, " + transport, Paper: "small glitches", Unit: "ms"}.Of(measure.Median(dataPeak)),
		)
		fig10.Panels = append(fig10.Panels, delays(transport, flights))
	}
	c.Figure("sent", all.Sent)
	c.Figure("answered", all.Answered)
	c.Figure("shed", all.Shed)
	c.Figure("lost", all.Lost)
	c.Figure("duplicates", all.Duplicates)
	c.Figure("recovery_s", all.Recovery)
	c.Figure("by_transport", list)
	c.Draw(fig10)
	return nil
}

// delays is the delay over time of the runs over one transport, the kill being
// at 0.
func delays(transport string, flights []flight) figure.Panel {
	p := figure.Panel{Title: transport, X: figure.Axis{Label: "time since the kill, s"}, Y: figure.Axis{Label: "delay, ms", Log: true}}
	var restarts, control, data []point
	for _, f := range flights {
		shift := func(list []point) (out []point) {
			for _, m := range list {
				out = append(out, point{m.at - f.killed, m.delay})
			}
			return out
		}
		control, data = append(control, shift(f.control)...), append(data, shift(f.data)...)
		restarts = append(restarts, point{f.restarted - f.killed, 0})
	}
	if len(flights) > 0 {
		p.Marks = []figure.Mark{{X: 0, Text: "killed", Left: true}}
		sum := 0.0
		for _, r := range restarts {
			sum += r.at / float64(len(restarts))
		}
		p.Marks = append(p.Marks, figure.Mark{X: sum, Text: "new process"})
	}
	for i, kind := range []struct {
		name string
		list []point
	}{{"control plane", control}, {"data plane", data}} {
		mean, longest := binned(kind.list, transport)
		p.Series = append(p.Series,
			figure.Series{Name: kind.name + ", mean of 50 ms, all rounds", Kind: figure.Curve, Colour: 1 + 2*i, Points: mean},
			figure.Series{Name: kind.name + ", longest", Kind: figure.Curve, Colour: 1 + 2*i, Dashed: true, Points: longest})
	}
	return p
}

// binned returns the mean and the longest delay of every 50 ms. Messages without
// an answer have none; the table counts them.
func binned(list []point, what string) (mean, longest []figure.Point) {
	const every = 0.05
	all := map[int][]float64{}
	for _, m := range list {
		if m.delay >= 0 {
			i := int(math.Floor(m.at / every))
			all[i] = append(all[i], m.delay)
		}
	}
	for _, i := range slices.Sorted(maps.Keys(all)) {
		s := experiments.NewSpread(all[i])
		x := (float64(i) + .5) * every
		mean = append(mean, figure.Point{X: x, Y: figure.Number(s.Mean), Case: what})
		longest = append(longest, figure.Point{X: x, Y: figure.Number(s.Max), Case: what})
	}
	return mean, longest
}
