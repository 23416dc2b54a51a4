package tunnels

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/wefttest"
)

func (g *rig) passes(name, want string) {
	g.t.Helper()
	m := g.b.get(name)
	var path []string
	for _, sw := range m.Path {
		path = append(path, strings.TrimLeft(sw, "0"))
	}
	if got := strings.Join(path, " "); got != want {
		g.t.Errorf("%s passes %q (%s: %s); want %q", name, got, m.State, m.Reason, want)
	}
	if _, err := g.send(m); (err == nil) != (want != "") {
		g.t.Errorf("%s: %v", name, err)
	}
}

// Tunnels book what they reserve; the more important take it from others, which move
// or, if they cannot, are down.
func TestBandwidth(t *testing.T) {
	g := newRig(t, ringOf(4)...)
	store := wefttest.NewStore()
	g.start(store)
	g.tell()
	g.want(&api.Tunnel{Name: "a", From: "1", To: "3", ReservedKbps: 600})
	g.passes("a", "1 2 3")
	g.want(&api.Tunnel{Name: "b", From: "1", To: "3", ReservedKbps: 600})
	g.passes("b", "1 4 3")
	m := g.want(&api.Tunnel{Name: "c", From: "1", To: "3", ReservedKbps: 500})
	if m.State != "down" || !strings.Contains(m.Reason, "400") {
		t.Errorf("%v", m)
	}
	q := &api.SetTunnelsRequest{DryRun: true, Tunnels: []*api.Tunnel{{Name: "d", From: "1", To: "2", ReservedKbps: 900, SetupPriority: proto.Uint32(2), MaxHops: 1}}}
	resp, err := g.setTunnels(context.Background(), q)
	if err != nil || fmt.Sprint(resp.Outcomes[0].Preempts) != "[a]" || resp.Outcomes[0].Tunnel.State != "up" {
		t.Error(resp, err)
	}
	g.passes("a", "1 2 3")
	g.want(q.Tunnels[0])
	g.passes("d", "1 2")
	if m := g.b.get("a"); m.State != "down" || !strings.Contains(m.Reason, "more important") {
		t.Errorf("%v", m)
	}
	g.passes("b", "1 4 3")
	before := fmt.Sprint(g.b.list())
	g.start(store)
	g.tell()
	g.repaired()
	if len(g.b.booked) != 3 {
		t.Errorf("bookings after a restart: %v; tunnels %v, before %s", g.b.booked, g.b.list(), before)
	}
	more := &api.Tunnel{Name: "b", From: "1", To: "3", ReservedKbps: 1200}
	if resp, err := g.setTunnels(context.Background(), &api.SetTunnelsRequest{DryRun: true, Tunnels: []*api.Tunnel{more}}); err != nil || codes.Code(resp.Outcomes[0].Code) != codes.ResourceExhausted {
		t.Error("a preview does not say that there is no room:", resp, err)
	}
	if _, err := g.repairer.set(context.Background(), more); api.KindOf(err) != codes.ResourceExhausted {
		t.Error(err)
	}
	g.passes("b", "1 4 3")
	g.want(&api.Tunnel{Name: "b", From: "1", To: "3", ReservedKbps: 950}) // what it has counts for itself
	g.passes("b", "1 4 3")
	g.setLink(3, 4, &api.LinkSettings{CapacityKbps: 100})
	g.repaired()
	if m := g.b.get("b"); m.State != "down" {
		t.Errorf("more is booked than the link has: %v", m)
	}
	if _, err := g.b.remove(context.Background(), "d", ""); err != nil {
		t.Fatal(err)
	}
	g.repaired()
	g.passes("a", "1 2 3")
}

func TestConstraints(t *testing.T) {
	g := newRig(t, append(ringOf(6), [2]flow.DPID{2, 5})...)
	g.tell()
	g.want(&api.Tunnel{Name: "a", From: "1", To: "4", Pin: []string{"6"}})
	g.passes("a", "1 6 5 4")
	g.want(&api.Tunnel{Name: "b", From: "1", To: "4", DiverseFrom: "a"})
	g.passes("b", "1 2 3 4")
	g.want(&api.Tunnel{Name: "c", From: "1", To: "4", ExcludeNodes: []string{"3", "6"}})
	g.passes("c", "1 2 5 4")
	g.want(&api.Tunnel{Name: "d", From: "1", To: "4", ExcludeLinks: []*api.Location{{Dpid: "1", Port: 6}, {Dpid: "2", Port: 3}}})
	g.passes("d", "1 2 5 4")
	if m := g.want(&api.Tunnel{Name: "e", From: "1", To: "4", MaxHops: 2}); m.State != "down" || m.Reason == "" {
		t.Errorf("%v", m)
	}
	if m := g.want(&api.Tunnel{Name: "f", From: "1", To: "4", DiverseFrom: "nobody"}); m.State != "down" || !strings.Contains(m.Reason, "there is no tunnel nobody") {
		t.Errorf("%v", m)
	}
	// Two that are to be apart from each other, at once.
	resp, err := g.setTunnels(context.Background(), &api.SetTunnelsRequest{Tunnels: []*api.Tunnel{
		{Name: "x", From: "1", To: "4", DiverseFrom: "y"}, {Name: "y", From: "1", To: "4", ExcludeNodes: []string{"5"}}}})
	if err != nil || resp.Outcomes[0].Result != "made" {
		t.Fatal(resp, err)
	}
	g.passes("y", "1 2 3 4")
	g.passes("x", "1 6 5 4")
	g.want(&api.Tunnel{Name: "a", From: "1", To: "4", Pin: []string{"3"}}) // other wishes, another path
	g.passes("a", "1 2 3 4")
	for _, m := range []*api.Tunnel{
		{SetupPriority: proto.Uint32(8)}, {SetupPriority: proto.Uint32(3), HoldPriority: proto.Uint32(4)}, {MaxHops: 300}, {Transport: "ipsec"}, {DiverseFrom: "z"},
		{Pin: []string{"1"}}, {Pin: []string{"2", "2"}}, {ExcludeNodes: []string{"x"}}, {ExcludeLinks: []*api.Location{nil}}, {RevertAfterS: -2}, {ReservedKbps: 1 << 60}, {IncludeAny: []string{"a b"}},
	} {
		m.Name, m.From, m.To = "z", "1", "4"
		if _, err := g.repairer.set(context.Background(), m); api.KindOf(err) != codes.InvalidArgument {
			t.Errorf("%v: %v", m, err)
		}
	}
}

// A drained link is left without loss; who cannot leave it stays, and says so. When it
// is back, tunnels return after their hold time, or not.
func TestDrainAndRevert(t *testing.T) {
	g := newRig(t, append(ringOf(6), [2]flow.DPID{6, 7})...)
	g.tell()
	g.want(&api.Tunnel{Name: "a", From: "1", To: "3", ReservedKbps: 600, RevertAfterS: 90})
	g.want(&api.Tunnel{Name: "b", From: "1", To: "3", RevertAfterS: -1})
	g.want(&api.Tunnel{Name: "c", From: "1", To: "3", Protect: true})
	g.want(&api.Tunnel{Name: "d", From: "2", To: "1", MaxHops: 1})
	g.after = func() {
		for _, m := range g.b.list() {
			if _, err := g.send(m); err != nil {
				t.Errorf("on the way: %s: %v", m.Name, err)
			}
		}
	}
	link := &api.DrainLinkRequest{A: &api.Location{Dpid: "1", Port: 2}, B: &api.Location{Dpid: "2", Port: 1}}
	if resp := g.drainLink(context.Background(), link); resp.Moved != 3 || len(resp.Stuck) != 1 || resp.Stuck[0].Name != "d" || resp.Stuck[0].Reason == "" || resp.Lost != 0 {
		t.Errorf("%v", resp)
	}
	g.setLink(1, 2, &api.LinkSettings{Drained: true})
	g.repair(context.Background())
	g.passes("a", "1 6 5 4 3")
	g.passes("b", "1 6 5 4 3")
	g.passes("c", "1 6 5 4 3")
	g.passes("d", "2 1")
	if m := g.b.get("d"); m.State != "up" || !strings.Contains(m.Reason, "drained") {
		t.Errorf("%v", m)
	}
	g.setLink(1, 2, nil)
	link.Undo = true
	g.drainLink(context.Background(), link)
	g.clock = g.clock.Add(89 * time.Second)
	g.repair(context.Background())
	g.passes("a", "1 6 5 4 3")
	g.clock = g.clock.Add(time.Second)
	if wait := g.next(); wait > 10*time.Millisecond {
		t.Errorf("seen to again after %v", wait)
	}
	g.repair(context.Background())
	g.passes("a", "1 2 3")
	g.passes("b", "1 6 5 4 3")
	if g.repaired(); g.b.get("c").State != "up" || g.b.get("d").Reason != "" {
		t.Errorf("%v", g.b.list())
	}
}

// Whatever happens, no link has more booked than it has, what is up arrives, and of
// two the more important has its bandwidth.
func TestRandomBookings(t *testing.T) {
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 2))
		cables := ringOf(7)
		for range 4 {
			a, b := flow.DPID(1+r.IntN(7)), flow.DPID(1+r.IntN(7))
			if a != b {
				cables = append(cables, [2]flow.DPID{a, b})
			}
		}
		g := newRig(t, cables...)
		store := wefttest.NewStore()
		g.start(store)
		g.tell()
		for range 40 {
			c := cables[r.IntN(len(cables))]
			switch r.IntN(8) {
			case 0:
				g.deaf[c[0]] = !g.deaf[c[0]]
			case 1:
				if _, err := g.b.remove(context.Background(), fmt.Sprint("t", r.IntN(10)), ""); err != nil {
					t.Fatal(err)
				}
			case 2:
				g.setLink(c[0], c[1], &api.LinkSettings{Drained: r.IntN(2) == 0, CapacityKbps: uint64(r.IntN(3)) * 700, RiskGroups: []string{fmt.Sprint(r.IntN(5))}})
			case 3:
				g.cut(c[0], c[1], !g.down[flow.Location{Switch: c[0], Port: flow.Port(c[1])}])
			case 4:
				if r.IntN(3) == 0 {
					g.start(store)
					g.tell()
				}
			default:
				from := flow.DPID(1 + r.IntN(7))
				setup := uint32(r.IntN(8))
				name := fmt.Sprint("t", r.IntN(10))
				if m := g.b.get(name); m != nil {
					from, _ = flow.ParseDPID(m.From)
				}
				m := &api.Tunnel{Name: name, From: from.String(), To: ((from+flow.DPID(r.IntN(6)))%7 + 1).String(), ReservedKbps: uint64(r.IntN(4)) * 300,
					Protect: r.IntN(3) == 0, SetupPriority: &setup, HoldPriority: proto.Uint32(uint32(r.IntN(int(setup) + 1)))}
				if _, err := g.repairer.set(context.Background(), m); err != nil && api.KindOf(err) != codes.ResourceExhausted {
					t.Fatal(err)
				}
			}
			if r.IntN(2) == 0 {
				g.repair(context.Background())
				if at, over := g.overbooked(); over {
					t.Fatalf("seed %d: too much is booked on %v: %v", seed, at, g.b.list())
				}
			}
		}
		clear(g.deaf)
		g.repaired()
		if at, over := g.overbooked(); over {
			t.Fatalf("seed %d: too much is booked on %v: %v", seed, at, g.b.list())
		}
		for _, m := range g.b.list() {
			detours := !g.b.whole(g.b.status[m.Name].entered.primary) // a bypass may take its frames
			if _, err := g.send(m); (err == nil) != (m.State != "down") && !(err == nil && detours) {
				t.Fatalf("seed %d: %v: %v", seed, m, err)
			}
		}
		booked := fmt.Sprint(g.b.booked.messages(nil) == nil)
		g.start(store)
		g.tell()
		g.repaired()
		if at, over := g.overbooked(); over || booked != fmt.Sprint(g.b.booked.messages(nil) == nil) {
			t.Fatalf("seed %d: after a restart: %v", seed, at)
		}
	}
}

// TestNextOfDown: a tunnel that lacks a path is sought after the time of Retry,
// though a better link has come since it was looked at.
func TestNextOfDown(t *testing.T) {
	g := newRig(t, [2]flow.DPID{1, 2})
	g.tell()
	g.add("a", 1, 2, false)
	g.repaired()
	g.deaf[1] = true
	g.cut(1, 2, true)
	g.repair(t.Context())
	g.b.mu.Lock()
	g.b.improved.last = g.clock
	g.b.mu.Unlock()
	g.clock = g.clock.Add(time.Hour)
	g.repair(t.Context())
	if wait := g.next(); wait != g.b.cfg.Retry {
		t.Errorf("the next look is in %v, want %v", wait, g.b.cfg.Retry)
	}
}
