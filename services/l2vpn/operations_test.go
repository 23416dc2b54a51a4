package l2vpn

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/wefttest"
)

// twoWays is switches 1 and 2 with two ways between them, by 3 and by 4, and a service of tunnels:
// protected tunnels have both; a reroute takes the way that is best now.
type twoWays struct {
	*store
	t     *testing.T
	best  flow.DPID // by which way tunnels go where there is a choice
	asked []*api.RerouteTunnelsRequest
	ops   *operations
}

func (w *twoWays) path(a, z string, via flow.DPID) *api.LabelSwitchedPath {
	return &api.LabelSwitchedPath{Hops: []*api.LabelHop{{Dpid: a, OutPort: uint32(via) + 10}, {Dpid: via.String(), InPort: 1, OutPort: 2}, {Dpid: z, InPort: uint32(via) + 10}}}
}

func (w *twoWays) tunnel(name, a, z string, protect bool, via flow.DPID) *api.Tunnel {
	m := &api.Tunnel{Name: name, From: a, To: z, User: user, State: "up", Active: "primary", Group: flow.TunnelGroups + uint32(len(w.tunnels.known)),
		Primary: w.path(a, z, via), Path: []string{a, via.String(), z}}
	if old := w.tunnels.known[name]; old != nil {
		m.Group = old.Group
	}
	if protect {
		m.Standby = w.path(a, z, 7-via)
	}
	return m
}

func newTwoWays(t *testing.T, list ...*api.Circuit) *twoWays {
	w := &twoWays{store: newTestStore(t, wefttest.NewStore(), defaults()), t: t, best: 3}
	w.ops = &operations{b: w.store, move: w.reroute}
	if err := w.try(&api.SetCircuitsRequest{Circuits: list}); err != nil {
		t.Fatal(err)
	}
	for name, wish := range w.tunnels.wants {
		w.learn([]*api.Tunnel{w.tunnel(name, wish.From, wish.To, wish.Protect, w.best)}, false)
	}
	for sw := flow.DPID(1); sw <= 4; sw++ {
		wholeOf(w.store, sw)
		w.answered(sw, nil, nil)
	}
	return w
}

func (w *twoWays) reroute(_ context.Context, q *api.RerouteTunnelsRequest) (*api.RerouteTunnelsResponse, error) {
	w.asked = append(w.asked, q)
	r := &api.RerouteTunnelsResponse{}
	for _, name := range q.Names {
		w.mu.Lock()
		old := w.tunnels.known[name]
		via, _ := flow.ParseDPID(old.Path[1])
		o := &api.TunnelReroute{Name: name, Tunnel: old, Reason: "there is no better path"}
		if q.Swap && old.Standby != nil {
			via = 7 - via
		} else if !q.Swap {
			via = w.best
		}
		if via.String() != old.Path[1] {
			o.Tunnel, o.Moved, o.Reason = w.tunnel(name, old.From, old.To, old.Standby != nil, via), true, ""
		}
		w.mu.Unlock()
		r.Outcomes = append(r.Outcomes, o)
	}
	return r, nil
}

func (w *twoWays) via(name string) string { return strings.TrimLeft(w.get(name).Path[1], "0") }

// TestSwapCircuit: a circuit uses its standby path; others of its tunnels go with it and are named,
// and all their histories say so; one without a standby stays.
func TestSwapCircuit(t *testing.T) {
	w := newTwoWays(t, &api.Circuit{Name: "a", Ends: []string{"1:1", "2:1"}, Protect: true}, &api.Circuit{Name: "b", Ends: []string{"1:2", "2:2"}, Protect: true},
		&api.Circuit{Name: "plain", Ends: []string{"1:3", "2:3"}}, &api.Circuit{Name: "near", Ends: []string{"1:4", "1:5"}, Protect: true})
	r, err := w.ops.swap(t.Context(), &api.SwapCircuitRequest{Name: "a"})
	if err != nil || len(r.Moves) != 2 || r.Moves[0].Name != "a" || !r.Moves[0].Moved || r.Moves[1].Name != "b" || !r.Moves[1].Moved {
		t.Fatal(r, err)
	}
	if from, to := r.Moves[0].From, r.Moves[0].To; len(from) != 3 || from[1] != flow.DPID(3).String() || to[1] != flow.DPID(4).String() {
		t.Error(from, to)
	}
	if w.via("a") != "4" || w.via("b") != "4" || w.via("plain") != "3" {
		t.Error(w.via("a"), w.via("b"), w.via("plain"))
	}
	h, err := w.historyOf("b")
	if err != nil || !strings.Contains(h.States[0].Changed, "swap: its way was 0000000000000001 0000000000000003 0000000000000002") || h.States[0].By != client || h.States[0].State != "up" {
		t.Error(h, err)
	}
	for name, want := range map[string]codes.Code{"plain": codes.FailedPrecondition, "near": codes.FailedPrecondition, "none": codes.NotFound} {
		if _, err := w.ops.swap(t.Context(), &api.SwapCircuitRequest{Name: name}); api.KindOf(err) != want {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestRerouteCircuits: circuits take the way that is best now, by name or all over a link.
func TestRerouteCircuits(t *testing.T) {
	w := newTwoWays(t, &api.Circuit{Name: "a", Ends: []string{"1:1", "2:1"}}, &api.Circuit{Name: "fixed", Ends: []string{"1:2", "2:2"}, NeverMove: true},
		&api.Circuit{Name: "near", Ends: []string{"1:4", "1:5"}})
	if n := len(w.tunnels.known); n != 4 {
		t.Errorf("%d tunnels: one that never moves has its own", n)
	}
	w.best = 4
	for link, want := range map[string][]string{"1-4": nil, "1:13-3:1": {"a", "fixed"}, "3-1": {"a", "fixed"}, "1:12-3:1": nil, "2-3": {"a", "fixed"}} {
		l, err := parseLink(link)
		if got := w.ops.over(l); err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %v, %v; want %v", link, got, err, want)
		}
	}
	r, err := w.ops.reroute(t.Context(), &api.RerouteCircuitsRequest{Names: []string{"a", "near"}})
	if err != nil || len(r.Moves) != 2 || !r.Moves[0].Moved || r.Moves[1].Moved || r.Moves[1].Reason != "both ends are at one switch" || w.via("a") != "4" || w.via("fixed") != "3" {
		t.Error(r, err)
	}
	r, err = w.ops.reroute(t.Context(), &api.RerouteCircuitsRequest{ViaLink: "1-3"})
	if err != nil || len(r.Moves) != 1 || r.Moves[0].Name != "fixed" || !r.Moves[0].Moved || w.via("fixed") != "4" {
		t.Error(r, err)
	}
	r, err = w.ops.reroute(t.Context(), &api.RerouteCircuitsRequest{Names: []string{"a"}})
	if err != nil || len(r.Moves) != 1 || r.Moves[0].Moved || r.Moves[0].Reason != "there is no better path" {
		t.Error(r, err)
	}
	for _, q := range []*api.RerouteCircuitsRequest{{}, {Names: []string{"a"}, ViaLink: "1-3"}, {ViaLink: "1"}, {ViaLink: "1:x-3:1"}} {
		if _, err := w.ops.reroute(t.Context(), q); api.KindOf(err) != codes.InvalidArgument {
			t.Errorf("%v: %v", q, err)
		}
	}
	if _, err := w.ops.reroute(t.Context(), &api.RerouteCircuitsRequest{Names: []string{"none"}}); api.KindOf(err) != codes.NotFound {
		t.Error(err)
	}
}

// TestWhoChanged: a circuit's history says what was changed, and by whom, and outlives a restart.
func TestWhoChanged(t *testing.T) {
	now := time.Unix(1e9, 0)
	kept := wefttest.NewStore()
	b := newTestStoreAt(t, kept, defaults(), func() time.Time { return now })
	set := func(m *api.Circuit) {
		t.Helper()
		if err := b.try(&api.SetCircuitsRequest{Circuits: []*api.Circuit{m}}); err != nil {
			t.Fatal(err)
		}
	}
	last := func() *api.CircuitState { return b.status["c"].history[0] }
	set(&api.Circuit{Name: "c", Ends: []string{"1:1", "2:1"}})
	if h := last(); h.Changed != "added" || h.By != client {
		t.Error(h)
	}
	n := len(b.status["c"].history)
	set(&api.Circuit{Name: "c", Ends: []string{"1:1", "2:1"}})
	if len(b.status["c"].history) != n {
		t.Error("what is unchanged is in the history:", last())
	}
	set(&api.Circuit{Name: "c", Ends: []string{"1:1", "2:1.5"}, RateKbps: 20000, ExcludeAny: []string{"red", "blue"}})
	want := "ends: 0000000000000001:1 0000000000000002:1, now 0000000000000001:1 0000000000000002:1.5; rate_kbps: 0, now 20000; exclude_any: none, now red blue"
	if h := last(); h.Changed != want || h.By != client {
		t.Error(h)
	}
	m := &mover{b: b, try: func(context.Context, *api.SetTunnelsRequest) (*api.SetTunnelsResponse, error) { return nil, nil }}
	m.put(t.Context(), b.status["c"].circuit, []*api.Location{{Dpid: flow.DPID(1).String(), Port: 3}}, "2026-12-01T08:00:00Z", 0)
	if h := last(); h.Changed != "avoids 0000000000000001/3 until 2026-12-01T08:00:00Z" || h.By != service {
		t.Error(h)
	}
	again := newTestStoreAt(t, kept, defaults(), func() time.Time { return now })
	for name, text := range b.records() {
		again.recall(name, text)
	}
	if h := again.status["c"].history; h[0].By != service || !slices.ContainsFunc(h, func(x *api.CircuitState) bool { return x.Changed == want && x.By == client }) {
		t.Error(h)
	}
}
