package scp

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/weft-sdn/weft/bench/experiments"
	"github.com/weft-sdn/weft/bench/experiments/figure"
	"github.com/weft-sdn/weft/test/measure"
)

func throughput() experiments.Experiment {
	return experiments.Experiment{
		Name: "scp-throughput", Title: "throughput and latency by the number of connections: plain forwarding, SDN, and agents",
		Paper: paper, Figure: "Figs. 4 and 5",
		Claim: `Direct communication has the highest throughput, 25,000 requests/s with five connections and up to 31,000 with 100.
SDN follows with about 1,000 less, 30,000 (below 5 % overhead). Agents are saturated earlier: independent ones at 10,000, co-located ones at
5,000. The 95th percentile of latency is below 10 ms for direct and SDN, and grows with the connections for agents: 50 ms independent and
80 ms co-located with 30 connections, 100 ms and 160 ms with 60.`,
		Method: `Consumer and producer at a real switch each, under one controller of the plan 5gc, in one lab. The producer is a
simulated UDM (weft nf udm) that answers 300 octets, the consumer weft bench http in a closed loop, HTTP/2 with prior knowledge, one request
outstanding on each connection. direct: to the producer's own address, plain forwarding. sdn: to a virtual address, by a pair of entries that
translate it to the same producer, from a consumer of its own at the same switch. independent-KIND: to an agent in a host of its own at the producer's switch. co-located-KIND: to an agent in the consumer's host,
which asks one in the producer's. Agents are those of nginx, HAProxy, nghttpx and Envoy that are installed, and Go's own reverse proxy. All setups are there
at once and take turns; in a round each is loaded with every number of connections for 1.5 s (a quick run: 0.5 s). p95_ms: 95th percentile of latency.
cpu_us: processor time for each request of all processes on the path: producer, agents, Open vSwitch and controller, not the consumer's generator. packets: packets received at all ports of the
switches for each request.`,
		Deviation: `The paper's agents are Spring Boot applications, in containers with two processors each; ours are those that operators run,
on processors that all share, so that they lose less. nginx comes close to direct in requests/s, because it is not what limits here: the
generator, the producer and the switches in user space share the processors with it; what it costs is in cpu_us. nginx asks producers by
HTTP/1.1, which is cheaper than the HTTP/2 of all others. HAProxy and nghttpx carry the requests of many connections over a few to the next,
so that there are fewer packets than requests: with 99 connections, co-located, 1.3 and 0.9 for each where direct and sdn have ten, so
that they cost less than forwarding them, in all (packets). The switches are Open
vSwitch in user space, not in the kernel, so that every packet costs them more.`,
		Runs: 10, QuickRuns: 4, Transports: []string{"grpc"},
		Statements: throughputStatements(),
		Columns:    []string{"connections", "requests_per_s", "p95_ms", "cpu_us", "packets", "failed"},
		Cases: func(p experiments.Parameters) (list []experiments.Case) {
			from := &common{Open: func(ctx context.Context) (*bed, error) { return openBed(ctx, "throughput", nil) }}
			for _, of := range setups() {
				list = append(list, use(from, of, func(ctx context.Context, u *user) ([][]string, error) { return u.connections(ctx, p.Quick) }))
			}
			return list
		},
		Lasting: true, Sum: sumThroughput,
	}
}

// throughputStatements are those of section IV.A: what is left of the requests/s of direct
// communication, and how long its latency is.
func throughputStatements() []experiments.Statement {
	left := func(kind string) float64 { return 1 - paperValues.Number("Fig. 4", "overhead", kind)/100 }
	late := func(kind string) float64 {
		return paperValues.Number("Fig. 5", kind, "60") / paperValues.Number("Fig. 5", "direct", "99")
	}
	return []experiments.Statement{
		experiments.AtMost(1/left("SDN"), 0).OfRatio().Said("direct to SDN", "31,000 to 30,000: below 5 % overhead"),
		experiments.Value(left("independent"), .25).OfRatio().Said("independent to direct", "10,000 to 31,000: 65 % less"),
		experiments.Value(left("co-located"), .25).OfRatio().Said("co-located to direct", "5,000 to 31,000: 84 % less"),
		experiments.Value(1, .25).OfRatio().Said("latency, SDN to direct", "both very stable below 10 ms"),
		experiments.AtLeast(late("independent"), .25).OfRatio().Said("latency, independent to direct", "100 ms with 60 connections to below 10 ms"),
		experiments.AtLeast(late("co-located"), .25).OfRatio().Said("latency, co-located to direct", "160 ms with 60 connections to below 10 ms"),
		experiments.Value(99./49, .25).OfRatio().Said("agents' latency grows", "linearly with the connections"),
	}
}

// connectionCounts are how many connections there are; the marks are at the
// second to last of the quick ones, and the last.
func connectionCounts(quick bool) []int {
	if quick {
		return []int{1, 10, 99}
	}
	return []int{1, 5, 9, 10, 25, 49, 99}
}

// closedTime is how long each load of a closed loop lasts.
func closedTime(quick bool) time.Duration {
	if quick {
		return time.Second
	}
	return 1500 * time.Millisecond
}

// turnTime is how long a load of scp-throughput lasts: the more turns there are, the
// less what else the machine does counts.
func turnTime(quick bool) time.Duration {
	if quick {
		return closedTime(quick) / 2
	}
	return closedTime(quick)
}

// connections takes a sample with every number of connections.
func (u *user) connections(ctx context.Context, quick bool) (rows [][]string, err error) {
	for _, n := range connectionCounts(quick) {
		l, err := u.load(ctx, u.of, turnTime(quick), "--connections", strconv.Itoa(n))
		if err != nil {
			return nil, u.Failed(err)
		}
		due := float64(max(l.Due, 1))
		rows = append(rows, []string{strconv.Itoa(n), written(l.RequestsPS), written(l.Latency.P95 / 1e3), written(l.cpu.Seconds() * 1e6 / due),
			written(float64(l.packets) / due), counted(l.failed())})
	}
	return rows, nil
}

// with is the filter of a number of connections.
func with(n int) experiments.Filter { return experiments.Where("connections", strconv.Itoa(n)) }

// measured are the numbers of connections of which there are samples.
func measured(c *experiments.Context) []int { return connectionCounts(c.Quick) }

// measuredCases are the setups of which there are samples, in the order of setups.
func measuredCases(c *experiments.Context, list []setup) (names []string) {
	for _, of := range list {
		if c.Measured(of.name) > 0 {
			names = append(names, of.name)
		}
	}
	return names
}

// lines draws a column by another, a line for each setup.
func lines(c *experiments.Context, names []string, by string, xs []int, column string, x, y figure.Axis) figure.Panel {
	panel := figure.Panel{X: x, Y: y}
	colours := map[string]int{}
	for _, name := range names {
		kind := strings.TrimPrefix(strings.TrimPrefix(name, "co-located-"), "independent-")
		if _, ok := colours[kind]; !ok {
			colours[kind] = len(colours) + 1
		}
		line := figure.Series{Name: name, Kind: figure.Line, Colour: colours[kind], Dashed: strings.HasPrefix(name, "co-located")}
		for _, at := range xs {
			line.Points = append(line.Points, figure.At(float64(at), c.Median(column, name, experiments.Where(by, strconv.Itoa(at))), name))
		}
		panel.Series = append(panel.Series, line)
	}
	return panel
}

// fromPaper adds the paper's points of a figure.
func fromPaper(p *figure.Panel, name string, series ...string) {
	for i, s := range series {
		points := paperValues.Series(name, s, figure.Dots, p.X)
		points.Name, points.Colour = "paper, "+s, i
		p.Series = append(p.Series, points)
	}
}

// ofSetup is one line of by_setup.
type ofSetup struct {
	Setup       string        `json:"setup"`
	Connections int           `json:"connections"`
	Requests    figure.Number `json:"requests_per_s"`
	P95         figure.Number `json:"p95_ms"`
	CPU         figure.Number `json:"cpu_us_per_request"`
	Packets     figure.Number `json:"packets_per_request"`
}

// sumThroughput compares the setups with the paper and draws them.
func sumThroughput(c *experiments.Context) error {
	names := measuredCases(c, setups())
	axis := figure.Axis{Label: "connections"}
	fig4 := lines(c, names, "connections", measured(c), "requests_per_s", axis, figure.Axis{Label: "requests/s"})
	fromPaper(&fig4, "Fig. 4", "direct", "SDN", "independent", "co-located")
	cpu := lines(c, names, "connections", measured(c), "cpu_us", axis, figure.Axis{Label: "processor time for each request, µs"})
	fig5 := lines(c, names, "connections", measured(c), "p95_ms", axis, figure.Axis{Label: "95th percentile, ms"})
	fromPaper(&fig5, "Fig. 5", "direct", "independent", "co-located")
	c.Draw(figure.Figure{Name: "Fig. 4", Title: "throughput by connections", Panels: []figure.Panel{fig4, cpu}},
		figure.Figure{Name: "Fig. 5", Title: "latency by connections", Panels: []figure.Panel{fig5}})

	for _, n := range []int{10, 99} {
		compareMarks(c, names, n)
	}
	papers := map[string]float64{}
	for kind, series := range map[string]string{"direct": "direct", "sdn": "SDN", "independent": "independent", "co-located": "co-located"} {
		papers[kind] = paperValues.Number("Fig. 4", series, "100")
	}
	var failed []float64
	var list []ofSetup
	for _, name := range names {
		kind := kindOf(name)
		c.Compare(experiments.Claim{What: "requests/s with 99 connections, " + name, Paper: fmt.Sprintf("%.0f, on its machine", papers[kind]), Value: papers[kind], Unit: "/s"}.
			Of(c.Median("requests_per_s", name, with(99))))
		failed = append(failed, c.All("failed", name, nil)...)
		for _, n := range measured(c) {
			at := func(column string) figure.Number { return figure.Number(c.Median(column, name, with(n)).Median) }
			list = append(list, ofSetup{name, n, at("requests_per_s"), at("p95_ms"), at("cpu_us"), at("packets")})
		}
	}
	c.Compare(experiments.Claim{What: "requests that were not answered well"}.Exactly(experiments.Total(failed)).AtMost(0))
	c.Figure("by_setup", list)
	return nil
}

// compareMarks compares SDN with direct, and agents with SDN, at a number of
// connections.
func compareMarks(c *experiments.Context, names []string, n int) {
	ratio := func(column, a, b string) measure.Interval { return c.Ratio(column, a, b, with(n)) }
	claim := func(figure, format string, args ...any) experiments.Claim {
		return experiments.Claim{Figure: figure, What: fmt.Sprintf(format, args...) + fmt.Sprintf(", %d connections", n), Paper: "-"}
	}
	through, late := claim("Fig. 4", "requests/s, direct to SDN"), claim("Fig. 5", "95th percentile, SDN to direct")
	through.Says, late.Says = c.Statement("direct to SDN"), c.Statement("latency, SDN to direct")
	c.Compare(
		claim("Fig. 4", "processor time, SDN to direct").Of(ratio("cpu_us", sdn, direct)).Beside(sdn, direct).AtMost(1.05),
		through.Of(ratio("requests_per_s", direct, sdn)).Beside(direct, sdn).AtMost(1/.95),
		late.Of(ratio("p95_ms", sdn, direct)).Beside(sdn, direct).AtMost(1.10))
	for _, name := range names {
		if name == direct || name == sdn {
			continue
		}
		requests, late := claim("Fig. 4", "requests/s, %s to direct", name), claim("Fig. 5", "95th percentile, %s to direct", name)
		if n == 99 { // where agents are saturated
			requests.Says, late.Says = c.Statement(kindOf(name)+" to direct"), c.Statement("latency, "+kindOf(name)+" to direct")
			c.Compare(experiments.Claim{Figure: "Fig. 5", What: "95th percentile, 99 connections to 49, " + name, Says: c.Statement("agents' latency grows")}.
				Of(measure.Ratio(c.Rounds("p95_ms", name, with(99)), c.Rounds("p95_ms", name, with(49)))).Beside(name, name))
		}
		c.Compare(claim("Fig. 4", "processor time, SDN to %s", name).Of(ratio("cpu_us", sdn, name)).Beside(sdn, name).AtMost(1),
			requests.Of(ratio("requests_per_s", name, direct)).Beside(name, direct), late.Of(ratio("p95_ms", name, direct)).Beside(name, direct))
	}
}
