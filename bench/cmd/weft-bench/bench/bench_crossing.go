package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/weft-sdn/weft/bench/experiments"
	"github.com/weft-sdn/weft/cmd/weft/cli"
	"github.com/weft-sdn/weft/openflow"
	"github.com/weft-sdn/weft/test/measure"
)

// benchCrossingConfig is the flags of crossing.
type benchCrossingConfig struct {
	transports []string
	rounds     int
	duration   time.Duration
	warmup     time.Duration
	output     string
}

func benchCrossingCommand() *cobra.Command {
	var c benchCrossingConfig
	cmd := &cobra.Command{
		Use:   "crossing",
		Short: "Measure what a crossing between two processes adds to the latency of packet-ins, by transport",
		Long: `Measure what it adds to the latency of a packet-in that southbound and forwarding
(learning mode) are two processes and not one, over each transport; the services
that no packet-in meets are in a third. One switch has one packet-in
outstanding. The controllers are all up at the same time and take turns, round by
round; added is the median over the rounds of the difference to one process in
the same round. Beside gRPC and WebSocket runs a bare ping-pong: two processes on
the same processor that send a message of 96 octets there and back by the same
library.`,
		Example: `  weft bench crossing
  weft bench crossing --transport grpc --transport rest --rounds 20
  weft bench crossing -o json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := c.check(); err != nil {
				return cli.Usagef(cmd, "%w", err)
			}
			ctx, stop := cli.Signals(cmd)
			defer stop()
			return benchRunCrossing(ctx, c, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	f := cmd.Flags()
	f.StringSliceVar(&c.transports, "transport", experiments.Transports(), "transports to measure")
	f.IntVar(&c.rounds, "rounds", 9, "rounds; the report gives medians")
	f.DurationVar(&c.duration, "duration", 500*time.Millisecond, "measured time of a round")
	f.DurationVar(&c.warmup, "warmup", time.Second, "load before the first round, not measured")
	f.StringVarP(&c.output, "output", "o", "table", "table or json")
	return cmd
}

// check says which flag is wrong.
func (c *benchCrossingConfig) check() error {
	switch {
	case len(c.transports) == 0:
		return errors.New("--transport: want at least one")
	case c.rounds < 1:
		return fmt.Errorf("--rounds %d: want at least 1", c.rounds)
	case c.duration < 10*time.Millisecond:
		return fmt.Errorf("--duration %v: want at least 10ms", c.duration)
	case c.warmup < 0:
		return fmt.Errorf("--warmup %v: want 0 or more", c.warmup)
	}
	if err := experiments.CheckTransports(c.transports); err != nil {
		return fmt.Errorf("--%w", err)
	}
	return benchCheckOutput(c.output)
}

// load is the load of bench latency, of one switch.
func (c *benchCrossingConfig) load() benchConfig {
	return benchConfig{
		mode: benchLatency, switches: 1, version: openflow.V13, hosts: 1000, ports: 16, window: 1,
		duration: c.duration, warmup: c.warmup, rounds: c.rounds,
	}
}

// benchCrossing is what crossing prints.
type benchCrossing struct {
	benchTaken
	Rounds     int                `json:"rounds"`
	Processor  int                `json:"controller_processor"` // -1: not pinned
	Single     benchFigures       `json:"single"`
	Transports []benchCrossingRow `json:"transports"`
}

// benchCrossingRow is one transport: what it adds, and what came out as a whole.
type benchCrossingRow struct {
	Transport  string       `json:"transport"`
	AddedP50US float64      `json:"added_p50_us"`
	AddedP99US float64      `json:"added_p99_us"`
	CI95       benchCI95    `json:"ci95"`
	Bound      *benchMark   `json:"bound,omitempty"`       // of the median
	BareP50US  float64      `json:"bare_p50_us,omitempty"` // of a bare ping-pong of the transport
	Bare       *benchMark   `json:"bare,omitempty"`        // what it adds to that
	Figures    benchFigures `json:"figures"`
}

// benchCrossingMost is what a transport may add to the median, in µs; nothing
// is asked of the others.
func benchCrossingMost(transport string) (float64, bool) {
	switch transport {
	case "shm":
		return 10, true
	case "grpc", "ws":
		return 40, true
	case "rest":
		return 100, true
	}
	return 0, false
}

// benchRunCrossing is `weft bench crossing`.
func benchRunCrossing(ctx context.Context, c benchCrossingConfig, out, progress io.Writer) error {
	cpus, undo, err := benchPin(false)
	if err != nil {
		return err
	}
	defer undo()
	load := c.load()
	var taken benchTaken
	taken.begin(cpus.differs()...)
	single, err := benchSplitStart(ctx, benchSplit{}, cpus)
	if err != nil {
		return err
	}
	defer single.close()
	subjects := []*benchSubject{single}
	for _, transport := range c.transports {
		s, err := benchSplitStart(ctx, benchSplit{Transport: transport, Replicas: 1}, cpus)
		if err != nil {
			return err
		}
		defer s.close()
		subjects = append(subjects, s)
	}
	bares := map[string]*benchBare{}
	for _, transport := range c.transports {
		if !slices.Contains(benchBares, transport) {
			continue
		}
		b, err := benchBareStart(transport, cpus)
		if err != nil {
			return err
		}
		defer b.close()
		bares[transport] = b
	}
	for _, s := range subjects {
		if _, _, err := s.connect(ctx, load); err != nil {
			return s.failed(err)
		}
		fmt.Fprintf(progress, "%s: connected, every host has spoken once\n", s.name)
	}
	for r := range c.rounds {
		line := fmt.Sprintf("round %d/%d, p50 µs:", r+1, c.rounds)
		for _, i := range measure.Order(r, len(subjects)) {
			s := subjects[i]
			if err := s.measure(ctx, load); err != nil {
				return s.failed(err)
			}
			line += fmt.Sprintf(" %s %.1f", s.name, s.rounds[r].P50US)
			if b := bares[s.name]; b != nil {
				if err := b.measure(c.duration); err != nil {
					return err
				}
				line += fmt.Sprintf(" (bare %.1f)", b.rounds[r])
			}
		}
		fmt.Fprintln(progress, line)
	}
	taken.end()
	report := newBenchCrossing(c, subjects, bares)
	report.benchTaken = taken
	report.Processor = cpus.subject
	return report.write(out, c.output)
}

// newBenchCrossing sums the rounds up; the first subject is the single process.
func newBenchCrossing(c benchCrossingConfig, subjects []*benchSubject, bares map[string]*benchBare) *benchCrossing {
	r := &benchCrossing{Rounds: c.rounds, Single: subjects[0].figures()}
	for i, transport := range c.transports {
		s := subjects[i+1]
		row := benchCrossingRow{Transport: transport, Figures: s.figures()}
		p50 := benchAdded(s.rounds, subjects[0].rounds, func(b benchRound) float64 { return b.P50US })
		p99 := benchAdded(s.rounds, subjects[0].rounds, func(b benchRound) float64 { return b.P99US })
		row.AddedP50US, row.AddedP99US = benchNumber(p50.Median), benchNumber(p99.Median)
		row.CI95 = benchCI95{"added_p50_us": p50.CI95, "added_p99_us": p99.CI95}
		if most, ok := benchCrossingMost(transport); ok {
			m := newBenchMark("added to the median by "+transport+", µs", p50, most)
			row.Bound = &m
		}
		if b := bares[transport]; b != nil {
			row.BareP50US = benchNumber(measure.Median(b.rounds).Median)
			m := newBenchMark("that to a bare ping-pong of "+transport, benchToBare(s.rounds, subjects[0].rounds, b.rounds), benchBareMost)
			row.Bare = &m
		}
		r.Transports = append(r.Transports, row)
	}
	return r
}

// benchAdded returns the median over rounds of a figure less that of the base
// in the same round.
func benchAdded(rounds, base []benchRound, figure func(benchRound) float64) measure.Interval {
	var added []float64
	for i := range min(len(rounds), len(base)) {
		added = append(added, figure(rounds[i])-figure(base[i]))
	}
	return measure.Median(added)
}

// benchToBare returns the median over rounds of what a crossing adds to the
// median, to a bare ping-pong in the same round.
func benchToBare(rounds, base []benchRound, bare []float64) measure.Interval {
	var ratios []float64
	for i := range min(len(rounds), len(base), len(bare)) {
		ratios = append(ratios, (rounds[i].P50US-base[i].P50US)/bare[i])
	}
	return measure.Median(ratios)
}

// write prints the figures.
func (r *benchCrossing) write(w io.Writer, output string) error {
	if output == "json" {
		return benchJSON(w, r)
	}
	fmt.Fprintf(w, "latency of packet-ins, one at a time, medians of %d rounds, µs\n", r.Rounds)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "\tp50\tadded\tp99\tadded\t")
	fmt.Fprintf(t, "one process\t%.1f\t\t%.1f\t\t\n", r.Single.P50US, r.Single.P99US)
	for _, row := range r.Transports {
		fmt.Fprintf(t, "%s\t%.1f\t%.1f\t%.1f\t%.1f\t\n", row.Transport, row.Figures.P50US, row.AddedP50US, row.Figures.P99US, row.AddedP99US)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	var unanswered []string
	for _, row := range r.Transports {
		if row.Bound != nil {
			fmt.Fprintln(w, *row.Bound)
		}
		if row.Bare != nil {
			fmt.Fprintln(w, *row.Bare)
		}
		if row.Figures.Lost > 0 {
			unanswered = append(unanswered, fmt.Sprintf("%s: %d", row.Transport, row.Figures.Lost))
		}
	}
	if len(unanswered) > 0 {
		fmt.Fprintln(w, "packet-ins without an answer:", strings.Join(unanswered, ", "))
	}
	return r.writeTaken(w)
}
