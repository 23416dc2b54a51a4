package command

import (
	"context"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/cmd/weft/cli"
	"github.com/weft-sdn/weft/cmd/weft/get"
	"github.com/weft-sdn/weft/flow"
)

// storeAnswer is a gateway that answers when it is asked how the store is.
type storeAnswer struct {
	api.GatewayClient
	status *api.StoreStatus
	err    error
	state  *api.StoreState
}

func (s storeAnswer) GetStore(context.Context, *api.GetStoreRequest, ...grpc.CallOption) (*api.StoreStatus, error) {
	return s.status, s.err
}

func (s storeAnswer) ListWorkers(context.Context, *api.ListWorkersRequest, ...grpc.CallOption) (*api.ListWorkersResponse, error) {
	return &api.ListWorkersResponse{Store: s.state}, nil
}

// TestHealthOfStore checks that a store that is away, damaged or full is a
// failure.
func TestHealthOfStore(t *testing.T) {
	for _, c := range []struct {
		status *api.StoreStatus
		err    error
		state  string
		detail string
	}{
		{&api.StoreStatus{Buckets: []*api.BucketStatus{{Name: "flowrules.flows"}}}, nil, get.HealthOK, "it answers"},
		{nil, &cli.RemoteError{Kind: codes.DeadlineExceeded, Text: "get state"}, get.HealthFailing, "does not answer"},
		{&api.StoreStatus{Buckets: []*api.BucketStatus{{Name: "flowrules.flows", Damage: "2 of 3 keys are missing"}}}, nil, get.HealthFailing, "flowrules.flows: 2 of 3 keys are missing"},
		{&api.StoreStatus{Trouble: "no space left on device"}, nil, get.HealthFailing, "no space left on device"},
	} {
		h, err := get.HealthOfStore(&cli.Controller{Clients: api.Clients{GatewayClient: storeAnswer{status: c.status, err: c.err}}, Ctx: t.Context()})
		if h.State != c.state || !strings.Contains(h.Detail, c.detail) || err != nil {
			t.Errorf("%v, %v: %+v, %v", c.status, c.err, h, err)
		}
	}
}

// TestHealthOfHosts checks that hosts whose place is claimed are named, as after another
// lab was brought up on the data directory of one before.
func TestHealthOfHosts(t *testing.T) {
	one := &api.Host{Mac: h1, Ipv4: []string{"10.0.0.1"}, At: at(s1, 1)}
	two := &api.Host{Mac: h2, At: at(s2, 3)}
	look := func() get.HealthResult {
		h, err := get.HealthOfHosts(&cli.Controller{Clients: api.Clients{HostsClient: hostsAnswer{resp: &api.ListHostsResponse{Hosts: []*api.Host{one, two}}}}, Ctx: t.Context()})
		if err != nil {
			t.Error(err)
		}
		return h
	}
	if h := look(); h.State != get.HealthOK || h.Detail != "2 known" {
		t.Errorf("%+v", h)
	}
	one.ClaimedAt, two.ClaimedAt = at(s3, 1), at(s1, 2)
	h := look()
	for _, want := range []string{"2 of 2 are claimed elsewhere", "10.0.0.1 at " + s1 + "/1, claimed at " + s3 + "/1", h2 + " at " + s2 + "/3"} {
		if h.State != get.HealthWarning || !strings.Contains(h.Detail, want) || !strings.Contains(h.Remedy, "hosts.hold") {
			t.Errorf("%+v lacks %s", h, want)
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
		{&api.StoreState{Servers: 1, Quorum: true, Replicas: 1, Wanted: 1}, get.HealthOK, "1 server up, quorum, 1 replica"},
		{&api.StoreState{Servers: 3, Quorum: true, Replicas: 3, Wanted: 3}, get.HealthOK, "3 servers up, quorum, 3 replicas"},
		{&api.StoreState{Servers: 2, Quorum: true, Replicas: 3, Wanted: 3}, get.HealthWarning, "2 servers up, quorum, 3 replicas"},
		{&api.StoreState{Servers: 3, Quorum: true, Replicas: 1, Wanted: 3}, get.HealthWarning, "3 servers up, quorum, 1 replica of 3"},
		{&api.StoreState{Replicas: 3, Wanted: 3}, get.HealthFailing, "0 servers up, no quorum, 3 replicas: part of the state cannot be changed now"},
	} {
		h, err := get.HealthOfStore(&cli.Controller{Clients: api.Clients{GatewayClient: storeAnswer{state: c.state}}, Ctx: t.Context()})
		if h.State != c.health || h.Detail != c.detail || err != nil {
			t.Errorf("%v: %+v, %v", c.state, h, err)
		}
	}
}

// portsAnswer is a discovery that lists ports.
type portsAnswer struct {
	api.DiscoveryClient
	ports []*api.PortRole
}

func (p portsAnswer) ListPortRoles(context.Context, *api.ListPortRolesRequest, ...grpc.CallOption) (*api.ListPortRolesResponse, error) {
	return &api.ListPortRolesResponse{Ports: p.ports}, nil
}

// TestHealthOfPorts checks that it is said why ports take no traffic, and that
// ports which are down or have just come up are no concern.
func TestHealthOfPorts(t *testing.T) {
	settled := []*api.PortRole{
		{At: at(s1, 1), Role: "edge"}, {At: at(s1, 2), Role: "link"},
		{At: at(s1, 3), Role: "unsettled", Cause: "down", Reason: "r", Remedy: "m"},
		{At: at(s1, 4), Role: "unsettled", Cause: "settling", Reason: "r", Remedy: "m"},
	}
	c := &cli.Controller{Clients: api.Clients{DiscoveryClient: portsAnswer{ports: settled}}, Ctx: t.Context()}
	if h, err := get.HealthOfPorts(c); h.State != get.HealthOK || err != nil {
		t.Errorf("%+v, %v", h, err)
	}
	c.DiscoveryClient = portsAnswer{ports: append(settled,
		&api.PortRole{At: at(s2, 1), Role: "unsettled", Cause: "neighbour", Reason: "its switch is away", Remedy: "forget it"},
		&api.PortRole{At: at(s2, 2), Role: "blocked", Cause: "blocked", Reason: "a loop", Remedy: "remove it"})}
	h, err := get.HealthOfPorts(c)
	if h.State != get.HealthWarning || err != nil {
		t.Errorf("%+v, %v", h, err)
	}
	for _, want := range []string{"2 take no traffic", "its switch is away", "a loop"} {
		if !strings.Contains(h.Detail, want) {
			t.Errorf("detail %q, want %q in it", h.Detail, want)
		}
	}
	if !strings.Contains(h.Remedy, "forget it") || !strings.Contains(h.Remedy, "remove it") {
		t.Errorf("remedy %q", h.Remedy)
	}
	p, err := get.PortState(c, (at(s2, 1)).Flow())
	if err != nil || p.Traffic || p.Reason != "its switch is away" || p.Remedy != "forget it" {
		t.Errorf("%+v, %v", p, err)
	}
}

// entriesAnswer stands in for flowrules, and says that a switch lacks one entry.
type entriesAnswer struct{ api.FlowrulesClient }

func (entriesAnswer) ListSync(context.Context, *api.ListSyncRequest, ...grpc.CallOption) (*api.ListSyncResponse, error) {
	return &api.ListSyncResponse{Switches: []*api.Sync{{Dpid: s1, State: "failing", Wanted: 9, Failed: 1}}}, nil
}

func (entriesAnswer) ListFlows(context.Context, *api.ListFlowsRequest, ...grpc.CallOption) (*api.ListFlowsResponse, error) {
	return &api.ListFlowsResponse{Flows: []*api.WantedFlow{{State: "failed", Reason: "the switch confirms it and does not have it",
		Flow: &api.FlowEntry{Dpid: s1, Table: 10, Priority: 100, Owner: "firewall", Match: map[string]string{"tcp_dst": "80"}}}}}, nil
}

// TestExplainSwitch checks that an entry that a switch does not keep is named with the reason.
func TestExplainSwitch(t *testing.T) {
	c := &cli.Controller{Clients: api.Clients{FlowrulesClient: entriesAnswer{}}, Ctx: t.Context()}
	sw, _ := flow.ParseDPID(s1)
	s, err := get.ExplainSwitch(c, sw)
	if err != nil || s.State != "failing" || len(s.Missing) != 1 || !strings.Contains(s.Missing[0], "firewall's entry tcp_dst=80") || !strings.Contains(s.Missing[0], "does not have it") {
		t.Errorf("%+v, %v", s, err)
	}
	if _, err := get.ExplainSwitch(c, sw+1); err == nil {
		t.Error("a switch that there is not is explained")
	}
}

// hostsAnswer, floodingAnswer and limitsAnswer are services that name the limits
// that were reached.
type hostsAnswer struct {
	api.HostsClient
	resp *api.ListHostsResponse
}

func (h hostsAnswer) ListHosts(context.Context, *api.ListHostsRequest, ...grpc.CallOption) (*api.ListHostsResponse, error) {
	return h.resp, nil
}

type floodingAnswer struct {
	api.ForwardingClient
	limits []*api.LimitReached
}

func (f floodingAnswer) GetFlooding(context.Context, *api.GetFloodingRequest, ...grpc.CallOption) (*api.Flooding, error) {
	return &api.Flooding{Limits: f.limits}, nil
}

type limitsAnswer struct {
	api.SouthboundClient
	ports []*api.PortLimit
}

func (l limitsAnswer) ListLimits(context.Context, *api.ListLimitsRequest, ...grpc.CallOption) (*api.ListLimitsResponse, error) {
	return &api.ListLimitsResponse{Limits: l.ports}, nil
}

// workAnswer is a gateway whose processes name the limits that their services have reached.
type workAnswer struct {
	api.GatewayClient
	limits []*api.LimitReached
}

func (w workAnswer) GetWork(context.Context, *api.GetWorkRequest, ...grpc.CallOption) (*api.GetWorkResponse, error) {
	return &api.GetWorkResponse{Processes: []*api.ProcessWork{{Process: "a", Limits: w.limits}}}, nil
}

// TestHealthOfLimits checks that a limit that was reached is a warning with whom it
// met, what it is, and its key.
func TestHealthOfLimits(t *testing.T) {
	var work []*api.LimitReached
	look := func(h, f []*api.LimitReached, p []*api.PortLimit) get.HealthResult {
		r, err := get.HealthOfLimits(&cli.Controller{Clients: api.Clients{
			HostsClient: hostsAnswer{resp: &api.ListHostsResponse{Limits: h}}, ForwardingClient: floodingAnswer{limits: f}, SouthboundClient: limitsAnswer{ports: p},
			GatewayClient: workAnswer{limits: work},
		}, Ctx: t.Context()})
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	if r := look(nil, nil, nil); r.State != get.HealthOK {
		t.Errorf("%+v", r)
	}
	work = []*api.LimitReached{{Key: "balancer.connections", Limit: 7, Who: "VIP web", Times: 2}}
	r := look([]*api.LimitReached{{Key: "hosts.address_limit", Limit: 128, Who: "host " + h2 + " at 1/1", Times: 664}},
		[]*api.LimitReached{{Key: "forwarding.max_routes", Limit: 10, Times: 3}}, []*api.PortLimit{{Dpid: s1, Port: 2, Class: "unicast", Offered: 5000, Limit: 1000}})
	for _, want := range []string{"hosts.address_limit (128) by host " + h2 + " at 1/1, 664 times", "forwarding.max_routes (10) by all together, 3 times", "balancer.connections (7) by VIP web, 2 times", "5000 unicast packets"} {
		if !strings.Contains(r.Detail, want) {
			t.Errorf("%q does not say %q", r.Detail, want)
		}
	}
	work = []*api.LimitReached{{Key: "the room for bindings", Limit: 16384, Who: "port 1/1", Times: 2}}
	if r := look(nil, nil, nil); r.State != get.HealthWarning || !strings.Contains(r.Detail, "the room for bindings (16384) by port 1/1, 2 times") || strings.Contains(r.Remedy, "raise") {
		t.Errorf("what no key sets: %+v", r)
	}
	if r.State != get.HealthWarning || !strings.Contains(r.Remedy, "hosts.address_limit") || !strings.Contains(r.Remedy, "forwarding.max_routes") {
		t.Errorf("%+v", r)
	}
}
