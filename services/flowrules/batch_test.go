package flowrules

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/internal/testwait"
)

// part sends a part of a batch.
func (g *rig) part(name string, part, total uint32, flows ...*api.FlowEntry) (*api.FlowBatch, error) {
	resp, err := g.rules.AddFlows(g.t.Context(), &api.AddFlowsRequest{Batch: name, Part: part, Total: total, Flows: flows})
	return resp.GetBatch(), err
}

// commit sends entries as a batch, in two parts, and returns what became of it.
func (g *rig) commit(name string, flows ...*api.FlowEntry) *api.FlowBatch {
	g.t.Helper()
	last, total := flows[len(flows)-1], uint32(len(flows))
	if _, err := g.part(name, 1, 0, flows[:len(flows)-1]...); err != nil {
		g.t.Fatal(err)
	}
	for range 100 {
		b, err := g.part(name, 2, total, last)
		if err != nil {
			g.t.Fatal(err)
		}
		if b.State == batchDone || b.State == batchUndone {
			return b
		}
		time.Sleep(time.Second)
	}
	g.t.Fatalf("batch %s does not end", name)
	return nil
}

// unfinished returns how many values of batches that are not finished are in the
// journal.
func (g *rig) unfinished() (n int) {
	g.batches.mu.Lock()
	defer g.batches.mu.Unlock()
	for _, value := range g.batches.values {
		if !strings.Contains(string(value), `"outcome":`) {
			n++
		}
	}
	return n
}

func manyOf(sw uint64, n int) (list []*api.FlowEntry) {
	for i := range n {
		f := wanted(1, uint32(100+i), 1, 2)
		f.Dpid = fmt.Sprint(sw)
		list = append(list, f)
	}
	return list
}

func TestBatchOfAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newRig(t, defaults(), 1, 2)
		g.connect(1)
		g.connect(2)
		b := g.commit("all", append(manyOf(1, 1200), manyOf(2, 50)...)...)
		if b.State != batchDone || b.Entries != 1250 || b.Stored != 1250 || b.Confirmed != 1250 || b.Failed != 0 {
			t.Errorf("%v", b)
		}
		if n, m := len(g.look(1).entries), len(g.look(2).entries); n != 1200 || m != 50 {
			t.Errorf("%d and %d entries on the switches", n, m)
		}
		if n := g.unfinished(); n != 0 {
			t.Errorf("%d values are left in the journal", n)
		}
		// Asked again, it says the same and does nothing.
		g.look(1).adds = nil
		if again, err := g.part("all", 2, 1250, manyOf(1, 1)...); err != nil || again.State != batchDone || again.Confirmed != 1250 || len(g.look(1).adds) != 0 {
			t.Errorf("%v, %v, %d sent", again, err, len(g.look(1).adds))
		}
	})
}

// The dry run of a batch says what would happen to all its parts, as one, and
// leaves nothing.
func TestBatchDryRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := defaults()
		cfg.MaxFlows = 1500
		g := newRig(t, cfg, 1)
		g.connect(1)
		g.add(manyOf(1, 1)...)
		g.look(1).adds = nil
		try := func(part, total uint32, flows ...*api.FlowEntry) (*api.AddFlowsResponse, error) {
			return g.rules.AddFlows(t.Context(), &api.AddFlowsRequest{Batch: "b", Part: part, Total: total, Flows: flows, DryRun: true})
		}
		list := manyOf(1, 1200)
		list[1].Match = list[0].Match
		list[1].Priority = list[0].Priority
		list[1].Actions = []string{"output:9"} // it takes the place of list[0], and of what is there
		if r, err := try(1, 0, list[:600]...); err != nil || r.Batch.State != batchOpen || r.Batch.Name != "b" {
			t.Fatal(r, err)
		}
		for range 2 { // asked again, it says the same
			r, err := try(2, 1200, list[600:]...)
			if err != nil || r.Batch.State != batchTried || r.Batch.Name != "b" || r.Batch.Entries != 1200 || len(r.Flows) != effectsListed {
				t.Fatal(r.GetBatch(), len(r.GetFlows()), err)
			}
			if r.Flows[0].Effect != effectReplaced || r.Flows[1].Effect != effectAdded {
				t.Error(r.Flows[0], r.Flows[1])
			}
		}
		if s := g.look(1); len(s.entries) != 1 || len(s.adds) != 0 || g.unfinished() != 0 || g.store.size() != 1 {
			t.Errorf("the dry run has changed something: %d entries, %d sent, %d stored", len(s.entries), len(s.adds), g.store.size())
		}
		if b := g.commit("b", list...); b.State != batchDone {
			t.Error("the batch itself:", b)
		}
		time.Sleep(2 * openTime)
		if _, err := try(1, 3, list[:1]...); api.KindOf(err) != codes.FailedPrecondition {
			t.Errorf("parts missing: %v", err)
		}
		more := manyOf(1, 1600)[1200:]
		if _, err := try(1, uint32(len(more)), more...); api.KindOf(err) != codes.ResourceExhausted {
			t.Errorf("too many: %v", err)
		}
	})
}

// What became of a batch is known by its name after a restart, too; of the last some.
func TestOutcomeOutlivesTheRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newRig(t, defaults(), 1)
		g.connect(1)
		_, e, _ := wanted(1, 7, 1, 2).Entry()
		e.Match.Normalize()
		g.with(1, func(s *fakeSwitch) { s.refuse[e.Key()] = "no" })
		g.commit("bad", wanted(1, 8, 1, 2), wanted(1, 7, 1, 2))
		g.commit("good", manyOf(1, 20)...)
		g.restart(1)
		before := g.look(1).written()
		if b, err := g.part("good", 2, 20); err != nil || b.State != batchDone || b.Confirmed != 20 || b.Name != "good" {
			t.Error(b, err)
		}
		if b, err := g.part("bad", 2, 2); err != nil || b.State != batchUndone || !strings.Contains(b.Reason, "because: no") {
			t.Error(b, err)
		}
		for n := range maxFinished {
			g.commit(fmt.Sprint("b", n), wanted(1, 100, 1, 2), wanted(1, 101, 1, 2))
		}
		if _, err := g.part("bad", 2, 2); api.KindOf(err) != codes.FailedPrecondition {
			t.Errorf("the first of too many: %v", err)
		}
		if n := g.batches.size(); n != maxFinished {
			t.Errorf("%d values in the journal", n)
		}
		if now := g.look(1).written(); now != before {
			t.Errorf("%s, before %s", now, before)
		}
	})
}

// An entry that a switch refuses takes all others back, and brings back what
// they replaced.
func TestBatchOfNone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newRig(t, defaults(), 1, 2)
		g.connect(1)
		g.connect(2)
		old := manyOf(1, 10)
		for _, f := range old {
			f.Actions = []string{"output:7"}
		}
		g.add(old...)
		bad := manyOf(2, 1)[0]
		g.with(2, func(s *fakeSwitch) {
			_, e, _ := bad.Entry()
			e.Match.Normalize()
			s.refuse[e.Key()] = "no such port"
		})
		b := g.commit("none", append(manyOf(1, 300), bad)...)
		if b.State != batchUndone || !strings.Contains(b.Reason, "1 of 301 entries were refused") || !strings.Contains(b.Reason, "no such port") {
			t.Errorf("%v", b)
		}
		time.Sleep(time.Second)
		s := g.look(1)
		if len(s.entries) != 10 || len(g.look(2).entries) != 0 || g.store.size() != 10 {
			t.Errorf("%d and %d entries on the switches, %d in the store", len(s.entries), len(g.look(2).entries), g.store.size())
		}
		for _, e := range s.entries {
			if len(e.Apply) != 1 || e.Apply[0].Arg != 7 {
				t.Errorf("entry %v is not what it was", e.Entry)
			}
		}
		resp, err := g.rules.AddFlows(t.Context(), &api.AddFlowsRequest{Batch: "none", Part: 2, Total: 301})
		if err != nil || len(resp.Flows) != 1 || resp.Flows[0].State != "failed" {
			t.Errorf("%v, %v", resp, err)
		}
	})
}

// Whatever a run has done of a batch when it ends, the next finishes it, or
// knows nothing of it.
func TestBatchOverRestarts(t *testing.T) {
	for _, refuse := range []bool{false, true} {
		for after := range 60 { // changes of the stores
			synctest.Test(t, func(t *testing.T) {
				g := newRig(t, defaults(), 1)
				g.connect(1)
				before := manyOf(1, 2)
				for _, f := range before {
					f.Actions = []string{"output:9"}
				}
				g.add(before...)
				list := manyOf(1, 12)
				if refuse {
					_, e, _ := list[5].Entry()
					e.Match.Normalize()
					g.with(1, func(s *fakeSwitch) { s.refuse[e.Key()] = "no" })
				}
				var left atomic.Int64
				left.Store(int64(after))
				g.store.set(&left)
				g.batches.set(&left)
				ctx, cancel := context.WithTimeout(t.Context(), testwait.Limit)
				defer cancel()
				for range 8 { // as a client asks
					_, _ = g.rules.AddFlows(ctx, &api.AddFlowsRequest{Batch: "b", Part: 1, Total: 12, Flows: list})
					time.Sleep(time.Second)
				}
				g.stop()
				g.store.set(nil)
				g.batches.set(nil)
				certain := g.unfinished() > 0 || g.store.size() > 2
				g.start(defaults())
				g.connect(1)
				time.Sleep(time.Minute)
				n := len(g.look(1).entries)
				switch {
				case refuse && n != 2, !refuse && n != 2 && n != 12:
					t.Errorf("%d changes of the store, then a restart: %d entries", after, n)
				case !refuse && certain && n == 2 && g.store.size() != 2:
					t.Errorf("%d changes of the store, then a restart: %d entries, %d stored", after, n, g.store.size())
				}
				if g.unfinished() != 0 {
					t.Errorf("%d changes of the store, then a restart: %d values left in the journal", after, g.unfinished())
				}
			})
		}
	}
}

// A batch is all or none also if one of its switches is away when the others
// confirm, and if the service starts again meanwhile.
func TestBatchWaitsForItsSwitches(t *testing.T) {
	for _, refuse := range []bool{false, true} {
		for restarts := range 3 {
			synctest.Test(t, func(t *testing.T) {
				g := newRig(t, defaults(), 1, 2)
				g.connect(1)
				list := append(manyOf(1, 20), manyOf(2, 3)...)
				if refuse {
					_, e, _ := list[21].Entry()
					e.Match.Normalize()
					g.with(2, func(s *fakeSwitch) { s.refuse[e.Key()] = "no" })
				}
				if _, err := g.part("b", 1, 23, list...); err != nil {
					t.Fatal(err)
				}
				time.Sleep(10 * time.Second)
				if b, err := g.part("b", 1, 23); err != nil || b.State != batchWaiting || b.Confirmed != 20 || !strings.Contains(b.Reason, "switch 0000000000000002;") {
					t.Fatal(b, err)
				}
				if other := g.commit("other", wanted(1, 9, 1, 2), wanted(1, 8, 1, 2)); other.State != batchDone {
					t.Errorf("a batch beside: %v", other)
				}
				for range restarts {
					g.start(defaults())
					g.connect(1)
					time.Sleep(time.Minute)
					if g.unfinished() == 0 {
						t.Fatal("the batch is forgotten before switch 2 has answered")
					}
				}
				g.connect(2)
				time.Sleep(time.Minute)
				state, first, second := batchDone, 22, 3
				if refuse {
					state, first, second = batchUndone, 2, 0
				}
				if b, err := g.part("b", 1, 23); err != nil || b.State != state {
					t.Error(b, err)
				}
				if n, m := len(g.look(1).entries), len(g.look(2).entries); n != first || m != second || g.unfinished() != 0 {
					t.Errorf("refused %v, %d restarts: %d and %d entries, want %d and %d; %d values in the journal", refuse, restarts, n, m, first, second, g.unfinished())
				}
			})
		}
	}
}

func TestBatchesAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := defaults()
		cfg.MaxFlows = 20
		g := newRig(t, cfg, 1)
		want := func(err error, kind codes.Code, text string) {
			t.Helper()
			if api.KindOf(err) != kind || !strings.Contains(err.Error(), text) {
				t.Errorf("got %v, want %v: %s", err, kind, text)
			}
		}
		_, err := g.part("../x", 1, 0)
		want(err, codes.InvalidArgument, "letters, digits and dashes")
		_, err = g.part("a", 0, 0)
		want(err, codes.InvalidArgument, "number the parts from 1")
		_, err = g.part("a", 2, 0)
		want(err, codes.FailedPrecondition, "begin again")
		for i := range maxOpen {
			if _, err := g.part(fmt.Sprint("b", i), 1, 0, manyOf(1, 4)...); err != nil {
				t.Fatal(err)
			}
		}
		_, err = g.part("c", 1, 0)
		want(err, codes.ResourceExhausted, "4 batches are open")
		_, err = g.part("b1", 2, 0, manyOf(1, 5)...)
		want(err, codes.ResourceExhausted, "at most 20")
		_, err = g.part("b2", 2, 9, manyOf(1, 1)...)
		want(err, codes.FailedPrecondition, "5 entries of 9")
		if b, err := g.part("b0", 1, 0, manyOf(1, 4)...); err != nil || b.Entries != 4 { // come before
			t.Errorf("%v, %v", b, err)
		}
		_, err = g.part("b0", 2, 0, &api.FlowEntry{Dpid: "x"})
		want(err, codes.InvalidArgument, "batch b0 is dropped")
		time.Sleep(openTime + time.Second)
		_, err = g.part("b3", 2, 0)
		want(err, codes.FailedPrecondition, "begin again")
		g.batches.fails = errors.New("disk full")
		_, err = g.part("d", 1, 1, manyOf(1, 1)...)
		want(err, codes.Unavailable, "disk full")
		if n := g.store.size(); n != 0 {
			t.Errorf("%d entries are stored", n)
		}
	})
}
