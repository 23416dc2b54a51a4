package planner

import (
	"github.com/spf13/cobra"

	"github.com/weft-sdn/weft/cmd/weft/cli"
	"github.com/weft-sdn/weft/deploy/plans"
	"github.com/weft-sdn/weft/plan"
)

func PlanCommand(more ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "plan",
		Short: "Look at plans: which service runs in which process",
		Long: `Look at plans. A plan says which service runs in which process, how many of
each, on which machine and over which transports. Some are built in; your own
are YAML files:

` + PlanForm + `
Left out, transport is grpc, events are nats, balance is flow, and the pipeline
has its usual order. weft check FILE tells what is wrong with a plan.`,
		Example: `  weft plan list
  weft plan show scale
  weft plan show --running
  weft plan history
  weft plan show mine.yaml -o svg > plan.svg`,
	}
	cmd.AddCommand(planListCommand(), planShowCommand(), planDiffCommand(), planExplainCommand(), planMakeCommand(), planPlaceCommand(), planPartitionCommand(), planHistoryCommand(), planRollbackCommand())
	cmd.AddCommand(more...)
	return cmd
}

// PlanForm is a plan with the keys that most need.
const PlanForm = `  name: mine
  transport: grpc           # between workers: grpc, ws, rest, shm or nats
  balance: flow             # of packet-ins over replicas: flow, switch, round-robin or least
  workers:
    edge: {services: [southbound, discovery, hosts], class: realtime, cpus: "0"}
    routing: {services: [paths, forwarding], replicas: 3, memory: 512MiB}
    rest: {services: [flowrules, stats, gateway]}
  links:                    # exceptions to transport
    - {from: edge, to: routing, transport: ws}
  config:                   # settings of services
    forwarding: {mode: proactive}
`

// PlanSummary is a plan in a list.
type PlanSummary struct {
	Name      string   `json:"name"`
	Processes int      `json:"processes"`
	Workers   []string `json:"workers"`
	Transport string   `json:"transport"`
	About     string   `json:"about"`
}

func planListCommand() *cobra.Command {
	var out cli.Output
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "List the plans that are built in",
		Example: "  weft plan list -o json",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var list []PlanSummary
			for _, name := range plans.Names() {
				text, err := plans.Read(name)
				if err != nil {
					return err
				}
				p, err := plan.Parse(name+".yaml", text)
				if err != nil {
					return err
				}
				s := PlanSummary{Name: name, Processes: len(p.Instances()), Transport: p.Transport, About: plans.About(text)}
				for _, w := range p.Workers {
					s.Workers = append(s.Workers, w.Name)
				}
				list = append(list, s)
			}
			return out.Print(cmd, list, func(t *cli.Table) {
				t.Row("NAME", "PROCESSES", "TRANSPORT", "WHAT IT IS")
				for _, s := range list {
					t.Row(s.Name, s.Processes, s.Transport, s.About)
				}
			})
		},
	}
	out.Flag(cmd)
	return cmd
}
