package get

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/cmd/weft/cli"
)

func getLimits(r *cli.Remote) *cobra.Command {
	var only cli.DPIDFlag
	return switchFlag(cli.Query(r, &cobra.Command{
		Use:   "limits",
		Short: "List the ports whose packets to the controller are limited",
		Long: `List the ports that send so many packets to the controller that they are
limited now. OFFERED is what comes per second and LIMIT what is let through; at
WHERE switch a meter in the switch keeps most of it from being sent, else it is
shed on arrival. MAC is the address that most of it comes from, if one does.`,
		Example: `  weft get limits
  weft get limits -o json`,
	}, func(c *cli.Controller, _ []string) (cli.View, error) {
		m, err := c.ListLimits(c.Ctx, &api.ListLimitsRequest{Dpid: only.Text})
		return cli.View{Value: m, Text: func(t *cli.Table) {
			t.Row("SWITCH", "PORT", "CLASS", "OFFERED/s", "LIMIT/s", "WHERE", "SHED", "MAC", "SINCE")
			for _, l := range m.GetLimits() {
				t.Row(l.Dpid, l.Port, l.Class, fmt.Sprintf("%.0f", l.Offered), fmt.Sprintf("%.0f", l.Limit), l.Where, l.Shed, l.Mac, cli.When(l.Since))
			}
			cli.Footer(t, "packet-ins shed", m.GetShed())
		}}, err
	}), &only)
}

func floodSentence(e *api.FloodChanged) string {
	l := e.GetLimit()
	if e.GetEnded() {
		return fmt.Sprintf("port %s/%s floods no longer, %d packets were shed", l.GetDpid(), cli.Port(l.GetPort()), l.GetShed())
	}
	return fmt.Sprintf("port %s/%s floods with %s packets, %.0f per second, and is limited to %.0f", l.GetDpid(), cli.Port(l.GetPort()), l.GetClass(), l.GetOffered(), l.GetLimit())
}
