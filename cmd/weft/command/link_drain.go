package command

import (
	"cmp"

	"github.com/spf13/cobra"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/cmd/weft/cli"
)

// linkDrainCommand empties a link of tunnels.
func linkDrainCommand(r *cli.Remote) *cobra.Command {
	var undo bool
	cmd := &cobra.Command{
		Use:   "drain SWITCH:PORT SWITCH:PORT",
		Short: "Have tunnels leave a link without loss",
		Long: `Have the tunnels on the link between two ports move to other paths before they
leave it, and say which cannot, and why. It stays drained, over restarts, until
--undo. What forwarding sends does not look at that.`,
		Example: `  weft link drain 1:3 2:1
  weft link drain 1:3 2:1 --undo`,
		Args: cobra.ExactArgs(2),
	}
	cli.Query(r, cmd, func(c *cli.Controller, args []string) (cli.View, error) {
		a, err := cli.PlaceText(args[0])
		b, err2 := cli.PlaceText(args[1])
		if err := cmp.Or(err, err2); err != nil {
			return cli.View{}, cli.Usagef(cmd, "%v", err)
		}
		answer, err := c.DrainLink(c.Ctx, &api.DrainLinkRequest{A: a, B: b, Undo: undo})
		return cli.View{Value: answer, Text: func(t *cli.Table) {
			t.Row("MOVED", "STUCK", "LOST")
			t.Row(answer.GetMoved(), len(answer.GetStuck()), answer.GetLost())
			for _, s := range answer.GetStuck() {
				t.Row("stuck:", s.Name, s.Reason)
			}
		}}, err
	})
	cmd.Flags().BoolVar(&undo, "undo", false, "tunnels may use it again")
	return cmd
}
