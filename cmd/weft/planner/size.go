package planner

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/weft-sdn/weft/cmd/weft/cli"
	"github.com/weft-sdn/weft/internal/asowner"
	"github.com/weft-sdn/weft/internal/document"
	"github.com/weft-sdn/weft/plan"
	"github.com/weft-sdn/weft/plan/simulate"
	"github.com/weft-sdn/weft/plan/size"
)

// sizeConfig is the flags of weft size.
type sizeConfig struct {
	question                            size.Question
	service, idle, aim                  time.Duration
	dispersion, overhead, as, cpus      []string
	dispatch, profile, of, plot, queues string
	batch, times, between               string
	formula, running                    bool
	remote                              cli.Remote
}

// SizeCommand is `weft size`.
func SizeCommand() *cobra.Command {
	var c sizeConfig
	var out cli.Output
	cmd := &cobra.Command{
		Use:   "size --rate RATE --service TIME | --network FILE",
		Short: "Compute how many copies or parts a function needs, on how many processors",
		Long: `Compute how many instances a function needs so that packets take as long as they
may: copies that share the packets, or a chain of parts, on one processor or on
one each. The answer is the fewest processors, then instances, that reach the
target; without a target, the fewest of those within 2 % of the least time. Where
nothing reaches it, the answer is the nearest, and met is false.

Every deployment is computed by formulas (M/G/1 and G/G/1, Allen-Cunneen, robust
queueing, a flow-equivalent server) and simulated; the answer goes by what was
simulated, with its 95 % interval. The seed determines it. Simulation takes up to
three seconds; --formula leaves it out.

Times of packets are by default as in the paper: exponential, and Poisson
arrivals. An SCV is a squared coefficient of variation: 0 constant, 1 exponential.
With --batch several come at a time; with --dispersion the simulated arrivals are
fitted to what was measured, and where they do not reach it, the answer goes by the
formula and says so. A mean and an SCV do not determine a percentile: range_ms is
where it lies over laws that have both. --service-times FILE is a histogram: a time
in each line, TIME COUNT, or FROM TO COUNT.

With --profile the time of a packet is what weft profile has measured of a service,
and its rate that of the packets it looked at. With --running the histogram of times,
rate and dispersion are the live figures of a controller's stage (GET /v1/work).

With --network a file says which queues there are, and which classes of packets
go between them, and how long each class takes is the answer:

  queues:
    parse: {service: 0.2ms}
    match: {service: 0.5ms, scv: 2, servers: 4}
  classes:
    web:
      rate: 900
      enter: parse                      # or {parse: 0.9, match: 0.1}
      routes:
        parse: {match: 0.8}             # what is left of 1 leaves
        match: {parse: 0.1}
    dns: {rate: 300, scv: 4, enter: match, service: {match: 0.1ms}}

Left out, scv is 1 and servers is 1; service of a class is that of the queue.`,
		Example: `  weft size --rate 970 --service 0.6ms --idle 0.248ms --target 1ms
  weft size --rate 970 --service 0.6ms --idle 0.248ms --overhead 2:0.001,16:0.02 --plot size.svg
  weft size --rate 20000 --service 0.2ms --service-scv 4 --dispatch shortest --target 1ms --percentile 99 -o json
  weft size --rate 500 --service-times times.txt --batch 4 --target 20ms --percentile 99
  weft size --profile profile.yaml --of forwarding --rate 50000 --target 100us
  weft size --running --of forwarding --target 1ms --percentile 99
  weft size --network queues.yaml --percentile 99 -o json`,
		Args: cobra.NoArgs,
	}
	c.flags(cmd.Flags())
	c.remote.Flags(cmd)
	cmd.RegisterFlagCompletionFunc("dispatch", cobra.FixedCompletions([]string{"random", "round-robin", "shortest", "central"}, cobra.ShellCompDirectiveNoFileComp))
	cmd.RegisterFlagCompletionFunc("as", cobra.FixedCompletions([]string{"copies", "chain"}, cobra.ShellCompDirectiveNoFileComp))
	cmd.MarkFlagFilename("network", "yaml", "yml")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if cmd.Flags().Changed("network") {
			return printQueues(cmd, &out, c.queues, size.MeshOptions{Percentile: c.question.Percentile, Simulate: !c.formula, Seed: c.question.Seed}, c.aim)
		}
		if c.running {
			if err := c.fromRunning(cmd); err != nil {
				return err
			}
		}
		if err := c.read(cmd.Flags()); err != nil {
			return cli.Usagef(cmd, "%w", err)
		}
		answer, err := size.Solve(c.question)
		if err != nil {
			return err
		}
		r := newSizeReport(c.question, answer)
		if c.plot != "" {
			if err := r.draw(cmd.Context(), c.plot); err != nil {
				return err
			}
		}
		return out.Print(cmd, r, r.table)
	}
	out.Flag(cmd)
	return cmd
}

func (c *sizeConfig) flags(f *pflag.FlagSet) {
	q := &c.question
	f.Float64Var(&q.Rate, "rate", 0, "packets per second")
	f.Float64Var(&q.ArrivalSCV, "arrival-scv", 1, "SCV of the times between packets")
	f.StringSliceVar(&c.dispersion, "dispersion", nil, "measured index of dispersion of arrivals over times, such as 10ms=1.5,1s=8, instead of --arrival-scv")
	f.StringVar(&c.between, "arrival-times", "", "file with measured times between packets, as --service-times, instead of --arrival-scv; they are scaled to --rate")
	f.StringVar(&c.batch, "batch", "", "mean number of packets that come together, of a geometric distribution, or N:constant; --rate counts each packet")
	f.DurationVar(&c.service, "service", 0, "time of one instance for a packet, idle time included")
	f.Float64Var(&q.ServiceSCV, "service-scv", 1, "SCV of that time")
	f.StringVar(&c.times, "service-times", "", "file with measured service times, in place of --service-scv; with --service they are scaled to it")
	f.DurationVar(&c.idle, "idle", 0, "part of --service in which no processor is needed, such as for input and output")
	f.StringSliceVar(&c.overhead, "overhead", nil, "what a packet costs more of a processor in N instances than in one, in all together, as N:MS for some N, such as 2:0.01,16:0.2; others are on the line between them")
	f.DurationVar(&c.aim, "target", 0, "time that a packet may take (default: as little as possible)")
	f.Float64Var(&q.Percentile, "percentile", 0, "percentile of packets that --target is of, such as 99 (default: the mean)")
	f.IntVar(&q.Room, "room", 0, "packets there may be at an instance, the one in service included; further ones are lost (default: any number)")
	f.Float64Var(&q.Loss, "loss", 0, "share of packets that may be lost, with --room")
	f.IntSliceVar(&q.Counts, "instances", nil, "numbers of instances to look at (default: 1 to 16, and more if need be)")
	f.StringSliceVar(&c.as, "as", []string{"copies", "chain"}, "copies, chain, or both")
	f.StringSliceVar(&c.cpus, "cpus", []string{"1", "own"}, "numbers of processors to look at; own is one for each instance")
	f.StringVar(&c.dispatch, "dispatch", "random", "how packets are given to copies: random (a hash of flows), round-robin, shortest (queue), central (one queue)")
	f.StringVar(&c.profile, "profile", "", "take the time of a packet, and the rate, from this file of weft profile")
	f.BoolVar(&c.running, "running", false, "take the time of a packet, its variation, the rate and its dispersion from a running controller")
	f.StringVar(&c.of, "of", "", "which service of the profile, or of the running controller")
	f.StringVar(&c.queues, "network", "", "file with queues and the classes of packets that go between them, in place of a rate and a time")
	f.BoolVar(&c.formula, "formula", false, "by formulas only, without simulation")
	f.Uint64Var(&q.Seed, "seed", 1, "seed of the simulation")
	f.StringVar(&c.plot, "plot", "", "draw the curve to FILE (.svg, .png or .pdf)")
}

// read makes the question of the flags.
func (c *sizeConfig) read(f *pflag.FlagSet) error {
	q := &c.question
	if !c.running {
		q.Service = c.service.Seconds()
	}
	q.Idle, q.Target = c.idle.Seconds(), c.aim.Seconds()
	q.Dispatch, q.Simulate = simulate.Dispatch(c.dispatch), !c.formula
	for _, as := range c.as {
		q.Forms = append(q.Forms, size.Form(as))
	}
	for _, text := range c.cpus {
		n, err := strconv.Atoi(text)
		if text != "own" && (err != nil || n < 1) {
			return fmt.Errorf("--cpus %q: want numbers of processors, or own", text)
		}
		q.Processors = append(q.Processors, n)
	}
	for _, text := range c.dispersion {
		over, index, _ := strings.Cut(text, "=")
		t, err := time.ParseDuration(over)
		x, bad := strconv.ParseFloat(index, 64)
		if err != nil || bad != nil {
			return fmt.Errorf("--dispersion %q: want TIME=INDEX, such as 10ms=1.5", text)
		}
		q.Dispersion = append(q.Dispersion, size.MeasuredDispersion{Time: t.Seconds(), Index: x})
	}
	for _, text := range c.overhead {
		count, ms, _ := strings.Cut(text, ":")
		n, err := strconv.Atoi(count)
		t, bad := strconv.ParseFloat(ms, 64)
		if err != nil || bad != nil {
			return fmt.Errorf("--overhead %q: want N:MS, such as 16:0.2", text)
		}
		q.Overhead = append(q.Overhead, size.MeasuredOverhead{N: n, Time: t / 1e3})
	}
	if err := c.histograms(f); err != nil {
		return err
	}
	if c.plot != "" && !slices.Contains(sizePlotFormats, strings.ToLower(filepath.Ext(c.plot))) {
		return fmt.Errorf("--plot %q: want a file name that ends in %s", c.plot, strings.Join(sizePlotFormats, ", "))
	}
	if f.Changed("target") && c.aim <= 0 {
		return fmt.Errorf("--target %v: want a time above 0, or leave it out", c.aim)
	}
	if err := c.measured(f); err != nil {
		return err
	}
	for _, flag := range []string{"rate", "service"} {
		if c.profile == "" && !c.running && !f.Changed(flag) && (flag == "rate" || q.Times == nil) {
			return fmt.Errorf("--%s is missing: %s", flag, map[string]string{"rate": "how many packets come in a second",
				"service": "how long one instance takes for a packet, --service-times FILE, or --profile FILE --of SERVICE"}[flag])
		}
	}
	if err := q.Check(); err != nil {
		return fmt.Errorf("--%w", err)
	}
	return nil
}

// histograms reads what is said of how times and arrivals are distributed.
func (c *sizeConfig) histograms(f *pflag.FlagSet) (err error) {
	q := &c.question
	for _, pair := range [][2]string{{"service-times", "service-scv"}, {"arrival-times", "arrival-scv"}} {
		if f.Changed(pair[0]) && f.Changed(pair[1]) {
			return fmt.Errorf("--%s and --%s: give one of them", pair[0], pair[1])
		}
	}
	if c.times != "" {
		if q.Times, err = readTimes("service-times", c.times); err != nil {
			return err
		}
	}
	if c.between != "" {
		if q.Between, err = readTimes("arrival-times", c.between); err != nil {
			return err
		}
	}
	if c.batch != "" {
		q.Batch, err = readBatch(c.batch)
	}
	return err
}

// measured takes what the flags leave open from a profile.
func (c *sizeConfig) measured(f *pflag.FlagSet) error {
	if c.profile == "" {
		if c.of != "" && !c.running {
			return errors.New("--of names a service of a profile, or of a running controller: give --profile or --running, too")
		}
		return nil
	}
	if f.Changed("service") {
		return errors.New("--service and --profile: give one of them")
	}
	text, err := document.ReadFile(c.profile)
	if err != nil {
		return fmt.Errorf("--profile: %w", err)
	}
	p, err := plan.ParseProfile(c.profile, text)
	if err != nil {
		return err
	}
	var known []string
	for _, d := range p.Services {
		if d.PerPacket.Known && d.PerPacket.Value > 0 {
			known = append(known, d.Service)
		}
	}
	d := p.Of(c.of)
	if !slices.Contains(known, c.of) {
		if len(known) == 0 {
			return fmt.Errorf("--profile %s: it has the time for a packet (per_packet) of no service; weft profile measures it under load", c.profile)
		}
		return fmt.Errorf("--of %q: want a service whose time for a packet (per_packet) is in %s: %s", c.of, c.profile, strings.Join(known, ", "))
	}
	c.question.Service = d.PerPacket.Value + c.question.Idle
	if f.Changed("rate") {
		return nil
	}
	if c.question.Rate = p.PacketIns; d.Packets.Known {
		c.question.Rate = d.Packets.Value
	}
	if c.question.Rate == 0 {
		return fmt.Errorf("--rate is missing, and %s was measured without packets", c.profile)
	}
	return nil
}

// create makes the file of a plot.
func create(file string) (*os.File, error) {
	f, err := asowner.Create(file)
	if err != nil {
		return nil, fmt.Errorf("--plot: %w", err)
	}
	return f, nil
}
