package forwarding

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
)

// line returns n switches in a line, with a host at port 1 of each end.
func line(t testing.TB, n int) (*network, host, host) {
	net := newNetwork(t)
	for i := 1; i < n; i++ {
		net.link(flow.DPID(i), 3, flow.DPID(i+1), 2)
	}
	return net, newHost(1, 1, 1), newHost(2, flow.DPID(n), 1)
}

func TestOnePacketProgramsTheWholePath(t *testing.T) {
	net, a, b := line(t, 5)
	e := testEngine(t, net, nil, a.at, b.at)
	_, d, v := punt(e, a, &b, tcp(a, b))
	if v != flow.Done {
		t.Fatalf("verdict %v", v)
	}
	net.apply(d)
	if len(net.out) != 1 || net.out[0].at != b.at {
		t.Fatalf("the first packet came out at %v, want %v", net.out, b.at)
	}
	net.out = nil
	net.forward(a.at, string(tcp(a, b)), 0)
	net.forward(b.at, string(tcp(b, a)), 0)
	if len(net.out) != 2 || net.out[0].at != b.at || net.out[1].at != a.at {
		t.Fatalf("later packets came out at %v, want %v and %v", net.out, b.at, a.at)
	}
}

// Egress first: when the entry of a switch is sent, those of all switches
// behind it have been; and the first packet leaves before the ingress is
// programmed, so that no second one overtakes it.
func TestEgressFirst(t *testing.T) {
	net, a, b := line(t, 6)
	e := testEngine(t, net, nil, a.at, b.at)
	_, d, _ := punt(e, a, &b, tcp(a, b))
	var forward, back []flow.DPID
	released := -1
	for i, op := range d.Ops {
		switch {
		case op.Kind == flow.OpPacketOut:
			released = i
			if op.Switch != b.at.Switch {
				t.Errorf("the first packet is released at %v, want the egress %v", op.Switch, b.at.Switch)
			}
		case d.Flows[op.Index].Entry.Match.Key.EthDst == b.mac:
			forward = append(forward, op.Switch)
			if op.Switch == a.at.Switch && released < 0 {
				t.Error("the ingress is programmed before the first packet is released")
			}
		default:
			back = append(back, op.Switch)
			if released >= 0 {
				t.Error("the way back is programmed after the first packet is released")
			}
		}
	}
	if fmt.Sprint(forward) != fmt.Sprint([]flow.DPID{6, 5, 4, 3, 2, 1}) || fmt.Sprint(back) != fmt.Sprint([]flow.DPID{1, 2, 3, 4, 5, 6}) {
		t.Errorf("programmed %v and back %v, want the egress first", forward, back)
	}
}

func TestPacketsOnTheWayAreDeliveredNotProgrammedAgain(t *testing.T) {
	net, a, b := line(t, 3)
	e := testEngine(t, net, nil, a.at, b.at)
	_, d, _ := punt(e, a, &b, tcp(a, b))
	net.apply(d)
	if _, d, _ = punt(e, a, &b, tcp(a, b)); len(d.Flows) != 0 || len(d.Outs) != 1 || d.Ops[0].Switch != b.at.Switch {
		t.Errorf("second packet: want it delivered and nothing programmed, got %+v", d.Ops)
	}
	middle := host{a.mac, a.ip, flow.Location{Switch: 2, Port: 2}}
	p, d, _ := punt(e, middle, &b, tcp(a, b))
	d.Reset()
	p.Role = flow.RoleLink
	e.open(2)(p, d)
	if len(d.Flows) != 0 || len(d.Outs) != 1 || d.Ops[0].Switch != b.at.Switch {
		t.Errorf("packet at a link port: want it delivered and nothing programmed, got %+v", d.Ops)
	}
}

func TestUnsettledPortsCarryNothing(t *testing.T) {
	net, a, b := line(t, 2)
	e := testEngine(t, net, nil, a.at, b.at)
	p, d, _ := punt(e, a, &b, tcp(a, b))
	for _, role := range []flow.PortRole{flow.RoleUnsettled, flow.RoleBlocked} {
		p.Role = role
		d.Reset()
		if v := e.open(1)(p, d); v != flow.Drop || !d.Empty() {
			t.Errorf("%v port: verdict %v, decision %v, want the packet dropped", role, v, d.Ops)
		}
	}
}

func TestRoutesAreBounded(t *testing.T) {
	net, a, b := line(t, 2)
	e := testEngine(t, net, func(c *Config) { c.MaxRoutes = 64 }, a.at, b.at)
	for i := range 2000 {
		from := a
		from.mac = flow.MACFrom(uint64(0x020000010000 + i))
		_, d, _ := punt(e, from, &b, tcp(from, b))
		if len(d.Outs) != 1 {
			t.Fatal("a packet was not delivered")
		}
	}
	if n := e.routes.size(); n > 3*64 || e.count.full.Load() == 0 {
		t.Errorf("%d routes, %d refused; want about 64 and the rest counted", n, e.count.full.Load())
	}
}

// randomNetwork returns a connected network of n switches with extra links,
// and a host at port 1 of the first and the last.
func randomNetwork(t testing.TB, r *rand.Rand, n, extra int) (*network, host, host) {
	net := newNetwork(t)
	ports := make([]flow.Port, n+1)
	join := func(a, b int) {
		if a != b && ports[a] < 17 && ports[b] < 17 {
			ports[a]++
			ports[b]++
			net.link(flow.DPID(a), ports[a]+1, flow.DPID(b), ports[b]+1)
		}
	}
	for i := 2; i <= n; i++ {
		join(1+r.IntN(i-1), i)
	}
	for range extra {
		join(1+r.IntN(n), 1+r.IntN(n))
	}
	return net, newHost(1, 1, 1), newHost(2, flow.DPID(n), 1)
}

func lostLink(at, to flow.Location) *api.PathsConverged {
	return &api.PathsConverged{Version: 2, Lost: []*api.Link{{Src: api.NewLocation(at), Dst: api.NewLocation(to)}}}
}

// With groups, any one link of a path may fail and packets arrive all the
// same, before the controller has done anything, wherever a detour exists; and
// they never loop. Rerouting then leaves exactly the entries of the new path.
func TestFailoverAndReroute(t *testing.T) {
	for _, failover := range []bool{false, true} {
		t.Run(fmt.Sprintf("failover=%v", failover), func(t *testing.T) {
			protected := 0
			for seed := range uint64(300) {
				r := rand.New(rand.NewPCG(seed, 7))
				n := 3 + r.IntN(10)
				net, a, b := randomNetwork(t, r, n, n)
				e := testEngine(t, net, func(c *Config) { c.FastFailover = failover }, a.at, b.at)
				_, d, _ := punt(e, a, &b, tcp(a, b))
				net.apply(d)
				var there *route
				e.routes.each(func(r *route) {
					if r.src == a.mac {
						there = r
					}
				})
				if there == nil || len(there.hops) < 2 {
					continue
				}
				i := r.IntN(len(there.hops) - 1)
				cut := flow.Location{Switch: there.hops[i].sw, Port: there.hops[i].out}
				net.cut(cut)
				net.out = nil
				net.forward(a.at, string(tcp(a, b)), 0)
				if len(there.detours) > i && there.detours[i].out != 0 {
					protected++
					if len(net.out) != 1 || net.out[0].at != b.at {
						t.Fatalf("seed %d: link %v failed: packet came out at %v", seed, cut, net.out)
					}
				}
				e.converged(lostLink(cut, net.links[cut]))
				net.out = nil
				net.forward(a.at, string(tcp(a, b)), 0)
				net.forward(b.at, string(tcp(b, a)), 0)
				if net.search(1, b.at.Switch, nil) == nil {
					if len(net.out) != 0 || e.routes.size() != 0 {
						t.Fatalf("seed %d: no path is left, but %d routes and %v", seed, e.routes.size(), net.out)
					}
				} else if len(net.out) != 2 || net.out[0].at != b.at || net.out[1].at != a.at {
					t.Fatalf("seed %d: after the reroute packets came out at %v", seed, net.out)
				}
				checkEntries(t, seed, e, net)
			}
			if failover && protected < 50 {
				t.Errorf("only %d failures hit a protected hop", protected)
			}
		})
	}
}

// checkEntries fails if the switches have other entries than the routes need.
func checkEntries(t *testing.T, seed uint64, e *engine, net *network) {
	t.Helper()
	want := map[string]bool{}
	e.routes.each(func(r *route) {
		for k := range r.keys() {
			want[fmt.Sprint(k.sw, r.match(k.in))] = true
		}
	})
	have := 0
	for sw, table := range net.table {
		for k := range table {
			have++
			if !want[fmt.Sprint(sw, k.Match)] {
				t.Fatalf("seed %d: switch %v has an entry that no route needs: %v", seed, sw, &k.Match)
			}
		}
	}
	if have != len(want) {
		t.Fatalf("seed %d: %d entries, want %d", seed, have, len(want))
	}
}

// TestHostMoves: the routes of a host follow it, and go with it, whether its move is said or only
// where it is, as by a run of hosts that has begun since.
func TestHostMoves(t *testing.T) {
	for _, change := range []string{"moved", "learnt"} {
		net, a, b := line(t, 4)
		moved := flow.Location{Switch: 2, Port: 7}
		e := testEngine(t, net, nil, a.at, b.at, moved)
		_, d, _ := punt(e, a, &b, tcp(a, b))
		net.apply(d)
		e.hostChanged(&api.HostChanged{Host: &api.Host{Mac: b.mac.String(), At: api.NewLocation(moved)}, Change: change, From: api.NewLocation(b.at)})
		net.out = nil
		net.forward(a.at, string(tcp(a, b)), 0)
		net.forward(moved, string(tcp(b, a)), 0)
		if len(net.out) != 2 || net.out[0].at != moved || net.out[1].at != a.at {
			t.Fatalf("%s: after the move packets came out at %v", change, net.out)
		}
		checkEntries(t, 0, e, net)
		e.hostChanged(&api.HostChanged{Host: &api.Host{Mac: b.mac.String(), At: api.NewLocation(moved)}, Change: "gone"})
		if e.routes.size() != 0 {
			t.Errorf("%s: %d routes to a host that is gone", change, e.routes.size())
		}
		checkEntries(t, 0, e, net)
	}
}

// TestMovedTogether: both hosts of a route move at once. What is sent because of
// one reaches the switches after what a packet has programmed since.
func TestMovedTogether(t *testing.T) {
	net, a, b := line(t, 4)
	e := testEngine(t, net, nil, a.at, b.at, flow.Location{Switch: 1, Port: 8}, flow.Location{Switch: 2, Port: 7})
	_, d, _ := punt(e, a, &b, tcp(a, b))
	net.apply(d)
	var late []*flow.Decision
	e.send = func(d *flow.Decision) (*api.ApplyResult, error) {
		late = append(late, d)
		return &api.ApplyResult{}, nil
	}
	move := func(h *host, to flow.Location) {
		from := h.at
		h.at = to
		e.hostChanged(&api.HostChanged{Host: &api.Host{Mac: h.mac.String(), At: api.NewLocation(to)}, Change: "moved", From: api.NewLocation(from)})
	}
	move(&b, flow.Location{Switch: 2, Port: 7})
	elsewhere := a
	elsewhere.at.Port = 8
	_, d, _ = punt(e, elsewhere, &b, tcp(a, b))
	net.apply(d)
	move(&a, elsewhere.at)
	for _, d := range late {
		net.apply(d)
	}
	e.send = net.send
	e.programAgain(time.Now().Add(againSoon))
	net.out = nil
	net.forward(a.at, string(tcp(a, b)), 0)
	net.forward(b.at, string(tcp(b, a)), 0)
	if len(net.out) != 2 || net.out[0].at != b.at || net.out[1].at != a.at {
		t.Errorf("packets came out at %v, want %v and %v", net.out, b.at, a.at)
	}
	checkEntries(t, 0, e, net)
}

func TestIdleRouteIsForgotten(t *testing.T) {
	net, a, b := line(t, 3)
	e := testEngine(t, net, nil, a.at, b.at)
	_, d, _ := punt(e, a, &b, tcp(a, b))
	net.apply(d)
	for k, entry := range net.table[1] {
		if k.Match.Key.EthSrc == a.mac {
			e.flowRemoved(&api.FlowRemoved{Flow: api.NewFlowEntry(1, &entry), Reason: "idle_timeout"})
		}
	}
	if n := e.routes.size(); n != 1 {
		t.Errorf("%d routes, want only the way back", n)
	}
}

// What an earlier run has programmed is adopted, link by link, without a
// write; what does not make a whole route any more is removed.
func TestAdoption(t *testing.T) {
	net, a, b := line(t, 4)
	first := testEngine(t, net, nil, a.at, b.at)
	_, d, _ := punt(first, a, &b, tcp(a, b))
	net.apply(d)

	observe := func(e *engine) {
		for from, to := range net.links {
			if !net.down[from] {
				e.linkChanged(&api.LinkChanged{Link: &api.Link{Src: api.NewLocation(from), Dst: api.NewLocation(to), State: "up"}})
			}
		}
		for sw, table := range net.table {
			ev := &api.FlowsObserved{Dpid: sw.String(), Owner: flow.OwnerRoutes.String()}
			for _, entry := range table {
				ev.Flows = append(ev.Flows, api.NewFlowEntry(sw, &entry))
			}
			e.handleRouteReport(ev)
		}
	}
	written := len(net.log)
	second := testEngine(t, net, nil, a.at, b.at)
	observe(second)
	second.adopt(time.Now())
	if second.routes.size() != 0 {
		t.Error("adopted at once, before it is clear that nothing more is coming")
	}
	second.adopt(time.Now().Add(adoptQuiet))
	if second.routes.size() != 2 || len(net.log) != written {
		t.Errorf("%d routes adopted and %d writes, want 2 and none", second.routes.size(), len(net.log)-written)
	}

	net.cut(flow.Location{Switch: 2, Port: 3})
	third := testEngine(t, net, nil, a.at, b.at)
	observe(third)
	third.adopt(time.Now().Add(adoptQuiet))
	if third.routes.size() != 0 {
		t.Error("adopted a route over a link that is down")
	}
	third.adopt(time.Now().Add(adoptWithin))
	if third.routes.size() != 0 || len(net.table[1])+len(net.table[4]) != 0 {
		t.Errorf("%d routes, %d entries at the ends; want all that is stale removed", third.routes.size(), len(net.table[1])+len(net.table[4]))
	}
}
