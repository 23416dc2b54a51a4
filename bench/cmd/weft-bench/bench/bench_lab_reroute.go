package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/cmd/weft/cli"
	"github.com/weft-sdn/weft/cmd/weft/get"
	"github.com/weft-sdn/weft/lab/topology"
	"github.com/weft-sdn/weft/lab/traffic"

	"github.com/weft-sdn/weft/openflow"
	"github.com/weft-sdn/weft/test/measure"
)

// benchRerouteConfig is the flags of reroute.
type benchRerouteConfig struct {
	topology string
	runs     int
	failover bool
	set      []string
	output   string
}

func benchRerouteCommand() *cobra.Command {
	var c benchRerouteConfig
	cmd := &cobra.Command{
		Use:   "reroute",
		Short: "Measure what a cut link costs a running ping stream over real switches",
		Long: `Measure what a cut link costs: on a lab of real switches with loops, cut a link
that carries a ping stream (one packet every millisecond), watch for half a
second, put it back, and so on with other hosts and other links of their path.

  outage     the longest run of packets without an answer, in milliseconds
  noticed    from the kernel's announcing that the link has lost carrier to the
             first port-status message on the wire: the switches' own time
  decided    from there to the last flow-mod on the wire that changes a route, at
             whatever switch: the controller's time
  installed  from the first port-status to the last barrier reply behind those
             flow-mods: port-down to reroute installed
  says       what the controller says that its part of it took
  alone      with --failover, the outage while the controller is stopped (SIGSTOP):
             what the switches take by themselves; each cut is made both ways

The wire is looked at between switches and controller by bench, which puts
barriers of its own behind the flow-mods. Flow-mods that repeat what a switch has
are counted apart (again): forwarding sends a route that moved shortly after it
was programmed once more after 1 s and after 15 s, in case the two overtook each
other on their way, and those of earlier cuts come while a later one is watched. A run ends when the link is back and
the network settled. Damping of links that flap is turned off, for the same
links are cut again and again. It needs root and Open vSwitch.`,
		Example: `  weft bench reroute
  weft bench reroute --failover --runs 50 -o json
  weft bench reroute --topology ring:20`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			topo, err := c.check()
			if err != nil {
				return cli.Usagef(cmd, "%w", err)
			}
			ctx, stop := cli.Signals(cmd)
			defer stop()
			return benchRunReroute(ctx, cmd, c, topo)
		},
	}
	f := cmd.Flags()
	f.StringVar(&c.topology, "topology", "demo", "the lab's topology, with loops; see weft lab up")
	f.IntVar(&c.runs, "runs", 20, "how often a link is cut")
	f.BoolVar(&c.failover, "failover", false, "with fast-failover groups (forwarding.fast_failover)")
	f.StringArrayVar(&c.set, "set", nil, "set one key of the controller, as service.key=value; may be repeated")
	f.StringVarP(&c.output, "output", "o", "table", "table or json")
	return cmd
}

// check says which flag is wrong, and returns the topology.
func (c *benchRerouteConfig) check() (*topology.Topology, error) {
	if c.runs < 1 {
		return nil, fmt.Errorf("--runs %d: want at least 1", c.runs)
	}
	if err := benchCheckOutput(c.output); err != nil {
		return nil, err
	}
	topo, err := topology.Resolve(c.topology)
	switch {
	case err != nil:
		return nil, fmt.Errorf("--topology: %w", err)
	case topo.Loops() == 0:
		return nil, fmt.Errorf("--topology %s: has no loops, so there is no way around a link", c.topology)
	case len(topo.Hosts) < 2:
		return nil, fmt.Errorf("--topology %s: has not two hosts", c.topology)
	}
	return topo, nil
}

// The stream, and how much of it comes before the cut and after.
const (
	benchStreamInterval = time.Millisecond
	benchStreamBefore   = 150 * time.Millisecond
	benchStreamAfter    = 500 * time.Millisecond
)

// benchRerouter is one `weft bench reroute`.
type benchRerouter struct {
	*benchLab
	wire   *benchWire
	kernel *benchCarrier
	events chan *api.RouteChanged
}

// benchRunReroute is `weft bench reroute`.
func benchRunReroute(ctx context.Context, cmd *cobra.Command, c benchRerouteConfig, topo *topology.Topology) (err error) {
	if err := benchNeedLab(); err != nil {
		return err
	}
	more := []string{"--set", "discovery.flap.downs=0", "--set", fmt.Sprintf("forwarding.fast_failover=%v", c.failover)}
	for _, s := range c.set {
		more = append(more, "--set", s)
	}
	b := &benchRerouter{events: make(chan *api.RouteChanged, 1<<12)}
	if b.benchLab, err = benchLabController(ctx, "", more...); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.down()) }()
	if err := b.up(ctx, topo, topology.ControllerDirect); err != nil {
		return err
	}
	if b.wire, err = newBenchWire(ctx, b.lab.ControllerSocket(), b.address); err != nil {
		return err
	}
	defer b.wire.close()
	if b.kernel, err = newBenchCarrier(b.lab.SwitchNetns()); err != nil {
		return err
	}
	defer b.kernel.close()
	if err := b.ready(ctx); err != nil {
		return err
	}
	stop, err := b.follow(ctx, cmd)
	if err != nil {
		return err
	}
	defer stop()
	r := &benchReroute{Topology: topo.Name, Failover: c.failover}
	r.begin("flap damping off (discovery.flap.downs=0)", fmt.Sprintf("forwarding.fast_failover=%v", c.failover))
	if len(c.set) > 0 {
		r.Conditions.Also(c.set...)
	}
	ways := 1
	if c.failover {
		ways = 2
	}
	for n := range c.runs {
		for _, way := range measure.Order(n, ways) {
			run, err := b.run(ctx, n, way == 1)
			if err != nil {
				return b.child.Failed(err)
			}
			r.Detail = append(r.Detail, run)
			fmt.Fprintf(cmd.ErrOrStderr(), "%d/%d: %v\n", n+1, c.runs, run)
		}
	}
	r.end()
	r.sum()
	return r.write(cmd.OutOrStdout(), c.output)
}

// follow takes the controller's events about routes.
func (b *benchRerouter) follow(ctx context.Context, cmd *cobra.Command) (stop func(), err error) {
	conn, err := get.FollowEvents(ctx, &cli.Remote{Server: "http://" + b.north, Timeout: 10 * time.Second}, cmd, []string{api.RouteChangedEvent.Name})
	if err != nil {
		return nil, err
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			_, text, err := conn.Read(ctx)
			if err != nil {
				return
			}
			var e get.EventRecord
			m := get.EventMessage(api.RouteChangedEvent.Name)
			if json.Unmarshal(text, &e) != nil || benchEvent(e.Event, m) != nil {
				continue
			}
			if changed, ok := m.(*api.RouteChanged); ok && changed.Change == "rerouted" {
				select {
				case b.events <- changed:
				default: // nobody reads: more than fits happened in one run
				}
			}
		}
	}()
	return func() { conn.CloseNow(); <-ended }, nil
}

// run cuts the n-th link; if alone is set, with the controller stopped.
func (b *benchRerouter) run(ctx context.Context, n int, alone bool) (*benchRerouteRun, error) {
	hosts := b.lab.Topology().Hosts
	i := n % len(hosts)
	from, to := hosts[i], hosts[(i+len(hosts)/2)%len(hosts)]
	if _, err := b.lab.Ping(ctx, from.Name, to.Name, traffic.PingOptions{Count: 5, Interval: 20 * time.Millisecond}); err != nil {
		return nil, err
	}
	route, err := b.route(ctx, from, to)
	if err != nil {
		return nil, err
	}
	link := n / len(hosts) % (len(route.Hops) - 1)
	ends, err := b.ends(route, link)
	if err != nil {
		return nil, err
	}
	run := &benchRerouteRun{From: from.Name, To: to.Name, Link: ends[0] + " " + ends[1], Hops: len(route.Hops), Alone: alone}
	b.wire.take()
	b.kernel.take()
	for len(b.events) > 0 {
		<-b.events
	}
	replies := &benchReplies{}
	type pinged struct {
		r   traffic.PingResult
		err error
	}
	stream := make(chan pinged, 1)
	go func() {
		count := int((benchStreamBefore + benchStreamAfter) / benchStreamInterval)
		r, err := b.lab.Ping(ctx, from.Name, to.Name, traffic.PingOptions{Count: count, Interval: benchStreamInterval, Timeout: 200 * time.Millisecond, Reply: replies.add})
		stream <- pinged{r, err}
	}()
	time.Sleep(benchStreamBefore)
	if alone {
		b.child.Signal(syscall.SIGSTOP)
	}
	err = b.lab.LinkDown(ctx, ends[0], ends[1])
	got := <-stream
	if alone {
		b.child.Signal(syscall.SIGCONT)
	}
	if err != nil {
		return nil, err
	}
	cut, seen := b.kernel.take()
	run.read(cut, b.wire.take())
	for len(b.events) > 0 {
		e := <-b.events
		run.Routes++
		run.SaysMS = max(run.SaysMS, float64(e.TookUs)/1e3)
	}
	run.OutageMS, run.Lost = replies.outage(got.r.Sent)
	if err := b.lab.LinkUp(ctx, ends[0], ends[1]); err != nil {
		return nil, err
	}
	switch {
	case got.err != nil:
		return nil, got.err
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case !seen:
		return nil, fmt.Errorf("the kernel has not announced that %s has lost carrier", run.Link)
	}
	return run, b.ready(ctx)
}

// route returns the route from one host to another.
func (b *benchRerouter) route(ctx context.Context, from, to topology.Host) (route *api.Route, err error) {
	err = b.asked().Ask(ctx, func(c *cli.Controller) error {
		resp, err := c.ListRoutes(c.Ctx, &api.ListRoutesRequest{})
		if err != nil {
			return err
		}
		for _, r := range resp.Routes {
			if r.Src == from.MAC.String() && r.Dst == to.MAC.String() && len(r.Hops) > 1 {
				route = r
				return nil
			}
		}
		return fmt.Errorf("no route from %s to %s that crosses a link", from.Name, to.Name)
	})
	return route, err
}

// ends returns the two ends, SWITCH:PORT, of a link of a route.
func (b *benchRerouter) ends(route *api.Route, link int) (ends [2]string, err error) {
	out, in := route.Hops[link], route.Hops[link+1]
	names := map[string]string{}
	for _, s := range b.lab.Topology().Switches {
		names[s.DPID.String()] = s.Name
	}
	ends[0], ends[1] = fmt.Sprintf("%s:%d", names[out.Dpid], out.OutPort), fmt.Sprintf("%s:%d", names[in.Dpid], in.InPort)
	_, err = b.lab.Link(ends[0], ends[1])
	return ends, err
}

// read takes the times off what crossed the wire after the cut.
func (run *benchRerouteRun) read(cut time.Time, notes []benchNote) {
	var status, sent, done time.Time
	for _, n := range notes {
		switch {
		case n.at.Before(cut):
		case n.kind == openflow.TypePortStatus:
			if status.IsZero() {
				status = n.at
			}
		case status.IsZero():
		case n.again:
			run.Again++
		case n.kind == openflow.TypeFlowMod:
			sent = n.at
			run.FlowMods++
		case n.kind == openflow.TypeBarrierReply && !sent.IsZero():
			done = n.at
		}
	}
	run.NoticedMS = benchBetween(cut, status)
	run.DecidedMS = benchBetween(status, sent)
	run.InstalledMS = benchBetween(status, done)
}

// benchBetween returns a time between two events in milliseconds, 0 if either
// did not happen.
func benchBetween(from, to time.Time) float64 {
	if from.IsZero() || to.IsZero() {
		return 0
	}
	return benchMilliseconds(to.Sub(from))
}

// write prints the figures.
func (r *benchReroute) write(w io.Writer, output string) error {
	if output == "json" {
		return benchJSON(w, r)
	}
	return r.table(w)
}
