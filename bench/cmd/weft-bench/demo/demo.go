package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/weft-sdn/weft/cmd/weft/cli"
	"github.com/weft-sdn/weft/cmd/weft/planner"
	"github.com/weft-sdn/weft/internal/asowner"
	"github.com/weft-sdn/weft/lab"
)

func Command() *cobra.Command {
	d := &Demo{}
	var keep bool
	var features string
	cmd := &cobra.Command{
		Use:     "demo",
		GroupID: "work",
		Short:   "Show the controller at work on a network of real switches",
		Long: `Show the controller at work: start it, bring up a lab of ten Open vSwitch
switches with loops and eight hosts, wait for discovery, ping all pairs over
IPv4 and IPv6, cut a link under a running ping, kill the controller with SIGKILL
under traffic and restart it, and print what came of it. Exit status 1 if
anything fell short.

With --plan the controller runs in the processes of a plan, and more is shown:
the processes, the worker that programs routes killed with SIGKILL under
traffic, another plan applied and the first one again while traffic runs, and
the transports between the processes exchanged.

With --features the parts of the controller that are asked for are shown
instead, each on real traffic, by the commands that one would type. It goes with
--plan.

On a terminal the controller and the lab are left running, to be looked at:
the controller in the processes of the plan split, if no other was asked for,
beside weft lab serve and weft experiment serve; the last line is the address of
Loom, the page in the browser. weft demo stop takes them down. Otherwise, and
with CI=1, the demo takes down what it made. It needs root and Open vSwitch.`,
		Example: `  weft demo
  weft demo --plan split
  weft demo --features all
  weft demo --features firewall,qos --plan split
  CI=1 weft demo
  weft demo stop`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
			defer stop()
			if features != "" {
				if err := d.chooseFeatures(features); err != nil {
					return cli.Usagef(cmd, "%v", err)
				}
			}
			if !cmd.Flags().Changed("keep") {
				keep = os.Getenv("CI") == "" && cli.Terminal(os.Stdout)
			}
			return d.run(ctx, cmd, keep)
		},
	}
	f := cmd.Flags()
	f.StringVar(&d.listen, "listen", "127.0.0.1:6653", "HOST:PORT where the switches connect")
	f.StringVar(&d.HTTP, "http", "127.0.0.1:8181", "HOST:PORT of the northbound")
	f.StringVar(&d.plan, "plan", "", "run the controller as a plan says: a built-in one or a file; see weft plan list")
	f.StringVar(&features, "features", "", "show these parts: all, or a list of "+strings.Join(d.featureNames(), ", "))
	f.StringVar(&d.topology, "topology", "demo", "the lab's topology; see weft lab up")
	cmd.PersistentFlags().StringVar(&d.dir, "dir", "/run/weft/demo", "directory of the controller's state and log")
	f.BoolVar(&keep, "keep", false, "leave controller and lab running (default: on a terminal)")
	cmd.AddCommand(demoHostCommands()...)
	cmd.AddCommand(&cobra.Command{
		Use:     "stop",
		Short:   "Take down what a demo has left running",
		Example: "  weft demo stop",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := asowner.Check(d.dir); err != nil {
				return fmt.Errorf("--dir: %w", err)
			}
			_, err := os.Stat(d.dir)
			if os.IsNotExist(err) && !lab.Exists(demoLab) && !lab.Exists(carrierLab) && !lab.Exists(demoClosedLab) {
				fmt.Fprintln(cmd.OutOrStdout(), "no demo is running")
				return nil
			}
			return d.stop(context.Background())
		},
	})
	return cmd
}

// demoLab is the name of the demo's lab.
const demoLab = "demo"

// Demo is one run.
type Demo struct {
	listen, HTTP, topology, dir string

	plan string // its name; empty: one process

	shows         map[string]bool // features, by name; nil: the demo without --features
	ryu           string          // HOST:PORT of Ryu's REST; empty: off
	secure        bool            // TLS only
	ca, tokenFile string          // of the northbound; empty: none needed
	further       []string        // flags of weft up
	second        *closedDemo     // nil: not started

	out     io.Writer
	began   time.Time
	Lab     *lab.Lab
	results []demoResult
}

// demoResult is a line of the summary.
type demoResult struct {
	what, figure string
	err          error
}

// errDemo is the demo's error once the summary has said what fell short.
var errDemo = errors.New("the demo fell short; see the summary")

func (d *Demo) run(ctx context.Context, cmd *cobra.Command, keep bool) (err error) {
	d.out, d.began = cmd.OutOrStdout(), time.Now()
	if os.Geteuid() != 0 {
		return errors.New("the demo makes network namespaces and so needs root; try sudo weft demo")
	}
	if err := asowner.Check(d.dir); err != nil {
		return fmt.Errorf("--dir: %w", err)
	}
	if d.plan != "" {
		p, err := planner.ReadPlan(d.plan)
		if err == nil {
			err = planner.Fits(p)
		}
		switch {
		case err != nil:
			return err
		case len(p.Partitions) > 1:
			return cli.Usagef(cmd, "--plan %s: it has %d partitions, each with switches of its own; the demo's network is one", d.plan, len(p.Partitions))
		}
	}
	if err := d.stop(ctx); err != nil {
		return err
	}
	if err := checkPorts(d.listen, d.HTTP); err != nil {
		return err
	}
	defer func() {
		if keep && err == nil {
			return
		}
		d.progress("taking down controller and lab")
		err = errors.Join(err, d.stop(context.WithoutCancel(ctx)))
	}()
	for i, step := range d.steps() {
		d.progress(step.what)
		figure, err := step.do(ctx)
		if i == 0 && err == nil && !keep {
			d.progress(d.loomAddress() + " while this runs")
		}
		d.results = append(d.results, demoResult{step.what, figure, err})
		if ctx.Err() != nil {
			return errors.New("interrupted")
		}
		if err != nil {
			d.progress("failed: " + err.Error())
			if d.Lab == nil || len(d.results) <= 3 {
				break // nothing else can work
			}
		}
	}
	if d.second != nil { // its traces go to this process, which ends
		d.results = append(d.results, demoResult{"second controller and its lab taken down", "", features{d}.stopClosed(ctx)})
	}
	if err := d.summary(); err != nil {
		return err
	}
	if !keep {
		return nil
	}
	if d.shows == nil {
		if err := d.openLoom(ctx); err != nil {
			return err
		}
	}
	d.next()
	return nil
}

// demoStep is one thing that is shown.
type demoStep struct {
	what string
	do   func(context.Context) (figure string, err error)
}

func (d *Demo) steps() []demoStep {
	ping := func(v6 bool) func(context.Context) (string, error) {
		return func(ctx context.Context) (string, error) { return d.pingAll(ctx, v6) }
	}
	how := "one process, embedded store"
	if d.plan != "" {
		how = "plan " + d.plan
	}
	steps := []demoStep{
		{"controller up, " + how, d.startController},
		{"lab of real switches up", d.startLab},
		{"switches, links and ports discovered", d.AwaitDiscovery},
		{"ping all pairs, IPv4", ping(false)},
		{"ping all pairs, IPv6", ping(true)},
		{"weft get flows agrees with ovs-ofctl", d.compareFlows},
		{"link cut under a running ping", d.cutLink},
	}
	if d.shows != nil {
		return append(steps[:4], d.featureSteps()...)
	}
	if d.plan != "" {
		steps = append(steps, planned{d}.planSteps()...)
	}
	return append(steps,
		demoStep{"controller killed (SIGKILL) under traffic", d.killController},
		demoStep{"ping all pairs after the restart", ping(false)})
}

func (d *Demo) progress(what string) {
	fmt.Fprintf(d.out, "%6.1fs  %s\n", time.Since(d.began).Seconds(), what)
}

// summary prints the results, and is errDemo if any of them is an error.
func (d *Demo) summary() error {
	fmt.Fprintln(d.out)
	w := tabwriter.NewWriter(d.out, 0, 8, 2, ' ', 0)
	fmt.Fprintln(w, "CHECK\tRESULT\tFIGURES")
	var failed error
	for _, r := range d.results {
		verdict := "ok"
		if r.err != nil {
			verdict, failed = "FAILED", errDemo
			r.figure = strings.TrimSpace(r.figure + " " + r.err.Error())
		}
		fmt.Fprintf(w, "%s\t%s\t%s\n", r.what, verdict, r.figure)
	}
	_ = w.Flush()
	return failed
}

func (d *Demo) next() {
	server := ""
	if d.HTTP != "127.0.0.1:8181" {
		server = " --server http://" + d.HTTP
	}
	fmt.Fprintf(d.out, `
Controller and lab are running: http://%s (log in %s)
Try:
  weft get switches%[3]s          and links, hosts, flows, routes, paths, services
  weft trace 10.0.0.1 10.0.0.4%[3]s   which entry of which switch a packet meets
  weft events%[3]s                what happens, as it happens
  weft lab ping h1 h8 -c -1      a ping to look at, until interrupted
  weft lab graph                 its links; weft lab link A B down cuts one, up mends it
  weft lab exec h1 -- bash       a shell in a host
  weft demo stop                 when you have seen enough

%s
`, d.HTTP, filepath.Join(d.dir, "controller.log"), server, d.loomAddress())
}

// stop takes down what this or an earlier demo has made.
func (d *Demo) stop(ctx context.Context) error {
	err := errors.Join(lab.Down(ctx, demoLab), lab.Down(ctx, carrierLab))
	return errors.Join(err, features{d}.stopClosed(ctx), d.endController(), d.endServices(), os.RemoveAll(d.dir))
}
