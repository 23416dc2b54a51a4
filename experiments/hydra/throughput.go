package hydra

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"gonum.org/v1/plot/plotter"

	"github.com/weft-sdn/weft/experiments"
	"github.com/weft-sdn/weft/sim"
)

// throughput is the experiment of Fig. 6.
func throughput() experiments.Experiment {
	return experiments.Experiment{
		Name: "hydra-throughput", Title: "route lookup and firewall in one partition, hybrid against topological slicing",
		Paper: paper, Figure: "Fig. 6",
		Claim: `In one partition, with route lookup and a firewall of 50,000 rules, Hydra (8 partitions, path computation in another
process) scales well beyond 60,000 packets a second; topological slicing (16 partitions, all in one process) saturates at about
40,000.`,
		Method: `One partition of the paper's fat tree: of 8, path computation in another process (hybrid), or of 16, all in one
process (topological); besides, of 8 with all in one process, which tells what the size of the partition does from what the second
process does; firewall with 50,000 rules, a link failing and mended every 10 s. The controller's process of the partition has the
first processor, the simulated switches the second, with path computation if that is apart. Packet-ins between 1000 pairs of hosts
of the whole partition come on an absolute schedule, over a connection of OpenFlow 1.3 for each switch; each passes the firewall, its
route is looked up and, once a second, programmed anew on all its switches, and it is answered when it is handed out behind its last
switch. injected 0 is as fast as answers come, 16 outstanding for each switch. The paper measured over connections, too (CBench, §4).
stages is what is left without them: of one of 8 partitions, in this process on one processor, messages decoded, the same services'
stages passed, among them the firewall and the lookup, decisions encoded; also: go test ./experiments/hydra -run - -bench
LookupAndFirewall -cpu 1. The paper's reason for hybrid slicing, that path computation takes from the lookup, does not hold here: after
a failure paths are repaired within about a millisecond (weft bench paths), at a failure every 10 s less than a thousandth of a processor (hydra-demand: DJ).
What it costs is there: each route that is programmed asks another process for its paths, and that switch's packets wait meanwhile.`,
		Runs: 3, QuickRuns: 1, Transports: []string{"grpc"},
		Columns: []string{"slicing", "partitions", "injected_per_s", "run", "achieved_per_s", "lost", "to_host_percent", "p50_ms", "p99_ms"},
		Run:     runThroughput,
	}
}

// sliced are the two that Fig. 6 compares, and one that is as large as the first
// and made as the second.
func sliced() []sliceConfig {
	return []sliceConfig{
		{slicing: hybridSlicing, partitions: 8, rules: 50_000},
		{slicing: topologicalSlicing, partitions: 16, rules: 50_000},
		{slicing: topologicalSlicing, partitions: 8, rules: 50_000},
	}
}

// stagesOnly is the case without connections.
var stagesOnly = []string{"stages", "8", "0"}

// throughputMark is what lookup and firewall of one partition are to reach on one
// processor, packets per second: ten times the paper's.
const throughputMark = 600_000

// injected are the loads, packet-ins per second; 0 is as fast as answers come.
func injected(quick bool) []int {
	if quick {
		return []int{0, 60_000, 300_000, 700_000}
	}
	return []int{0, 20_000, 40_000, 60_000, 80_000, 100_000, 200_000, 300_000, 500_000, 700_000}
}

func (c sliceConfig) key(load int) []string {
	return []string{string(c.slicing), strconv.Itoa(c.partitions), strconv.Itoa(load)}
}

func runThroughput(ctx context.Context, c *experiments.Context) error {
	loads := injected(c.Quick)
	c.Progress.Begin("hydra-throughput", (len(sliced())*len(loads)+1)*c.Runs, len(c.Data.Rows()))
	if err := throughputOfStages(ctx, c); err != nil {
		return fmt.Errorf("stages: %w", err)
	}
	for _, cfg := range sliced() {
		if err := cfg.throughput(ctx, c, loads); err != nil {
			return fmt.Errorf("%s: %w", cfg.slicing, err)
		}
	}
	return sumThroughput(c, loads)
}

// throughputOfStages takes the samples without connections.
func throughputOfStages(ctx context.Context, x *experiments.Context) (err error) {
	if x.Data.Has(append(stagesOnly[:3:3], strconv.Itoa(x.Runs))...) {
		return nil
	}
	topo, err := sim.HydraShare(8)
	if err == nil {
		err = topo.AttachHostsToEdge(edgeHosts, edgePorts)
	}
	if err != nil {
		return err
	}
	s, err := startStages(ctx, topo, 50_000)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	for run := 1; run <= x.Runs; run++ {
		key := append(stagesOnly[:3:3], strconv.Itoa(run))
		if x.Data.Has(key...) {
			continue
		}
		if err := s.choose(ctx, flows, x.Seed+uint64(run)); err != nil {
			return err
		}
		if _, _, err := s.measure(ctx, time.Second); err != nil { // to warm up, as the loads over connections do
			return err
		}
		perSecond, toHost, err := s.measure(ctx, throughputSpan(x.Quick))
		if err != nil {
			return err
		}
		if err := x.Data.Add(append(key, number(perSecond), "0", number(100*toHost), "", "")); err != nil {
			return err
		}
		x.Progress.Step(fmt.Sprintf("stages run %d", run))
	}
	return nil
}

// throughputSpan is how long a sample takes.
func throughputSpan(quick bool) time.Duration {
	if quick {
		return 2 * time.Second
	}
	return 5 * time.Second
}

// throughput takes the samples of one controller.
func (c sliceConfig) throughput(ctx context.Context, x *experiments.Context, loads []int) (err error) {
	missing := false
	for _, load := range loads {
		missing = missing || !x.Data.Has(append(c.key(load), strconv.Itoa(x.Runs))...)
	}
	if !missing {
		return nil
	}
	s, err := c.start(ctx)
	if err != nil {
		return err
	}
	failing, mend := context.WithCancel(ctx)
	failed := make(chan error, 1)
	go func() { failed <- s.fail(failing, sim.FailRandom, 10*time.Second, x.Seed) }()
	defer func() {
		mend()
		for _, end := range []error{<-failed, s.close()} {
			if err == nil {
				err = end
			}
		}
	}()
	for run := 1; run <= x.Runs; run++ {
		for _, load := range loads {
			key := append(c.key(load), strconv.Itoa(run))
			if x.Data.Has(key...) {
				continue
			}
			row, err := s.inject(ctx, load, x.Quick, x.Seed+uint64(run))
			if err != nil {
				return s.failed(err)
			}
			if err := x.Data.Add(append(key, row...)); err != nil {
				return err
			}
			x.Progress.Step(fmt.Sprintf("%s %d/s run %d", c.slicing, load, run))
		}
	}
	return nil
}

// inject takes one sample.
func (s *slice) inject(ctx context.Context, perSecond int, quick bool, seed uint64) ([]string, error) {
	load := sim.Load{Flows: flows, Seed: seed, Window: sim.MaxWindow, Rate: float64(perSecond), Warm: time.Second, Duration: throughputSpan(quick)}
	if perSecond == 0 {
		load.Window = saturateWindow
	}
	r, err := s.net.Measure(ctx, load)
	if err != nil {
		return nil, err
	}
	// At a rate what was due and answered too late is answered, too: what counts is
	// how long it took to answer all of it.
	took := r.Elapsed
	if perSecond > 0 {
		took += time.Duration(r.Latency.ValueAtPercentile(99))
	}
	return []string{
		number(float64(r.Answered) / took.Seconds()), number(float64(r.Lost + r.Unsent)),
		number(100 * float64(r.ToHost) / float64(max(1, r.Answered))), ms(r.Latency.ValueAtPercentile(50)), ms(r.Latency.ValueAtPercentile(99)),
	}, nil
}

// Columns of the samples.
const (
	throughputAchieved = 4
	throughputToHost   = 6
)

// sumThroughput compares all samples with the paper and draws them.
func sumThroughput(c *experiments.Context, loads []int) error {
	figures := map[string]any{}
	var curves []experiments.Series
	best := map[string]float64{}
	label := func(cfg sliceConfig) string {
		return fmt.Sprintf("%s, one of %d partitions", cfg.slicing, cfg.partitions)
	}
	of := func(i int) float64 { return best[label(sliced()[i])] }
	for i, cfg := range sliced() {
		name := label(cfg)
		curve := experiments.Series{Name: name, Colour: i}
		achieved := map[string]float64{}
		for _, load := range loads {
			rows := column(c.Data, cfg.key(load))
			got := mean(rows, throughputAchieved)
			achieved[strconv.Itoa(load)] = orZero(got)
			best[name] = max(best[name], orZero(got))
			if load > 0 && got > 0 {
				curve.Points = append(curve.Points, plotter.XY{X: float64(load), Y: got})
			}
		}
		figures[name] = achieved
		curves = append(curves, curve)
		claim := experiments.Claim{What: "most packets a second over sockets, " + name, Paper: "-", Ours: best[name], Unit: "/s"}
		if value := []float64{60_000, 40_000, 0}[i]; value > 0 {
			claim.Paper, claim.Value = number(value), value
		}
		c.Compare(claim,
			experiments.Claim{What: "handed to the right host, " + name, Paper: "-", Ours: mean(column(c.Data, cfg.key(0)), throughputToHost), Unit: "%"})
	}
	stages := mean(column(c.Data, stagesOnly), throughputAchieved)
	c.Compare(
		experiments.Claim{What: "hybrid to topological", Paper: "1.5", Value: 1.5, Ours: experiments.Ratio(of(0), of(1))},
		experiments.Claim{What: "of it, by the second process (one of 8 partitions each)", Paper: "-", Ours: experiments.Ratio(of(0), of(2))},
		experiments.Claim{What: "of it, by the size (topological, 8 to 16 partitions)", Paper: "-", Ours: experiments.Ratio(of(2), of(1))},
		experiments.Claim{What: "lookup and firewall without sockets, one of 8 partitions", Paper: "60000 over sockets", Value: 60_000, Ours: stages, Unit: "/s"},
		experiments.Claim{What: fmt.Sprintf("to the mark of %d/s, without sockets", throughputMark), Paper: "-", Ours: stages / throughputMark},
		experiments.Claim{What: fmt.Sprintf("to the mark of %d/s, over sockets, one of 8 partitions", throughputMark), Paper: "-", Ours: max(of(0), of(2)) / throughputMark},
	)
	c.Figure("achieved_per_s", figures)
	c.Figure("stages_per_s", stages)
	p, err := experiments.Curves("route lookup and firewall with 50,000 rules, one partition", "injected, packets per second", "achieved, packets per second", curves)
	if err != nil {
		return err
	}
	c.Draw(p)
	return nil
}
