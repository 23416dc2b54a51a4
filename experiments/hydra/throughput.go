package hydra

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"gonum.org/v1/plot/plotter"

	"weft/experiments"
	"weft/sim"
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
process (topological); firewall with 50,000 rules, a link failing and mended every 10 s. The controller's process of the partition
has the first processor, the simulated switches the second, with path computation if that is apart. Packet-ins between 1000 pairs
of hosts of the whole partition come on an absolute schedule; each passes the firewall, its route is looked up and, once a second,
programmed anew on all its switches, and it is answered when it is handed out behind its last switch. injected 0 is as fast as
answers come, 16 outstanding for each switch. What the stages cost by themselves, without sockets:
go test ./services/firewall ./services/forwarding -run - -bench 'Stage|KnownRoute'.`,
		Runs: 3, QuickRuns: 1, Transports: []string{"grpc"},
		Columns: []string{"slicing", "partitions", "injected_per_s", "run", "achieved_per_s", "lost", "to_host_percent", "p50_ms", "p99_ms"},
		Run:     runThroughput,
	}
}

// sliced are the two that Fig. 6 compares.
func sliced() []sliceConfig {
	return []sliceConfig{
		{slicing: hybridSlicing, partitions: 8, rules: 50_000},
		{slicing: topologicalSlicing, partitions: 16, rules: 50_000},
	}
}

// injected are the loads, packet-ins per second; 0 is as fast as answers come.
func injected(quick bool) []int {
	if quick {
		return []int{0, 40_000, 60_000}
	}
	return []int{0, 20_000, 40_000, 60_000, 80_000, 100_000, 150_000, 200_000}
}

func (c sliceConfig) key(load int) []string {
	return []string{string(c.slicing), strconv.Itoa(c.partitions), strconv.Itoa(load)}
}

func runThroughput(ctx context.Context, c *experiments.Context) error {
	loads := injected(c.Quick)
	c.Progress.Begin("hydra-throughput", len(sliced())*len(loads)*c.Runs, len(c.Data.Rows()))
	for _, cfg := range sliced() {
		if err := cfg.throughput(ctx, c, loads); err != nil {
			return fmt.Errorf("%s: %w", cfg.slicing, err)
		}
	}
	return sumThroughput(c, loads)
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
	load := sim.Load{Flows: flows, Seed: seed, Window: sim.MaxWindow, Rate: float64(perSecond), Warm: 2 * time.Second, Duration: 10 * time.Second}
	if perSecond == 0 {
		load.Window = saturateWindow
	}
	if quick {
		load.Duration = 2 * time.Second
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
	best := map[slicing]float64{}
	for i, cfg := range sliced() {
		name := fmt.Sprintf("%s, one of %d partitions", cfg.slicing, cfg.partitions)
		curve := experiments.Series{Name: name, Colour: i}
		achieved := map[string]float64{}
		for _, load := range loads {
			rows := column(c.Data, cfg.key(load))
			got := mean(rows, throughputAchieved)
			achieved[strconv.Itoa(load)] = orZero(got)
			best[cfg.slicing] = max(best[cfg.slicing], orZero(got))
			if load > 0 && got > 0 {
				curve.Points = append(curve.Points, plotter.XY{X: float64(load), Y: got})
			}
		}
		figures[name] = achieved
		curves = append(curves, curve)
		value := map[slicing]float64{hybridSlicing: 60_000, topologicalSlicing: 40_000}[cfg.slicing]
		c.Compare(experiments.Claim{What: "most packets a second over sockets, " + name, Paper: number(value), Value: value, Ours: best[cfg.slicing], Unit: "/s"},
			experiments.Claim{What: "handed to the right host, " + name, Paper: "-", Ours: mean(column(c.Data, cfg.key(0)), throughputToHost), Unit: "%"})
	}
	c.Compare(experiments.Claim{What: "hybrid to topological", Paper: "1.5", Value: 1.5, Ours: experiments.Ratio(best[hybridSlicing], best[topologicalSlicing])})
	c.Figure("achieved_per_s", figures)
	p, err := experiments.Curves("route lookup and firewall with 50,000 rules, one partition", "injected, packets per second", "achieved, packets per second", curves)
	if err != nil {
		return err
	}
	c.Draw(p)
	return nil
}
