package bench

import (
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/weft-sdn/weft/bench/sim"
	"github.com/weft-sdn/weft/cmd/weft/cli"
	"github.com/weft-sdn/weft/openflow"
)

// Command is `weft bench`.
func Command() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "bench",
		GroupID: "work",
		Short:   "Measure a controller with simulated or real switches",
		Long: `Measure a controller: Weft's own, which bench starts and stops, or another. Load
and scale are measured with simulated switches; first-packet and reroute with
real ones, in a lab.

A packet-in counts as answered when a flow-mod or packet-out for that very
packet comes back on the connection of its switch; duplicates, late and wrong
answers are counted apart. Every round is measured beside a round of the floor,
a responder that does the least possible (weft bench floor), and the report
gives the ratio: figures of different machines, or of a busy one, do not
compare, ratios do.

Where there are two processors, what is measured runs on the first of them and
the load on the second. To see how far the load itself goes, measure the floor
as the controller: --controller-command "weft bench floor --listen 127.0.0.1:{port}".`,
		Example: `  weft bench throughput --switches 16
  weft bench latency --switches 16 --openflow 1.3 -o json
  weft bench throughput --controller-command "ovs-testcontroller --unixctl=none ptcp:{port}" --switches 8
  weft bench throughput --controller 127.0.0.1:6653 --rate 50000 --plot latency.svg
  weft bench discovery --switches 1000 --links 6000`,
	}
	cmd.AddCommand(benchLoadCommand(benchThroughput), benchLoadCommand(benchLatency), benchDiscoveryCommand(), benchNetworkCommand(), benchFloorCommand(), benchResponderCommand(),
		benchFirstCommand(), benchRerouteCommand(), benchCrossingCommand(), benchPingCommand(), benchPathsCommand(), benchPlacementCommand(), benchSizeCommand(), benchPeersCommand(), benchFlowsCommand(), benchL2vpnCommand(), benchHTTPCommand())
	return cmd
}

// benchMode is what a load looks for.
type benchMode string

const (
	benchThroughput benchMode = "throughput"
	benchLatency    benchMode = "latency"
)

// benchConfig is the flags of throughput and latency.
type benchConfig struct {
	mode       benchMode
	switches   int
	version    openflow.Version
	controller string // address of one that runs
	command    string // starts one
	hosts      int    // of each switch
	ports      int    // of each switch that have hosts
	window     int
	rate       float64
	duration   time.Duration
	warmup     time.Duration
	rounds     int
	unbuffered bool
	floor      bool
	split      []benchSplit // measured beside the controller
	rules      int          // of the firewall; 0: without the firewall
	output     string
	plot       string
}

func benchLoadCommand(mode benchMode) *cobra.Command {
	c := benchConfig{mode: mode}
	var version string
	var split []string
	cmd := &cobra.Command{
		Use:   string(mode),
		Short: "Measure answers per second, every switch keeping a window of packet-ins outstanding",
		Long: `Measure how many packet-ins a second the controller answers, every switch keeping
a window of them outstanding; or, with --rate, offer so many a second and
measure how long the answers take.`,
		Example: `  weft bench throughput --switches 16 --openflow 1.0
  weft bench throughput --switches 16 --openflow 1.3 -o json
  weft bench throughput --host-ports 1
  weft bench throughput --split grpc --split grpc:3
  weft bench throughput --rate 100000 --plot latency.svg
  weft bench throughput --switches 8 --controller-command "ovs-testcontroller --unixctl=none ptcp:{port}"`,
		Args: cobra.NoArgs,
	}
	window := 512
	if mode == benchLatency {
		window = 1
		cmd.Short = "Measure answer times, every switch keeping one packet-in outstanding"
		cmd.Long = `Measure how long answers take when every switch has one packet-in outstanding and
sends the next when it is answered.`
		cmd.Example = `  weft bench latency --switches 16
  weft bench latency --switches 1 --openflow 1.3 --plot latency.svg
  weft bench latency --controller 127.0.0.1:6653 -o json`
	}
	f := cmd.Flags()
	f.IntVar(&c.switches, "switches", 16, "simulated switches")
	f.StringVar(&version, "openflow", "1.0", "OpenFlow version: 1.0 or 1.3")
	f.StringVar(&c.controller, "controller", "", "measure the controller at HOST:PORT (default: start Weft's own)")
	f.StringVar(&c.command, "controller-command", "", "start this controller and measure it; {port} is replaced by where it is to listen")
	f.IntVar(&c.hosts, "hosts", 1000, "hosts of each switch")
	f.IntVar(&c.ports, "host-ports", 16, "ports of each switch that the hosts share; with 1, all send to a silent host at another port, as cbench's do")
	f.DurationVar(&c.duration, "duration", 2*time.Second, "measured time of a round")
	f.IntVar(&c.rounds, "rounds", 5, "rounds; the report gives medians")
	f.DurationVar(&c.warmup, "warmup", time.Second, "load before the first round, not measured; every host speaks once before that")
	f.BoolVar(&c.unbuffered, "unbuffered", false, "send packets whole, without buffer_id: only a packet-out of the packet answers (no floor)")
	f.BoolVar(&c.floor, "floor", true, "measure the floor beside the controller")
	f.StringSliceVar(&split, "split", nil, "measure, beside the same services in one process, southbound and routing apart: TRANSPORT or TRANSPORT:REPLICAS; may be repeated")
	f.IntVar(&c.rules, "firewall-rules", 0, "measure with the firewall and so many rules (ClassBench-like), and beside it with none")
	f.StringVarP(&c.output, "output", "o", "table", "table or json")
	f.StringVar(&c.plot, "plot", "", "draw the distribution of latency to FILE (.svg, .png or .pdf)")
	if mode == benchThroughput {
		f.IntVar(&c.window, "window", window, fmt.Sprintf("packet-ins that each switch keeps outstanding, 1 to %d", sim.MaxWindow))
		f.Float64Var(&c.rate, "rate", 0, "packet-ins per second over all switches, timed from when each was due (default: as fast as answers come)")
	} else {
		c.window = window
	}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		var err error
		if c.version, err = benchVersion(version); err != nil {
			return cli.Usagef(cmd, "%w", err)
		}
		for _, text := range split {
			s, err := parseBenchSplit(text)
			if err != nil {
				return cli.Usagef(cmd, "%w", err)
			}
			c.split = append(c.split, s)
		}
		if c.rate > 0 && !cmd.Flags().Changed("window") {
			c.window = sim.MaxWindow
		}
		if err := c.check(); err != nil {
			return cli.Usagef(cmd, "%w", err)
		}
		ctx, stop := cli.Signals(cmd)
		defer stop()
		return benchRunLoad(ctx, c, cmd.OutOrStdout(), cmd.ErrOrStderr())
	}
	return cmd
}

// benchVersion reads the value of --openflow.
func benchVersion(s string) (openflow.Version, error) {
	switch s {
	case "1.0":
		return openflow.V10, nil
	case "1.3":
		return openflow.V13, nil
	}
	return 0, fmt.Errorf("--openflow %q: want 1.0 or 1.3", s)
}

// check says which flag is wrong.
func (c *benchConfig) check() error {
	switch {
	case c.switches < 1:
		return fmt.Errorf("--switches %d: want at least 1", c.switches)
	case c.hosts < 2:
		return fmt.Errorf("--hosts %d: want at least 2 on each switch, for packets go from one to another", c.hosts)
	case c.ports < 1:
		return fmt.Errorf("--host-ports %d: want at least 1", c.ports)
	case c.window < 1 || c.window > sim.MaxWindow:
		return fmt.Errorf("--window %d: want 1 to %d", c.window, sim.MaxWindow)
	case c.rate < 0:
		return fmt.Errorf("--rate %g: want packet-ins per second, or 0 for as fast as possible", c.rate)
	case c.duration < 10*time.Millisecond:
		return fmt.Errorf("--duration %v: want at least 10ms", c.duration)
	case c.warmup < 0:
		return fmt.Errorf("--warmup %v: want 0 or more", c.warmup)
	case c.rounds < 1:
		return fmt.Errorf("--rounds %d: want at least 1", c.rounds)
	case c.rules < 0 || c.rules > 0 && (c.controller != "" || c.command != "" || len(c.split) > 0 || c.plot != ""):
		return fmt.Errorf("--firewall-rules %d: want 0 or more, and it is for Weft's own controller: leave out --controller, --controller-command, --split and --plot", c.rules)
	case len(c.split) > 0 && (c.controller != "" || c.command != ""):
		return errors.New("--split is for Weft's own controller: leave out --controller and --controller-command")
	case c.controller != "" && c.command != "":
		return errors.New("--controller and --controller-command: give one of them: a controller that runs, or how to start one")
	}
	if c.command != "" && !strings.Contains(c.command, "{port}") {
		return fmt.Errorf("--controller-command %q: want a command with {port} where the port goes that it is to listen on", c.command)
	}
	if c.controller != "" {
		if _, _, err := net.SplitHostPort(c.controller); err != nil {
			return fmt.Errorf("--controller %q: want HOST:PORT: %w", c.controller, err)
		}
	}
	c.ports = min(c.ports, c.hosts)
	if c.unbuffered {
		c.floor = false // its flow-mod names no packet then
	}
	if err := benchCheckPlot(c.plot); err != nil {
		return err
	}
	return benchCheckOutput(c.output)
}

func benchFloorCommand() *cobra.Command {
	var listen string
	cmd := &cobra.Command{
		Use:   "floor",
		Short: "Answer every packet-in with the same flow-mod: the least a controller can do",
		Long: `Answer every packet-in with the same flow-mod but for the buffer_id: the least that
a controller can do. The other bench commands start it by themselves.`,
		Example: `  weft bench floor --listen 127.0.0.1:6653`,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, stop := cli.Signals(cmd)
			defer stop()
			ln, err := net.Listen("tcp", listen)
			if err != nil {
				return fmt.Errorf("--listen %s: %w", listen, err)
			}
			fmt.Fprintf(cmd.OutOrStdout(), "listening on %s\n", ln.Addr())
			return sim.Floor(ctx, ln)
		},
	}
	cmd.Flags().StringVar(&listen, "listen", "127.0.0.1:6653", "address to listen on")
	return cmd
}
