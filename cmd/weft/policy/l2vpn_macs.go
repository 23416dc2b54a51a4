package policy

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/cmd/weft/cli"
)

func l2vpnMacsCommand(r *cli.Remote) *cobra.Command {
	return cli.Query(r, &cobra.Command{
		Use:   "macs NAME",
		Short: "Show where a vpls has learnt addresses",
		Long: `Show at which end of a vpls each address is, for how long the controller has not heard it,
and how often it has moved; and the ends that are blocked.`,
		Example: "  weft l2vpn macs office\n  weft l2vpn macs office -o json",
		Args:    cobra.ExactArgs(1),
	}, func(c *cli.Controller, args []string) (cli.View, error) {
		l, err := c.ListCircuitMacs(c.Ctx, &api.ListCircuitMacsRequest{Name: args[0]})
		return cli.View{Value: l, Text: func(t *cli.Table) {
			t.Row("ADDRESS", "END", "AGE", "MOVES", "NOTE")
			for _, m := range l.GetMacs() {
				note := ""
				switch {
				case m.HeldUntil != "":
					note = "stays until " + m.HeldUntil + ": it moved too often"
				case m.Asked:
					note = "asked for"
				}
				t.Row(m.Mac, m.End, (time.Duration(m.AgeS) * time.Second).String(), m.Moves, note)
			}
			for _, x := range l.GetBlocked() {
				t.Row("-", x.End, "", "", fmt.Sprintf("blocked until %s: %s", x.Until, x.Reason))
			}
		}}, err
	})
}
