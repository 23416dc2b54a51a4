package flowrules

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
)

// many returns entries of switch 1 with the priorities from first on.
func many(first, n uint32) []*api.FlowEntry {
	list := make([]*api.FlowEntry, n)
	for i := range list {
		list[i] = wanted(1, first+uint32(i), 1, 2)
	}
	return list
}

// Entries that are added together cost few writes; a change of one costs one.
func TestPagesAreWrittenOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newRig(t, defaults(), 1)
		g.add(many(100, 10*pageRules)...)
		if g.store.puts != 10 || len(g.store.values) != 10 {
			t.Fatalf("%d writes, %d values; want 10 of each", g.store.puts, len(g.store.values))
		}
		g.add(many(100, 10*pageRules)...) // the same again
		if g.store.puts != 10 {
			t.Errorf("%d writes for what is there already", g.store.puts-10)
		}
		one := wanted(1, 105, 1, 3)
		g.add(one)
		if g.store.puts != 11 {
			t.Errorf("%d writes for one change", g.store.puts-10)
		}
		g.start(defaults())
		if n := len(g.rules.worker(1).ledger.rules); n != 10*pageRules {
			t.Errorf("%d entries after a restart, want %d", n, 10*pageRules)
		}
		if _, err := g.rules.DeleteFlows(t.Context(), &api.DeleteFlowsRequest{AllOf: "all"}); err != nil || len(g.store.values) != 0 {
			t.Errorf("%v, %d values left", err, len(g.store.values))
		}
	})
}

// Room that deletions make is used again.
func TestPagesAreFilledAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newRig(t, defaults(), 1)
		g.add(many(100, 4*pageRules)...)
		for i := range uint32(4 * pageRules) {
			if i%2 == 0 {
				if _, err := g.rules.DeleteFlows(t.Context(), &api.DeleteFlowsRequest{Flows: many(100+i, 1)}); err != nil {
					t.Fatal(err)
				}
			}
		}
		g.add(many(1000, 2*pageRules)...)
		if n := len(g.store.values); n != 4 {
			t.Errorf("%d values, want 4", n)
		}
	})
}

// A page that was emptied, and could not be deleted, goes at the next start.
func TestEmptyPagesGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newRig(t, defaults(), 1)
		g.add(many(100, 1)...)
		if _, err := g.store.Put(t.Context(), "0000000000000001/page-a-1", []byte(`{"entries":[]}`)); err != nil {
			t.Fatal(err)
		}
		g.start(defaults())
		if n := len(g.store.values); n != 1 || len(g.rules.worker(1).ledger.rules) != 1 {
			t.Errorf("%d values, want 1", n)
		}
	})
}

// What cannot be read is not lost when its page is written.
func TestUnreadableEntriesStay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newRig(t, defaults(), 1)
		g.add(many(100, 2)...)
		for key, value := range g.store.values {
			g.store.values[key] = []byte(strings.Replace(string(value), `"entries":[`, `"entries":[{"flow":{"dpid":"1","match":{"later":"1"}}},`, 1))
		}
		g.start(defaults())
		if _, err := g.rules.DeleteFlows(t.Context(), &api.DeleteFlowsRequest{AllOf: "all"}); err != nil {
			t.Fatal(err)
		}
		for _, value := range g.store.values {
			if want := `{"entries":[{"flow":{"dpid":"1","match":{"later":"1"}}}]}`; string(value) != want {
				t.Errorf("stored: %s, want %s", value, want)
			}
		}
		if len(g.store.values) != 1 {
			t.Errorf("%d values", len(g.store.values))
		}
	})
}

// A write whose confirmation was lost does not lock its page.
func TestUncertainWrites(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newRig(t, defaults(), 1)
		g.add(many(100, 1)...)
		for _, carried := range []bool{false, true} {
			g.store.lose, g.store.carried = 1, carried
			if _, err := g.rules.AddFlows(t.Context(), &api.AddFlowsRequest{Flows: many(101, 1)}); err == nil {
				t.Fatal("a write that was not confirmed is reported as one")
			}
			if l := g.list(1); len(l) != 1 {
				t.Fatalf("%v is desired", l)
			}
		}
		g.add(many(102, 1)...)
		if n := g.store.size(); n != 2 || len(g.store.values) != 1 {
			t.Errorf("%d entries in %d values, want 2 in 1", n, len(g.store.values))
		}
	})
}

// An instance that is not the last one does not undo what a later one has done.
func TestPagesOfALaterInstance(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newRig(t, defaults(), 1)
		g.add(many(100, 3)...)
		old := g.rules
		g.start(defaults())
		g.add(wanted(1, 101, 1, 3))
		before := maps.Clone(g.store.values)
		for _, f := range []func() error{
			func() error {
				_, err := old.AddFlows(t.Context(), &api.AddFlowsRequest{Flows: many(102, 1), NoWait: true})
				return err
			},
			func() error {
				_, err := old.AddFlows(t.Context(), &api.AddFlowsRequest{Flows: []*api.FlowEntry{wanted(1, 100, 1, 4)}, NoWait: true})
				return err
			},
			func() error {
				_, err := old.DeleteFlows(t.Context(), &api.DeleteFlowsRequest{AllOf: "all"})
				return err
			},
		} {
			if err := f(); err == nil && !maps.EqualFunc(before, g.store.values, slices.Equal) {
				t.Errorf("an earlier instance has changed %d values to %d", len(before), len(g.store.values))
			}
		}
		if got := slices.Sorted(maps.Keys(g.list(1))); !slices.Equal(got, []uint32{100, 101, 102}) {
			t.Errorf("%d", got)
		}
	})
}

// Of two entries with one key, as an uncertain write may leave them, the later
// counts.
func TestTheLaterEntryCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newRig(t, defaults(), 1)
		put := func(key string, port flow.Port, added time.Time) {
			_, e, err := wanted(1, 100, 1, port).Entry()
			if err != nil {
				t.Fatal(err)
			}
			e = operatorEntry(e, 1)
			value, err := encodePage(1, []*rule{newRule(&e, added)}, nil)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := g.store.Put(t.Context(), flow.DPID(1).String()+"/"+key, value); err != nil {
				t.Fatal(err)
			}
		}
		now := time.Now()
		put("page-a-1", 5, now)
		put("page-b-1", 6, now.Add(time.Second))
		put("page-c-1", 7, now.Add(-time.Second))
		g.start(defaults())
		r := g.rules.worker(1).ledger
		if len(r.rules) != 1 || len(g.store.values) != 1 {
			t.Fatalf("%d entries, %d values", len(r.rules), len(g.store.values))
		}
		for _, one := range r.rules {
			if got := one.entry().Apply[0]; got != flow.Output(6) {
				t.Errorf("the entry has %v", got)
			}
		}
	})
}
