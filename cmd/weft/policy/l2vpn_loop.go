package policy

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/cmd/weft/cli"
)

func l2vpnLoopCommand(r *cli.Remote) *cobra.Command {
	var last time.Duration
	var undo bool
	cmd := &cobra.Command{
		Use:   "loop NAME [END]",
		Short: "Loop back an end of a circuit for a test",
		Long: `Have an end of a circuit send back what the circuit brings there, with source and
destination address exchanged. Broadcast and multicast are dropped, and the customer at
that end is cut off. It ends by itself after --for.`,
		Example: "  weft l2vpn loop red 5:2 --for 10m\n  weft l2vpn loop red --undo",
		Args:    cobra.RangeArgs(1, 2),
	}
	cmd.Flags().DurationVar(&last, "for", 10*time.Minute, "how long")
	cmd.Flags().BoolVar(&undo, "undo", false, "end it now")
	return cli.Query(r, cmd, func(c *cli.Controller, args []string) (cli.View, error) {
		switch {
		case undo != (len(args) == 1):
			return cli.View{}, fmt.Errorf("want either an end of %s or --undo", args[0])
		case last < time.Second || last > 24*time.Hour:
			return cli.View{}, fmt.Errorf("--for %v: want 1s to 24h", last)
		}
		m, err := c.GetCircuit(c.Ctx, &api.GetCircuitRequest{Name: args[0]})
		if err != nil {
			return cli.View{}, err
		}
		if m.Loops, m.LoopsUntil = nil, ""; !undo {
			m.Loops, m.LoopsUntil = args[1:], time.Now().Add(last).UTC().Format(time.RFC3339)
		}
		if m, err = circuits().set(c, m); err != nil {
			return cli.View{}, err
		}
		return cli.View{Value: m, Text: func(t *cli.Table) { circuitTable(t, []*api.Circuit{m}) }}, nil
	})
}
