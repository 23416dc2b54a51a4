package msn

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/weft-sdn/weft/bench/experiments"
	"github.com/weft-sdn/weft/bench/experiments/figure"
	"github.com/weft-sdn/weft/internal/quantile"
	"github.com/weft-sdn/weft/lab/topology"
	"github.com/weft-sdn/weft/test/measure"
	"github.com/weft-sdn/weft/test/testbed"
)

// The cases of one process: as weft up starts it, with every service, and with the
// services that the others have in four.
const (
	monolith = "single"
	same     = "same"
)

// path is two hosts of Fig. 8 and the switches between them.
type path struct {
	name     string
	from, to string
	switches []string
}

func fig8Paths() []path {
	return []path{
		{"H1-H3", "h1", "h3", []string{"s1", "s2"}},
		{"H1-H10", "h1", "h10", []string{"s1", "s2", "s3", "s4", "s5"}},
	}
}

func firstPacket() experiments.Experiment {
	return experiments.Experiment{
		Name: "msn-first-packet", Title: "latency of first packets and rule updates, by transport between the services",
		Paper: paper, Figure: "Fig. 9, on the topology of Fig. 8",
		Claim: `The major delay is on the first packet. REST is seven times slower than WebSocket between H1 and H3 (two
switches), about ten times between H1 and H10 (five switches); gRPC is like REST, a little faster. REST is also slow for
rule updates, compared with WebSocket and with plain Ryu. Normal flow is the same over all: 0.01 ms on average. Averages of
30 runs, variance below 5 %. (The figure's own numbers are not in its text.)`,
		Method: `Controllers of one process, with every service (single) and with those that the others have (same), and of four
(southbound | discovery, hosts | paths, forwarding | northbound) over each transport, each with real switches of its own, take turns run by run. A run gives both hosts addresses that nobody has heard
of. first_ms: round trip of the first ping, ARP included. steady_ms: median round trip of the next 20. update_ms: the flow
entries of the pair are removed from all switches, as if they had expired; round trip of the next ping. The latencies of first
packet and update are these round trips. rule_ms: a flow entry is given to the northbound for every switch of the path; time
until all switches have confirmed it.`,
		Deviation: `Not explained. The paper does not say what makes its REST slow. Weft keeps connections open for all transports and joins
calls that are under way, so that they differ by their encoding only; that REST without kept connections is as slow as the paper's has not
been tested. A process more costs two crossings for each packet-in, which the ratios to one process of the same services show.`,
		Runs: 30, QuickRuns: 5, Transports: experiments.Transports(),
		Statements: firstPacketStatements(),
		Columns:    []string{"path", "first_ms", "steady_ms", "update_ms", "rule_ms"},
		Cases:      firstPacketCases, Lasting: true, Sum: sumFirstPacket,
	}
}

// firstPacketStatements are those of section 4.3.
func firstPacketStatements() []experiments.Statement {
	return []experiments.Statement{
		experiments.Above().Said("first packet to normal flow", "the major delay is on the first packet"),
		experiments.Value(paperValues.Number("Fig. 9", "REST to WebSocket", "first\nH1-H3"), .25).OfRatio().Said("REST to WebSocket, H1-H3", "7 times"),
		experiments.Value(paperValues.Number("Fig. 9", "REST to WebSocket", "first\nH1-H10"), .25).OfRatio().Said("REST to WebSocket, H1-H10", "about 10 times"),
		experiments.Above().Said("update, REST to WebSocket", "REST is high, compared with WebSocket"),
		experiments.Range(.75, 1, 0).OfRatio().Said("gRPC to REST", "like REST, a little faster"),
		experiments.Value(1, .25).OfRatio().Said("normal flow", "the same over all"),
		experiments.AtMost(paperValues.Number("Fig. 9", "variance", ""), 0).Said("variation", "below 5 %"),
	}
}

const warmUps = 3 // runs of each path that are not counted

func firstPacketCases(p experiments.Parameters) (list []experiments.Case) {
	for _, name := range append([]string{monolith, same}, p.Transports...) {
		plan := firstPacketPlan(name)
		list = append(list, experiments.Case{Name: name, Setup: experiments.SetupOf(plan, "one packet at a time"), Open: func(ctx context.Context, _ *experiments.Context) (experiments.Subject, error) {
			s, err := open(ctx, name, plan, topology.MSNFig8())
			if err != nil {
				return nil, err
			}
			if err := warm(ctx, s); err != nil {
				return nil, errors.Join(err, s.Close())
			}
			return firstPackets{s}, nil
		}})
	}
	return list
}

// firstPacketPlan is what runs where in a case; nil is one process with every service.
func firstPacketPlan(name string) *testbed.Plan {
	switch name {
	case monolith:
		return nil
	case same:
		var all []string
		for _, w := range testbed.Split("", "", 1).Workers {
			all = append(all, w.Services...)
		}
		return &testbed.Plan{Name: "msn-same", Workers: []testbed.Worker{{Name: "weft", Services: all}}}
	}
	return testbed.Split("msn-"+name, name, 1)
}

// firstPackets is a site on which first packets are measured.
type firstPackets struct{ *site }

// Sample takes one of each path.
func (s firstPackets) Sample(ctx context.Context, round int) (rows [][]string, err error) {
	for _, p := range fig8Paths() {
		row, err := s.sample(ctx, p, uint16(round))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", p.name, err)
		}
		rows = append(rows, append([]string{p.name}, row...))
	}
	return rows, nil
}

// warm sends first packets until they get through.
func warm(ctx context.Context, s *site) error {
	for _, p := range fig8Paths() {
		for good, try := 0, 0; good < warmUps; try++ {
			m, err := s.firstPacket(ctx, p.from, p.to)
			switch {
			case err != nil:
				return err
			case !m.lost:
				good++
			case try >= 30:
				return s.Failed(fmt.Errorf("no ping gets through between %s", p.name))
			}
			if err := ctx.Err(); err != nil {
				return err
			}
		}
	}
	return nil
}

// sample is one run over a path: what it took, empty where a packet was lost.
func (s *site) sample(ctx context.Context, p path, run uint16) ([]string, error) {
	row := make([]string, 4)
	m, err := s.firstPacket(ctx, p.from, p.to)
	if err != nil {
		return nil, err
	}
	if !m.lost {
		row[0], row[1] = written(m.first), written(m.steady)
		if err := s.expire(ctx, p, m); err != nil {
			return nil, err
		}
		again, err := m.from.Ping(m.to, 1, 0, firstWait)
		switch {
		case err == nil:
			row[2] = written(milliseconds(again[0]))
		case !errors.Is(err, testbed.ErrNoAnswer):
			return nil, s.Failed(err)
		}
	}
	var dpids []topology.DPID
	for _, name := range p.switches {
		dpid, err := s.lab.SwitchDPID(name)
		if err != nil {
			return nil, err
		}
		dpids = append(dpids, dpid)
	}
	rule, err := s.SetRule(ctx, dpids, 1000+run)
	if err != nil {
		return nil, s.Failed(err)
	}
	row[3] = written(milliseconds(rule))
	time.Sleep(settleTime)
	return row, nil
}

// expire removes the flow entries between two hosts from the switches of a
// path, as their idle timeout does.
func (s *site) expire(ctx context.Context, p path, m latency) error {
	for _, sw := range p.switches {
		for _, match := range []string{
			fmt.Sprintf("dl_src=%s,dl_dst=%s", m.from.MAC, m.to.MAC),
			fmt.Sprintf("dl_src=%s,dl_dst=%s", m.to.MAC, m.from.MAC),
		} {
			if out, err := s.lab.OfCtl(ctx, sw, "del-flows", match); err != nil {
				return fmt.Errorf("remove entries from %s: %w: %s", sw, err, out)
			}
		}
	}
	time.Sleep(2 * settleTime)
	return nil
}

// The figures of a path, and what the plot calls them.
var firstPacketFigures = []struct{ column, name, title string }{
	{"first_ms", "first_packet_ms", "first packet"}, {"update_ms", "update_ms", "rule update"},
	{"steady_ms", "steady_ms", "normal flow"}, {"rule_ms", "rule_ms", "rule by the northbound, confirmed by all switches"},
}

// sumFirstPacket compares all samples with the paper and draws them.
func sumFirstPacket(c *experiments.Context) error {
	cases := append([]string{monolith, same}, c.Transports...)
	at := func(p string) experiments.Filter { return experiments.Where("path", p) }
	has := func(name string) bool { return slices.Contains(cases, name) }
	claim := func(what, statement string) experiments.Claim {
		return experiments.Claim{What: what, Says: c.Statement(statement)}
	}
	if has("rest") && has("ws") {
		c.Compare(
			claim("first packet, REST to WebSocket, H1-H3", "REST to WebSocket, H1-H3").Of(c.Ratio("first_ms", "rest", "ws", at("H1-H3"))).Beside("rest", "ws").AtMost(3),
			claim("first packet, REST to WebSocket, H1-H10", "REST to WebSocket, H1-H10").Of(c.Ratio("first_ms", "rest", "ws", at("H1-H10"))).Beside("rest", "ws").AtMost(3),
			claim("rule update, REST to WebSocket, H1-H10", "update, REST to WebSocket").Of(c.Ratio("update_ms", "rest", "ws", at("H1-H10"))).Beside("rest", "ws"))
	}
	if has("rest") && has("grpc") {
		c.Compare(claim("first packet, gRPC to REST, H1-H10", "gRPC to REST").Of(c.Ratio("first_ms", "grpc", "rest", at("H1-H10"))).Beside("grpc", "rest"))
	}
	for _, name := range c.Transports {
		for _, p := range fig8Paths() {
			c.Compare(experiments.Claim{What: fmt.Sprintf("first packet, %s to what a user gets, %s", name, p.name)}.Of(c.Ratio("first_ms", name, monolith, at(p.name))))
			to := experiments.Claim{What: fmt.Sprintf("first packet, %s to one process of the same services, %s", name, p.name)}.
				Of(c.Ratio("first_ms", name, same, at(p.name))).Beside(name, same)
			if name == "grpc" && p.name == "H1-H10" {
				to = to.AtMost(1.5)
			}
			c.Compare(to)
		}
	}
	var variation []float64
	var steady [][]float64           // of each case, by round
	var absolute []experiments.Claim // medians; what the ratios are of
	var lost []float64
	figures := map[string]map[string]map[string]experiments.Spread{}
	for _, name := range cases {
		figures[name] = map[string]map[string]experiments.Spread{}
		for _, p := range fig8Paths() {
			figures[name][p.name] = map[string]experiments.Spread{}
			for _, f := range firstPacketFigures {
				figures[name][p.name][f.name] = c.Spread(f.column, name, at(p.name))
				absolute = append(absolute, experiments.Claim{What: fmt.Sprintf("%s, %s, %s", f.title, name, p.name), Paper: "-", Unit: "ms"}.Of(c.Median(f.column, name, at(p.name))))
			}
			first := figures[name][p.name]["first_packet_ms"]
			if n := c.Measured(name); n > 0 {
				lost = append(lost, float64(n-first.Count))
			}
			if first.Count > 1 {
				variation = append(variation, 100*first.Variation)
			}
			if p.name == "H1-H10" {
				ofCase := c.Rounds("steady_ms", name, at(p.name))
				steady = append(steady, ofCase)
				c.Compare(claim("first packet to normal flow, "+name+", "+p.name, "first packet to normal flow").
					Of(measure.Ratio(c.Rounds("first_ms", name, at(p.name)), ofCase)).Beside(name, name))
			}
		}
	}
	c.Compare(
		experiments.Claim{What: "normal flow, median over all, H1-H10", Paper: "0.01 ms, on its machine", Value: paperValues.Number("Fig. 9", "normal flow", ""), Unit: "ms"}.
			Of(measure.Median(overCases(steady, quantile.Median[float64]))),
		claim("normal flow, slowest to fastest case of the same services, H1-H10", "normal flow").
			Of(measure.Median(overCases(steady[1:], func(v []float64) float64 { return slices.Max(v) / slices.Min(v) }))).Beside(same, cases[len(cases)-1]),
		experiments.Claim{What: "variation of first packets, median over cases and paths", Says: c.Statement("variation"), Unit: "%"}.Of(measure.Median(variation)),
		experiments.Claim{What: "first packets without an answer"}.Exactly(experiments.Total(lost)).AtMost(0),
	)
	c.Compare(absolute...)
	c.Figure("latency", figures)
	c.Draw(fig9(c, cases))
	return nil
}

// overCases returns, for each round, what of makes of the values of all cases; NaN where
// one is missing.
func overCases(cases [][]float64, of func([]float64) float64) []float64 {
	list := make([]float64, len(cases[0]))
	for round := range list {
		var values []float64
		for _, rounds := range cases {
			values = append(values, rounds[round])
		}
		if list[round] = of(values); slices.ContainsFunc(values, math.IsNaN) {
			list[round] = math.NaN()
		}
	}
	return list
}

// fig9 draws latencies by path, a bar for each transport, and the ratios that
// the paper names.
func fig9(c *experiments.Context, cases []string) figure.Figure {
	f := figure.Figure{Name: "Fig. 9", Title: "latency by transport between the services"}
	hosts := figure.Axis{}
	for _, p := range fig8Paths() {
		hosts.Names = append(hosts.Names, p.name)
	}
	for _, what := range firstPacketFigures {
		panel := figure.Panel{Title: what.title, X: hosts, Y: figure.Axis{Label: "ms"}}
		for i, name := range cases {
			bars := figure.Series{Name: name, Kind: figure.Bars, Colour: i}
			for x, p := range hosts.Names {
				bars.Points = append(bars.Points, figure.At(float64(x), c.Median(what.column, name, experiments.Where("path", p)), name))
			}
			panel.Series = append(panel.Series, bars)
		}
		f.Panels = append(f.Panels, panel)
	}
	if !slices.Contains(cases, "rest") || !slices.Contains(cases, "ws") {
		return f
	}
	ratio := figure.Panel{Title: "REST to WebSocket", Y: figure.Axis{Label: "ratio"}}
	ours := figure.Series{Name: "REST to WebSocket, Weft", Kind: figure.Bars, Colour: 6}
	for _, column := range []string{"first_ms", "update_ms"} {
		for _, p := range hosts.Names {
			ratio.X.Names = append(ratio.X.Names, strings.TrimSuffix(column, "_ms")+"\n"+p)
			ours.Points = append(ours.Points, figure.At(float64(len(ours.Points)), c.Ratio(column, "rest", "ws", experiments.Where("path", p)), "rest"))
		}
	}
	ratio.Series = []figure.Series{ours, paperValues.Series("Fig. 9", "REST to WebSocket", figure.Bars, ratio.X)}
	f.Panels = append(f.Panels, ratio)
	return f
}
