package policy

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/proto"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/cmd/weft/cli"
	"github.com/weft-sdn/weft/cmd/weft/get"
)

func routerCommand() *cobra.Command {
	var r cli.Remote
	cmd := &cobra.Command{
		Use:   "router",
		Short: "Route between subnets",
		Long: `Route IPv4 and IPv6 between subnets. A router belongs to a switch, or to a VLAN
there, has an address in each of its subnets, and static routes. Hosts have that
address as their router. Every switch routes for it by itself, so packets take the
shortest way in the network. The controller keeps routers over restarts.`,
		Example: `  weft router add 1 10.0.1.1/24
  weft router add 1 10.0.2.1/24
  weft router route 1 0.0.0.0/0 10.0.2.254
  weft router list`,
	}
	r.Flags(cmd)
	cmd.AddCommand(routerAddCommand(&r), routerDeleteCommand(&r), routerRouteCommand(&r), routerUnrouteCommand(&r), routerListCommand(&r),
		routers().get(&r, "weft router get 0000000000000001"), applyTyped(&r, "weft router", "routers", func() []declared { return []declared{&typedDesired[*api.VirtualRouter]{typedKind: routers()}} }))
	return cmd
}

// routers is the routers: their addresses and routes make one.
func routers() *typedKind[*api.VirtualRouter] {
	return &typedKind[*api.VirtualRouter]{
		known: "weft router list", one: "router", key: "routers",
		name: routerName,
		list: func(c *cli.Controller) (proto.Message, error) { return c.ListRouters(c.Ctx, &api.ListRoutersRequest{}) },
		set:  setRouter,
		remove: func(c *cli.Controller, m *api.VirtualRouter) (cli.Deletion, error) {
			_, err := setRouter(c, &api.VirtualRouter{Dpid: m.Dpid, Vlan: m.Vlan})
			return &api.DeleteRouterAddressResponse{Deleted: true}, err
		},
		table: routerTable,
		tidy:  tidyRouter,
	}
}

// routerName returns SWITCH, or SWITCH.VLAN.
func routerName(m *api.VirtualRouter) string {
	if m.GetVlan() == 0 {
		return m.GetDpid()
	}
	return fmt.Sprintf("%s.%d", m.Dpid, m.Vlan)
}

// tidyRouter leaves addresses and routes, in order.
func tidyRouter(m *api.VirtualRouter) {
	m.Mac, m.State, m.Reason, m.Neighbours = "", "", "", 0
	for _, a := range m.Addresses {
		a.Id = 0
		if p, err := netip.ParsePrefix(a.Address); err == nil {
			a.Address = p.String()
		}
	}
	for _, x := range m.Routes {
		x.Id, x.GatewayMac = 0, ""
		if p, err := netip.ParsePrefix(x.Destination); err == nil {
			x.Destination = p.Masked().String()
		}
	}
	slices.SortFunc(m.Addresses, func(a, b *api.RouterAddress) int { return cmp.Compare(a.Address, b.Address) })
	slices.SortFunc(m.Routes, func(a, b *api.RouterRoute) int { return cmp.Compare(a.Destination, b.Destination) })
}

// setRouter has a router have the addresses and routes of m, and no others.
func setRouter(c *cli.Controller, m *api.VirtualRouter) (*api.VirtualRouter, error) {
	has := func() (*api.VirtualRouter, error) {
		all, err := c.ListRouters(c.Ctx, &api.ListRoutersRequest{Dpid: m.Dpid})
		for _, r := range all.GetRouters() {
			if tidyRouter(r); r.Vlan == m.Vlan {
				return r, err
			}
		}
		return &api.VirtualRouter{Dpid: m.Dpid, Vlan: m.Vlan}, err
	}
	old, err := has()
	if err != nil {
		return nil, err
	}
	for _, x := range old.Routes {
		if !slices.ContainsFunc(m.Routes, func(o *api.RouterRoute) bool { return proto.Equal(o, x) }) {
			if _, err := c.DeleteRouterRoute(c.Ctx, &api.DeleteRouterRouteRequest{Dpid: m.Dpid, Vlan: m.Vlan, Destination: x.Destination}); err != nil {
				return nil, err
			}
		}
	}
	for _, a := range old.Addresses {
		if !slices.ContainsFunc(m.Addresses, func(o *api.RouterAddress) bool { return proto.Equal(o, a) }) {
			if _, err := c.DeleteRouterAddress(c.Ctx, &api.DeleteRouterAddressRequest{Dpid: m.Dpid, Vlan: m.Vlan, Address: a.Address}); err != nil {
				return nil, err
			}
		}
	}
	for _, a := range m.Addresses {
		if _, err := c.AddRouterAddress(c.Ctx, &api.AddRouterAddressRequest{Dpid: m.Dpid, Vlan: m.Vlan, Address: a.Address}); err != nil {
			return nil, err
		}
	}
	for _, x := range m.Routes {
		if _, err := c.AddRouterRoute(c.Ctx, &api.AddRouterRouteRequest{Dpid: m.Dpid, Vlan: m.Vlan, Destination: x.Destination, Gateway: x.Gateway}); err != nil {
			return nil, err
		}
	}
	return has()
}

// routerDo makes a command of what it asks of a router, whose switch is its first
// argument.
func routerDo(cmd *cobra.Command, r *cli.Remote, do func(c *cli.Controller, of routerOf, args []string) (cli.View, error)) *cobra.Command {
	var vlan uint32
	cmd.Args = cobra.ExactArgs(strings.Count(cmd.Use, " "))
	cmd.Flags().Uint32Var(&vlan, "vlan", 0, "VLAN of the router; 0 is untagged")
	return cli.Query(r, cmd, func(c *cli.Controller, args []string) (cli.View, error) {
		var sw get.DPIDFlag
		if err := sw.Set(args[0]); err != nil {
			return cli.View{}, cli.Usagef(cmd, "%v", err)
		}
		return do(c, routerOf{sw.Text, vlan}, args[1:])
	})
}

// routerOf is which router is meant: that of a VLAN of a switch.
type routerOf struct {
	dpid string
	vlan uint32
}

func routerAddCommand(r *cli.Remote) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "add DPID ADDRESS/LENGTH",
		Short: "Give a router an address, and so a subnet",
		Example: `  weft router add 1 10.0.1.1/24
  weft router add 1 fd00:1::1/64 --vlan 100`,
	}
	return routerDo(cmd, r, func(c *cli.Controller, of routerOf, args []string) (cli.View, error) {
		m, err := c.RouterClient.AddRouterAddress(c.Ctx, &api.AddRouterAddressRequest{Dpid: of.dpid, Vlan: of.vlan, Address: args[0]})
		return cli.View{Value: m, Text: func(t *cli.Table) { t.Row("address", m.Address.Id, m.Address.Address) }}, err
	})
}

func routerDeleteCommand(r *cli.Remote) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "delete DPID ADDRESS/LENGTH",
		Short:   "Take an address from a router; one that routes need stays",
		Example: "  weft router delete 1 10.0.1.1/24",
	}
	return routerDo(cmd, r, func(c *cli.Controller, of routerOf, args []string) (cli.View, error) {
		m, err := c.RouterClient.DeleteRouterAddress(c.Ctx, &api.DeleteRouterAddressRequest{Dpid: of.dpid, Vlan: of.vlan, Address: args[0]})
		return cli.Deleted(m, err, "address "+args[0], "weft router list")
	})
}

func routerRouteCommand(r *cli.Remote) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "route DPID DESTINATION GATEWAY",
		Short: "Add a static route, or the default route",
		Long: `Add a static route to a router: what is for the destination goes by the gateway,
which is in one of the router's subnets. It may be another router of Weft's. The
destinations 0.0.0.0/0 and ::/0 are the default routes.`,
		Example: `  weft router route 1 10.2.0.0/16 10.0.2.254
  weft router route 1 ::/0 fd00:1::fe`,
	}
	return routerDo(cmd, r, func(c *cli.Controller, of routerOf, args []string) (cli.View, error) {
		m, err := c.RouterClient.AddRouterRoute(c.Ctx, &api.AddRouterRouteRequest{Dpid: of.dpid, Vlan: of.vlan, Destination: args[0], Gateway: args[1]})
		return cli.View{Value: m, Text: func(t *cli.Table) { t.Row("route", m.Route.Id, m.Route.Destination, "by "+m.Route.Gateway) }}, err
	})
}

func routerUnrouteCommand(r *cli.Remote) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "unroute DPID DESTINATION",
		Short:   "Delete a static route",
		Example: "  weft router unroute 1 0.0.0.0/0",
	}
	return routerDo(cmd, r, func(c *cli.Controller, of routerOf, args []string) (cli.View, error) {
		m, err := c.RouterClient.DeleteRouterRoute(c.Ctx, &api.DeleteRouterRouteRequest{Dpid: of.dpid, Vlan: of.vlan, Destination: args[0]})
		return cli.Deleted(m, err, "route to "+args[0], "weft router list")
	})
}

func routerListCommand(r *cli.Remote) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "list [DPID]",
		Short:   "List routers, their addresses and routes, and how they are",
		Example: "  weft router list -o json",
		Args:    cobra.MaximumNArgs(1),
	}
	return cli.Query(r, cmd, func(c *cli.Controller, args []string) (cli.View, error) {
		var sw get.DPIDFlag
		if len(args) > 0 {
			if err := sw.Set(args[0]); err != nil {
				return cli.View{}, cli.Usagef(cmd, "%v", err)
			}
		}
		m, err := c.ListRouters(c.Ctx, &api.ListRoutersRequest{Dpid: sw.Text})
		return cli.View{Value: m, Text: func(t *cli.Table) { routerTable(t, m.Routers) }}, err
	})
}

func routerTable(t *cli.Table, list []*api.VirtualRouter) {
	t.Row("SWITCH", "VLAN", "ADDRESSES", "ROUTES", "MAC", "NEIGHBOURS", "STATE")
	for _, r := range list {
		vlan := "-"
		if r.Vlan != 0 {
			vlan = strconv.Itoa(int(r.Vlan))
		}
		var addresses, routes []string
		for _, a := range r.Addresses {
			addresses = append(addresses, a.Address)
		}
		for _, x := range r.Routes {
			by := x.Gateway
			if x.GatewayMac == "" {
				by += " (no answer)"
			}
			routes = append(routes, x.Destination+" by "+by)
		}
		state := r.State
		if r.Reason != "" {
			state += ": " + r.Reason
		}
		t.Row(r.Dpid, vlan, strings.Join(addresses, " "), strings.Join(routes, ", "), r.Mac, strconv.Itoa(int(r.Neighbours)), state)
	}
}
