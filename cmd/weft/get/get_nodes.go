package get

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/cmd/weft/cli"
)

func getNodes(r *cli.Remote) *cobra.Command {
	return cli.Query(r, &cobra.Command{
		Use:   "nodes",
		Short: "List the hybrid IP/SDN nodes that are heard of",
		Long: `List the hybrid IP/SDN nodes that weft node run has reported. STATE is live, stale
(not heard of for nodes.stale) or unknown (no connected switch says that it is one).
OSPF is neighbours settled with of those expected, BFD sessions up of those there
are.`,
		Example: "  weft get nodes -o json",
	}, func(c *cli.Controller, _ []string) (cli.View, error) {
		m, err := c.ListNodes(c.Ctx, &api.ListNodesRequest{})
		return cli.View{Value: m, Text: func(t *cli.Table) {
			t.Row("DPID", "NAME", "STATE", "HEARD", "BY", "LOOPBACK", "OSPF", "BFD", "PORTS", "TUNNELS", "DARK")
			for _, n := range m.GetNodes() {
				ospf, up, sessions, tunnels := "", 0, 0, 0
				if o := n.Report.GetRouting(); o != nil {
					ospf = fmt.Sprintf("%d/%d", o.OspfFull, o.OspfExpected)
				}
				for _, p := range n.Report.GetPorts() {
					if p.Role == "tunnel" {
						tunnels++
					}
					if p.Bfd != "" {
						sessions++
					}
					if p.Bfd == "up" {
						up++
					}
				}
				t.Row(n.Report.GetDpid(), n.Report.GetName(), n.State, cli.When(n.Heard), n.Agent, n.Report.GetLoopback(), ospf,
					fmt.Sprintf("%d/%d", up, sessions), len(n.Report.GetPorts()), tunnels, n.Report.GetDark())
			}
		}}, err
	})
}
