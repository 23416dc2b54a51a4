package hydra

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/weft-sdn/weft/bench/experiments"
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
when it was sent to when its answer was at the switch's socket; controller, the service heartbeat asks, timed from when it was due to when the
southbound read the answer off the connection, and what has not been answered when the next is due is missed.
order: priority, real-time messages first; in-order, as they come; bare, at 100 a second, a responder in the controller's place
that answers echoes and, without looking at them, as many packet-ins, and asks for echoes where the controller does. They take
turns; then, at 100 a second with priority, less is offered: load_percent is the share of the saturation. As a user gets it: one process of weft up,
no processor or priority of its own, and the switches likewise; but for the rate of heartbeats.
behind: how late the simulated switches themselves were: to ask, or to answer. latencies: each time in ms, and how often it came; what
the controller has counted is rounded up to the bounds of its histogram. A quick run has topological slicing and what a user gets.`,
		Deviation: `Saturation is that of each column itself: where the controller asks, asking 320 switches 100 times a second costs it half of
the packets that it could answer, and 90 % of what is left is offered. The paper runs its controller on a machine of its own; here
the simulated switches are beside it, and a heartbeat waits for packet-ins that are being dealt with, 2 ms at most, and for what the
machine gives to others.`,
		Runs: 10, QuickRuns: 1, Transports: []string{"grpc"},
		Statements: []experiments.Statement{
			experiments.Value(paperValues.Number("Fig. 7", "95th percentile", "topological")/paperValues.Number("Fig. 7", "99th percentile", "hybrid"), .25).OfRatio().Said("95th to 99th", "about 30 ms to about 10 ms"),
			experiments.AtMost(paperValues.Number("Fig. 7", "missed", "hybrid"), 0).Said("Hydra misses none", "none"),
			experiments.Value(paperValues.Number("Fig. 7", "missed", "topological"), .25).Said("topological slicing misses", "3 %"),
			experiments.Above().Said("priority at 10/s", "modestly degrades without"),
			experiments.AtMost(1, 0).Said("in time with priority", "almost all in time: at most 1 % late"),
			experiments.AtLeast(paperValues.Number("Fig. 9", "late without priority", ""), .05).Said("late without priority", "all are late"),
		},
		Columns: []string{"rate", "asked", "order", "load_percent", "saturation_per_s", "offered_per_s", "answered_per_s", "packet_p50_ms", "packet_p99_ms",
			"due", "missed", "over_10ms", "over_100ms", "p50_ms", "p95_ms", "p99_ms", "p999_ms", "max_ms", "behind_p999_ms", "latencies"},
		Cases: func(p experiments.Parameters) []experiments.Case {
			return beatControllers(p.Quick, func(ctx context.Context, of sliceConfig) (beatController, error) { return of.start(ctx) })
		},
		Sum: sumHeartbeats,
	}
}

// beatCase is one kind of round.
type beatCase struct {
	of    string // the case of the experiment: whose controller
	rate  int    // heartbeats per second and switch
	asked string // who asks: switch or controller
	order string // priority or in-order
	load  int    // percent of the saturation that is offered in packet-ins; 0 is nearSaturation
}

const (
	bySwitch     = "switch"
	byController = "controller"
	prioritised  = "priority"
	inOrder      = "in-order"
	bareOrder    = "bare" // a bare responder in the controller's place, at 100 a second
)

// where chooses its samples.
func (b beatCase) where() experiments.Filter {
	return experiments.Where("rate", strconv.Itoa(b.rate), "asked", b.asked, "order", b.order, "load_percent", strconv.Itoa(cmp.Or(b.load, nearSaturation)))
}

func (b beatCase) String() string {
	return strings.Join(slices.DeleteFunc([]string{b.of, fmt.Sprintf("%d/s", b.rate), "asked by the " + b.asked, b.order}, func(s string) bool { return s == "" }), ", ")
}

// orders are compared beside each other.
func orders() []string { return []string{prioritised, inOrder} }

// beatCases are the rounds with one controller, each of both orders.
func beatCases(of string) (list []beatCase) {
	for _, rate := range []int{10, 100} {
		for _, asked := range []string{bySwitch, byController} {
			list = append(list, beatCase{of: of, rate: rate, asked: asked})
		}
	}
	return list
}

// in is a case with an order.
func (b beatCase) in(order string) beatCase {
	b.order = order
	return b
}

// at is a case at a load, in percent of the saturation.
func (b beatCase) at(load int) beatCase {
	b.load = load
	return b
}

// nearSaturation is the share of the saturation that is offered, in percent.
const nearSaturation = 90

// lowerLoads are what is offered besides, to find the most at which heartbeats keep
// their mark.
func lowerLoads() []int { return []int{30, 60, 70} }

// lower are the samples of a round at lower loads: where a mark is asked for.
func (b beatCase) lower() (list []beatCase) {
	if b.rate == 100 {
		for _, load := range lowerLoads() {
			list = append(list, b.in(prioritised).at(load))
		}
	}
	return list
}

// near are the samples of a round near saturation.
func (b beatCase) near() []beatCase {
	list := bothOrders([]beatCase{b})
	if b.rate == 100 {
		list = append(list, b.in(bareOrder))
	}
	return list
}

// samples are all that a round yields, one of each.
func (b beatCase) samples() []beatCase { return append(b.near(), b.lower()...) }

// beatSlices are the controllers: all in one process, which is the hardest for
// heartbeats, and what a user gets; and others that a quick run leaves out.
func beatSlices(quick bool) []sliceConfig {
	list := []sliceConfig{{slicing: topologicalSlicing}, {shipped: true}, {slicing: hybridSlicing}, {slicing: functionalSlicing}}
	if quick {
		list = list[:2]
	}
	for i := range list {
		list[i].partitions, list[i].rules, list[i].heartbeats = 8, 50_000, true
	}
	return list
}

// beatController is a controller on which rounds are taken.
type beatController interface {
	beats(ctx context.Context, b beatCase, seed uint64) ([]beatSample, error)
	Close() error
}

// beatSample is what a round says of a case.
type beatSample struct {
	of    beatCase
	cells []string
}

// beatControllers are the cases, with controllers that start starts.
func beatControllers(quick bool, start func(context.Context, sliceConfig) (beatController, error)) (list []experiments.Case) {
	for _, of := range beatSlices(quick) {
		list = append(list, experiments.Case{Name: of.String(), Setup: of.setup(), Open: func(ctx context.Context, c *experiments.Context) (experiments.Subject, error) {
			s, err := start(ctx, of)
			if err != nil {
				return nil, err
			}
			return beating{s, c, of.String()}, nil
		}})
	}
	return list
}

// beating is a controller that is measured.
type beating struct {
	beatController
	*experiments.Context
	name string
}

// Sample takes all rounds. One whose saturation is not steady is left out, and
// told.
func (s beating) Sample(ctx context.Context, round int) (rows [][]string, err error) {
	var unsteady []error
	for _, b := range beatCases(s.name) {
		samples, err := s.beats(ctx, b, s.Seed+uint64(round))
		if errors.Is(err, errUnsteady) && ctx.Err() == nil {
			s.Fail(b.String(), round, err)
			unsteady = append(unsteady, err)
			continue
		}
		if err != nil {
			return nil, err
		}
		for _, x := range samples {
			rows = append(rows, append([]string{strconv.Itoa(x.of.rate), x.of.asked, x.of.order, strconv.Itoa(cmp.Or(x.of.load, nearSaturation))}, x.cells...))
		}
		s.Progress.Say("%v: measured", b)
	}
	if len(rows) == 0 {
		return nil, errors.Join(unsteady...)
	}
	return rows, nil
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
