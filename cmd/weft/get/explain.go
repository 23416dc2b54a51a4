package get

import (
	"strconv"

	"github.com/spf13/cobra"
	"google.golang.org/grpc/codes"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/cmd/weft/cli"
	"github.com/weft-sdn/weft/flow"
)

// PortExplained is what weft explain port prints.
type PortExplained struct {
	Switch  string `json:"dpid"`
	Port    uint32 `json:"port"`
	Role    string `json:"role"`
	Traffic bool   `json:"takes_traffic"`
	Cause   string `json:"cause,omitempty"`
	Reason  string `json:"reason,omitempty"`
	Remedy  string `json:"remedy,omitempty"`
	Until   string `json:"until,omitempty"`
}

func ExplainCommand() *cobra.Command {
	var r cli.Remote
	cmd := &cobra.Command{
		Use:     "explain",
		Short:   "Say why a port takes no traffic, or what a switch does not do of what it should",
		Example: "  weft explain port 1 3\n  weft explain switch 1",
	}
	r.Flags(cmd)
	cmd.AddCommand(explainPort(&r), explainSwitch(&r))
	return cmd
}

func explainPort(r *cli.Remote) *cobra.Command {
	return cli.Query(r, &cobra.Command{
		Use:   "port SWITCH PORT",
		Short: "Say what is behind a port, why it takes no traffic, and what would make it",
		Example: `  weft explain port 1 3
  weft explain port 1 3 -o json`,
		Args: cobra.ExactArgs(2),
	}, func(c *cli.Controller, args []string) (cli.View, error) {
		sw, err := c.Switch(args[0])
		if err != nil {
			return cli.View{}, err
		}
		n, err := strconv.ParseUint(args[1], 10, 32)
		if err != nil {
			return cli.View{}, api.Errorf(codes.InvalidArgument, "port %q: want the number of a port", args[1])
		}
		p, err := PortState(c, flow.Location{Switch: sw, Port: flow.Port(n)})
		return cli.View{Value: p, Text: func(t *cli.Table) {
			t.Row("port", cli.Place(&api.Location{Dpid: p.Switch, Port: p.Port}))
			t.Row("role", p.Role)
			takes := "yes"
			if !p.Traffic {
				takes = "no"
			}
			t.Row("takes traffic", takes)
			for _, line := range [][2]string{{"reason", p.Reason}, {"remedy", p.Remedy}, {"until", p.Until}} {
				if line[1] != "" {
					t.Row(line[0], line[1])
				}
			}
		}}, err
	})
}

// SwitchExplained is what weft explain switch prints.
type SwitchExplained struct {
	Switch string `json:"dpid"`
	State  string `json:"state"`
	// Missing are the entries that the switch should have and does not have, and why.
	Missing []string `json:"missing,omitempty"`
}

func explainSwitch(r *cli.Remote) *cobra.Command {
	return cli.Query(r, &cobra.Command{
		Use:   "switch SWITCH",
		Short: "Say which entries a switch should have and does not have, and why",
		Example: `  weft explain switch 1
  weft explain switch 1 -o json`,
		Args: cobra.ExactArgs(1),
	}, func(c *cli.Controller, args []string) (cli.View, error) {
		sw, err := c.Switch(args[0])
		if err != nil {
			return cli.View{}, err
		}
		s, err := ExplainSwitch(c, sw)
		return cli.View{Value: s, Text: func(t *cli.Table) {
			t.Row("switch", s.Switch)
			t.Row("state", s.State)
			for _, m := range s.Missing {
				t.Row("not in force", m)
			}
		}}, err
	})
}

// ExplainSwitch returns how a switch stands to the entries that it should have.
func ExplainSwitch(c *cli.Controller, sw flow.DPID) (SwitchExplained, error) {
	s := SwitchExplained{Switch: sw.String()}
	m, err := c.ListSync(c.Ctx, &api.ListSyncRequest{})
	if err != nil {
		return s, err
	}
	for _, x := range m.Switches {
		if x.Dpid == s.Switch {
			s.State, s.Missing = x.State, failedEntries(c, s.Switch, explainedMost)
			return s, nil
		}
	}
	return s, &cli.RemoteError{Kind: codes.NotFound, Text: "there is no switch " + s.Switch + ": weft get switches lists those that there are"}
}

// explainedMost is how many entries weft explain switch names.
const explainedMost = 100

// explainedPort returns discovery's explanation of a port.
func explainedPort(m *api.PortRole) PortExplained {
	return PortExplained{m.At.Dpid, m.At.Port, m.Role, m.Role == "edge" || m.Role == "link", m.Cause, m.Reason, m.Remedy, m.Until}
}

// PortState says what a port takes.
func PortState(c *cli.Controller, at flow.Location) (PortExplained, error) {
	p := PortExplained{Switch: at.Switch.String(), Port: uint32(at.Port), Role: "unsettled"}
	roles, err := c.ListPortRoles(c.Ctx, &api.ListPortRolesRequest{})
	if err != nil {
		return p, err
	}
	for _, m := range roles.Ports {
		if m.At.Flow() == at {
			return explainedPort(m), nil
		}
	}
	ports, err := c.ListPorts(c.Ctx, &api.ListPortsRequest{Dpid: p.Switch})
	if e := cli.Unless(err, codes.Unavailable); e != nil {
		return p, e // no such switch, says the southbound
	}
	if err != nil {
		p.Cause, p.Reason = "away", "the switch is not connected"
		p.Remedy = "is the switch up, and can it reach the controller's address? If it is gone for good: weft switch forget " + p.Switch
		return p, nil
	}
	for _, m := range ports.Ports {
		if m.Port == p.Port {
			p.Cause, p.Reason, p.Remedy = "unknown", "discovery does not look at the port: it has just come, or is a port of the switch itself", "wait a moment and look again"
			return p, nil
		}
	}
	return p, &cli.RemoteError{Kind: codes.NotFound, Text: "switch " + p.Switch + " has no port " + at.Port.String() + ": weft get ports --switch " + p.Switch + " lists those that it has"}
}

// listIdlePorts returns the ports that are up and take no traffic, or hold up a
// link, but for those that are only settling.
func listIdlePorts(c *cli.Controller) (list []*api.PortRole, known int, err error) {
	m, err := c.ListPortRoles(c.Ctx, &api.ListPortRolesRequest{})
	for _, p := range m.GetPorts() {
		switch p.Cause {
		case "", "down", "settling", "waiting":
		default:
			list = append(list, p)
		}
	}
	return list, len(m.GetPorts()), err
}
