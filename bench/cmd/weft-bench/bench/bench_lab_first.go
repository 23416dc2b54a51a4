package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/weft-sdn/weft/cmd/weft/cli"
	"github.com/weft-sdn/weft/lab/topology"
	"github.com/weft-sdn/weft/test/measure"
)

// benchFirstConfig is the flags of first-packet.
type benchFirstConfig struct {
	switches []int
	runs     int
	peer     string
	output   string
}

func benchFirstCommand() *cobra.Command {
	var c benchFirstConfig
	cmd := &cobra.Command{
		Use:   "first-packet",
		Short: "Measure the first packet between hosts over real switches, beside another controller",
		Long: `Measure how long the first packet between two hosts takes over a row of real
switches, the hosts at its ends, with Weft's controller and, in turn, with
another on the same row.

A run is the round trip of one ping between two hosts that nobody has heard of:
for each run both hosts take Ethernet and IPv4 addresses that are new to the
network, so that no ARP cache, no flow entry and no controller knows them. The
time is from sending the echo request to its answer: ARP request and reply, echo
request and reply, all of them first packets to the switches. Nothing is
subtracted. Every controller has a lab of its own for each number of switches;
all of them are up at the same time and take turns, run by run. IPv6 is off on
the hosts.

After each run with Weft the switches forget their datapath's cache, and the same
hosts ping once more: alone is what that takes, with all entries there and without
a controller. A packet that is new to a switch's cache takes its slow path, so the
time grows with the number of switches whoever the controller is.

It needs root and Open vSwitch. The other controller is ovs-testcontroller if
that is installed; --peer "" leaves it out.`,
		Example: `  weft bench first-packet
  weft bench first-packet --switches 1,3,5 --runs 100 -o json
  weft bench first-packet --peer "ryu-manager --ofp-tcp-listen-port {port} ryu.app.simple_switch_13"`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := c.check(cmd.Flags().Changed("peer")); err != nil {
				return cli.Usagef(cmd, "%w", err)
			}
			ctx, stop := cli.Signals(cmd)
			defer stop()
			return benchRunFirst(ctx, c, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	f := cmd.Flags()
	f.IntSliceVar(&c.switches, "switches", []int{1, 5}, "numbers of switches in the row")
	f.IntVar(&c.runs, "runs", 30, "runs for each controller and number of switches")
	f.StringVar(&c.peer, "peer", benchPeer, "start this controller too; {port} is replaced by where it is to listen")
	f.StringVarP(&c.output, "output", "o", "table", "table or json")
	return cmd
}

// check says which flag is wrong. Unless the peer was asked for it is left out
// where it is not installed.
func (c *benchFirstConfig) check(asked bool) error {
	if len(c.switches) == 0 {
		return errors.New("--switches: want at least one number")
	}
	for _, n := range c.switches {
		if n < 1 {
			return fmt.Errorf("--switches %d: want at least 1", n)
		}
	}
	if c.runs < 1 || c.runs > benchFirstRunsMost {
		return fmt.Errorf("--runs %d: want 1 to %d, for Weft takes so many hosts at one port", c.runs, benchFirstRunsMost)
	}
	if c.peer != "" {
		if !strings.Contains(c.peer, "{port}") {
			return fmt.Errorf("--peer %q: want a command with {port} where the port goes that it is to listen on", c.peer)
		}
		if _, err := exec.LookPath(strings.Fields(c.peer)[0]); err != nil {
			if asked {
				return fmt.Errorf("--peer: %w", err)
			}
			c.peer = ""
		}
	}
	return benchCheckOutput(c.output)
}

// benchFirstRow is one controller over one number of switches.
type benchFirstRow struct {
	Controller string      `json:"controller"`
	Switches   int         `json:"switches"`
	MS         benchSpread `json:"ms"`
	Lost       int         `json:"lost"` // first packets that were not answered
	Runs       []float64   `json:"runs_ms"`
	Alone      benchSpread `json:"alone_ms"`   // of the switches, with Weft's entries
	AloneRuns  []float64   `json:"alone_runs"` // in the order of Runs

	b    *benchLab
	next int // number of the next new host
}

// benchFirst is what first-packet prints.
type benchFirst struct {
	benchTaken
	Rows  []*benchFirstRow `json:"rows"`
	Marks []benchMark      `json:"marks"`
}

// The marks.
const (
	benchFirstRatioMost = 1.5 // 5 switches to 1
	benchFirstPeerMost  = 0.5 // Weft to the peer
)

// benchFirstRunsMost is how many runs there may be: each is a new host at the
// same port.
const benchFirstRunsMost = 500

const (
	benchFirstWait  = 900 * time.Millisecond // for an answer: before ARP would ask again
	benchFirstTries = 50                     // of the warm-up
	benchFirstRest  = 5 * time.Millisecond   // what a run has set off comes to its end
)

// benchRunFirst is `weft bench first-packet`.
func benchRunFirst(ctx context.Context, c benchFirstConfig, out, progress io.Writer) (err error) {
	if err := benchNeedLab(); err != nil {
		return err
	}
	r := &benchFirst{}
	r.begin("IPv6 off on the hosts")
	defer func() {
		for _, row := range r.Rows {
			err = errors.Join(err, row.b.down())
		}
	}()
	commands := []string{""}
	if c.peer != "" {
		commands = append(commands, c.peer)
	}
	for _, n := range c.switches {
		for _, command := range commands {
			row := &benchFirstRow{Switches: n, next: 1}
			row.b, err = benchLabController(ctx, command)
			if err != nil {
				return err
			}
			r.Rows = append(r.Rows, row)
			row.Controller = row.b.name
			if err := row.start(ctx); err != nil {
				return row.b.child.Failed(err)
			}
			fmt.Fprintf(progress, "%s with %d switches is ready\n", row.Controller, n)
		}
	}
	for n := range c.runs {
		for _, i := range measure.Order(n, len(r.Rows)) {
			row := r.Rows[i]
			if err := ctx.Err(); err != nil {
				return err
			}
			rtt, err := row.run()
			switch {
			case errors.Is(err, errNoAnswer) && row.b.child.Ended() == nil:
				row.Lost++
			case err != nil:
				return row.b.child.Failed(err)
			default:
				if err := row.add(ctx, rtt); err != nil {
					return row.b.child.Failed(err)
				}
			}
			time.Sleep(benchFirstRest)
		}
	}
	r.end()
	r.sum()
	if err := r.write(out, c.output); err != nil {
		return err
	}
	return r.unmeasured()
}

// unmeasured says which controllers answered no first packet at all.
func (r *benchFirst) unmeasured() (err error) {
	for _, row := range r.Rows {
		if len(row.Runs) == 0 {
			err = errors.Join(err, fmt.Errorf("not measured: %s over %d switches, none of %d first packets was answered", row.Controller, row.Switches, row.Lost))
		}
	}
	return err
}

// start brings the row of switches up and waits until a first packet gets through.
func (row *benchFirstRow) start(ctx context.Context) error {
	topo, err := topology.Linear(row.Switches, 0)
	if err != nil {
		return err
	}
	topo.Hosts = []topology.Host{{Name: "h1", Switch: "s1"}, {Name: "h2", Switch: fmt.Sprintf("s%d", row.Switches)}}
	if err := row.b.up(ctx, topo, "tcp:"+row.b.address); err != nil {
		return err
	}
	for _, h := range row.hosts() {
		if err := h.quiet(); err != nil {
			return err
		}
	}
	if row.b.north != "" {
		if err := row.b.ready(ctx); err != nil {
			return err
		}
	}
	for good, try := 0, 0; good < 2; try++ {
		_, err := row.run()
		switch {
		case err == nil:
			good++
		case !errors.Is(err, errNoAnswer):
			return err
		case try == benchFirstTries:
			return fmt.Errorf("no ping gets through %d switches", row.Switches)
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	return nil
}

func (row *benchFirstRow) hosts() [2]coldHost {
	return [2]coldHost{{row.b.lab.HostNetns("h1")}, {row.b.lab.HostNetns("h2")}}
}

// run is one first packet between two new hosts.
func (row *benchFirstRow) run() (time.Duration, error) {
	a, b := row.next, row.next+1
	row.next += 2
	hosts := row.hosts()
	for i, n := range []int{a, b} {
		if err := hosts[i].become(n); err != nil {
			return 0, fmt.Errorf("give a host new addresses: %w", err)
		}
	}
	return hosts[0].ping(coldIP(a), coldIP(b), benchFirstWait)
}

// add adds a run, and for Weft one of the switches alone.
func (row *benchFirstRow) add(ctx context.Context, rtt time.Duration) error {
	if row.b.north != "" {
		time.Sleep(benchFirstRest)
		if _, err := row.b.lab.AppCtl(ctx, "dpctl/del-flows"); err != nil {
			return err
		}
		alone, err := row.hosts()[0].ping(coldIP(row.next-2), coldIP(row.next-1), benchFirstWait)
		if err != nil {
			return fmt.Errorf("ping again, with the entries there: %w", err)
		}
		row.AloneRuns = append(row.AloneRuns, benchMilliseconds(alone))
	}
	row.Runs = append(row.Runs, benchMilliseconds(rtt))
	return nil
}

// more returns how much longer each run took than that of the switches alone.
func (row *benchFirstRow) more() []float64 {
	list := slices.Clone(row.Runs)
	for i := range list {
		list[i] -= row.AloneRuns[i]
	}
	return list
}

// sum fills in what follows from the runs.
func (r *benchFirst) sum() {
	for _, row := range r.Rows {
		row.MS, row.Alone = newBenchSpread(row.Runs), newBenchSpread(row.AloneRuns)
	}
	find := func(weft bool, switches int) *benchFirstRow {
		i := slices.IndexFunc(r.Rows, func(row *benchFirstRow) bool {
			return row.Switches == switches && (row.b.north != "") == weft && len(row.Runs) > 0
		})
		if i < 0 {
			return nil
		}
		return r.Rows[i]
	}
	if one, five := find(true, 1), find(true, 5); one != nil && five != nil {
		r.Marks = append(r.Marks, newBenchMark("weft, 5 switches to 1", measure.RatioOfMedians(five.Runs, one.Runs), benchFirstRatioMost),
			newBenchMark("the same, less what the switches take alone", measure.RatioOfMedians(five.more(), one.more()), benchFirstRatioMost))
	}
	longest := slices.MaxFunc(r.Rows, func(a, b *benchFirstRow) int { return a.Switches - b.Switches }).Switches
	for _, row := range r.Rows {
		if row.b.north != "" || row.Switches < longest {
			continue
		}
		if weft := find(true, row.Switches); weft != nil && len(row.Runs) > 0 {
			what := fmt.Sprintf("weft to %s, %d switches", row.Controller, row.Switches)
			r.Marks = append(r.Marks, newBenchMark(what, measure.RatioOfMedians(weft.Runs, row.Runs), benchFirstPeerMost))
		}
	}
}

// write prints the figures.
func (r *benchFirst) write(w io.Writer, output string) error {
	if output == "json" {
		return benchJSON(w, r)
	}
	fmt.Fprintln(w, "first packet between hosts that nobody has heard of, round trip in ms")
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "CONTROLLER\tSWITCHES\tRUNS\tLOST\tMEDIAN\t95 %\tP95\tMAX")
	for _, row := range r.Rows {
		fmt.Fprintf(t, "%s\t%d\t%d\t%d\t%.2f\t%s\t%.2f\t%.2f\n",
			row.Controller, row.Switches, len(row.Runs)+row.Lost, row.Lost, row.MS.Median, benchInterval(row.MS.CI95, benchTwo), row.MS.P95, row.MS.Max)
		if n := len(row.AloneRuns); n > 0 {
			fmt.Fprintf(t, "  its switches alone\t%d\t%d\t0\t%.2f\t%s\t%.2f\t%.2f\n",
				row.Switches, n, row.Alone.Median, benchInterval(row.Alone.CI95, benchTwo), row.Alone.P95, row.Alone.Max)
		}
	}
	if err := t.Flush(); err != nil {
		return err
	}
	for _, m := range r.Marks {
		fmt.Fprintln(w, m)
	}
	return r.writeTaken(w)
}
