package main

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"weft/deploy/plans"
	"weft/plan"
)

func planCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "plan",
		Short: "Look at plans: which service runs in which process",
		Long: `Look at plans. A plan says which service runs in which process, how many of
each, on which machine and over which transports. Some are built in; your own
are YAML files:

` + planForm + `
Left out, transport is grpc, events are nats, balance is flow, and the pipeline
has its usual order. weft check FILE tells what is wrong with a plan.`,
		Example: `  weft plan list
  weft plan show scale
  weft plan show mine.yaml -o svg > plan.svg`,
	}
	cmd.AddCommand(planListCommand(), planShowCommand(), planPutCommand())
	return cmd
}

// planForm is a plan with the keys that most need.
const planForm = `  name: mine
  transport: grpc           # between workers: grpc, ws, rest or nats
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

// planSummary is a plan in a list.
type planSummary struct {
	Name      string   `json:"name"`
	Processes int      `json:"processes"`
	Workers   []string `json:"workers"`
	Transport string   `json:"transport"`
	About     string   `json:"about"`
}

func planListCommand() *cobra.Command {
	var out output
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "List the plans that are built in",
		Example: "  weft plan list -o json",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var list []planSummary
			for _, name := range plans.Names() {
				text, err := plans.Read(name)
				if err != nil {
					return err
				}
				p, err := plan.Parse(name+".yaml", text)
				if err != nil {
					return err
				}
				s := planSummary{Name: name, Processes: len(p.Instances()), Transport: p.Transport, About: plans.About(text)}
				for _, w := range p.Workers {
					s.Workers = append(s.Workers, w.Name)
				}
				list = append(list, s)
			}
			return out.print(cmd, list, func(t *table) {
				t.row("NAME", "PROCESSES", "TRANSPORT", "WHAT IT IS")
				for _, s := range list {
					t.row(s.Name, s.Processes, s.Transport, s.About)
				}
			})
		},
	}
	out.flag(cmd)
	return cmd
}

func planShowCommand() *cobra.Command {
	var format string
	formats := []string{"text", "svg", "json", "yaml"}
	cmd := &cobra.Command{
		Use:   "show PLAN",
		Short: "Draw a plan",
		Long: `Draw a plan, a built-in one or that of a file: the workers with their services,
the way of a packet-in through them, and what else goes between them. As text,
services on the way of a packet-in have their number in it. With -o yaml and
-o json the plan itself is printed, in full: to edit, and for programs.`,
		Example: `  weft plan show split
  weft plan show mine.yaml -o svg > plan.svg
  weft plan show scale -o yaml > mine.yaml`,
		Args: cobra.ExactArgs(1),
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return plans.Names(), cobra.ShellCompDirectiveDefault
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if !slices.Contains(formats, format) {
				return wrongly(cmd, "output %q; allowed: %s", format, strings.Join(formats, ", "))
			}
			p, err := readPlan(args[0])
			if err != nil {
				return err
			}
			if err := p.Check(allSpecs()); err != nil {
				return err
			}
			var text []byte
			switch format {
			case "text":
				text = []byte(p.Text(allSpecs()))
			case "svg":
				text = []byte(p.SVG(allSpecs()))
			case "json":
				text, err = toJSON(p)
			case "yaml":
				text, err = p.YAML()
			}
			if err != nil {
				return err
			}
			_, err = cmd.OutOrStdout().Write(text)
			return err
		},
	}
	cmd.Flags().StringVarP(&format, "output", "o", "text", strings.Join(formats[:3], ", ")+" or yaml")
	cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(formats, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}
