package msn

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/weft-sdn/weft/experiments"
	"github.com/weft-sdn/weft/experiments/testbed"
	"github.com/weft-sdn/weft/lab"
)

// monolith is the case of one process.
const monolith = "single"

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

// The columns of the samples.
const (
	colFirst = 3 + iota
	colSteady
	colUpdate
	colRule
)

func firstPacket() experiments.Experiment {
	return experiments.Experiment{
		Name: "msn-first-packet", Title: "latency of first packets and rule updates, by transport between the services",
		Paper: paper, Figure: "Fig. 9, on the topology of Fig. 8",
		Claim: `The major delay is on the first packet. REST is seven times slower than WebSocket between H1 and H3 (two
switches), about ten times between H1 and H10 (five switches); gRPC is like REST, a little faster. REST is also slow for
rule updates, compared with WebSocket and with plain Ryu. Normal flow is the same over all: 0.01 ms on average. Averages of
30 runs, variance below 5 %. (The figure's own numbers are not in its text.)`,
		Method: `Controllers of one process and of four (southbound | discovery, hosts | paths, forwarding | northbound) over each
transport, each with real switches of its own, take turns run by run. A run gives both hosts addresses that nobody has heard
of. first_ms: round trip of the first ping, ARP included. steady_ms: median round trip of the next 20. update_ms: the flow
entries of the pair are removed from all switches, as if they had expired; round trip of the next ping. The latency of first
packet and update is that less steady_ms. rule_ms: a flow entry is given to the northbound for every switch of the path; time
until all switches have confirmed it.`,
		Runs: 30, QuickRuns: 5, Transports: experiments.Transports(),
		Columns: []string{"case", "path", "run", "first_ms", "steady_ms", "update_ms", "rule_ms"},
		Run:     runFirstPacket,
	}
}

const warmUps = 3 // runs of each path that are not counted

func runFirstPacket(ctx context.Context, c *experiments.Context) (err error) {
	if err := needLab(); err != nil {
		return err
	}
	cases := append([]string{monolith}, c.Transports...)
	missing := func(name string) bool {
		return slices.ContainsFunc(fig8Paths(), func(p path) bool { return !c.Data.Has(name, p.name, strconv.Itoa(c.Runs)) })
	}
	total := len(cases) * len(fig8Paths()) * c.Runs
	c.Progress.Begin("msn-first-packet", total, len(c.Data.Rows()))
	sites := map[string]*site{}
	defer func() {
		for _, s := range sites {
			err = errors.Join(err, s.close())
		}
	}()
	for _, name := range cases {
		if !missing(name) {
			continue
		}
		var plan *testbed.Plan // none is one process
		if name != monolith {
			plan = testbed.Split("msn-"+name, name, 1)
		}
		s, err := open(ctx, name, plan, lab.MSNFig8())
		if err != nil {
			return err
		}
		sites[name] = s
		if err := warm(ctx, s); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		c.Progress.Say("%s is ready", name)
	}
	for run := 1; run <= c.Runs; run++ {
		for _, p := range fig8Paths() {
			for _, name := range cases {
				key := []string{name, p.name, strconv.Itoa(run)}
				if c.Data.Has(key...) {
					continue
				}
				if err := ctx.Err(); err != nil {
					return err
				}
				row, err := sites[name].sample(ctx, p, uint16(run))
				if err != nil {
					return fmt.Errorf("%s, %s, run %d: %w", name, p.name, run, err)
				}
				if err := c.Data.Add(append(key, row...)); err != nil {
					return err
				}
				c.Progress.Step(fmt.Sprintf("%s %s run %d", name, p.name, run))
			}
		}
	}
	return sumFirstPacket(c, cases)
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

// sample is one run over a path: the figures from colFirst on, empty where a
// packet was lost.
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
	var dpids []lab.DPID
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

// sumFirstPacket compares all samples with the paper and draws them.
func sumFirstPacket(c *experiments.Context, cases []string) error {
	added := func(name, path string, at int) []float64 { return less(c.Data, at, colSteady, name, path) }
	ratio := func(a, b, path string, at int) float64 {
		return experiments.Ratio(middle(added(a, path, at)), middle(added(b, path, at)))
	}
	has := func(name string) bool { return slices.Contains(cases, name) }
	if has("rest") && has("ws") {
		c.Compare(
			experiments.Claim{What: "first packet, REST to WebSocket, H1-H3", Paper: "7 times", Value: 7, Ours: ratio("rest", "ws", "H1-H3", colFirst)}.AtMost(3),
			experiments.Claim{What: "first packet, REST to WebSocket, H1-H10", Paper: "about 10 times", Value: 10, Ours: ratio("rest", "ws", "H1-H10", colFirst)}.AtMost(3),
			experiments.Claim{What: "rule update, REST to WebSocket, H1-H10", Paper: "REST is high", Ours: ratio("rest", "ws", "H1-H10", colUpdate)},
		)
	}
	if has("rest") && has("grpc") {
		c.Compare(experiments.Claim{What: "first packet, gRPC to REST, H1-H10", Paper: "like REST, a little faster", Ours: ratio("grpc", "rest", "H1-H10", colFirst)})
	}
	for _, name := range cases[1:] {
		for _, p := range fig8Paths() {
			claim := experiments.Claim{What: fmt.Sprintf("first packet, %s to one process, %s", name, p.name), Paper: "-", Ours: ratio(name, monolith, p.name, colFirst)}
			if name == "grpc" && p.name == "H1-H10" {
				claim = claim.AtMost(1.5)
			}
			c.Compare(claim)
		}
	}
	var steady, variation []float64
	var absolute []experiments.Claim // medians; what the ratios are of
	lost := 0
	figures := map[string]map[string]map[string]experiments.Spread{}
	for _, name := range cases {
		figures[name] = map[string]map[string]experiments.Spread{}
		for _, p := range fig8Paths() {
			first := experiments.NewSpread(added(name, p.name, colFirst))
			figures[name][p.name] = map[string]experiments.Spread{
				"first_packet_ms": first, "update_ms": experiments.NewSpread(added(name, p.name, colUpdate)),
				"steady_ms": experiments.NewSpread(column(c.Data, colSteady, name, p.name)), "rule_ms": experiments.NewSpread(column(c.Data, colRule, name, p.name)),
				"first_rtt_ms": experiments.NewSpread(column(c.Data, colFirst, name, p.name)),
			}
			lost += c.Runs - first.Count
			variation = append(variation, first.Variation)
			absolute = append(absolute, experiments.Claim{What: fmt.Sprintf("first packet, %s, %s", name, p.name), Paper: "-", Ours: first.Median, Unit: "ms"},
				experiments.Claim{What: fmt.Sprintf("rule update, %s, %s", name, p.name), Paper: "-", Ours: figures[name][p.name]["update_ms"].Median, Unit: "ms"},
				experiments.Claim{What: fmt.Sprintf("rule to all switches, %s, %s", name, p.name), Paper: "-", Ours: figures[name][p.name]["rule_ms"].Median, Unit: "ms"})
			if p.name == "H1-H10" {
				steady = append(steady, figures[name][p.name]["steady_ms"].Median)
			}
		}
	}
	c.Compare(
		experiments.Claim{What: "normal flow, median over all, H1-H10", Paper: "0.01 ms", Value: 0.01, Ours: middle(steady), Unit: "ms"},
		experiments.Claim{What: "normal flow, slowest to fastest case", Paper: "alike", Value: 1, Ours: experiments.Ratio(slices.Max(steady), slices.Min(steady))},
		experiments.Claim{What: "variation of first packets, median over cases", Paper: "below 5 %", Value: 5, Ours: 100 * middle(variation), Unit: "%"},
		experiments.Claim{What: "first packets without an answer", Paper: "-", Ours: float64(lost)}.AtMost(0),
	)
	c.Compare(absolute...)
	c.Figure("latency", figures)
	return drawFirstPacket(c, cases, figures)
}

func drawFirstPacket(c *experiments.Context, cases []string, figures map[string]map[string]map[string]experiments.Spread) error {
	var names []string
	var groups []experiments.Group
	for i, name := range cases {
		g := experiments.Group{Name: name}
		for _, what := range []string{"first_packet_ms", "update_ms", "rule_ms"} {
			for _, p := range fig8Paths() {
				if i == 0 {
					names = append(names, map[string]string{"first_packet_ms": "first ", "update_ms": "update ", "rule_ms": "rule "}[what]+p.name)
				}
				g.Spreads = append(g.Spreads, figures[name][p.name][what])
			}
		}
		groups = append(groups, g)
	}
	p, err := experiments.Bars("first packet, rule update, rule by the northbound: medians, 5th to 95th percentile", "latency, ms", names, groups)
	if err != nil {
		return err
	}
	c.Draw(p)
	return nil
}

// less returns the figures of one column less those of another, of the samples
// that have both.
func less(d *experiments.Data, at, minus int, key ...string) []float64 {
	var values []float64
	for _, row := range d.Rows() {
		if !slices.Equal(row[:len(key)], key) {
			continue
		}
		a, okA := read(row[at])
		b, okB := read(row[minus])
		if okA && okB {
			values = append(values, a-b)
		}
	}
	return values
}
