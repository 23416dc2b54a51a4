package hydra

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/bench/sim"
	"github.com/weft-sdn/weft/test/measure"
)

// How long the parts of a round take. The orders take turns of length beatSpan.
const (
	saturationSpan = 700 * time.Millisecond
	beatWarm       = 200 * time.Millisecond
	beatSpan       = 500 * time.Millisecond
	beatTurns      = 2 // near saturation
)

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
	text := fmt.Sprintf("southbound:\n  realtime_first: %v\nheartbeat:\n  rate: %d\n  lost_after: 1000\n", b.order == prioritised, rate)
	if !s.shipped {
		text = strings.Replace(text, "southbound:\n", "southbound:\n  flood_rate: 0\n", 1) // as its plan has it
	}
	measure.Differs(ctx, fmt.Sprintf("%v: heartbeat.rate %d, heartbeat.lost_after 1000", s.sliceConfig, rate))
	if b.order == inOrder {
		measure.Differs(ctx, s.String()+", in order: southbound.realtime_first false")
	}
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

// errUnsteady is why a case cannot be measured.
var errUnsteady = errors.New("the saturation is not steady")

// saturation finds the packet-ins per second that the controller answers when
// there are always more, the heartbeats included.
func (b beatCase) saturation(ctx context.Context, s *slice, seed uint64) (float64, error) {
	found := []float64{0}
	for len(found) <= saturationTries {
		o := outcome{}
		if err := b.beside(ctx, s, sim.Load{Flows: flows, Seed: seed, Window: saturateWindow, Warm: beatWarm, Duration: saturationSpan}, &o); err != nil {
			return 0, err
		}
		rate, last := o.answersPerSecond(), found[len(found)-1]
		if agree(rate, last) {
			return (rate + last) / 2, nil
		}
		found = append(found, rate)
	}
	return 0, fmt.Errorf("%w: of %.0f packet-ins per second no two in a row agree to %.0f %%; is the machine busy with else?", errUnsteady, found[1:], 100*saturationAgrees)
}

// agree reports whether two measurements of the saturation do.
func agree(a, b float64) bool {
	return min(a, b) > 0 && math.Abs(a-b) <= saturationAgrees*max(a, b)
}

// beats takes one sample of all that a round yields: it finds the saturation, then
// the orders take turns near it, and then less is offered.
func (s *slice) beats(ctx context.Context, b beatCase, seed uint64) (list []beatSample, err error) {
	defer func() { err = s.failed(err) }()
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
	saturation, err := b.saturation(ctx, s, seed)
	if err != nil {
		return nil, err
	}
	load := sim.Load{Flows: flows, Seed: seed, Window: sim.MaxWindow, Warm: beatWarm, Duration: beatSpan}
	take := func(turns int, cases ...beatCase) error {
		all := make([]outcome, len(cases))
		for range turns {
			for i, one := range cases {
				load.Rate = one.offered(saturation)
				if err := one.take(ctx, s, load, &all[i]); err != nil {
					return err
				}
			}
		}
		for i, one := range cases {
			o := &all[i]
			list = append(list, beatSample{one, append([]string{
				number(saturation), number(one.offered(saturation)), number(o.answersPerSecond()), ms(o.packets.ValueAtPercentile(50)), ms(o.packets.ValueAtPercentile(99)),
			}, append(o.figures().cells(), o.latencies())...)})
		}
		return nil
	}
	if err := take(beatTurns, b.near()...); err != nil {
		return nil, err
	}
	return list, take(1, b.lower()...)
}

// take runs a load on the slice, or on a bare responder in its place, and adds to
// the outcome.
func (b beatCase) take(ctx context.Context, s *slice, load sim.Load, o *outcome) error {
	if b.order != bareOrder {
		if err := b.settings(ctx, s); err != nil {
			return err
		}
		return b.beside(ctx, s, load, o)
	}
	r, err := s.startBare(ctx, b.asked, b.rate)
	if err != nil {
		return err
	}
	// The first load of a network takes the switches a while to prepare, in which
	// they answer nothing.
	prepare := load
	prepare.Duration = beatWarm
	if _, err = r.net.Measure(ctx, prepare); err == nil {
		err = b.besideOn(ctx, r.net, func(context.Context) (beatCounts, error) { return r.counts() }, load, o)
	}
	return errors.Join(err, r.close())
}

// offered is how many packet-ins come per second.
func (b beatCase) offered(saturation float64) float64 {
	return saturation * float64(cmp.Or(b.load, nearSaturation)) / 100
}

// outcome is what loads, and heartbeats beside them, have come to.
type outcome struct {
	answered   uint64
	elapsed    time.Duration
	packets    *hdrhistogram.Histogram
	switches   *sim.BeatResult // heartbeats that switches have sent
	controller *beatCounts     // that the controller has; nil if it does not ask
}

func (o *outcome) answersPerSecond() float64 { return float64(o.answered) / o.elapsed.Seconds() }

func (o *outcome) figures() beatFigures {
	if o.controller == nil {
		return switchFigures(o.switches)
	}
	f := o.controller.figures()
	f.behind = float64(o.switches.Asked.ValueAtQuantile(99.9)) / 1e6
	return f
}

// latencies is all of them, as times in ms and how often each came; "+Inf" is
// never. Where the controller has counted them, the times are upper bounds.
func (o *outcome) latencies() string {
	times := map[string]int64{}
	if o.controller != nil {
		last := 0.0
		for _, bound := range slices.Sorted(maps.Keys(o.controller.buckets)) {
			if n := o.controller.buckets[bound]; !math.IsInf(bound, 1) {
				times[fmt.Sprintf("%.3g", 1e3*bound)] += int64(n - last)
				last = n
			}
		}
		times["+Inf"] = int64(o.controller.beats - last)
	} else {
		for _, bar := range o.switches.Latency.Distribution() {
			times[fmt.Sprintf("%.3g", float64(bar.To)/1e6)] += bar.Count
		}
		times["+Inf"] = int64(o.switches.Lost)
	}
	var list []string
	for _, at := range slices.Sorted(maps.Keys(times)) {
		if n := times[at]; n > 0 {
			list = append(list, fmt.Sprintf("%s:%d", at, n))
		}
	}
	return strings.Join(list, " ")
}

// beside runs a load with heartbeats beside it and adds to the outcome.
func (b beatCase) beside(ctx context.Context, s *slice, load sim.Load, o *outcome) error {
	return b.besideOn(ctx, s.net, s.controllerBeats, load, o)
}

// besideOn is beside for the switches of a network and what counts the beats that
// their controller asks for. Where it asks, the switches do so once a second, as
// anywhere.
func (b beatCase) besideOn(ctx context.Context, net *sim.Network, counts func(context.Context) (beatCounts, error), load sim.Load, o *outcome) error {
	if o.packets == nil {
		o.packets = sim.NewHistogram()
	}
	var before beatCounts
	rate := float64(b.rate)
	if b.asked == byController {
		var err error
		if before, err = counts(ctx); err != nil {
			return err
		}
		rate = 1
	}
	beats := make(chan error, 1)
	go func() {
		r, err := net.MeasureBeats(ctx, sim.Beats{Rate: rate, Warm: load.Warm, Duration: load.Duration})
		if err == nil && o.switches == nil {
			o.switches = r
		} else if err == nil {
			o.switches.Add(r)
		}
		beats <- err
	}()
	err := o.load(ctx, net, load)
	if end := <-beats; err == nil {
		err = end
	}
	if err != nil || b.asked == bySwitch {
		return err
	}
	after, err := counts(ctx)
	if o.controller == nil {
		o.controller = &beatCounts{}
	}
	o.controller.add(after, before)
	return err
}

// load runs a load.
func (o *outcome) load(ctx context.Context, net *sim.Network, load sim.Load) error {
	r, err := net.Measure(ctx, load)
	if err != nil {
		return err
	}
	o.answered += r.Answered
	o.elapsed += r.Elapsed
	o.packets.Merge(r.Latency)
	return nil
}
