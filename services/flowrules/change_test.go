package flowrules

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
)

// TestChangedSets changes a set at random, by what changes and as a whole, once and
// twice, over reconnections: the switch has what is wanted, and what is a change of
// another set than the one in force is refused.
func TestChangedSets(t *testing.T) {
	for seed := range uint64(20) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { changeSets(t, rand.New(rand.NewPCG(seed, 1))) })
		})
	}
}

func changeSets(t *testing.T, r *rand.Rand) {
	g := newRig(t, defaults(), 1)
	g.connect(1)
	time.Sleep(time.Second)
	want := map[uint32]*api.FlowEntry{} // by priority
	revision := uint64(1)
	declare := func(q *api.SetStandingRequest) error {
		q.Dpid, q.Owner = flow.DPID(1).String(), "firewall"
		resp, err := g.rules.SetStanding(t.Context(), q)
		if err == nil && len(resp.Failed) > 0 {
			t.Fatal(resp.Failed)
		}
		return err
	}
	whole := func() {
		revision++
		if err := declare(&api.SetStandingRequest{Revision: revision, Flows: slices.Collect(maps.Values(want))}); err != nil {
			t.Fatal(err)
		}
	}
	whole()
	for range 60 {
		q := &api.SetStandingRequest{Base: revision, Revision: revision + 1}
		for range 1 + r.IntN(4) {
			p := 100 + r.Uint32N(20)
			if old := want[p]; old != nil && r.IntN(2) == 0 {
				delete(want, p)
				q.Gone = append(q.Gone, old)
				q.Flows = slices.DeleteFunc(q.Flows, func(f *api.FlowEntry) bool { return f.Priority == p })
				continue
			}
			q.Gone = slices.DeleteFunc(q.Gone, func(f *api.FlowEntry) bool { return f.Priority == p })
			want[p] = wanted(1, p, 1, flow.Port(1+r.Uint32N(5)))
			q.Flows = append(q.Flows, want[p])
		}
		switch r.IntN(8) {
		case 0:
			g.disconnect(1)
			time.Sleep(time.Second)
			g.connect(1)
			time.Sleep(time.Second)
			if err := declare(q); api.KindOf(err) != codes.FailedPrecondition {
				t.Fatalf("a change in a new session: %v", err)
			}
			whole()
		case 1:
			whole()
		case 2:
			q.Base += 7
			if err := declare(q); api.KindOf(err) != codes.FailedPrecondition {
				t.Fatalf("a change of another set: %v", err)
			}
			whole()
		default:
			for range 1 + r.IntN(2) {
				if err := declare(q); err != nil {
					t.Fatal(err)
				}
			}
			revision++
		}
		time.Sleep(time.Second)
		have := g.look(1).entries
		if len(have) != len(want) {
			t.Fatalf("%d entries, want %d", len(have), len(want))
		}
		for _, f := range want {
			e := entryOf(t, flow.OwnerFirewall, f)
			if h := have[e.Key()]; h == nil || !slices.EqualFunc(h.Apply, e.Apply, func(a, b flow.Action) bool { return a.String() == b.String() }) {
				t.Fatalf("priority %d: %v, want %v", f.Priority, h, e)
			}
		}
	}
}

// BenchmarkChange is one entry that a service adds to a set, and takes back.
func BenchmarkChange(b *testing.B) {
	for _, n := range []int{100, 1_000, 10_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			list, flows := entries(n)
			for i := range list {
				list[i].Cookie = flow.NewCookie(flow.OwnerFirewall, 0, uint32(i))
			}
			l := connected(nil, newReading(flows[:0]))
			now := time.Now()
			l.declare(flow.OwnerFirewall, list[1:], nil, false, now)
			b.ReportAllocs()
			for b.Loop() {
				l.change(flow.OwnerFirewall, list[:1], nil, ended{}, now)
				l.change(flow.OwnerFirewall, nil, nil, ended{entries: []entryID{idOf(&list[0])}}, now)
			}
		})
	}
}
