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
		Name:       "chain",
		Doc:        "leads packets through network functions behind ports, as copies or in a chain",
		Serves:     weft.Methods(api.PingChain, api.TraceChain),
		Calls:      weft.Methods(api.FindPath, api.Send),
		Subscribes: weft.Subjects(api.PathsConvergedEvent, api.ProbeReturnedEvent),
		Publishes:  weft.Subjects(api.ChainPortChangedEvent),
		Buckets:    []string{"tags", "probes"},
		Config:     defaults(),
		Run:        run,
	}, new(store).kind())
}

func newStore(cfg *Config, numbers, probes object.Bucket, bad func(name string, err error)) *store {
	b := &store{
		cfg: cfg, news: make(chan struct{}, 1), ways: make(chan struct{}, 1), damaged: func() bool { return false },
		at: map[flow.DPID]map[flow.MAC]bool{}, taken: map[flow.Location]bool{}, said: map[flow.Location]bool{},
		held: map[flow.DPID]time.Time{}, observed: map[flow.DPID]map[flow.EntryKey]bool{},
	}
	b.chains, b.tags, b.probes = policy.New(b.kind()), newTags(&b.mu, cfg, numbers, bad), newProber(&b.mu, cfg, b.probed(), probes, bad)
	return b
}

// kind describes the chains.
func (b *store) kind() policy.Kind[*api.ServiceChain, *chain] {
	return policy.Kind[*api.ServiceChain, *chain]{
		Owner: flow.OwnerChains, What: "chain", Many: "chains", Bucket: "chains", Guard: &b.mu, Raise: "chain.chains",
		Set: api.SetChain, Delete: api.DeleteChain, List: api.ListChains,
		Check: readChain, Load: parse, Said: func(c *chain) *api.ServiceChain { return c.said }, Status: b.message,
		Admit: b.admit, Changed: b.changed, All: b.rules, Hold: b.hold, Observed: b.flowsObserved,
		Reads: nib.Ports | nib.Roles | nib.Links | nib.Hosts, Network: b.networkChanged,
		Most: func() int { return b.cfg.Chains }, Deadline: func() time.Duration { return b.cfg.Deadline }, Settle: b.settle,
	}
}

// settle finds the ways of chains that have changed, and waits until switches have their
// entries.
func (b *store) settle(ctx context.Context) {
	if err := b.seek(ctx); err != nil {
		object.Notify(b.ways) // which tries it again
	}
	b.chains.Flows().SettleWithin(ctx, b.cfg.Deadline, "chains")
}

func run(ctx context.Context, env *weft.Env) error {
	numbers, err := weft.State(env, "tags")
	if err != nil {
		return err
	}
	probes, err := weft.State(env, "probes")
	if err != nil {
		return err
	}
	b := newStore(env.Config.(*Config), numbers, probes, func(name string, err error) {
		env.Log.Warn("tag, or what probes have said, of an earlier run not read", "key", name, "error", err)
	})
	b.find = func(ctx context.Context, q *api.FindPathRequest) (*api.FindPathResponse, error) {
		return weft.Call(ctx, env, api.FindPath, q)
	}
	b.damaged = func() bool { return weft.Damage(env) != "" }
	if err := errors.Join(policy.Serve(ctx, env, b.chains), b.tags.kept.Load(ctx), b.probes.kept.Load(ctx)); err != nil {
		return err
	}
	env.Metric.Gauge("dead_copies", "Copies of functions that are dead.", func() float64 { return float64(b.dead()) })
	weft.On(env, api.ProbeReturnedEvent, func(_ context.Context, e *api.ProbeReturned) { b.probes.returned(e) })
	weft.On(env, api.PathsConvergedEvent, func(context.Context, *api.PathsConverged) { object.Notify(b.ways) })
	send := func(ctx context.Context, d *flow.Decision) error {
		_, err := weft.Call(ctx, env, api.Send, d)
		return err
	}
	weft.Handle(env, api.PingChain, func(ctx context.Context, q *api.PingChainRequest) (*api.PingChainResponse, error) {
		return b.pingChain(ctx, q, send)
	})
	weft.Handle(env, api.TraceChain, func(_ context.Context, q *api.TraceChainRequest) (*api.ChainTrace, error) { return b.traceChain(q) })
	if err := weft.Ready(ctx, env); err != nil {
		return err
	}
	var work sync.WaitGroup
	defer work.Wait()
	work.Go(func() { b.tags.kept.Follow(ctx) })
	work.Go(func() { b.probes.kept.Follow(ctx) })
	work.Go(func() { b.probes.keep(ctx, b.damaged) })
	work.Go(func() { b.probes.run(ctx, send) })
	work.Go(func() { announce(ctx, env, b) })
	work.Go(func() { follow(ctx, env, b) })
	b.chains.Run(ctx)
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

// follow finds the ways between switches anew when they may have changed, until ctx ends.
func follow(ctx context.Context, env *weft.Env, b *store) {
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
	}
}
