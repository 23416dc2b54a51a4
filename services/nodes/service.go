// Package nodes is the service that speaks with what runs beside the switches of
// hybrid IP/SDN nodes (weft node run): it takes their reports, and answers which
// BFD sessions and tunnel ports are wanted.
//
// Only the list of services imports it; only this file imports weft.
package nodes

import (
	"context"
	"sync"
	"time"

	"github.com/weft-sdn/weft"
	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/nib"
)

// Spec declares the service.
func Spec() weft.Spec {
	return weft.Spec{
		Name:      "nodes",
		Doc:       "speaks with what runs beside the switches of hybrid IP/SDN nodes",
		Serves:    weft.Methods(api.ReportNodes, api.ListNodes, api.SetTunnelPorts),
		Reads:     reads,
		Publishes: weft.Subjects(api.NodeChangedEvent, api.TunnelPortChangedEvent),
		Buckets:   []string{"ports"},
		Class:     weft.Latency,
		Scale:     weft.PerPartition,
		Config:    defaults(),
		Run:       run,
	}
}

// reads is what the service reads of the network.
const reads = nib.Switches | nib.Links

// lookEvery is how often the service looks which nodes are stale.
const lookEvery = time.Second

func run(ctx context.Context, env *weft.Env) error {
	kept, err := weft.State(env, "ports")
	if err != nil {
		return err
	}
	b := newRegistry(env.Config.(*Config), kept, func() time.Time { return weft.Now(env) }, func(name string, err error) {
		env.Log.Warn("tunnel port of an earlier run not read", "name", name, "error", err)
	})
	b.tellNode = func(e *api.NodeChanged) { weft.Publish(env, api.NodeChangedEvent, e) }
	b.tellPort = func(e *api.TunnelPortChanged) { weft.Publish(env, api.TunnelPortChangedEvent, e) }
	if err := b.ports.Load(ctx); err != nil {
		return err
	}
	for _, state := range []string{stateLive, stateStale, stateUnknown} {
		env.Metric.Gauge("nodes", "Nodes that have been heard of.", func() float64 { return float64(b.count(state)) }, "state", state)
	}
	reports := env.Metric.Counter("reports_total", "Reports of nodes that were taken.")
	refused := env.Metric.Counter("refused_total", "Reports of nodes that were refused.")
	weft.ReportLimits(env, b.reached.List)
	weft.OnChange(env, reads, b.networkChanged)
	weft.Handle(env, api.ReportNodes, func(_ context.Context, q *api.ReportNodesRequest) (*api.ReportNodesResponse, error) {
		a, bad, err := b.report(q)
		reports.Add(float64(len(q.GetNodes()) - bad))
		refused.Add(float64(bad))
		return a, err
	})
	weft.Handle(env, api.ListNodes, func(context.Context, *api.ListNodesRequest) (*api.ListNodesResponse, error) {
		return &api.ListNodesResponse{Nodes: b.list()}, nil
	})
	weft.Handle(env, api.SetTunnelPorts, b.setPorts)
	if err := weft.Ready(ctx, env); err != nil {
		return err
	}
	var work sync.WaitGroup
	defer work.Wait()
	work.Go(func() { b.ports.Follow(ctx) })
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-look.C:
			b.look()
		}
	}
}
