package command

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/cmd/weft/cli"
)

func switchCommand() *cobra.Command {
	var r cli.Remote
	cmd := &cobra.Command{
		Use:     "switch",
		Short:   "Give switches names, and forget those that are gone for good",
		Example: "  weft get switches\n  weft switch name 7 attic\n  weft switch forget attic",
	}
	r.Flags(cmd)
	cmd.AddCommand(switchName(&r), switchForget(&r))
	return cmd
}

func switchName(r *cli.Remote) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "name SWITCH [NAME]",
		Short: "Give a switch a name, or take it away",
		Long: `Give a switch a name, by which all commands may call it and tables show it. Without NAME the
switch has the name by which it calls itself (its datapath description), if no other
calls itself so. A name has at most 63 letters, digits, '-', '_' and '.', and is no
hexadecimal number: that is always a datapath identifier (DPID).`,
		Example: "  weft switch name 7 attic\n  weft get flows --switch attic\n  weft switch name attic",
		Args:    cobra.RangeArgs(1, 2),
	}
	return cli.Query(r, cmd, func(c *cli.Controller, args []string) (cli.View, error) {
		sw, err := c.Switch(args[0])
		if err != nil {
			return cli.View{}, cli.AsUsage(cmd, err)
		}
		m, err := c.NameSwitch(c.Ctx, &api.NameSwitchRequest{Dpid: sw.String(), Name: append(args, "")[1]})
		return cli.View{Value: m, Text: func(t *cli.Table) {
			if m.Name == "" {
				t.Row("switch", fmt.Sprintf("%x", uint64(sw)), "has no name")
			} else {
				t.Row("switch", fmt.Sprintf("%x", uint64(sw)), "is", m.Name)
			}
		}}, err
	})
}

func switchForget(r *cli.Remote) *cobra.Command {
	var away bool
	cmd := &cobra.Command{
		Use:   "forget SWITCH | --away",
		Short: "Drop what the controller has learnt of a switch",
		Long: `Drop what the controller has learnt of a switch: its ports and their history, its
links, hosts and counters, and that it is away. Ports that were linked to it may
become edge ports at once.

Forget a switch that is gone for good, so that weft get health does not report it
any more; --away forgets all that are away. A switch that is connected is learnt
anew: forget it if its cables have changed and its ports take no traffic. What
operators have set stays: flow entries, bindings of hosts, allowed links.`,
		Example: "  weft switch forget s7\n  weft switch forget --away",
		Args:    cobra.MaximumNArgs(1),
	}
	cmd.Flags().BoolVar(&away, "away", false, "all switches that are away")
	return cli.Query(r, cmd, func(c *cli.Controller, args []string) (cli.View, error) {
		if away == (len(args) == 1) {
			return cli.View{}, cli.Usagef(cmd, "want a switch, or --away")
		}
		if away {
			return forgetAway(c)
		}
		sw, err := c.Switch(args[0])
		if err != nil {
			return cli.View{}, cli.AsUsage(cmd, err)
		}
		m, err := c.ForgetSwitch(c.Ctx, &api.ForgetSwitchRequest{Dpid: sw.String()})
		return cli.View{Value: m, Text: func(t *cli.Table) { t.Row("switch", sw, becameOf(m)) }}, err
	})
}

// becameOf says what has become of a switch that was to be forgotten.
func becameOf(m *api.ForgetSwitchResponse) string {
	switch {
	case m.Connected:
		return "is connected and learnt anew"
	case m.Known:
		return "is forgotten"
	}
	return "has not connected since the southbound started; what others knew of it is forgotten"
}

// forgotten is a switch that weft switch forget --away has forgotten.
type forgotten struct {
	DPID      string `json:"dpid"`
	Known     bool   `json:"known"`
	Connected bool   `json:"connected"` // it has come back just then, and is learnt anew
}

// forgetAway forgets all switches that are away.
func forgetAway(c *cli.Controller) (cli.View, error) {
	known, err := c.ListSwitches(c.Ctx, &api.ListSwitchesRequest{})
	if err != nil {
		return cli.View{}, err
	}
	c.AskNames()
	list, said := []forgotten{}, []string{}
	for _, sw := range known.Switches {
		if sw.Connected {
			continue
		}
		m, err := c.ForgetSwitch(c.Ctx, &api.ForgetSwitchRequest{Dpid: sw.Dpid})
		if err != nil {
			return cli.View{}, fmt.Errorf("forget switch %s, after %d others: %w", sw.Dpid, len(list), err)
		}
		list, said = append(list, forgotten{sw.Dpid, m.Known, m.Connected}), append(said, becameOf(m))
	}
	return cli.View{Value: map[string]any{"forgotten": list}, Text: func(t *cli.Table) {
		if len(list) == 0 {
			t.Row("no switch is away")
		}
		for i, x := range list {
			t.Row("switch", x.DPID, said[i])
		}
	}}, nil
}
