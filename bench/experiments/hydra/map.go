package hydra

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/bench/experiments"
	"github.com/weft-sdn/weft/bench/experiments/figure"
	"github.com/weft-sdn/weft/bench/sim"
	"github.com/weft-sdn/weft/openflow"
	"github.com/weft-sdn/weft/test/measure"
	"github.com/weft-sdn/weft/test/testbed"
)

// sliceMap is the experiment of where slicing by functions pays.
func sliceMap() experiments.Experiment {
	return experiments.Experiment{
		Name: "hydra-map", Title: "where slicing by functions pays: compute for each packet, by the way of crossing",
		Paper: paper, Figure: "section 5 (no figure)",
		Claim: `Functions that compute much are to be in processes of their own, those on the way of a packet together. (The paper does not say
how much is much; nobody has published that map.)`,
		Method: `Learning switches, and beside forwarding a stage that computes for a given time on each packet: all in one process (same
process), or southbound, discovery and hosts in one and computing and forwarding in another (each transport). Simulated switches of
100 hosts send packet-ins. one by one: one switch that has one outstanding, so every packet crosses by itself; batches: 16 switches
that have 16 outstanding each, so that they cross together. Each turn starts its controller; for each compute time, as many packets
as it answers are measured, then 70 % of that on an absolute schedule, for p99. per_cpu_s is packets for each second of
processor time of all the controller's processes in the measured time. Computing is counted in turns of a loop, not by the clock, so that it takes the
same processor time on a busy machine. Nothing is pinned. Values are to the same process at the same compute time.`,
		Deviation: `For each second of processor time a crossing can only cost; what it costs is lost in the noise where the packet's own
computing is many times that. What slicing can gain is the second processor, and shorter queues for packets that do not need the
computing; the throughput map shows the first where the machine has a processor to spare, beside the simulated switches.`,
		Runs: 10, QuickRuns: 1, Transports: experiments.Transports(),
		Columns: []string{"load", "compute_us", "answered_per_s", "per_cpu_s", "p50_us", "p99_us"},
		Cases: func(p experiments.Parameters) (list []experiments.Case) {
			for _, way := range crossings(p) {
				list = append(list, experiments.Case{Name: way, Open: func(ctx context.Context, c *experiments.Context) (experiments.Subject, error) {
					return openMapped(ctx, c, way)
				}})
			}
			return list
		},
		Sum: sumMap,
	}
}

// sameProcess is the way of crossing that is none.
const sameProcess = "same process"

// crossings are the ways, none first.
func crossings(p experiments.Parameters) []string {
	return append([]string{sameProcess}, p.Transports...)
}

// mapLoad is how packets come.
type mapLoad struct {
	name             string
	switches, window int
}

var mapLoads = []mapLoad{{"one by one", 1, 1}, {"batches", 16, 16}}

// span is how long packets that compute for a time are measured: what is
// outstanding at the end is to be a small part of it.
func (l mapLoad) span(cost time.Duration) time.Duration {
	return max(500*time.Millisecond, 8*time.Duration(l.switches*l.window)*cost)
}

// computeTimes are the compute times for each packet.
func computeTimes(quick bool) []time.Duration {
	if quick {
		return []time.Duration{100 * time.Nanosecond, 10 * time.Microsecond, time.Millisecond}
	}
	return []time.Duration{100 * time.Nanosecond, time.Microsecond, 10 * time.Microsecond, 100 * time.Microsecond, time.Millisecond}
}

func micros(d time.Duration) string { return number(float64(d.Nanoseconds()) / 1e3) }

// mapped is a controller with the computing stage.
type mapped struct {
	*experiments.Context
	control *testbed.Controller
	north   *grpc.ClientConn
}

func openMapped(ctx context.Context, c *experiments.Context, way string) (_ experiments.Subject, err error) {
	transport := way
	if way == sameProcess {
		transport = ""
	}
	p := testbed.Learning("map-"+strings.ReplaceAll(way, " ", "-"), transport, 1)
	at := slices.IndexFunc(p.Workers, func(w testbed.Worker) bool { return slices.Contains(w.Services, "forwarding") })
	p.Workers[at].Services = append(slices.Clone(p.Workers[at].Services), "spin")
	last := len(p.Workers) - 1
	p.Workers[last].Services = append(slices.Clone(p.Workers[last].Services), "gateway")
	p.Pipeline = []string{"discovery", "hosts", "spin", "forwarding"}
	p.Config["southbound"] = map[string]string{"flood_rate": "0"} // the load is no flood
	m := &mapped{Context: c}
	self, err := os.Executable() // which has the service spin, as weft has not
	if err != nil {
		return nil, err
	}
	m.control, err = testbed.Start(ctx, testbed.Config{Program: self, Plan: p, CPU: -1, Environment: []string{SpinVariable + "=1"}})
	if err != nil {
		return nil, err
	}
	m.north, err = grpc.NewClient("passthrough:///"+m.control.North[0], grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return nil, errors.Join(err, m.Close())
	}
	return m, nil
}

// Close ends the controller.
func (m *mapped) Close() error {
	var err error
	if m.north != nil {
		err = m.north.Close()
	}
	m.control.Stop()
	return err
}

// Sample takes both loads at all compute times.
func (m *mapped) Sample(ctx context.Context, round int) (rows [][]string, err error) {
	for _, load := range mapLoads {
		of, err := m.under(ctx, load)
		if err != nil {
			return nil, m.control.Failed(fmt.Errorf("%s: %w", load.name, err))
		}
		rows = append(rows, of...)
	}
	return rows, nil
}

// under takes the samples of a load, with switches of its own.
func (m *mapped) under(ctx context.Context, load mapLoad) (rows [][]string, err error) {
	topo, err := sim.Isolated(load.switches, 100, 8)
	if err != nil {
		return nil, err
	}
	net, err := sim.New(sim.Config{Topology: topo, Version: openflow.V13, Address: m.control.OpenFlow[0]})
	if err != nil {
		return nil, err
	}
	run, end := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- net.Run(run) }()
	defer func() {
		end()
		if failed := <-ended; err == nil {
			err = failed
		}
	}()
	if err := net.WaitUp(ctx, 300*time.Millisecond); err != nil {
		return nil, err
	}
	if _, _, err := net.Announce(ctx, 16, time.Second); err != nil {
		return nil, err
	}
	for _, cost := range computeTimes(m.Quick) {
		text := fmt.Sprintf("forwarding: {mode: learning}\nsouthbound: {flood_rate: 0}\nspin: {cost: %v}\n", cost)
		if _, err := api.NewGatewayClient(m.north).ApplyConfig(ctx, &api.ApplyConfigRequest{Text: text, Source: "hydra-map", LimitMs: 20_000}); err != nil {
			return nil, err
		}
		span := sim.Load{Window: load.window, Warm: 200 * time.Millisecond, Duration: load.span(cost)}
		span.Used = m.control.CPUClock()
		most, err := net.Measure(ctx, span)
		if err != nil {
			return nil, fmt.Errorf("%v: %w", cost, err)
		}
		span.Rate, span.Window = .7*most.AnswersPerSecond(), sim.MaxWindow
		paced, err := net.Measure(ctx, span)
		if err != nil {
			return nil, fmt.Errorf("%v: %w", cost, err)
		}
		rows = append(rows, []string{load.name, micros(cost), number(most.AnswersPerSecond()), number(float64(most.Answered) / most.Used.Seconds()),
			number(float64(paced.Latency.ValueAtPercentile(50)) / 1e3), number(float64(paced.Latency.ValueAtPercentile(99)) / 1e3)})
	}
	return rows, nil
}

// crossingCost is, in each round, the processor time in µs that a packet takes
// more than in the same process where it computes least.
func crossingCost(c *experiments.Context, way, load string) []float64 {
	where := experiments.Where("load", load, "compute_us", micros(computeTimes(c.Quick)[0]))
	list, none := c.Rounds("per_cpu_s", way, where), c.Rounds("per_cpu_s", sameProcess, where)
	for i := range list {
		if list[i] = 1e6/list[i] - 1e6/none[i]; math.IsInf(list[i], 0) {
			list[i] = math.NaN()
		}
	}
	return list
}

// sumMap compares the ways and draws the map.
func sumMap(c *experiments.Context) error {
	costs := map[string]figure.Number{}
	times := computeTimes(c.Quick)
	for _, way := range crossings(c.Parameters)[1:] {
		for _, load := range mapLoads {
			cost := measure.Median(crossingCost(c, way, load.name))
			costs[way+", "+load.name] = figure.Number(cost.Median)
			c.Compare(experiments.Claim{What: fmt.Sprintf("processor time of a crossing there and back, %s, %s", way, load.name), Paper: "-", Unit: "µs"}.Of(cost))
			for _, t := range times {
				where := experiments.Where("load", load.name, "compute_us", micros(t))
				c.Compare(experiments.Claim{What: fmt.Sprintf("per processor-second, %s to same process, %s, %v of compute", way, load.name, t), Paper: "-"}.
					Of(c.Ratio("per_cpu_s", way, sameProcess, where)))
			}
		}
	}
	c.Figure("crossing_us", costs)
	f := mapFigure(c, times)
	c.Draw(f)
	return nil
}
