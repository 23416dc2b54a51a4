package main

import (
	"context"
	"errors"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"

	"weft/api"
)

// storeAnswer is a gateway that answers with err when it is asked for what is
// in the store.
type storeAnswer struct {
	api.GatewayClient
	err error
}

func (s storeAnswer) ListConfigs(context.Context, *api.ListConfigsRequest, ...grpc.CallOption) (*api.ListConfigsResponse, error) {
	return nil, s.err
}

// TestHealthOfStore checks that a store that is away is a failure, and that who
// may not ask for it does not hear of it.
func TestHealthOfStore(t *testing.T) {
	for _, c := range []struct {
		answer error
		state  string
		err    error
	}{
		{nil, healthOK, nil},
		{&remoteError{codes.DeadlineExceeded, "get state"}, healthFailing, nil},
		{&remoteError{codes.PermissionDenied, "needs the role admin"}, "", errNotAsked},
		{&remoteError{codes.FailedPrecondition, "the configuration cannot be changed"}, "", errNotAsked},
	} {
		h, err := healthOfStore(&controller{GatewayClient: storeAnswer{err: c.answer}, ctx: t.Context()})
		if h.State != c.state || !errors.Is(err, c.err) {
			t.Errorf("%v: %+v, %v", c.answer, h, err)
		}
	}
}
