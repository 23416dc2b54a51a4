package flowrules

import (
	"context"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
)

// working returns how many switches are looked after, and how many of them have a
// goroutine.
func (r *Rules) working() (workers, goroutines int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, w := range r.workers {
		w.life.Lock()
		if w.running {
			goroutines++
		}
		w.life.Unlock()
	}
	return len(r.workers), goroutines
}

// Switches that have left have no goroutine, and are dropped once they are forgotten;
// so are those that have never been here. What the operator wants there stays, and so
// does a switch that is connected.
func TestForgottenSwitches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const many = 500
		var all []flow.DPID
		for i := range many {
			all = append(all, flow.DPID(i+1))
		}
		g := newRig(t, defaults(), all...)
		is := func(what string, workers, goroutines int) {
			t.Helper()
			synctest.Wait()
			if w, n := g.rules.working(); w != workers || n != goroutines {
				t.Errorf("%s: %d switches are looked after by %d goroutines, want %d and %d", what, w, n, workers, goroutines)
			}
		}
		before := runtime.NumGoroutine()
		for _, sw := range all {
			g.connect(sw)
		}
		g.standing(2, "discovery", wanted(2, 9, 1, 2))
		time.Sleep(time.Second)
		is("connected", many, many)
		g.add(wanted(1, 100, 1, 2))
		for _, sw := range all[:many-1] {
			g.disconnect(sw)
		}
		time.Sleep(time.Second)
		is("away", many, 1)
		if n := runtime.NumGoroutine(); n > before+many/10 {
			t.Errorf("%d goroutines, and %d before", n, before)
		}
		for _, sw := range all {
			g.rules.SwitchForgotten(t.Context(), &api.SwitchForgotten{Dpid: sw.String()})
		}
		time.Sleep(time.Second)
		is("forgotten", 2, 1)
		g.connect(1)
		g.connect(2)
		time.Sleep(time.Second)
		if s := g.sync(1); s.State != "in_sync" || s.Confirmed != 1 {
			t.Errorf("a switch that was forgotten and has come back: %v", s)
		}
		is("back", 3, 3)

		// One that has never been here is looked after as long as something is wanted.
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		unknown := flow.DPID(1 << 40)
		if _, err := g.rules.SetStanding(ctx, &api.SetStandingRequest{Dpid: unknown.String(), Owner: "discovery"}); err == nil {
			t.Error("entries of an unknown switch are declared")
		}
		is("unknown", 3, 3)
		g.rules.AddFlows(ctx, &api.AddFlowsRequest{Flows: []*api.FlowEntry{wanted(unknown, 5, 1, 2)}, NoWait: true})
		is("wanted", 4, 3)
		if _, err := g.rules.DeleteFlows(ctx, &api.DeleteFlowsRequest{Flows: []*api.FlowEntry{wanted(unknown, 5, 1, 2)}}); err != nil {
			t.Error(err)
		}
		time.Sleep(time.Second)
		is("wanted no more", 3, 3)
	})
}
