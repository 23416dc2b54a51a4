package command

import (
	"cmp"

	"github.com/spf13/cobra"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/cmd/weft/cli"
)

func linkCommand() *cobra.Command {
	var r cli.Remote
	cmd := &cobra.Command{
		Use:   "link",
		Short: "Allow links that discovery holds, and say what links are worth",
		Long: `Allow links that discovery holds. A new link whose probes take longer than over a
cable may be a relay between hosts, so it is held: weft get links lists it with
the reason. If it is a cable, only a long one, allow it.

Say what links are worth to computed paths: capacity, delay, metric, colours,
risk groups, and whether they are drained.`,
		Example: `  weft get links
  weft link set 1:3 2:1 --capacity 10G --colour gold --risk-group duct-7
  weft link drain 1:3 2:1
  weft link allow 1:3 2:1
  weft link revoke 1:3 2:1
  weft link list`,
	}
	r.Flags(cmd)
	cmd.AddCommand(
		linkSetCommand(&r, &cobra.Command{
			Use:   "allow SWITCH:PORT SWITCH:PORT",
			Short: "Have a link come up whatever its latency is",
			Long: `Have a link between two ports come up whatever its latency and the history of its
ports are. The controller keeps this over restarts. A plan or configuration says
the same by discovery.allow, and discovery.latency.max says how long links are.`,
			Example: "  weft link allow 1:3 2:1",
		}, false),
		linkSetCommand(&r, &cobra.Command{
			Use:     "revoke SWITCH:PORT SWITCH:PORT",
			Short:   "Take back weft link allow; the link is judged anew",
			Example: "  weft link revoke 1:3 2:1",
		}, true),
		linkSetValuesCommand(&r),
		linkDrainCommand(&r),
		linkListCommand(&r))
	return cmd
}

func linkSetCommand(r *cli.Remote, cmd *cobra.Command, revoke bool) *cobra.Command {
	cmd.Args = cobra.ExactArgs(2)
	return cli.Query(r, cmd, func(c *cli.Controller, args []string) (cli.View, error) {
		a, err := cli.PlaceText(args[0])
		b, err2 := cli.PlaceText(args[1])
		if err := cmp.Or(err, err2); err != nil {
			return cli.View{}, cli.Usagef(cmd, "%v", err)
		}
		m, err := c.AllowLink(c.Ctx, &api.AllowLinkRequest{A: a, B: b, Revoke: revoke})
		return cli.View{Value: m, Text: func(t *cli.Table) {
			if revoke {
				t.Row("link", cli.Place(a), "-", cli.Place(b), "is no longer allowed")
			} else {
				t.Row("link", cli.Place(a), "-", cli.Place(b), "is allowed")
			}
		}}, err
	})
}

func linkListCommand(r *cli.Remote) *cobra.Command {
	return cli.Query(r, &cobra.Command{
		Use:     "list",
		Short:   "List the links that are allowed, and what is set of links",
		Example: "  weft link list -o json",
	}, func(c *cli.Controller, _ []string) (cli.View, error) {
		m, err := c.ListLinks(c.Ctx, &api.ListLinksRequest{})
		list := &api.ListLinksResponse{Allowed: m.GetAllowed(), Settings: m.GetSettings()}
		return cli.View{Value: list, Text: func(t *cli.Table) {
			t.Row("PORT", "PORT", "IS")
			for _, l := range list.Allowed {
				t.Row(cli.Place(l.A), cli.Place(l.B), "allowed")
			}
			for _, l := range list.Settings {
				t.Row(cli.Place(l.A), cli.Place(l.B), linkSettings(l.Settings))
			}
		}}, err
	})
}
