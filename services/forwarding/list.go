package forwarding

import (
	"context"
	"sort"
	"time"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
)

// listRoutes answers the call: any instance knows all routes.
func (e *engine) listRoutes(context.Context, *api.ListRoutesRequest) (*api.ListRoutesResponse, error) {
	resp := &api.ListRoutesResponse{}
	e.routes.each(func(r *route) { resp.Routes = append(resp.Routes, r.message()) })
	sort.Slice(resp.Routes, func(i, j int) bool {
		a, b := resp.Routes[i], resp.Routes[j]
		return a.Src < b.Src || a.Src == b.Src && (a.Dst < b.Dst || a.Dst == b.Dst && a.Vlan < b.Vlan)
	})
	return resp, nil
}

// message returns a readable description of a route.
func (r *route) message() *api.Route {
	m := &api.Route{
		Src: r.src.String(), Dst: r.dst.String(), Vlan: uint32(r.vlan &^ flow.VLANPresent), Protected: r.hasDetour(),
		Since: time.Unix(0, r.since).UTC().Format(time.RFC3339), Reroutes: r.moved,
	}
	if r.ip.IsValid() {
		m.Dst = r.ip.String()
	}
	for _, h := range r.hops {
		m.Hops = append(m.Hops, &api.Hop{Dpid: h.sw.String(), InPort: uint32(h.in), OutPort: uint32(h.out)})
	}
	return m
}
