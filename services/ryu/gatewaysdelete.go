package ryu

import (
	"context"
	"net/netip"
	"strconv"
	"strings"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
)

// delete removes addresses or routes from a router, by their numbers.
func (g *gateways) delete(ctx context.Context, r *request, body dict, sw flow.DPID) (any, error) {
	list, err := g.of(ctx, r, sw)
	if err != nil {
		return nil, err
	}
	remove := g.deleteRoutes
	id, ok := body["route_id"]
	name := "route_id"
	if !ok {
		id, ok = body["address_id"]
		remove, name = g.deleteAddresses, "address_id"
	}
	if !ok && len(list) > 0 {
		return nil, bad("Invalid parameter.")
	}
	number := numberText(id)
	if _, err := strconv.ParseInt(number, 10, 64); err != nil && number != "all" && len(list) > 0 {
		return nil, bad("Invalid [%s] value. %.60q: want a number or all", name, number)
	}
	results := []commandResult{}
	for _, m := range list {
		done, details, err := remove(ctx, m, number)
		if details == "" && err == nil {
			continue
		}
		if err == nil && !done {
			err = unfit(details)
		}
		result, err := resultFor(m, details, err)
		if err != nil {
			return nil, err
		}
		results = append(results, result)
	}
	if len(results) == 0 {
		results = append(results, commandResult{Result: "failure", Details: "Data is nothing."})
	}
	return resultOf(sw, results), nil
}

// stands reports whether a number stands for an id.
func stands(number string, id uint32) bool {
	return number == "all" || strings.TrimLeft(number, "0") == strconv.FormatUint(uint64(id), 10)
}

// deleteAddresses removes addresses from a router, except those that routes need;
// it returns a text of what it has done, empty if there was nothing to do.
func (g *gateways) deleteAddresses(ctx context.Context, m *api.VirtualRouter, number string) (done bool, details string, err error) {
	var gone, kept []string
	for _, x := range m.Addresses {
		if !stands(number, x.Id) {
			continue
		}
		id := strconv.FormatUint(uint64(x.Id), 10)
		if needed(m, x) {
			kept = append(kept, id)
			continue
		}
		if _, err := g.service.deleteAddress(ctx, &api.DeleteRouterAddressRequest{Dpid: m.Dpid, Vlan: m.Vlan, Address: x.Address}); err != nil {
			return false, "", err
		}
		gone = append(gone, id)
	}
	var parts []string
	if len(gone) > 0 {
		parts = append(parts, "Delete address [address_id="+strings.Join(gone, ",")+"]")
	}
	if len(kept) > 0 {
		parts = append(parts, "Skip delete (related route exist) [address_id="+strings.Join(kept, ",")+"]")
	}
	return len(gone) > 0, strings.Join(parts, ", "), nil
}

// needed reports whether the gateway of a route is in the subnet of an address.
func needed(m *api.VirtualRouter, x *api.RouterAddress) bool {
	for _, s := range m.Routes {
		if by, err := netip.ParseAddr(s.Gateway); err == nil && subnetHas(x.Address, by) {
			return true
		}
	}
	return false
}

// deleteRoutes removes routes from a router; it returns a text of what it has
// done.
func (g *gateways) deleteRoutes(ctx context.Context, m *api.VirtualRouter, number string) (done bool, details string, err error) {
	var gone []string
	for _, x := range m.Routes {
		if !stands(number, x.Id) {
			continue
		}
		if _, err := g.service.deleteRoute(ctx, &api.DeleteRouterRouteRequest{Dpid: m.Dpid, Vlan: m.Vlan, Destination: x.Destination}); err != nil {
			return false, "", err
		}
		gone = append(gone, strconv.FormatUint(uint64(x.Id), 10))
	}
	if len(gone) == 0 {
		return false, "", nil
	}
	return true, "Delete route [route_id=" + strings.Join(gone, ",") + "]", nil
}
