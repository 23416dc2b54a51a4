package bench

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weft-sdn/weft/bench/experiments/hydra"
	"github.com/weft-sdn/weft/cmd/weft/cli"
)

// benchPathsResult is what weft bench paths prints.
type benchPathsResult struct {
	*hydra.Flat
	Marks []benchBound `json:"marks,omitempty"`
}

func benchPathsCommand() *cobra.Command {
	var out cli.Output
	var topology string
	c := hydra.FlatConfig{}
	cmd := &cobra.Command{
		Use:   "paths",
		Short: "Measure how fast the paths of a whole network are computed",
		Long: `Measure the computation of paths alone, in this process, on all processors: the
distances between all switches (all_pairs_ms), those and all equal-cost next
hops (next_hops_ms), both from nothing, the median of the rounds; and, after a
random link has failed, the time until all distances are right again
(failure_mean_ms), each link being mended before the next fails. The first
failures are compared, pair by pair, with a computation from nothing: wrong is
how many distances differed, and the exit status is 1 unless that is 0.

The topology hydra (2,560 switches, 49,152 links) has marks, and the result says
which are met.`,
		Example: `  weft bench paths --topology hydra -o json
  weft bench paths --topology fattree:k=16
  weft bench paths --topology network.yaml --failures 1000`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch {
			case c.Rounds < 1 || c.Rounds > 1000:
				return cli.Usagef(cmd, "--rounds %d: want 1 to 1000", c.Rounds)
			case c.Failures < 1 || c.Failures > 1_000_000:
				return cli.Usagef(cmd, "--failures %d: want 1 to 1000000", c.Failures)
			case c.Verify < 0:
				return cli.Usagef(cmd, "--verify %d: want 0 or more", c.Verify)
			}
			g, err := cli.ReadNetwork(topology)
			if err != nil {
				return fmt.Errorf("--topology: %w", err)
			}
			ctx, stop := cli.Signals(cmd)
			defer stop()
			c.Say = func(format string, args ...any) {
				fmt.Fprintf(cmd.ErrOrStderr(), "paths of %s: "+format+"\n", append([]any{topology}, args...)...)
			}
			f, err := hydra.MeasureFlat(ctx, g, c)
			if f == nil {
				return err
			}
			f.Topology = topology
			r := benchPathsResult{Flat: f, Marks: benchPathsMarks(f)}
			if bad := out.Print(cmd, r, r.table); bad != nil {
				return bad
			}
			return err
		},
	}
	f := cmd.Flags()
	f.StringVar(&topology, "topology", "hydra", cli.NetworkForms())
	f.IntVar(&c.Rounds, "rounds", 9, "computations from nothing; the median counts")
	f.IntVar(&c.Failures, "failures", 200, "random links that fail, one after the other")
	f.IntVar(&c.Verify, "verify", 10, "how many of the failures are compared with a computation from nothing")
	f.Uint64Var(&c.Seed, "seed", 1, "which links fail: the same seed chooses the same")
	out.Flag(cmd)
	return cmd
}

// benchPathsMarks returns the marks of the hydra topology, none of others.
func benchPathsMarks(f *hydra.Flat) []benchBound {
	if f.Topology != "hydra" {
		return nil
	}
	marks := []benchBound{
		{Figure: "all_pairs_ms", Mark: 40, Is: f.AllPairs},
		{Figure: "next_hops_ms", Mark: 200, Is: f.NextHops},
		{Figure: "failure_mean_ms", Mark: 3, Is: f.FailureMean},
	}
	for i := range marks {
		marks[i].Met = marks[i].Is <= marks[i].Mark
	}
	return marks
}

// table writes the figures for people.
func (r benchPathsResult) table(t *cli.Table) {
	t.Row("NETWORK", fmt.Sprintf("%s: %d switches, %d links", r.Topology, r.Switches, r.Links))
	t.Row("all pairs", fmt.Sprintf("%.1f ms (median of %d, %d processors)", r.AllPairs, r.Rounds, r.Processors))
	t.Row("all next hops", fmt.Sprintf("%.1f ms", r.NextHops))
	t.Row("a link fails", fmt.Sprintf("%.2f ms mean, %.2f median, %.2f most, of %d", r.FailureMean, r.FailureMedian, r.FailureMax, r.Failures))
	t.Row("it is back", fmt.Sprintf("%.2f ms mean, %.2f most", r.RestoreMean, r.RestoreMax))
	t.Row("verified", fmt.Sprintf("%d times against a computation from nothing (%.1f ms), %d distances wrong", r.Verified, r.RecomputeMean, r.Wrong))
	for _, m := range r.Marks {
		verdict := "met"
		if !m.Met {
			verdict = "missed"
		}
		t.Row("mark: "+strings.ReplaceAll(m.Figure, "_", " "), fmt.Sprintf("at most %g: %s", m.Mark, verdict))
	}
}
