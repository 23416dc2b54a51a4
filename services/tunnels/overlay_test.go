package tunnels

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/wefttest"
)

// tubes is the service nodes with the tunnel ports of a rig.
type tubes struct {
	g     *rig
	made  map[pair]*api.TunnelPort
	next  uint32
	state string // of what is made
	asked int
	err   error
}

// newTubes gives a rig nodes that make tunnel ports.
func newTubes(g *rig) *tubes {
	n := &tubes{g: g, made: map[pair]*api.TunnelPort{}, next: uint32(flow.TunnelPorts), state: "up"}
	g.repairer.ports = n.set
	return n
}

func (n *tubes) set(_ context.Context, q *api.SetTunnelPortsRequest) (*api.SetTunnelPortsResponse, error) {
	if n.asked++; n.err != nil {
		return nil, n.err
	}
	want := map[pair]bool{}
	resp := &api.SetTunnelPortsResponse{}
	for _, p := range q.Ports {
		a, b := p.A.Flow(), p.B.Flow()
		k := newPair(p.Kind, a.Switch, b.Switch)
		want[k] = true
		if n.made[k] == nil {
			m := &api.TunnelPort{Kind: p.Kind, A: &api.Location{Dpid: p.A.Dpid, Port: n.next}, B: &api.Location{Dpid: p.B.Dpid, Port: n.next + 1}, State: n.state, Reason: "not made yet"}
			n.next += 2
			n.made[k] = m
			n.g.tubes[m.A.Flow()], n.g.tubes[m.B.Flow()] = m.B.Flow(), m.A.Flow()
		}
		resp.Ports = append(resp.Ports, n.made[k])
	}
	for k, m := range n.made {
		if !want[k] {
			delete(n.made, k)
			delete(n.g.tubes, m.A.Flow())
			delete(n.g.tubes, m.B.Flow())
		}
	}
	return resp, nil
}

// is has the ports of a pair do something else, and tells of it.
func (n *tubes) is(k pair, state, reason string) {
	n.made[k] = &api.TunnelPort{Kind: k.kind, A: n.made[k].A, B: n.made[k].B, State: state, Reason: reason}
	n.g.feed(&api.TunnelPortChanged{Port: n.made[k]})
	n.g.repair(context.Background())
	_ = n.g.confirm(context.Background(), nil)
}

// enters reports whether a switch takes labels from a port.
func (g *rig) enters(sw flow.DPID, port flow.Port) bool {
	return slices.ContainsFunc(g.has[sw].GetFlows(), func(f *api.FlowEntry) bool {
		_, e, err := f.Entry()
		return err == nil && e.Table == flow.TableIngress && e.Match.Key.InPort == port && e.Goto == flow.TableLabels
	})
}

// Tunnels between two switches share the ports of their transport; these come when the
// first is wanted, and go with the last.
func TestOverlay(t *testing.T) {
	g := newRig(t, ringOf(6)...)
	n := newTubes(g)
	n.state = "waiting"
	g.tell()
	there, back := &api.Tunnel{Name: "there", From: "1", To: "4", Transport: "vxlan"}, &api.Tunnel{Name: "back", From: "4", To: "1", Transport: "vxlan", Protect: true}
	if m := g.want(there); m.State != "down" || !strings.Contains(m.Reason, "not made yet") || m.Primary != nil {
		t.Fatal(m)
	}
	g.want(back)
	k := pair{"vxlan", 1, 4}
	if len(n.made) != 1 {
		t.Fatal(n.made)
	}
	n.is(k, "up", "")
	for name, way := range map[string][]flow.DPID{"there": {1, 4}, "back": {4, 1}} {
		m := g.b.get(name)
		if m.State != "up" || m.Reason != "" || m.Standby != nil || len(m.Labels) != 0 {
			t.Errorf("%s: %v", name, m)
		}
		g.arrives(m, way...)
	}
	if !g.enters(4, n.made[k].B.Flow().Port) || !g.enters(1, n.made[k].A.Flow().Port) {
		t.Error("labels are not taken from the tunnel ports")
	}
	n.is(k, "down", "switch 4 does not hear the other side")
	if m := g.b.get("there"); m.State != "down" || !strings.Contains(m.Reason, "hear") {
		t.Error(m)
	}
	n.is(k, "up", "")
	if m := g.b.get("there"); m.State != "up" || n.asked != 1 {
		t.Error(m, n.asked)
	}
	n.is(k, "waiting", "switch 4 is not connected")
	if m := g.b.get("there"); m.State != "down" {
		t.Error(m)
	}
	g.feed(&api.SwitchChanged{Switch: &api.Switch{Dpid: "4"}})
	if m := g.b.get("there"); m.State != "up" { // nobody knows, as with links
		t.Error(m)
	}
	g.want(&api.Tunnel{Name: "gre", From: "4", To: "1", Transport: "gre"})
	if len(n.made) != 2 {
		t.Error(n.made)
	}
	for _, name := range []string{"there", "gre", "back"} {
		if _, err := g.b.remove(context.Background(), name, ""); err != nil {
			t.Fatal(err)
		}
		g.repair(context.Background())
	}
	if len(n.made) != 0 {
		t.Error("ports that nobody wants:", n.made)
	}
}

// A tunnel changes its transport without a gap, and stays where it is while it cannot.
func TestChangeOfTransport(t *testing.T) {
	g := newRig(t, ringOf(6)...)
	n := newTubes(g)
	n.state = "waiting"
	g.tell()
	m := g.add("a", 1, 3, true)
	g.after = func() {
		if _, err := g.send(m); err != nil {
			t.Errorf("on the way: %v", err)
		}
	}
	a := func(transport string) *api.Tunnel {
		return g.want(&api.Tunnel{Name: "a", From: "1", To: "3", Protect: true, Transport: transport})
	}
	if m := a("vxlan"); m.State != "degraded" || !strings.Contains(m.Reason, "not made yet") {
		t.Error(m)
	}
	g.arrives(m, 1, 2, 3)
	n.is(pair{"vxlan", 1, 3}, "up", "")
	if m := g.b.get("a"); m.State != "up" || m.Standby != nil {
		t.Error(m)
	}
	g.arrives(m, 1, 3)
	g.repaired() // the bypasses of its links go after it
	if flows := g.has[2].GetFlows(); len(flows) != 0 {
		t.Error("what is left of the old path:", flows)
	}
	n.state = "up"
	if m := a("gre"); m.State != "up" || len(n.made) != 1 || n.made[pair{"gre", 1, 3}] == nil {
		t.Error(m, n.made)
	}
	g.arrives(m, 1, 3)
	if m := a("mpls"); m.State != "up" || m.Standby == nil || len(n.made) != 0 {
		t.Error(m, n.made)
	}
	g.arrives(m, 1, 2, 3)
	g.after = func() {}
	g.cut(1, 2, true)
	g.cut(1, 6, true)
	a("gre")
	if m, err := g.repairer.set(context.Background(), &api.Tunnel{Name: "a", From: "1", To: "3", Transport: "mpls"}); err == nil {
		t.Error("taken from the only way that it has:", m)
	}
	g.arrives(m, 1, 3)
}

// After a restart an overlay is as before, and the ports of one that nobody wants are
// given back.
func TestOverlayRestart(t *testing.T) {
	store := wefttest.NewStore()
	g := newRig(t, ringOf(6)...)
	g.start(store)
	n := newTubes(g)
	g.tell()
	m := g.want(&api.Tunnel{Name: "a", From: "1", To: "4", Transport: "gre"})
	g.want(&api.Tunnel{Name: "b", From: "1", To: "3", Transport: "gre"})
	g.start(store)
	g.repairer.ports = n.set
	for _, p := range n.made {
		p.State = "waiting"
	}
	g.tell()
	g.repair(context.Background())
	_ = g.confirm(context.Background(), nil)
	if now := g.b.get("a"); now.State != "up" || now.Group != m.Group || now.Primary.Hops[0].OutPort != m.Primary.Hops[0].OutPort {
		t.Error(now)
	}
	g.arrives(m, 1, 4)
	g.clock = g.clock.Add(time.Hour)
	g.b.converged()
	if now := g.b.get("a"); now.State != "up" {
		t.Error("before nodes has said how the port is:", now)
	}
	n.is(pair{"gre", 1, 4}, "waiting", "the node of switch 4 has not made it yet")
	if now := g.b.get("a"); now.State != "down" || !strings.Contains(now.Reason, "not made it") {
		t.Error("after nodes has said that the port waits:", now)
	}
	for k := range n.made {
		n.is(k, "up", "")
	}
	g.b.converged()
	if now := g.b.get("a"); now.State != "up" {
		t.Error(now)
	}
	stray := &api.TunnelPort{Kind: "vxlan", A: &api.Location{Dpid: "2", Port: 20050}, B: &api.Location{Dpid: "4", Port: 20051}}
	n.made[pair{"vxlan", 2, 4}] = stray
	g.feed(&api.TunnelPortChanged{Port: stray})
	g.repair(context.Background())
	if len(n.made) != 2 {
		t.Error(n.made)
	}
	gone := n.made[pair{"gre", 1, 4}]
	delete(n.made, pair{"gre", 1, 4})
	g.feed(&api.TunnelPortChanged{Port: gone, Gone: true}) // somebody has taken it away
	g.repair(context.Background())
	_ = g.confirm(context.Background(), nil)
	if now := g.b.get("a"); now.State != "up" || now.Primary.Hops[0].OutPort == gone.A.Port {
		t.Error(now)
	}
	g.arrives(m, 1, 4)
}

// What cannot be had with an overlay is refused, and a dry run asks for no port.
func TestOverlayRefused(t *testing.T) {
	g := newRig(t, ringOf(4)...)
	n := newTubes(g)
	g.tell()
	for key, m := range map[string]*api.Tunnel{
		"reserved_kbps": {ReservedKbps: 1}, "max_delay_us": {MaxDelayUs: 1}, "max_hops": {MaxHops: 3}, "pin": {Pin: []string{"2"}}, "exclude_nodes": {ExcludeNodes: []string{"2"}},
		"exclude_links": {ExcludeLinks: []*api.Location{{Dpid: "1", Port: 2}}}, "exclude_risk_groups": {ExcludeRiskGroups: []string{"x"}}, "include_any": {IncludeAny: []string{"x"}},
		"include_all": {IncludeAll: []string{"x"}}, "exclude_any": {ExcludeAny: []string{"x"}}, "diverse_from": {DiverseFrom: "b"},
	} {
		m.Name, m.From, m.To, m.Transport = "a", "1", "3", "vxlan"
		if _, err := g.repairer.set(context.Background(), m); api.KindOf(err) != codes.InvalidArgument || !strings.Contains(err.Error(), key) || !strings.Contains(err.Error(), "routing chooses") {
			t.Errorf("%s: %v", key, err)
		}
	}
	would := func(m *api.Tunnel) *api.TunnelOutcome {
		resp, err := g.setTunnels(context.Background(), &api.SetTunnelsRequest{Tunnels: []*api.Tunnel{m}, DryRun: true})
		if err != nil {
			t.Fatal(err)
		}
		return resp.Outcomes[0]
	}
	a := &api.Tunnel{Name: "a", From: "1", To: "3", Transport: "gre"}
	if o := would(a); o.Tunnel.GetState() != "down" || !strings.Contains(o.Tunnel.Reason, "hybrid") {
		t.Error(o)
	}
	for _, sw := range []string{"1", "3"} {
		g.feed(&api.SwitchChanged{Switch: &api.Switch{Dpid: sw, Connected: true, Openflow: "1.3", Description: "hybrid name=x"}})
	}
	if o := would(a); o.Tunnel.GetState() != "up" || len(o.Tunnel.Path) != 2 || n.asked != 0 {
		t.Error(o, n.asked)
	}
	n.err = errors.New("nodes is away")
	if m := g.want(a); m.State != "down" || !strings.Contains(m.Reason, "nodes is away") {
		t.Error(m)
	}
	n.err = nil
	g.repaired()
	if m := g.b.get("a"); m.State != "up" {
		t.Error(m)
	}
	if m := g.want(&api.Tunnel{Name: "b", From: "1", To: "3", DiverseFrom: "a"}); m.State != "down" || !strings.Contains(m.Reason, "nobody knows the way") {
		t.Error(m)
	}
}
