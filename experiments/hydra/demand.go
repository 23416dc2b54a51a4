package hydra

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"time"

	"gonum.org/v1/plot/plotter"

	"github.com/weft-sdn/weft/experiments"
	"github.com/weft-sdn/weft/plan"
	"github.com/weft-sdn/weft/sim"
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
neither. Time is sampled every 10 ms, memory every 512 KiB that are taken: nothing is less than one sample.
RL is forwarding and paths under load, DJ is paths under failures, idle is all at rest, the process itself included.`,
		Runs: 2, QuickRuns: 1, Transports: []string{"grpc"},
		Columns: []string{"kind", "partitions", "rate", "run", "service", "cpu_percent", "memory_mib", "answered_per_s", "changes_per_s"},
		Run:     runDemands,
	}
}

// demandCase is one kind of sample.
type demandCase struct {
	kind       string // idle, load or failures
	partitions int
	rate       int // packet-ins per second
}

// The kinds.
const (
	atRest      = "idle"
	underLoad   = "load"
	withFailing = "failures"
)

func (d demandCase) key() []string {
	return []string{d.kind, strconv.Itoa(d.partitions), strconv.Itoa(d.rate)}
}

// demandCases returns what is measured, those of one controller together.
func demandCases(quick bool) [][]demandCase {
	sizes, rates := []int{8, 4, 2, 1}, []int{10_000, 20_000, 30_000, 40_000, 50_000}
	if quick {
		sizes, rates = []int{16, 8}, []int{5_000, 10_000}
	}
	var all [][]demandCase
	for i, p := range sizes {
		list := []demandCase{{atRest, p, 0}}
		for _, r := range rates {
			if i == 0 {
				list = append(list, demandCase{underLoad, p, r})
			}
		}
		all = append(all, append(list, demandCase{withFailing, p, 0}))
	}
	return all
}

// demandTime is how long a sample takes.
func demandTime(quick bool) time.Duration {
	if quick {
		return 2 * time.Second
	}
	return 12 * time.Second
}

func runDemands(ctx context.Context, c *experiments.Context) error {
	all := demandCases(c.Quick)
	total, taken := 0, 0
	for _, list := range all {
		for _, d := range list {
			for run := 1; run <= c.Runs; run++ {
				total++
				if c.Data.Has(append(d.key(), strconv.Itoa(run))...) {
					taken++
				}
			}
		}
	}
	c.Progress.Begin("hydra-demand", total, taken)
	for _, list := range all {
		err := demandsOf(ctx, c, list)
		switch {
		case err == nil:
		case ctx.Err() != nil || slices.ContainsFunc(list, func(d demandCase) bool { return d.kind == underLoad }):
			return fmt.Errorf("%d partitions: %w", list[0].partitions, err)
		default: // one processor is too little for so many switches; the others say what they say
			c.Figure(fmt.Sprintf("not_measured_%d_partitions", list[0].partitions), err.Error())
			c.Progress.Step(fmt.Sprintf("%d partitions: not measured: %v", list[0].partitions, err))
		}
	}
	return sumDemands(c, all)
}

// demandRules is how many rules the firewall has: those of the paper where the
// firewall is looked at, a tenth of them in a quick run.
func demandRules(list []demandCase, quick bool) int {
	switch {
	case !slices.ContainsFunc(list, func(d demandCase) bool { return d.kind == underLoad }):
		return 0
	case quick:
		return 5_000
	}
	return 50_000
}

// sampleTries is how often a sample is tried.
const sampleTries = 3

// demandsOf takes the samples of one controller.
func demandsOf(ctx context.Context, c *experiments.Context, list []demandCase) (err error) {
	missing := func(d demandCase, run int) bool { return !c.Data.Has(append(d.key(), strconv.Itoa(run))...) }
	wanted := false
	for run := 1; run <= c.Runs; run++ {
		wanted = wanted || slices.ContainsFunc(list, func(d demandCase) bool { return missing(d, run) })
	}
	if !wanted {
		return nil
	}
	s, err := sliceConfig{slicing: topologicalSlicing, partitions: list[0].partitions, rules: demandRules(list, c.Quick), heartbeats: true, all: true}.start(ctx)
	if err != nil {
		return err
	}
	defer func() {
		if end := s.close(); err == nil {
			err = end
		}
	}()
	taken := map[string]*plan.Profile{} // by kind; the first of each
	for run := 1; run <= c.Runs; run++ {
		for _, d := range list {
			if !missing(d, run) {
				continue
			}
			p, rows, err := d.sample(ctx, s, demandTime(c.Quick), c.Seed+uint64(run))
			for try := 1; err != nil && ctx.Err() == nil && try < sampleTries; try++ { // a process was too busy to answer in time
				p, rows, err = d.sample(ctx, s, demandTime(c.Quick), c.Seed+uint64(run))
			}
			if err != nil {
				return s.failed(err)
			}
			for i := range rows {
				rows[i] = append(append(d.key(), strconv.Itoa(run)), rows[i]...)
			}
			if err := c.Data.Add(rows...); err != nil {
				return err
			}
			if taken[d.kind] == nil {
				taken[d.kind] = p
			}
			c.Progress.Step(fmt.Sprintf("%s of one of %d partitions, %d packet-ins/s, run %d", d.kind, d.partitions, d.rate, run))
		}
	}
	if idle, busy, failing := taken[atRest], taken[underLoad], taken[withFailing]; idle != nil && busy != nil && failing != nil {
		busy.Delays = idle.Delays // others wait for the work, too
		idle.Derive()
		failing.Derive(idle)
		busy.Derive(idle, failing)
		c.Figure("profile", string(busy.YAML(
			"A measured profile of a controller: what its services take, for weft plan make.",
			fmt.Sprintf("Measured by: weft experiment run hydra-demand -o json, as profile; %d simulated switches, firewall with %d rules, a link failing every %v for per_change.", busy.Switches, demandRules(list, c.Quick), failEvery),
			fmt.Sprintf("0 is no sample of 10 ms in %v: per_packet less than %v, per_change than %v.", demandTime(c.Quick),
				10*time.Millisecond/time.Duration(max(1, busy.PacketIns*busy.Seconds)), 10*time.Millisecond/time.Duration(max(1, failing.Changes*failing.Seconds))),
		)))
	}
	return nil
}

// sample profiles the controller while the case goes on.
func (d demandCase) sample(ctx context.Context, s *slice, span time.Duration, seed uint64) (p *plan.Profile, rows [][]string, err error) {
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
	select {
	case <-time.After(time.Second): // until what it costs is what it costs always
	case <-ctx.Done():
	}
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
	program, err := os.Executable()
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

// demandMean is the mean of a column over the runs of a case, summed over some
// services; all services if none are named. NaN if there is none.
func demandMean(c *experiments.Context, d demandCase, column int, services ...string) float64 {
	sum, runs := 0.0, map[string]bool{}
	for _, row := range c.Data.Rows() {
		if !slices.Equal(row[:3], d.key()) || len(services) > 0 && !slices.Contains(services, row[4]) {
			continue
		}
		runs[row[3]] = true
		v, _ := strconv.ParseFloat(row[column], 64) // empty is nothing
		sum += v
	}
	if len(runs) == 0 {
		return math.NaN()
	}
	return sum / float64(len(runs))
}

// The columns that are summed up.
const (
	cpuColumn    = 5
	memoryColumn = 6
	changeColumn = 8
)

// atTenSeconds is the share of a processor that path computation takes at a
// failure every 10 s, as the paper has it: the failure and the coming back are
// two changes.
func atTenSeconds(c *experiments.Context, partitions int) float64 {
	d := demandCase{withFailing, partitions, 0}
	changes := demandMean(c, d, changeColumn, "paths")
	if !(changes > 0) {
		return math.NaN()
	}
	return demandMean(c, d, cpuColumn, "paths") / changes * 2 / 10
}

func sumDemands(c *experiments.Context, all [][]demandCase) error {
	loaded := all[0][0].partitions
	highest := demandCase{}
	curves := []struct {
		name     string
		services []string
	}{
		{"RL (forwarding, paths)", []string{"forwarding", "paths"}}, {"FW (firewall)", []string{"firewall"}}, {"HB (heartbeat)", []string{"heartbeat"}},
		{"southbound", []string{"southbound"}}, {"hosts, discovery", []string{"hosts", "discovery"}}, {"the process itself", []string{processRow}},
	}
	series := make([]experiments.Series, len(curves))
	for i, curve := range curves {
		series[i] = experiments.Series{Name: curve.name, Colour: i}
		for _, d := range all[0] {
			if d.kind == underLoad {
				highest = d
				series[i].Points = append(series[i].Points, plotter.XY{X: float64(d.rate), Y: demandMean(c, d, cpuColumn, curve.services...)})
			}
		}
	}
	plot, err := experiments.Curves("Demand by service", "packet-ins per second", "% of a processor", series)
	if err != nil {
		return err
	}
	c.Draw(plot)
	rest := demandCase{atRest, loaded, 0}
	at := func(text string) string { return fmt.Sprintf("%s, %d packet-ins/s", text, highest.rate) }
	claims := []experiments.Claim{
		{What: "idle", Paper: "about 15 %", Value: 15, Ours: demandMean(c, rest, cpuColumn), Unit: "%"},
		{What: at("RL"), Paper: "45 % at 50,000/s", Value: 45, Ours: demandMean(c, highest, cpuColumn, "forwarding", "paths"), Unit: "%"},
		{What: at("FW, 50,000 rules"), Paper: "7 %", Value: 7, Ours: demandMean(c, highest, cpuColumn, "firewall"), Unit: "%"},
		{What: at("HB"), Paper: "3 %", Value: 3, Ours: demandMean(c, highest, cpuColumn, "heartbeat"), Unit: "%"},
		{What: at("the whole controller"), Paper: "about 100 %: it saturates at 50,000/s", Value: 100, Ours: demandMean(c, highest, cpuColumn), Unit: "%"},
	}
	for _, list := range all {
		p := list[0].partitions
		paperSays, value := "falls with the partitions", 0.0
		if p == 4 {
			paperSays, value = "25 %", 25
		}
		ours := atTenSeconds(c, p)
		claims = append(claims, experiments.Claim{What: fmt.Sprintf("DJ (%dP), a failure every 10 s", p), Paper: paperSays, Value: value, Ours: ours, Unit: "%"})
		if !math.IsNaN(ours) {
			c.Figure(fmt.Sprintf("paths_percent_%d_partitions", p), ours)
		}
	}
	smallest := all[len(all)-1][0]
	for _, m := range []struct {
		what, service string
		gigabytes     float64
		of            demandCase
	}{{"DJ (paths)", "paths", 6.25, smallest}, {"RL (forwarding)", "forwarding", 3.75, smallest}, {"FW (firewall)", "firewall", 1.25, rest}} {
		claim := experiments.Claim{
			What:  fmt.Sprintf("memory of %s, one of %d partitions", m.what, m.of.partitions),
			Paper: fmt.Sprintf("%g GB of the whole network", m.gigabytes), Ours: demandMean(c, m.of, memoryColumn, m.service), Unit: "MiB",
		}
		if m.of.partitions == 1 {
			claim.Value = m.gigabytes * 1e9 / (1 << 20)
		}
		claims = append(claims, claim)
	}
	c.Compare(claims...)
	return nil
}
