package tunnels

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
)

// rerouted has tunnels rerouted, during which frames of each arrive, and returns the outcomes.
func (g *rig) rerouted(q *api.RerouteTunnelsRequest) []*api.TunnelReroute {
	g.t.Helper()
	g.after = func() {
		for _, name := range q.Names {
			if m := g.b.get(name); m != nil && m.State == "up" {
				if _, err := g.send(m); err != nil {
					g.t.Errorf("%s on the way: %v", name, err)
				}
			}
		}
	}
	defer func() { g.after = func() {} }()
	resp, err := g.reroute(context.Background(), q)
	if err != nil {
		g.t.Fatal(err)
	}
	return resp.Outcomes
}

// TestSwap: a tunnel uses its standby path from then on, and the first protects it, without a frame
// lost; one with one path, or whose other is down, stays and says so.
func TestSwap(t *testing.T) {
	g := newRig(t, ringOf(6)...)
	g.tell()
	m := g.add("a", 1, 3, true)
	g.add("one", 1, 3, false)
	g.arrives(m, 1, 2, 3)
	swap := &api.RerouteTunnelsRequest{Names: []string{"a", "one", "none"}, Swap: true}
	list := g.rerouted(swap)
	if !list[0].Moved || list[0].Reason != "" || list[1].Moved || list[1].Reason != "it has one path only" || list[2].Moved || list[2].Reason != "there is no such tunnel" {
		t.Errorf("%v", list)
	}
	g.arrives(g.b.get("a"), 1, 6, 5, 4, 3)
	if m = g.b.get("a"); m.Active != "primary" || m.State != "up" || len(m.Standby.GetHops()) != 3 {
		t.Errorf("%v", m)
	}
	g.down[flow.Location{Switch: 1, Port: 6}] = true // the switch itself moves over
	g.arrives(m, 1, 2, 3)
	g.down[flow.Location{Switch: 1, Port: 6}] = false
	g.repaired()
	g.arrives(g.b.get("a"), 1, 6, 5, 4, 3) // it stays
	g.cut(2, 3, true)
	_ = g.confirm(context.Background(), nil)
	if list := g.rerouted(&api.RerouteTunnelsRequest{Names: []string{"a"}, Swap: true}); list[0].Moved || !strings.Contains(list[0].Reason, "other path is down") {
		t.Errorf("%v", list)
	}
	g.cut(2, 3, false)
	g.repaired()
	g.cut(1, 6, true)
	_ = g.confirm(context.Background(), nil)
	g.arrives(g.b.get("a"), 1, 2, 3)
	for _, q := range []*api.RerouteTunnelsRequest{{}, {Names: make([]string, 5000)}} {
		if _, err := g.reroute(context.Background(), q); api.KindOf(err) != codes.InvalidArgument {
			t.Errorf("%d names: %v", len(q.Names), err)
		}
	}
	if list := g.rerouted(&api.RerouteTunnelsRequest{Names: []string{"a"}, Swap: true, User: "l2vpn"}); list[0].Moved || !strings.Contains(list[0].Reason, "an operator's") {
		t.Errorf("%v", list)
	}
}

// TestReroute: tunnels take a path that has become better at once, without waiting for their time,
// without a frame lost.
func TestReroute(t *testing.T) {
	g := newRig(t, ringOf(6)...)
	g.tell()
	g.cut(2, 3, true)
	m := g.add("a", 1, 3, false)
	g.arrives(m, 1, 6, 5, 4, 3)
	g.cut(2, 3, false)
	g.repair(context.Background())
	g.arrives(g.b.get("a"), 1, 6, 5, 4, 3) // its time has not come
	if list := g.rerouted(&api.RerouteTunnelsRequest{Names: []string{"a"}}); !list[0].Moved {
		t.Errorf("%v", list)
	}
	g.arrives(g.b.get("a"), 1, 2, 3)
	if list := g.rerouted(&api.RerouteTunnelsRequest{Names: []string{"a"}}); list[0].Moved || list[0].Reason != "there is no better path" {
		t.Errorf("%v", list)
	}
}

// TestNeverMove: a tunnel that never moves stays on its paths when there are better ones, when a link
// is drained and when one fails; then it is down, and up when the link is back. Its standby path takes
// over. Rerouted by hand, it moves.
func TestNeverMove(t *testing.T) {
	g := newRig(t, ringOf(6)...)
	g.tell()
	g.cut(2, 3, true)
	m := g.add("a", 1, 3, false)
	fix := proto.CloneOf(m)
	fix.NeverMove = true
	if _, err := g.repairer.set(context.Background(), fix); err != nil {
		t.Fatal(err)
	}
	g.repaired()
	g.cut(2, 3, false)
	g.clock = g.clock.Add(time.Hour)
	g.repaired()
	g.arrives(g.b.get("a"), 1, 6, 5, 4, 3)
	link := &api.DrainLinkRequest{A: &api.Location{Dpid: flow.DPID(6).String(), Port: 5}, B: &api.Location{Dpid: flow.DPID(5).String(), Port: 6}}
	if r := g.drainLink(context.Background(), link); r.Moved != 0 || len(r.Stuck) != 1 || !strings.Contains(r.Stuck[0].Reason, "never moves") {
		t.Errorf("%v", r)
	}
	link.Undo = true
	g.drainLink(context.Background(), link)
	g.cut(5, 6, true)
	g.repaired()
	if m := g.b.get("a"); m.State != "down" || len(m.Primary.GetHops()) != 5 {
		t.Errorf("%v", m)
	}
	g.cut(5, 6, false)
	g.repaired()
	g.arrives(g.b.get("a"), 1, 6, 5, 4, 3)
	if m := g.b.get("a"); m.State != "up" {
		t.Errorf("%v", m)
	}
	if list := g.rerouted(&api.RerouteTunnelsRequest{Names: []string{"a"}}); !list[0].Moved {
		t.Errorf("%v", list)
	}
	g.arrives(g.b.get("a"), 1, 2, 3)
	g.cut(1, 2, true)
	if list := g.rerouted(&api.RerouteTunnelsRequest{Names: []string{"a"}}); !list[0].Moved { // also where it is down
		t.Errorf("%v", list)
	}
	g.arrives(g.b.get("a"), 1, 6, 5, 4, 3)
	g.cut(1, 2, false)
	two := g.add("b", 2, 4, true)
	fix = proto.CloneOf(two)
	fix.NeverMove = true
	if _, err := g.repairer.set(context.Background(), fix); err != nil {
		t.Fatal(err)
	}
	g.cut(2, 3, true)
	g.repaired()
	if m := g.b.get("b"); m.State != "degraded" || m.Active != "standby" || !slices.EqualFunc(m.Primary.Hops, two.Primary.Hops, sameHop) {
		t.Errorf("%v", m)
	}
	g.arrives(g.b.get("b"), 2, 1, 6, 5, 4)
	g.cut(2, 3, false)
	g.repaired()
	if m := g.b.get("b"); m.State != "up" {
		t.Errorf("%v", m)
	}
}

func sameHop(x, y *api.LabelHop) bool { return x.Dpid == y.Dpid && x.OutPort == y.OutPort }
