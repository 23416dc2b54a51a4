// Package flowrules keeps the flow entries that switches should have: the
// operator's, which it stores, and the services' baseline flows. It makes sure
// that switches have them: it sends only differences, knows for each entry
// whether the switch has confirmed it, and repairs what others change. Only the
// list of services imports it.
package flowrules

import (
	"context"
	"time"

	"github.com/weft-sdn/weft"
	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
)

// Spec declares the service.
func Spec() weft.Spec {
	return weft.Spec{
		Name:       "flowrules",
		Doc:        "keeps the desired flow entries and sees that switches have them",
		Serves:     weft.Methods(api.AddFlows, api.DeleteFlows, api.ListFlows, api.ListSync, api.SetStanding, api.Observe, api.DirectPackets),
		Calls:      weft.Methods(api.ReadFlows, api.ReadGroups, api.ReadMeters, api.Apply),
		Subscribes: weft.Subjects(api.SwitchChangedEvent, api.SwitchForgottenEvent, api.FlowRemovedEvent),
		Publishes:  weft.Subjects(api.FlowsObservedEvent, api.FlowFailedEvent),
		Buckets:    []string{"flows", "batches"},
		Class:      weft.Latency,
		Scale:      weft.PerPartition,
		Config:     defaults(),
		Run:        run,
	}
}

func run(ctx context.Context, env *weft.Env) error {
	store, err := weft.State(env, "flows")
	if err != nil {
		return err
	}
	batches, err := weft.State(env, "batches")
	if err != nil {
		return err
	}
	counter := func(name, help string, labels ...string) Counter { return env.Metric.Counter(name, help, labels...) }
	now := time.Now()
	r := NewRules(env.Config.(*Config), southbound{env}, store, batches, env.Log, counter, uint8(now.Unix()))
	if state, ok := store.(State); ok {
		r.Trust(state, weft.Now(env).Sub(now))
	}
	if err := r.Load(ctx, now); err != nil {
		return err
	}
	gauges(env.Metric, r)

	weft.On(env, api.SwitchChangedEvent, r.SwitchChanged)
	weft.On(env, api.SwitchForgottenEvent, r.SwitchForgotten)
	weft.On(env, api.FlowRemovedEvent, r.FlowRemoved)
	weft.Handle(env, api.AddFlows, r.AddFlows)
	weft.Handle(env, api.DeleteFlows, r.DeleteFlows)
	weft.Handle(env, api.ListFlows, r.ListFlows)
	weft.Handle(env, api.ListSync, r.ListSync)
	weft.Handle(env, api.SetStanding, r.SetStanding)
	weft.Handle(env, api.Observe, r.Observe)
	weft.Handle(env, api.DirectPackets, r.DirectPackets)
	if err := weft.Ready(ctx, env); err != nil {
		return err
	}

	r.Serve(ctx,
		func(e *api.FlowsObserved) { weft.Publish(env, api.FlowsObservedEvent, e) },
		func(e *api.FlowFailed) { weft.Publish(env, api.FlowFailedEvent, e) })
	return nil
}

// southbound is the Network that calls the southbound service.
type southbound struct{ env *weft.Env }

func (s southbound) ReadFlows(ctx context.Context, sw flow.DPID) ([]*api.FlowEntry, error) {
	resp, err := weft.Call(ctx, s.env, api.ReadFlows, &api.ReadFlowsRequest{Dpid: sw.String()})
	return resp.GetFlows(), err
}

func (s southbound) ReadGroups(ctx context.Context, sw flow.DPID) ([]*api.Group, error) {
	resp, err := weft.Call(ctx, s.env, api.ReadGroups, &api.ReadGroupsRequest{Dpid: sw.String()})
	return resp.GetGroups(), err
}

func (s southbound) ReadMeters(ctx context.Context, sw flow.DPID) ([]*api.Meter, error) {
	resp, err := weft.Call(ctx, s.env, api.ReadMeters, &api.ReadMetersRequest{Dpid: sw.String()})
	return resp.GetMeters(), err
}

func (s southbound) Apply(ctx context.Context, d *flow.Decision) (*api.ApplyResult, error) {
	return weft.Call(ctx, s.env, api.Apply, d)
}

func gauges(m weft.Metrics, r *Rules) {
	for name, read := range map[string]func(Totals) int{
		"wanted":    func(t Totals) int { return t.Wanted },
		"confirmed": func(t Totals) int { return t.Confirmed },
		"failed":    func(t Totals) int { return t.Failed },
		"foreign":   func(t Totals) int { return t.Foreign },
	} {
		m.Gauge("entries", "Flow entries of all switches.", func() float64 { return float64(read(r.Totals())) }, "state", name)
	}
	m.Gauge("spared", "Entries left on switches although nobody wants them, because the store is not whole.", func() float64 { return float64(r.Totals().Spared) })
	for name, read := range map[string]func(Totals) int{
		"in_sync": func(t Totals) int { return t.InSync },
		"syncing": func(t Totals) int { return t.Syncing },
		"failing": func(t Totals) int { return t.Failing },
		"unknown": func(t Totals) int { return t.Unknown },
		"away":    func(t Totals) int { return t.AwaySwitches },
	} {
		m.Gauge("switches", "Switches, by how far they agree with what is desired.", func() float64 { return float64(read(r.Totals())) }, "state", name)
	}
}
