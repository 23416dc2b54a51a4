package policy

import (
	"cmp"
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/proto"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/cmd/weft/cli"
	"github.com/weft-sdn/weft/cmd/weft/get"
)

func natCommand() *cobra.Command {
	var r cli.Remote
	cmd := &cobra.Command{
		Use:   "nat",
		Short: "Translate addresses between inside and outside",
		Long: `Translate addresses between networks inside and the outside, at a port of a
switch. The connection tracking of that switch does it, so it must be an Open
vSwitch. Hosts inside have the gateway's address as their router; outside, they
are seen with an address of the pool. The controller keeps gateways over
restarts, and connections go on while it is away.`,
		Example: `  weft nat add internet --switch 3 --port 2 --pool 198.51.100.1-198.51.100.2 --next-hop 198.51.100.9 --gateway 10.0.0.254 --inside 10.0.0.0/24 --forward tcp:80=10.0.0.3:8080
  weft nat list
  weft nat delete internet`,
	}
	r.Flags(cmd)
	cmd.AddCommand(natAddCommand(&r), natDeleteCommand(&r), natListCommand(&r),
		nats().get(&r, "weft nat get internet"), applyTyped(&r, "weft nat", "gateways", func() []declared { return []declared{&typedDesired[*api.NatGateway]{typedKind: nats()}} }))
	return cmd
}

// nats is the gateways.
func nats() *typedKind[*api.NatGateway] {
	return &typedKind[*api.NatGateway]{
		known: "weft nat list", one: "gateway", key: "gateways",
		name: (*api.NatGateway).GetName,
		list: func(c *cli.Controller) (proto.Message, error) { return c.ListNats(c.Ctx, &api.ListNatsRequest{}) },
		set: func(c *cli.Controller, m *api.NatGateway) (*api.NatGateway, error) {
			return c.SetNat(c.Ctx, &api.SetNatRequest{Gateway: m})
		},
		remove: func(c *cli.Controller, m *api.NatGateway) (cli.Deletion, error) {
			return c.DeleteNat(c.Ctx, &api.DeleteNatRequest{Name: m.Name})
		},
		table: natTable,
		tidy: func(m *api.NatGateway) {
			m.State, m.Reason, m.NextHopMac, m.ExhaustedPackets, m.ExhaustedAtMs, m.PacketsOut, m.PacketsIn = "", "", "", 0, 0, 0, 0
			m.Hosts, m.Zone, m.Mac = 0, 0, ""
			for _, f := range m.Forwards {
				first, _, _ := strings.Cut(m.Pool, "-")
				f.Address, f.ToPort = cmp.Or(f.Address, first), cmp.Or(f.ToPort, f.Port)
			}
		},
		given: []string{"first_port", "last_port"},
	}
}

// natFlags describe one gateway.
type natFlags struct {
	sw       get.DPIDFlag
	port     uint32
	pool     string
	ports    string
	hop      string
	gateway  string
	inside   []string
	forwards []string
}

func natAddCommand(r *cli.Remote) *cobra.Command {
	var o natFlags
	cmd := &cobra.Command{
		Use:   "add NAME",
		Short: "Add a gateway, or replace the one of that name",
		Long: `Add a gateway, or replace the one of that name. Connections that there are stay
as they were translated. A gateway translates IPv4 or IPv6, as its pool is; for
both there may be two at one port.`,
		Example: `  weft nat add internet --switch 3 --port 2 --pool 198.51.100.1 --next-hop 198.51.100.9 --gateway 10.0.0.254 --inside 10.0.0.0/24
  weft nat add internet --switch 3 --port 2 --pool 198.51.100.1 --ports 20000-29999 --next-hop 198.51.100.9 --gateway 10.0.0.254 --inside 10.0.0.0/24 --forward tcp:80=10.0.0.3:8080
  weft nat add internet6 --switch 3 --port 2 --pool 2001:db8::1:0/112 --next-hop fe80::9 --gateway fd00::fe --inside fd00::/64 --forward tcp:[2001:db8::1:1]:80=[fd00::3]:8080`,
		Args: cobra.ExactArgs(1),
	}
	f := cmd.Flags()
	f.VarP(&o.sw, "switch", "s", "the switch that the outside is at")
	f.Uint32Var(&o.port, "port", 0, "its port to the outside")
	f.StringVar(&o.pool, "pool", "", "outside addresses that connections get: ADDRESS, FIRST-LAST or PREFIX")
	f.StringVar(&o.ports, "ports", "", "ports that TCP and UDP connections get, FIRST-LAST (default 1024-65535)")
	f.StringVar(&o.hop, "next-hop", "", "the router outside, or the host")
	f.StringVar(&o.gateway, "gateway", "", "address inside that hosts have as their router")
	f.StringArrayVar(&o.inside, "inside", nil, "network inside; may be repeated")
	f.StringArrayVar(&o.forwards, "forward", nil, "let in: PROTOCOL:[ADDRESS:]PORT=HOST[:PORT], such as tcp:80=10.0.0.3:8080; may be repeated")
	for _, name := range []string{"switch", "port", "pool", "next-hop", "gateway", "inside"} {
		_ = cmd.MarkFlagRequired(name)
	}
	return nats().add(r, cmd, o.message)
}

// message returns what the flags describe.
func (o *natFlags) message(cmd *cobra.Command, args []string) (*api.NatGateway, error) {
	g := &api.NatGateway{Name: args[0], Dpid: o.sw.Text, Port: o.port, Pool: o.pool, NextHop: o.hop, Gateway: o.gateway, Inside: o.inside}
	if o.ports != "" {
		first, last, ranged := strings.Cut(o.ports, "-")
		if !ranged {
			last = first
		}
		a, err := natPort(first)
		b, err2 := natPort(last)
		if err != nil || err2 != nil {
			return nil, cli.Usagef(cmd, "--ports %s: want FIRST-LAST, 1 to 65535", o.ports)
		}
		g.FirstPort, g.LastPort = a, b
	}
	for _, text := range o.forwards {
		f, err := readForward(text)
		if err != nil {
			return nil, cli.Usagef(cmd, "--forward %s: %v", text, err)
		}
		g.Forwards = append(g.Forwards, f)
	}
	return g, nil
}

func natPort(s string) (uint32, error) {
	n, err := strconv.ParseUint(s, 10, 16)
	if err == nil && n == 0 {
		err = fmt.Errorf("port 0")
	}
	return uint32(n), err
}

// readForward reads PROTOCOL:[ADDRESS:]PORT=HOST[:PORT]; an IPv6 address with a
// port stands in brackets.
func readForward(s string) (*api.NatForward, error) {
	wrong := fmt.Errorf("want PROTOCOL:[ADDRESS:]PORT=HOST[:PORT], such as tcp:80=10.0.0.3:8080 or tcp:[2001:db8::1]:80=[fd00::3]:8080")
	head, to, ok := strings.Cut(s, "=")
	protocol, from, ok2 := strings.Cut(head, ":")
	if !ok || !ok2 {
		return nil, wrong
	}
	f := &api.NatForward{Protocol: protocol}
	if at, err := netip.ParseAddrPort(from); err == nil {
		f.Address, from = at.Addr().String(), strconv.Itoa(int(at.Port()))
	}
	var err error
	if f.Port, err = natPort(from); err != nil {
		return nil, wrong
	}
	if host, err := netip.ParseAddr(to); err == nil {
		f.To = host.String()
		return f, nil
	}
	host, err := netip.ParseAddrPort(to)
	if err != nil || host.Port() == 0 {
		return nil, wrong
	}
	f.To, f.ToPort = host.Addr().String(), uint32(host.Port())
	return f, nil
}

func natDeleteCommand(r *cli.Remote) *cobra.Command {
	return nats().delete(r, &cobra.Command{
		Use:     "delete NAME",
		Short:   "Delete a gateway; its connections end",
		Example: "  weft nat delete internet",
	}, func(args []string) *api.NatGateway { return &api.NatGateway{Name: args[0]} })
}

func natListCommand(r *cli.Remote) *cobra.Command {
	return nats().lists(r, &cobra.Command{
		Use:     "list [NAME]",
		Short:   "List gateways, how they are, and what they have translated",
		Example: "  weft nat list -o json",
	})
}

func natTable(t *cli.Table, list []*api.NatGateway) {
	t.Row("NAME", "OUTSIDE", "POOL", "PORTS", "NEXT HOP", "GATEWAY", "INSIDE", "FORWARDS", "OUT", "IN", "REFUSED", "STATE")
	for _, g := range list {
		state := g.State
		if g.Reason != "" {
			state += ": " + g.Reason
		}
		t.Row(g.Name, fmt.Sprintf("%s/%d", g.Dpid, g.Port), g.Pool, fmt.Sprintf("%d-%d", g.FirstPort, g.LastPort), g.NextHop, g.Gateway,
			strings.Join(g.Inside, " "), strconv.Itoa(len(g.Forwards)), strconv.FormatUint(g.PacketsOut, 10), strconv.FormatUint(g.PacketsIn, 10),
			strconv.FormatUint(g.ExhaustedPackets, 10), state)
	}
}
