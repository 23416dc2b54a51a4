package main

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

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
	cmd.AddCommand(routerAddCommand(&r), routerDeleteCommand(&r), routerRouteCommand(&r), routerUnrouteCommand(&r), routerListCommand(&r))
	return cmd
}

// routerDo makes a command of what it is to do with a router: it reads the
// switch from the first argument, and has the flags of the VLAN and the output.
func routerDo(cmd *cobra.Command, r *cli.Remote, do func(c *cli.Controller, out *cli.Output, cmd *cobra.Command, of routerOf, args []string) error) *cobra.Command {
	var of routerOf
	var out cli.Output
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		var sw get.DPIDFlag
		if err := sw.Set(args[0]); err != nil {
			return cli.Usagef(cmd, "%v", err)
		}
		of.dpid = sw.Text
		c, done, err := r.Dial(cmd)
		if err != nil {
			return err
		}
		defer done()
		return do(c, &out, cmd, of, args[1:])
	}
	cmd.Flags().Uint32Var(&of.vlan, "vlan", 0, "VLAN of the router; 0 is untagged")
	out.Flag(cmd)
	return cmd
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
		Args: cobra.ExactArgs(2),
	}
	return routerDo(cmd, r, func(c *cli.Controller, out *cli.Output, cmd *cobra.Command, of routerOf, args []string) error {
		m, err := c.RouterClient.AddRouterAddress(c.Ctx, &api.AddRouterAddressRequest{Dpid: of.dpid, Vlan: of.vlan, Address: args[0]})
		if err != nil {
			return err
		}
		return out.Print(cmd, m, func(t *cli.Table) { t.Row("address", strconv.Itoa(int(m.Address.Id)), m.Address.Address) })
	})
}

func routerDeleteCommand(r *cli.Remote) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "delete DPID ADDRESS/LENGTH",
		Short:   "Take an address from a router; one that routes need stays",
		Example: "  weft router delete 1 10.0.1.1/24",
		Args:    cobra.ExactArgs(2),
	}
	return routerDo(cmd, r, func(c *cli.Controller, out *cli.Output, cmd *cobra.Command, of routerOf, args []string) error {
		m, err := c.RouterClient.DeleteRouterAddress(c.Ctx, &api.DeleteRouterAddressRequest{Dpid: of.dpid, Vlan: of.vlan, Address: args[0]})
		if err != nil {
			return err
		}
		if err := printDeleted(out, cmd, m, m.Deleted, "address "+args[0]); err != nil || m.Deleted {
			return err
		}
		return fmt.Errorf("the router has no address %s; weft router list shows those that there are", args[0])
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
		Args: cobra.ExactArgs(3),
	}
	return routerDo(cmd, r, func(c *cli.Controller, out *cli.Output, cmd *cobra.Command, of routerOf, args []string) error {
		m, err := c.RouterClient.AddRouterRoute(c.Ctx, &api.AddRouterRouteRequest{Dpid: of.dpid, Vlan: of.vlan, Destination: args[0], Gateway: args[1]})
		if err != nil {
			return err
		}
		return out.Print(cmd, m, func(t *cli.Table) {
			t.Row("route", strconv.Itoa(int(m.Route.Id)), m.Route.Destination, "by "+m.Route.Gateway)
		})
	})
}

func routerUnrouteCommand(r *cli.Remote) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "unroute DPID DESTINATION",
		Short:   "Delete a static route",
		Example: "  weft router unroute 1 0.0.0.0/0",
		Args:    cobra.ExactArgs(2),
	}
	return routerDo(cmd, r, func(c *cli.Controller, out *cli.Output, cmd *cobra.Command, of routerOf, args []string) error {
		m, err := c.RouterClient.DeleteRouterRoute(c.Ctx, &api.DeleteRouterRouteRequest{Dpid: of.dpid, Vlan: of.vlan, Destination: args[0]})
		if err != nil {
			return err
		}
		if err := printDeleted(out, cmd, m, m.Deleted, "route to "+args[0]); err != nil || m.Deleted {
			return err
		}
		return fmt.Errorf("the router has no route to %s; weft router list shows those that there are", args[0])
	})
}

func routerListCommand(r *cli.Remote) *cobra.Command {
	var out cli.Output
	cmd := &cobra.Command{
		Use:     "list [DPID]",
		Short:   "List routers, their addresses and routes, and how they are",
		Example: "  weft router list -o json",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			req := &api.ListRoutersRequest{}
			if len(args) > 0 {
				var sw get.DPIDFlag
				if err := sw.Set(args[0]); err != nil {
					return cli.Usagef(cmd, "%v", err)
				}
				req.Dpid = sw.Text
			}
			c, done, err := r.Dial(cmd)
			if err != nil {
				return err
			}
			defer done()
			m, err := c.RouterClient.ListRouters(c.Ctx, req)
			if err != nil {
				return err
			}
			return out.Print(cmd, m, func(t *cli.Table) { routerTable(t, m.Routers) })
		},
	}
	out.Flag(cmd)
	return cmd
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
