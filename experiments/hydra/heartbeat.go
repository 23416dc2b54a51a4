package hydra

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	"gonum.org/v1/plot/plotter"

	"weft/api"
	"weft/experiments"
	"weft/sim"
)

// heartbeats is the experiment of Figs. 7 to 10.
func heartbeats() experiments.Experiment {
	return experiments.Experiment{
		Name: "hydra-heartbeat", Title: "heartbeats beside packet-ins near saturation, with and without priority",
		Paper: paper, Figure: "Figs. 7 to 10",
		Claim: `At 10 heartbeats a second, Hydra's 95th and 99th percentiles are about 10 ms and none misses its deadline of 100 ms;
topological slicing's 95th is about 30 ms, and 3 % miss it. At 100 a second almost all are in time with priority, and none
without; some of those take 1800 ms.`,
		Method: `One of 8 partitions of the paper's fat tree, 320 simulated switches, firewall with 50,000 rules, a link failing every
second; all in one process (topological), path computation in another (hybrid), or besides southbound, discovery and heartbeat
in a process of their own (functional). The controller has the first processor, the simulated switches the second, with what is not
on the way of packets. A round: the packet-ins per second at which the controller saturates, the heartbeats included, are measured in a
closed loop until two measurements in a row agree to 15 %; then packet-ins between hosts of the whole partition come at 90 %
of that on an absolute schedule, beside heartbeats of each switch. asked: switch, the switches ask for echoes, each timed from
when it was due; controller, the service heartbeat asks, timed likewise, and what has not been answered when the next is due is missed.
order: priority, real-time messages first; in-order, as they come. The two take turns, of 2 s, on the same controller.
behind: how late the simulated switches themselves were. A quick run has topological slicing only.`,
		Runs: 3, QuickRuns: 1, Transports: []string{"grpc"},
		Columns: []string{"slicing", "rate", "asked", "order", "run", "saturation_per_s", "offered_per_s", "answered_per_s", "packet_p50_ms", "packet_p99_ms",
			"due", "missed", "over_10ms", "over_100ms", "p50_ms", "p95_ms", "p99_ms", "p999_ms", "max_ms", "behind_p999_ms"},
		Run: runHeartbeats,
	}
}

// beatCase is one kind of round.
type beatCase struct {
	slicing slicing
	rate    int    // heartbeats per second and switch
	asked   string // who asks: switch or controller
	order   string // priority or in-order
}

const (
	bySwitch     = "switch"
	byController = "controller"
	prioritised  = "priority"
	inOrder      = "in-order"
)

func (b beatCase) key() []string {
	return []string{string(b.slicing), strconv.Itoa(b.rate), b.asked, b.order}
}

// orders are compared beside each other.
func orders() []string { return []string{prioritised, inOrder} }

// beatCases are the rounds with one controller, each of both orders.
func beatCases(s slicing, quick bool) (list []beatCase) {
	for _, rate := range []int{10, 100} {
		for _, asked := range []string{bySwitch, byController} {
			if !quick || rate == 100 {
				list = append(list, beatCase{slicing: s, rate: rate, asked: asked})
			}
		}
	}
	return list
}

// in is a case with an order.
func (b beatCase) in(order string) beatCase {
	b.order = order
	return b
}

// times are how long the parts of a round take. The orders take turns of length
// measure.
type times struct {
	saturation, warm, measure time.Duration
	turns                     int
}

func roundTimes(quick bool) times {
	if quick {
		return times{time.Second, 300 * time.Millisecond, 700 * time.Millisecond, 4}
	}
	return times{3 * time.Second, 500 * time.Millisecond, 2 * time.Second, 10}
}

// nearSaturation is the share of the saturation that is offered.
const nearSaturation = 0.9

func runHeartbeats(ctx context.Context, c *experiments.Context) error {
	slicings := []slicing{topologicalSlicing, hybridSlicing, functionalSlicing}
	if c.Quick {
		slicings = slicings[:1] // all in one process: the hardest for heartbeats
	}
	c.Progress.Begin("hydra-heartbeat", len(slicings)*len(beatCases(hybridSlicing, c.Quick))*len(orders())*c.Runs, len(c.Data.Rows()))
	for _, s := range slicings {
		if err := heartbeatsOf(ctx, c, s); err != nil {
			return fmt.Errorf("%s: %w", s, err)
		}
	}
	return sumHeartbeats(c, slicings)
}

// heartbeatsOf takes the samples of one controller.
func heartbeatsOf(ctx context.Context, c *experiments.Context, which slicing) (err error) {
	missing := false
	for run := 1; run <= c.Runs; run++ {
		for _, b := range beatCases(which, c.Quick) {
			missing = missing || !b.taken(c.Data, run)
		}
	}
	if !missing {
		return nil
	}
	s, err := sliceConfig{slicing: which, partitions: 8, rules: 50_000, heartbeats: true}.start(ctx)
	if err != nil {
		return err
	}
	defer func() {
		if end := s.close(); err == nil {
			err = end
		}
	}()
	for run := 1; run <= c.Runs; run++ {
		for _, b := range beatCases(which, c.Quick) {
			if b.taken(c.Data, run) {
				continue
			}
			for _, order := range orders() {
				if err := c.Data.Remove(append(b.in(order).key(), strconv.Itoa(run))...); err != nil {
					return err
				}
			}
			rows, err := b.round(ctx, s, roundTimes(c.Quick), c.Seed+uint64(run))
			if err != nil {
				return s.failed(err)
			}
			for i, order := range orders() {
				if err := c.Data.Add(append(append(b.in(order).key(), strconv.Itoa(run)), rows[i]...)); err != nil {
					return err
				}
				c.Progress.Step(fmt.Sprintf("%s %d/s asked by the %s %s run %d", b.slicing, b.rate, b.asked, order, run))
			}
		}
	}
	return nil
}

// taken reports whether the samples of a run are there.
func (b beatCase) taken(d *experiments.Data, run int) bool {
	for _, order := range orders() {
		if !d.Has(append(b.in(order).key(), strconv.Itoa(run))...) {
			return false
		}
	}
	return true
}

// Load of both experiments: pairs of hosts that send, and packet-ins that a
// switch has outstanding when saturation is looked for.
const (
	flows          = 1000
	saturateWindow = 16
)

// settings has the controller do what the case wants.
func (b beatCase) settings(ctx context.Context, s *slice) error {
	rate := b.rate
	if b.asked == bySwitch {
		rate = 1
	}
	text := fmt.Sprintf("southbound:\n  flood_rate: 0\n  realtime_first: %v\nheartbeat:\n  rate: %d\n  lost_after: 1000\n", b.order == prioritised, rate)
	_, err := api.NewGatewayClient(s.north).ApplyConfig(ctx, &api.ApplyConfigRequest{Text: text, Source: "hydra-heartbeat", LimitMs: 20_000})
	return err
}

// The saturation is measured until two in a row agree to saturationAgrees, but no
// more often than saturationTries: the first packets of a controller have to wait
// for their routes.
const (
	saturationTries  = 12
	saturationAgrees = 0.15
)

// saturation finds the packet-ins per second that the controller answers when
// there are always more, the heartbeats included.
func (b beatCase) saturation(ctx context.Context, s *slice, t times, seed uint64) (float64, error) {
	found := []float64{0}
	for len(found) <= saturationTries {
		o := outcome{}
		if err := b.beside(ctx, s, sim.Load{Flows: flows, Seed: seed, Window: saturateWindow, Warm: t.warm, Duration: t.saturation}, &o); err != nil {
			return 0, err
		}
		rate, last := o.answersPerSecond(), found[len(found)-1]
		if agree(rate, last) {
			return (rate + last) / 2, nil
		}
		found = append(found, rate)
	}
	return 0, fmt.Errorf("the saturation is not steady: of %.0f packet-ins per second no two in a row agree to %.0f %%; is the machine busy with else?", found[1:], 100*saturationAgrees)
}

// agree reports whether two measurements of the saturation do.
func agree(a, b float64) bool {
	return min(a, b) > 0 && math.Abs(a-b) <= saturationAgrees*max(a, b)
}

// round takes one sample of each order: it finds the saturation, and then the
// orders take turns at nine tenths of it.
func (b beatCase) round(ctx context.Context, s *slice, t times, seed uint64) (rows [][]string, err error) {
	failing, mend := context.WithCancel(ctx)
	failed := make(chan error, 1)
	go func() { failed <- s.fail(failing, sim.FailRandom, time.Second, seed) }()
	defer func() {
		mend()
		if end := <-failed; err == nil {
			err = end
		}
	}()
	if err := b.in(prioritised).settings(ctx, s); err != nil {
		return nil, err
	}
	saturation, err := b.saturation(ctx, s, t, seed)
	if err != nil {
		return nil, err
	}
	both := make([]outcome, len(orders()))
	load := sim.Load{Flows: flows, Seed: seed, Window: sim.MaxWindow, Rate: nearSaturation * saturation, Warm: t.warm, Duration: t.measure}
	for range t.turns {
		for i, order := range orders() {
			if err := b.in(order).settings(ctx, s); err != nil {
				return nil, err
			}
			if err := b.beside(ctx, s, load, &both[i]); err != nil {
				return nil, err
			}
		}
	}
	for i := range both {
		o := &both[i]
		rows = append(rows, append([]string{
			number(saturation), number(load.Rate), number(o.answersPerSecond()), ms(o.packets.ValueAtPercentile(50)), ms(o.packets.ValueAtPercentile(99)),
		}, o.figures().cells()...))
	}
	return rows, nil
}

// outcome is what loads, and heartbeats beside them, have come to.
type outcome struct {
	answered   uint64
	elapsed    time.Duration
	packets    *hdrhistogram.Histogram
	switches   *sim.BeatResult // heartbeats that switches have sent
	controller beatCounts      // that the controller has
}

func (o *outcome) answersPerSecond() float64 { return float64(o.answered) / o.elapsed.Seconds() }

func (o *outcome) figures() beatFigures {
	if o.switches != nil {
		return switchFigures(o.switches)
	}
	return o.controller.figures()
}

// beside runs a load with heartbeats beside it and adds to the outcome.
func (b beatCase) beside(ctx context.Context, s *slice, load sim.Load, o *outcome) error {
	if o.packets == nil {
		o.packets = sim.NewHistogram()
	}
	if b.asked == byController {
		before, err := s.controllerBeats(ctx)
		if err != nil {
			return err
		}
		if err := o.load(ctx, s, load); err != nil {
			return err
		}
		after, err := s.controllerBeats(ctx)
		o.controller.add(after, before)
		return err
	}
	beats := make(chan error, 1)
	go func() {
		r, err := s.net.MeasureBeats(ctx, sim.Beats{Rate: float64(b.rate), Warm: load.Warm, Duration: load.Duration})
		if err == nil && o.switches == nil {
			o.switches = r
		} else if err == nil {
			o.switches.Add(r)
		}
		beats <- err
	}()
	err := o.load(ctx, s, load)
	if end := <-beats; err == nil {
		err = end
	}
	return err
}

// load runs a load.
func (o *outcome) load(ctx context.Context, s *slice, load sim.Load) error {
	r, err := s.net.Measure(ctx, load)
	if err != nil {
		return err
	}
	o.answered += r.Answered
	o.elapsed += r.Elapsed
	o.packets.Merge(r.Latency)
	return nil
}

// beatFigures is what became of the heartbeats of a round. What is not known is
// NaN.
type beatFigures struct {
	due, missed, over10, over100 float64
	p50, p95, p99, p999, max     float64 // ms
	behind                       float64 // ms, 99.9th percentile: how late the switches themselves were
}

func (f beatFigures) cells() (list []string) {
	for _, v := range []float64{f.due, f.missed, f.over10, f.over100, f.p50, f.p95, f.p99, f.p999, f.max, f.behind} {
		list = append(list, number(v))
	}
	return list
}

// switchFigures are those of heartbeats that switches have sent.
func switchFigures(r *sim.BeatResult) beatFigures {
	at := func(q float64) float64 { return float64(r.Latency.ValueAtQuantile(q)) / 1e6 }
	return beatFigures{
		due: float64(r.Due), missed: float64(r.Lost), over10: float64(over(r.Latency, 10*time.Millisecond)), over100: float64(over(r.Latency, 100*time.Millisecond)),
		p50: at(50), p95: at(95), p99: at(99), p999: at(99.9), max: float64(r.Latency.Max()) / 1e6, behind: float64(r.Behind.ValueAtQuantile(99.9)) / 1e6,
	}
}

// over returns how many values of a histogram are above a time.
func over(h *hdrhistogram.Histogram, limit time.Duration) (n int64) {
	for _, bar := range h.Distribution() {
		if bar.From > int64(limit) {
			n += bar.Count
		}
	}
	return n
}

// number writes a figure for a sample; nothing if there is none.
func number(v float64) string {
	if math.IsNaN(v) {
		return ""
	}
	return strconv.FormatFloat(v, 'g', 6, 64)
}

// ms writes nanoseconds as milliseconds.
func ms(ns int64) string { return number(float64(ns) / 1e6) }

// Columns of the samples.
const (
	beatSaturation = 5
	beatDue        = 10
	beatMissed     = 11
	beatOver10     = 12
	beatOver100    = 13
	beatP50        = 14
	beatMax        = 18
)

// sumHeartbeats compares all samples with the paper and draws them.
func sumHeartbeats(c *experiments.Context, slicings []slicing) error {
	figures := map[string]any{}
	var curves []experiments.Series
	for _, which := range slicings {
		for _, b := range bothOrders(beatCases(which, c.Quick)) {
			all := column(c.Data, b.key())
			due, late := sum(all, beatDue), sum(all, beatOver10)
			name := fmt.Sprintf("%s, %d/s, asked by the %s, %s", b.slicing, b.rate, b.asked, b.order)
			in10 := 100 * (1 - late/due)
			if b.rate == 10 && b.asked == byController { // it knows what is late by then only
				in10 = math.NaN()
			}
			longest := most(all, beatMax)
			figures[name] = map[string]float64{"in_10ms_percent": orZero(in10), "over_100ms": orZero(sum(all, beatOver100)), "missed": sum(all, beatMissed), "saturation_per_s": sum(all, beatSaturation) / float64(max(1, len(all)))}
			claims := []experiments.Claim{}
			switch {
			case b.rate == 100 && b.order == prioritised:
				claims = append(claims, experiments.Claim{What: "later than 10 ms, " + name, Paper: "almost none", Ours: 100 * late / due, Unit: "%"}.AtMost(0.1))
			case b.rate == 100:
				claims = append(claims, experiments.Claim{What: "later than 10 ms, " + name, Paper: "all", Value: 100, Ours: 100 * late / due, Unit: "%"})
			case b.asked == byController:
				claims = append(claims, experiments.Claim{What: "missed their deadline of 100 ms, " + name, Paper: missPaper(b), Ours: 100 * sum(all, beatMissed) / due, Unit: "%"})
			default:
				claims = append(claims, experiments.Claim{What: "99th percentile, " + name, Paper: p99Paper(b), Ours: mean(all, beatP50+2), Unit: "ms"})
			}
			if b.asked == bySwitch {
				longestClaim := experiments.Claim{What: "longest, " + name, Paper: longestPaper(b), Ours: longest, Unit: "ms"}
				if b.order == prioritised && b.rate == 100 {
					longestClaim = longestClaim.AtMost(100)
				}
				claims = append(claims, longestClaim)
			}
			c.Compare(claims...)
			if b.asked == bySwitch {
				curves = append(curves, quantiles(name, all, len(curves), b.order == inOrder))
			}
		}
	}
	c.Figure("heartbeats", figures)
	p, err := experiments.Curves("heartbeats asked by switches, beside packet-ins at 90 % of saturation", "nines of the heartbeats: 1 is 90 %, 2 is 99 %", "latency, ms", curves)
	if err != nil {
		return err
	}
	c.Draw(p)
	return nil
}

// bothOrders is every case in every order.
func bothOrders(cases []beatCase) (list []beatCase) {
	for _, b := range cases {
		for _, order := range orders() {
			list = append(list, b.in(order))
		}
	}
	return list
}

func missPaper(b beatCase) string {
	if b.slicing != topologicalSlicing && b.order == prioritised {
		return "none"
	}
	if b.slicing == topologicalSlicing && b.order == inOrder {
		return "3 %"
	}
	return "-"
}

func p99Paper(b beatCase) string {
	if b.slicing != topologicalSlicing && b.order == prioritised {
		return "about 10 ms"
	}
	return "-"
}

func longestPaper(b beatCase) string {
	if b.rate == 100 && b.order == inOrder {
		return "1800 ms"
	}
	return "-"
}

// quantiles draws what a share of the heartbeats does not exceed: the
// distribution function turned round, so that its tail can be read.
func quantiles(name string, rows [][]float64, colour int, dashed bool) experiments.Series {
	s := experiments.Series{Name: name, Colour: colour, Dashed: dashed}
	for i, nines := range []float64{0.3, 1.3, 2, 3, 5} { // 50, 95, 99, 99.9 %, the longest
		if v := mean(rows, beatP50+i); v > 0 {
			s.Points = append(s.Points, plotter.XY{X: nines, Y: v})
		}
	}
	return s
}
