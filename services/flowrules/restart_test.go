package flowrules

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/wefttest"
)

// restart is the service alone started anew: the switch stays as it is, and
// its connection is told again.
func (g *rig) restart(sw flow.DPID) {
	g.start(g.rules.cfg)
	g.observed = nil
	g.connect(sw)
	synctest.Wait()
	time.Sleep(10 * time.Millisecond)
	synctest.Wait()
}

// written returns what a switch has been sent so far.
func (s *fakeSwitch) written() string {
	return fmt.Sprintf("%d adds, %d deletes", len(s.adds), s.deletes)
}

// seenBy returns how often the entries of an owner were made known, and how
// many there were last.
func (g *rig) seenBy(owner flow.Owner) (times, entries int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, e := range g.observed {
		if e.Owner == owner.String() {
			times, entries = times+1, len(e.Flows)
		}
	}
	return times, entries
}

// TestRestartLeavesWhatIsNotDeclaredYet has the owners declare their sets one
// after the other, one of them late.
func TestRestartLeavesWhatIsNotDeclaredYet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newRig(t, defaults(), 1)
		g.connect(1)
		trap, miss, flood := wanted(1, 65535, 1, 2), wanted(1, 0, 1, 2), wanted(1, 30000, 1, 2)
		g.add(wanted(1, 100, 1, 2))
		g.standing(1, "discovery", trap)
		g.standing(1, "forwarding", miss, flood)
		before := g.look(1).written()

		g.restart(1)
		for _, o := range owners() {
			want := map[flow.Owner]int{flow.OwnerDiscovery: 1, flow.OwnerForwarding: 2, flow.OwnerOperator: 1}[o]
			if times, entries := g.seenBy(o); times != 1 || entries != want {
				t.Errorf("%v: made known %d times, %d entries; want once, %d", o, times, entries, want)
			}
		}
		if r := g.standing(1, "discovery", trap); r.Kept != 1 || r.Sent != 0 {
			t.Errorf("discovery declares again: %v", r)
		}
		time.Sleep(5 * time.Minute) // verified several times
		if now := g.look(1).written(); now != before || len(g.look(1).entries) != 4 {
			t.Errorf("%s, before the restart %s; %d entries", now, before, len(g.look(1).entries))
		}
		if r := g.standing(1, "forwarding", miss, flood); r.Kept != 2 || r.Sent != 0 {
			t.Errorf("forwarding declares late: %v", r)
		}
		if now := g.look(1).written(); now != before {
			t.Errorf("%s, before the restart %s", now, before)
		}
	})
}

// TestRestartLeavesShadowedOperator has the operator want what a service has:
// the service's stays until it says that it does not want it any more.
func TestRestartLeavesShadowedOperator(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newRig(t, defaults(), 1)
		g.add(wanted(1, 100, 1, 9))
		g.connect(1)
		g.standing(1, "forwarding", wanted(1, 100, 1, 2))
		before := g.look(1).written()
		g.restart(1)
		time.Sleep(2 * time.Minute)
		if now := g.look(1).written(); now != before {
			t.Errorf("%s, before the restart %s", now, before)
		}
		if _, err := g.rules.AddFlows(t.Context(), &api.AddFlowsRequest{Flows: []*api.FlowEntry{wanted(1, 100, 1, 9)}}); api.KindOf(err) != codes.FailedPrecondition {
			t.Errorf("%v: want FailedPrecondition: forwarding has that entry", err)
		}
		g.standing(1, "forwarding")
		time.Sleep(time.Second)
		if l := g.list(1); l[100] != "confirmed" || g.sync(1).State != "in_sync" {
			t.Errorf("the operator's has not come back: %v", l)
		}
	})
}

// TestRepeatedConnection: the southbound has started again, or an event comes
// twice; the switch has what it had.
func TestRepeatedConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newRig(t, defaults(), 1)
		g.connect(1)
		g.add(wanted(1, 100, 1, 2))
		g.standing(1, "discovery", wanted(1, 65535, 1, 2))
		before := g.look(1).written()
		g.observed = nil
		g.connect(1) // without having left
		time.Sleep(time.Second)
		if times, _ := g.seenBy(flow.OwnerDiscovery); times != 1 {
			t.Errorf("made known %d times, want once: the owner is to declare again", times)
		}
		if r := g.standing(1, "discovery", wanted(1, 65535, 1, 2)); r.Kept != 1 {
			t.Errorf("%v", r)
		}
		if now := g.look(1).written(); now != before || g.sync(1).State != "in_sync" {
			t.Errorf("%s, before %s; %v", now, before, g.sync(1))
		}
	})
}

// TestStandingDeletedBySomebodyElse: a standing entry is back at once, not at
// the next verification.
func TestStandingDeletedBySomebodyElse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newRig(t, defaults(), 1)
		g.connect(1)
		g.standing(1, "discovery", wanted(1, 65535, 1, 2), wanted(1, 65534, 1, 2))
		for _, owner := range []string{"", "restarted"} {
			if owner != "" {
				g.restart(1)
				g.standing(1, "discovery", wanted(1, 65535, 1, 2), wanted(1, 65534, 1, 2))
			}
			g.with(1, func(s *fakeSwitch) {
				for k := range s.entries {
					s.lose(k, "delete")
				}
			})
			time.Sleep(50 * time.Millisecond)
			if n := len(g.look(1).entries); n != 2 {
				t.Errorf("%s: %d entries, want 2", owner, n)
			}
		}
		// What the service itself takes back, and wants again, is sent once.
		g.standing(1, "discovery")
		g.standing(1, "discovery", wanted(1, 65535, 1, 2))
		adds := len(g.look(1).adds)
		time.Sleep(time.Minute)
		if n := len(g.look(1).adds); n != adds {
			t.Errorf("sent %d times too often", n-adds)
		}
	})
}

func TestObserve(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := defaults()
		cfg.VerifyInterval = 0 // reads only when asked
		g := newRig(t, cfg, 1, 2)
		g.connect(1)
		g.connect(2)
		g.standing(1, "forwarding", wanted(1, 100, 1, 2))
		g.disconnect(2)
		synctest.Wait()
		g.observed = nil
		ask := func(owner string, dpids ...string) string {
			t.Helper()
			resp, err := g.rules.Observe(t.Context(), &api.ObserveRequest{Owner: owner, Dpids: dpids})
			if err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Second)
			return strings.Join(resp.Dpids, " ")
		}
		one := flow.DPID(1).String()
		if got := ask("forwarding"); got != one {
			t.Errorf("will be made known of %q, want %q", got, one)
		}
		times, entries := g.seenBy(flow.OwnerForwarding)
		if others, _ := g.seenBy(flow.OwnerRoutes); times != 1 || entries != 1 || others != 0 {
			t.Errorf("made known %d times, %d entries, of others %d times", times, entries, others)
		}
		if got := ask("", one, flow.DPID(2).String(), flow.DPID(7).String()); got != one {
			t.Errorf("will be made known of %q, want %q", got, one)
		}
		if times, entries := g.seenBy(flow.OwnerRoutes); times != 1 || entries != 0 {
			t.Errorf("of routes %d times, %d entries; want an empty list, too", times, entries)
		}
		// A switch that is late is asked again, and all who have asked are told.
		g.with(1, func(s *fakeSwitch) { s.late = 2 })
		g.observed = nil
		ask("routes")
		ask("hosts")
		if a, _ := g.seenBy(flow.OwnerRoutes); a == 0 {
			t.Error("routes: not told after a late answer")
		}
		if b, _ := g.seenBy(flow.OwnerHosts); b == 0 {
			t.Error("hosts: not told after a late answer")
		}
		for _, bad := range []*api.ObserveRequest{{Owner: "nobody"}, {Dpids: []string{"x"}}} {
			if _, err := g.rules.Observe(t.Context(), bad); api.KindOf(err) != codes.InvalidArgument {
				t.Errorf("%v: %v, want InvalidArgument", bad, err)
			}
		}
	})
}

// TestServiceRestart: the switch is known from the southbound's replayed
// event, the operator's entries from the store, the service's are left until
// declared; nothing that is right is written.
func TestServiceRestart(t *testing.T) {
	wefttest.Run(t, Spec(), func(t *testing.T, h *wefttest.Harness) {
		s := newSite(t, h)
		s.connect(true)
		for i := range 20 {
			s.add(true, wanted(1, uint32(100+i), 1, 2))
		}
		standing := &api.SetStandingRequest{Dpid: "1", Owner: "discovery", Flows: []*api.FlowEntry{wanted(1, 65535, 1, 2)}}
		if _, err := wefttest.Call(h, api.SetStanding, standing); err != nil {
			t.Fatal(err)
		}
		s.inSync()
		_, before := s.entries()
		h.Restart()
		s.connect(true)
		e := wefttest.Await(h, api.FlowsObservedEvent, func(e *api.FlowsObserved) bool { return e.Owner == "discovery" })
		if len(e.Flows) != 1 {
			t.Errorf("%v: want discovery to be told of its entry", e)
		}
		if sync := s.inSync(); sync.Kept != 20 || sync.Added != 0 {
			t.Errorf("%v", sync)
		}
		if resp, err := wefttest.Call(h, api.SetStanding, standing); err != nil || resp.Kept != 1 || resp.Sent != 0 {
			t.Errorf("%v, %v", resp, err)
		}
		resp, err := wefttest.Call(h, api.Observe, &api.ObserveRequest{Owner: "forwarding"})
		if err != nil || len(resp.Dpids) != 1 {
			t.Errorf("%v, %v", resp, err)
		}
		wefttest.Await(h, api.FlowsObservedEvent, func(e *api.FlowsObserved) bool { return e.Owner == "forwarding" })
		if n, after := s.entries(); after != before || n != 21 {
			t.Errorf("%d entries, %d flow-mods before and %d after the restart", n, before, after)
		}
	})
}
