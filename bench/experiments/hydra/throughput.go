package hydra

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weft-sdn/weft/bench/experiments"
	"github.com/weft-sdn/weft/bench/experiments/figure"
	"github.com/weft-sdn/weft/bench/sim"
	"github.com/weft-sdn/weft/test/measure"
)

// throughput is the experiment of Fig. 6.
func throughput() experiments.Experiment {
	return experiments.Experiment{
		Name: "hydra-throughput", Title: "route lookup and firewall in one partition, hybrid against topological slicing",
		Paper: paper, Figure: "Fig. 6",
		Claim: `In one partition, with route lookup and a firewall of 50,000 rules, Hydra (8 partitions, path computation in another
process) scales well beyond 60,000 packets a second; topological slicing (16 partitions, all in one process) saturates at about
40,000.`,
		Method: `One partition of the paper's fat tree: of 8, path computation in another process (hybrid), or of 16, all in one process
(topological); besides, of 8 with all in one process, which tells what the size of the partition does from what the second
process does; firewall with 50,000 rules, a link failing and mended every 10 s. The controller's process of the partition has
the first processor, the simulated switches the second, with path computation if that is apart. As a user gets it: one process
of weft up with every service and the limits that it comes with, no processor or priority of its own, and the switches
likewise. Each turn starts its controller anew. Packet-ins between 1000 pairs of hosts of the whole partition come on an
absolute schedule, over a connection of OpenFlow 1.3 for each switch; each passes the firewall, its route is looked up and,
once a second, programmed anew on all its switches, by paths that are kept in its process, and it is answered when it is
handed out behind its last switch. injected 0 is as fast as answers come, 16 outstanding for each switch. The generator
alone, with a bare responder in the controller's place, at the highest rate is the most that can be achieved; nine tenths of that count
as the generator's limit. per_cpu_s is packets for each second of processor time that all
processes of the controller have used in the measured time. stages is what is left without connections: of one of 8 partitions, in this
process on one processor, messages decoded, the same services' stages passed, among them the firewall and the lookup,
decisions encoded; also: go test ./bench/experiments/hydra -run - -bench LookupAndFirewall -cpu 1.`,
		Deviation: `As in the paper, route lookup reads tables of its own process: forwarding keeps the paths that another process has computed
(services/forwarding/pathtable.go) and has them computed again beside the packets when links have changed; only the first
packet of a pair, or of one whose link is lost, waits for path computation. The paper compares a partition on two cores
(hybrid, of 8) with one on one core (topological, of 16): its 1.5 is for each partition, and 0.75 for each core. Its reason
for hybrid slicing is that path computation takes from the lookup. Here paths are repaired within about a millisecond after a
failure (weft bench paths), at a failure every 10 s less than a thousandth of a processor (hydra-demand: DJ); that there is
therefore nothing to gain by moving it is likely, and not tested with a computation as expensive as the paper's.`,
		Runs: 10, QuickRuns: 1, Transports: []string{"grpc"},
		Statements: []experiments.Statement{
			experiments.AtLeast(paperValues.Number("Fig. 6", "hybrid, 1 of 8", "60000")/paperValues.Number("Fig. 6", "topological, 1 of 16", "60000"), .25).OfRatio().Said("hybrid to topological", "well beyond 60,000 to about 40,000"),
		},
		Columns: []string{"injected_per_s", "achieved_per_s", "lost", "to_host_percent", "p50_ms", "p99_ms", "per_cpu_s"},
		Cases:   throughputCases, Sum: sumThroughput,
	}
}

// sliced are the two that Fig. 6 compares, one that is as large as the first and
// made as the second, and what a user gets.
func sliced() []sliceConfig {
	return []sliceConfig{
		{slicing: hybridSlicing, partitions: 8, rules: 50_000},
		{slicing: topologicalSlicing, partitions: 16, rules: 50_000},
		{slicing: topologicalSlicing, partitions: 8, rules: 50_000},
		{partitions: 8, rules: 50_000, shipped: true},
	}
}

// stagesOnly is the case without connections.
const stagesOnly = "stages, 1 of 8"

// generatorOnly is the case of a bare responder in the controller's place: the most that
// the generator can inject.
const generatorOnly = "the generator alone, 1 of 8"

// censoredFrom is the share of what the generator can inject from which on it may be
// what limits.
const censoredFrom = 0.9

// shippedMost is the most that is offered to what a user gets, which has its processors
// in common with the generator: above that it has none left to answer with.
const shippedMost = 700_000

// throughputMark is what lookup and firewall of one partition are to reach on one
// processor, packets per second: ten times the paper's.
const throughputMark = 600_000

// injected are the loads, packet-ins per second; 0 is as fast as answers come.
func injected(quick bool) []int {
	if quick {
		return []int{0, 60_000, 300_000, 700_000, 1_500_000, 2_500_000}
	}
	return []int{0, 20_000, 40_000, 60_000, 100_000, 200_000, 400_000, 700_000, 1_000_000, 1_500_000, 2_500_000}
}

func throughputCases(experiments.Parameters) []experiments.Case {
	list := []experiments.Case{{Name: stagesOnly, Setup: experiments.Setup{
		Services: "lookup and firewall, without sockets", Priority: experiments.AsStarted, Processors: "one", Load: "one of 8 partitions, 50000 rules"}, Open: func(_ context.Context, c *experiments.Context) (experiments.Subject, error) {
		return experiments.Once(func(ctx context.Context, round int) ([][]string, error) { return throughputOfStages(ctx, c, round) }), nil
	}}}
	list = append(list, experiments.Case{Name: generatorOnly, Setup: sliced()[2].setup(), Open: openGenerator})
	for _, cfg := range sliced() {
		list = append(list, experiments.Case{Name: cfg.String(), Setup: cfg.setup(), Open: func(ctx context.Context, c *experiments.Context) (experiments.Subject, error) {
			s, err := cfg.start(ctx)
			if err != nil {
				return nil, err
			}
			return loadedSlice{s, c}, nil
		}})
	}
	return list
}

// openGenerator starts the generator's side of a partition, with a bare responder.
func openGenerator(ctx context.Context, c *experiments.Context) (experiments.Subject, error) {
	s := &slice{sliceConfig: sliced()[2]}
	var err error
	if s.topo, err = sim.HydraShare(s.partitions); err != nil {
		return nil, err
	}
	if err := s.topo.AttachHostsToEdge(edgeHosts, edgePorts); err != nil {
		return nil, err
	}
	b, err := s.startBare(ctx, bySwitch, 0)
	if err != nil {
		return nil, err
	}
	return generator{b, c}, nil
}

// generator is the generator with a bare responder.
type generator struct {
	*bare
	*experiments.Context
}

// Sample takes all loads.
func (g generator) Sample(ctx context.Context, round int) (rows [][]string, err error) {
	for _, load := range injected(g.Quick) {
		row, err := inject(ctx, g.net, throughputLoad(load, g.Quick, g.Seed+uint64(round)))
		if err != nil {
			return nil, fmt.Errorf("%d/s: %w", load, err)
		}
		rows = append(rows, append([]string{strconv.Itoa(load)}, row...))
	}
	return rows, nil
}

// Close ends it.
func (g generator) Close() error { return g.close() }

// throughputOfStages takes the sample without connections.
func throughputOfStages(ctx context.Context, c *experiments.Context, round int) (rows [][]string, err error) {
	measure.Differs(ctx, stagesOnly+": without connections, southbound and processes, on one processor")
	topo, err := sim.HydraShare(8)
	if err == nil {
		err = topo.AttachHostsToEdge(edgeHosts, edgePorts)
	}
	if err != nil {
		return nil, err
	}
	s, err := startStages(ctx, topo, 50_000)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	if err := s.choose(ctx, flows, c.Seed+uint64(round)); err != nil {
		return nil, err
	}
	if _, _, err := s.measure(ctx, time.Second); err != nil { // to warm up, as the loads over connections do
		return nil, err
	}
	perSecond, toHost, err := s.measure(ctx, throughputSpan(c.Quick))
	if err != nil {
		return nil, err
	}
	return [][]string{{"0", number(perSecond), "0", number(100 * toHost), "", "", ""}}, nil
}

// throughputSpan is how long a load takes.
func throughputSpan(quick bool) time.Duration {
	if quick {
		return time.Second
	}
	return 1500 * time.Millisecond
}

// loadedSlice is a slice on which loads are measured.
type loadedSlice struct {
	*slice
	*experiments.Context
}

// Sample takes all loads, while links fail.
func (s loadedSlice) Sample(ctx context.Context, round int) (rows [][]string, err error) {
	defer func() { err = s.failed(err) }()
	failing, mend := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- s.fail(failing, sim.FailRandom, 10*time.Second, s.Seed) }()
	defer func() {
		mend()
		if end := <-ended; err == nil {
			err = end
		}
	}()
	for _, load := range injected(s.Quick) {
		if s.shipped && load > shippedMost {
			continue
		}
		of := throughputLoad(load, s.Quick, s.Seed+uint64(round))
		of.Used = s.control.CPUClock()
		row, err := inject(ctx, s.net, of)
		if errors.Is(err, errNoAnswer) {
			s.Fail(fmt.Sprintf("%v, %d/s", s.sliceConfig, load), round, err)
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("%d/s: %w", load, err)
		}
		rows = append(rows, append([]string{strconv.Itoa(load)}, row...))
		s.Progress.Say("%v: %d/s: %s/s", s.sliceConfig, load, row[0])
	}
	return rows, nil
}

// throughputLoad is a load of so many packet-ins per second; 0 is as fast as answers come.
func throughputLoad(perSecond int, quick bool, seed uint64) sim.Load {
	load := sim.Load{Flows: flows, Seed: seed, Window: sim.MaxWindow, Rate: float64(perSecond), Warm: 500 * time.Millisecond, Duration: throughputSpan(quick)}
	if perSecond == 0 {
		load.Window, load.Warm = saturateWindow, 2*time.Second // the first load programs all routes
	}
	return load
}

// errNoAnswer is why a load is no sample: what it would show is no rate of answers.
var errNoAnswer = errors.New("no answer")

// inject takes one sample.
func inject(ctx context.Context, net *sim.Network, load sim.Load) ([]string, error) {
	r, err := net.Measure(ctx, load)
	if err != nil {
		return nil, err
	}
	if r.Answered == 0 {
		return nil, fmt.Errorf("%w of %d packet-ins", errNoAnswer, r.Sent)
	}
	// At a rate what was due and answered too late is answered, too: what counts is
	// how long it took to answer all of it.
	took, perCPU := r.Elapsed, ""
	if r.Used > 0 && load.Rate == 0 { // at a rate more is answered than in the measured time
		perCPU = number(float64(r.Answered) / r.Used.Seconds())
	}
	if load.Rate > 0 {
		took += time.Duration(r.Latency.ValueAtPercentile(99))
	}
	return []string{
		number(float64(r.Answered) / took.Seconds()), number(float64(r.Lost + r.Unsent)),
		number(100 * float64(r.ToHost) / float64(max(1, r.Answered))), ms(r.Latency.ValueAtPercentile(50)), ms(r.Latency.ValueAtPercentile(99)),
		perCPU,
	}, nil
}

// mostInjected is what the generator alone achieves at the highest rate.
func mostInjected(c *experiments.Context) measure.Interval {
	loads := injected(c.Quick)
	return c.Median("achieved_per_s", generatorOnly, injecting(loads[len(loads)-1]))
}

// censored says why a comparison of cases is one of the generator, if the best that one
// of them achieved is as much as the generator can inject.
func censored(c *experiments.Context, of ...sliceConfig) string {
	ceiling := mostInjected(c).Median
	if math.IsNaN(ceiling) {
		return "the most that the generator can inject was not measured"
	}
	for _, cfg := range of {
		if most := measure.Median(best(c, cfg)).Median; most > censoredFrom*ceiling {
			return fmt.Sprintf("%s achieves %.0f/s of the %.0f/s that the generator can inject", cfg, most, ceiling)
		}
	}
	return ""
}

// best returns, for each round, the most that a slicing has achieved at any load.
func best(c *experiments.Context, cfg sliceConfig) []float64 {
	most := make([]float64, c.Runs)
	for i := range most {
		most[i] = math.NaN()
	}
	for _, load := range injected(c.Quick) {
		for i, v := range c.Rounds("achieved_per_s", cfg.String(), injecting(load)) {
			if math.IsNaN(most[i]) || v > most[i] {
				most[i] = v
			}
		}
	}
	return most
}

func injecting(load int) experiments.Filter {
	return experiments.Where("injected_per_s", strconv.Itoa(load))
}

// sumThroughput compares all samples with the paper and draws them.
func sumThroughput(c *experiments.Context) error {
	loads := injected(c.Quick)
	figures := map[string]any{}
	axis := figure.Axis{Label: "injected, packets per second"}
	achieved := figure.Panel{Title: "achieved", X: axis, Y: figure.Axis{Label: "packets per second"}}
	paper := figure.Panel{Title: "achieved, the paper's range", X: figure.Axis{Label: axis.Label, Max: 80_000}, Y: figure.Axis{Label: "packets per second", Max: 80_000}}
	most := figure.Panel{Title: "most", Y: figure.Axis{Label: "packets per second"}}
	perCPU := figure.Panel{Title: "as fast as answers come", Y: figure.Axis{Label: "packets per second of processor time"}}
	for i, cfg := range sliced() {
		name := cfg.String()
		curve := figure.Series{Name: name, Kind: figure.Line, Colour: i + 1}
		byLoad := map[string]figure.Number{}
		for _, load := range loads {
			got := c.Median("achieved_per_s", name, injecting(load))
			byLoad[strconv.Itoa(load)] = figure.Number(got.Median)
			if load > 0 {
				curve.Points = append(curve.Points, figure.At(float64(load), got, name))
			}
		}
		figures[name] = byLoad
		achieved.Series, paper.Series = append(achieved.Series, curve), append(paper.Series, curve)
		claim := experiments.Claim{What: "most packets a second over sockets, " + name, Paper: "-", Unit: "/s"}.Of(measure.Median(best(c, cfg)))
		if value := []float64{60_000, 40_000, 0, 0}[i]; value > 0 {
			claim.Paper, claim.Value = number(value), value
		}
		c.Compare(claim,
			experiments.Claim{What: "handed to the right host, " + name, Paper: "-", Unit: "%"}.Of(c.Median("to_host_percent", name, injecting(0))))
	}
	ceiling := figure.Series{Name: "the most that the generator can inject", Kind: figure.Curve, Dashed: true}
	for _, load := range loads[1:] {
		ceiling.Points = append(ceiling.Points, figure.Point{X: float64(load), Y: figure.Number(mostInjected(c).Median), Case: generatorOnly})
	}
	achieved.Series = append(achieved.Series, ceiling)
	for i, series := range []string{"hybrid, 1 of 8", "topological, 1 of 16"} {
		p := paperValues.Series("Fig. 6", series, figure.Line, axis)
		p.Colour = i
		achieved.Series, paper.Series = append(achieved.Series, p), append(paper.Series, p)
	}
	for i, name := range append([]string{stagesOnly}, names(sliced())...) {
		short := strings.Replace(name, ", ", "\n", 1)
		most.X.Names = append(most.X.Names, short)
		value := c.Median("achieved_per_s", stagesOnly, injecting(0))
		if i > 0 {
			value = measure.Median(best(c, sliced()[i-1]))
			perCPU.X.Names = append(perCPU.X.Names, short)
			perCPU.Series = append(perCPU.Series, figure.Series{Kind: figure.Bars, Colour: i, Points: []figure.Point{figure.At(float64(i-1), c.Median("per_cpu_s", name, injecting(0)), name)}})
		}
		most.Series = append(most.Series, figure.Series{Kind: figure.Bars, Colour: i, Points: []figure.Point{figure.At(float64(i), value, name)}})
	}
	stages := c.Median("achieved_per_s", stagesOnly, injecting(0))
	hybrid, topological, small, shipped := best(c, sliced()[0]), best(c, sliced()[1]), best(c, sliced()[2]), best(c, sliced()[3])
	ratio := func(what, paper string, value float64, of measure.Interval) experiments.Claim {
		return experiments.Claim{What: what, Paper: paper, Value: value}.Of(of)
	}
	c.Compare(
		experiments.Claim{What: "hybrid of 8 to topological of 16, a partition each", Says: c.Statement("hybrid to topological"), Void: censored(c, sliced()[0], sliced()[1])}.Of(measure.Ratio(hybrid, topological)).
			Beside(sliced()[0].String(), sliced()[1].String(), experiments.AboutProcessors, experiments.AboutLoad),
		ratio("the same for each core: two and one", "0.75", 0.75, scaled(measure.Ratio(hybrid, topological), .5)),
		ratio("the same for each second of processor time", "-", 0, measure.Ratio(c.Rounds("per_cpu_s", sliced()[0].String(), injecting(0)), c.Rounds("per_cpu_s", sliced()[1].String(), injecting(0)))),
		ratio("of it, by the second process (one of 8 partitions each)", "-", 0, measure.Ratio(hybrid, small)),
		ratio("of it, by the size (topological, 8 to 16 partitions)", "-", 0, measure.Ratio(small, topological)),
		ratio("as a user gets it, to topological, one of 8 each", "-", 0, measure.Ratio(shipped, small)),
		experiments.Claim{What: "lookup and firewall without sockets, one of 8 partitions", Paper: "60000 over sockets", Value: 60_000, Unit: "/s"}.Of(stages).AtLeast(throughputMark),
		experiments.Claim{What: "lookup and firewall over sockets, one of 8 partitions", Unit: "/s"}.Of(measure.Median(small)).AtLeast(throughputMark),
	)
	c.Figure("achieved_per_s", figures)
	c.Figure("stages_per_s", figure.Number(stages.Median))
	c.Draw(figure.Figure{Name: "Fig. 6", Title: "route lookup and firewall with 50,000 rules, one partition", Panels: []figure.Panel{achieved, paper, most, perCPU}})
	return nil
}

func names(list []sliceConfig) (out []string) {
	for _, cfg := range list {
		out = append(out, cfg.String())
	}
	return out
}

// scaled is an interval times a factor.
func scaled(i measure.Interval, by float64) measure.Interval {
	i.Median *= by
	i.CI95 = slices.Clone(i.CI95)
	for k := range i.CI95 {
		i.CI95[k] *= by
	}
	return i
}
