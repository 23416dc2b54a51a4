// Package api is the vocabulary between services and towards the outside:
// the .proto contracts, the Go that is generated from them, and the typed
// names of all methods and subjects. It holds no logic.
//
// Anyone may import it; it imports flow, the standard library and the protobuf
// and gRPC runtimes.
package api

import "weft/flow"

// Method names a unary call and the types of its request and its response.
type Method[Req, Resp any] struct{ Name string } // service.Method

// MethodName returns the name.
func (m Method[Req, Resp]) MethodName() string { return m.Name }

// NewMessages returns an empty request and an empty response.
func (m Method[Req, Resp]) NewMessages() (req, resp any) { return new(Req), new(Resp) }

// Subject names a kind of event and the type of its message.
type Subject[E any] struct{ Name string } // service.Event

// SubjectName returns the name.
func (s Subject[E]) SubjectName() string { return s.Name }

// NewMessage returns an empty message.
func (s Subject[E]) NewMessage() any { return new(E) }

// The calls between services.
var (
	ListSwitches   = Method[ListSwitchesRequest, ListSwitchesResponse]{"southbound.ListSwitches"}
	ListPorts      = Method[ListPortsRequest, ListPortsResponse]{"southbound.ListPorts"}
	ReadFlows      = Method[ReadFlowsRequest, ReadFlowsResponse]{"southbound.ReadFlows"}
	ReadGroups     = Method[ReadGroupsRequest, ReadGroupsResponse]{"southbound.ReadGroups"}
	ReadPortStats  = Method[ReadPortStatsRequest, ReadPortStatsResponse]{"southbound.ReadPortStats"}
	ReadTableStats = Method[ReadTableStatsRequest, ReadTableStatsResponse]{"southbound.ReadTableStats"}
	// Apply carries out a decision and answers when every switch that it
	// touches has confirmed it, by barrier, or has failed to.
	Apply = Method[flow.Decision, ApplyResult]{"southbound.Apply"}
	// Send carries out a decision and answers when it is in the send queues;
	// fences are still waited for, behind the answer.
	Send = Method[flow.Decision, ApplyResult]{"southbound.Send"}

	ListLinks     = Method[ListLinksRequest, ListLinksResponse]{"discovery.ListLinks"}
	ListPortRoles = Method[ListPortRolesRequest, ListPortRolesResponse]{"discovery.ListPortRoles"}

	ListHosts = Method[ListHostsRequest, ListHostsResponse]{"hosts.ListHosts"}
	FindHost  = Method[FindHostRequest, Host]{"hosts.FindHost"}

	FindPath = Method[FindPathRequest, FindPathResponse]{"paths.FindPath"}
	GetTree  = Method[GetTreeRequest, Tree]{"paths.GetTree"}

	ListRoutes  = Method[ListRoutesRequest, ListRoutesResponse]{"forwarding.ListRoutes"}
	GetFlooding = Method[GetFloodingRequest, Flooding]{"forwarding.GetFlooding"}

	AddFlows    = Method[AddFlowsRequest, AddFlowsResponse]{"flowrules.AddFlows"}
	DeleteFlows = Method[DeleteFlowsRequest, DeleteFlowsResponse]{"flowrules.DeleteFlows"}
	ListFlows   = Method[ListFlowsRequest, ListFlowsResponse]{"flowrules.ListFlows"}
	ListSync    = Method[ListSyncRequest, ListSyncResponse]{"flowrules.ListSync"}
	SetStanding = Method[SetStandingRequest, SetStandingResponse]{"flowrules.SetStanding"}

	ListPortStats  = Method[ListPortStatsRequest, ListPortStatsResponse]{"stats.ListPortStats"}
	ListTableStats = Method[ListTableStatsRequest, ListTableStatsResponse]{"stats.ListTableStats"}
	ListFlowStats  = Method[ListFlowStatsRequest, ListFlowStatsResponse]{"stats.ListFlowStats"}

	GetInfo = Method[GetInfoRequest, Info]{"gateway.GetInfo"}
)

// The events. Each subject has one publisher: the service of its prefix.
var (
	SwitchChangedEvent   = Subject[SwitchChanged]{"southbound.SwitchChanged"}
	PortChangedEvent     = Subject[PortChanged]{"southbound.PortChanged"}
	FlowRemovedEvent     = Subject[FlowRemoved]{"southbound.FlowRemoved"}
	SwitchErrorEvent     = Subject[SwitchError]{"southbound.SwitchError"}
	LinkChangedEvent     = Subject[LinkChanged]{"discovery.LinkChanged"}
	PortRoleChangedEvent = Subject[PortRoleChanged]{"discovery.PortRoleChanged"}
	HostChangedEvent     = Subject[HostChanged]{"hosts.HostChanged"}
	PathsConvergedEvent  = Subject[PathsConverged]{"paths.PathsConverged"}
	RouteChangedEvent    = Subject[RouteChanged]{"forwarding.RouteChanged"}
	FlowsObservedEvent   = Subject[FlowsObserved]{"flowrules.FlowsObserved"}
	FlowFailedEvent      = Subject[FlowFailed]{"flowrules.FlowFailed"}
)
