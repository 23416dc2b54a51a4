package flowrules

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
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
		want := map[string]int{}
		for _, o := range flow.Owners(func(w *flow.Writer) bool { return w.Observed }) {
			want[o.String()] = 1
		}
		want["discovery"], want["routes"], want["operator"] = 2, 2, 51
		if !maps.Equal(seen, want) {
			t.Errorf("observed %v, want %v", seen, want)
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
		g.store.values["0000000000000001/00"] = []byte(`{"flow":{"dpid":"1","priority":7}}`) // not its key
		g.store.values["0000000000000001/01"] = []byte("{")
		g.store.values["0000000000000001/02"] = []byte(`{"flow":{"dpid":"1","priority":65535}}`)
		g.start(defaults())
		g.connect(1)
		time.Sleep(time.Second)
		if l := g.list(1); len(l) != 1 || l[100] != "confirmed" || g.tallies.get("store_errors") != 3 {
			t.Errorf("%v, %d counted", l, g.tallies.get("store_errors"))
		}
	})
}

// TestLoadMovesTables: entries that were stored before the tables had gaps are
// wanted in the tables of today, and stored so.
func TestLoadMovesTables(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newRig(t, defaults(), 1)
		g.store.values = map[string][]byte{}
		for _, f := range []*api.FlowEntry{
			{Dpid: "1", Priority: 7, GotoTable: 1},
			{Dpid: "1", Priority: 8, Table: 2, GotoTable: 3},
			{Dpid: "1", Priority: 9, Table: 99, Actions: []string{"output:1"}},
		} {
			sw, e, err := f.Entry()
			if err != nil {
				t.Fatal(err)
			}
			text, err := json.Marshal(map[string]any{"flow": f, "added": time.Now()})
			if err != nil {
				t.Fatal(err)
			}
			g.store.values[storeKey(sw, e.Key())] = text
		}
		for range 2 {
			g.start(defaults())
			want := map[uint32][2]uint32{7: {0, 10}, 8: {20, 30}, 9: {99, 0}}
			resp, err := g.rules.ListFlows(t.Context(), &api.ListFlowsRequest{})
			if err != nil || len(resp.Flows) != len(want) || len(g.store.values) != len(want) {
				t.Fatalf("%v, %v; %d stored", resp, err, len(g.store.values))
			}
			for _, w := range resp.Flows {
				if f := w.Flow; want[f.Priority] != [2]uint32{f.Table, f.GotoTable} {
					t.Errorf("priority %d: table %d, goto %d, want %v", f.Priority, f.Table, f.GotoTable, want[f.Priority])
				}
			}
		}
	})
}

// TestEntriesWaitForTheirTable: an entry that leads to a table whose miss is yet
// to come waits for it, but not for long; others do not wait.
func TestEntriesWaitForTheirTable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newRig(t, defaults(), 1)
		leads, elsewhere := wanted(1, 100, 1, 2), wanted(1, 101, 1, 2)
		leads.GotoTable, elsewhere.GotoTable = uint32(flow.TableFirewall), 99
		leads.Actions, elsewhere.Actions = nil, nil
		g.add(leads, elsewhere)
		g.connect(1)
		time.Sleep(leadWait / 2)
		if l := g.list(1); l[100] != "requested" || l[101] != "confirmed" {
			t.Errorf("before the miss: %v", l)
		}
		miss := &api.FlowEntry{Dpid: "1", Table: uint32(flow.TableFirewall), GotoTable: uint32(flow.TableQoS)}
		if _, err := g.rules.SetStanding(t.Context(), &api.SetStandingRequest{Dpid: "1", Owner: "forwarding", Flows: []*api.FlowEntry{miss}}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(100 * time.Millisecond)
		if l := g.list(1); l[100] != "confirmed" {
			t.Errorf("after the miss: %v", l)
		}
		leads.Priority, leads.GotoTable = 102, uint32(flow.TableQoS)
		g.add(leads)
		time.Sleep(leadWait)
		if l := g.list(1); l[102] != "confirmed" {
			t.Errorf("without a miss that comes: %v", l)
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
