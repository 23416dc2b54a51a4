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
	err   error
	state *api.StoreState
}

func (s storeAnswer) ListConfigs(context.Context, *api.ListConfigsRequest, ...grpc.CallOption) (*api.ListConfigsResponse, error) {
	return nil, s.err
}

func (s storeAnswer) ListWorkers(context.Context, *api.ListWorkersRequest, ...grpc.CallOption) (*api.ListWorkersResponse, error) {
	return &api.ListWorkersResponse{Store: s.state}, nil
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

// TestHealthOfServers checks what is said of the servers of the store.
func TestHealthOfServers(t *testing.T) {
	for _, c := range []struct {
		state  *api.StoreState
		health string
		detail string
	}{
		{&api.StoreState{Servers: 1, Quorum: true, Replicas: 1, Wanted: 1}, healthOK, "1 server up, quorum, 1 replica"},
		{&api.StoreState{Servers: 3, Quorum: true, Replicas: 3, Wanted: 3}, healthOK, "3 servers up, quorum, 3 replicas"},
		{&api.StoreState{Servers: 2, Quorum: true, Replicas: 3, Wanted: 3}, healthWarning, "2 servers up, quorum, 3 replicas"},
		{&api.StoreState{Servers: 3, Quorum: true, Replicas: 1, Wanted: 3}, healthWarning, "3 servers up, quorum, 1 replica of 3"},
		{&api.StoreState{Replicas: 3, Wanted: 3}, healthFailing, "0 servers up, no quorum, 3 replicas: part of the state cannot be changed now"},
	} {
		h, err := healthOfStore(&controller{GatewayClient: storeAnswer{state: c.state}, ctx: t.Context()})
		if h.State != c.health || h.Detail != c.detail || err != nil {
			t.Errorf("%v: %+v, %v", c.state, h, err)
		}
	}
}
