package command

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/weft-sdn/weft/lab/nodes"
)

func labNodesCommand() *cobra.Command {
	var name, output string
	cmd := &cobra.Command{
		Use:   "nodes",
		Short: "Show a lab's hybrid nodes and routers",
		Long: `Show the hybrid nodes and routers of a lab that is up (kind: hybrid, kind: router in
the topology file): with how many of their neighbours OSPF and OSPFv3 have
settled, whether Open vSwitch is connected to a controller, which it says every
five seconds, and whether a node is dark: its bridge lacks the entries by which
its routing is reached.

-o json has also the directory by which FRR is asked: vtysh --vty_socket.`,
		Example: `  weft lab nodes
  weft lab nodes --name oshi -o json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := labCheckOutput(output); err != nil {
				return err
			}
			l, err := labNamed(name)
			if err != nil {
				return err
			}
			nodes, err := l.Nodes(cmd.Context())
			if err != nil {
				return err
			}
			return labPrint(cmd.OutOrStdout(), output, labNodes{nodes}, func(w *labTable) {
				w.row("NODE", "KIND", "LOOPBACK", "OSPF", "OSPFV3", "CONTROL", "DARK")
				for _, n := range nodes {
					v6 := ""
					if n.Loopback6 != "" {
						v6 = fmt.Sprintf("%d of %d", n.OSPF6Full, n.OSPFExpected)
					}
					w.row(n.Name, string(n.Kind), n.Loopback, fmt.Sprintf("%d of %d", n.OSPFFull, n.OSPFExpected), v6, n.Control, n.Dark)
				}
			})
		},
	}
	labNameFlag(cmd, &name)
	labOutputFlag(cmd, &output)
	return cmd
}

type labNodes struct {
	Nodes []nodes.NodeStatus `json:"nodes"`
}
