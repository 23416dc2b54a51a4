package command

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/cmd/weft/cli"
	"github.com/weft-sdn/weft/flow"
)

func hostCommand() *cobra.Command {
	var r cli.Remote
	cmd := &cobra.Command{
		Use:   "host",
		Short: "Bind hosts to ports and addresses, limit them, and hold them for stages",
		Long: `Bind hosts to ports and addresses, and limit the hosts of a port (port
security). Packets that contradict a binding are dropped and counted, and
weft events shows them. Hosts can be held until a stage of the pipeline, such as a
captive portal, has approved them. The controller keeps all of it over restarts.`,
		Example: `  weft host bind 02:00:00:00:00:01 --at 1/3 --ip 10.0.0.1
  weft host port 1/4 --max 2 --sticky
  weft host bindings
  weft host hold portal --at 1/3
  weft host approve 02:00:00:00:00:01 --stage portal`,
	}
	r.Flags(cmd)
	cmd.AddCommand(hostBindCommand(&r), hostUnbindCommand(&r), hostBindingsCommand(&r), hostPortCommand(&r),
		hostHoldCommand(&r), hostHoldsCommand(&r), hostApproveCommand(&r), hostRevokeCommand(&r))
	return cmd
}

func hostBindCommand(r *cli.Remote) *cobra.Command {
	m := &api.HostBinding{}
	var at []string
	cmd := cli.Query(r, &cobra.Command{
		Use:   "bind MAC",
		Short: "Bind an Ethernet address to ports, and IP addresses to it",
		Long: `Bind an Ethernet address to ports, and IP addresses to it. It may be at these
ports only, and nobody else in its VLAN may have these addresses. It may have
other addresses. A binding of the same address and VLAN is replaced.`,
		Example: `  weft host bind 02:00:00:00:00:01 --at 1/3
  weft host bind 02:00:00:00:00:01 --vlan 20 --at 1/3 --at 2/3 --ip 10.0.0.1 --ip 2001:db8::1`,
		Args: cobra.ExactArgs(1),
	}, func(c *cli.Controller, args []string) (cli.View, error) {
		m.Mac = args[0]
		for _, text := range at {
			l, err := readLocation(text)
			if err != nil {
				return cli.View{}, fmt.Errorf("--at %w", err)
			}
			m.At = append(m.At, l)
		}
		b, err := c.BindHost(c.Ctx, &api.BindHostRequest{Binding: m})
		return cli.View{Value: b, Text: func(t *cli.Table) { bindingsTable(t, []*api.HostBinding{b}) }}, err
	})
	f := cmd.Flags()
	f.Uint32Var(&m.Vlan, "vlan", 0, "the VLAN of the host, of a virtual network its segment; 0 is untagged")
	f.StringArrayVar(&at, "at", nil, "a port where it may be, SWITCH/PORT; may be repeated; none is any")
	f.StringArrayVar(&m.Ips, "ip", nil, "an IPv4 or IPv6 address that nobody else may have; may be repeated")
	return cmd
}

func hostUnbindCommand(r *cli.Remote) *cobra.Command {
	m := &api.UnbindHostRequest{}
	var at string
	cmd := cli.Query(r, &cobra.Command{
		Use:   "unbind [MAC]",
		Short: "Delete a binding, or the sticky bindings of a port",
		Example: `  weft host unbind 02:00:00:00:00:01
  weft host unbind --at 1/4`,
		Args: cobra.MaximumNArgs(1),
	}, func(c *cli.Controller, args []string) (cli.View, error) {
		if (len(args) == 1) == (at != "") {
			return cli.View{}, fmt.Errorf("want a MAC, or --at SWITCH/PORT for the sticky bindings of a port")
		}
		m.Mac = strings.Join(args, "")
		if at != "" {
			l, err := readLocation(at)
			if err != nil {
				return cli.View{}, fmt.Errorf("--at %w", err)
			}
			m.Dpid, m.Port = l.Dpid, l.Port
		}
		resp, err := c.UnbindHost(c.Ctx, m)
		if err != nil {
			return cli.View{}, err
		}
		v := cli.View{Value: resp, Text: func(t *cli.Table) {
			if resp.Deleted > 0 {
				fmt.Fprintln(t, cli.Several(resp.Deleted, "binding", "bindings"), "deleted")
			}
		}}
		if resp.Deleted == 0 {
			v.Failed = fmt.Errorf("there was no such binding; weft host bindings shows those that are")
		}
		return v, nil
	})
	f := cmd.Flags()
	f.Uint32Var(&m.Vlan, "vlan", 0, "the VLAN of the host; 0 is untagged")
	f.StringVar(&at, "at", "", "the port whose sticky bindings are deleted, SWITCH/PORT")
	return cmd
}

func hostBindingsCommand(r *cli.Remote) *cobra.Command {
	return cli.Query(r, &cobra.Command{
		Use:     "bindings",
		Short:   "List the bindings, and the ports with a limit of their own",
		Example: "  weft host bindings -o json",
	}, func(c *cli.Controller, _ []string) (cli.View, error) {
		m, err := c.ListBindings(c.Ctx, &api.ListBindingsRequest{})
		return cli.View{Value: m, Text: func(t *cli.Table) {
			bindingsTable(t, m.GetBindings())
			if len(m.GetPorts()) > 0 {
				fmt.Fprintln(t)
				portsTable(t, m.GetPorts())
			}
		}}, err
	})
}

func hostPortCommand(r *cli.Remote) *cobra.Command {
	m := &api.PortSecurity{}
	var remove bool
	cmd := cli.Query(r, &cobra.Command{
		Use:   "port SWITCH/PORT",
		Short: "Limit the hosts of a port, or bind those that it learns",
		Long: `Limit the hosts of a port, or bind those that it learns. With --sticky, hosts that
are known there, and those that are learnt later, are bound to the port with
their addresses, until weft host unbind --at.`,
		Example: `  weft host port 1/4 --max 2 --sticky
  weft host port 1/4 --clear`,
		Args: cobra.ExactArgs(1),
	}, func(c *cli.Controller, args []string) (cli.View, error) {
		l, err := readLocation(args[0])
		if err != nil {
			return cli.View{}, err
		}
		m.Dpid, m.Port = l.Dpid, l.Port
		if !remove {
			p, err := c.SetPortSecurity(c.Ctx, &api.SetPortSecurityRequest{Security: m})
			return cli.View{Value: p, Text: func(t *cli.Table) { portsTable(t, []*api.PortSecurity{p}) }}, err
		}
		resp, err := c.DeletePortSecurity(c.Ctx, &api.DeletePortSecurityRequest{Dpid: m.Dpid, Port: m.Port})
		if err != nil {
			return cli.View{}, err
		}
		v := cli.View{Value: resp, Text: func(t *cli.Table) {
			if resp.Deleted {
				fmt.Fprintln(t, "settings of port", args[0], "deleted")
			}
		}}
		if !resp.Deleted {
			v.Failed = fmt.Errorf("nothing was set for port %s; weft host bindings shows the ports that have settings", args[0])
		}
		return v, nil
	})
	f := cmd.Flags()
	f.Uint32Var(&m.MaxHosts, "max", 0, "how many hosts it may have; 0 is hosts.port_limit")
	f.BoolVar(&m.Sticky, "sticky", false, "bind the hosts that it learns")
	f.BoolVar(&remove, "clear", false, "delete the settings of the port; its sticky bindings stay")
	cmd.MarkFlagsMutuallyExclusive("clear", "max")
	cmd.MarkFlagsMutuallyExclusive("clear", "sticky")
	return cmd
}

// readLocation reads SWITCH/PORT.
func readLocation(s string) (*api.Location, error) {
	sw, port, ok := strings.Cut(s, "/")
	n, err := strconv.ParseUint(port, 10, 32)
	if !ok || err != nil {
		return nil, fmt.Errorf("%q: want SWITCH/PORT, such as 1/3", s)
	}
	d, err := flow.ParseDPID(sw)
	if err != nil {
		return nil, err
	}
	return &api.Location{Dpid: d.String(), Port: uint32(n)}, nil
}

func bindingsTable(t *cli.Table, list []*api.HostBinding) {
	t.Row("MAC", "VLAN", "AT", "IP", "KIND", "ORIGIN", "SINCE", "STATE", "REASON")
	for _, b := range list {
		at := make([]string, len(b.GetAt()))
		for i, l := range b.GetAt() {
			at[i] = cli.Place(l)
		}
		if len(at) == 0 {
			at = []string{"any"}
		}
		t.Row(b.GetMac(), cli.Vlan(b.GetVlan()), strings.Join(at, " "), strings.Join(b.GetIps(), " "), b.GetKind(), b.GetOrigin(), cli.When(b.GetSince()), b.GetState(), b.GetReason())
	}
}

func portsTable(t *cli.Table, list []*api.PortSecurity) {
	t.Row("PORT", "HOSTS", "MAX", "BOUND", "STICKY", "ORIGIN")
	for _, p := range list {
		most := "default"
		if p.GetMaxHosts() > 0 {
			most = fmt.Sprint(p.GetMaxHosts())
		}
		t.Row(cli.Place(&api.Location{Dpid: p.GetDpid(), Port: p.GetPort()}), p.GetHosts(), most, p.GetBound(), cli.Yes(p.GetSticky()), p.GetOrigin())
	}
}
