package gateway

import (
	"context"

	"google.golang.org/protobuf/proto"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow/trace"
	"github.com/weft-sdn/weft/internal/northbound"
)

// asks is the network as a trace asks for it: calls to other services, whose
// answers count as what the client's request holds.
type asks struct {
	findHost      func(context.Context, *api.FindHostRequest) (*api.Host, error)
	listHosts     func(context.Context, *api.ListHostsRequest) (*api.ListHostsResponse, error)
	listPorts     func(context.Context, *api.ListPortsRequest) (*api.ListPortsResponse, error)
	listLinks     func(context.Context, *api.ListLinksRequest) (*api.ListLinksResponse, error)
	listPortRoles func(context.Context, *api.ListPortRolesRequest) (*api.ListPortRolesResponse, error)
	readFlows     func(context.Context, *api.ReadFlowsRequest) (*api.ReadFlowsResponse, error)
	readGroups    func(context.Context, *api.ReadGroupsRequest) (*api.ReadGroupsResponse, error)
}

// trace answers api.TracePacket.
func (a *asks) trace(ctx context.Context, r *api.TracePacketRequest) (*api.PacketTrace, error) {
	return trace.Packet(ctx, a, r)
}

// held calls a service, and counts its answer.
func held[Req, Resp any](ctx context.Context, call func(context.Context, *Req) (*Resp, error), req *Req) (*Resp, error) {
	resp, err := call(ctx, req)
	if err != nil {
		return nil, err
	}
	if err := room(northbound.Hold(ctx, sizeOf(any(resp).(proto.Message)))); err != nil {
		return nil, err
	}
	return resp, nil
}

func (a *asks) FindHost(ctx context.Context, r *api.FindHostRequest) (*api.Host, error) {
	return held(ctx, a.findHost, r)
}

func (a *asks) ListHosts(ctx context.Context, r *api.ListHostsRequest) (*api.ListHostsResponse, error) {
	return held(ctx, a.listHosts, r)
}

func (a *asks) ListPorts(ctx context.Context, r *api.ListPortsRequest) (*api.ListPortsResponse, error) {
	return held(ctx, a.listPorts, r)
}

func (a *asks) ListLinks(ctx context.Context, r *api.ListLinksRequest) (*api.ListLinksResponse, error) {
	return held(ctx, a.listLinks, r)
}

func (a *asks) ListPortRoles(ctx context.Context, r *api.ListPortRolesRequest) (*api.ListPortRolesResponse, error) {
	return held(ctx, a.listPortRoles, r)
}

func (a *asks) ReadFlows(ctx context.Context, r *api.ReadFlowsRequest) (*api.ReadFlowsResponse, error) {
	return held(ctx, a.readFlows, r)
}

func (a *asks) ReadGroups(ctx context.Context, r *api.ReadGroupsRequest) (*api.ReadGroupsResponse, error) {
	return held(ctx, a.readGroups, r)
}
