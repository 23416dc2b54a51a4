package ryu

import (
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"

	"google.golang.org/grpc/codes"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
)

// routerService is what the handlers of rest_router need of the router service.
type routerService interface {
	addAddress(context.Context, *api.AddRouterAddressRequest) (*api.AddRouterAddressResponse, error)
	deleteAddress(context.Context, *api.DeleteRouterAddressRequest) (*api.DeleteRouterAddressResponse, error)
	addRoute(context.Context, *api.AddRouterRouteRequest) (*api.AddRouterRouteResponse, error)
	deleteRoute(context.Context, *api.DeleteRouterRouteRequest) (*api.DeleteRouterRouteResponse, error)
	listRouters(context.Context, *api.ListRoutersRequest) (*api.ListRoutersResponse, error)
}

// gateways is rest_router: the routers of the router service. It keeps no state
// of them itself. Its errors are JSON, as Ryu's are.
type gateways struct {
	service routerService
	mu      sync.Mutex // held while something is changed
}

// gatewayRoutes are the routes of rest_router.
func (s *server) gatewayRoutes() []route {
	var routes []route
	for _, path := range []string{"/router/{dpid}", "/router/{dpid}/{vlan}"} {
		routes = append(routes,
			route{"GET", path, s.eachGateway(s.gateways.show)},
			route{"POST", path, s.eachGateway(s.gateways.set)},
			route{"DELETE", path, s.eachGateway(s.gateways.delete)})
	}
	return routes
}

// eachGateway turns a handler for one switch into one for the switch of the path,
// or for all.
func (s *server) eachGateway(h func(context.Context, *request, dict, flow.DPID) (any, error)) handler {
	return func(ctx context.Context, r *request) (any, error) {
		list, body, err := s.gatewaySwitches(r)
		if err != nil {
			return nil, err
		}
		s.gateways.mu.Lock()
		defer s.gateways.mu.Unlock()
		answers := []any{}
		for _, sw := range list {
			a, err := h(ctx, r, body, sw)
			if err != nil {
				return nil, inJSON(err)
			}
			answers = append(answers, a)
		}
		return answers, nil
	}
}

// gatewaySwitches returns the switches of a path, and the body.
func (s *server) gatewaySwitches(r *request) ([]flow.DPID, dict, error) {
	name, list := r.args["dpid"], s.view().connected()
	if v, ok := r.args["vlan"]; ok && v != "all" && (len(v) > 4 || strings.Trim(v, "0123456789") != "") {
		return nil, nil, &failure{404, fmt.Sprintf("there is no %.80q: want a VLAN, 2 to 4094, or all", r.path)}
	}
	if name != "all" {
		sw, err := sixteen(r)
		if err != nil {
			return nil, nil, err
		}
		if list = nil; s.view().has(sw) {
			list = []flow.DPID{sw}
		}
	}
	if len(list) == 0 {
		return nil, nil, inJSON(&failure{404, "Router SW is not connected. : switch_id=" + name})
	}
	if len(r.body) > 0 && !json.Valid(r.body) {
		return nil, nil, inJSON(bad("invalid syntax: want JSON"))
	}
	body, err := r.dict()
	if err != nil {
		return nil, nil, inJSON(bad("Invalid parameter."))
	}
	return list, body, nil
}

// inJSON returns an error in the form of Ryu's rest_router, if it is an error of
// a request.
func inJSON(err error) error {
	f, ok := err.(*failure)
	if !ok {
		return err
	}
	text, err := json.Marshal(commandResult{Result: "failure", Details: f.text})
	if err != nil {
		return f
	}
	return &failure{f.status, string(text)}
}

// The methods below are called with mu held.

// of returns the routers of a path's switch, in the order of VLANs. The one
// without VLAN is always there, possibly empty.
func (g *gateways) of(ctx context.Context, r *request, sw flow.DPID) ([]*api.VirtualRouter, error) {
	vlan, all, err := vlanOf(r)
	if err != nil {
		return nil, err
	}
	resp, err := g.service.listRouters(ctx, &api.ListRoutersRequest{Dpid: sw.String()})
	if err != nil {
		return nil, err
	}
	list := slices.DeleteFunc(slices.Clone(resp.Routers), func(m *api.VirtualRouter) bool { return !all && m.Vlan != uint32(vlan) })
	if (all || vlan == vlanNone) && !slices.ContainsFunc(list, func(m *api.VirtualRouter) bool { return m.Vlan == vlanNone }) {
		list = append([]*api.VirtualRouter{{Dpid: sw.String()}}, list...)
	}
	return list, nil
}

// gatewayNetwork is one router, as Ryu shows it.
type gatewayNetwork struct {
	Address []gatewayAddress `json:"address,omitempty"`
	Route   []gatewayRoute   `json:"route,omitempty"`
	VLAN    any              `json:"vlan_id,omitempty"`
}

type gatewayAddress struct {
	ID      uint32 `json:"address_id"`
	Address string `json:"address"`
}

type gatewayRoute struct {
	ID          uint32 `json:"route_id"`
	Destination string `json:"destination"`
	Gateway     string `json:"gateway"`
}

// show answers with the routers of a switch. It shows routes whose gateway has
// answered.
func (g *gateways) show(ctx context.Context, r *request, _ dict, sw flow.DPID) (any, error) {
	list, err := g.of(ctx, r, sw)
	if err != nil {
		return nil, err
	}
	networks := []gatewayNetwork{}
	for _, m := range list {
		n := gatewayNetwork{}
		for _, x := range m.Addresses {
			n.Address = append(n.Address, gatewayAddress{x.Id, x.Address})
		}
		for _, x := range m.Routes {
			if x.GatewayMac != "" {
				n.Route = append(n.Route, gatewayRoute{x.Id, x.Destination, x.Gateway})
			}
		}
		if m.Vlan != vlanNone && (n.Address != nil || n.Route != nil) {
			n.VLAN = m.Vlan
		}
		networks = append(networks, n)
	}
	if len(networks) == 0 {
		networks = append(networks, gatewayNetwork{VLAN: r.args["vlan"]})
	}
	return map[string]any{"switch_id": sw.String(), "internal_network": networks}, nil
}

// set gives a router an address or a route.
func (g *gateways) set(ctx context.Context, r *request, body dict, sw flow.DPID) (any, error) {
	list, err := g.of(ctx, r, sw)
	if err != nil {
		return nil, err
	}
	if len(list) == 0 {
		vlan, _, _ := vlanOf(r)
		list = append(list, &api.VirtualRouter{Dpid: sw.String(), Vlan: uint32(vlan)})
	}
	results := []commandResult{}
	for _, m := range list {
		var details string
		var err error
		if text, ok := body["address"]; ok {
			details, err = g.setAddress(ctx, m, text)
		} else if by, ok := body["gateway"]; ok {
			to, given := body["destination"]
			if !given {
				to = "0.0.0.0/0"
			}
			details, err = g.setRoute(ctx, m, to, by)
		} else {
			err = bad("Invalid parameter.")
		}
		result, err := resultFor(m, details, err)
		if err != nil {
			return nil, err
		}
		results = append(results, result)
	}
	return resultOf(sw, results), nil
}

// unfit is why a command was not carried out; the answer is a success that says
// so.
type unfit string

func (u unfit) Error() string { return string(u) }

// resultFor returns the result of a command to a router.
func resultFor(m *api.VirtualRouter, details string, err error) (commandResult, error) {
	result := commandResult{Result: "success", Details: details}
	if m.Vlan != vlanNone {
		vlan := uint16(m.Vlan)
		result.VLAN = &vlan
	}
	switch why, ok := err.(unfit); {
	case err == nil:
		return result, nil
	case ok:
		result.Result, result.Details = "failure", string(why)
		return result, nil
	}
	switch api.KindOf(err) {
	case codes.AlreadyExists, codes.FailedPrecondition, codes.ResourceExhausted:
		result.Result, result.Details = "failure", err.Error()
		return result, nil
	case codes.InvalidArgument:
		return result, bad("%v", err)
	}
	return result, err
}

// prefixOf reads an IPv4 address with or without prefix length.
func prefixOf(name string, v any) (netip.Prefix, error) {
	text, _ := v.(string)
	host, length, given := strings.Cut(text, "/")
	a, err := netip.ParseAddr(host)
	if err != nil || !a.Is4() {
		return netip.Prefix{}, bad("Invalid [%s] value. %.60q: want an IPv4 address", name, text)
	}
	n := 32
	if given {
		if n, err = strconv.Atoi(length); err != nil || n < 0 || n > 32 {
			return netip.Prefix{}, bad("Invalid [%s] value. illegal netmask", name)
		}
	}
	return netip.PrefixFrom(a, n), nil
}

func (g *gateways) setAddress(ctx context.Context, m *api.VirtualRouter, v any) (string, error) {
	p, err := prefixOf("address", v)
	if err != nil {
		return "", err
	}
	for _, x := range m.Addresses {
		if o, err := netip.ParsePrefix(x.Address); err == nil && o.Overlaps(p) {
			return "", unfit(fmt.Sprintf("Address overlaps [address_id=%d]", x.Id))
		}
	}
	resp, err := g.service.addAddress(ctx, &api.AddRouterAddressRequest{Dpid: m.Dpid, Vlan: m.Vlan, Address: p.String()})
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("Add address [address_id=%d]", resp.Address.Id), nil
}

func (g *gateways) setRoute(ctx context.Context, m *api.VirtualRouter, destination, gateway any) (string, error) {
	p, err := prefixOf("gateway", gateway)
	if text, _ := gateway.(string); err != nil || strings.Contains(text, "/") {
		return "", bad("Invalid [gateway] value. %.60q: want an IPv4 address", text)
	}
	by := p.Addr()
	in := slices.IndexFunc(m.Addresses, func(x *api.RouterAddress) bool { return subnetHas(x.Address, by) })
	if in < 0 {
		return "", unfit(fmt.Sprintf("Gateway=%v's address is not registered.", by))
	}
	if own, _, _ := strings.Cut(m.Addresses[in].Address, "/"); own == by.String() {
		return "", unfit(fmt.Sprintf("Gateway=%v is used as default gateway of address_id=%d", by, m.Addresses[in].Id))
	}
	to, err := prefixOf("destination", destination)
	if err != nil {
		return "", err
	}
	for _, x := range m.Routes {
		if x.Destination == to.Masked().String() {
			return "", unfit(fmt.Sprintf("Destination overlaps [route_id=%d]", x.Id))
		}
	}
	resp, err := g.service.addRoute(ctx, &api.AddRouterRouteRequest{Dpid: m.Dpid, Vlan: m.Vlan, Destination: to.Masked().String(), Gateway: by.String()})
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("Add route [route_id=%d]", resp.Route.Id), nil
}

// subnetHas reports whether an address is in a router's subnet.
func subnetHas(address string, a netip.Addr) bool {
	p, err := netip.ParsePrefix(address)
	return err == nil && p.Contains(a)
}
