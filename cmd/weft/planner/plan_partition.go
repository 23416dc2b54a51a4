package planner

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weft-sdn/weft/cmd/weft/cli"
	"github.com/weft-sdn/weft/cmd/weft/planning"
	"github.com/weft-sdn/weft/plan/partition"
)

// partitionFormats are the forms in which partitions are printed.
var partitionFormats = []string{"table", "json", "yaml", "svg"}

func planPartitionCommand() *cobra.Command {
	var p planning.Cut
	var format string
	cmd := &cobra.Command{
		Use:   "partition --network NETWORK",
		Short: "Cut a network into partitions, and choose how many",
		Long: `Cut a network into partitions: sets of switches, each under a mastership of its
own. A fat tree is cut between its pods, a network of hubs between its spokes,
so that all partitions are alike; any other, or one with demands, such that
partitions have about the same load, are connected, and little goes between
them. A switch is given by its name, its DPID in hexadecimal digits, a range of
DPIDs (1-8), or a pattern of names ('e1-*').

With --partitions auto their number follows from how long the network takes
after a failure until all routes are right again. A short measurement on this
machine, with the network simulated in this process, takes links down for some
numbers of partitions; the model of the Hydra paper (section 3.2) is fitted to
some of them and predicts the rest. Prediction and measurement are printed side
by side. Each partition is taken to have a processor of its own.

With -o yaml the output is a section to paste into a plan, with -o svg a drawing.`,
		Example: `  weft plan partition --network hydra
  weft plan partition --network fattree:k=4 --partitions 4 -o yaml
  weft plan partition --network site.yaml --partitions 2 --names east,west --fix east=s1 --apart s1,s9
  weft plan partition --network waxman:n=200 --partitions auto --max 8 --failures 50 -o json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !slices.Contains(partitionFormats, format) {
				return cli.Usagef(cmd, "output %q; allowed: %s", format, strings.Join(partitionFormats, ", "))
			}
			g, err := cli.ReadNetwork(p.Network)
			if err != nil {
				return err
			}
			o, err := p.Options(g)
			if err != nil {
				return cli.Usagef(cmd, "%v", err)
			}
			r := PartitionReport{Network: p.Network, graph: g}
			if p.Partitions == "auto" {
				ctx, stop := cli.Signals(cmd)
				defer stop()
				say := func(format string, args ...any) { fmt.Fprintf(cmd.ErrOrStderr(), format+"\n", args...) }
				if r.Convergence, err = choosePartitions(ctx, g, o, p.Choose, say); err != nil {
					return err
				}
				o.Partitions = r.Convergence.Partitions
			} else if o.Partitions, err = strconv.Atoi(p.Partitions); err != nil {
				return cli.Usagef(cmd, "--partitions %q: want a number, or auto", p.Partitions)
			}
			cut, err := partition.Partition(g, o)
			if err != nil {
				return err
			}
			if err := partition.Check(g, o, cut); err != nil {
				return fmt.Errorf("the partitions are not what was asked for, which is a mistake in weft: %w", err)
			}
			r.read(cut)
			return r.print(cmd, format)
		},
	}
	p.Flags(cmd.Flags())
	sayNetworks(cmd)
	cmd.Flags().StringVarP(&format, "output", "o", "table", "table, json, yaml or svg")
	cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(partitionFormats, cobra.ShellCompDirectiveNoFileComp))
	cmd.RegisterFlagCompletionFunc("method", cobra.FixedCompletions(partition.Methods(), cobra.ShellCompDirectiveNoFileComp))
	cmd.MarkFlagRequired("network")
	return cmd
}

// sayNetworks says in the help of a command what --network may be.
func sayNetworks(cmd *cobra.Command) {
	cmd.Flags().Lookup("network").Usage += ": " + cli.NetworkForms()
}
