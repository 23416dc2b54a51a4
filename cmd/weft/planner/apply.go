package planner

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/cmd/weft/cli"
)

func ApplyCommand() *cobra.Command {
	var r cli.Remote
	var out cli.Output
	var dry bool
	var wait time.Duration
	cmd := &cobra.Command{
		Use:   "apply PLAN",
		Short: "Move a running controller to another plan",
		Long: `Move a running controller to another plan, a built-in one by its name or a file,
while it works: services move, replicas come and go, transports are exchanged.
Packets and calls for a service that is on its way wait for it; none is lost.
The process that holds the switches' connections keeps them, whatever its name
in the new plan.`,
		Example: `  weft apply split --dry-run
  weft apply split
  weft apply scale`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			p, err := ReadPlan(args[0])
			if err != nil {
				return err
			}
			if err := Fits(p); err != nil {
				return err // here, for the lines are those of the file
			}
			if !p.Has("gateway") {
				return fmt.Errorf("plan %s has no gateway: nobody could talk to the controller any more, not even to apply the next plan; add gateway to the services of a worker", p.Name)
			}
			text, err := p.YAML()
			if err != nil {
				return err
			}
			return applied(cmd, &r, &out, dry, wait, func(c *cli.Controller) (*api.ApplyPlanResponse, error) {
				return c.ApplyPlan(c.Ctx, &api.ApplyPlanRequest{Text: string(text), DryRun: dry})
			})
		},
	}
	applyFlags(cmd, &dry, &wait)
	r.Flags(cmd)
	out.Flag(cmd)
	return cmd
}

// AwaitPlan waits until every process has carried out a plan. Its error names the
// processes that have not.
func AwaitPlan(ctx context.Context, c *cli.Controller, generation uint64, patience time.Duration, progress io.Writer) error {
	if ctx == nil {
		ctx = context.Background()
	}
	began := time.Now()
	var said string
	for {
		var late []string
		ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
		m, err := c.ListWorkers(ctx, &api.ListWorkersRequest{})
		cancel()
		if err != nil {
			late = []string{"the gateway"} // which may be on its way itself
		}
		for _, w := range m.GetWorkers() {
			if !w.Current || w.State != "up" {
				late = append(late, fmt.Sprintf("%s (%s)", w.Process, w.State))
			}
		}
		switch {
		case len(late) == 0 && m.Generation >= generation:
			fmt.Fprintf(progress, "now running plan %s, %s, %v\n", m.Plan, cli.Number(m.Workers, "process", "processes"), time.Since(began).Round(time.Millisecond))
			return nil
		case time.Since(began) > patience:
			return errors.New("the plan is in force but not carried out yet: waiting for " + strings.Join(late, ", ") + "; weft up starts and stops processes: does it run? see weft get workers")
		}
		if text := strings.Join(late, ", "); text != said && time.Since(began) > 2*time.Second {
			said = text
			fmt.Fprintf(progress, "waiting for %s\n", text)
		}
		time.Sleep(50 * time.Millisecond)
	}
}
