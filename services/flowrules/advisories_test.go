package flowrules

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
)

// The tests of this file are named after the advisories of other controllers
// whose faults they look for.

// refusal returns the error of adding an entry, and checks that nothing came
// of it.
func (g *rig) refusal(sw flow.DPID, f *api.FlowEntry) error {
	g.t.Helper()
	_, err := g.rules.AddFlows(g.t.Context(), &api.AddFlowsRequest{Flows: []*api.FlowEntry{wanted(sw, 5, 1, 2), f}})
	if err == nil {
		g.t.Fatalf("taken: %v", f)
	}
	time.Sleep(time.Second)
	if n := g.store.size(); n > 0 || len(g.look(sw).adds) > 0 {
		g.t.Fatalf("refused, but %d entries are stored and %d sent", n, len(g.look(sw).adds))
	}
	return err
}

// An operator's entry cannot change the way of LLDP.
func TestCVE_2024_37018_DiscoveryPathKept(t *testing.T) {
	for name, f := range map[string]*api.FlowEntry{
		"LLDP itself":      {Dpid: "1", Priority: 65535, Match: map[string]string{"eth_type": "0x88cc"}, Actions: []string{"output:2"}},
		"all of a port":    {Dpid: "1", Priority: 65535, Match: map[string]string{"in_port": "1"}},
		"BDDP":             {Dpid: "1", Priority: 65535, Match: map[string]string{"eth_type": "0x8942"}, Actions: []string{"output:2"}},
		"everything":       {Dpid: "1", Priority: 65535},
		"with other owner": {Dpid: "1", Priority: 65535, Owner: "operator", Match: map[string]string{"eth_dst": "01:80:c2:00:00:0e"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := newRig(t, defaults(), 1)
				g.connect(1)
				err := g.refusal(1, f)
				if api.KindOf(err) != codes.InvalidArgument || !strings.Contains(err.Error(), "LLDP trap") {
					t.Errorf("error %v: want InvalidArgument that names the LLDP trap", err)
				}
			})
		})
	}
}

// Numbers out of range are refused, not cut short.
func TestCVE_2019_1010249_Ranges(t *testing.T) {
	entry := func(change func(*api.FlowEntry)) *api.FlowEntry {
		f := wanted(1, 100, 1, 2)
		change(f)
		return f
	}
	for want, f := range map[string]*api.FlowEntry{
		"priority 65536":          entry(func(f *api.FlowEntry) { f.Priority = 65536 }),
		"priority 4294967295":     entry(func(f *api.FlowEntry) { f.Priority = math.MaxUint32 }),
		"table 255":               entry(func(f *api.FlowEntry) { f.Table = 255 }),
		"table 256":               entry(func(f *api.FlowEntry) { f.Table = 256 }),
		"idle_timeout 65536":      entry(func(f *api.FlowEntry) { f.IdleTimeout = 65536 }),
		"hard_timeout 4294967295": entry(func(f *api.FlowEntry) { f.HardTimeout = math.MaxUint32 }),
		"flags 32":                entry(func(f *api.FlowEntry) { f.Flags = 32 }),
		"OFPFF_CHECK_OVERLAP":     entry(func(f *api.FlowEntry) { f.Flags = 2 }),
		"goto_table 0":            entry(func(f *api.FlowEntry) { f.Table, f.GotoTable = 3, 3 }),
		"meter 4294967295":        entry(func(f *api.FlowEntry) { f.Meter = math.MaxUint32 }),
		"output:":                 entry(func(f *api.FlowEntry) { f.Actions = []string{"output:4294967290000"} }),
		"output:any":              entry(func(f *api.FlowEntry) { f.Actions = []string{"output:any"} }),
		"output:0":                entry(func(f *api.FlowEntry) { f.Actions = []string{"output:0"} }),
		"group:4294967295":        entry(func(f *api.FlowEntry) { f.Actions = []string{"group:4294967295"} }),
		"in_port":                 entry(func(f *api.FlowEntry) { f.Match["in_port"] = "4294967296" }),
		"eth_type":                entry(func(f *api.FlowEntry) { f.Match["ipv4_dst"] = "10.0.0.1" }),
		"ip_proto":                entry(func(f *api.FlowEntry) { f.Match = map[string]string{"eth_type": "0x800", "tcp_dst": "80"} }),
		"cookie":                  entry(func(f *api.FlowEntry) { f.Cookie = "5745010000000001" }),
		"upper 32 bits":           entry(func(f *api.FlowEntry) { f.Cookie = "100000000" }),
		"owner":                   entry(func(f *api.FlowEntry) { f.Owner = "forwarding" }),
		"table-miss":              {Dpid: "1", Priority: 0},
		"datapath id":             entry(func(f *api.FlowEntry) { f.Dpid = "10000000000000000" }),
	} {
		t.Run(want, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := newRig(t, defaults(), 1)
				g.connect(1)
				err := g.refusal(1, f)
				if api.KindOf(err) != codes.InvalidArgument || want != "goto_table 0" && !strings.Contains(err.Error(), strings.Fields(want)[0]) {
					t.Errorf("error %v: want InvalidArgument that says %q", err, want)
				}
			})
		})
	}
}

// After a restart a timed entry has only the rest of its time, and one whose
// time is over does not come back.
func TestCVE_2018_1078_RemainingTimeOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newRig(t, defaults(), 1)
		g.connect(1)
		long, short := wanted(1, 200, 1, 2), wanted(1, 100, 2, 3)
		long.HardTimeout, short.HardTimeout = 600, 20
		for _, f := range g.add(long, short) {
			if f.State != "confirmed" {
				t.Fatalf("%v", f)
			}
		}
		// Kept over a restart of the controller alone, untouched.
		time.Sleep(10 * time.Second)
		g.start(defaults())
		g.connect(1)
		time.Sleep(time.Second)
		if s := g.sync(1); s.Kept != 2 || s.Added != 0 || s.State != "in_sync" {
			t.Fatalf("after the restart: %v", s)
		}
		// The switch loses everything while the controller is down.
		g.stop()
		time.Sleep(289 * time.Second)
		g.with(1, func(s *fakeSwitch) { clear(s.entries); s.adds = nil })
		g.start(defaults())
		g.connect(1)
		time.Sleep(time.Second)
		g.with(1, func(s *fakeSwitch) {
			if len(s.adds) != 1 || s.adds[0].Priority != 200 || s.adds[0].HardTimeout != 300 {
				t.Errorf("sent %+v: want the long one only, with the 300 s that it has left", s.adds)
			}
		})
		if n := g.store.size(); n != 1 {
			t.Errorf("%d entries in the store, want 1", n)
		}
	})
}

// An entry that was idle for its time while the switch was away does not come
// back; one that never was on the switch does.
func TestCVE_2018_1078_IdleWhileAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newRig(t, defaults(), 1)
		g.connect(1)
		had := wanted(1, 200, 1, 2)
		had.IdleTimeout = 30
		g.add(had)
		g.disconnect(1)
		never := wanted(1, 100, 2, 3)
		never.IdleTimeout = 30
		if f := g.add(never)[0]; f.State != "requested" || f.Reason != "switch away" {
			t.Errorf("%v: want it to wait for the switch", f)
		}
		time.Sleep(time.Minute)
		g.with(1, func(s *fakeSwitch) { clear(s.entries) })
		g.connect(1)
		time.Sleep(time.Second)
		if l := g.list(1); len(l) != 1 || l[100] != "confirmed" {
			t.Errorf("%v: want the one that the switch never had", l)
		}
		if g.tallies.get("expired reason idle_while_away") != 1 {
			t.Errorf("not counted: %v", g.tallies.n)
		}
	})
}

// The store does not grow with entries whose time is over.
func TestCVE_2017_1000411_StoreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newRig(t, defaults(), 1)
		g.connect(1)
		most := 0
		for i := range 300 {
			f := wanted(1, uint32(100+i), 1, 2)
			f.HardTimeout = 5
			if i%3 == 0 {
				f.HardTimeout, f.IdleTimeout = 0, 5
			}
			g.add(f)
			time.Sleep(time.Second)
			g.with(1, func(*fakeSwitch) {}) // ends what is over
			most = max(most, g.store.size())
			if i%100 == 50 {
				g.disconnect(1) // no message of the end of those on it
				time.Sleep(3 * time.Second)
				g.connect(1)
			}
		}
		if most > 12 {
			t.Errorf("up to %d entries stored, but at most 6 or 7 are desired at a time", most)
		}
		for range 120 {
			time.Sleep(time.Second)
			g.with(1, func(*fakeSwitch) {})
		}
		if n, l := g.store.size(), g.list(1); n != 0 || len(l) != 0 {
			t.Errorf("%d entries stored and %d desired after all are over", n, len(l))
		}
	})
}

// An entry that a switch refuses does not hold up the others, is failed with
// the switch's words, made known once, and tried again only a few times.
func TestCVE_2017_1000358_PoisonIsolated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := defaults()
		cfg.MaxBatch = 4
		g := newRig(t, cfg, 1)
		poison := entryOf(t, flow.OwnerOperator, wanted(1, 107, 1, 2))
		g.net.switches[1].refuse[poison.Key()] = "OFPET_BAD_ACTION OFPBAC_BAD_OUT_PORT: no port 2"
		g.connect(1)
		var flows []*api.FlowEntry
		for i := range 20 {
			flows = append(flows, wanted(1, uint32(100+i), 1, 2))
		}
		for _, f := range g.add(flows...) {
			switch bad := f.Flow.Priority == 107; {
			case !bad && f.State != "confirmed":
				t.Errorf("%v: held up", f)
			case bad && (f.State != "failed" || f.Reason != "OFPET_BAD_ACTION OFPBAC_BAD_OUT_PORT: no port 2"):
				t.Errorf("%v: want it failed in the switch's words", f)
			}
		}
		if s := g.sync(1); s.State != "failing" || s.Failed != 1 || s.Confirmed != 19 {
			t.Errorf("%v", s)
		}
		time.Sleep(time.Hour)
		tries := 0
		for _, e := range g.look(1).adds {
			if e.Priority == 107 {
				tries++
			}
		}
		if want := 1 + cfg.Retries; tries != want || len(g.look(1).adds) != 19+want {
			t.Errorf("tried %d times among %d, want %d among %d", tries, len(g.look(1).adds), want, 19+want)
		}
		if len(g.failed) != 1 || g.failed[0].Flow.Flow.Priority != 107 || g.failed[0].Flow.Reason == "" {
			t.Errorf("made known: %v", g.failed)
		}
		if l := g.list(1); !strings.HasPrefix(l[107], "failed: OFPET") {
			t.Errorf("listed as %q", l[107])
		}
		// Asked for again once the cause is gone, it is installed.
		g.with(1, func(s *fakeSwitch) { clear(s.refuse) })
		if f := g.add(wanted(1, 107, 1, 2))[0]; f.State != "confirmed" {
			t.Errorf("%v", f)
		}
	})
}

// No owner's deletion ever takes another's entry.
func TestCVE_2019_11189_OwnersApart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newRig(t, defaults(), 1)
		g.connect(1)
		acl := wanted(1, 400, 1, 9)
		g.add(acl, wanted(1, 401, 1, 9))
		g.standing(1, "hosts", wanted(1, 500, 1, 2), wanted(1, 501, 1, 2))
		g.standing(1, "discovery", wanted(1, 600, 1, 2))
		g.standing(1, "hosts") // takes back all of its own
		resp, err := g.rules.DeleteFlows(t.Context(), &api.DeleteFlowsRequest{Flows: []*api.FlowEntry{wanted(1, 600, 1, 2)}})
		if err != nil || resp.Deleted != 0 {
			t.Errorf("the operator has deleted discovery's entry: %v, %v", resp, err)
		}
		if resp, err = g.rules.DeleteFlows(t.Context(), &api.DeleteFlowsRequest{AllOf: "all", Flows: []*api.FlowEntry{acl}}); err != nil || resp.Deleted != 2 {
			t.Errorf("%v, %v: want 2 deleted", resp, err)
		}
		g.with(1, func(s *fakeSwitch) {
			if len(s.entries) != 1 || s.deletes != 4 {
				t.Errorf("%d entries left and %d deleted, want discovery's alone", len(s.entries), s.deletes)
			}
		})
	})
	synctest.Test(t, func(t *testing.T) { // the delete names the owner, so that it misses what has become another's
		g := newRig(t, defaults(), 1)
		g.connect(1)
		g.add(wanted(1, 400, 1, 9))
		g.with(1, func(s *fakeSwitch) {
			for _, e := range s.entries {
				e.Cookie = flow.NewCookie(flow.OwnerRoutes, 1, 1)
			}
		})
		if _, err := g.rules.DeleteFlows(t.Context(), &api.DeleteFlowsRequest{AllOf: "0000000000000001"}); err != nil {
			t.Fatal(err)
		}
		if n := len(g.look(1).entries); n != 1 {
			t.Errorf("%d entries, want the route to be left", n)
		}
	})
}

// What forbids is on the switch before what allows.
func TestCVE_2018_12691_DenyFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := defaults()
		cfg.MaxBatch = 3
		g := newRig(t, cfg, 1)
		allow, deny := wanted(1, 100, 1, 2), wanted(1, 900, 1, 2)
		deny.Actions = nil
		var flows []*api.FlowEntry
		for i := range 10 {
			flows = append(flows, wanted(1, uint32(101+i), 1, 2))
		}
		g.add(append(flows, allow, deny)...) // the switch is away
		g.connect(1)
		time.Sleep(time.Second)
		adds := g.look(1).adds
		if len(adds) != 12 || adds[0].Priority != 900 {
			t.Fatalf("%d entries sent, first one of priority %d, want 12 and 900", len(adds), adds[0].Priority)
		}
		for i := 1; i < len(adds); i++ {
			if adds[i].Priority > adds[i-1].Priority {
				t.Errorf("priority %d sent after %d", adds[i].Priority, adds[i-1].Priority)
			}
		}
	})
}

// Asking for the same entry twice, or deleting one of two requests' entries,
// never removes what is still desired; every entry ends in a state that says
// what has become of it (CVE-2021-38363 and its kin).
func TestCVE_2021_38363_Lifecycle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newRig(t, defaults(), 1)
		g.connect(1)
		upper := wanted(1, 100, 1, 2)
		upper.Match = map[string]string{"eth_dst": "0A:BC:00:00:00:01"}
		lower := wanted(1, 100, 1, 2)
		lower.Match = map[string]string{"eth_dst": "0a:bc:00:00:00:01/ff:ff:ff:ff:ff:ff"}
		g.add(upper)
		g.add(lower)
		g.add(lower, upper)
		if n := len(g.look(1).adds); n != 1 {
			t.Errorf("%d flow-mods for one entry asked for four times", n)
		}
		g.add(wanted(1, 101, 1, 2))
		changed := wanted(1, 101, 1, 3)
		g.add(changed)
		if l, n := g.list(1), g.store.size(); fmt.Sprint(l) != "map[100:confirmed 101:confirmed]" || n != 2 {
			t.Errorf("%v, %d stored", l, n)
		}
		resp, err := g.rules.DeleteFlows(t.Context(), &api.DeleteFlowsRequest{Flows: []*api.FlowEntry{upper, lower}})
		if err != nil || resp.Deleted != 1 || g.store.size() != 1 {
			t.Errorf("%v, %v, %d stored: want one deleted", resp, err, g.store.size())
		}
	})
}
