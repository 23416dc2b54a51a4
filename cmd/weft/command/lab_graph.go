package command

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/weft-sdn/weft/lab"
)

func labGraphCommand() *cobra.Command {
	var name, output string
	var source labSource
	cmd := &cobra.Command{
		Use:   "graph [TOPOLOGY]",
		Short: "Show a lab's network, or draw it",
		Long: `Show the network of a lab that is up, links in the state they are in, or of a
topology that is not up (a file or a generator, see weft lab up --help), which
needs no root: as text, as a drawing (-o svg, -o dot), or as a topology file
(-o yaml, -o json) to edit and bring up.`,
		Example: `  weft lab graph
  weft lab graph -o svg > network.svg
  weft lab graph fattree:4 -o yaml > mine.yaml`,
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: labForms,
		RunE: func(cmd *cobra.Command, args []string) error {
			g, err := labGraph(cmd, name, args, source)
			if err != nil {
				return err
			}
			out := cmd.OutOrStdout()
			switch output {
			case "table":
				return g.Text(out)
			case "dot":
				return g.DOT(out)
			case "svg":
				return g.SVG(out)
			case "json", "yaml":
				return labPrint(out, output, g.Topology, nil)
			}
			return fmt.Errorf("--output %q: want table, dot, svg, json or yaml", output)
		},
	}
	labNameFlag(cmd, &name)
	source.flags(cmd)
	cmd.Flags().StringVarP(&output, "output", "o", "table", "table, dot, svg, json or yaml")
	return cmd
}

func labGraph(cmd *cobra.Command, name string, args []string, source labSource) (lab.Graph, error) {
	if len(args) == 1 {
		t, err := source.read(cmd, args[0])
		if err != nil {
			return lab.Graph{}, err
		}
		return lab.GraphOf(t), nil
	}
	l, far, err := labAnywhere(name)
	if err != nil {
		return lab.Graph{}, err
	}
	if far != nil {
		links, err := far.Links(cmd.Context())
		return lab.Graph{Topology: far.Topology, Links: links}, err
	}
	return l.Graph()
}
