package flowrules

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
)

func TestTableFull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newRig(t, defaults(), 1)
		g.net.switches[1].room = 3
		g.connect(1)
		var flows []*api.FlowEntry
		for i := range 5 {
			flows = append(flows, wanted(1, uint32(100+i), 1, 2))
		}
		failed := 0
		for _, f := range g.add(flows...) {
			if f.State == "failed" && strings.Contains(f.Reason, "TABLE_FULL") {
				failed++
			}
		}
		if failed != 2 || g.sync(1).State != "failing" {
			t.Errorf("%d failed for want of room, want 2", failed)
		}
		time.Sleep(10 * time.Minute)
		if n := len(g.look(1).adds); n > 5+2*11 {
			t.Errorf("%d flow-mods to a full table in ten minutes", n)
		}
		// Room is used as soon as there is some.
		if _, err := g.rules.DeleteFlows(t.Context(), &api.DeleteFlowsRequest{Flows: flows[4:]}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		if s := g.sync(1); s.Confirmed != 3 || s.Failed != 1 {
			t.Errorf("after one was deleted: %v", s)
		}
	})
	// A set that fits only once the one before is gone is installed.
	synctest.Test(t, func(t *testing.T) {
		g := newRig(t, defaults(), 1)
		g.net.switches[1].room = 3
		g.connect(1)
		g.standing(1, "hosts", wanted(1, 100, 1, 2), wanted(1, 101, 1, 2), wanted(1, 102, 1, 2))
		if r := g.standing(1, "hosts", wanted(1, 200, 1, 2), wanted(1, 201, 1, 2), wanted(1, 202, 1, 2)); len(r.Failed) != 0 {
			t.Errorf("%v", r)
		}
	})
}

func TestLateSwitch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newRig(t, defaults(), 1, 2)
		g.connect(1)
		g.connect(2)
		time.Sleep(time.Second)
		g.with(1, func(s *fakeSwitch) { s.late = 2 })
		began := time.Now()
		for _, f := range g.add(wanted(1, 100, 1, 2), wanted(2, 100, 1, 2)) {
			if f.State != "confirmed" {
				t.Errorf("%v", f)
			}
		}
		if d := time.Since(began); d < 300*time.Millisecond || d > 400*time.Millisecond {
			t.Errorf("confirmed after %v, want two pauses: 100 and 200 ms", d)
		}
		g.with(1, func(s *fakeSwitch) { s.late = 1000 })
		began = time.Now()
		f := g.add(wanted(1, 101, 1, 2))[0]
		if f.State != "failed" || !strings.Contains(f.Reason, "not answered") || time.Since(began) > time.Second {
			t.Errorf("%v after %v", f, time.Since(began))
		}
		g.with(1, func(s *fakeSwitch) { s.late = 0 })
		time.Sleep(20 * time.Second)
		if l := g.list(1); l[101] != "confirmed" {
			t.Errorf("%v: not tried again", l)
		}
	})
}

func TestPaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := defaults()
		cfg.Rate, cfg.MaxBatch, cfg.Deadline = 100, 10, time.Minute
		g := newRig(t, cfg, 1)
		g.connect(1)
		var flows []*api.FlowEntry
		for i := range 500 {
			flows = append(flows, wanted(1, uint32(100+i), 1, 2))
		}
		began := time.Now()
		g.add(flows...)
		if d := time.Since(began); d < 4900*time.Millisecond || d > 5500*time.Millisecond {
			t.Errorf("500 entries at 100 a second took %v", d)
		}
		if s := g.look(1); s.batches != 50 || s.crossed {
			t.Errorf("%d batches of at most 10; two at once: %v", s.batches, s.crossed)
		}
	})
}

// A switch that cannot carry out a whole batch in time gets smaller ones.
func TestSlowSwitchSmallerBatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newRig(t, defaults(), 1)
		g.net.switches[1].slow = 10
		g.connect(1)
		var flows []*api.FlowEntry
		for i := range 300 {
			flows = append(flows, wanted(1, uint32(100+i), 1, 2))
		}
		g.add(flows...)
		time.Sleep(30 * time.Second)
		if s := g.sync(1); s.State != "in_sync" || s.Confirmed != 300 {
			t.Errorf("%v", s)
		}
	})
}

// A switch that does not answer at all holds up its own entries and no other's.
func TestSilentSwitchAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newRig(t, defaults(), 1, 2)
		silent := &silentNetwork{Network: g.net, sw: 1}
		g.rules.net = silent
		g.connect(1)
		g.connect(2)
		began := time.Now()
		if f := g.add(wanted(2, 100, 1, 2))[0]; f.State != "confirmed" || time.Since(began) > 100*time.Millisecond {
			t.Errorf("%v after %v", f, time.Since(began))
		}
		if f := g.add(wanted(1, 100, 1, 2))[0]; f.State != "requested" || time.Since(began) > 6*time.Second {
			t.Errorf("%v after %v", f, time.Since(began))
		}
	})
}

// A switch that tells an entry in its own way is not written to for ever.
func TestSwitchWithAWayOfItsOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newRig(t, defaults(), 1)
		g.net.switches[1].distort = func(e *flow.Entry) { e.Flags = 0 }
		g.connect(1)
		g.add(wanted(1, 100, 1, 2))
		time.Sleep(time.Hour)
		if n := len(g.look(1).adds); n != 1+quirkMax {
			t.Errorf("sent %d times, want %d", n, 1+quirkMax)
		}
		if l := g.list(1); l[100] != "confirmed: "+reasonTold {
			t.Errorf("%v", l)
		}
	})
}

func TestOpenFlow10TellsNoFlags(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newRig(t, defaults(), 1)
		g.net.switches[1].version = "1.0"
		g.net.switches[1].distort = func(e *flow.Entry) { e.Flags = 0 }
		g.connect(1)
		g.add(wanted(1, 100, 1, 2))
		time.Sleep(time.Hour)
		if n := len(g.look(1).adds); n != 1 {
			t.Errorf("sent %d times", n)
		}
		if _, err := g.rules.DeleteFlows(t.Context(), &api.DeleteFlowsRequest{AllOf: "all"}); err != nil || len(g.look(1).entries) != 0 {
			t.Errorf("%v, %d entries left", err, len(g.look(1).entries))
		}
	})
}

// silentNetwork never answers for one switch.
type silentNetwork struct {
	Network
	sw flow.DPID
}

func (n *silentNetwork) ReadFlows(ctx context.Context, sw flow.DPID) ([]*api.FlowEntry, error) {
	if sw == n.sw {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return n.Network.ReadFlows(ctx, sw)
}

// TestSwitchThatTellsNothing: a switch that does not say what entries it has, or
// will not, is served all the same after some tries. What it has is verified once
// it does say.
func TestSwitchThatTellsNothing(t *testing.T) {
	for name, refusal := range map[string]error{
		"no answer": api.Errorf(codes.DeadlineExceeded, "switch 1 has not answered within 5s"),
		"refusal":   api.Errorf(codes.Unimplemented, "switch 1: OFPET_BAD_REQUEST OFPBRC_BAD_MULTIPART"),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := newRig(t, defaults(), 1)
				stale := entryOf(t, flow.OwnerOperator, wanted(1, 7, 1, 2))
				wrong := entryOf(t, flow.OwnerOperator, wanted(1, 100, 1, 9))
				g.with(1, func(s *fakeSwitch) {
					s.mute = refusal
					for _, e := range []flow.Entry{stale, wrong} {
						s.entries[e.Key()] = &fakeEntry{e, time.Now().Add(-time.Hour)}
					}
				})
				g.add(wanted(1, 100, 1, 2))
				g.connect(1)
				time.Sleep(20 * time.Second)
				if r := g.standing(1, "hosts", wanted(1, 200, 1, 3)); len(r.Failed) > 0 || r.Sent != 1 {
					t.Fatalf("%v", r)
				}
				g.with(1, func(s *fakeSwitch) {
					if len(s.entries) != 3 || s.entries[wrong.Key()].Apply[0] != flow.Output(2) || s.deletes > 0 {
						t.Errorf("%v, %d deleted", s.entries, s.deletes)
					}
				})
				if s := g.sync(1); s.State != "unknown" || s.Unread != refusal.Error() || s.Confirmed != 2 {
					t.Errorf("%v", s)
				}
				if n := g.rules.Totals(); n.Unknown != 1 || n.AwaySwitches != 0 {
					t.Errorf("%+v", n)
				}
				g.mu.Lock()
				if len(g.observed) != len(owners()) {
					t.Errorf("%d observations, want one of each of %d owners", len(g.observed), len(owners()))
				}
				g.mu.Unlock()
				time.Sleep(10 * time.Minute)
				if n := g.tallies.get("read_errors"); n < 3 || n > 20 {
					t.Errorf("it has been asked %d times in ten minutes", n)
				}
				g.with(1, func(s *fakeSwitch) { s.mute = nil })
				time.Sleep(2 * time.Minute)
				g.with(1, func(s *fakeSwitch) {
					if len(s.entries) != 2 || s.entries[stale.Key()] != nil {
						t.Errorf("what is not ours any more has not gone: %v", s.entries)
					}
				})
				if s := g.sync(1); s.State != "in_sync" || s.Unread != "" {
					t.Errorf("%v", s)
				}
			})
		})
	}
	// One that is away for a moment is read when it is back.
	synctest.Test(t, func(t *testing.T) {
		g := newRig(t, defaults(), 1)
		g.with(1, func(s *fakeSwitch) { s.late = 10 })
		g.connect(1)
		time.Sleep(20 * time.Minute)
		if s := g.sync(1); s.State != "in_sync" || s.Unread != "" {
			t.Errorf("%v", s)
		}
	})
}
