package command

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/weft-sdn/weft/cmd/weft/cli"
	"github.com/weft-sdn/weft/lab/topology"
	"github.com/weft-sdn/weft/lab/traffic"
)

func labExecCommand() *cobra.Command {
	var name string
	cmd := &cobra.Command{
		Use:   "exec NODE -- COMMAND [ARG...]",
		Short: "Run a command in a host or at a switch",
		Long: `Run a command in the network namespace of a host, router or hybrid node, or in that
of the lab's OpenFlow switches, on this terminal; its exit status becomes weft's. At a
switch OVS_RUNDIR leads the tools of Open vSwitch to the lab's own.`,
		Example: `  weft lab exec h1 -- ip addr
  weft lab exec h2 --name dc -- tcpdump -ni eth0 arp
  weft lab exec s1 -- ovs-vsctl show`,
		Args: cobra.MinimumNArgs(2),
		RunE: func(_ *cobra.Command, args []string) error {
			l, far, err := labAnywhere(name)
			if err != nil {
				return err
			}
			if far != nil {
				return far.Become(args[0], func(part string) []string {
					return append([]string{"attend", args[0], "--name", part, "--"}, args[1:]...)
				})
			}
			return l.Become(args[0], args[1:]...)
		},
	}
	labNameFlag(cmd, &name)
	return cmd
}

// errLabLoss is returned by ping if a packet was lost, after the table.
var errLabLoss = errors.New("packets were lost")

func labPingCommand() *cobra.Command {
	var name, output string
	var all, six, four, given bool
	var opt traffic.PingOptions
	cmd := &cobra.Command{
		Use:   "ping [A B]",
		Short: "Ping one host from another, or every pair",
		Long: `Ping host B from host A, or with --all every host from every other, and print
what was sent and received, the round-trip times, and the longest outage. The
exit status is not zero if a packet was lost. Interrupt ends it early.`,
		Example: `  weft lab ping h1 h2 -c 10
  weft lab ping --all -4 -6
  weft lab ping h1 h2 --size 1472       # packets of 1,500 bytes
  weft lab ping h1 h8 -c -1 -i 10ms     # until interrupted`,
		Args: cobra.RangeArgs(0, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := labCheckOutput(output); err != nil {
				return err
			}
			if (all || given) == (len(args) == 2) || len(args) == 1 {
				return cli.Usagef(cmd, "name two hosts, or every pair by --all")
			}
			if err := labCheckPing(cmd, opt); err != nil {
				return err
			}
			l, far, err := labAnywhere(name)
			if err != nil {
				return err
			}
			ping := func(ctx context.Context, pairs []topology.Pair) ([]traffic.PingResult, error) {
				return l.PingAll(ctx, pairs, opt)
			}
			allPairs := func(six bool) []topology.Pair { return l.AllPairs(six) }
			if far != nil {
				ping = func(ctx context.Context, pairs []topology.Pair) ([]traffic.PingResult, error) {
					return far.Ping(ctx, pairs, opt)
				}
				allPairs = far.Topology.AllPairs
			}
			ctx, stop := cli.Signals(cmd)
			defer stop()
			progress := cli.NewProgress(cmd.ErrOrStderr())
			defer progress.Stop()
			var results []traffic.PingResult
			for _, v6 := range []bool{false, true} {
				if (v6 && !six) || (!v6 && six && !four) {
					continue
				}
				opt.IPv6 = v6
				pairs := []topology.Pair{}
				switch {
				case given:
					if pairs, err = labPairs(cmd.InOrStdin()); err != nil {
						return err
					}
				case all:
					pairs = allPairs(v6)
				default:
					pairs = append(pairs, topology.Pair{From: args[0], To: args[1]})
				}
				progress.Doing(fmt.Sprintf("pinging %s over IPv%d", cli.Number(pairs, "pair", "pairs"), map[bool]int{false: 4, true: 6}[v6]))
				rs, err := ping(ctx, pairs)
				results = append(results, rs...)
				if err != nil && ctx.Err() == nil {
					return err
				}
			}
			progress.Stop()
			err = labPrint(cmd.OutOrStdout(), output, results, func(w *labTable) { labPingTable(w, results) })
			if err == nil && traffic.AnyLost(results) {
				err = errLabLoss
			}
			return err
		},
	}
	labNameFlag(cmd, &name)
	labOutputFlag(cmd, &output)
	f := cmd.Flags()
	f.BoolVar(&all, "all", false, "every ordered pair of hosts")
	f.BoolVarP(&six, "ipv6", "6", false, "over IPv6")
	f.BoolVarP(&four, "ipv4", "4", false, "over IPv4 (the default; with -6 both)")
	f.IntVarP(&opt.Count, "count", "c", 3, "packets per pair; -1: until interrupted")
	f.DurationVarP(&opt.Interval, "interval", "i", 200*time.Millisecond, "time between packets")
	f.DurationVarP(&opt.Timeout, "timeout", "W", time.Second, "time to wait for an answer after the last packet")
	f.IntVar(&opt.Parallel, "parallel", 16, "pairs at a time")
	f.IntVarP(&opt.Size, "size", "s", 56, "bytes of payload of a packet")
	f.BoolVar(&given, "pairs", false, "the pairs on standard input, a line for each")
	f.MarkHidden("pairs") // of parts of labs on several machines
	return cmd
}

// labCheckPing says which flag of weft lab ping is wrong: the package traffic takes 0 as
// what is usual.
func labCheckPing(cmd *cobra.Command, opt traffic.PingOptions) error {
	switch {
	case opt.Count < 1 && opt.Count != -1:
		return cli.Usagef(cmd, "--count %d: want 1 packet or more, or -1 to go on until interrupted", opt.Count)
	case opt.Interval < time.Millisecond:
		return cli.Usagef(cmd, "--interval %v: want 1ms or more", opt.Interval)
	case opt.Timeout <= 0:
		return cli.Usagef(cmd, "--timeout %v: want a time above 0, such as 1s", opt.Timeout)
	case opt.Parallel < 1:
		return cli.Usagef(cmd, "--parallel %d: want 1 pair or more", opt.Parallel)
	case opt.Size < 1 || opt.Size > maxPingSize:
		return cli.Usagef(cmd, "--size %d: a packet has 1 to %d bytes of payload", opt.Size, maxPingSize)
	}
	return nil
}

const (
	maxPingSize = 65_000
	maxPairs    = 1 << 20
)

// labPairs reads pairs of hosts, a line for each.
func labPairs(r io.Reader) ([]topology.Pair, error) {
	var pairs []topology.Pair
	lines := bufio.NewScanner(io.LimitReader(r, 64<<20))
	for lines.Scan() {
		ends := strings.Fields(lines.Text())
		if len(ends) != 2 || len(pairs) == maxPairs {
			return nil, fmt.Errorf("%.60q: a line is not two hosts, or there are more than %d", lines.Text(), maxPairs)
		}
		pairs = append(pairs, topology.Pair{From: ends[0], To: ends[1]})
	}
	return pairs, lines.Err()
}

func labPingTable(w *labTable, results []traffic.PingResult) {
	w.row("FROM", "TO", "IP", "SENT", "RECEIVED", "MIN ms", "AVG ms", "MAX ms", "OUTAGE ms", "NOTE")
	sent, received := 0, 0
	for _, r := range results {
		ip, note := "4", ""
		if r.IPv6 {
			ip = "6"
		}
		if r.Lost() > 0 {
			note = strings.TrimSpace(fmt.Sprintf("%d lost %s", r.Lost(), r.Error))
		}
		w.row(r.From, r.To, ip, r.Sent, r.Received, r.Min, r.Avg, r.Max, r.Outage, note)
		sent, received = sent+r.Sent, received+r.Received
	}
	if len(results) > 1 {
		fmt.Fprintf(w, "%d pairs, %d packets sent, %d received, %d lost\n", len(results), sent, received, sent-received)
	}
}

func labIperfCommand() *cobra.Command {
	var name, output, udp string
	var opt traffic.IperfOptions
	cmd := &cobra.Command{
		Use:   "iperf A B",
		Short: "Measure the throughput from one host to another",
		Long: `Measure the throughput from host A to host B with iperf3 (Debian package
iperf3): TCP with CUBIC, or UDP.`,
		Example: `  weft lab iperf h1 h2
  weft lab iperf h1 h2 --udp 50mbit -t 10s -o json`,
		Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := labCheckOutput(output); err != nil {
				return err
			}
			switch {
			case opt.Duration < time.Second || opt.Duration%time.Second != 0:
				return cli.Usagef(cmd, "--time %v: want whole seconds, 1s or more", opt.Duration)
			case opt.Streams < 1:
				return cli.Usagef(cmd, "--parallel %d: want 1 stream or more", opt.Streams)
			case udp != "":
				var err error
				if opt.UDP, err = topology.ParseRate(udp); err != nil {
					return cli.Usagef(cmd, "--udp %v", err)
				}
			}
			l, far, err := labAnywhere(name)
			if err != nil {
				return err
			}
			iperf := l.Iperf
			if far != nil {
				iperf = far.Iperf
			}
			ctx, stop := cli.Signals(cmd)
			defer stop()
			progress := cli.NewProgress(cmd.ErrOrStderr())
			defer progress.Stop()
			progress.Doing("measuring")
			r, err := iperf(ctx, args[0], args[1], opt)
			if err != nil {
				return err
			}
			progress.Stop()
			return labPrint(cmd.OutOrStdout(), output, r, func(w *labTable) {
				w.row("FROM", "TO", "PROTOCOL", "SECONDS", "SENT Mbit/s", "RECEIVED Mbit/s", "RETRANSMITS", "LOST %")
				w.row(r.From, r.To, r.Protocol, fmt.Sprintf("%.1f", r.Seconds), fmt.Sprintf("%.1f", r.SentMbit),
					fmt.Sprintf("%.1f", r.Mbit), r.Retransmits, fmt.Sprintf("%.2f", r.LostPercent))
			})
		},
	}
	labNameFlag(cmd, &name)
	labOutputFlag(cmd, &output)
	f := cmd.Flags()
	f.BoolVarP(&opt.IPv6, "ipv6", "6", false, "over IPv6")
	f.DurationVarP(&opt.Duration, "time", "t", 5*time.Second, "how long, in whole seconds")
	f.IntVarP(&opt.Streams, "parallel", "P", 1, "streams at a time")
	f.StringVar(&udp, "udp", "", "send UDP at this rate, such as 50mbit or 50M")
	return cmd
}
