// Package tunnels is the service that keeps label-switched paths between
// switches, for circuits to go through: it gives them paths and labels, and
// moves them where links fail.
//
// Only the list of services imports it; only this file imports weft.
package tunnels

import (
	"context"
	"errors"
	"sync"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/weft-sdn/weft"
	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/nib"
	"github.com/weft-sdn/weft/object"
	"github.com/weft-sdn/weft/policy"
)

// Spec declares the service.
func Spec() weft.Spec {
	return policy.Declare(weft.Spec{
		Name:       "tunnels",
		Doc:        "keeps label-switched paths between switches, for circuits",
		Serves:     weft.Methods(api.SetTunnel, api.SetTunnels, api.OptimiseTunnels, api.RerouteTunnels, api.DrainLink, api.DeleteTunnel, api.ListTunnels, api.ListSteers),
		Calls:      weft.Methods(api.SetStanding, api.ComputePaths, api.SetLink, api.SetTunnelPorts, api.ReadFlows),
		Reads:      reads,
		Subscribes: weft.Subjects(api.PathsConvergedEvent, api.FlowsObservedEvent),
		Publishes:  weft.Subjects(api.TunnelChangedEvent),
		Buckets:    []string{"tunnels", "bypasses"},
		Class:      weft.Latency,
		Scale:      weft.PerPartition,
		Config:     defaults(),
		Run:        run,
	}, (&steering{b: &store{}}).kind())
}

// reads is what the service reads of the network.
const reads = nib.Switches | nib.Roles | nib.Links | nib.Nodes | nib.TunnelPorts | nib.Settled

func run(ctx context.Context, env *weft.Env) error {
	cfg := env.Config.(*Config)
	kept, err := weft.State(env, "tunnels")
	if err != nil {
		return err
	}
	bypasses, err := weft.State(env, "bypasses")
	if err != nil {
		return err
	}
	b := newStore(cfg, kept, bypasses, func() time.Time { return weft.Now(env) }, func(name string, err error) {
		env.Log.Warn("tunnel of an earlier run not read", "name", name, "error", err)
	})
	if err := errors.Join(b.tunnels.Load(ctx), b.bypasses.Load(ctx)); err != nil {
		return err
	}
	env.Metric.Gauge("tunnels", "Tunnels.", func() float64 { return float64(len(b.list())) })
	k, steers := weft.NewBaselineFlows(env, flow.OwnerLabels, b.want), weft.NewBaselineFlows(env, flow.OwnerSteers, b.steering.want)
	steers.OnHold(b.steering.hold)
	b.mu.Lock()
	b.steering.declare = steers.Recompute
	b.steering.settle = func(ctx context.Context) { steers.SettleWithin(ctx, cfg.Deadline, "steers") }
	b.mu.Unlock()
	if err := policy.Serve(ctx, env, b.steering.steers); err != nil {
		return err
	}
	r := &repairer{b: b, log: env.Log, turn: make(chan struct{}, 1), kicked: make(chan struct{}, 1),
		compute: func(ctx context.Context, q *api.ComputePathsRequest) (*api.ComputePathsResponse, error) {
			return weft.Call(ctx, env, api.ComputePaths, q)
		},
		ports: func(ctx context.Context, q *api.SetTunnelPortsRequest) (*api.SetTunnelPortsResponse, error) {
			return weft.Call(ctx, env, api.SetTunnelPorts, q)
		},
		settle: func(ctx context.Context, switches []flow.DPID) error {
			_ = k.Settle(ctx) // what counts is how each of them stands
			for _, sw := range switches {
				switch state, err := k.Status(sw); {
				case state == "in_sync":
				case err != nil:
					return api.Errorf(codes.Unavailable, "switch %v: %s: %w", sw, state, err)
				default:
					return api.Errorf(codes.Unavailable, "switch %v: %s", sw, state)
				}
			}
			return nil
		},
	}
	b.mu.Lock()
	news := make(chan struct{}, 1)
	b.declare, b.kick, b.notify = k.Recompute, func() { object.Notify(r.kicked) }, func() { object.Notify(news) }
	b.mu.Unlock()
	weft.OnChange(env, reads, func(c nib.Change) {
		b.networkChanged(c)
		k.NetworkChanged(c)
		steers.NetworkChanged(c)
	})
	weft.On(env, api.PathsConvergedEvent, func(context.Context, *api.PathsConverged) { b.converged() })
	weft.On(env, api.FlowsObservedEvent, func(_ context.Context, e *api.FlowsObserved) { k.FlowsObserved(e); steers.FlowsObserved(e) })
	weft.Handle(env, api.SetTunnel, func(ctx context.Context, q *api.SetTunnelRequest) (*api.Tunnel, error) {
		if _, err := r.set(ctx, q.GetTunnel()); err != nil {
			return nil, err
		}
		r.repair(ctx)
		if m := b.get(q.Tunnel.Name); m != nil {
			return m, nil
		}
		return nil, api.Errorf(codes.Aborted, "tunnel %s: somebody else has deleted it meanwhile", q.Tunnel.Name)
	})
	weft.Handle(env, api.DeleteTunnel, func(ctx context.Context, q *api.DeleteTunnelRequest) (*api.DeleteTunnelResponse, error) {
		was, err := b.remove(ctx, q.GetName(), "")
		if err != nil {
			return nil, err
		}
		k.SettleWithin(ctx, cfg.Deadline, "tunnels")
		return &api.DeleteTunnelResponse{Deleted: was != nil}, nil
	})
	weft.Handle(env, api.SetTunnels, func(ctx context.Context, q *api.SetTunnelsRequest) (*api.SetTunnelsResponse, error) {
		resp, err := r.setTunnels(ctx, q)
		if err == nil && !q.DryRun && len(q.Delete) > 0 {
			k.SettleWithin(ctx, cfg.Deadline, "tunnels")
		}
		return resp, err
	})
	weft.Handle(env, api.DrainLink, func(ctx context.Context, q *api.DrainLinkRequest) (*api.DrainLinkResponse, error) {
		set := &api.SetLinkRequest{A: q.GetA(), B: q.GetB(), Settings: &api.LinkSettings{Drained: !q.GetUndo()}, Change: []string{"drained"}}
		if _, err := weft.Call(ctx, env, api.SetLink, set); err != nil {
			return nil, err
		}
		return r.drainLink(ctx, q), nil
	})
	o := newOptimiser(r)
	weft.Handle(env, api.OptimiseTunnels, o.optimise)
	weft.Handle(env, api.RerouteTunnels, r.reroute)
	weft.Handle(env, api.ListTunnels, func(context.Context, *api.ListTunnelsRequest) (*api.ListTunnelsResponse, error) {
		return &api.ListTunnelsResponse{Tunnels: b.list()}, nil
	})
	weft.Handle(env, api.ListSteers, func(ctx context.Context, _ *api.ListSteersRequest) (*api.ListSteersResponse, error) {
		return b.steering.list(ctx, func(ctx context.Context, sw flow.DPID) ([]*api.FlowEntry, error) {
			resp, err := weft.Call(ctx, env, api.ReadFlows, &api.ReadFlowsRequest{Dpid: sw.String(), Owner: flow.OwnerSteers.String()})
			return resp.GetFlows(), err
		}), nil
	})
	if err := weft.Ready(ctx, env); err != nil {
		return err
	}
	var work sync.WaitGroup
	defer work.Wait()
	work.Go(func() { b.tunnels.Follow(ctx) })
	work.Go(func() { b.bypasses.Follow(ctx) })
	work.Go(func() { r.run(ctx) })
	work.Go(func() { o.follow(ctx) })
	work.Go(func() {
		for object.Notify(news); ; {
			select {
			case <-ctx.Done():
				return
			case <-news:
			}
			for _, e := range b.changes() {
				weft.Publish(env, api.TunnelChangedEvent, e)
			}
		}
	})
	work.Go(func() { b.steering.steers.Run(ctx) })
	work.Go(func() { steers.Run(ctx) })
	k.Run(ctx)
	return nil
}
