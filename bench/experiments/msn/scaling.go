package msn

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/weft-sdn/weft/bench/experiments"
	"github.com/weft-sdn/weft/bench/experiments/figure"
	"github.com/weft-sdn/weft/lab/topology"
	"github.com/weft-sdn/weft/test/measure"
	"github.com/weft-sdn/weft/test/testbed"
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
	right := append(on(3, 6, 7, 12, 13, 14, 15), "rest") // every switch must be in one
	if n == 2 {
		return [][]string{on(1, 2, 4, 5, 8, 9, 10, 11), right}
	}
	return [][]string{on(1, 2, 4, 8, 9), on(5, 10, 11), right}
}

// fig13Paths are hosts at the distances that there are: 1, 3, 5 and 7 switches.
func fig13Paths() []path {
	return []path{{name: "H1-H2", from: "h1", to: "h2", switches: on(8)}, {name: "H1-H3", from: "h1", to: "h3", switches: on(8, 4, 9)},
		{name: "H1-H5", from: "h1", to: "h5", switches: on(8, 4, 2, 5, 10)}, {name: "H1-H16", from: "h1", to: "h16", switches: on(8, 4, 2, 1, 3, 7, 15)}}
}

// on is the DPIDs of switches.
func on(list ...int) (out []string) {
	for _, dpid := range list {
		out = append(out, fmt.Sprintf("%016x", dpid))
	}
	return out
}

// crossed is how many network services of a number a packet's path crosses.
func (p path) crossed(instances int) int {
	if instances == 1 {
		return 1
	}
	seen := map[int]bool{}
	for _, sw := range p.switches {
		at := slices.IndexFunc(shares(instances), func(share []string) bool { return slices.Contains(share, sw) })
		if at < 0 { // it is with the rest
			at = instances - 1
		}
		seen[at] = true
	}
	return len(seen)
}

func scaling() experiments.Experiment {
	return experiments.Experiment{
		Name: "msn-scaling", Title: "several network services, or several routing replicas of one",
		Paper: paper, Figure: "Figs. 14 and 15, on the topology of Fig. 13",
		Claim: `Replicating the whole network service, each replica with a share of the switches, performs better than
replicating the routing of a single one, with 2 and with 3 replicas, because the middleware, which a single network service
has once, is the bottleneck. (The figures' own numbers are not in its text.)`,
		Method: `Controllers of one network service (southbound | discovery, hosts | 1, 2 or 3 x paths, forwarding | northbound)
and of 2 and 3 network services (each as the first, with a share of the switches) take turns; for its turn each is started, with
a tree of 15 real switches and 16 hosts of its own, warmed up, and measured three times. A measurement gives two hosts, 1, 3, 5 or 7
switches apart, addresses that nobody has heard of. first_ms: round trip of the first ping, ARP included. steady_ms: median
round trip of the next 20. crossed is the number of network services that the path leads through, and routes what forwarding, of all
of them, has programmed for the two hosts, each direction for itself.`,
		Deviation: scalingDeviation,
		Runs:      10, QuickRuns: 2, Transports: []string{"grpc"},
		Statements: []experiments.Statement{
			experiments.Below().Said("first packet", "multiple NS is better"),
			experiments.Below().Said("normal flow", "multiple NS is better"),
		},
		Columns: []string{"path", "crossed", "first_ms", "steady_ms", "routes"},
		Cases: func(p experiments.Parameters) (list []experiments.Case) {
			for _, transport := range p.Transports {
				for _, s := range scales() {
					list = append(list, experiments.Case{Name: s.in(transport), Setup: experiments.SetupOf(s.plan(transport), "one packet at a time"), Open: func(ctx context.Context, _ *experiments.Context) (experiments.Subject, error) {
						return s.open(ctx, transport)
					}})
				}
			}
			return list
		},
		Sum: sumScaling,
	}
}

const scalingDeviation = `The paper's single network service has one middleware, written in Python, that all switches share and that is its
bottleneck; several have several. Weft has none: packets of different switches are dealt with at the same time in one network
service, too, so there is no bottleneck to divide, and the latency of one first packet, which is what is measured, is not made
shorter by dividing load. What several network services add is crossings: to each of them the hosts of the others are behind a
port, so every network service on the way learns the hosts, gets its own packet-in, computes its own part of the path and programs
it, one after the other, for ARP and for the ping: the routes that are programmed for a first packet are twice as many where it crosses two.
Hence the ratio by the number of network services that a path crosses: where it
crosses one, several are as fast as a single one, as far as the processors of the machine allow for twice or three times as many
processes.`

// in is the case's name.
func (s scaled) in(transport string) string { return transport + " " + s.name }

// tries is how often a controller is measured in its turn.
const tries = 3

// scaledSite is a controller that is ready.
type scaledSite struct {
	*site
	scaled
}

// open starts the controller and warms it up.
func (s scaled) open(ctx context.Context, transport string) (experiments.Subject, error) {
	here, err := open(ctx, s.name, s.plan(transport), topology.MSNFig13())
	if err != nil {
		return nil, err
	}
	for range warmUps {
		for _, p := range fig13Paths() {
			if _, err := here.firstPacket(ctx, p.from, p.to); err != nil {
				return nil, errors.Join(err, here.Close())
			}
		}
	}
	return scaledSite{here, s}, nil
}

// Sample measures all paths.
func (s scaledSite) Sample(ctx context.Context, _ int) (rows [][]string, err error) {
	for range tries {
		for _, p := range fig13Paths() {
			before, err := s.Metrics(ctx)
			if err != nil {
				return nil, s.Failed(err)
			}
			m, err := s.firstPacket(ctx, p.from, p.to)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", p.name, err)
			}
			after, err := s.Metrics(ctx)
			if err != nil {
				return nil, s.Failed(err)
			}
			row := []string{p.name, strconv.Itoa(p.crossed(s.instances)), "", "", written(after[routesMetric] - before[routesMetric])}
			if !m.lost {
				row[2], row[3] = written(m.first), written(m.steady)
			}
			rows = append(rows, row)
		}
	}
	return rows, nil
}

// routesMetric is how many routes have been programmed, moved or removed: none of
// these but by new hosts, in a network where nothing fails.
const routesMetric = "weft_forwarding_route_changes_total"

// overPaths is the mean over the paths in each round, as the paper has it.
func overPaths(c *experiments.Context, column, name string) []float64 {
	sums := make([]float64, c.Runs)
	for _, p := range fig13Paths() {
		for i, v := range c.Rounds(column, name, experiments.Where("path", p.name)) {
			sums[i] += v / float64(len(fig13Paths())) // NaN if one is
		}
	}
	return sums
}

// sumScaling compares all samples with the paper and draws them.
func sumScaling(c *experiments.Context) error {
	figures := map[string]map[string]map[string]experiments.Spread{}
	for _, transport := range c.Transports {
		figures[transport] = map[string]map[string]experiments.Spread{}
		first := func(name string) []float64 { return overPaths(c, "first_ms", transport+" "+name) }
		for _, n := range []string{"2", "3"} {
			c.Compare(
				experiments.Claim{What: fmt.Sprintf("first packet, multiple NS to single NS, %s replicas, %s", n, transport), Says: c.Statement("first packet")}.
					Of(measure.Ratio(first("multiple-NS-"+n), first("single-NS-"+n))).Beside(transport+" multiple-NS-"+n, transport+" single-NS-"+n),
				experiments.Claim{What: fmt.Sprintf("first packet, %s routing replicas to 1, %s", n, transport), Paper: "-"}.
					Of(measure.Ratio(first("single-NS-"+n), first("single-NS-1"))),
				experiments.Claim{Figure: "Fig. 15", What: fmt.Sprintf("normal flow, multiple NS to single NS, %s replicas, %s", n, transport), Says: c.Statement("normal flow")}.
					Of(measure.Ratio(overPaths(c, "steady_ms", transport+" multiple-NS-"+n), overPaths(c, "steady_ms", transport+" single-NS-"+n))).Beside(transport+" multiple-NS-"+n, transport+" single-NS-"+n))
			instances, _ := strconv.Atoi(n)
			for _, p := range fig13Paths() {
				c.Compare(experiments.Claim{What: fmt.Sprintf("first packet, multiple NS to single NS, %s replicas, %s, which crosses %d, %s", n, p.name, p.crossed(instances), transport), Paper: "-"}.
					Of(c.Ratio("first_ms", transport+" multiple-NS-"+n, transport+" single-NS-"+n, experiments.Where("path", p.name))))
			}
		}
		for _, s := range scales() {
			figures[transport][s.name] = map[string]experiments.Spread{}
			lost, measured := 0, 0
			for _, p := range fig13Paths() {
				at := experiments.Where("path", p.name)
				of := c.Spread("first_ms", s.in(transport), at)
				figures[transport][s.name][p.name+" first_packet_ms"] = of
				figures[transport][s.name][p.name+" steady_ms"] = c.Spread("steady_ms", s.in(transport), at)
				measured += of.Count
				c.Compare(experiments.Claim{What: fmt.Sprintf("routes programmed for a first packet, %s, %s, which crosses %d, %s", s.name, p.name, p.crossed(s.instances), transport), Paper: "-"}.
					Of(c.Median("routes", s.in(transport), at)))
				lost += tries*c.Measured(s.in(transport)) - of.Count
			}
			unanswered := math.NaN()
			if measured > 0 {
				unanswered = float64(lost)
			}
			c.Compare(
				experiments.Claim{What: fmt.Sprintf("first packet, mean over distances, %s, %s", s.name, transport), Paper: "-", Unit: "ms"}.Of(measure.Median(first(s.name))),
				experiments.Claim{Figure: "Fig. 15", What: fmt.Sprintf("normal flow, mean over distances, %s, %s", s.name, transport), Paper: "-", Unit: "ms"}.Of(measure.Median(overPaths(c, "steady_ms", s.in(transport)))),
				experiments.Claim{What: fmt.Sprintf("first packets without an answer, %s, %s", s.name, transport)}.Exactly(unanswered).AtMost(0))
		}
	}
	c.Figure("latency", figures)
	c.Draw(figScaling(c, "Fig. 14", "first packet", "first_ms"), figScaling(c, "Fig. 15", "normal flow", "steady_ms"))
	return nil
}

// figScaling draws a latency: as the paper the mean over distances by the number
// of replicas, and beside it by distance.
func figScaling(c *experiments.Context, name, what, column string) figure.Figure {
	f := figure.Figure{Name: name, Title: "latency of the " + what + ", several network services or several routing replicas of one"}
	for _, transport := range c.Transports {
		replicas := figure.Panel{Title: "mean over distances, " + transport, X: figure.Axis{Label: "replicas", Names: []string{"1", "2", "3"}}, Y: figure.Axis{Label: "ms"}}
		distance := figure.Panel{Title: "by distance, " + transport, X: figure.Axis{}, Y: figure.Axis{Label: "ms"}}
		for _, p := range fig13Paths() {
			distance.X.Names = append(distance.X.Names, fmt.Sprintf("%s\n%d switches", p.name, len(p.switches)))
		}
		single := figure.Series{Name: "single NS", Kind: figure.Bars, Colour: 1}
		multiple := figure.Series{Name: "multiple NS", Kind: figure.Bars, Colour: 3}
		for i, s := range scales() {
			at := figure.At(float64(max(s.replicas, s.instances)-1), measure.Median(overPaths(c, column, s.in(transport))), s.in(transport))
			if s.instances > 1 {
				multiple.Points = append(multiple.Points, at)
			} else {
				single.Points = append(single.Points, at)
			}
			bars := figure.Series{Name: s.name, Kind: figure.Bars, Colour: i + 2}
			for x, p := range fig13Paths() {
				bars.Points = append(bars.Points, figure.At(float64(x), c.Median(column, s.in(transport), experiments.Where("path", p.name)), s.in(transport)))
			}
			distance.Series = append(distance.Series, bars)
		}
		replicas.Series = []figure.Series{single, multiple}
		f.Panels = append(f.Panels, replicas, distance)
	}
	return f
}
