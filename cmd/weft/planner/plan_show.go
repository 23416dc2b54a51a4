package planner

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/cmd/weft/cli"
	"github.com/weft-sdn/weft/deploy/plans"
	"github.com/weft-sdn/weft/plan"
)

// planFormats are the forms in which a plan is shown.
var planFormats = []string{"text", "svg", "json", "yaml"}

func planShowCommand() *cobra.Command {
	var r cli.Remote
	var format string
	var running bool
	var number uint64
	cmd := &cobra.Command{
		Use:   "show PLAN | --running | --number N",
		Short: "Draw a plan",
		Long: `Draw a plan, a built-in one, that of a file, or that which a running controller
carries out: the workers with their services, the way of a packet-in through
them, and what else goes between them. As text, services on the way of a
packet-in have their number in it. With -o yaml and -o json the plan itself is
printed, in full: to edit, and for programs.`,
		Example: `  weft plan show split
  weft plan show --running
  weft plan show --number 3 -o yaml
  weft plan show mine.yaml -o svg > plan.svg
  weft plan show scale -o yaml > mine.yaml`,
		Args: func(cmd *cobra.Command, args []string) error {
			if running && number > 0 {
				return errors.New("--running is the plan in force; leave --number out")
			}
			if number > 0 && len(args) > 0 {
				return fmt.Errorf("--number is a plan of the history; leave %s out", args[0])
			}
			if running && len(args) > 0 {
				return fmt.Errorf("--running is the plan in force; leave %s out", args[0])
			}
			if !running && number == 0 {
				return cobra.ExactArgs(1)(cmd, args)
			}
			return nil
		},
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return plans.Names(), cobra.ShellCompDirectiveDefault
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if !slices.Contains(planFormats, format) {
				return cli.Usagef(cmd, "output %q; allowed: %s", format, strings.Join(planFormats, ", "))
			}
			var p *plan.Plan
			var err error
			if running || number > 0 {
				p, err = fetchPlan(&r, cmd, number)
			} else if p, err = ReadPlan(args[0]); err == nil {
				err = p.Check(AllSpecs())
			}
			if err != nil {
				return err
			}
			text, err := drawPlan(p, format)
			if err != nil {
				return err
			}
			_, err = cmd.OutOrStdout().Write(text)
			return err
		},
	}
	cmd.Flags().BoolVar(&running, "running", false, "the plan that a running controller carries out")
	cmd.Flags().Uint64Var(&number, "number", 0, "one of the history of a running controller, as weft plan history lists them")
	cmd.Flags().StringVarP(&format, "output", "o", "text", strings.Join(planFormats[:3], ", ")+" or yaml")
	cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(planFormats, cobra.ShellCompDirectiveNoFileComp))
	r.Flags(cmd)
	return cmd
}

// fetchPlan returns the plan that the controller carries out, or one of its
// history.
func fetchPlan(r *cli.Remote, cmd *cobra.Command, number uint64) (*plan.Plan, error) {
	c, done, err := r.Dial(cmd)
	if err != nil {
		return nil, err
	}
	defer done()
	m, err := c.GetPlan(c.Ctx, &api.GetPlanRequest{Generation: number})
	if err != nil {
		return nil, err
	}
	return plan.Parse("plan of the controller", []byte(m.Text))
}

// drawPlan returns a plan in one of planFormats.
func drawPlan(p *plan.Plan, format string) ([]byte, error) {
	switch format {
	case "text":
		return []byte(p.Text(AllSpecs())), nil
	case "svg":
		return []byte(p.SVG(AllSpecs())), nil
	case "json":
		return cli.ToJSON(p)
	}
	return p.YAML()
}
