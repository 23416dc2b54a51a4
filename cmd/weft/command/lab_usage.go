package command

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/weft-sdn/weft/cmd/weft/cli"
	"github.com/weft-sdn/weft/lab"
	"github.com/weft-sdn/weft/lab/machine"
)

func labUsageCommand() *cobra.Command {
	var name, output string
	cmd := &cobra.Command{
		Use:   "usage",
		Short: "Show what the nodes of a lab use of the machine",
		Long: `Show the processes, the processor time and the memory of each node of a lab that has a
network namespace of its own, and of what its OpenFlow switches share.`,
		Example: `  weft lab usage
  weft lab usage --name dc -o json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := labCheckOutput(output); err != nil {
				return err
			}
			l, far, err := labAnywhere(name)
			if err != nil {
				return err
			}
			all, nodes := lab.Sample{}, []string(nil)
			if far == nil {
				all, err = l.Sample()
				nodes = l.NodeNames()
			} else {
				ctx, stop := cli.Signals(cmd)
				defer stop()
				samples := []lab.Sample(nil)
				samples, err = far.Samples(ctx)
				all, nodes = lab.SumSamples(samples), far.NodeNames()
			}
			if err != nil {
				return err
			}
			return labPrint(cmd.OutOrStdout(), output, all, func(w *labTable) {
				w.row("NODE", "PROCESSES", "CPU s", "MEMORY MiB")
				row := func(node string, u machine.Usage) {
					w.row(node, u.Processes, fmt.Sprintf("%.2f", u.CPU.Seconds()), fmt.Sprintf("%.1f", float64(u.Memory)/(1<<20)))
				}
				for _, node := range nodes {
					if u, ok := all.Nodes[node]; ok {
						row(node, u)
					}
				}
				row("shared by the switches", all.Shared)
			})
		},
	}
	labNameFlag(cmd, &name)
	labOutputFlag(cmd, &output)
	return cmd
}
