package forwarding

import (
	"context"
	"sort"

	"github.com/weft-sdn/weft/api"
)

// listRoutes answers the call: any instance knows all routes.
func (g *routing) listRoutes(context.Context, *api.ListRoutesRequest) (*api.ListRoutesResponse, error) {
	resp := &api.ListRoutesResponse{}
	g.routes.each(func(r *route) { resp.Routes = append(resp.Routes, r.message()) })
	sort.Slice(resp.Routes, func(i, j int) bool {
		a, b := resp.Routes[i], resp.Routes[j]
		return a.Src < b.Src || a.Src == b.Src && (a.Dst < b.Dst || a.Dst == b.Dst && a.Vlan < b.Vlan)
	})
	return resp, nil
}
