package planner

import (
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/cmd/weft/cli"
)

func planHistoryCommand() *cobra.Command {
	var r cli.Remote
	var out cli.Output
	cmd := &cobra.Command{
		Use:   "history",
		Short: "List the plans that have been in force",
		Long: `List the plans that have been in force, the newest first: the last fifty that
were applied. What workers scale by themselves is not in it.`,
		Example: "  weft plan history -o json",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, done, err := r.Dial(cmd)
			if err != nil {
				return err
			}
			defer done()
			m, err := c.ListPlans(c.Ctx, &api.ListPlansRequest{})
			if err != nil {
				return err
			}
			return out.Print(cmd, m, func(t *cli.Table) {
				t.Row("NUMBER", "STATE", "NAME", "APPLIED", "FROM")
				for _, p := range m.Plans {
					t.Row(p.Generation, p.State, p.Name, p.Applied, p.Source)
				}
			})
		},
	}
	r.Flags(cmd)
	out.Flag(cmd)
	return cmd
}

// planNumber reads the number of a plan of the history.
func planNumber(cmd *cobra.Command, text string) (uint64, error) {
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil || n == 0 {
		return 0, cli.Usagef(cmd, "plan %q; want a number of weft plan history", text)
	}
	return n, nil
}

func planRollbackCommand() *cobra.Command {
	var r cli.Remote
	var out cli.Output
	var dry bool
	var wait time.Duration
	cmd := &cobra.Command{
		Use:   "rollback [N]",
		Short: "Apply an earlier plan anew",
		Long: `Apply plan N of the history anew, or the one before the one in force. It gets a
number of its own. The configuration stays as it is: weft config rollback is for
that.`,
		Example: `  weft plan rollback --dry-run
  weft plan rollback 3`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			req := &api.RollbackPlanRequest{DryRun: dry}
			if len(args) > 0 {
				var err error
				if req.Generation, err = planNumber(cmd, args[0]); err != nil {
					return err
				}
			}
			return applied(cmd, &r, &out, dry, wait, func(c *cli.Controller) (*api.ApplyPlanResponse, error) {
				return c.RollbackPlan(c.Ctx, req)
			})
		},
	}
	applyFlags(cmd, &dry, &wait)
	r.Flags(cmd)
	out.Flag(cmd)
	return cmd
}

// applyFlags are those of commands that bring a plan into force.
func applyFlags(cmd *cobra.Command, dry *bool, wait *time.Duration) {
	cmd.Flags().BoolVar(dry, "dry-run", false, "only say what would change")
	cmd.Flags().DurationVar(wait, "wait", 30*time.Second, "how long to wait until all processes have carried it out")
}

// applied brings a plan into force, says what changes, and waits until it is
// carried out.
func applied(cmd *cobra.Command, r *cli.Remote, out *cli.Output, dry bool, wait time.Duration, apply func(*cli.Controller) (*api.ApplyPlanResponse, error)) error {
	c, done, err := r.Dial(cmd)
	if err != nil {
		return err
	}
	defer done()
	m, err := apply(c)
	if err != nil {
		return err
	}
	err = out.Print(cmd, m, func(t *cli.Table) {
		for _, change := range m.Changes {
			fmt.Fprintln(t, change)
		}
		if len(m.Changes) == 0 {
			fmt.Fprintln(t, "nothing changes: this is the plan in force")
		}
	})
	if err != nil || dry || len(m.Changes) == 0 {
		return err
	}
	return AwaitPlan(cmd.Context(), c, m.Generation, wait, cmd.ErrOrStderr())
}
