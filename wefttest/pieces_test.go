package wefttest_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/weft-sdn/weft"
	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/internal/testwait"
	"github.com/weft-sdn/weft/wefttest"
)

// wall is what a service of pieces wants: each brick has entries, and two that are
// beside each other have one in common.
type wall struct {
	mu     sync.Mutex
	bricks map[int]int // what their entries do
	keep   *weft.BaselineFlows
}

func (w *wall) names(*api.Switch) (list []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for n := range w.bricks {
		list = append(list, fmt.Sprint(n))
	}
	return list
}

func (w *wall) piece(sw *api.Switch, name string) *api.SetStandingRequest {
	var n int
	_, _ = fmt.Sscan(name, &n)
	w.mu.Lock()
	defer w.mu.Unlock()
	port, has := w.bricks[n]
	if !has {
		return nil
	}
	entry := func(priority, out int) *api.FlowEntry {
		return &api.FlowEntry{Dpid: sw.Dpid, Priority: uint32(priority), Match: map[string]string{"in_port": "1"}, Actions: []string{fmt.Sprintf("output:%d", out)}}
	}
	return &api.SetStandingRequest{
		Flows:  []*api.FlowEntry{entry(1000+n, port), entry(100+n/2, 9)},
		Groups: []*api.Group{{Dpid: sw.Dpid, Id: uint32(n), Type: fmt.Sprint(port)}},
		Meters: []*api.Meter{{Dpid: sw.Dpid, Id: uint32(n / 2)}},
	}
}

// rules is a flowrules that has one switch, and fails at times.
type rules struct {
	mu       sync.Mutex
	revision uint64
	has      map[string]string
	changes  int
	fail     func() int
}

func (r *rules) set(_ context.Context, q *api.SetStandingRequest) (*api.SetStandingResponse, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	fault := r.fail()
	if fault == 1 {
		r.revision, r.has = 0, map[string]string{} // it has started anew
	}
	if fault == 2 {
		return nil, api.Errorf(codes.Unavailable, "away")
	}
	switch {
	case q.Base == 0:
		r.has = map[string]string{}
	case r.revision == 0 || q.Base != r.revision && q.Revision != r.revision:
		return nil, api.Errorf(codes.FailedPrecondition, "declare the whole set")
	default:
		r.changes++
	}
	for _, f := range q.Flows {
		r.has[fmt.Sprint("flow ", f.Priority, f.Match)] = fmt.Sprint(f.Actions)
	}
	for _, g := range q.Groups {
		r.has[fmt.Sprint("group ", g.Id)] = g.Type
	}
	for _, m := range q.Meters {
		r.has[fmt.Sprint("meter ", m.Id)] = ""
	}
	for _, f := range q.Gone {
		delete(r.has, fmt.Sprint("flow ", f.Priority, f.Match))
	}
	for _, id := range q.GoneGroups {
		delete(r.has, fmt.Sprint("group ", id))
	}
	for _, id := range q.GoneMeters {
		delete(r.has, fmt.Sprint("meter ", id))
	}
	r.revision = q.Revision
	if fault == 3 {
		return nil, api.Errorf(codes.DeadlineExceeded, "the answer is late")
	}
	if fault == 4 && len(q.Flows) > 0 {
		return &api.SetStandingResponse{Failed: []*api.WantedFlow{{Flow: q.Flows[0], Reason: "refused"}}}, nil
	}
	return &api.SetStandingResponse{}, nil
}

// TestPieces changes pieces at random while flowrules fails at times: in the end it has
// what all pieces are of, and most of the way no whole set was needed.
func TestPieces(t *testing.T) {
	w := &wall{}
	spec := weft.Spec{Name: "wall", Calls: weft.Methods(api.SetStanding), Subscribes: weft.Subjects(api.SwitchChangedEvent), Class: weft.Latency, Scale: weft.PerPartition,
		Run: func(ctx context.Context, env *weft.Env) error {
			w.mu.Lock()
			w.bricks, w.keep = map[int]int{}, weft.NewObjectFlows(env, flow.OwnerCircuits, w.names, w.piece)
			keep := w.keep
			w.mu.Unlock()
			weft.On(env, api.SwitchChangedEvent, func(_ context.Context, e *api.SwitchChanged) { keep.SwitchChanged(e) })
			if err := weft.Ready(ctx, env); err != nil {
				return err
			}
			keep.Run(ctx)
			return nil
		}}
	wefttest.Run(t, spec, func(t *testing.T, h *wefttest.Harness) {
		draw := rand.New(rand.NewPCG(7, 7))
		faulty := true
		r := &rules{has: map[string]string{}}
		r.fail = func() int {
			if n := draw.IntN(40); faulty && n < 5 {
				return n
			}
			return 0
		}
		wefttest.Fake(h, api.SetStanding, r.set)
		h.Start()
		wefttest.Publish(h, api.SwitchChangedEvent, &api.SwitchChanged{Switch: &api.Switch{Dpid: flow.DPID(1).String(), Connected: true}})
		for range 150 {
			w.mu.Lock()
			n := rand.IntN(20)
			if _, has := w.bricks[n]; has && rand.IntN(2) == 0 {
				delete(w.bricks, n)
			} else {
				w.bricks[n] = 1 + rand.IntN(8)
			}
			keep := w.keep
			w.mu.Unlock()
			keep.RecomputeObjects(1, fmt.Sprint(n))
			if rand.IntN(3) == 0 {
				ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
				_ = keep.Settle(ctx)
				cancel()
			}
		}
		r.mu.Lock()
		faulty = false
		r.mu.Unlock()
		ctx, cancel := context.WithTimeout(t.Context(), testwait.Limit)
		defer cancel()
		testwait.Until(t, "all confirmed, also what had failed before", func() bool { return w.keep.Settle(ctx) == nil })
		want := map[string]string{}
		for n, port := range w.bricks {
			want[fmt.Sprint("flow ", 1000+n, map[string]string{"in_port": "1"})] = fmt.Sprintf("[output:%d]", port)
			want[fmt.Sprint("flow ", 100+n/2, map[string]string{"in_port": "1"})] = "[output:9]"
			want[fmt.Sprint("group ", n)] = fmt.Sprint(port)
			want[fmt.Sprint("meter ", n/2)] = ""
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		if fmt.Sprint(r.has) != fmt.Sprint(want) {
			t.Errorf("flowrules has\n%v\nwant\n%v", r.has, want)
		}
		if r.changes == 0 {
			t.Error("it was given whole sets only")
		}
	})
}
