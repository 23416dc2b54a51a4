package balancer

import (
	"context"

	"google.golang.org/grpc/codes"

	"github.com/weft-sdn/weft/api"
)

// ListPairs answers the call.
func (b *balancer) ListPairs(_ context.Context, req *api.ListPairsRequest) (*api.ListPairsResponse, error) {
	if req.GetLimit() > listedMax {
		return nil, api.Errorf(codes.InvalidArgument, "limit %d: want at most %d", req.GetLimit(), listedMax)
	}
	return &api.ListPairsResponse{}, nil
}
