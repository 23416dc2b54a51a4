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
	"github.com/weft-sdn/weft/object"
	"github.com/weft-sdn/weft/policy"
)

// Spec declares the service.
func Spec() weft.Spec {
	return policy.Declare(weft.Spec{
		Name: "router",
		Doc:  "routes between subnets, for any switch, with static routes",
		Serves: weft.Methods(api.AddRouterAddress, api.DeleteRouterAddress, api.AddRouterRoute, api.DeleteRouterRoute,
			api.ListRouters),
		Calls:    weft.Methods(api.Send),
		Optional: []string{"tenants"},
		Live:     []string{"*"},
		Buckets:  []string{"neighbours"},
		Rebuilt:  []string{"neighbours"},
		Stage:    true,
		Config:   DefaultConfig(),
		Run:      run,
	}, new(store).kind())
}

// Times for following neighbours: how long changes are gathered, and how long a
// switch may take to confirm before the next changes are handled.
const (
	gather   = 50 * time.Millisecond
	followed = 5 * time.Second
)

func run(ctx context.Context, env *weft.Env) error {
	cfg := env.Config.(*Config)
	keptNeighbours, err := weft.State(env, "neighbours")
	if err != nil {
		return err
	}
	b, s := newStore(cfg), object.NewPersister(keptNeighbours)
	b.count = newCounts(func(name, help string, labels ...string) Counter { return env.Metric.Counter(name, help, labels...) })
	if err := errors.Join(b.loadNeighbours(ctx, s), policy.Serve(ctx, env, b.routers)); err != nil {
		return err
	}
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
	weft.ReportLimits(env, b.reached.List)
	weft.Stage(env, func(flow.DPID) weft.StageFunc { return b.packet })
	policy.Answer(b.routers, api.AddRouterAddress, b.addAddress)
	policy.Answer(b.routers, api.DeleteRouterAddress, b.deleteAddress)
	policy.Answer(b.routers, api.AddRouterRoute, b.addRoute)
	policy.Answer(b.routers, api.DeleteRouterRoute, b.deleteRoute)
	weft.Handle(env, api.ListRouters, b.list)
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
	work.Go(func() { b.routers.Run(ctx) })
	work.Go(func() { b.follow(ctx) })
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
func (b *store) follow(ctx context.Context) {
	pause := gather
	for {
		select {
		case <-ctx.Done():
			return
		case <-b.stale:
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
		began := time.Now()
		b.routers.Recompute()
		settling, cancel := context.WithTimeout(ctx, followed)
		_ = b.routers.Flows().Settle(settling) // a failure is retried, and shown by the state
		cancel()
		pause = max(gather, time.Since(began))
	}
}

// shelve stores the neighbours.
func shelve(ctx context.Context, env *weft.Env, b *store, s *object.Persister) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			if err := b.keepNeighbours(ctx, s); err != nil && ctx.Err() == nil {
				env.Log.Warn("neighbours not kept", "error", err)
			}
		}
	}
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
