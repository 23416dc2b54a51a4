package southbound

import (
	"context"

	"weft/api"
)

// listLimits answers api.ListLimits.
func (h *hub) listLimits(_ context.Context, req *api.ListLimitsRequest) (*api.ListLimitsResponse, error) {
	resp := &api.ListLimitsResponse{Shed: map[string]uint64{}}
	return resp, nil
}
