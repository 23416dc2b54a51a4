package router

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"google.golang.org/grpc/codes"

	"github.com/weft-sdn/weft/api"
)

// add adds an address to the router; it returns the address, and whether it is
// new.
func (r *router) add(text string, limit int) (address, bool, error) {
	p, err := netip.ParsePrefix(strings.TrimSpace(text))
	if err != nil || !usable(p.Addr()) || p.Bits() == 0 {
		return address{}, false, api.Errorf(codes.InvalidArgument, "address %.60q: want an address with prefix length, such as 10.0.1.1/24", text)
	}
	for _, x := range r.addresses {
		if x.Prefix == p {
			return x, false, nil
		}
		if x.Overlaps(p) {
			return address{}, false, api.Errorf(codes.AlreadyExists, "address %v overlaps with %v, which the router has", p, x.Prefix)
		}
	}
	for _, x := range r.routes {
		if x.by == p.Addr() {
			return address{}, false, api.Errorf(codes.FailedPrecondition, "address %v is the gateway of the route to %v", p, x.to)
		}
	}
	if len(r.addresses) >= limit {
		return address{}, false, api.Errorf(codes.ResourceExhausted, "address %v: the router has %d already; delete one, or raise router.addresses", p, limit)
	}
	r.next[0]++
	x := address{r.next[0], p}
	r.addresses = append(r.addresses, x)
	return x, true, nil
}

// remove takes an address from the router, unless routes need it.
func (r *router) remove(text string) (bool, error) {
	p, err := netip.ParsePrefix(strings.TrimSpace(text))
	if err != nil {
		return false, api.Errorf(codes.InvalidArgument, "address %.60q: want an address with prefix length, such as 10.0.1.1/24", text)
	}
	i := slices.IndexFunc(r.addresses, func(x address) bool { return x.Prefix == p })
	if i < 0 {
		return false, nil
	}
	for _, x := range r.routes {
		if p.Contains(x.by) {
			return false, api.Errorf(codes.FailedPrecondition, "address %v: the route to %v goes by %v, which is in its subnet; delete that first", p, x.to, x.by)
		}
	}
	r.addresses = slices.Delete(r.addresses, i, i+1)
	return true, nil
}

// route adds a static route; it returns the route, and whether it is new. It
// returns an error if there is another route to the same destination.
func (r *router) route(destination, gateway string, limit int) (static, bool, error) {
	by, err := netip.ParseAddr(strings.TrimSpace(gateway))
	if err != nil || !usable(by) {
		return static{}, false, api.Errorf(codes.InvalidArgument, "gateway %.60q: want the address of a router, such as 10.0.1.254", gateway)
	}
	to, err := readDestination(destination, by)
	if err != nil {
		return static{}, false, api.Errorf(codes.InvalidArgument, "%w", err)
	}
	for _, x := range r.routes {
		if x.to == to && x.by == by {
			return x, false, nil
		}
		if x.to == to {
			return static{}, false, api.Errorf(codes.AlreadyExists, "route to %v: there is one by %v; delete it first", to, x.by)
		}
	}
	if r.has(by) {
		return static{}, false, api.Errorf(codes.InvalidArgument, "gateway %v is the router's own address", by)
	}
	if _, ok := r.subnet(by); !ok {
		return static{}, false, api.Errorf(codes.FailedPrecondition, "gateway %v is in no subnet of the router; give the router an address there first", by)
	}
	if len(r.routes) >= limit {
		return static{}, false, api.Errorf(codes.ResourceExhausted, "route to %v: the router has %d already; delete one, or raise router.routes", to, limit)
	}
	r.next[1]++
	x := static{id: r.next[1], to: to, by: by}
	r.routes = append(r.routes, x)
	return x, true, nil
}

// unroute deletes a static route.
func (r *router) unroute(destination string) (bool, error) {
	to, err := netip.ParsePrefix(strings.TrimSpace(destination))
	if err != nil {
		return false, api.Errorf(codes.InvalidArgument, "destination %.60q: want a network, such as 10.2.0.0/16, or 0.0.0.0/0", destination)
	}
	n := len(r.routes)
	r.routes = slices.DeleteFunc(r.routes, func(x static) bool { return x.to == to.Masked() })
	return len(r.routes) < n, nil
}

// readDestination reads the destination of a route through a gateway; empty is
// the default route.
func readDestination(text string, by netip.Addr) (netip.Prefix, error) {
	if text = strings.TrimSpace(text); text == "" {
		if by.Is4() {
			return netip.PrefixFrom(netip.IPv4Unspecified(), 0), nil
		}
		return netip.PrefixFrom(netip.IPv6Unspecified(), 0), nil
	}
	to, err := netip.ParsePrefix(text)
	if err != nil || to.Addr().Is4() != by.Is4() || to.Addr().Is4In6() || to.Addr().IsMulticast() {
		return netip.Prefix{}, fmt.Errorf("destination %.60q: want a network of the gateway's family, such as 10.2.0.0/16, or 0.0.0.0/0", text)
	}
	return to.Masked(), nil
}

// addAddress, deleteAddress, addRoute and deleteRoute carry out requests. A
// router on a VLAN is deleted once it is empty.

func (b *store) addAddress(ctx context.Context, q *api.AddRouterAddressRequest) (*api.AddRouterAddressResponse, error) {
	var a address
	var added bool
	err := b.change(ctx, q, func(r *router) (_ bool, err error) {
		a, added, err = r.add(q.GetAddress(), b.cfg.Load().Addresses)
		return added, err
	})
	return &api.AddRouterAddressResponse{Address: a.message(), Added: added}, err
}

func (b *store) deleteAddress(ctx context.Context, q *api.DeleteRouterAddressRequest) (*api.DeleteRouterAddressResponse, error) {
	resp := &api.DeleteRouterAddressResponse{}
	err := b.change(ctx, q, func(r *router) (_ bool, err error) {
		resp.Deleted, err = r.remove(q.GetAddress())
		return resp.Deleted, err
	})
	return resp, err
}

func (b *store) addRoute(ctx context.Context, q *api.AddRouterRouteRequest) (*api.AddRouterRouteResponse, error) {
	var x static
	var added bool
	err := b.change(ctx, q, func(r *router) (_ bool, err error) {
		x, added, err = r.route(q.GetDestination(), q.GetGateway(), b.cfg.Load().Routes)
		return added, err
	})
	return &api.AddRouterRouteResponse{Route: x.message(), Added: added}, err
}

func (b *store) deleteRoute(ctx context.Context, q *api.DeleteRouterRouteRequest) (*api.DeleteRouterRouteResponse, error) {
	resp := &api.DeleteRouterRouteResponse{}
	err := b.change(ctx, q, func(r *router) (_ bool, err error) {
		resp.Deleted, err = r.unroute(q.GetDestination())
		return resp.Deleted, err
	})
	return resp, err
}
