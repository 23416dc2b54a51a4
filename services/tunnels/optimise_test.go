package tunnels

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/wefttest"
)

func (g *rig) optimise(m *api.OptimiseTunnelsRequest) *api.OptimiseTunnelsResponse {
	g.t.Helper()
	resp, err := newOptimiser(g.repairer).optimise(g.t.Context(), m)
	if err != nil {
		g.t.Fatal(err)
	}
	return resp
}

// together returns a ring of six on which two tunnels share one of two ways, as each of them by itself is
// placed best.
func together(t *testing.T) (*rig, *wefttest.Store) {
	g := newRig(t, ringOf(6)...)
	store := wefttest.NewStore()
	g.start(store)
	g.tell()
	g.want(&api.Tunnel{Name: "a", From: "1", To: "4", ReservedKbps: 300})
	g.want(&api.Tunnel{Name: "b", From: "1", To: "4", ReservedKbps: 400})
	g.passes("a", "1 2 3 4")
	g.passes("b", "1 2 3 4")
	return g, store
}

// TestOptimise: tunnels part, without a frame being lost; a dry run and too small a gain change nothing.
// Neither time nor a restart has them go back to the cheaper way, but a failure and the loss of
// the reason do.
func TestOptimise(t *testing.T) {
	g, store := together(t)
	g.setLink(4, 5, &api.LinkSettings{Metric: 20}) // the other way is not as cheap
	plan := g.optimise(&api.OptimiseTunnelsRequest{DryRun: true})
	if len(plan.Moves) != 1 || plan.Moves[0].State != "planned" || plan.Gain < 50 || plan.Bound >= plan.MeanDelayAfter || plan.MeanDelayAfter >= plan.MeanDelay ||
		plan.WorstLoad != 0.7 || plan.WorstLoadAfter != 0.4 || plan.WorstLink == nil || plan.Tunnels != 2 || plan.Fixed != 0 {
		t.Errorf("%v", plan)
	}
	moved := plan.Moves[0].Tunnel
	if small := g.optimise(&api.OptimiseTunnelsRequest{GainPercent: proto.Uint32(90)}); len(small.Moves) != 0 || !strings.Contains(small.Reason, "less than 90 %") || small.MeanDelayAfter != small.MeanDelay {
		t.Errorf("%v", small)
	}
	g.passes(moved, "1 2 3 4")
	g.after = func() {
		for _, m := range g.b.list() {
			if _, err := g.send(m); err != nil {
				t.Errorf("on the way: %s: %v", m.Name, err)
			}
		}
	}
	done := g.optimise(&api.OptimiseTunnelsRequest{})
	if len(done.Moves) != 1 || done.Moves[0].State != "moved" || done.MeanDelayAfter != plan.MeanDelayAfter || done.Reason != "" {
		t.Errorf("%v", done)
	}
	g.passes(moved, "1 6 5 4")
	if again := g.optimise(&api.OptimiseTunnelsRequest{GainPercent: proto.Uint32(0)}); len(again.Moves) != 0 || again.Reason == "" {
		t.Errorf("%v", again)
	}
	g.repaired()
	g.passes(moved, "1 6 5 4")
	g.start(store)
	g.tell()
	g.repaired()
	g.passes(moved, "1 6 5 4")
	if m := g.b.get(moved); !m.Optimised {
		t.Errorf("%v", m)
	}
	g.after = func() {}
	g.cut(5, 6, true)
	g.repaired()
	g.passes(moved, "1 2 3 4")
	g.cut(5, 6, false)
	g.repaired()
	if m := g.b.get(moved); m.Optimised {
		t.Errorf("it is where a failure has brought it: %v", m)
	}
	for _, q := range []*api.OptimiseTunnelsRequest{{GainPercent: proto.Uint32(101)}, {AtOnce: 65}} {
		if _, err := newOptimiser(g.repairer).optimise(t.Context(), q); api.KindOf(err) != codes.InvalidArgument {
			t.Errorf("%v: %v", q, err)
		}
	}
}

// TestOptimiseStays: who is pinned, moves only when it must, or is to be diverse from who
// books nothing, stays.
func TestOptimiseStays(t *testing.T) {
	g, _ := together(t)
	g.want(&api.Tunnel{Name: "free", From: "3", To: "2"})
	for _, change := range []*api.Tunnel{{RevertAfterS: -1}, {Pin: []string{"3"}}, {MaxHops: 3, ExcludeNodes: []string{"6"}}} {
		for _, name := range []string{"a", "b"} {
			m := g.b.get(name)
			w := proto.CloneOf(change)
			w.Name, w.From, w.To, w.ReservedKbps = name, m.From, m.To, m.ReservedKbps
			g.want(w)
		}
		if resp := g.optimise(&api.OptimiseTunnelsRequest{}); len(resp.Moves) != 0 || resp.Reason == "" || resp.MeanDelay == 0 {
			t.Errorf("%v: %v", change, resp)
		}
	}
	g.want(&api.Tunnel{Name: "a", From: "1", To: "4", ReservedKbps: 300, ExcludeAny: []string{"slow"}})
	g.setLink(5, 6, &api.LinkSettings{Colours: []string{"slow"}})
	if resp := g.optimise(&api.OptimiseTunnelsRequest{}); len(resp.Moves) != 0 {
		t.Errorf("a link of a colour that is excluded: %v", resp)
	}
	g.setLink(5, 6, nil)
	g.want(&api.Tunnel{Name: "d", From: "5", To: "6", DiverseFrom: "a"})
	if resp := g.optimise(&api.OptimiseTunnelsRequest{}); len(resp.Moves) != 0 || resp.Fixed != 1 {
		t.Errorf("beside a tunnel that is diverse from it: %v", resp)
	}
}

// TestOptimiseLate: where something has happened since a path was found, the tunnel stays.
func TestOptimiseLate(t *testing.T) {
	for name, happens := range map[string]func(g *rig){
		"no room": func(g *rig) { g.want(&api.Tunnel{Name: "c", From: "6", To: "5", ReservedKbps: 800}) },
		"drained": func(g *rig) { g.setLink(5, 6, &api.LinkSettings{Drained: true}) },
		"cut":     func(g *rig) { g.cut(5, 6, true) },
		"deaf":    func(g *rig) { g.deaf[5] = true },
		"deleted": func(g *rig) {
			_, _ = g.b.remove(context.Background(), "a", "")
			_, _ = g.b.remove(context.Background(), "b", "")
		},
		"the time": func(*rig) {},
	} {
		g, _ := together(t)
		o := newOptimiser(g.repairer)
		p := newProblem(g.b, func(string) bool { return false })
		to := p.Present()
		to.Improve(moveLeast)
		step := to.Moves(1)[0]
		moved := []*api.TunnelMove{{Tunnel: p.demands[step[0].Demand].t.name}}
		happens(g)
		ctx, cancel := context.WithCancel(t.Context())
		if name == "the time" {
			g.turn <- struct{}{}
			cancel()
		}
		if o.step(ctx, p, step, moved); moved[0].State != "failed" || moved[0].Reason == "" {
			t.Errorf("%s: %v", name, moved)
		}
		cancel()
		if name != "deleted" {
			g.passes("a", "1 2 3 4")
			g.passes("b", "1 2 3 4")
		}
	}
}

// TestOptimiseAgain: the continuous optimisation leaves a tunnel that it has moved for two rounds.
func TestOptimiseAgain(t *testing.T) {
	g, _ := together(t)
	g.b.cfg.Optimise = Optimise{Every: time.Hour, Gain: 5}
	o := newOptimiser(g.repairer)
	o.again(t.Context())
	var moved, other string
	for _, name := range []string{"a", "b"} {
		if !o.moved[name].IsZero() {
			moved = name
		} else {
			other = name
		}
	}
	g.passes(moved, "1 6 5 4")
	if _, err := g.b.remove(t.Context(), other, ""); err != nil {
		t.Fatal(err)
	}
	g.want(&api.Tunnel{Name: "c", From: "6", To: "5", ReservedKbps: 500, MaxHops: 1})
	o.again(t.Context())
	g.passes(moved, "1 6 5 4")
	g.clock = g.clock.Add(2 * time.Hour)
	o.again(t.Context())
	g.passes(moved, "1 2 3 4")
	for _, bad := range []Optimise{{Every: time.Second}, {Every: 1e6 * time.Hour}, {Gain: 101}} {
		cfg := defaults()
		if cfg.Optimise = bad; cfg.Validate() == nil {
			t.Errorf("%+v is not refused", bad)
		}
	}
}

// TestOptimiseFollow: tunnels are optimised as often as is configured, and by default never.
func TestOptimiseFollow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, _ := together(t)
		o := newOptimiser(g.repairer)
		o.follow(t.Context()) // it returns at once: that is never
		g.b.cfg.Optimise.Every = time.Hour
		ctx, end := context.WithCancel(t.Context())
		go o.follow(ctx)
		time.Sleep(time.Hour - 1)
		synctest.Wait()
		g.passes("a", "1 2 3 4")
		g.passes("b", "1 2 3 4")
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		if len(o.moved) != 1 {
			t.Errorf("moved %v", o.moved)
		}
		end()
	})
}

// TestOptimiseKilled: whenever the service ends while tunnels move, none is lost, none books twice,
// and no link has more booked than it has.
func TestOptimiseKilled(t *testing.T) {
	moves := 0
	for seed := range uint64(30) {
		r := rand.New(rand.NewPCG(seed, 5))
		cables := append(ringOf(7), [2]flow.DPID{1, 4}, [2]flow.DPID{2, 6})
		g := newRig(t, cables...)
		store := wefttest.NewStore()
		g.start(store)
		g.tell()
		for i := range 14 {
			from := flow.DPID(1 + r.IntN(7))
			g.want(&api.Tunnel{Name: fmt.Sprint("t", i), From: from.String(), To: ((from+flow.DPID(r.IntN(6)))%7 + 1).String(), ReservedKbps: uint64(1+r.IntN(3)) * 100,
				Protect: r.IntN(3) == 0, MaxHops: uint32(r.IntN(3) * 4)})
		}
		up := map[string]*api.Tunnel{}
		for _, m := range g.b.list() {
			if m.State == "up" {
				up[m.Name] = m
			}
		}
		left := r.IntN(40)
		ctx, kill := context.WithCancel(t.Context())
		g.after = func() {
			if left--; left > 0 {
				return
			}
			kill()
			for sw := range flow.DPID(8) {
				g.deaf[sw] = true // what is under way does not arrive
			}
		}
		resp, err := newOptimiser(g.repairer).optimise(ctx, &api.OptimiseTunnelsRequest{GainPercent: proto.Uint32(1), AtOnce: uint32(1 + r.IntN(4))})
		kill()
		if err != nil {
			t.Fatal(err)
		}
		moves += len(resp.Moves)
		g.after = func() {}
		clear(g.deaf)
		g.start(store)
		g.tell()
		for sw := range g.has {
			g.dirty[sw] = true
		}
		g.repaired()
		if at, over := g.overbooked(); over {
			t.Fatalf("seed %d: too much is booked on %v", seed, at)
		}
		sums := bookings{}
		for _, s := range g.b.status {
			seen := map[flow.Location]bool{}
			for _, p := range s.tunnel.paths(onPrimary) {
				for _, at := range p.via() {
					if kbps := s.tunnel.wanted.ReservedKbps; kbps > 0 && !seen[at] {
						seen[at] = true
						sums.add(at, 7, kbps)
					}
				}
			}
		}
		for at, sum := range g.b.booked {
			if sums.sum(at) != sum[7] || len(sums) != len(g.b.booked) {
				t.Fatalf("seed %d: %v are booked on %v, tunnels have %d", seed, sum, at, sums.sum(at))
			}
		}
		for name, was := range up {
			m := g.b.get(name)
			if _, err := g.send(m); err != nil || m.State != "up" || m.Group != was.Group {
				t.Fatalf("seed %d: %v: %v; before %v", seed, m, err, was)
			}
			if m.Protect && !slices.Equal(m.Path, names(g.b.status[name].tunnel.primary)) {
				t.Fatalf("seed %d: %v", seed, m)
			}
		}
	}
	if moves < 30 {
		t.Errorf("%d moves", moves)
	}
}
