package command

import (
	"github.com/spf13/cobra"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/cmd/weft/cli"
	"github.com/weft-sdn/weft/flow"
)

func switchCommand() *cobra.Command {
	var r cli.Remote
	cmd := &cobra.Command{
		Use:     "switch",
		Short:   "Forget switches that are gone for good",
		Example: "  weft get switches\n  weft switch forget 7",
	}
	r.Flags(cmd)
	cmd.AddCommand(switchForget(&r))
	return cmd
}

func switchForget(r *cli.Remote) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "forget DPID",
		Short: "Drop what the controller has learnt of a switch",
		Long: `Drop what the controller has learnt of a switch: its ports and their history, its
links, hosts and counters, and that it is away. Ports that were linked to it may
become edge ports at once.

Forget a switch that is gone for good, so that weft get health does not report it
any more. A switch that is connected is learnt anew: forget it if its cables have
changed and its ports take no traffic. What operators have set stays: flow entries,
bindings of hosts, allowed links.`,
		Example: "  weft switch forget 7",
		Args:    cobra.ExactArgs(1),
	}
	return cli.Query(r, cmd, func(c *cli.Controller, args []string) (cli.View, error) {
		sw, err := flow.ParseDPID(args[0])
		if err != nil {
			return cli.View{}, cli.Usagef(cmd, "%v", err)
		}
		m, err := c.ForgetSwitch(c.Ctx, &api.ForgetSwitchRequest{Dpid: sw.String()})
		return cli.View{Value: m, Text: func(t *cli.Table) {
			switch {
			case m.Connected:
				t.Row("switch", sw, "is connected and learnt anew")
			case m.Known:
				t.Row("switch", sw, "is forgotten")
			default:
				t.Row("switch", sw, "has not connected since the southbound started; what others knew of it is forgotten")
			}
		}}, err
	})
}
