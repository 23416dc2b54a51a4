package gateway

import (
	"context"

	"google.golang.org/grpc/codes"

	"github.com/weft-sdn/weft/api"
)

// noConfigs is Configs for a controller with a fixed configuration.
type noConfigs struct{}

func (noConfigs) fixed() error {
	return api.Errorf(codes.FailedPrecondition, "the configuration of this controller cannot be changed while it runs; it is part of what it was started with")
}

func (n noConfigs) GetConfig(context.Context, *api.GetConfigRequest) (*api.Configuration, error) {
	return nil, n.fixed()
}

func (n noConfigs) ApplyConfig(context.Context, *api.ApplyConfigRequest) (*api.ApplyConfigResponse, error) {
	return nil, n.fixed()
}

func (n noConfigs) ListConfigs(context.Context, *api.ListConfigsRequest) (*api.ListConfigsResponse, error) {
	return nil, n.fixed()
}

func (n noConfigs) RollbackConfig(context.Context, *api.RollbackConfigRequest) (*api.ApplyConfigResponse, error) {
	return nil, n.fixed()
}
