// Package router is the service of IP routing between subnets: routers with
// addresses and static routes. Every switch routes for them, by baseline flows,
// so that packets take the shortest way in the network and not one through a
// router's place. It is a stage of the pipeline before forwarding: it answers for
// the routers' addresses, finds the places of neighbours, and passes packets to
// forwarding as if they had been sent to the next neighbour.
//
// Only the list of services imports it; only this file imports weft.
package router

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/weft-sdn/weft"
	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/nib"
	"github.com/weft-sdn/weft/object"
)

// Spec declares the service.
func Spec() weft.Spec {
	return weft.Spec{
		Name: "router",
		Doc:  "routes between subnets, for any switch, with static routes",
		Serves: weft.Methods(api.AddRouterAddress, api.DeleteRouterAddress, api.AddRouterRoute, api.DeleteRouterRoute,
			api.ListRouters),
		Calls:      weft.Methods(api.Send, api.SetStanding),
		Reads:      reads,
		Subscribes: weft.Subjects(api.RolesSettledEvent, api.FlowsObservedEvent),
		Optional:   []string{"tenants"},
		Live:       []string{"*"},
		Buckets:    []string{"routers", "neighbours"},
		Rebuilt:    []string{"neighbours"},
		Stage:      true,
		Class:      weft.Latency,
		Scale:      weft.PerPartition,
		Config:     DefaultConfig(),
		Run:        run,
	}
}

// reads is what the service reads of the network.
const reads = nib.Switches | nib.Roles | nib.Hosts | nib.Segments

// Times for following neighbours: how long changes are gathered, how long a
// switch may take to confirm before the next changes are handled, and how long
// after the start the neighbours of an earlier run are trusted.
const (
	gather           = 50 * time.Millisecond
	followed         = 5 * time.Second
	settleNeighbours = time.Minute
)

func run(ctx context.Context, env *weft.Env) error {
	cfg := env.Config.(*Config)
	kept, err := weft.State(env, "routers")
	if err != nil {
		return err
	}
	keptNeighbours, err := weft.State(env, "neighbours")
	if err != nil {
		return err
	}
	b, s := newStore(cfg, kept, func(key string, err error) {
		env.Log.Warn("router of an earlier run not read", "key", key, "error", err)
	}), object.NewPersister(keptNeighbours)
	b.count = newCounts(func(name, help string, labels ...string) Counter { return env.Metric.Counter(name, help, labels...) })
	if err := errors.Join(b.loadNeighbours(ctx, s), b.routers.Load(ctx)); err != nil {
		return err
	}
	env.Metric.Gauge("routers", "Routers.", func() float64 { return float64(b.size()) })
	out := make(chan *flow.Decision, 1024)
	b.post = func(d *flow.Decision) {
		if d.Empty() {
			return
		}
		select {
		case out <- d:
		default: // packets that waited; their senders send them again
			b.count.shed.Add(float64(len(d.Outs)))
		}
	}
	k := weft.NewBaselineFlows(env, flow.OwnerRouter, b.want)
	moved := make(chan struct{}, 1)
	b.declare = k.Recompute
	b.moved = func() { object.Notify(moved) }
	weft.ReportLimits(env, b.reached.List)
	weft.Stage(env, func(flow.DPID) weft.StageFunc { return b.packet })
	weft.OnChange(env, reads, func(c nib.Change) {
		b.networkChanged(c)
		k.NetworkChanged(c)
	})
	weft.On(env, api.RolesSettledEvent, func(_ context.Context, e *api.RolesSettled) { k.RolesSettled(e) })
	weft.On(env, api.FlowsObservedEvent, func(_ context.Context, e *api.FlowsObserved) { k.FlowsObserved(e) })
	serve(env, b, k)
	tick := time.NewTicker(cfg.tick())
	defer tick.Stop()
	weft.OnConfig(env, func(_ context.Context, _, c *Config) error {
		b.cfg.Store(c)
		tick.Reset(c.tick())
		b.moved() // there may be room for more entries, or for fewer
		return nil
	})
	if err := weft.Ready(ctx, env); err != nil {
		return err
	}
	var work sync.WaitGroup
	defer work.Wait()
	work.Go(func() { k.Run(ctx) })
	work.Go(func() { follow(ctx, moved, k) })
	work.Go(func() { b.routers.Follow(ctx) })
	work.Go(func() { shelve(ctx, env, b, s) })
	for {
		select {
		case <-ctx.Done():
			return nil
		case d := <-out:
			send(ctx, env, d)
		case <-tick.C:
			d := &flow.Decision{}
			if b.attend(now(), d); !d.Empty() {
				send(ctx, env, d)
			}
		}
	}
}

// follow updates the entries as neighbours change: changes that come together go
// to a switch at once, and updates take at most half of the time.
func follow(ctx context.Context, moved <-chan struct{}, k *weft.BaselineFlows) {
	pause := gather
	for {
		select {
		case <-ctx.Done():
			return
		case <-moved:
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
		began := time.Now()
		k.Recompute()
		settling, cancel := context.WithTimeout(ctx, followed)
		_ = k.Settle(settling) // a failure is retried, and shown by the state
		cancel()
		pause = max(gather, time.Since(began))
	}
}

// shelve stores the neighbours and, a while after the start, forgets those that
// only an earlier run knew.
func shelve(ctx context.Context, env *weft.Env, b *store, s *object.Persister) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	former := time.After(settleNeighbours)
	for {
		select {
		case <-ctx.Done():
			return
		case <-former:
			b.forget()
		case <-tick.C:
			if err := b.keepNeighbours(ctx, s); err != nil && ctx.Err() == nil {
				env.Log.Warn("neighbours not kept", "error", err)
			}
		}
	}
}

// serve answers the calls about routers.
func serve(env *weft.Env, b *store, k *weft.BaselineFlows) {
	settle := func(ctx context.Context) { k.SettleWithin(ctx, b.cfg.Load().Deadline, "routers") }
	weft.Handle(env, api.AddRouterAddress, func(ctx context.Context, r *api.AddRouterAddressRequest) (*api.AddRouterAddressResponse, error) {
		a, added, err := b.addAddress(ctx, r)
		if err != nil {
			return nil, err
		}
		settle(ctx)
		return &api.AddRouterAddressResponse{Address: a.message(), Added: added}, nil
	})
	weft.Handle(env, api.DeleteRouterAddress, func(ctx context.Context, r *api.DeleteRouterAddressRequest) (*api.DeleteRouterAddressResponse, error) {
		deleted, err := b.deleteAddress(ctx, r)
		if err != nil {
			return nil, err
		}
		settle(ctx)
		return &api.DeleteRouterAddressResponse{Deleted: deleted}, nil
	})
	weft.Handle(env, api.AddRouterRoute, func(ctx context.Context, r *api.AddRouterRouteRequest) (*api.AddRouterRouteResponse, error) {
		x, added, err := b.addRoute(ctx, r)
		if err != nil {
			return nil, err
		}
		settle(ctx)
		return &api.AddRouterRouteResponse{Route: x.message(), Added: added}, nil
	})
	weft.Handle(env, api.DeleteRouterRoute, func(ctx context.Context, r *api.DeleteRouterRouteRequest) (*api.DeleteRouterRouteResponse, error) {
		deleted, err := b.deleteRoute(ctx, r)
		if err != nil {
			return nil, err
		}
		settle(ctx)
		return &api.DeleteRouterRouteResponse{Deleted: deleted}, nil
	})
	weft.Handle(env, api.ListRouters, func(_ context.Context, r *api.ListRoutersRequest) (*api.ListRoutersResponse, error) {
		list, err := b.list(r.GetDpid(), func(sw flow.DPID) (string, error) {
			own, err := k.Status(sw)
			if all, why := k.OverallStatus(); own == "in_sync" && all == "failing" { // others have entries of its subnets, too
				return all, why
			}
			return own, err
		})
		return &api.ListRoutersResponse{Routers: list}, err
	})
}

// send sends packets that follow from no packet.
func send(ctx context.Context, env *weft.Env, d *flow.Decision) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	if _, err := weft.Call(ctx, env, api.Send, d); err != nil && ctx.Err() == nil {
		env.Log.Debug("not sent", "packets", len(d.Outs), "error", err)
	}
}

func now() int64 { return time.Now().UnixNano() }
