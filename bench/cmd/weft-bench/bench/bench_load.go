package bench

import (
	"context"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/weft-sdn/weft/bench/sim"
	"github.com/weft-sdn/weft/internal/companion"
	"github.com/weft-sdn/weft/internal/cputime"
	"github.com/weft-sdn/weft/internal/freeport"
	"github.com/weft-sdn/weft/test/measure"
	"github.com/weft-sdn/weft/test/testbed"
)

// benchSubject is one side of a comparison, a controller or the floor, and the
// switches connected to it.
type benchSubject struct {
	name    string
	address string
	child   *testbed.Process    // nil if it was running before
	dir     string              // its data, removed at the end; empty if it has none
	split   *testbed.Controller // its processes, if it is several; then child is nil
	net     *sim.Network
	cancel  context.CancelFunc
	done    chan error
	rounds  []benchRound
	latency *hdrhistogram.Histogram // of all rounds, ns
}

// benchRound is one round against one subject. Processor time is in percent of
// one processor, 0 if it is not known.
type benchRound struct {
	AnswersPerS  float64 `json:"answers_per_s"`
	P50US        float64 `json:"p50_us"`
	P99US        float64 `json:"p99_us"`
	CPU          float64 `json:"cpu_percent"`
	GeneratorCPU float64 `json:"generator_cpu_percent"`
	sim.Counts
}

// benchRunLoad is `weft bench throughput|latency`.
func benchRunLoad(ctx context.Context, c benchConfig, out, progress io.Writer) error {
	cpus, undo, err := benchPin(len(c.split) > 0)
	if err != nil {
		return err
	}
	defer undo()
	subject, err := benchController(ctx, c, cpus)
	if err != nil {
		return err
	}
	defer subject.close()
	subjects := []*benchSubject{subject}
	if c.floor {
		floor, err := benchFloor(ctx, cpus)
		if err != nil {
			return err
		}
		defer floor.close()
		subjects = []*benchSubject{floor, subject}
	}
	for _, split := range c.split {
		s, err := benchSplitStart(ctx, split, cpus)
		if err != nil {
			return err
		}
		defer s.close()
		subjects = append(subjects, s)
	}
	if c.rules > 0 {
		without, err := benchRulesStart(ctx, cpus, 0)
		if err != nil {
			return err
		}
		defer without.close()
		subjects = append(subjects, without)
	}
	for _, s := range subjects {
		hosts, answered, err := s.connect(ctx, c)
		if err != nil {
			return s.failed(err)
		}
		fmt.Fprintf(progress, "%s: %d switches connected, every host has spoken once, %d of %d answered\n",
			s.name, c.switches, answered, hosts)
	}
	var taken benchTaken
	taken.begin(cpus.differs()...)
	for r := range c.rounds {
		for _, i := range measure.Order(r, len(subjects)) {
			s := subjects[i]
			if err := s.measure(ctx, c); err != nil {
				return s.failed(err)
			}
			last := s.rounds[r]
			fmt.Fprintf(progress, "round %d/%d, %s: %s answers/s, p50 %.1f µs, p99 %.1f µs\n",
				r+1, c.rounds, s.name, benchCount(last.AnswersPerS), last.P50US, last.P99US)
		}
	}
	taken.end()
	report := newBenchReport(c, cpus, subject, subjects[0])
	report.benchTaken = taken
	report.splits(c.split, subject, subjects[len(subjects)-len(c.split):])
	if c.rules > 0 {
		report.rules(c.rules, subject, subjects[len(subjects)-1])
	}
	if c.plot != "" {
		if err := benchPlot(c.plot, report, subjects[:len(subjects)-len(c.split)]); err != nil {
			return err
		}
	}
	return report.write(out, c.output)
}

// benchController returns the controller to measure, started where need be.
func benchController(ctx context.Context, c benchConfig, cpus benchCPUs) (*benchSubject, error) {
	if c.controller != "" {
		return &benchSubject{name: c.controller, address: c.controller}, nil
	}
	if len(c.split) > 0 { // with the same services, so that like is compared with like
		return benchSplitStart(ctx, benchSplit{}, cpus)
	}
	if c.rules > 0 {
		return benchRulesStart(ctx, cpus, c.rules)
	}
	port, err := freeport.Port()
	if err != nil {
		return nil, err
	}
	s := &benchSubject{name: "weft", address: fmt.Sprintf("127.0.0.1:%d", port)}
	if c.command != "" {
		words := strings.Fields(strings.ReplaceAll(c.command, "{port}", strconv.Itoa(port)))
		s.name = words[0]
		return s, s.start(ctx, cpus, words[0], words[1:]...)
	}
	http, err := freeport.Port()
	if err != nil {
		return nil, err
	}
	return s, s.startWeft(ctx, cpus, fmt.Sprintf("127.0.0.1:%d", http), benchLearning)
}

// benchFloor starts the floor.
func benchFloor(ctx context.Context, cpus benchCPUs) (*benchSubject, error) {
	port, err := freeport.Port()
	if err != nil {
		return nil, err
	}
	s := &benchSubject{name: "floor", address: fmt.Sprintf("127.0.0.1:%d", port)}
	self, err := companion.Find("weft")
	if err != nil {
		return nil, err
	}
	return s, s.start(ctx, cpus, self, "bench", "floor", "--listen", s.address)
}

// startWeft starts Weft's own controller with its data in a directory of its own.
func (s *benchSubject) startWeft(ctx context.Context, cpus benchCPUs, http string, services benchServices) error {
	self, err := companion.Find("weft")
	if err != nil {
		return err
	}
	if s.dir, err = os.MkdirTemp("", "weft-bench-"); err != nil {
		return err
	}
	return s.start(ctx, cpus, self, benchWeftArgs(s.address, http, s.dir, services)...)
}

// start starts the subject's process and waits until it accepts connections;
// on an error nothing of it is left.
func (s *benchSubject) start(ctx context.Context, cpus benchCPUs, path string, args ...string) error {
	child, err := testbed.StartProcess(s.name, cpus.subject, path, args...)
	if err == nil {
		s.child = child
		err = child.Accepts(ctx, s.address)
	}
	if err != nil {
		s.close()
	}
	return err
}

// close disconnects the switches and stops what was started.
func (s *benchSubject) close() {
	if s.cancel != nil {
		s.cancel()
		<-s.done //nolint:errcheck // it was ended
	}
	s.child.Stop()
	s.split.Stop()
	if s.dir != "" {
		os.RemoveAll(s.dir)
	}
}

// run starts the simulated network.
func (s *benchSubject) run(ctx context.Context, cfg sim.Config) error {
	cfg.Address = s.address
	n, err := sim.New(cfg)
	if err != nil {
		return err
	}
	run, cancel := context.WithCancel(ctx)
	s.net, s.cancel, s.done = n, cancel, make(chan error, 1)
	go func() { s.done <- n.Run(run) }()
	return nil
}

// connect connects the switches, lets every host speak once and runs the load
// for the warm-up. It returns how many hosts there are, and how many were answered.
func (s *benchSubject) connect(ctx context.Context, c benchConfig) (hosts, answered int, err error) {
	topo, err := sim.Isolated(c.switches, c.hosts, c.ports)
	if err != nil {
		return 0, 0, err
	}
	if err := s.run(ctx, sim.Config{Topology: topo, Version: c.version}); err != nil {
		return 0, 0, err
	}
	up, cancel := context.WithTimeout(ctx, 60*time.Second)
	defer cancel()
	if err := s.net.WaitUp(up, 300*time.Millisecond); err != nil {
		return 0, 0, err
	}
	if hosts, answered, err = s.net.Announce(ctx, min(c.window, 64), time.Second); err != nil {
		return 0, 0, err
	}
	// The controller may have taken a port for one that could lead to a switch
	// until now: as hosts do, all speak again.
	if answered > 0 && answered < hosts {
		if hosts, answered, err = s.net.Announce(ctx, min(c.window, 64), time.Second); err != nil {
			return 0, 0, err
		}
	}
	if c.warmup > 0 {
		load := c.load()
		load.Duration = c.warmup
		if _, err := s.net.Measure(ctx, load); err != nil {
			return 0, 0, err
		}
	}
	s.latency = sim.NewHistogram()
	return hosts, answered, nil
}

// load returns the load of one round.
func (c *benchConfig) load() sim.Load {
	return sim.Load{Window: c.window, Rate: c.rate, Warm: 100 * time.Millisecond, Duration: c.duration, Unbuffered: c.unbuffered}
}

// measure runs one round.
func (s *benchSubject) measure(ctx context.Context, c benchConfig) error {
	began, cpu, own := time.Now(), benchCPU(s.child), cputime.Used()
	r, err := s.net.Measure(ctx, c.load())
	if err != nil {
		return err
	}
	wall := time.Since(began)
	stats, err := s.net.Stats(ctx)
	if err != nil {
		return err
	}
	if stats.Lost > 0 {
		return fmt.Errorf("%d connections lost during the load, the last: %s", stats.Lost, stats.LastLoss)
	}
	s.rounds = append(s.rounds, benchRound{
		AnswersPerS:  r.AnswersPerSecond(),
		P50US:        float64(r.Latency.ValueAtPercentile(50)) / 1e3,
		P99US:        float64(r.Latency.ValueAtPercentile(99)) / 1e3,
		CPU:          100 * float64(benchCPU(s.child)-cpu) / float64(wall),
		GeneratorCPU: 100 * float64(cputime.Used()-own) / float64(wall),
		Counts:       r.Counts,
	})
	s.latency.Merge(r.Latency)
	return nil
}
