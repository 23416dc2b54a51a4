package command

import (
	"bytes"
	"context"
	"flag"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow/trace"
	"github.com/weft-sdn/weft/internal/testprogram"
)

var update = flag.Bool("update", false, "write the golden files anew")

// TestMain has times written in one zone everywhere. Told to, it is weft.
func TestMain(m *testing.M) {
	if os.Getenv(asWeft) != "" {
		os.Exit(Main(os.Args[1:], os.Stdout, os.Stderr))
	}
	time.Local = time.UTC
	status := m.Run()
	testprogram.Remove()
	os.Exit(status)
}

// northbound is a controller that knows one small network:
//
//	h1 - 1:s1:2 - 1:s2:2 - 1:s3:2 - h3, and h2 at port 3 of s2
type northbound struct {
	api.UnimplementedGatewayServer
	api.UnimplementedSouthboundServer
	api.UnimplementedDiscoveryServer
	api.UnimplementedHostsServer
	api.UnimplementedPathsServer
	api.UnimplementedForwardingServer
	api.UnimplementedFlowrulesServer
	api.UnimplementedStatsServer
	api.UnimplementedHeartbeatServer

	silent string // a switch that cannot be read

	mu    sync.Mutex // guards asked
	asked asked
}

// asked is what was asked of the controller last.
type asked struct {
	added   *api.AddFlowsRequest
	deleted *api.DeleteFlowsRequest
	path    *api.FindPathRequest
	find    *api.FindHostRequest
	token   string
}

func (n *northbound) last() asked {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.asked
}

const (
	s1, s2, s3 = "0000000000000001", "0000000000000002", "0000000000000003"
	h1, h2, h3 = "02:00:00:00:00:01", "02:00:00:00:00:02", "02:00:00:00:00:03"
	then       = "2025-02-03T04:05:06Z"
)

func at(dpid string, port uint32) *api.Location { return &api.Location{Dpid: dpid, Port: port} }

// serve offers the controller on a port of the loopback and points the
// commands to it.
func (n *northbound) serve(t *testing.T) { t.Helper(); n.serveAs(t, n) }

// offered is what a controller serves.
type offered interface {
	api.GatewayServer
	api.SouthboundServer
	api.DiscoveryServer
	api.HostsServer
	api.PathsServer
	api.ForwardingServer
	api.FlowrulesServer
	api.StatsServer
	api.HeartbeatServer
}

// serveAs is serve for a controller that answers some calls by itself.
func (n *northbound) serveAs(t *testing.T, is offered) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	g := grpc.NewServer(grpc.UnaryInterceptor(func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, h grpc.UnaryHandler) (any, error) {
		md, _ := metadata.FromIncomingContext(ctx)
		n.mu.Lock()
		n.asked.token = append(md.Get("authorization"), "")[0]
		n.mu.Unlock()
		return h(ctx, req)
	}))
	api.RegisterGatewayServer(g, is)
	api.RegisterSouthboundServer(g, is)
	api.RegisterDiscoveryServer(g, is)
	api.RegisterHostsServer(g, is)
	api.RegisterPathsServer(g, is)
	api.RegisterForwardingServer(g, is)
	api.RegisterFlowrulesServer(g, is)
	api.RegisterStatsServer(g, is)
	api.RegisterHeartbeatServer(g, is)
	go g.Serve(l)
	t.Cleanup(g.Stop)
	t.Setenv("WEFT_SERVER", "http://"+l.Addr().String())
}

// weft runs a command line.
//
// weft up and weft worker would have this process leave root.
func weftCommand(args ...string) (status int, stdout, stderr string) {
	if args[0] == "up" || args[0] == "worker" {
		args = append(args, "--user", "root")
	}
	if args[0] == "worker" { // it executes its program anew: that would be all tests, from the first on
		return weftProcess(args...)
	}
	var out, errs bytes.Buffer
	status = execute(args, &out, &errs)
	return status, out.String(), errs.String()
}

// weftProcess is weftCommand in a process of its own.
func weftProcess(args ...string) (status int, stdout, stderr string) {
	var out, errs bytes.Buffer
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env, cmd.Stdout, cmd.Stderr = append(os.Environ(), asWeft+"=1"), &out, &errs
	_ = cmd.Run() // its status says so
	return cmd.ProcessState.ExitCode(), out.String(), errs.String()
}

// golden compares text with a file of testdata.
func golden(t *testing.T, name, text string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v; go test ./cmd/weft/command -run %s -update writes it", err, t.Name())
	}
	if text != string(want) {
		t.Errorf("%s: got\n%s\nwant\n%s", name, text, want)
	}
}

func (n *northbound) GetInfo(context.Context, *api.GetInfoRequest) (*api.Info, error) {
	return &api.Info{Version: "1.2.3", GoVersion: "go1.26", Started: then, Pipeline: []string{"discovery", "hosts"}, Services: []*api.ServiceInfo{
		{Name: "southbound", Doc: "holds the OpenFlow sessions of the switches", Class: "realtime", Scale: "per-partition", State: "ready"},
		{Name: "hosts", Doc: "knows who is attached where", Class: "latency", Scale: "per-partition", State: "ready", Stage: true},
	}}, nil
}

func (n *northbound) ListSwitches(context.Context, *api.ListSwitchesRequest) (*api.ListSwitchesResponse, error) {
	return &api.ListSwitchesResponse{Switches: []*api.Switch{
		{Dpid: s1, Connected: true, Address: "127.0.0.1:4001", Openflow: "1.3", Role: "master", Hardware: "Open vSwitch", Software: "3.1.0",
			Tables: 254, Ports: 3, Since: then, PacketIns: 12, FlowMods: 34, EchoUs: 1234},
		{Dpid: s2, Connected: true, Address: "127.0.0.1:4002", Openflow: "1.0", Ports: 4, Since: then, Errors: 5, Shed: 6, Duplicates: 7},
		{Dpid: s3, Connected: true, Address: "127.0.0.1:4003", Openflow: "1.3", Since: then},
		{Dpid: "0000000000000004", Reason: "it has not answered for 15s", Since: then},
	}}, nil
}

func (n *northbound) ListPorts(_ context.Context, r *api.ListPortsRequest) (*api.ListPortsResponse, error) {
	all := []*api.Port{
		{Dpid: s1, Port: 1, Name: "s1-eth1", Mac: "06:00:00:01:00:01", Up: true, SpeedKbps: 10_000_000},
		{Dpid: s1, Port: 2, Name: "s1-eth2", Mac: "06:00:00:01:00:02", Up: true},
		{Dpid: s1, Port: 0xfffffffe, Name: "s1", Mac: "06:00:00:01:00:ff"},
		{Dpid: s2, Port: 1, Up: true}, {Dpid: s2, Port: 2, Up: true}, {Dpid: s2, Port: 3, Up: true},
		{Dpid: s3, Port: 1, Up: true}, {Dpid: s3, Port: 2, Up: true},
	}
	m := &api.ListPortsResponse{}
	for _, p := range all {
		if r.Dpid == "" || p.Dpid == r.Dpid {
			m.Ports = append(m.Ports, p)
		}
	}
	return m, nil
}

func (n *northbound) ListPortRoles(context.Context, *api.ListPortRolesRequest) (*api.ListPortRolesResponse, error) {
	return &api.ListPortRolesResponse{Ports: []*api.PortRole{{At: at(s1, 1), Role: "edge", Refused: 9}, {At: at(s1, 2), Role: "link"}}}, nil
}

func (n *northbound) ListLinks(context.Context, *api.ListLinksRequest) (*api.ListLinksResponse, error) {
	link := func(a, b *api.Location) *api.Link {
		return &api.Link{Src: a, Dst: b, State: "up", Weight: 10, LatencyUs: 1500, Since: then}
	}
	return &api.ListLinksResponse{Links: []*api.Link{
		link(at(s1, 2), at(s2, 1)), link(at(s2, 1), at(s1, 2)), link(at(s2, 2), at(s3, 1)), link(at(s3, 1), at(s2, 2)),
	}}, nil
}

func hostList() []*api.Host {
	return []*api.Host{
		{Mac: h1, At: at(s1, 1), Ipv4: []string{"10.0.0.1"}, Ipv6: []string{"fe80::1", "fd00::1"}, FirstSeen: then, LastSeen: then},
		{Mac: h2, At: at(s2, 3), Vlan: 7, Moves: 2, FirstSeen: then, LastSeen: then},
		{Mac: h3, At: at(s3, 2), Ipv4: []string{"10.0.0.3"}, Ipv6: []string{"fd00::3"}, FirstSeen: then, LastSeen: then},
	}
}

func (n *northbound) ListHosts(context.Context, *api.ListHostsRequest) (*api.ListHostsResponse, error) {
	return &api.ListHostsResponse{Hosts: hostList(), Refused: map[string]uint64{"spoofed": 4, "port_limit": 2, "on_link": 0}}, nil
}

func (n *northbound) FindHost(_ context.Context, r *api.FindHostRequest) (*api.Host, error) {
	n.mu.Lock()
	n.asked.find = r
	n.mu.Unlock()
	for _, h := range hostList() {
		for _, a := range append(append([]string{h.Mac}, h.Ipv4...), h.Ipv6...) {
			if a == r.Address {
				return h, nil
			}
		}
	}
	return nil, status.Errorf(codes.NotFound, "host %s: not known", r.Address)
}

// entry is a flow entry from in to the port out, towards a host.
func entry(dpid, in, dst, out string, packets uint64) *api.FlowEntry {
	return &api.FlowEntry{Dpid: dpid, Priority: 10000, Match: map[string]string{"in_port": in, "eth_dst": dst}, Actions: []string{"output:" + out},
		Owner: "routes", Packets: packets, Bytes: packets * 98, Duration: 12.345, IdleTimeout: 120}
}

func (n *northbound) ReadFlows(_ context.Context, r *api.ReadFlowsRequest) (*api.ReadFlowsResponse, error) {
	if r.Dpid == n.silent {
		return nil, status.Errorf(codes.DeadlineExceeded, "it has not answered within 5s")
	}
	miss := &api.FlowEntry{Dpid: r.Dpid, Actions: []string{"controller"}, Owner: "forwarding", Packets: 1, Bytes: 98, Duration: 100}
	all := map[string][]*api.FlowEntry{
		s1: {miss, entry(s1, "1", h3, "2", 7)},
		s2: {miss, entry(s2, "1", h3, "2", 7), {Dpid: s2, Table: 1, Priority: 5, Match: map[string]string{"eth_type": "0x0800"}, Meter: 3,
			WriteActions: []string{"group:1"}, GotoTable: 2, Metadata: "0x1/0xff", ClearActions: true, Owner: "operator", HardTimeout: 60}},
		s3: {miss, entry(s3, "1", h3, "2", 7)},
	}
	m := &api.ReadFlowsResponse{}
	for _, f := range all[r.Dpid] {
		if r.Owner == "" || f.Owner == r.Owner {
			m.Flows = append(m.Flows, f)
		}
	}
	return m, nil
}

func (n *northbound) TracePacket(ctx context.Context, r *api.TracePacketRequest) (*api.PacketTrace, error) {
	return trace.Packet(ctx, n, r)
}

func (n *northbound) ListFlows(_ context.Context, r *api.ListFlowsRequest) (*api.ListFlowsResponse, error) {
	all := []*api.WantedFlow{
		{Flow: &api.FlowEntry{Dpid: s1, Actions: []string{"controller"}, Owner: "forwarding"}, State: "confirmed"},
		{Flow: &api.FlowEntry{Dpid: s1, Priority: 1, Actions: []string{"group:9"}, Owner: "operator"}, State: "failed", Reason: "the group does not exist"},
	}
	if r.Dpid != "" && r.Dpid != s1 {
		all = nil
	}
	return &api.ListFlowsResponse{Flows: all}, nil
}

func (n *northbound) ReadGroups(_ context.Context, r *api.ReadGroupsRequest) (*api.ReadGroupsResponse, error) {
	if r.Dpid != s1 {
		return &api.ReadGroupsResponse{}, nil
	}
	return &api.ReadGroupsResponse{Groups: []*api.Group{
		{Dpid: s1, Id: 1, Type: "fast_failover", Buckets: []*api.Bucket{
			{WatchPort: 2, Actions: []string{"output:2"}, Packets: 3, Bytes: 294}, {WatchPort: 3, Actions: []string{"output:3"}}}},
		{Dpid: s1, Id: 2, Type: "all"},
	}}, nil
}

func (n *northbound) FindPath(_ context.Context, r *api.FindPathRequest) (*api.FindPathResponse, error) {
	n.mu.Lock()
	n.asked.path = r
	n.mu.Unlock()
	if r.Src == s1 && r.Dst == s3 {
		return &api.FindPathResponse{Paths: []*api.Path{{Cost: 20, Hops: []*api.Hop{
			{Dpid: s1, OutPort: 2}, {Dpid: s2, InPort: 1, OutPort: 2}, {Dpid: s3, InPort: 1}}}}}, nil
	}
	return &api.FindPathResponse{}, nil
}

func (n *northbound) ListRoutes(context.Context, *api.ListRoutesRequest) (*api.ListRoutesResponse, error) {
	return &api.ListRoutesResponse{Routes: []*api.Route{{Src: h1, Dst: h3, Protected: true, Reroutes: 1, Since: then, Hops: []*api.Hop{
		{Dpid: s1, InPort: 1, OutPort: 2}, {Dpid: s2, InPort: 1, OutPort: 2}, {Dpid: s3, InPort: 1, OutPort: 2}}}}}, nil
}

func (n *northbound) ListSync(context.Context, *api.ListSyncRequest) (*api.ListSyncResponse, error) {
	return &api.ListSyncResponse{Switches: []*api.Sync{
		{Dpid: s1, State: "failing", Wanted: 2, Confirmed: 1, Failed: 1, Foreign: 3, Kept: 1, Added: 1, Removed: 2, Since: then}}}, nil
}

func (n *northbound) AddFlows(_ context.Context, r *api.AddFlowsRequest) (*api.AddFlowsResponse, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.asked.added = r
	m := &api.AddFlowsResponse{}
	for _, f := range r.Flows {
		w := &api.WantedFlow{Flow: f, State: "confirmed"}
		if f.Priority == 666 {
			w.State, w.Reason = "failed", "the table is full"
		}
		m.Flows = append(m.Flows, w)
	}
	return m, nil
}

func (n *northbound) DeleteFlows(_ context.Context, r *api.DeleteFlowsRequest) (*api.DeleteFlowsResponse, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.asked.deleted = r
	if r.AllOf != "" {
		return &api.DeleteFlowsResponse{Deleted: 3}, nil
	}
	m := &api.DeleteFlowsResponse{}
	for _, f := range r.Flows {
		if f.Priority != 666 {
			m.Deleted++
		}
	}
	return m, nil
}

func (n *northbound) ListPortStats(context.Context, *api.ListPortStatsRequest) (*api.ListPortStatsResponse, error) {
	return &api.ListPortStatsResponse{Ports: []*api.PortStats{{Dpid: s1, Port: 1, RxPackets: 10, TxPackets: 20, RxBytes: 1000, TxBytes: 2000, RxDropped: 1,
		TxDropped: 2, RxErrors: 3, TxErrors: 4, RxBitsPerS: 1.5e9, TxBitsPerS: 2500, RxPacketsPerS: 12, TxPacketsPerS: 0, Interval: 5}}}, nil
}

func (n *northbound) ListTableStats(context.Context, *api.ListTableStatsRequest) (*api.ListTableStatsResponse, error) {
	return &api.ListTableStatsResponse{Tables: []*api.TableStats{{Dpid: s1, Active: 12, Lookups: 300, Matched: 299, MaxEntries: 1000000}, {Dpid: s1, Table: 1}}}, nil
}

func (n *northbound) ListFlowStats(context.Context, *api.ListFlowStatsRequest) (*api.ListFlowStatsResponse, error) {
	return &api.ListFlowStatsResponse{Flows: []*api.FlowStats{{Dpid: s1, Owner: "routes", Entries: 4, Packets: 100, Bytes: 9800, PacketsPerS: 10, BitsPerS: 7840000}}}, nil
}
