package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/cmd/weft/cli"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/lab/topology"
	"github.com/weft-sdn/weft/test/measure"
)

// benchL2vpnConfig is the flags of l2vpn.
type benchL2vpnConfig struct {
	circuits int
	rounds   int
	silent   bool
	output   string
}

func benchL2vpnCommand() *cobra.Command {
	var c benchL2vpnConfig
	cmd := &cobra.Command{
		Use:   "l2vpn",
		Short: "Measure setting up and restoring layer-2 circuits over real hybrid nodes",
		Long: `Measure layer-2 circuits on a lab of real Open vSwitch: the seven hybrid nodes of
weft lab up oshi with customers at two edges, each of whose VLANs is an end. There
are as many protected circuits as --circuits says, and ten without protection.

  setup      from asking for all protected circuits at once until the last is up
  one        from asking for one more, with the others there, until it is up
  restore    outage of the circuits without protection when a core link under all
             of them is cut so that both ends lose carrier, or, with --silent, so
             that neither does and BFD has to notice
  lost       outage of protected circuits, of ten of them the longest
  entries    flow-mods sent to all switches from the cut until the frames end

An outage is the longest run of frames, one every 5 ms in each of twenty circuits,
that do not arrive. A round is a cut and the link's coming back. It needs root,
Open vSwitch and FRR.`,
		Example: `  weft bench l2vpn
  weft bench l2vpn --circuits 1000 --rounds 3 -o json
  weft bench l2vpn --silent --rounds 2`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := c.check(); err != nil {
				return cli.Usagef(cmd, "%w", err)
			}
			if err := benchNeedLab(); err != nil {
				return err
			}
			ctx, stop := cli.Signals(cmd)
			defer stop()
			return benchRunL2vpn(ctx, c, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	f := cmd.Flags()
	f.IntVar(&c.circuits, "circuits", 1000, "protected circuits")
	f.IntVar(&c.rounds, "rounds", 5, "how often a link is cut; before that, five circuits are set up one by one")
	f.BoolVar(&c.silent, "silent", false, "cut so that the link loses every frame while both ends keep carrier")
	f.StringVarP(&c.output, "output", "o", "table", "table or json")
	return cmd
}

// The circuits of l2vpn: so many VLANs at a port, and those in which frames are sent.
const (
	benchVLANs        = 4000
	benchMostCircuits = 16_000
	benchWatched      = 10 // of each kind
	benchOnes         = 5  // set up one by one in a round
)

// check says which flag is wrong.
func (c *benchL2vpnConfig) check() error {
	switch {
	case c.circuits < benchWatched || c.circuits > benchMostCircuits:
		return fmt.Errorf("--circuits %d: want %d to %d", c.circuits, benchWatched, benchMostCircuits)
	case c.rounds < 1:
		return fmt.Errorf("--rounds %d: want at least 1", c.rounds)
	}
	return benchCheckOutput(c.output)
}

// benchL2vpn is what l2vpn prints. Times are in milliseconds but for setup.
type benchL2vpn struct {
	benchTaken
	Circuits       int         `json:"circuits"`
	Rounds         int         `json:"rounds"`
	Silent         bool        `json:"silent"`
	OneP50         float64     `json:"one_p50_ms"`
	Setup          float64     `json:"setup_s"`
	RestoreP50     float64     `json:"restore_p50_ms"`
	RestoreP99     float64     `json:"restore_p99_ms"`
	Lost           float64     `json:"lost_ms"`
	EntriesChanged float64     `json:"entries_changed"`
	One            []float64   `json:"one_ms"`
	Restored       benchSpread `json:"restore_ms"`
	LostEach       []float64   `json:"lost_each_ms"`
	EntriesEach    []float64   `json:"entries_changed_each"`
	Marks          []benchMark `json:"marks"`
}

// benchCircuits is one `weft bench l2vpn`.
type benchCircuits struct {
	*benchLab
	c     benchL2vpnConfig
	dpids [2]string // of the edges
}

func benchRunL2vpn(ctx context.Context, c benchL2vpnConfig, out, progress io.Writer) (err error) {
	r := &benchL2vpn{Circuits: c.circuits, Rounds: c.rounds, Silent: c.silent}
	r.begin()
	b := &benchCircuits{c: c}
	if b.benchLab, err = benchLabController(ctx, ""); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.down()) }()
	if err := b.open(ctx); err != nil {
		return b.child.Failed(err)
	}
	fmt.Fprintln(progress, "the lab is up, and known")
	if err := b.measure(ctx, r, progress); err != nil {
		return b.child.Failed(err)
	}
	r.end()
	r.sum()
	if c.output == "json" {
		return benchJSON(out, r)
	}
	return r.table(out)
}

// ports is how many ports with VLANs a customer has.
func (c *benchL2vpnConfig) ports() int {
	return (c.circuits+benchWatched+c.rounds*benchOnes)/benchVLANs + 1
}

// customer is the nth host of an edge.
func (b *benchCircuits) customer(edge, n int) string { return fmt.Sprintf("bench%d-%d", edge+1, n+1) }

// open brings the lab up and waits until the controller knows its links.
func (b *benchCircuits) open(ctx context.Context) error {
	topo := topology.OSHI()
	for edge, sw := range []string{"pe1", "pe3"} {
		for n := range b.c.ports() {
			topo.Hosts = append(topo.Hosts, topology.Host{Name: b.customer(edge, n), Switch: sw})
		}
	}
	if err := b.up(ctx, topo, "tcp:"+b.address); err != nil {
		return err
	}
	for edge, sw := range []string{"pe1", "pe3"} {
		dpid, err := b.lab.SwitchDPID(sw)
		if err != nil {
			return err
		}
		b.dpids[edge] = dpid.String()
	}
	return b.settled(ctx)
}

// benchSettle is how long a network may take to settle.
const benchSettle = time.Minute

// benchWithoutBFD returns how many ports of links between nodes have no session that
// is up.
func benchWithoutBFD(nodes []*api.Node) (n int) {
	for _, node := range nodes {
		for _, p := range node.Report.GetPorts() {
			if p.Role == flow.RoleLink.String() && p.Bfd != "up" {
				n++
			}
		}
	}
	return n
}

// settled waits until the controller knows all links, and all tunnels are up; where
// cuts are silent, also all BFD sessions.
func (b *benchCircuits) settled(ctx context.Context) error {
	for end := time.Now().Add(benchSettle); ; time.Sleep(100 * time.Millisecond) {
		missing := ""
		err := b.asked().Ask(ctx, func(n *cli.Controller) error {
			links, err := n.ListLinks(n.Ctx, &api.ListLinksRequest{})
			if err != nil {
				return err
			}
			up := 0
			for _, l := range links.Links {
				if l.State == "up" {
					up++
				}
			}
			if want := 2 * len(b.lab.Topology().Links); up != want {
				missing = fmt.Sprintf("%d of %d links", up, want)
				return nil
			}
			if b.c.silent {
				nodes, err := n.ListNodes(n.Ctx, &api.ListNodesRequest{})
				if err != nil {
					return err
				}
				if without := benchWithoutBFD(nodes.Nodes); without > 0 {
					missing = fmt.Sprintf("%d ports of links lack a BFD session that is up", without)
					return nil
				}
			}
			tunnels, err := n.ListTunnels(n.Ctx, &api.ListTunnelsRequest{})
			for _, t := range tunnels.GetTunnels() {
				if t.State != "up" {
					missing = fmt.Sprintf("tunnel %s is %s: %s", t.Name, t.State, t.Reason)
				}
			}
			return err
		})
		switch {
		case err == nil && missing == "":
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		case time.Now().After(end):
			return errors.Join(fmt.Errorf("after %v the network has not settled: %s", benchSettle, missing), err)
		}
	}
}

// circuit is the nth circuit.
func (b *benchCircuits) circuit(n int, protect bool) *api.Circuit {
	of := &api.Circuit{Name: fmt.Sprintf("bench-%d", n), Protect: protect}
	for edge, dpid := range b.dpids {
		host, _ := b.lab.Topology().HostByName(b.customer(edge, n/benchVLANs))
		of.Ends = append(of.Ends, fmt.Sprintf("%s:%d.%d", dpid, host.Port, n%benchVLANs+1))
	}
	return of
}

// set makes circuits and returns how long it took until all of them were up.
func (b *benchCircuits) set(ctx context.Context, list []*api.Circuit) (took time.Duration, err error) {
	var began time.Time
	var open string // one that is not up yet, and why
	err = b.asked().Ask(ctx, func(n *cli.Controller) error {
		began = time.Now()
		answer, err := n.SetCircuits(n.Ctx, &api.SetCircuitsRequest{Circuits: list})
		took = time.Since(began)
		for _, o := range answer.GetOutcomes() {
			switch {
			case o.Error != "":
				return fmt.Errorf("circuit %s: %s", o.Name, o.Error)
			case o.Circuit.GetState() != "up":
				open = o.Name
			}
		}
		return err
	})
	for end := time.Now().Add(benchSettle); err == nil && open != ""; time.Sleep(time.Millisecond) {
		err = b.asked().Ask(ctx, func(n *cli.Controller) error {
			all, err := n.ListCircuits(n.Ctx, &api.ListCircuitsRequest{})
			took, open = time.Since(began), ""
			for _, c := range all.GetCircuits() {
				if c.State != "up" {
					open = fmt.Sprintf("circuit %s is %s: %s", c.Name, c.State, c.Reason)
				}
			}
			return err
		})
		if err == nil && open != "" && time.Now().After(end) {
			err = errors.New(open)
		}
	}
	return took, err
}

// measure sets the circuits up, and cuts links under them.
func (b *benchCircuits) measure(ctx context.Context, r *benchL2vpn, progress io.Writer) error {
	var all, single []*api.Circuit
	for n := range b.c.circuits {
		all = append(all, b.circuit(n, true))
	}
	for n := range benchWatched {
		single = append(single, b.circuit(b.c.circuits+n, false))
	}
	took, err := b.set(ctx, all)
	if err != nil {
		return err
	}
	r.Setup = took.Seconds()
	fmt.Fprintf(progress, "%d circuits up in %.2f s\n", len(all), r.Setup)
	if _, err := b.set(ctx, single); err != nil {
		return err
	}
	var restored []float64
	for round := range b.c.rounds {
		var ones []float64
		for k := range benchOnes {
			took, err := b.set(ctx, []*api.Circuit{b.circuit(b.c.circuits+benchWatched+round*benchOnes+k, true)})
			if err != nil {
				return err
			}
			ones = append(ones, took.Seconds()*1e3)
		}
		r.One = append(r.One, ones...)
		cut, err := b.cut(ctx)
		if err != nil {
			return err
		}
		restored = append(restored, cut.single...)
		r.LostEach, r.EntriesEach = append(r.LostEach, slices.Max(cut.protected)), append(r.EntriesEach, cut.entries)
		fmt.Fprintf(progress, "round %d/%d: one more up in %.1f ms; %s cut: protected %.0f ms, others %.0f ms, %.0f flow-mods\n",
			round+1, b.c.rounds, newBenchSpread(ones).Median, cut.link, r.LostEach[round], slices.Max(cut.single), cut.entries)
	}
	r.Restored = newBenchSpread(restored)
	slices.Sort(restored)
	r.RestoreP99 = restored[(99*len(restored)+99)/100-1]
	return nil
}

// benchCut is what a cut did, in milliseconds of outage.
type benchCut struct {
	link              string
	protected, single []float64
	entries           float64
}

// How long frames are sent before and after a cut.
const (
	benchCutBefore = 500 * time.Millisecond
	benchCutAfter  = 1500 * time.Millisecond
	benchSilent    = 10 * time.Second // after, where nobody loses carrier
)

// cut cuts the first link of the circuits while frames are sent in twenty of them.
func (b *benchCircuits) cut(ctx context.Context) (*benchCut, error) {
	if err := b.settled(ctx); err != nil {
		return nil, err
	}
	watched := make([]int, 0, 2*benchWatched)
	for n := range 2 * benchWatched {
		if n < benchWatched {
			watched = append(watched, n*b.c.circuits/benchWatched)
		} else {
			watched = append(watched, b.c.circuits+n-benchWatched)
		}
	}
	a, z, err := b.firstLink(ctx, watched)
	if err != nil {
		return nil, err
	}
	before, err := b.flowMods(ctx)
	if err != nil {
		return nil, err
	}
	streamed := make(chan error, 1)
	s := newBenchVLANStream(b, watched)
	length := benchCutBefore + benchCutAfter
	if b.c.silent {
		length = benchCutBefore + benchSilent
	}
	go func() { streamed <- s.run(ctx, length) }()
	time.Sleep(benchCutBefore)
	fail := b.lab.LinkDown
	if b.c.silent {
		fail = b.lab.LinkSilent
	}
	if err := fail(ctx, a, z); err != nil {
		return nil, errors.Join(err, <-streamed)
	}
	sent := <-streamed
	after, err := b.flowMods(ctx)
	if err = errors.Join(err, sent, b.lab.LinkUp(context.WithoutCancel(ctx), a, z)); err != nil {
		return nil, err
	}
	outages := s.outages()
	return &benchCut{a + "-" + z, outages[:benchWatched], outages[benchWatched:], after - before}, b.settled(ctx)
}

// firstLink is the link behind the first edge, which all circuits that are watched are
// to take.
func (b *benchCircuits) firstLink(ctx context.Context, watched []int) (a, z string, err error) {
	err = b.asked().Ask(ctx, func(n *cli.Controller) error {
		for _, number := range watched {
			now, err := n.GetCircuit(n.Ctx, &api.GetCircuitRequest{Name: fmt.Sprintf("bench-%d", number)})
			if err != nil {
				return err
			}
			if len(now.Path) < 2 {
				return fmt.Errorf("circuit %s is %s, without a path: %s", now.Name, now.State, now.Reason)
			}
			next := ""
			for _, s := range b.lab.Topology().Switches {
				if s.DPID.String() == now.Path[1] {
					next = s.Name
				}
			}
			if z != "" && z != next {
				return fmt.Errorf("the circuits go by %s and by %s: no link is under all of them", z, next)
			}
			a, z = "pe1", next
		}
		return nil
	})
	return a, z, err
}

// flowMods is how many flow-mods the controller has sent.
func (b *benchCircuits) flowMods(ctx context.Context) (float64, error) {
	return benchMetric(ctx, "http://"+b.north+"/metrics", "weft_southbound_flow_mods_total")
}

// sum fills in what follows from the rounds.
func (r *benchL2vpn) sum() {
	one, lost, entries := measure.Median(r.One), measure.Median(r.LostEach), measure.Median(r.EntriesEach)
	r.OneP50, r.RestoreP50, r.Lost, r.EntriesChanged = one.Median, r.Restored.Median, lost.Median, entries.Median
	most := 20.
	if r.Silent {
		most = 250
	}
	r.Marks = []benchMark{
		newBenchMark(fmt.Sprintf("one circuit up beside %d, median ms", r.Circuits), one, 50),
		newBenchMark("outage of protected circuits, median ms", lost, most),
		newBenchMark("flow-mods for each circuit, at a cut", measure.Interval{Median: entries.Median / float64(r.Circuits)}, .1),
	}
	if !r.Silent {
		r.Marks = append(r.Marks, newBenchMark("outage of circuits without protection, median ms", r.Restored.interval(), 100))
	}
	if r.Circuits == 1000 {
		r.Marks = append(r.Marks, newBenchMark("1,000 circuits up, s", measure.Interval{Median: r.Setup}, 3))
	}
}

// table prints it.
func (r *benchL2vpn) table(w io.Writer) error {
	fmt.Fprintf(w, "%d protected circuits between two edges of weft lab up oshi, real Open vSwitch; %d rounds\n", r.Circuits, r.Rounds)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "setup of all\t%.2f s\n", r.Setup)
	fmt.Fprintf(t, "one more, median\t%.1f ms\n", r.OneP50)
	fmt.Fprintf(t, "link cut: outage of protected circuits, median\t%.0f ms\n", r.Lost)
	fmt.Fprintf(t, "link cut: outage of others, median and 99th percentile\t%.0f and %.0f ms\n", r.RestoreP50, r.RestoreP99)
	fmt.Fprintf(t, "link cut: flow-mods, median\t%.0f\n", r.EntriesChanged)
	if err := t.Flush(); err != nil {
		return err
	}
	for _, m := range r.Marks {
		fmt.Fprintln(w, m)
	}
	return r.writeTaken(w)
}
