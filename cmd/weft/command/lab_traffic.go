package command

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weft-sdn/weft/cmd/weft/cli"
	"github.com/weft-sdn/weft/internal/asowner"
	"github.com/weft-sdn/weft/lab/traffic"
)

func labTrafficCommand() *cobra.Command {
	var name, output, arrivals, words string
	opt := traffic.DefaultOptions()
	cmd := &cobra.Command{
		Use:   "traffic A B",
		Short: "Send packets from one host to another and measure their delay",
		Long: `Send UDP packets over IPv4 from host A to host B, at random times (poisson) or
evenly (constant), and measure how long each takes by the kernel's clock, from
when it is handed to A's interface to when it is taken from B's: mean with its
95 % interval, percentiles, loss, and the processor time that source and sink
use for each packet. Packets are lost without that being an error.

Flows are source ports from 10000 on, to port 5000; of as many packets each has
one, in an order that is random. The seed determines it, times and contents. With --words, each packet has some of the lines
of a file, drawn at random, such as what an intrusion detection looks for.

Of hosts on two machines the clocks are compared over ssh: -o json says as
clock_error_ms by how much the times may be wrong for that.`,
		Example: `  weft lab traffic h1 h2
  weft lab traffic h1 h2 --rate 5000 --arrivals constant --time 10s -o json
  weft lab traffic h1 h2 --words attacks.txt --mean-words 1.5`,
		Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := labCheckOutput(output); err != nil {
				return err
			}
			opt.Arrivals = traffic.Arrivals(arrivals)
			switch { // what is 0 in package traffic is as usual there
			case !(opt.Rate >= traffic.LeastRate && opt.Rate <= traffic.MostRate):
				return cli.Usagef(cmd, "--rate %v: want %v to %d packets a second", opt.Rate, traffic.LeastRate, int(traffic.MostRate))
			case opt.Arrivals != traffic.PoissonArrivals && opt.Arrivals != traffic.ConstantArrivals:
				return cli.Usagef(cmd, "--arrivals %q: want %s or %s", arrivals, traffic.PoissonArrivals, traffic.ConstantArrivals)
			case opt.Size < 1:
				return cli.Usagef(cmd, "--size %d: want the bytes of a packet, with its IP header", opt.Size)
			case opt.Flows < 1:
				return cli.Usagef(cmd, "--flows %d: want 1 or more", opt.Flows)
			case opt.Duration <= 0:
				return cli.Usagef(cmd, "--time %v: want a time above 0, such as 10s", opt.Duration)
			}
			if words != "" {
				text, err := asowner.ReadFile(words)
				if err != nil {
					return err
				}
				opt.Words = strings.FieldsFunc(string(text), func(r rune) bool { return r == '\n' })
			}
			l, far, err := labAnywhere(name)
			if err != nil {
				return err
			}
			var all func(context.Context, []traffic.Flow) []traffic.FlowResult
			if far != nil {
				all = far.TrafficAll
			} else {
				all = l.TrafficAll
			}
			ctx, stop := cli.Signals(cmd)
			defer stop()
			progress := cli.NewProgress(cmd.ErrOrStderr())
			defer progress.Stop()
			progress.Doing("sending")
			r := all(ctx, []traffic.Flow{{From: args[0], To: args[1], Options: opt}})[0]
			if r.Err != nil {
				return r.Err
			}
			progress.Stop()
			return labPrint(cmd.OutOrStdout(), output, r.Result, func(w *labTable) { labTrafficTable(w, r.Result) })
		},
	}
	labNameFlag(cmd, &name)
	labOutputFlag(cmd, &output)
	f := cmd.Flags()
	f.Float64Var(&opt.Rate, "rate", opt.Rate, "packets a second")
	f.StringVar(&arrivals, "arrivals", string(opt.Arrivals), "poisson or constant")
	f.IntVar(&opt.Size, "size", opt.Size, "bytes of a packet, with its IP header")
	f.IntVar(&opt.Flows, "flows", opt.Flows, "flows, which have equal shares")
	f.Uint64Var(&opt.Seed, "seed", opt.Seed, "of times and contents")
	f.DurationVarP(&opt.Duration, "time", "t", opt.Duration, "how long")
	f.StringVar(&words, "words", "", "put lines of FILE into packets")
	f.Float64Var(&opt.MeanWords, "mean-words", 0, "lines in a packet, on average")
	return cmd
}

// labTrafficEndsCommand serves the ends of flows that are on this machine to another.
func labTrafficEndsCommand() *cobra.Command {
	var name string
	cmd := &cobra.Command{
		Use:    "traffic-ends",
		Short:  "Serve ends of flows for somebody on another machine",
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			l, err := labNamed(name)
			if err != nil {
				return err
			}
			ctx, stop := cli.Signals(cmd)
			defer stop()
			return l.TrafficEnds(ctx, cmd.InOrStdin(), cmd.OutOrStdout())
		},
	}
	labNameFlag(cmd, &name)
	return cmd
}

func labTrafficTable(w *labTable, r traffic.Result) {
	w.row("FROM", "TO", "SENT", "RECEIVED", "RATE", "MEAN ms", "+-", "P50", "P90", "P99", "P99.9", "MAX", "SOURCE us", "SINK us")
	ms := func(v traffic.Figure) string { return fmt.Sprintf("%.3f", float64(v)) }
	w.row(r.From, r.To, r.Sent, r.Received, fmt.Sprintf("%.1f", r.Rate), ms(r.Mean), ms(r.CI95), ms(r.P50), ms(r.P90), ms(r.P99), ms(r.P999), ms(r.Max),
		fmt.Sprintf("%.1f", float64(r.SourceCPU)), fmt.Sprintf("%.1f", float64(r.SinkCPU)))
}
