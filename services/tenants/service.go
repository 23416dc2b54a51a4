// Package tenants is the service that divides the network into virtual networks
// of tenants, isolated from each other and with address spaces of their own. Flow
// entries tag frames with their network where they enter at a member; inside, the
// tag separates networks. forwarding removes the tag where frames leave at a
// member; it learns of members from SegmentChanged.
//
// Only the list of services imports it; only this file imports weft.
package tenants

import (
	"context"
	"sync"

	"github.com/weft-sdn/weft"
	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/policy"
)

// Spec declares the service.
func Spec() weft.Spec {
	b := new(store)
	return policy.Declare(policy.Declare(weft.Spec{
		Name:      "tenants",
		Doc:       "divides the network into isolated virtual networks of tenants",
		Serves:    weft.Methods(api.DeleteTenant, api.GetTenantsStatus),
		Publishes: weft.Subjects(api.SegmentChangedEvent),
		Config:    DefaultConfig(),
		Live:      []string{"*"},
		Run:       run,
	}, b.networkKind()), b.tenantKind())
}

func run(ctx context.Context, env *weft.Env) error {
	b := newStore(env.Config.(*Config))
	if err := policy.Serve(ctx, env, b.tenants, b.networks); err != nil {
		return err
	}
	const hosts, help = "hosts", "Hosts of tenants: let in, and kept out by their limits."
	env.Metric.Gauge(hosts, help, func() float64 { n, _ := b.hosts(); return float64(n) }, "state", "admitted")
	env.Metric.Gauge(hosts, help, func() float64 { _, n := b.hosts(); return float64(n) }, "state", "refused")
	weft.OnConfig(env, func(_ context.Context, _, c *Config) error {
		b.cfg.Store(c)
		return nil
	})
	policy.Answer(b.tenants, api.DeleteTenant, b.deleteTenant)
	weft.Handle(env, api.GetTenantsStatus, b.status)
	if err := weft.Ready(ctx, env); err != nil {
		return err
	}
	var work sync.WaitGroup
	defer work.Wait()
	work.Go(func() { announce(ctx, env, b) })
	work.Go(func() { b.expire(ctx) })
	work.Go(func() { b.tenants.Run(ctx) })
	b.networks.Run(ctx)
	return nil
}

// announce publishes changes of segments until ctx ends; at first, all segments.
func announce(ctx context.Context, env *weft.Env, b *store) {
	for {
		for _, e := range b.segmentsChanged() {
			weft.Publish(env, api.SegmentChangedEvent, e)
		}
		select {
		case <-ctx.Done():
			return
		case <-b.news:
		}
	}
}
