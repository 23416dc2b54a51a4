package hydra

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"os/exec"
	"slices"
	"strconv"
	"time"

	"github.com/weft-sdn/weft/bench/experiments"
	"github.com/weft-sdn/weft/bench/experiments/figure"
	"github.com/weft-sdn/weft/bench/sim"
	"github.com/weft-sdn/weft/internal/backoff"
	"github.com/weft-sdn/weft/internal/companion"
	"github.com/weft-sdn/weft/plan"
	"github.com/weft-sdn/weft/test/measure"
)

// demands is the experiment of Fig. 5 and Table 1.
func demands() experiments.Experiment {
	return experiments.Experiment{
		Name: "hydra-demand", Title: "time of processors and memory by service, load and size of the partition",
		Paper: paper, Figure: "Fig. 5 and Table 1",
		Claim: `On 4 cores, of one: idle 15 %; at 50,000 packet-ins a second route lookup (RL) 45 %, firewall (FW) with 50,000 rules 7 %;
heartbeats (HB) 3 %; shortest paths (DJ) at a failure every 10 s 25 % in 4 partitions, less the more partitions there are, whatever
the load. Memory, of the whole network: DJ 6.25 GB, RL 3.75 GB, FW 1.25 GB. A controller saturates at about 50,000 a second.`,
		Method: `One of P partitions of the paper's fat tree of 2,560 switches, simulated; firewall with 50,000 rules; all that is on the way
of packets, heartbeats and path computation in one process on the first processor, the switches on the second. The controller
profiles itself (weft profile): each sample of its time is the service's whose code is innermost, the rest is the process's.
load: packet-ins between hosts of the partition at a rate, of one of 8 partitions. failures: no packet-ins, and a link that fails and
comes back ten times a second, without rules where that is all; per change of the topology, so that a rate of failures follows. idle:
neither. As a user gets it: one process of weft up, no processor or priority of its own, and the switches likewise, under load.
Each turn starts its controller anew. Time is sampled every 10 ms, memory every 512 KiB that are taken: nothing is less than one
sample, and intervals are over the rounds. RL is forwarding and paths under load, DJ is paths under failures, idle is all at rest,
the process itself included.`,
		Deviation: `The paper's controller is Floodlight, of Java objects, on one of four cores of another processor. Weft repairs paths after a
failure instead of computing all anew, so DJ takes next to nothing. Memory is compared for the whole network only (one partition):
what the paper's Table 1 is of; the rows of other sizes have no value of the paper's.`,
		Runs: 10, QuickRuns: 1, Transports: []string{"grpc"},
		Statements: demandStatements(),
		Columns:    []string{"kind", "rate", "service", "cpu_percent", "memory_mib", "answered_per_s", "changes_per_s"},
		Cases: func(p experiments.Parameters) (list []experiments.Case) {
			for _, of := range demandControllers(p.Quick) {
				list = append(list, experiments.Case{Name: of.String(), Setup: of.setup(), Open: of.open})
			}
			return list
		},
		Sum: sumDemands,
	}
}

// demandStatements are those of section 5.2.
func demandStatements() []experiments.Statement {
	lookup := paperValues.Number("Fig. 5", "RL", "50000")
	memory := func(service string) float64 { return paperValues.Number("Table 1", "memory", service) }
	return []experiments.Statement{
		experiments.Value(lookup/paperValues.Number("Fig. 5", "FW", "50000"), .25).OfRatio().Said("RL to FW", "45 % to 7 % at 50,000/s with 50,000 rules"),
		experiments.Value(paperValues.Number("Fig. 5", "idle", "all")/lookup, .25).OfRatio().Said("idle to RL", "15 % to 45 % at 50,000/s"),
		experiments.Value(paperValues.Number("Fig. 5", "HB", "all")/lookup, .25).OfRatio().Said("HB to RL", "3 % to 45 % at 50,000/s"),
		experiments.Below().Said("DJ falls", "reduces with the number of partitions"),
		experiments.Value(memory("DJ")/memory("RL"), .25).OfRatio().Said("DJ to RL, memory", "6.25 to 3.75 GB"),
		experiments.Value(memory("RL")/memory("FW"), .25).OfRatio().Said("RL to FW, memory", "3.75 to 1.25 GB"),
	}
}

// demandKind is one kind of sample.
type demandKind struct {
	kind string // idle, load or failures
	rate int    // packet-ins per second
}

// The kinds.
const (
	atRest      = "idle"
	underLoad   = "load"
	withFailing = "failures"
)

func (d demandKind) where(service string) experiments.Filter {
	return experiments.Where("kind", d.kind, "rate", strconv.Itoa(d.rate), "service", service)
}

// demandController is a controller, and what is measured of it.
type demandController struct {
	sliceConfig
	kinds []demandKind
}

func demandRates(quick bool) []int {
	if quick {
		return []int{5_000, 10_000}
	}
	return []int{10_000, 20_000, 30_000, 40_000, 50_000}
}

// demandControllers returns what is measured, the one under load first.
func demandControllers(quick bool) (list []demandController) {
	sizes, rules := []int{8, 4, 2, 1}, 50_000
	if quick {
		sizes, rules = []int{16, 8}, 5_000
	}
	idle, failing := demandKind{kind: atRest}, demandKind{kind: withFailing}
	var loads []demandKind
	for _, r := range demandRates(quick) {
		loads = append(loads, demandKind{underLoad, r})
	}
	for i, p := range sizes {
		c := demandController{sliceConfig{slicing: topologicalSlicing, partitions: p, heartbeats: true, all: true}, []demandKind{idle, failing}}
		if i == 0 {
			c.rules, c.kinds = rules, append(append([]demandKind{idle}, loads...), failing)
		}
		list = append(list, c)
	}
	return append(list, demandController{sliceConfig{partitions: sizes[0], rules: rules, shipped: true}, append([]demandKind{idle}, loads...)})
}

// demandTime is how long a sample takes.
const demandTime = 2 * time.Second

// sampleTries is how often a sample is tried.
const sampleTries = 3

// demanding is a controller that is measured.
type demanding struct {
	*slice
	*experiments.Context
	kinds []demandKind
}

func (d demandController) open(ctx context.Context, c *experiments.Context) (experiments.Subject, error) {
	s, err := d.start(ctx)
	if err != nil {
		return nil, err
	}
	return demanding{s, c, d.kinds}, nil
}

// Sample takes all kinds.
func (s demanding) Sample(ctx context.Context, round int) (all [][]string, err error) {
	taken := map[string]*plan.Profile{} // by kind; the first of each
	for _, d := range s.kinds {
		p, rows, err := d.sample(ctx, s.slice, demandTime, s.Seed+uint64(round))
		for try := 1; err != nil && ctx.Err() == nil && try < sampleTries; try++ { // a process was too busy to answer in time
			p, rows, err = d.sample(ctx, s.slice, demandTime, s.Seed+uint64(round))
		}
		if err != nil {
			return nil, s.failed(fmt.Errorf("%s, %d/s: %w", d.kind, d.rate, err))
		}
		for _, row := range rows {
			all = append(all, append([]string{d.kind, strconv.Itoa(d.rate)}, row...))
		}
		if taken[d.kind] == nil {
			taken[d.kind] = p
		}
		s.Progress.Say("%v: %s, %d/s", s.sliceConfig, d.kind, d.rate)
	}
	if idle, busy, failing := taken[atRest], taken[underLoad], taken[withFailing]; round == 1 && idle != nil && busy != nil && failing != nil {
		busy.Delays = idle.Delays // others wait for the work, too
		idle.Derive()
		failing.Derive(idle)
		busy.Derive(idle, failing)
		s.Context.Figure("profile", string(busy.YAML(
			"A measured profile of a controller: what its services take, for weft plan make.",
			fmt.Sprintf("Measured by: weft experiment run hydra-demand -o json, as profile; %d simulated switches, firewall with %d rules, a link failing every %v for per_change.", busy.Switches, s.rules, failEvery),
			fmt.Sprintf("0 is no sample of 10 ms in %v: per_packet less than %v, per_change than %v.", demandTime,
				10*time.Millisecond/time.Duration(max(1, busy.PacketIns*busy.Seconds)), 10*time.Millisecond/time.Duration(max(1, failing.Changes*failing.Seconds))),
		)))
	}
	return all, nil
}

// sample profiles the controller while the case goes on.
func (d demandKind) sample(ctx context.Context, s *slice, span time.Duration, seed uint64) (p *plan.Profile, rows [][]string, err error) {
	during, end := context.WithCancel(ctx)
	over := make(chan error, 1)
	answered := 0.0
	switch d.kind {
	case underLoad:
		go func() {
			var err error
			answered, err = s.load(ctx, during, d.rate, seed)
			over <- err
		}()
	case withFailing:
		go func() { over <- s.fail(during, sim.FailRandom, failEvery, seed) }()
	default:
		over <- nil
	}
	_ = backoff.Sleep(ctx, time.Second) // until what it costs is what it costs always
	p, err = s.profile(ctx, span)
	end()
	if ended := <-over; err == nil {
		err = ended
	}
	if err == nil && p.PacketIns < float64(d.rate)/2 && answered > float64(d.rate)/2 {
		err = fmt.Errorf("weft profile: %.0f packet-ins a second, of %d: it did not look at the load", p.PacketIns, d.rate)
	}
	if err != nil {
		return nil, nil, err
	}
	cell := func(f plan.Figure, scale float64) string {
		if !f.Known {
			return ""
		}
		return number(f.Value * scale)
	}
	row := func(name string, of plan.Demand) {
		rows = append(rows, []string{name, cell(of.CPU, 100), cell(of.Memory, 1.0/(1<<20)), number(answered), number(p.Changes)})
	}
	row(processRow, p.Process)
	for _, of := range p.Services {
		row(of.Service, of)
	}
	return p, rows, nil
}

// failEvery is the time from one failure of a link to the next. The paper's are
// rarer; so many are needed for their cost to be seen.
const failEvery = 100 * time.Millisecond

// load has packet-ins come at a rate until during ends, and returns how many a
// second were answered.
func (s *slice) load(ctx, during context.Context, rate int, seed uint64) (answered float64, err error) {
	const piece = 2 * time.Second
	for n := 1.0; ; n++ {
		r, err := s.net.Measure(ctx, sim.Load{Flows: flows, Seed: seed, Window: sim.MaxWindow, Rate: float64(rate), Duration: piece})
		if err != nil {
			return 0, err
		}
		if answered += (r.AnswersPerSecond() - answered) / n; during.Err() != nil {
			return answered, nil
		}
	}
}

// processRow is the service's name of what no service is charged with.
const processRow = "process"

// profile has the controller profile itself. A process that has not answered is
// an error.
func (s *slice) profile(ctx context.Context, span time.Duration) (*plan.Profile, error) {
	program, err := companion.Find("weft")
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, program, "profile", "--server", "http://"+s.control.North[0], "--seconds", fmt.Sprint(span.Seconds()), "-o", "yaml")
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("weft profile: %w: %s", err, said.String())
	}
	p, err := plan.ParseProfile("weft profile", out.Bytes())
	if err == nil && !(p.Of("southbound").CPU.Known && p.Of("gateway").CPU.Known) {
		err = fmt.Errorf("weft profile: %s", said.String())
	}
	return p, err
}

// summed is, in each round, a column summed over some services; over all of them
// if none are named. A service without a sample has taken nothing.
func summed(c *experiments.Context, name string, d demandKind, column string, services ...string) []float64 {
	list := make([]float64, c.Runs)
	for i := range list {
		list[i] = math.NaN()
	}
	if len(services) == 0 {
		for _, s := range c.Texts("service", name, experiments.Where("kind", d.kind, "rate", strconv.Itoa(d.rate))) {
			if !slices.Contains(services, s) {
				services = append(services, s)
			}
		}
	}
	for round := range list {
		for _, s := range services {
			if !c.Has(name, round+1, d.where(s)) {
				continue
			}
			if math.IsNaN(list[round]) {
				list[round] = 0
			}
			if v := c.Rounds(column, name, d.where(s))[round]; !math.IsNaN(v) {
				list[round] += v
			}
		}
	}
	return list
}

// atTenSeconds is, in each round, the share of a processor that path computation
// takes at a failure every 10 s, as the paper has it: the failure and the coming
// back are two changes.
func atTenSeconds(c *experiments.Context, name string) []float64 {
	d := demandKind{kind: withFailing}
	list := summed(c, name, d, "cpu_percent", "paths")
	for i, changes := range c.Rounds("changes_per_s", name, d.where("paths")) {
		if list[i] *= 2.0 / 10 / changes; math.IsInf(list[i], 0) {
			list[i] = math.NaN()
		}
	}
	return list
}

// applications are those of the paper, and what else there is.
var applications = []struct {
	name     string
	services []string
}{
	{"RL", []string{"forwarding", "paths"}}, {"FW", []string{"firewall"}}, {"HB", []string{"heartbeat"}},
	{"southbound", []string{"southbound"}}, {"hosts, discovery", []string{"hosts", "discovery"}}, {"the process itself", []string{processRow}},
}

func sumDemands(c *experiments.Context) error {
	all := demandControllers(c.Quick)
	loaded, shipped := all[0], all[len(all)-1]
	sizes := all[:len(all)-1]
	rates := demandRates(c.Quick)
	idle, highest := demandKind{kind: atRest}, demandKind{underLoad, rates[len(rates)-1]}
	of := func(d demandController, k demandKind, column string, services ...string) measure.Interval {
		return measure.Median(summed(c, d.String(), k, column, services...))
	}
	at := func(text string) string { return fmt.Sprintf("%s, %d packet-ins/s", text, highest.rate) }
	percent := func(what, paper string, value float64, i measure.Interval) experiments.Claim {
		return experiments.Claim{Figure: "Fig. 5", What: what, Paper: paper, Value: value, Unit: "%"}.Of(i)
	}
	c.Compare(
		percent("idle", "about 15 %", 15, of(loaded, idle, "cpu_percent")),
		percent(at("RL"), "45 % at 50,000/s", 45, of(loaded, highest, "cpu_percent", "forwarding", "paths")),
		percent(at(fmt.Sprintf("FW, %d rules", loaded.rules)), "7 %", 7, of(loaded, highest, "cpu_percent", "firewall")),
		percent(at("HB"), "3 %", 3, of(loaded, highest, "cpu_percent", "heartbeat")),
		percent(at("the whole controller"), "about 100 %: it saturates at 50,000/s", 100, of(loaded, highest, "cpu_percent")),
		percent(at("the whole controller, as a user gets it"), "-", 0, of(shipped, highest, "cpu_percent")),
	)
	compareDemands(c, loaded, sizes, highest)
	for _, d := range sizes {
		says, value := "falls with the partitions", 0.0
		if d.partitions == 4 {
			says, value = "25 %", 25
		}
		ours := measure.Median(atTenSeconds(c, d.String()))
		c.Compare(percent(fmt.Sprintf("DJ (%dP), a failure every 10 s", d.partitions), says, value, ours))
		if ours.Count > 0 {
			c.Figure(fmt.Sprintf("paths_percent_%d_partitions", d.partitions), ours.Median)
		}
	}
	for _, d := range sizes {
		for _, m := range []struct {
			what, service string
			gigabytes     float64
		}{{"DJ (paths)", "paths", 6.25}, {"RL (forwarding)", "forwarding", 3.75}, {"FW (firewall)", "firewall", 1.25}} {
			if m.service == "firewall" && d.rules == 0 {
				continue
			}
			claim := experiments.Claim{Figure: "Table 1", What: fmt.Sprintf("memory of %s, one of %d partitions", m.what, d.partitions), Paper: "-", Unit: "MB"}.
				Of(scaled(of(d, idle, "memory_mib", m.service), 1.048576))
			if d.partitions == 1 || m.service == "firewall" { // rules are the same in all partitions
				claim.Paper, claim.Value = fmt.Sprintf("%g GB of the whole network", m.gigabytes), m.gigabytes*1e3
			}
			c.Compare(claim)
		}
	}
	c.Draw(fig5(c, loaded, shipped, sizes), table1(c, sizes))
	return nil
}

// compareDemands compares what the paper says of applications to each other: its
// processor is another one.
func compareDemands(c *experiments.Context, loaded demandController, sizes []demandController, highest demandKind) {
	of := func(d demandController, k demandKind, column string, services ...string) []float64 {
		return summed(c, d.String(), k, column, services...)
	}
	void := ""
	if loaded.rules != 50_000 || highest.rate != 50_000 {
		void = fmt.Sprintf("%d packet-ins/s and %d rules, and the paper has 50,000 of both: not a quick run", highest.rate, loaded.rules)
	}
	ratio := func(figure, what, statement string, a, b []float64) experiments.Claim {
		return experiments.Claim{Figure: figure, What: what, Says: c.Statement(statement), Void: void}.Of(measure.Ratio(a, b)).Beside(loaded.String(), loaded.String())
	}
	used := func(services ...string) []float64 { return of(loaded, highest, "cpu_percent", services...) }
	lookup, idle := used("forwarding", "paths"), demandKind{kind: atRest}
	c.Compare(
		ratio("Fig. 5", "RL to FW", "RL to FW", lookup, used("firewall")),
		ratio("Fig. 5", "idle to RL", "idle to RL", of(loaded, idle, "cpu_percent"), lookup),
		ratio("Fig. 5", "HB to RL", "HB to RL", used("heartbeat"), lookup))
	for i, fewer := range sizes[1:] {
		more := sizes[i]
		c.Compare(experiments.Claim{Figure: "Fig. 5", What: fmt.Sprintf("DJ (%dP) to DJ (%dP)", more.partitions, fewer.partitions), Says: c.Statement("DJ falls")}.
			Of(measure.Ratio(atTenSeconds(c, more.String()), atTenSeconds(c, fewer.String()))).Beside(more.String(), fewer.String(), experiments.AboutLoad))
	}
	whole := sizes[len(sizes)-1]
	memory := func(d demandController, service string) []float64 { return of(d, idle, "memory_mib", service) }
	if whole.partitions != 1 {
		void = "a partition, and the paper has the whole network: not a quick run"
	}
	c.Compare(
		ratio("Table 1", "memory, DJ to RL", "DJ to RL, memory", memory(whole, "paths"), memory(whole, "forwarding")).Beside(whole.String(), whole.String()),
		ratio("Table 1", "memory, RL to FW", "RL to FW, memory", memory(whole, "forwarding"), memory(loaded, "firewall")).
			Beside(whole.String(), loaded.String(), experiments.AboutLoad)) // rules are the same in all partitions
}

// fig5 draws the time of processors by application and load, and of DJ by the
// number of partitions.
func fig5(c *experiments.Context, loaded, shipped demandController, sizes []demandController) figure.Figure {
	load := figure.Panel{Title: loaded.String(), X: figure.Axis{Label: "packet-ins per second"}, Y: figure.Axis{Label: "% of a processor"}}
	rates := append([]int{0}, demandRates(c.Quick)...)
	for _, r := range rates {
		load.X.Names = append(load.X.Names, strconv.Itoa(r))
	}
	same := load
	same.Title = shipped.String()
	kind := func(rate int) demandKind {
		if rate == 0 {
			return demandKind{kind: atRest}
		}
		return demandKind{underLoad, rate}
	}
	for i, a := range applications {
		for _, of := range []struct {
			d *figure.Panel
			c demandController
		}{{&load, loaded}, {&same, shipped}} {
			s := figure.Series{Name: a.name, Kind: figure.Bars, Colour: i}
			for x, r := range rates {
				s.Points = append(s.Points, figure.At(float64(x), measure.Median(summed(c, of.c.String(), kind(r), "cpu_percent", a.services...)), of.c.String()))
			}
			of.d.Series = append(of.d.Series, s)
		}
	}
	for i, series := range []string{"RL", "FW"} {
		if s := paperValues.Series("Fig. 5", series, figure.Dots, load.X); len(s.Points) > 0 {
			s.Colour = i
			load.Series = append(load.Series, s)
		}
	}
	dj := figure.Panel{Title: "DJ at a failure every 10 s", X: figure.Axis{Label: "partitions"}, Y: figure.Axis{Label: "% of a processor", Log: true}}
	bars := figure.Series{Name: "DJ", Kind: figure.Bars, Colour: 6}
	for x, d := range sizes {
		dj.X.Names = append(dj.X.Names, strconv.Itoa(d.partitions))
		bars.Points = append(bars.Points, figure.At(float64(x), measure.Median(atTenSeconds(c, d.String())), d.String()))
	}
	dj.Series = append(dj.Series, bars)
	if s := paperValues.Series("Fig. 5", "DJ", figure.Dots, dj.X); len(s.Points) > 0 {
		s.Colour = 2
		dj.Series = append(dj.Series, s)
	}
	return figure.Figure{Name: "Fig. 5", Title: "time of processors by application", Panels: []figure.Panel{load, same, dj},
		Notes: []string{"RL is forwarding and paths, FW firewall, HB heartbeat. The paper besides: idle 15 %, HB 3 %, both whatever the load."}}
}

// table1 draws the memory by application and number of partitions.
func table1(c *experiments.Context, sizes []demandController) figure.Figure {
	p := figure.Panel{X: figure.Axis{Names: []string{"DJ", "RL", "FW"}}, Y: figure.Axis{Label: "MB", Log: true}}
	for i, d := range sizes {
		s := figure.Series{Name: fmt.Sprintf("one of %d partitions", d.partitions), Kind: figure.Bars, Colour: i + 1}
		for x, service := range []string{"paths", "forwarding", "firewall"} {
			if service == "firewall" && d.rules == 0 {
				continue
			}
			s.Points = append(s.Points, figure.At(float64(x), scaled(measure.Median(summed(c, d.String(), demandKind{kind: atRest}, "memory_mib", service)), 1.048576), d.String()))
		}
		p.Series = append(p.Series, s)
	}
	p.Series = append(p.Series, paperValues.Series("Table 1", "memory", figure.Bars, p.X))
	return figure.Figure{Name: "Table 1", Title: "memory by application", Panels: []figure.Panel{p}, Notes: []string{"The paper's is of the whole network, which is one partition; FW is measured where there are rules."}}
}
