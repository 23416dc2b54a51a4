package flowrules

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"

	"weft/api"
	"weft/flow"
)

func TestKeepsWhatIsRightOverRestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newRig(t, defaults(), 1)
		g.connect(1)
		for i := range 50 {
			g.add(wanted(1, uint32(100+i), 1, 2))
		}
		trap := &api.FlowEntry{Dpid: "1", Priority: 65535, Match: map[string]string{"eth_type": "0x88cc"}, Actions: []string{"output:controller"}}
		g.standing(1, "discovery", trap)
		route := entryOf(t, flow.OwnerRoutes, wanted(1, 10000, 3, 4))
		foreign := entryOf(t, flow.OwnerForeign, wanted(1, 7, 3, 4))
		foreign.Cookie = 0xabc
		extra := entryOf(t, flow.OwnerOperator, wanted(1, 8, 3, 4))
		g.with(1, func(s *fakeSwitch) {
			for _, e := range []flow.Entry{route, foreign, extra} {
				s.entries[e.Key()] = &fakeEntry{e, time.Now()}
			}
			for _, e := range s.entries { // one is lost, one is wrong
				switch e.Priority {
				case 103:
					delete(s.entries, e.Key())
				case 104:
					e.Apply = nil
				}
			}
			s.adds = nil
		})
		g.start(defaults())
		g.look(1)
		g.observed = nil
		g.connect(1)
		time.Sleep(time.Second)
		if resp := g.standing(1, "discovery", trap); resp.Kept != 1 || resp.Sent != 0 || len(resp.Failed) != 0 {
			t.Errorf("standing: %v", resp)
		}
		if s := g.sync(1); s.State != "in_sync" || s.Kept != 49 || s.Added != 2 || s.Removed != 1 || s.Foreign != 1 || s.Wanted != 51 || s.Confirmed != 51 {
			t.Errorf("%v", s)
		}
		g.with(1, func(s *fakeSwitch) {
			if len(s.adds) != 2 || s.rewrites != 0 || s.deletes != 1 || len(s.entries) != 53 {
				t.Errorf("%d sent, %d of them in vain, %d deleted, %d entries", len(s.adds), s.rewrites, s.deletes, len(s.entries))
			}
		})
		g.look(1)
		seen := map[string]int{}
		for _, o := range g.observed {
			seen[o.Owner] += 1 + len(o.Flows)
		}
		if got := fmt.Sprint(seen); got != "map[discovery:2 forwarding:1 hosts:1 operator:51 routes:2]" {
			t.Errorf("observed %v", got)
		}
	})
}

func TestStandingSendsOnlyTheDifference(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newRig(t, defaults(), 1)
		g.connect(1)
		a, b, c, b2 := wanted(1, 100, 1, 2), wanted(1, 101, 1, 2), wanted(1, 102, 1, 2), wanted(1, 101, 1, 3)
		if r := g.standing(1, "forwarding", a, b); r.Sent != 2 || r.Kept != 0 {
			t.Errorf("%v", r)
		}
		if r := g.standing(1, "forwarding", b, a); r.Sent != 0 || r.Kept != 2 {
			t.Errorf("the same again: %v", r)
		}
		if r := g.standing(1, "forwarding", b2, c); r.Sent != 3 || r.Kept != 0 {
			t.Errorf("one changed, one new, one too much: %v", r)
		}
		s := g.look(1)
		if len(s.adds) != 4 || s.deletes != 1 || s.rewrites != 0 || len(s.entries) != 2 {
			t.Errorf("%d sent, %d deleted, %d entries", len(s.adds), s.deletes, len(s.entries))
		}
	})
}

func TestStandingOfASwitchThatIsAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newRig(t, defaults(), 1)
		req := &api.SetStandingRequest{Dpid: "1", Owner: "hosts", Flows: []*api.FlowEntry{wanted(1, 100, 1, 2)}}
		if _, err := g.rules.SetStanding(t.Context(), req); api.KindOf(err) != codes.Unavailable {
			t.Errorf("never connected: %v, want Unavailable", err)
		}
		time.AfterFunc(100*time.Millisecond, func() { g.connect(1) })
		if _, err := g.rules.SetStanding(t.Context(), req); err != nil { // heard of the connection first
			t.Errorf("connecting: %v", err)
		}
		g.with(1, func(s *fakeSwitch) { s.late = 3 })
		time.AfterFunc(50*time.Millisecond, func() { g.disconnect(1) })
		req.Flows = append(req.Flows, wanted(1, 101, 1, 2))
		if _, err := g.rules.SetStanding(t.Context(), req); api.KindOf(err) != codes.Unavailable {
			t.Errorf("lost meanwhile: %v, want Unavailable", err)
		}
		if s := g.sync(1); s.State != "away" || s.Wanted != 0 {
			t.Errorf("%v: a service's set ends with the session", s)
		}
	})
}

func TestStandingIsChecked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newRig(t, defaults(), 1)
		g.connect(1)
		other := wanted(1, 100, 1, 2)
		other.Cookie = "5745030000000001"
		for _, req := range []*api.SetStandingRequest{
			{Dpid: "x", Owner: "hosts"}, {Dpid: "1", Owner: "routes"}, {Dpid: "1", Owner: "operator"}, {Dpid: "1", Owner: ""},
			{Dpid: "1", Owner: "hosts", Flows: []*api.FlowEntry{wanted(2, 1, 1, 1)}},
			{Dpid: "1", Owner: "hosts", Flows: []*api.FlowEntry{other}},
			{Dpid: "1", Owner: "hosts", Flows: []*api.FlowEntry{wanted(1, 70000, 1, 1)}},
			{Dpid: "1", Owner: "hosts", Flows: []*api.FlowEntry{{Dpid: "1", Match: map[string]string{"tcp_dst": "1"}}}},
		} {
			if _, err := g.rules.SetStanding(t.Context(), req); api.KindOf(err) != codes.InvalidArgument {
				t.Errorf("%v: %v, want InvalidArgument", req, err)
			}
		}
	})
}

// Two writers of the same key: the services come before the operator, and the
// one that was first among services; nobody is overwritten in silence.
func TestSameKeyTwoOwners(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newRig(t, defaults(), 1)
		mine := wanted(1, 100, 1, 9)
		g.add(mine)
		g.connect(1)
		g.standing(1, "forwarding", wanted(1, 100, 1, 2))
		if s := g.sync(1); s.State != "failing" || s.Failed != 1 {
			t.Errorf("%v", s)
		}
		if _, err := g.rules.AddFlows(t.Context(), &api.AddFlowsRequest{Flows: []*api.FlowEntry{mine}}); api.KindOf(err) != codes.FailedPrecondition || !strings.Contains(err.Error(), "forwarding") {
			t.Errorf("%v: want FailedPrecondition that names forwarding", err)
		}
		if r := g.standing(1, "hosts", wanted(1, 100, 1, 3)); len(r.Failed) != 1 {
			t.Errorf("hosts: %v", r)
		}
		if n := len(g.look(1).entries); n != 1 {
			t.Errorf("%d entries", n)
		}
		g.standing(1, "forwarding")
		time.Sleep(time.Second)
		if l := g.list(1); l[100] != "confirmed" || g.sync(1).State != "in_sync" {
			t.Errorf("the operator's has not come back: %v", l)
		}
		if s := g.look(1); s.deletes != 0 || s.adds[len(s.adds)-1].Cookie.Owner() != flow.OwnerOperator {
			t.Errorf("%d deletes", s.deletes)
		}
	})
}

func TestFlowRemoved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newRig(t, defaults(), 1)
		g.connect(1)
		idle := wanted(1, 100, 1, 2)
		idle.IdleTimeout = 10
		g.add(idle, wanted(1, 101, 1, 2))
		lose := func(priority uint16, reason string) {
			g.with(1, func(s *fakeSwitch) {
				for k := range s.entries {
					if k.Priority == priority {
						s.lose(k, reason)
					}
				}
			})
			time.Sleep(20 * time.Second)
		}
		lose(100, "idle_timeout")
		if l := g.list(1); len(l) != 1 || g.store.size() != 1 {
			t.Errorf("idle: %v is still desired, %d stored", l, g.store.size())
		}
		for i := range 5 {
			lose(101, "delete")
			if l := g.list(1); l[101] != "confirmed" || len(g.look(1).entries) != 1 {
				t.Errorf("deleted by somebody %d times: %v", i+1, l)
			}
		}
		if n := g.tallies.get("restored"); n != 5 {
			t.Errorf("counted %d", n)
		}
		g.add(wanted(1, 101, 1, 7))
		old := entryOf(t, flow.OwnerOperator, wanted(1, 101, 1, 2))
		n := len(g.look(1).adds)
		g.rules.FlowRemoved(t.Context(), &api.FlowRemoved{Flow: api.NewFlowEntry(1, &old), Reason: "delete"})
		time.Sleep(time.Second)
		if len(g.look(1).adds) != n {
			t.Error("a late message about an entry that was replaced has it written again")
		}
	})
}

func TestVerifyRepairs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newRig(t, defaults(), 1)
		g.connect(1)
		g.add(wanted(1, 100, 1, 2), wanted(1, 101, 1, 2), wanted(1, 102, 1, 2))
		g.standing(1, "discovery", wanted(1, 200, 1, 2))
		stray := entryOf(t, flow.OwnerDiscovery, wanted(1, 201, 1, 2))
		g.with(1, func(s *fakeSwitch) {
			for k, e := range s.entries {
				switch k.Priority {
				case 100, 200:
					delete(s.entries, k) // without a word
				case 101:
					e.Apply = nil
				}
			}
			s.entries[stray.Key()] = &fakeEntry{stray, time.Now()}
		})
		time.Sleep(2 * time.Minute)
		s := g.look(1)
		if len(s.entries) != 4 || s.rewrites != 0 || len(s.adds) != 4+3 {
			t.Errorf("%d entries, %d sent, %d in vain", len(s.entries), len(s.adds), s.rewrites)
		}
		for fault, n := range map[string]int{"missing": 2, "changed": 1, "extra": 1} {
			if got := g.tallies.get("repaired fault " + fault); got != n {
				t.Errorf("%s counted %d, want %d", fault, got, n)
			}
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

// 1,000 switches that connect at once, with two services' sets and one entry of
// the operator's each, are read and written a few at a time.
func TestThousandSwitches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var all []flow.DPID
		for i := range 1000 {
			all = append(all, flow.DPID(i+1))
		}
		g := newRig(t, defaults(), all...)
		var flows []*api.FlowEntry
		for _, sw := range all {
			flows = append(flows, wanted(sw, 100, 1, 2))
		}
		g.add(flows...)
		var wg sync.WaitGroup
		for _, sw := range all {
			g.connect(sw)
			for _, owner := range []string{"discovery", "forwarding"} {
				wg.Go(func() {
					req := &api.SetStandingRequest{Dpid: sw.String(), Owner: owner, Flows: []*api.FlowEntry{wanted(sw, 200+uint32(len(owner)), 1, 2)}}
					if resp, err := g.rules.SetStanding(context.Background(), req); err != nil || len(resp.Failed) > 0 {
						t.Errorf("switch %v: %v, %v", sw, resp, err)
					}
				})
			}
		}
		wg.Wait()
		time.Sleep(time.Second)
		if n := g.rules.Totals(); n.InSync != 1000 || n.Confirmed != 3000 {
			t.Errorf("%+v", n)
		}
		time.Sleep(10 * time.Minute)
		for _, sw := range all {
			if s := g.look(sw); len(s.adds) != 3 || s.rewrites > 0 || s.crossed {
				t.Errorf("switch %v: %d sent, %d in vain, crossed %v", sw, len(s.adds), s.rewrites, s.crossed)
			}
		}
	})
}

func TestStoreFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newRig(t, defaults(), 1)
		g.connect(1)
		g.add(wanted(1, 100, 1, 2))
		g.store.fails = errors.New("disk full")
		_, err := g.rules.AddFlows(t.Context(), &api.AddFlowsRequest{Flows: []*api.FlowEntry{wanted(1, 101, 1, 2)}})
		if api.KindOf(err) != codes.Unavailable || !strings.Contains(err.Error(), "disk full") {
			t.Errorf("%v", err)
		}
		if _, err = g.rules.DeleteFlows(t.Context(), &api.DeleteFlowsRequest{AllOf: "all"}); api.KindOf(err) != codes.Unavailable {
			t.Errorf("%v", err)
		}
		if l := g.list(1); len(l) != 1 || l[100] != "confirmed" || len(g.look(1).adds) != 1 {
			t.Errorf("%v: want what is stored, and nothing else", l)
		}
	})
}

func TestLoadLeavesOutWhatItCannotRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newRig(t, defaults(), 1)
		g.add(wanted(1, 100, 1, 2))
		for key, value := range g.store.values {
			g.store.values["0000000000000001/00"] = value // not its key
			g.store.values["0000000000000001/01"] = []byte("{")
			g.store.values["0000000000000001/02"] = []byte(`{"flow":{"dpid":"1","priority":65535}}`)
			_ = key
			break
		}
		g.start(defaults())
		g.connect(1)
		time.Sleep(time.Second)
		if l := g.list(1); len(l) != 1 || l[100] != "confirmed" || g.tallies.get("store_errors") != 3 {
			t.Errorf("%v, %d counted", l, g.tallies.get("store_errors"))
		}
	})
}

func TestLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := defaults()
		cfg.MaxFlows = 2
		g := newRig(t, cfg, 1)
		g.add(wanted(1, 100, 1, 2), wanted(1, 101, 1, 2))
		g.add(wanted(1, 101, 1, 3)) // replaces
		_, err := g.rules.AddFlows(t.Context(), &api.AddFlowsRequest{Flows: []*api.FlowEntry{wanted(1, 102, 1, 2)}})
		if api.KindOf(err) != codes.ResourceExhausted {
			t.Errorf("%v", err)
		}
		if _, err := g.rules.DeleteFlows(t.Context(), &api.DeleteFlowsRequest{Flows: []*api.FlowEntry{wanted(1, 100, 1, 2)}}); err != nil {
			t.Fatal(err)
		}
		g.add(wanted(1, 102, 1, 2))
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

func TestConfigValidate(t *testing.T) {
	if err := defaults().Validate(); err != nil {
		t.Fatal(err)
	}
	for key, change := range map[string]func(*Config){
		"deadline": func(c *Config) { c.Deadline = 0 }, "verify_interval": func(c *Config) { c.VerifyInterval = 1 },
		"max_batch": func(c *Config) { c.MaxBatch = 0 }, "rate": func(c *Config) { c.Rate = -1 },
		"retries": func(c *Config) { c.Retries = 11 }, "parallel": func(c *Config) { c.Parallel = 0 },
	} {
		c := defaults()
		change(c)
		if err := c.Validate(); err == nil || !strings.HasPrefix(err.Error(), key+":") {
			t.Errorf("%s: error %v", key, err)
		}
	}
}
