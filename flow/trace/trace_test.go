package trace

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/packet"
)

const (
	dpid1, dpid2, dpid3 = "0000000000000001", "0000000000000002", "0000000000000003"
	mac1, mac2, mac3    = "02:00:00:00:00:01", "02:00:00:00:00:02", "02:00:00:00:00:03"
)

func location(dpid string, port uint32) *api.Location { return &api.Location{Dpid: dpid, Port: port} }

// traceWorld is a network for traces: three switches in a row, hosts a at port
// 1 of s1 and b at port 9 of s3, and a third at port 9 of s2; links are s1:2 to
// s2:1 and s2:2 to s3:1, and s1:3 back to s2:3.
type traceWorld struct {
	net    *network
	a, b   *api.Host
	flows  map[string][]*api.FlowEntry
	groups map[string][]*api.Group
}

func newTraceWorld() *traceWorld {
	w := &traceWorld{
		a:     &api.Host{Mac: mac1, At: location(dpid1, 1), Ipv4: []string{"10.0.0.1"}, Ipv6: []string{"fd00::1"}},
		b:     &api.Host{Mac: mac3, At: location(dpid3, 9), Ipv4: []string{"10.0.0.3"}, Ipv6: []string{"fd00::3"}},
		flows: map[string][]*api.FlowEntry{}, groups: map[string][]*api.Group{},
	}
	other := &api.Host{Mac: mac2, At: location(dpid2, 9)}
	w.net = &network{
		ctx:    context.Background(),
		flows:  func(sw flow.DPID) ([]*api.FlowEntry, error) { return w.flows[sw.String()], nil },
		groups: func(sw flow.DPID) ([]*api.Group, error) { return w.groups[sw.String()], nil },
		links:  map[flow.Location]flow.Location{}, up: map[flow.Location]bool{}, hosts: map[flow.Location][]*api.Host{},
	}
	for _, h := range []*api.Host{w.a, w.b, other} {
		w.net.hosts[h.At.Flow()] = []*api.Host{h}
	}
	for _, dpid := range []string{dpid1, dpid2, dpid3} {
		for p := range uint32(9) {
			w.net.up[location(dpid, p+1).Flow()] = true
		}
	}
	for _, l := range [][2]*api.Location{{location(dpid1, 2), location(dpid2, 1)}, {location(dpid2, 2), location(dpid3, 1)}, {location(dpid1, 3), location(dpid2, 3)}} {
		w.net.links[l[0].Flow()], w.net.links[l[1].Flow()] = l[1].Flow(), l[0].Flow()
	}
	return w
}

// add adds an entry: "table priority match actions" with actions separated by
// semicolons; "write:" puts one into the action set, "goto:" names a table.
func (w *traceWorld) add(dpid, line string) {
	var f api.FlowEntry
	var match, actions string
	fmt.Sscan(line, &f.Table, &f.Priority, &match, &actions)
	m, err := flow.ParseMatchString(strings.ReplaceAll(match, "any", ""))
	if err != nil {
		panic(err)
	}
	f.Dpid, f.Match = dpid, m.Text()
	for _, a := range strings.Split(actions, ";") {
		name, rest, _ := strings.Cut(a, "=")
		switch name {
		case "drop":
		case "write":
			f.WriteActions = append(f.WriteActions, rest)
		case "goto":
			fmt.Sscan(rest, &f.GotoTable)
		case "metadata":
			f.Metadata = rest
		case "clear":
			f.ClearActions = true
		default:
			f.Actions = append(f.Actions, a)
		}
	}
	w.flows[dpid] = append(w.flows[dpid], &f)
}

func (w *traceWorld) trace(t *testing.T, p *api.TracePacketRequest) *api.PacketTrace {
	t.Helper()
	frame, _, err := build(cmp.Or(p, &api.TracePacketRequest{}), end{mac1, w.a}, end{mac3, w.b})
	if err != nil {
		t.Fatal(err)
	}
	r, err := w.net.trace(frame, w.a, w.b)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestTrace(t *testing.T) {
	forward := func(w *traceWorld) {
		w.add(dpid1, "0 10 eth_dst="+mac3+" output:2")
		w.add(dpid2, "0 10 eth_dst="+mac3+" output:2")
		w.add(dpid3, "0 10 eth_dst="+mac3+" output:9")
	}
	for _, c := range []struct {
		name    string
		setUp   func(*traceWorld)
		packet  *api.TracePacketRequest
		arrives bool
		verdict string
		steps   int
		note    string
	}{
		{name: "arrives", setUp: forward, arrives: true, verdict: "arrives at host " + mac3, steps: 3},
		{name: "highest priority", setUp: func(w *traceWorld) {
			forward(w)
			w.add(dpid2, "0 11 eth_type=0x0800,ip_proto=17,udp_dst=53 drop")
		}, packet: &api.TracePacketRequest{UdpDst: 53}, verdict: "dropped by " + dpid2 + ": its entry of priority ", steps: 2},
		{name: "other port is not touched by it", setUp: func(w *traceWorld) {
			forward(w)
			w.add(dpid2, "0 11 eth_type=0x0800,ip_proto=17,udp_dst=53 drop")
		}, packet: &api.TracePacketRequest{UdpDst: 54}, arrives: true, steps: 3},
		{name: "no entry", setUp: func(*traceWorld) {}, verdict: "dropped by " + dpid1 + ": no entry of table 0 matches", steps: 1},
		{name: "table miss", setUp: func(w *traceWorld) { w.add(dpid1, "0 0 any controller") },
			verdict: "sent to the controller by the table miss of " + dpid1, steps: 1},
		{name: "table miss to an intake", setUp: func(w *traceWorld) { w.add(dpid1, "0 0 any controller(reason=no_match,id=1)") },
			verdict: "sent to the controller(reason=no_match,id=1) by the table miss of " + dpid1, steps: 1},
		{name: "trap", setUp: func(w *traceWorld) { w.add(dpid1, "0 5 eth_type=0x0806 controller") }, packet: &api.TracePacketRequest{Arp: true},
			verdict: "sent to the controller by " + dpid1, steps: 1},
		{name: "multiple tables, metadata, action set", setUp: func(w *traceWorld) {
			forward(w)
			w.flows[dpid1] = nil
			w.add(dpid1, "0 1 in_port=1 write=output:4;write=output:2;metadata=0x5/0xff;goto=3")
			w.add(dpid1, "3 1 metadata=0x5/0xf drop")
		}, arrives: true, steps: 4},
		{name: "clear actions", setUp: func(w *traceWorld) {
			w.add(dpid1, "0 1 in_port=1 write=output:2;goto=3")
			w.add(dpid1, "3 1 any clear")
		}, verdict: "has no action that sends it on", steps: 2},
		{name: "miss in a later table", setUp: func(w *traceWorld) { w.add(dpid1, "0 1 in_port=1 write=output:2;goto=3") },
			verdict: "no entry of table 3 matches", steps: 2},
		{name: "rewriting, and match of what was rewritten", setUp: func(w *traceWorld) {
			w.add(dpid1, "0 1 in_port=1 push_vlan:0x8100;set_field:7->vlan_vid;output:2")
			w.add(dpid2, "0 1 vlan_vid=7 pop_vlan;set_field:10.0.0.77->ipv4_dst;output:2")
			w.add(dpid3, "0 1 vlan_vid=none,eth_type=0x0800,ipv4_dst=10.0.0.77 output:9")
		}, arrives: true, steps: 3},
		{name: "rewritten for another", setUp: func(w *traceWorld) {
			forward(w)
			w.flows[dpid3] = nil
			w.add(dpid3, "0 1 any set_field:"+mac2+"->eth_dst;output:9")
		}, verdict: "is addressed to " + mac2, steps: 3},
		{name: "does not apply", setUp: func(w *traceWorld) {
			forward(w)
			w.add(dpid1, "0 50 any pop_vlan;output:2")
		}, arrives: true, steps: 3, note: "pop_vlan does not apply"},
		{name: "another host", setUp: func(w *traceWorld) {
			w.add(dpid1, "0 1 any output:2")
			w.add(dpid2, "0 1 any output:9")
		}, verdict: "it goes to host " + mac2 + " at port " + dpid2 + "/9 instead", steps: 2},
		{name: "nowhere", setUp: func(w *traceWorld) { w.add(dpid1, "0 1 any output:7") }, verdict: "behind which neither a switch nor a host is known", steps: 1},
		{name: "no such port", setUp: func(w *traceWorld) { w.add(dpid1, "0 1 any output:77") }, verdict: "has no port 77", steps: 1},
		{name: "port down", setUp: func(w *traceWorld) {
			forward(w)
			w.net.up[location(dpid2, 2).Flow()] = false
		}, verdict: "port " + dpid2 + "/2 is down", steps: 2},
		{name: "back where it came from", setUp: func(w *traceWorld) { w.add(dpid1, "0 1 any output:1") }, verdict: "would leave by port 1, where it came in",
			steps: 1, note: "OpenFlow asks for in_port"},
		{name: "in_port", setUp: func(w *traceWorld) { w.add(dpid1, "0 1 any in_port") }, verdict: "it goes to host " + mac1, steps: 1},
		{name: "loop", setUp: func(w *traceWorld) {
			w.add(dpid1, "0 1 in_port=1 output:2")
			w.add(dpid1, "0 1 in_port=3 output:2")
			w.add(dpid2, "0 1 any output:3")
		}, verdict: "a loop: the packet comes back to " + dpid2 + "/1, where it was 2 switches before", steps: 3},
		{name: "flooding, with one good copy", setUp: func(w *traceWorld) {
			forward(w)
			w.add(dpid1, "0 50 any flood")
		}, arrives: true, steps: 5},
		{name: "normal", setUp: func(w *traceWorld) { w.add(dpid1, "0 1 any normal") }, verdict: `handed to "normal"`, steps: 1},
		{name: "group all", setUp: func(w *traceWorld) {
			forward(w)
			w.add(dpid1, "0 50 any group:1")
			w.groups[dpid1] = []*api.Group{{Id: 1, Type: "all", Buckets: []*api.Bucket{{Actions: []string{"set_field:" + mac2 + "->eth_dst", "output:7"}}, {Actions: []string{"output:2"}}}}}
		}, arrives: true, steps: 3},
		{name: "group fast failover", setUp: func(w *traceWorld) {
			forward(w)
			w.add(dpid1, "0 50 any group:1")
			w.groups[dpid1] = []*api.Group{{Id: 1, Type: "fast_failover", Buckets: []*api.Bucket{{WatchPort: 2, Actions: []string{"output:2"}}, {WatchPort: 3, Actions: []string{"output:3"}}}}}
			w.net.up[location(dpid1, 2).Flow()] = false
		}, arrives: true, steps: 3, note: "group 1: bucket 1, whose port 3 is up"},
		{name: "group fast failover, all down", setUp: func(w *traceWorld) {
			w.add(dpid1, "0 50 any group:1")
			w.groups[dpid1] = []*api.Group{{Id: 1, Type: "fast_failover", Buckets: []*api.Bucket{{WatchPort: 2, Actions: []string{"output:2"}}}}}
			w.net.up[location(dpid1, 2).Flow()] = false
		}, verdict: "has no action that sends it on", steps: 1, note: "no bucket that can send"},
		{name: "group select", setUp: func(w *traceWorld) {
			forward(w)
			w.add(dpid1, "0 50 any group:1")
			w.groups[dpid1] = []*api.Group{{Id: 1, Type: "select", Buckets: []*api.Bucket{{Weight: 1, Actions: []string{"output:3"}}, {Weight: 1, Actions: []string{"output:2"}}}}}
		}, arrives: true, steps: 3, note: "chooses one of 2 buckets"},
		{name: "group in the action set", setUp: func(w *traceWorld) {
			forward(w)
			w.add(dpid1, "0 50 any write=output:7;write=group:1")
			w.groups[dpid1] = []*api.Group{{Id: 1, Type: "indirect", Buckets: []*api.Bucket{{Actions: []string{"output:2"}}}}}
		}, arrives: true, steps: 3},
		{name: "no such group", setUp: func(w *traceWorld) { w.add(dpid1, "0 50 any group:1") }, verdict: "has no action that sends it on", steps: 1, note: "group 1 does not exist"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newTraceWorld()
			c.setUp(w)
			r := w.trace(t, c.packet)
			var notes []string
			for _, s := range r.Steps {
				notes = append(notes, s.Notes...)
			}
			if r.Arrives != c.arrives || !strings.Contains(r.Verdict, c.verdict) || len(r.Steps) != c.steps || !strings.Contains(strings.Join(notes, ";"), c.note) {
				t.Errorf("arrives %v, %d steps, %q, notes %q; want %v, %d, %q, %q", r.Arrives, len(r.Steps), r.Verdict, notes, c.arrives, c.steps, c.verdict, c.note)
			}
		})
	}
}

// A network that multiplies every packet does not keep a trace busy for ever.
func TestTraceIsBounded(t *testing.T) {
	w := newTraceWorld()
	for _, dpid := range []string{dpid1, dpid2, dpid3} {
		w.add(dpid, "0 1 any dec_ttl;flood;in_port")
	}
	if r := w.trace(t, &api.TracePacketRequest{}); len(r.Steps) > maxSteps {
		t.Errorf("%d steps", len(r.Steps))
	}
}

// Nor do groups that lead to groups, and it ends with its call.
func TestTraceGivesUp(t *testing.T) {
	w := newTraceWorld()
	var buckets []*api.Bucket
	for range 20 {
		buckets = append(buckets, &api.Bucket{Actions: []string{"group:1"}})
	}
	w.add(dpid1, "0 1 any group:1")
	w.groups[dpid1] = []*api.Group{{Id: 1, Type: "all", Buckets: buckets}}
	if r := w.trace(t, nil); !strings.Contains(r.Verdict, "given up after") {
		t.Errorf("groups: %s", r.Verdict)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	w.net.ctx = ctx
	if _, err := w.net.trace(make([]byte, 60), w.a, w.b); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v; want that of the context", err)
	}
}

// For programs, a step names groups, ports, and what is behind them.
func TestTraceAsData(t *testing.T) {
	w := newTraceWorld()
	w.add(dpid1, "0 1 any group:1")
	w.groups[dpid1] = []*api.Group{{Id: 1, Type: "indirect", Buckets: []*api.Bucket{{Actions: []string{"output:2"}}}}}
	w.add(dpid2, "0 1 any output:9")
	r := w.trace(t, nil)
	first, second := r.Steps[0], r.Steps[1]
	if !slices.Equal(first.Groups, []uint32{1}) || len(first.Out) != 1 || first.Out[0].Port != 2 || first.Out[0].To.Flow() != location(dpid2, 1).Flow() {
		t.Errorf("first step %v", first)
	}
	if len(second.Out) != 1 || second.Out[0].To != nil || !slices.Equal(second.Out[0].Hosts, []string{mac2}) {
		t.Errorf("second step %v", second)
	}
}

// asked is the world as a Network.
type asked struct {
	*traceWorld
	roles   []*api.PortRole
	rolesOf error
}

func (a asked) FindHost(_ context.Context, r *api.FindHostRequest) (*api.Host, error) {
	for _, h := range []*api.Host{a.a, a.b} {
		if r.Address == h.Mac || slices.Contains(h.Ipv4, r.Address) {
			return h, nil
		}
	}
	return nil, api.Errorf(codes.NotFound, "host %s: not known", r.Address)
}

func (a asked) ListHosts(context.Context, *api.ListHostsRequest) (*api.ListHostsResponse, error) {
	return &api.ListHostsResponse{Hosts: []*api.Host{a.a, a.b}}, nil
}

func (a asked) ListPorts(context.Context, *api.ListPortsRequest) (*api.ListPortsResponse, error) {
	m := &api.ListPortsResponse{}
	for l, up := range a.net.up {
		m.Ports = append(m.Ports, &api.Port{Dpid: l.Switch.String(), Port: uint32(l.Port), Up: up})
	}
	return m, nil
}

func (a asked) ListLinks(context.Context, *api.ListLinksRequest) (*api.ListLinksResponse, error) {
	m := &api.ListLinksResponse{}
	for from, to := range a.net.links {
		m.Links = append(m.Links, &api.Link{Src: api.NewLocation(from), Dst: api.NewLocation(to)})
	}
	return m, nil
}

func (a asked) ListPortRoles(context.Context, *api.ListPortRolesRequest) (*api.ListPortRolesResponse, error) {
	return &api.ListPortRolesResponse{Ports: a.roles}, a.rolesOf
}

func (a asked) ReadFlows(_ context.Context, r *api.ReadFlowsRequest) (*api.ReadFlowsResponse, error) {
	return &api.ReadFlowsResponse{Flows: a.flows[r.Dpid]}, nil
}

func (a asked) ReadGroups(_ context.Context, r *api.ReadGroupsRequest) (*api.ReadGroupsResponse, error) {
	return &api.ReadGroupsResponse{Groups: a.groups[r.Dpid]}, nil
}

// A packet that does not arrive, and a host that is not known, may be at a port
// that takes no traffic.
func TestPacket(t *testing.T) {
	n := asked{traceWorld: newTraceWorld(), roles: []*api.PortRole{
		{At: location(dpid1, 4), Role: "blocked", Cause: "blocked", Reason: "why", Remedy: "how"}, {At: location(dpid1, 5), Role: "edge", Cause: "relay"},
		{At: location(dpid1, 6), Role: "unsettled", Cause: "settling"},
	}}
	for _, c := range []struct {
		request *api.TracePacketRequest
		kind    codes.Code
		want    string // in the verdict, or the error
		idle    int
	}{
		{&api.TracePacketRequest{Src: "10.0.0.1", Dst: mac3}, codes.OK, "no entry of table 0", 1},
		{&api.TracePacketRequest{Src: "10.0.0.9", Dst: mac3}, codes.NotFound, "not known; it may be at a port that takes no traffic: " + dpid1 + "/4 (why; to mend it: how)", 0},
		{&api.TracePacketRequest{Src: "10.0.0.1", Dst: "1"}, codes.InvalidArgument, "want a host by Ethernet or IP address", 0},
		{&api.TracePacketRequest{Src: "10.0.0.1", Dst: mac3, TcpDst: 65536}, codes.InvalidArgument, "tcp_dst 65536: want a port", 0},
		{&api.TracePacketRequest{Src: "10.0.0.1", Dst: mac3, Dscp: 64}, codes.InvalidArgument, "dscp 64: want 0 to 63", 0},
	} {
		r, err := Packet(t.Context(), n, c.request)
		if err == nil {
			err = errors.New(r.Verdict)
			if c.kind != codes.OK {
				t.Errorf("%v: no error", c.request)
			}
		} else if api.KindOf(err) != c.kind {
			t.Errorf("%v: kind %v; want %v", c.request, api.KindOf(err), c.kind)
		}
		if !strings.Contains(err.Error(), c.want) || len(r.GetIdle()) != c.idle {
			t.Errorf("%v: %v, %d idle ports; want %q, %d", c.request, err, len(r.GetIdle()), c.want, c.idle)
		}
	}
	n.roles, n.rolesOf = nil, api.Errorf(codes.Unavailable, "discovery is away")
	if r, err := Packet(t.Context(), n, &api.TracePacketRequest{Src: mac1, Dst: mac3}); err != nil || len(r.Idle) != 0 {
		t.Errorf("without discovery: %v, %v", r, err)
	}
}

func TestTraceErrors(t *testing.T) {
	w := newTraceWorld()
	w.net.flows = func(flow.DPID) ([]*api.FlowEntry, error) { return nil, errors.New("switch is away") }
	if _, err := w.net.trace(make([]byte, 60), w.a, w.b); err == nil || !strings.Contains(err.Error(), "switch is away") {
		t.Errorf("error %v", err)
	}
}

// The packet is what the flags say, between addresses of one family.
func TestTracePacket(t *testing.T) {
	w := newTraceWorld()
	nameless := &api.Host{Mac: mac2, At: location(dpid2, 9)}
	tagged := &api.Host{Mac: mac2, At: location(dpid2, 9), Vlan: 7, Ipv4: []string{"10.0.0.2"}}
	for _, c := range []struct {
		a, b   end
		packet *api.TracePacketRequest
		want   string // fields of the packet, or of the error
	}{
		{end{mac1, w.a}, end{mac3, w.b}, &api.TracePacketRequest{}, "eth_type=0x0800,ip_proto=1,ipv4_src=10.0.0.1,ipv4_dst=10.0.0.3,icmpv4_type=8"},
		{end{mac1, w.a}, end{mac3, w.b}, &api.TracePacketRequest{Ipv6: true}, "eth_type=0x86dd,ipv6_src=fd00::1,ipv6_dst=fd00::3,ip_proto=58,icmpv6_type=128"},
		{end{"fd00::1", w.a}, end{mac3, w.b}, &api.TracePacketRequest{}, "ipv6_src=fd00::1"},
		{end{"10.0.0.9", w.a}, end{mac3, w.b}, &api.TracePacketRequest{Dscp: 46}, "ipv4_src=10.0.0.9,ip_dscp=46"},
		{end{mac1, w.a}, end{mac3, w.b}, &api.TracePacketRequest{TcpDst: 443}, "tcp_dst=443,tcp_src=49152"},
		{end{mac1, w.a}, end{mac3, w.b}, &api.TracePacketRequest{UdpSrc: 53}, "udp_src=53,udp_dst=49152"},
		{end{mac1, w.a}, end{mac3, w.b}, &api.TracePacketRequest{Arp: true}, "eth_dst=ff:ff:ff:ff:ff:ff,eth_type=0x0806,arp_op=1,arp_tpa=10.0.0.3"},
		{end{mac1, w.a}, end{mac3, w.b}, &api.TracePacketRequest{EthDst: "02:57:45:46:54:01"}, "eth_dst=02:57:45:46:54:01"},
		{end{mac2, tagged}, end{mac3, w.b}, &api.TracePacketRequest{}, "vlan_vid=7,eth_src=" + mac2},
		{end{mac2, nameless}, end{mac3, w.b}, &api.TracePacketRequest{}, "eth_type=0x88b5"},
		{end{mac2, nameless}, end{mac3, w.b}, &api.TracePacketRequest{UdpDst: 1}, "no IP address of the same family"},
		{end{"fd00::1", w.a}, end{"10.0.0.3", w.b}, &api.TracePacketRequest{TcpDst: 1}, "no IP address of the same family"},
		{end{mac1, w.a}, end{mac3, w.b}, &api.TracePacketRequest{TcpDst: 1, UdpDst: 1}, "one of TCP, UDP and ARP"},
		{end{mac1, w.a}, end{mac3, w.b}, &api.TracePacketRequest{Ipv6: true, Arp: true}, "ARP is for IPv4"},
		{end{mac1, w.a}, end{mac3, w.b}, &api.TracePacketRequest{EthDst: "x"}, "eth_dst"},
	} {
		frame, what, err := build(c.packet, c.a, c.b)
		if err != nil {
			if !strings.Contains(err.Error(), c.want) {
				t.Errorf("%+v: %v; want %s", c.packet, err, c.want)
			}
			continue
		}
		var k flow.Key
		packet.Parse(frame, &k)
		for _, field := range strings.Split(c.want, ",") {
			name, value, _ := strings.Cut(field, "=")
			f, err := flow.ParseField(name)
			if err != nil {
				t.Fatalf("%s: %v", c.want, err)
			}
			var m flow.Match
			m.Put(f, k.Get(f))
			if got := m.Text()[name]; got != value {
				t.Errorf("%s: %s is %s; want %s", what, name, got, value)
			}
		}
	}
}

func TestActionSetOrder(t *testing.T) {
	set, err := flow.ParseActions("output:1,group:2,set_field:5->vlan_vid,push_vlan:0x8100,pop_vlan,dec_ttl")
	if err != nil {
		t.Fatal(err)
	}
	got := flow.FormatActions(setOrder(set))
	if want := "pop_vlan,push_vlan:0x8100,dec_ttl,set_field:5->vlan_vid,group:2"; got != want {
		t.Errorf("got %s; want %s", got, want)
	}
	if !slices.Equal(flow.ActionStrings(setOrder(nil)), []string{}) && len(setOrder(nil)) != 0 {
		t.Error("the empty set")
	}
}
