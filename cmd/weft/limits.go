package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/weft-sdn/weft/api"
)

func getLimits(r *remote) *cobra.Command {
	var only dpidFlag
	return switchFlag(getter(r, &cobra.Command{
		Use:   "limits",
		Short: "List the ports whose packets to the controller are limited",
		Long: `List the ports that send so many packets to the controller that they are
limited now. OFFERED is what comes per second and LIMIT what is let through; at
WHERE switch a meter in the switch keeps most of it from being sent, else it is
shed on arrival. MAC is the address that most of it comes from, if one does.`,
		Example: `  weft get limits
  weft get limits -o json`,
	}, func(c *controller, _ []string) (view, error) {
		m, err := c.ListLimits(c.ctx, &api.ListLimitsRequest{Dpid: only.text})
		return view{value: m, text: func(t *table) {
			t.row("SWITCH", "PORT", "CLASS", "OFFERED/s", "LIMIT/s", "WHERE", "SHED", "MAC", "SINCE")
			for _, l := range m.GetLimits() {
				t.row(l.Dpid, l.Port, l.Class, fmt.Sprintf("%.0f", l.Offered), fmt.Sprintf("%.0f", l.Limit), l.Where, l.Shed, l.Mac, when(l.Since))
			}
			footer(t, "packet-ins shed", m.GetShed())
		}}, err
	}), &only)
}

func floodSentence(e *api.FloodChanged) string {
	l := e.GetLimit()
	if e.GetEnded() {
		return fmt.Sprintf("port %s/%s floods no longer, %d packets were shed", l.GetDpid(), port(l.GetPort()), l.GetShed())
	}
	return fmt.Sprintf("port %s/%s floods with %s packets, %.0f per second, and is limited to %.0f", l.GetDpid(), port(l.GetPort()), l.GetClass(), l.GetOffered(), l.GetLimit())
}
