// Package chain is the service that leads packets through network functions
// behind ports of switches: as copies, one of which a flow goes through, or one
// function after the other, in both directions. Entries on the switches do it,
// no packet comes to the controller.
//
// Only the list of services imports it; only this file imports weft.
package chain

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
)

// Spec declares the service.
func Spec() weft.Spec {
	return weft.Spec{
		Name:       "chain",
		Doc:        "leads packets through network functions behind ports, as copies or in a chain",
		Serves:     weft.Methods(api.SetChain, api.DeleteChain, api.ListChains),
		Calls:      weft.Methods(api.SetStanding, api.FindPath),
		Reads:      reads,
		Subscribes: weft.Subjects(api.RolesSettledEvent, api.PathsConvergedEvent, api.FlowsObservedEvent),
		Publishes:  weft.Subjects(api.ChainPortChangedEvent),
		Buckets:    []string{"chains", "tags"},
		Class:      weft.Latency,
		Scale:      weft.PerPartition,
		Config:     defaults(),
		Run:        run,
	}
}

// retry is after how long what could not be stored is tried again, and look after how long
// it is seen whether switches that are held back must wait.
const (
	retry = time.Second
	look  = 100 * time.Millisecond
)

// reads is what the service reads of the network.
const reads = nib.Switches | nib.Ports | nib.Roles | nib.Links | nib.Hosts

func run(ctx context.Context, env *weft.Env) error {
	cfg := env.Config.(*Config)
	kept, err := weft.State(env, "chains")
	if err != nil {
		return err
	}
	numbers, err := weft.State(env, "tags")
	if err != nil {
		return err
	}
	b := newStore(cfg, kept, numbers, func(what, name string, err error) {
		env.Log.Warn("of an earlier run not read", "kind", what, "name", name, "error", err)
	})
	if err := errors.Join(b.tags.kept.Load(ctx), b.chains.Load(ctx)); err != nil {
		return err
	}
	env.Metric.Gauge("chains", "Chains.", func() float64 { return float64(len(b.list())) })
	env.Metric.Gauge("dead_copies", "Copies of functions that are dead.", func() float64 { return float64(b.dead()) })
	k := weft.NewBaselineFlows(env, flow.OwnerChains, b.want)
	h := &held{all: map[flow.DPID]waiting{}}
	b.mu.Lock()
	b.declare, b.overall = k.Recompute, k.OverallStatus
	b.mu.Unlock()
	weft.OnChange(env, reads, func(c nib.Change) {
		b.networkChanged(c)
		for sw, e := range c.Connections() {
			if e.Switch.Connected && !b.ready(sw, time.Now()) {
				h.keep(sw, e, time.Now())
				object.Notify(b.ways)
				continue
			}
			h.drop(sw)
			k.SwitchChanged(e)
		}
	})
	weft.On(env, api.PathsConvergedEvent, func(context.Context, *api.PathsConverged) { object.Notify(b.ways) })
	weft.On(env, api.RolesSettledEvent, func(_ context.Context, e *api.RolesSettled) { k.RolesSettled(e) })
	weft.On(env, api.FlowsObservedEvent, func(_ context.Context, e *api.FlowsObserved) {
		b.flowsObserved(e)
		if weft.Damage(env) == "" {
			b.disown(e)
		}
		k.FlowsObserved(e)
	})
	b.find = func(ctx context.Context, q *api.FindPathRequest) (*api.FindPathResponse, error) {
		return weft.Call(ctx, env, api.FindPath, q)
	}
	weft.Handle(env, api.SetChain, func(ctx context.Context, q *api.SetChainRequest) (*api.ServiceChain, error) {
		if err := b.set(ctx, q.GetChain()); err != nil {
			return nil, err
		}
		if err := b.seek(ctx); err != nil {
			return nil, err
		}
		k.SettleWithin(ctx, cfg.Deadline, "chains")
		if m := b.get(q.Chain.Name); m != nil {
			return m, nil
		}
		return nil, api.Errorf(codes.Aborted, "chain %s: somebody else has deleted it meanwhile", q.Chain.Name)
	})
	weft.Handle(env, api.DeleteChain, func(ctx context.Context, q *api.DeleteChainRequest) (*api.DeleteChainResponse, error) {
		was, err := b.chains.Remove(ctx, q.GetName())
		if err != nil {
			return nil, err
		}
		k.SettleWithin(ctx, cfg.Deadline, "chains")
		return &api.DeleteChainResponse{Deleted: was != nil}, nil
	})
	weft.Handle(env, api.ListChains, func(context.Context, *api.ListChainsRequest) (*api.ListChainsResponse, error) {
		return &api.ListChainsResponse{Chains: b.list()}, nil
	})
	if err := weft.Ready(ctx, env); err != nil {
		return err
	}
	var work sync.WaitGroup
	defer work.Wait()
	work.Go(func() { b.chains.Follow(ctx) })
	work.Go(func() { b.tags.kept.Follow(ctx) })
	work.Go(func() { announce(ctx, env, b) })
	work.Go(func() { follow(ctx, env, b, h, k) })
	k.Run(ctx)
	return nil
}

// announce publishes which ports are those of functions, until ctx ends.
func announce(ctx context.Context, env *weft.Env, b *store) {
	for {
		for _, e := range b.portsChanged() {
			weft.Publish(env, api.ChainPortChangedEvent, e)
		}
		select {
		case <-ctx.Done():
			return
		case <-b.news:
		}
	}
}

// follow finds the ways between switches anew when they may have changed, and lets switches
// go that need not be held any longer, until ctx ends.
func follow(ctx context.Context, env *weft.Env, b *store, h *held, k *weft.BaselineFlows) {
	var again <-chan time.Time
	for {
		select {
		case <-ctx.Done():
			return
		case <-b.ways:
		case <-again:
		}
		again = nil
		if err := b.seek(ctx); err != nil && ctx.Err() == nil {
			env.Log.Warn("ways of chains not found; trying again", "in", retry, "error", err)
			again = time.After(retry)
		}
		list, rest := h.release(b.ready, time.Now())
		for _, e := range list {
			k.SwitchChanged(e)
		}
		if rest && again == nil {
			again = time.After(look)
		}
	}
}
