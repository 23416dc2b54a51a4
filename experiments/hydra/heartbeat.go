package hydra

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/weft-sdn/weft/experiments"
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
order: priority, real-time messages first; in-order, as they come. The two take turns, of 2 s, on the same controller; then, at
100 a second with priority, less is offered: load_percent is the share of the saturation.
behind: how late the simulated switches themselves were: to ask, or to answer. A quick run has topological slicing only. Where no two
measurements of the saturation agree, or the controller does not get to know its network, the summary says why that is not measured.`,
		Runs: 3, QuickRuns: 1, Transports: []string{"grpc"},
		Columns: []string{"slicing", "rate", "asked", "order", "load_percent", "run", "saturation_per_s", "offered_per_s", "answered_per_s", "packet_p50_ms", "packet_p99_ms",
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
	load    int    // percent of the saturation that is offered in packet-ins; 0 is nearSaturation
}

const (
	bySwitch     = "switch"
	byController = "controller"
	prioritised  = "priority"
	inOrder      = "in-order"
)

func (b beatCase) key() []string {
	return []string{string(b.slicing), strconv.Itoa(b.rate), b.asked, b.order, strconv.Itoa(cmp.Or(b.load, nearSaturation))}
}

func (b beatCase) String() string {
	return strings.Join(slices.DeleteFunc([]string{string(b.slicing), fmt.Sprintf("%d/s", b.rate), "asked by the " + b.asked, b.order}, func(s string) bool { return s == "" }), ", ")
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

// at is a case at a load, in percent of the saturation.
func (b beatCase) at(load int) beatCase {
	b.load = load
	return b
}

// nearSaturation is the share of the saturation that is offered, in percent.
const nearSaturation = 90

// lowerLoads are what is offered besides, to find the most at which heartbeats keep
// their mark.
func lowerLoads(quick bool) []int {
	if quick {
		return []int{30, 50, 70}
	}
	return []int{30, 50, 60, 70, 80}
}

// lower are the samples of a round at lower loads: where a mark is asked for.
func (b beatCase) lower(quick bool) (list []beatCase) {
	if b.rate == 100 {
		for _, load := range lowerLoads(quick) {
			list = append(list, b.in(prioritised).at(load))
		}
	}
	return list
}

// samples are all that a round yields, one of each.
func (b beatCase) samples(quick bool) []beatCase {
	return append(bothOrders([]beatCase{b}), b.lower(quick)...)
}

func runHeartbeats(ctx context.Context, c *experiments.Context) error {
	slicings := []slicing{topologicalSlicing, hybridSlicing, functionalSlicing}
	if c.Quick {
		slicings = slicings[:1] // all in one process: the hardest for heartbeats
	}
	return heartbeatsOf(ctx, c, slicings, func(ctx context.Context, which slicing) (beatController, error) {
		return sliceConfig{slicing: which, partitions: 8, rules: 50_000, heartbeats: true}.start(ctx)
	})
}

// beatController is a controller on which rounds are taken.
type beatController interface {
	beats(ctx context.Context, b beatCase, quick bool, seed uint64) ([]beatSample, error)
	close() error
}

// beatSample is what a round says of a case.
type beatSample struct {
	of    beatCase
	cells []string
}

// heartbeatsOf takes the samples that are missing and sums up all. What cannot be
// measured here and now is told, and the rest goes on.
func heartbeatsOf(ctx context.Context, c *experiments.Context, slicings []slicing, start func(context.Context, slicing) (beatController, error)) error {
	total := 0
	for _, which := range slicings {
		for _, b := range beatCases(which, c.Quick) {
			total += len(b.samples(c.Quick)) * c.Runs
		}
	}
	c.Progress.Begin("hydra-heartbeat", total, len(c.Data.Rows()))
	var not unmeasured
	for _, which := range slicings {
		err := not.take(ctx, c, which, start)
		if errors.Is(err, errUnsettled) && ctx.Err() == nil {
			not.add(c, string(which), "not_measured_"+string(which), err)
		} else if err != nil {
			return fmt.Errorf("%s: %w", which, err)
		}
	}
	var measured []beatCase
	for _, which := range slicings {
		for _, b := range beatCases(which, c.Quick) {
			if !slices.ContainsFunc(b.samples(c.Quick), func(of beatCase) bool { return !c.Data.Has(of.key()...) }) {
				measured = append(measured, b)
			}
		}
	}
	if len(measured) == 0 {
		return errors.Join(not...)
	}
	return sumHeartbeats(c, measured)
}

// unmeasured are the reasons why something was not measured.
type unmeasured []error

// add tells one, of what, in the summary by a name.
func (u *unmeasured) add(c *experiments.Context, what, name string, why error) {
	*u = append(*u, fmt.Errorf("%s: %w", what, why))
	first, _, _ := strings.Cut(why.Error(), "\n")
	first = strings.TrimSuffix(first, "; it said:")
	c.Figure(name, first)
	c.Progress.Say("%s: not measured: %s", what, first)
}

// take takes the samples of one controller. A case whose saturation is not steady
// is not tried again in further runs.
func (u *unmeasured) take(ctx context.Context, c *experiments.Context, which slicing, start func(context.Context, slicing) (beatController, error)) (err error) {
	missing := false
	for run := 1; run <= c.Runs; run++ {
		for _, b := range beatCases(which, c.Quick) {
			missing = missing || !b.taken(c, run)
		}
	}
	if !missing {
		return nil
	}
	s, err := start(ctx, which)
	if err != nil {
		return err
	}
	defer func() {
		if end := s.close(); err == nil {
			err = end
		}
	}()
	unsteady := map[beatCase]bool{}
	for run := 1; run <= c.Runs; run++ {
		for _, b := range beatCases(which, c.Quick) {
			if unsteady[b] || b.taken(c, run) {
				continue
			}
			samples, err := s.beats(ctx, b, c.Quick, c.Seed+uint64(run))
			if errors.Is(err, errUnsteady) && ctx.Err() == nil {
				unsteady[b] = true
				u.add(c, fmt.Sprintf("%v, run %d", b, run), fmt.Sprintf("not_measured_%s_%d_%s_from_run_%d", which, b.rate, b.asked, run), err)
				continue
			}
			if err != nil {
				return err
			}
			for _, sample := range samples {
				key := append(sample.of.key(), strconv.Itoa(run))
				if err := c.Data.Remove(key...); err != nil {
					return err
				}
				if err := c.Data.Add(append(key, sample.cells...)); err != nil {
					return err
				}
				c.Progress.Step(fmt.Sprintf("%v, run %d", sample.of, run))
			}
		}
	}
	return nil
}

// taken reports whether all samples of a run are there.
func (b beatCase) taken(c *experiments.Context, run int) bool {
	return !slices.ContainsFunc(b.samples(c.Quick), func(of beatCase) bool { return !c.Data.Has(append(of.key(), strconv.Itoa(run))...) })
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
