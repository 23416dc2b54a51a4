package tunnels

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/wefttest"
)

// rig is a store and its repairer on a network whose switches have what was last
// confirmed.
type rig struct {
	*repairer
	t      testing.TB
	feed   func(events ...any)
	clock  time.Time
	cables map[flow.Location]flow.Location
	down   map[flow.Location]bool
	has    map[flow.DPID]*api.SetStandingRequest
	dirty  map[flow.DPID]bool
	deaf   map[flow.DPID]bool              // confirm nothing
	after  func()                          // follows every confirmation
	tubes  map[flow.Location]flow.Location // as the routing joins them
	set    map[flow.Location]*api.LinkSettings
}

// newRig returns a network of switches joined by cables: the port at a switch is
// the number of the other.
func newRig(t testing.TB, cables ...[2]flow.DPID) *rig {
	g := &rig{t: t, clock: time.Unix(1e9, 0), cables: map[flow.Location]flow.Location{}, down: map[flow.Location]bool{},
		has: map[flow.DPID]*api.SetStandingRequest{}, dirty: map[flow.DPID]bool{}, deaf: map[flow.DPID]bool{}, after: func() {}, tubes: map[flow.Location]flow.Location{}, set: map[flow.Location]*api.LinkSettings{}}
	for _, c := range cables {
		a, b := flow.Location{Switch: c[0], Port: flow.Port(c[1])}, flow.Location{Switch: c[1], Port: flow.Port(c[0])}
		g.cables[a], g.cables[b] = b, a
	}
	g.start(wefttest.NewStore())
	return g
}

// start starts the service on what is stored.
func (g *rig) start(store *wefttest.Store) {
	bucket, err := store.Bucket(context.Background(), "tunnels.tunnels")
	if err != nil {
		g.t.Fatal(err)
	}
	bypasses, err := store.Bucket(context.Background(), "tunnels.bypasses")
	if err != nil {
		g.t.Fatal(err)
	}
	b := newStore(defaults(), bucket, bypasses, func() time.Time { return g.clock }, func(name string, err error) { g.t.Errorf("%s: %v", name, err) })
	g.feed = wefttest.Network(reads, b.networkChanged)
	b.declare = func(list ...flow.DPID) {
		for _, sw := range list {
			g.dirty[sw] = true
		}
	}
	g.repairer = &repairer{b: b, compute: g.network, settle: g.confirm, log: slog.New(slog.DiscardHandler),
		turn: make(chan struct{}, 1), kicked: make(chan struct{}, 1)}
	if err := errors.Join(b.tunnels.Load(context.Background()), b.bypasses.Load(context.Background())); err != nil {
		g.t.Fatal(err)
	}
}

// ovs returns a switch that is connected.
func ovs(sw flow.DPID) *api.Switch {
	return &api.Switch{Dpid: sw.String(), Connected: true, Openflow: "1.3", Hardware: "Open vSwitch"}
}

// tell tells the service of all switches and links, and that these are all.
func (g *rig) tell() {
	for at, far := range g.cables {
		g.feed(&api.SwitchChanged{Switch: ovs(at.Switch)})
		g.link(at, far)
	}
	for at := range g.cables {
		g.feed(&api.RolesSettled{Dpid: at.Switch.String()})
	}
}

func (g *rig) link(at, far flow.Location) {
	g.feed(&api.LinkChanged{Link: &api.Link{Src: api.NewLocation(at), Dst: api.NewLocation(far), State: "up",
		Settings: g.set[at], CapacityKbps: g.capacity(at)}, Removed: g.down[at]})
}

// cut takes the cable between two switches away, or brings it back.
func (g *rig) cut(x, y flow.DPID, down bool) {
	a, b := flow.Location{Switch: x, Port: flow.Port(y)}, flow.Location{Switch: y, Port: flow.Port(x)}
	g.down[a], g.down[b] = down, down
	g.link(a, b)
	g.link(b, a)
	g.b.converged()
}

// ways returns how many paths that share no link join two switches: 0, 1 or 2.
func (g *rig) ways(from, to flow.DPID) int {
	for n := 2; n > 0; n-- {
		d := &api.PathDemand{Src: from.String(), Dst: to.String()}
		if n == 2 {
			d.Disjoint = []string{"links"}
		}
		if resp, err := g.network(context.Background(), &api.ComputePathsRequest{Demands: []*api.PathDemand{d}}); err != nil {
			g.t.Fatal(err)
		} else if len(resp.Answers[0].Paths) == n {
			return n
		}
	}
	return 0
}

// confirm has the switches take what was declared.
func (g *rig) confirm(_ context.Context, switches []flow.DPID) error {
	for sw := range g.dirty {
		if !g.deaf[sw] {
			g.has[sw] = g.b.want(ovs(sw))
			delete(g.dirty, sw)
			g.fresh(sw)
			g.after()
		}
	}
	for _, sw := range switches {
		if g.deaf[sw] {
			return fmt.Errorf("switch %v is deaf", sw)
		}
	}
	return nil
}

func (g *rig) add(name string, from, to flow.DPID, protect bool) *api.Tunnel {
	g.t.Helper()
	return g.want(&api.Tunnel{Name: name, From: from.String(), To: to.String(), Protect: protect})
}

// repaired lets the service work until nothing is left to do.
func (g *rig) repaired() {
	for range 4 {
		g.clock = g.clock.Add(time.Minute)
		g.b.converged()
		g.repair(context.Background())
		_ = g.confirm(context.Background(), nil)
	}
}

// send sends a frame with a circuit's label into a tunnel's group, and returns
// the switches that it passes. It fails if the frame is lost or arrives with
// another label than the circuit's.
func (g *rig) send(m *api.Tunnel) (passed []flow.DPID, err error) {
	at, _ := flow.ParseDPID(m.From)
	var stack []uint32
	var out flow.Port
	var do func(actions []flow.Action, in flow.Port)
	var fail error
	enter := func(id uint32) {
		for _, gm := range g.has[at].GetGroups() {
			_, group, err := gm.Group()
			fail = errors.Join(fail, err)
			for _, b := range group.Buckets {
				if group.ID == id && out == 0 && !g.down[flow.Location{Switch: at, Port: b.WatchPort}] {
					do(b.Actions, 0)
				}
			}
		}
	}
	do = func(actions []flow.Action, in flow.Port) {
		for _, a := range actions {
			switch a.Kind {
			case flow.ActionPushMPLS:
				stack = append(stack, 0)
			case flow.ActionPopMPLS:
				stack = stack[:len(stack)-1]
			case flow.ActionSetField:
				for label := range flow.CircuitLabels {
					if a.Field == flow.FieldMPLSLabel && a == flow.SetMPLSLabel(label) {
						stack[len(stack)-1] = label
					}
				}
			case flow.ActionOutput:
				if out = flow.Port(a.Arg); out == flow.PortIn {
					out = in
				}
			case flow.ActionGroup:
				enter(a.Arg)
			}
		}
	}
	stack = []uint32{flow.CircuitLabels}
	enter(m.Group)
	for range 40 {
		passed = append(passed, at)
		here := flow.Location{Switch: at, Port: out}
		far, cabled := g.cables[here]
		if flow.IsTunnelPort(out) {
			far, cabled = g.tubes[here]
		}
		if out == 0 || !cabled || g.down[here] {
			return passed, fmt.Errorf("lost at %v, port %v", at, out)
		}
		at = far.Switch
		if len(stack) == 1 {
			break
		}
		in, label, comes := far.Port, stack[len(stack)-1], false
		out = 0
		for _, f := range g.has[at].GetFlows() {
			_, e, err := f.Entry()
			if err != nil {
				return passed, err
			}
			k := e.Match.Key
			switch {
			case e.Table == 0 && k.InPort == in:
				comes = e.Goto == flow.TableLabels
			case e.Table == flow.TableLabels && k.MPLSLabel == label:
				do(e.Apply, in)
			}
		}
		if !comes || out == 0 {
			return passed, fmt.Errorf("dropped at %v with labels %v", at, stack)
		}
	}
	passed = append(passed, at)
	ok := fail == nil && at.String() == m.To && slices.Equal(stack, []uint32{flow.CircuitLabels})
	ok = ok && slices.ContainsFunc(g.has[at].GetFlows(), func(f *api.FlowEntry) bool {
		_, e, err := f.Entry()
		return err == nil && e.Goto == flow.TableLabels
	})
	if !ok {
		return passed, fmt.Errorf("arrived at %v with labels %v", at, stack)
	}
	return passed, nil
}

func (g *rig) arrives(m *api.Tunnel, want ...flow.DPID) {
	g.t.Helper()
	passed, err := g.send(m)
	if err != nil || !slices.Equal(passed, want) {
		g.t.Errorf("%s passes %v, %v; want %v", m.Name, passed, err, want)
	}
}

// ringOf returns the cables of a ring.
func ringOf(n flow.DPID) (cables [][2]flow.DPID) {
	for i := range n {
		cables = append(cables, [2]flow.DPID{i + 1, (i+1)%n + 1})
	}
	return cables
}

func TestTunnel(t *testing.T) {
	g := newRig(t, ringOf(6)...)
	g.tell()
	m := g.add("a", 1, 4, false)
	if m.State != "up" || m.Active != "primary" || len(m.Primary.GetHops()) != 4 || m.Standby != nil {
		t.Errorf("%v", m)
	}
	g.arrives(m, 1, 2, 3, 4)
	if near := g.add("b", 1, 2, false); near.State != "up" || near.Group == m.Group { // no label at all
		t.Errorf("%v", near)
	} else {
		g.arrives(near, 1, 2)
	}
	old := m.Primary.Hops
	g.cut(2, 3, true)
	if m := g.b.get("a"); m.State != "down" || m.Active != "" || m.Reason == "" {
		t.Errorf("%v", m)
	}
	g.repair(context.Background())
	m = g.b.get("a")
	g.arrives(m, 1, 6, 5, 4)
	if m.State != "up" || m.Group != g.b.status["a"].tunnel.group {
		t.Errorf("%v", m)
	}
	g.repaired()
	for _, h := range old[1:3] {
		if sw := mustDPID(t, h.Dpid); g.b.labels.used[sw][h.Label] || g.b.at[sw]["a"] {
			t.Errorf("hop %v of the old path is not given back", h)
		}
	}
}

func TestProtected(t *testing.T) {
	g := newRig(t, ringOf(6)...)
	g.tell()
	m := g.add("a", 1, 3, true)
	if m.State != "up" || m.Standby == nil {
		t.Fatalf("%v", m)
	}
	g.arrives(m, 1, 2, 3)
	g.down[flow.Location{Switch: 1, Port: 2}] = true // the switch itself moves over
	g.arrives(m, 1, 6, 5, 4, 3)
	g.down[flow.Location{Switch: 1, Port: 2}] = false
	g.cut(2, 3, true)
	_ = g.confirm(context.Background(), nil) // one change of the group, without a path being sought
	if m := g.b.get("a"); m.State != "degraded" || m.Active != "standby" {
		t.Errorf("%v", m)
	}
	g.arrives(m, 1, 6, 5, 4, 3)
	g.repaired()
	if m := g.b.get("a"); m.State != "degraded" || !strings.Contains(m.Reason, "no second path") {
		t.Errorf("%v", m)
	}
	g.arrives(m, 1, 6, 5, 4, 3)
	g.cut(2, 3, false)
	g.repaired()
	if m = g.b.get("a"); m.State != "up" || m.Reason != "" || m.Standby == nil {
		t.Errorf("%v", m)
	}
	g.arrives(m, 1, 6, 5, 4, 3) // it does not move back
}

// Old paths stay in force until the new ones are confirmed.
func TestMakeBeforeBreak(t *testing.T) {
	g := newRig(t, ringOf(4)...)
	g.tell()
	m := g.add("a", 1, 3, false)
	g.arrives(m, 1, 2, 3)
	g.after = func() {
		if _, err := g.send(m); err != nil {
			t.Errorf("on the way: %v", err)
		}
	}
	g.deaf[4] = true
	if _, err := g.repairer.set(context.Background(), &api.Tunnel{Name: "a", From: "1", To: "3", Protect: true}); err != nil {
		t.Fatal(err)
	}
	g.repair(context.Background())
	if m := g.b.get("a"); !strings.Contains(m.Reason, "deaf") {
		t.Errorf("%v", m)
	}
	g.arrives(m, 1, 2, 3)
	g.deaf[4] = false
	g.repaired()
	if m := g.b.get("a"); m.State != "up" {
		t.Errorf("%v", m)
	}
}

func TestNoLabelLeft(t *testing.T) {
	g := newRig(t, [2]flow.DPID{1, 2}, [2]flow.DPID{2, 3})
	g.b.cfg.FirstLabel, g.b.cfg.LastLabel = 16, 17
	g.tell()
	for _, name := range []string{"a", "b"} {
		if m := g.add(name, 1, 3, false); m.State != "up" {
			t.Fatalf("%v", m)
		}
	}
	if m := g.add("c", 1, 3, false); m.State != "down" || !strings.Contains(m.Reason, "no label is free at switch 0000000000000002") {
		t.Errorf("%v", m)
	}
	if _, err := g.b.remove(context.Background(), "a", ""); err != nil {
		t.Fatal(err)
	}
	g.repaired()
	if m := g.b.get("c"); m.State != "up" {
		t.Errorf("%v", m)
	}
	g.arrives(g.b.get("c"), 1, 2, 3)
	g.arrives(g.b.get("b"), 1, 2, 3)
}

func TestBadTunnels(t *testing.T) {
	g := newRig(t, [2]flow.DPID{1, 2})
	g.tell()
	for _, m := range []*api.Tunnel{nil, {}, {Name: "a b", From: "1", To: "2"}, {Name: "a", From: "x", To: "2"}, {Name: "a", From: "1"}, {Name: "a", From: "1", To: "1"}} {
		if _, err := g.repairer.set(context.Background(), m); api.KindOf(err) != codes.InvalidArgument {
			t.Errorf("%v: %v", m, err)
		}
	}
	if m := g.add("a", 1, 9, false); m.State != "down" || m.Reason == "" {
		t.Errorf("%v", m)
	}
	if _, err := g.repairer.set(context.Background(), &api.Tunnel{Name: "a", From: "2", To: "9"}); api.KindOf(err) != codes.FailedPrecondition {
		t.Error(err)
	}
	g.compute = func(context.Context, *api.ComputePathsRequest) (*api.ComputePathsResponse, error) {
		return nil, errors.New("paths is away")
	}
	if m := g.add("b", 1, 2, false); m.State != "down" || !strings.Contains(m.Reason, "away") {
		t.Errorf("%v", m)
	}
}

// Whatever happens in a network, in the end each tunnel whose ends are joined
// works, and every label and entry belongs to one.
func TestRandomFaults(t *testing.T) {
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 1))
		cables := ringOf(7)
		for range 3 {
			a, b := flow.DPID(1+r.IntN(7)), flow.DPID(1+r.IntN(7))
			if a != b {
				cables = append(cables, [2]flow.DPID{a, b})
			}
		}
		g := newRig(t, cables...)
		g.tell()
		for i := range 8 {
			from := flow.DPID(1 + r.IntN(7))
			g.add(fmt.Sprint("t", i), from, (from+flow.DPID(r.IntN(6)))%7+1, r.IntN(2) == 0)
		}
		for range 30 {
			c := cables[r.IntN(len(cables))]
			switch r.IntN(6) {
			case 0:
				g.deaf[c[0]] = !g.deaf[c[0]]
			case 1:
				if _, err := g.b.remove(context.Background(), fmt.Sprint("t", r.IntN(4)), ""); err != nil {
					t.Fatal(err)
				}
			default:
				g.cut(c[0], c[1], !g.down[flow.Location{Switch: c[0], Port: flow.Port(c[1])}])
			}
			if r.IntN(2) == 0 {
				g.repair(context.Background())
			}
		}
		clear(g.deaf)
		g.repaired()
		inUse := 0
		for _, m := range g.b.list() {
			from, _ := flow.ParseDPID(m.From)
			to, _ := flow.ParseDPID(m.To)
			ways := g.ways(from, to)
			_, err := g.send(m)
			if (err == nil) != (ways > 0) || (m.State == "down") != (ways == 0) || m.Protect && ways == 2 && m.State != "up" {
				t.Fatalf("seed %d: %v: %v, %d ways", seed, m, err, ways)
			}
			if n := len(g.b.status[m.Name].retired); n != 0 && m.State != "down" {
				t.Fatalf("seed %d: %s has %d old paths", seed, m.Name, n)
			}
		}
		for _, s := range g.b.status {
			for _, p := range s.installed() {
				inUse += max(len(p)-2, 0)
			}
		}
		labels, entries := 0, 0
		for _, l := range g.b.labels.used {
			labels += len(l)
		}
		for _, h := range g.has {
			for _, f := range h.GetFlows() {
				if f.Table == uint32(flow.TableLabels) {
					entries++
				}
			}
		}
		if labels != inUse || entries != inUse {
			t.Fatalf("seed %d: %d labels, %d entries for %d hops", seed, labels, entries, inUse)
		}
	}
}
