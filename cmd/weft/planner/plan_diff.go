package planner

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/weft-sdn/weft/cmd/weft/cli"
	"github.com/weft-sdn/weft/cmd/weft/planning"
)

func planDiffCommand() *cobra.Command {
	var o planning.Options
	var out cli.Output
	cmd := &cobra.Command{
		Use:   "diff OLD NEW",
		Short: "Say which moves an update from one plan to another needs, and whether they pay",
		Long: `Say what differs between two plans, and, if both were made by weft plan make,
which shards move, in which order, and what that costs: what waits while a
service is away, the longer the more state it has and the more switches connect
anew. Against that stands what the new plan saves of latency each second: from
both follows when the moves have paid off. How long a service is away is an
assumption, unless you have measured it: --move-pause, --move-session and
--move-bandwidth.

Both plans are looked at under the load for which NEW was made, or that of the
flags, which are those of weft plan make.`,
		Example: `  weft plan diff plan.yaml next.yaml
  weft plan diff plan.yaml next.yaml --packet-ins 50000 -o json`,
		Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			var texts [2]planning.Text
			for i, name := range args {
				var err error
				if texts[i].Source, texts[i].Text, err = PlanText(name); err != nil {
					return err
				}
			}
			ctx, stop := cli.Signals(cmd)
			defer stop()
			u, err := planning.Diff(ctx, Sources(cmd), texts[0], texts[1], cmd.Flags())
			if err != nil {
				return wronglyCalled(cmd, err)
			}
			return out.Print(cmd, u, func(t *cli.Table) { diffTable(t, u) })
		},
	}
	o.Flags(cmd.Flags())
	sayNetworks(cmd)
	out.Flag(cmd)
	return cmd
}

// diffTable writes an update for people.
func diffTable(t *cli.Table, u *planning.Update) {
	if len(u.Changes) == 0 {
		fmt.Fprintln(t, "both plans say the same")
	}
	for _, c := range u.Changes {
		fmt.Fprintln(t, c)
	}
	costsTable(t, u.Costs)
	if !u.Weighed {
		fmt.Fprintf(t, "\nmoves are not weighed: %s\n", u.Why)
		return
	}
	fmt.Fprintln(t)
	for _, b := range u.OldBreak {
		fmt.Fprintf(t, "under this load the old plan breaks: %s\n", b)
	}
	if len(u.Update.Moves) == 0 {
		fmt.Fprintln(t, "no shard moves")
		return
	}
	t.Row("", "SHARD", "FROM", "TO", "STATE MiB", "SESSIONS", "AWAY s", "COSTS ms", "WHY IN ITS TURN")
	for i, m := range u.Update.Moves {
		t.Row(i+1, m.Shard, m.From, m.To, fmt.Sprintf("%.1f", float64(m.State)/(1<<20)), m.Sessions, fmt.Sprintf("%.2f", m.Away), fmt.Sprintf("%.4g", m.Cost/1000), m.Why)
	}
	fmt.Fprintln(t)
	if u.Update.Switches > 0 {
		fmt.Fprintf(t, "%d switches change their partition\n", u.Update.Switches)
	}
	fmt.Fprintf(t, "crossing servers costs %.6g us of latency a second now, %.6g then: gain %.6g a second\n", u.Update.Before, u.Update.After, u.Gain)
	switch {
	case u.PaysBack >= 0:
		fmt.Fprintf(t, "the moves cost %.6g us once, which is paid back in %.3g s\n", u.Update.Once, u.PaysBack)
	case len(u.OldBreak) > 0:
		fmt.Fprintf(t, "the moves cost %.6g us once, and save no latency; they are for the constraints\n", u.Update.Once)
	default:
		fmt.Fprintf(t, "the moves cost %.6g us once, which the new plan never pays back\n", u.Update.Once)
	}
}

// costsTable writes what another plan costs for people.
func costsTable(t *cli.Table, c *planning.Costs) {
	if c.OldSize.Processes != c.NewSize.Processes {
		fmt.Fprintf(t, "\n%d processes instead of %d, with %.0f MiB instead of %.0f\n", c.NewSize.Processes, c.OldSize.Processes,
			float64(c.NewSize.Memory)/(1<<20), float64(c.OldSize.Memory)/(1<<20))
	}
	if len(c.Crossings) == 0 {
		return
	}
	fmt.Fprintln(t)
	t.Row("FROM", "TO", "KIND", "BY", "THEN BY", "LONGER us")
	for _, x := range c.Crossings {
		longer := "not measured"
		if x.Known {
			longer = fmt.Sprintf("%+.1f", x.Us)
		}
		t.Row(x.From, x.To, x.Kind, x.Old, x.New, longer)
	}
	fmt.Fprintf(t, "\n%s\n", c.Figures)
}
