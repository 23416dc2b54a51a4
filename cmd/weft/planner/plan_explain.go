package planner

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weft-sdn/weft/cmd/weft/cli"
	"github.com/weft-sdn/weft/cmd/weft/planning"
	"github.com/weft-sdn/weft/plan"
)

func planExplainCommand() *cobra.Command {
	var o planning.Options
	var out cli.Output
	cmd := &cobra.Command{
		Use:   "explain PLAN [SHARD]",
		Short: "Say why the shards of a made plan are where they are",
		Long: `Say of a plan made by weft plan make what it costs, how far that can be above the
least, how full its servers are, and of each shard, or of one, why it is on its
server: by a constraint, or because it would cost more elsewhere, and how much.
A shard is SERVICE, SERVICE/PARTITION, or SERVICE#REPLICA.

The head of the plan says by which command it was made; that is done again, and
what is said is of the plan as it is in the file, changed by hand or not. Flags
of weft plan make that are given here count instead of those in the head: so the
plan can be seen under another load, or on other servers.`,
		Example: `  weft plan explain plan.yaml
  weft plan explain plan.yaml forwarding
  weft plan explain plan.yaml southbound/p2 --packet-ins 50000 -o json`,
		Args: cobra.RangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			source, text, err := PlanText(args[0])
			if err != nil {
				return err
			}
			m, err := planning.ReadMade(source, text, cmd.Flags())
			if err != nil {
				return err
			}
			shard := ""
			if len(args) == 2 {
				shard = args[1]
			}
			ctx, stop := cli.Signals(cmd)
			defer stop()
			e, err := m.Explain(ctx, Sources(cmd), shard)
			if err != nil {
				return wronglyCalled(cmd, err)
			}
			return out.Print(cmd, e, func(t *cli.Table) { explainTable(t, e, len(args) == 2) })
		},
	}
	o.Flags(cmd.Flags())
	sayNetworks(cmd)
	out.Flag(cmd)
	return cmd
}

// explainTable writes an explanation for people.
func explainTable(t *cli.Table, e *planning.Explained, one bool) {
	if !one {
		gap := fmt.Sprintf("at most %.1f %% above the least: bound %.6g", 100*e.Gap, e.Bound)
		if e.Proven {
			gap = "the least that there is, proven"
		}
		fmt.Fprintf(t, "plan %s: crossing servers costs %.6g us of latency a second, %s\n", e.Plan, e.Cost, gap)
		if e.Best < e.Cost*(1-1e-9) {
			fmt.Fprintf(t, "a plan made now would cost %.6g\n", e.Best)
		}
		if e.Within > 0 {
			fmt.Fprintf(t, "crossing from process to process on one server: %.6g us a second, not part of that\n", e.Within)
		}
		for _, b := range e.Broken {
			fmt.Fprintf(t, "it breaks: %s\n", b)
		}
		for _, n := range e.Notes {
			fmt.Fprintln(t, n)
		}
		fmt.Fprintln(t)
		t.Row("SERVER", "CPU", "OF", "MEMORY MiB", "OF", "SHARDS", "WORKERS")
		for _, l := range e.Loads {
			t.Row(l.Server, fmt.Sprintf("%.2f", l.CPU), fmt.Sprintf("%.2f", l.CPUMost), l.Memory>>20, l.MemMost>>20, l.Shards, strings.Join(l.Workers, " "))
		}
		fmt.Fprintln(t)
		t.Row("SHARD", "SERVER", "CPU %", "MEMORY MiB", "REASON", "NEXT BEST", "COSTS MORE us/s")
		for _, s := range e.Shards {
			server, more := nextBest(s)
			t.Row(s.Shard, s.Server, fmt.Sprintf("%.2f", 100*s.CPU), fmt.Sprintf("%.1f", float64(s.Memory)/(1<<20)), s.Reason, server, more)
		}
		return
	}
	s := e.Shards[0]
	fmt.Fprintf(t, "%s is on %s: %s\n", s.Shard, s.Server, s.Why)
	fmt.Fprintf(t, "it takes %.2f %% of a processor and %.1f MiB\n\n", 100*s.CPU, float64(s.Memory)/(1<<20))
	t.Row("HAS TO DO WITH", "ON", "EVENTS/s")
	for _, n := range s.Neighbours {
		t.Row(n.Shard, n.Server, fmt.Sprintf("%.4g", n.Events))
	}
	fmt.Fprintln(t)
	t.Row("ELSEWHERE", "COSTS MORE us/s", "BREAKS")
	for _, o := range s.Elsewhere {
		t.Row(o.Server, fmt.Sprintf("%.6g", o.Cost), strings.Join(o.Breaks, "; "))
	}
}

// nextBest returns the cheapest other server that breaks nothing.
func nextBest(s plan.Explanation) (server, more string) {
	free := slices.DeleteFunc(slices.Clone(s.Elsewhere), func(o plan.Elsewhere) bool { return len(o.Breaks) > 0 })
	if len(free) == 0 {
		return "", ""
	}
	best := slices.MinFunc(free, func(a, b plan.Elsewhere) int {
		switch {
		case a.Cost < b.Cost:
			return -1
		case a.Cost > b.Cost:
			return 1
		}
		return 0
	})
	return best.Server, fmt.Sprintf("%.6g", best.Cost)
}
