package policy

import (
	"cmp"
	"net/netip"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/cmd/weft/cli"
)

// tidyRouter brings addresses and routes into order.
func tidyRouter(o proto.Message) {
	m := o.(*api.VirtualRouter)
	for _, a := range m.Addresses {
		if p, err := netip.ParsePrefix(a.Address); err == nil {
			a.Address = p.String()
		}
	}
	for _, x := range m.Routes {
		if p, err := netip.ParsePrefix(x.Destination); err == nil {
			x.Destination = p.Masked().String()
		}
	}
	slices.SortFunc(m.Addresses, func(a, b *api.RouterAddress) int { return cmp.Compare(a.Address, b.Address) })
	slices.SortFunc(m.Routes, func(a, b *api.RouterRoute) int { return cmp.Compare(a.Destination, b.Destination) })
}

// setRouter has a router have the addresses and routes of m, and no others.
func setRouter(c *cli.Controller, o proto.Message) (proto.Message, error) {
	m := o.(*api.VirtualRouter)
	has := func() (*api.VirtualRouter, error) {
		all, err := c.ListRouters(c.Ctx, &api.ListRoutersRequest{Dpid: m.Dpid})
		for _, r := range all.GetRouters() {
			clearFound(r.ProtoReflect())
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

// deleteRouter takes everything from a router.
func deleteRouter(c *cli.Controller, o proto.Message) error {
	m := o.(*api.VirtualRouter)
	_, err := setRouter(c, &api.VirtualRouter{Dpid: m.Dpid, Vlan: m.Vlan})
	return err
}

// routesText writes the routes of a router.
func routesText(m proto.Message) string {
	var routes []string
	for _, x := range m.(*api.VirtualRouter).Routes {
		by := x.Gateway
		if x.GatewayMac == "" {
			by += " (no answer)"
		}
		routes = append(routes, x.Destination+" by "+by)
	}
	return strings.Join(routes, ", ")
}
