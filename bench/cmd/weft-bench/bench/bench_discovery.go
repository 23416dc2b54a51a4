package bench

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/weft-sdn/weft/bench/sim"
	"github.com/weft-sdn/weft/cmd/weft/cli"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/internal/backoff"
	"github.com/weft-sdn/weft/internal/freeport"
	"github.com/weft-sdn/weft/openflow"
	"github.com/weft-sdn/weft/test/measure"
)

// benchDiscoveryConfig is the flags of discovery.
type benchDiscoveryConfig struct {
	topology string
	switches int
	links    int
	seed     uint64
	hosts    int
	version  openflow.Version
	timeout  time.Duration
	idle     time.Duration
	rounds   int
	output   string
}

// benchTopologies is the values of --topology.
const benchTopologies = "random, linear, ring, fat-tree:K, hydra"

func benchDiscoveryCommand() *cobra.Command {
	var c benchDiscoveryConfig
	var version string
	cmd := &cobra.Command{
		Use:   "discovery",
		Short: "Measure how long Weft takes to connect and discover a large network",
		Long: `Start Weft's own controller with all its services, connect simulated switches,
and measure how long it takes until all are connected and every link is known in
both directions, each checked against the topology; then, when switches are told
nothing new any more, what the controller uses while nothing happens. Memory and
processor time are those of the controller's process; the switches are simulated
by another, on a processor of its own. The topology hydra (2,560 switches, 49,152
links) has marks, and the result says which are met.`,
		Example: `  weft bench discovery --switches 1000 --links 6000
  weft bench discovery --topology hydra --idle 1m
  weft bench discovery --topology fat-tree:16 --openflow 1.0 -o json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var err error
			if c.version, err = benchVersion(version); err != nil {
				return cli.Usagef(cmd, "%w", err)
			}
			topo, err := c.check(cmd.Flags().Changed)
			if err != nil {
				return cli.Usagef(cmd, "%w", err)
			}
			ctx, stop := cli.Signals(cmd)
			defer stop()
			return benchRunDiscovery(ctx, c, topo, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	f := cmd.Flags()
	f.StringVar(&c.topology, "topology", "random", "one of "+benchTopologies)
	f.IntVar(&c.switches, "switches", 1000, "switches of a random, linear or ring topology")
	f.IntVar(&c.links, "links", 6000, "links of a random topology")
	f.Uint64Var(&c.seed, "seed", 1, "of a random topology: the same seed gives the same links")
	f.IntVar(&c.hosts, "hosts", 1, "hosts of each switch, on a port each")
	f.StringVar(&version, "openflow", "1.3", "OpenFlow version: 1.0 or 1.3")
	f.DurationVar(&c.timeout, "timeout", 2*time.Minute, "give up after this time")
	f.DurationVar(&c.idle, "idle", 10*time.Second, "how long to watch the idle controller")
	f.IntVar(&c.rounds, "rounds", 3, "rounds, each with a controller of its own; the report gives medians")
	f.StringVarP(&c.output, "output", "o", "table", "table or json")
	return cmd
}

// check says which flag is wrong, and returns the topology.
func (c *benchDiscoveryConfig) check(changed func(string) bool) (*sim.Topology, error) {
	switch {
	case c.hosts < 0:
		return nil, fmt.Errorf("--hosts %d: want 0 or more on each switch", c.hosts)
	case c.timeout <= 0:
		return nil, fmt.Errorf("--timeout %v: want more than zero", c.timeout)
	case c.rounds < 1:
		return nil, fmt.Errorf("--rounds %d: want at least 1", c.rounds)
	case c.idle < 0:
		return nil, fmt.Errorf("--idle %v: want 0 or more", c.idle)
	}
	if err := benchCheckOutput(c.output); err != nil {
		return nil, err
	}
	kind, size, sized := strings.Cut(c.topology, ":")
	if sized != (kind == "fat-tree") {
		return nil, fmt.Errorf("--topology %q: want one of %s", c.topology, benchTopologies)
	}
	if kind != "random" && changed("links") || (kind == "hydra" || sized) && changed("switches") {
		return nil, fmt.Errorf("--topology %s: has its own number of links or switches; leave out --links and --switches as far as it decides them", c.topology)
	}
	var topo *sim.Topology
	var err error
	switch kind {
	case "random":
		topo, err = sim.Random(c.switches, c.links, c.seed)
	case "linear":
		topo, err = sim.Linear(c.switches)
	case "ring":
		topo, err = sim.Ring(c.switches)
	case "hydra":
		topo = sim.Hydra()
	case "fat-tree":
		k, bad := strconv.Atoi(size)
		if bad != nil {
			return nil, fmt.Errorf("--topology %q: want fat-tree:K with K the number of ports of a switch, such as fat-tree:8", c.topology)
		}
		topo, err = sim.FatTree(k)
	default:
		return nil, fmt.Errorf("--topology %q: want one of %s", c.topology, benchTopologies)
	}
	if err != nil {
		return nil, err
	}
	return topo, topo.AttachHosts(c.hosts, c.hosts)
}

// benchDiscoveries is what discovery prints: medians of the rounds at the top.
type benchDiscoveries struct {
	benchTaken
	Rounds int `json:"rounds"`
	*benchDiscovery
	CI95   benchCI95         `json:"ci95"`
	Detail []*benchDiscovery `json:"detail"`
}

// benchRunDiscovery is `weft bench discovery`.
func benchRunDiscovery(ctx context.Context, c benchDiscoveryConfig, topo *sim.Topology, out, progress io.Writer) error {
	cpus, undo, err := benchPin(false)
	if err != nil {
		return err
	}
	defer undo()
	r := &benchDiscoveries{Rounds: c.rounds}
	r.begin(cpus.differs()...)
	for n := range c.rounds {
		if c.rounds > 1 {
			fmt.Fprintf(progress, "round %d/%d\n", n+1, c.rounds)
		}
		one, err := c.round(ctx, cpus, topo, progress)
		if err != nil {
			return err
		}
		r.Detail = append(r.Detail, one)
	}
	r.end()
	r.sum()
	return r.write(out, c.output)
}

// sum fills in the medians and their intervals; of memory the most counts.
func (r *benchDiscoveries) sum() {
	sum := *r.Detail[len(r.Detail)-1]
	r.benchDiscovery, r.CI95 = &sum, benchCI95{}
	for name, get := range map[string]func(*benchDiscovery) *float64{
		"connected_s":      func(d *benchDiscovery) *float64 { return &d.ConnectedS },
		"discovered_s":     func(d *benchDiscovery) *float64 { return &d.DiscoveredS },
		"settled_s":        func(d *benchDiscovery) *float64 { return &d.SettledS },
		"busy_cpu_s":       func(d *benchDiscovery) *float64 { return &d.BusyCPUS },
		"idle_cpu_percent": func(d *benchDiscovery) *float64 { return &d.IdleCPU },
		"probes_per_s":     func(d *benchDiscovery) *float64 { return &d.ProbesPerS },
	} {
		var v []float64
		for _, d := range r.Detail {
			v = append(v, *get(d))
		}
		m := measure.Median(v)
		*get(&sum), r.CI95[name] = m.Median, m.CI95
	}
	for _, d := range r.Detail {
		sum.WrongLinks = max(sum.WrongLinks, d.WrongLinks)
		sum.MemoryBytes, sum.PeakBytes, sum.PollS = max(sum.MemoryBytes, d.MemoryBytes), max(sum.PeakBytes, d.PeakBytes), max(sum.PollS, d.PollS)
	}
	sum.Marks = sum.marks()
}

// benchDiscovery is one round of discovery.
type benchDiscovery struct {
	Topology    string       `json:"topology"`
	OpenFlow    string       `json:"openflow"`
	Switches    int          `json:"switches"`
	Links       int          `json:"links"` // between switches; each is found twice, once in each direction
	ConnectedS  float64      `json:"connected_s"`
	DiscoveredS float64      `json:"discovered_s"`
	SettledS    float64      `json:"settled_s"`   // from then on, until switches were told nothing new
	WrongLinks  int          `json:"wrong_links"` // reported, but not in the topology
	BusyCPUS    float64      `json:"busy_cpu_s"`  // processor time of the controller until then
	IdleCPU     float64      `json:"idle_cpu_percent"`
	IdleS       float64      `json:"idle_s"`
	MemoryBytes int64        `json:"memory_bytes"`
	PollS       float64      `json:"poll_s"` // the longest time between two looks: how much too late discovered_s may be
	PacketIns   uint64       `json:"packet_ins"`
	PacketOuts  uint64       `json:"packet_outs"`
	FlowMods    uint64       `json:"flow_mods"`
	ProbesPerS  float64      `json:"probes_per_s"` // while idle
	PeakBytes   int64        `json:"peak_memory_bytes"`
	Marks       []benchBound `json:"marks,omitempty"`
}

// round connects the network to a controller of its own.
func (c *benchDiscoveryConfig) round(ctx context.Context, cpus benchCPUs, topo *sim.Topology, progress io.Writer) (*benchDiscovery, error) {
	var err error
	ports := [2]int{}
	for i := range ports {
		if ports[i], err = freeport.Port(); err != nil {
			return nil, err
		}
	}
	s := &benchSubject{name: "weft", address: fmt.Sprintf("127.0.0.1:%d", ports[0])}
	north := fmt.Sprintf("127.0.0.1:%d", ports[1])
	if err := s.startWeft(ctx, cpus, north, benchAll); err != nil {
		return nil, err
	}
	defer s.close()
	r := &benchDiscovery{Topology: topo.Name, OpenFlow: "1.3", Switches: len(topo.Switches), Links: len(topo.Links)}
	if c.version == openflow.V10 {
		r.OpenFlow = "1.0"
	}
	limit, cancel := context.WithTimeoutCause(ctx, c.timeout, fmt.Errorf("not done within --timeout %v", c.timeout))
	defer cancel()
	limit, ended := context.WithCancelCause(limit)
	defer ended(nil)
	go func() {
		select {
		case <-s.child.Done():
			ended(errors.New("the controller has ended"))
		case <-limit.Done():
		}
	}()
	began := time.Now()
	if err := s.run(ctx, sim.Config{Topology: topo, Version: c.version}); err != nil {
		return nil, err
	}
	if err := s.net.WaitUp(limit, 0); err != nil {
		return nil, s.child.Failed(err)
	}
	r.ConnectedS = time.Since(began).Seconds()
	fmt.Fprintf(progress, "%d switches connected after %.2f s\n", r.Switches, r.ConnectedS)
	if err := benchAwaitLinks(limit, "http://"+north, topo, r, began, progress); err != nil {
		if stats, bad := s.net.Stats(ctx); bad == nil && stats.Lost > 0 {
			err = fmt.Errorf("%w; %d connections lost, the last: %s", err, stats.Lost, stats.LastLoss)
		}
		return nil, s.child.Failed(err)
	}
	r.BusyCPUS = benchCPU(s.child).Seconds()
	found := time.Now()
	before, err := benchAwaitQuiet(ctx, s.net)
	if err != nil {
		return nil, err
	}
	r.SettledS = time.Since(found).Seconds()
	from, cpu := time.Now(), benchCPU(s.child)
	if backoff.Sleep(ctx, c.idle) != nil {
		return nil, ctx.Err()
	}
	r.IdleS = time.Since(from).Seconds()
	r.IdleCPU = 100 * benchRatio((benchCPU(s.child)-cpu).Seconds(), r.IdleS)
	r.MemoryBytes, r.PeakBytes = benchMemory("VmRSS", s.child.All()...), benchMemory("VmHWM", s.child.All()...)
	stats, err := s.net.Stats(ctx)
	if err != nil {
		return nil, err
	}
	r.ProbesPerS = benchRatio(float64(stats.PacketOuts-before.PacketOuts), r.IdleS)
	r.PacketIns, r.PacketOuts, r.FlowMods = stats.PacketIns, stats.PacketOuts, stats.FlowMods
	if stats.Lost > 0 || stats.Up != r.Switches {
		return nil, s.child.Failed(fmt.Errorf("%d of %d switches connected at the end, %d connections lost; the last: %s", stats.Up, r.Switches, stats.Lost, stats.LastLoss))
	}
	return r, nil
}

// Idle is when switches have been told nothing new for benchQuietFor, or after
// benchQuietMost: then what comes on is what the controller does all the time.
const (
	benchQuietFor  = 2 * time.Second
	benchQuietMost = 30 * time.Second
)

// benchAwaitQuiet lets what the last links have set off come to an end.
func benchAwaitQuiet(ctx context.Context, net *sim.Network) (sim.Stats, error) {
	last, err := net.Stats(ctx)
	for began := time.Now(); err == nil && time.Since(began) < benchQuietMost; {
		if backoff.Sleep(ctx, benchQuietFor) != nil {
			return last, ctx.Err()
		}
		was := last.FlowMods
		if last, err = net.Stats(ctx); last.FlowMods == was {
			break
		}
	}
	return last, err
}

// benchLinks is the answer to GET /v1/links, as far as it matters.
type benchLinks struct {
	Links []struct {
		Src, Dst struct {
			DPID flow.DPID
			Port flow.Port
		}
		State string
	}
}

// benchLink is a link in one direction.
type benchLink struct{ from, to flow.Location }

// benchWanted returns the links of a topology, each in both directions.
func benchWanted(topo *sim.Topology) map[benchLink]bool {
	want := make(map[benchLink]bool, 2*len(topo.Links))
	for _, l := range topo.Links {
		a := flow.Location{Switch: topo.Switches[l.A.Switch].DPID, Port: l.A.Port}
		b := flow.Location{Switch: topo.Switches[l.B.Switch].DPID, Port: l.B.Port}
		want[benchLink{a, b}], want[benchLink{b, a}] = true, true
	}
	return want
}

// compare returns how many of the wanted links are up, and notes in r how many
// there are that should not be.
func (got *benchLinks) compare(want map[benchLink]bool, r *benchDiscovery) int {
	found := make(map[benchLink]bool, len(got.Links))
	r.WrongLinks = 0
	for _, l := range got.Links {
		k := benchLink{flow.Location{Switch: l.Src.DPID, Port: l.Src.Port}, flow.Location{Switch: l.Dst.DPID, Port: l.Dst.Port}}
		switch {
		case !want[k]:
			r.WrongLinks++
		case l.State == "up":
			found[k] = true
		}
	}
	return len(found)
}

// Between looks at the links.
const (
	benchLookFrom = 50 * time.Millisecond
	benchLookTo   = 500 * time.Millisecond
)

// benchAwaitLinks counts the links that the controller knows until there are
// as many as wanted, and then compares them with those that are wanted: to have
// all of them told is work, and not to be done over and over while measuring. It
// waits up to five times as long between looks as a look takes, for the same
// reason.
func benchAwaitLinks(ctx context.Context, north string, topo *sim.Topology, r *benchDiscovery, began time.Time, progress io.Writer) error {
	want := benchWanted(topo)
	last, said, found := began, 0, 0
	for {
		look := time.Now()
		n, err := benchMetric(ctx, north+"/metrics", benchLinksUp)
		if err != nil {
			return err
		}
		seen := time.Now()
		r.PollS = max(r.PollS, seen.Sub(last).Seconds())
		last = seen
		if found = int(n); found >= len(want) {
			var got benchLinks
			if err := benchGet(ctx, north+"/v1/links", &got); err != nil {
				return err
			}
			if found = got.compare(want, r); found == len(want) {
				r.DiscoveredS = seen.Sub(began).Seconds()
				fmt.Fprintf(progress, "%d links known in both directions after %.2f s\n", len(topo.Links), r.DiscoveredS)
				return nil
			}
		}
		if found != said {
			said = found
			fmt.Fprintf(progress, "%.1f s: %d of %d links, each direction counted\n", time.Since(began).Seconds(), said, len(want))
		}
		if backoff.Sleep(ctx, min(max(5*time.Since(look), benchLookFrom), benchLookTo)) != nil {
			return fmt.Errorf("%d of %d links found, each direction counted, and %d wrong ones: %w", found, len(want), r.WrongLinks, context.Cause(ctx))
		}
	}
}

// benchLinksUp is the metric that counts links, each direction for itself.
const benchLinksUp = `weft_discovery_links{state="up"}`

// benchMetric reads one figure of the controller's metrics; 0 if it is not
// there.
func benchMetric(ctx context.Context, url, name string) (float64, error) {
	body, err := benchFetch(ctx, url)
	if err != nil {
		return 0, err
	}
	defer body.Close()
	lines := bufio.NewScanner(body)
	for lines.Scan() {
		if value, ok := strings.CutPrefix(lines.Text(), name+" "); ok {
			return strconv.ParseFloat(value, 64)
		}
	}
	return 0, lines.Err()
}

// benchGet reads JSON from the controller's northbound.
func benchGet(ctx context.Context, url string, into any) error {
	body, err := benchFetch(ctx, url)
	if err != nil {
		return err
	}
	defer body.Close()
	if err := json.NewDecoder(body).Decode(into); err != nil {
		return fmt.Errorf("GET %s: %w", url, err)
	}
	return nil
}

// benchFetch reads from the controller's northbound.
func benchFetch(ctx context.Context, url string) (io.ReadCloser, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		if cause := context.Cause(ctx); cause != nil && !errors.Is(err, cause) {
			err = fmt.Errorf("%w (%w)", err, cause)
		}
		return nil, err
	}
	if resp.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(resp.Body, 500))
		resp.Body.Close()
		return nil, fmt.Errorf("GET %s: %s: %s", url, resp.Status, strings.TrimSpace(string(text)))
	}
	return resp.Body, nil
}
