package msn

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/weft-sdn/weft/experiments"
	"github.com/weft-sdn/weft/experiments/testbed"
	"github.com/weft-sdn/weft/lab"
)

// scaled is one way to scale the controller.
type scaled struct {
	name      string
	replicas  int // of routing
	instances int // network services
}

func scales() []scaled {
	return []scaled{
		{"single-NS-1", 1, 1}, {"single-NS-2", 2, 1}, {"single-NS-3", 3, 1},
		{"multiple-NS-2", 1, 2}, {"multiple-NS-3", 1, 3},
	}
}

// plan is what runs where.
func (s scaled) plan(transport string) *testbed.Plan {
	if s.instances > 1 {
		return testbed.Multiple("msn-"+s.name, transport, shares(s.instances))
	}
	return testbed.Split("msn-"+s.name, transport, s.replicas)
}

// shares divides the switches of Fig. 13, a binary tree of 15 numbered level by
// level, among two or three network services. Each has a connected part, with
// one link to each neighbour, so that to each the others are hosts behind a port.
func shares(n int) [][]string {
	names := func(list ...int) (out []string) {
		for _, dpid := range list {
			out = append(out, fmt.Sprintf("%016x", dpid))
		}
		return out
	}
	right := append(names(3, 6, 7, 12, 13, 14, 15), "rest") // every switch must be in one
	if n == 2 {
		return [][]string{names(1, 2, 4, 5, 8, 9, 10, 11), right}
	}
	return [][]string{names(1, 2, 4, 8, 9), names(5, 10, 11), right}
}

// fig13Paths are hosts at the distances that there are: 1, 3, 5 and 7 switches.
func fig13Paths() []path {
	return []path{{name: "H1-H2", from: "h1", to: "h2"}, {name: "H1-H3", from: "h1", to: "h3"},
		{name: "H1-H5", from: "h1", to: "h5"}, {name: "H1-H16", from: "h1", to: "h16"}}
}

func scaling() experiments.Experiment {
	return experiments.Experiment{
		Name: "msn-scaling", Title: "several network services, or several routing replicas of one",
		Paper: paper, Figure: "Figs. 14 and 15, on the topology of Fig. 13",
		Claim: `Replicating the whole network service, each replica with a share of the switches, performs better than
replicating the routing of a single one, with 2 and with 3 replicas, because the middleware, which a single network service
has once, is the bottleneck. (The figures' own numbers are not in its text.)`,
		Method: `Controllers of one network service (southbound | discovery, hosts | 1, 2 or 3 x paths, forwarding | northbound)
and of 2 and 3 network services (each as the first, with a share of the switches) each have a tree of 15 real switches and 16
hosts of their own and take turns, ten runs each. A run gives two hosts, 1, 3, 5 or 7
switches apart, addresses that nobody has heard of. first_ms: round trip of the first ping, ARP included. steady_ms: median
round trip of the next 20. The latency of the first packet is the one less the other.`,
		Runs: 30, QuickRuns: 5, Transports: []string{"grpc"},
		Columns: []string{"transport", "case", "path", "run", "first_ms", "steady_ms"},
		Run:     runScaling,
	}
}

func runScaling(ctx context.Context, c *experiments.Context) error {
	if err := needLab(); err != nil {
		return err
	}
	c.Progress.Begin("msn-scaling", len(c.Transports)*len(scales())*len(fig13Paths())*c.Runs, len(c.Data.Rows()))
	for _, transport := range c.Transports {
		if err := scaleOver(ctx, c, transport); err != nil {
			return fmt.Errorf("%s: %w", transport, err)
		}
	}
	return sumScaling(c)
}

// block is how many runs a controller takes before it is the next one's turn.
const block = 10

// scaleOver takes the samples over one transport. The controllers are not up
// at the same time, for they are up to 13 processes each; they take turns, a
// block of runs each.
func scaleOver(ctx context.Context, c *experiments.Context, transport string) error {
	for first := 1; first <= c.Runs; first += block {
		for _, s := range scales() {
			if err := s.take(ctx, c, transport, first, min(first+block-1, c.Runs)); err != nil {
				return fmt.Errorf("%s: %w", s.name, err)
			}
		}
	}
	return nil
}

// take takes the samples of some runs that are not there yet.
func (s scaled) take(ctx context.Context, c *experiments.Context, transport string, from, to int) (err error) {
	if !slices.ContainsFunc(fig13Paths(), func(p path) bool { return !c.Data.Has(transport, s.name, p.name, strconv.Itoa(to)) }) {
		return nil
	}
	here, err := open(ctx, s.name, s.plan(transport), lab.MSNFig13())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, here.close()) }()
	for range warmUps {
		for _, p := range fig13Paths() {
			if _, err := here.firstPacket(ctx, p.from, p.to); err != nil {
				return err
			}
		}
	}
	for run := from; run <= to; run++ {
		for _, p := range fig13Paths() {
			key := []string{transport, s.name, p.name, strconv.Itoa(run)}
			if c.Data.Has(key...) {
				continue
			}
			if err := ctx.Err(); err != nil {
				return err
			}
			m, err := here.firstPacket(ctx, p.from, p.to)
			if err != nil {
				return fmt.Errorf("%s, run %d: %w", p.name, run, err)
			}
			row := []string{"", ""}
			if !m.lost {
				row = []string{written(m.first), written(m.steady)}
			}
			if err := c.Data.Add(append(key, row...)); err != nil {
				return err
			}
			c.Progress.Step(fmt.Sprintf("%s %s %s run %d", transport, s.name, p.name, run))
		}
	}
	return nil
}

// Columns of the samples of scaling.
const (
	scaleFirst  = 4
	scaleSteady = 5
)

// sumScaling compares all samples with the paper and draws them.
func sumScaling(c *experiments.Context) error {
	figures := map[string]map[string]map[string]experiments.Spread{}
	var names []string
	var groups []experiments.Group
	var absolute []experiments.Claim // what the ratios are of
	for i, transport := range c.Transports {
		figures[transport] = map[string]map[string]experiments.Spread{}
		means := map[string]float64{} // of first packets over all distances, as Fig. 14 has them
		steady := map[string]float64{}
		for _, s := range scales() {
			figures[transport][s.name] = map[string]experiments.Spread{}
			g := experiments.Group{Name: transport + " " + s.name}
			var firsts, flows []float64
			lost := 0
			for _, p := range fig13Paths() {
				first := less(c.Data, scaleFirst, scaleSteady, transport, s.name, p.name)
				flow := column(c.Data, scaleSteady, transport, s.name, p.name)
				firsts, flows = append(firsts, first...), append(flows, flow...)
				lost += c.Runs - len(first)
				figures[transport][s.name][p.name+" first_packet_ms"] = experiments.NewSpread(first)
				figures[transport][s.name][p.name+" steady_ms"] = experiments.NewSpread(flow)
				g.Spreads = append(g.Spreads, experiments.NewSpread(first))
			}
			groups = append(groups, g)
			means[s.name], steady[s.name] = experiments.NewSpread(firsts).Mean, experiments.NewSpread(flows).Mean
			absolute = append(absolute,
				experiments.Claim{What: fmt.Sprintf("first packet, mean, %s, %s", s.name, transport), Paper: "-", Ours: means[s.name], Unit: "ms"},
				experiments.Claim{What: fmt.Sprintf("normal flow, mean, %s, %s", s.name, transport), Paper: "-", Ours: steady[s.name], Unit: "ms"},
				experiments.Claim{What: fmt.Sprintf("first packets without an answer, %s, %s", s.name, transport), Paper: "-", Ours: float64(lost)}.AtMost(0),
			)
		}
		for _, n := range []string{"2", "3"} {
			c.Compare(
				experiments.Claim{What: fmt.Sprintf("first packet, multiple NS to single NS, %s replicas, %s", n, transport), Paper: "multiple NS is better",
					Ours: experiments.Ratio(means["multiple-NS-"+n], means["single-NS-"+n])},
				experiments.Claim{What: fmt.Sprintf("first packet, %s routing replicas to 1, %s", n, transport), Paper: "-",
					Ours: experiments.Ratio(means["single-NS-"+n], means["single-NS-1"])},
			)
		}
		if i == 0 {
			for _, p := range fig13Paths() {
				names = append(names, p.name)
			}
		}
	}
	c.Compare(absolute...)
	c.Figure("latency", figures)
	p, err := experiments.Bars("first packet by distance: medians, 5th to 95th percentile", "latency, ms", names, groups)
	if err != nil {
		return err
	}
	c.Draw(p)
	return nil
}
