package gateway

import (
	"context"

	"google.golang.org/grpc/codes"

	"github.com/weft-sdn/weft/api"
)

// noState is State for a controller whose durable state cannot be inspected.
type noState struct{}

func (noState) hidden() error {
	return api.Errorf(codes.FailedPrecondition, "the durable state of this controller cannot be looked at")
}

func (n noState) GetStore(context.Context, *api.GetStoreRequest) (*api.StoreStatus, error) {
	return nil, n.hidden()
}

func (n noState) ReadStore(context.Context, *api.ReadStoreRequest) (*api.ReadStoreResponse, error) {
	return nil, n.hidden()
}

func (n noState) RepairStore(context.Context, *api.RepairStoreRequest) (*api.RepairStoreResponse, error) {
	return nil, n.hidden()
}
