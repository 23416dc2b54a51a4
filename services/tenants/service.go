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
		Name: "tenants",
		Doc:  "divides the network into isolated virtual networks of tenants",
		Serves: weft.Methods(api.SetTenant, api.DeleteTenant, api.ListTenants, api.SetNetwork, api.DeleteNetwork, api.ListNetworks,
			api.GetTenantsStatus),
		Calls:      weft.Methods(api.SetStanding),
		Reads:      reads,
		Subscribes: weft.Subjects(api.RolesSettledEvent, api.FlowsObservedEvent),
		Publishes:  weft.Subjects(api.SegmentChangedEvent),
		Buckets:    []string{"tenants", "networks"},
		Class:      weft.Latency,
		Scale:      weft.PerPartition,
		Config:     DefaultConfig(),
		Live:       []string{"*"},
		Run:        run,
	}
}

func run(ctx context.Context, env *weft.Env) error {
	cfg := env.Config.(*Config)
	tenants, err := weft.State(env, "tenants")
	if err != nil {
		return err
	}
	networks, err := weft.State(env, "networks")
	if err != nil {
		return err
	}
	b := newStore(cfg, tenants, networks, func(key string, err error) {
		env.Log.Warn("tenant or virtual network of an earlier run left out", "key", key, "error", err)
	})
	if err := b.load(ctx); err != nil {
		return err
	}
	gauges(env.Metric, b)

	s := &server{env: env, store: b, standing: weft.NewBaselineFlows(env, flow.OwnerTenants, b.want), news: make(chan struct{}, 1)}
	b.declare = func() { s.ring(); s.standing.Recompute() }
	weft.OnConfig(env, func(_ context.Context, _, c *Config) error {
		b.cfg.Store(c)
		return nil
	})
	s.follow()
	s.serve()
	if err := weft.Ready(ctx, env); err != nil {
		return err
	}
	var work sync.WaitGroup
	defer work.Wait()
	work.Go(func() { s.announce(ctx) })
	work.Go(func() { b.tenants.Follow(ctx) })
	work.Go(func() { b.networks.Follow(ctx) })
	work.Go(func() { s.tick(ctx) })
	s.standing.Run(ctx)
	return nil
}

func gauges(m weft.Metrics, b *store) {
	m.Gauge("tenants", "Tenants.", func() float64 { return float64(len(b.listTenants())) })
	m.Gauge("networks", "Virtual networks.", func() float64 { return float64(len(b.listNetworks(""))) })
	const hosts, help = "hosts", "Hosts of tenants: let in, and kept out by their limits."
	m.Gauge(hosts, help, func() float64 { n, _ := b.hosts(); return float64(n) }, "state", "admitted")
	m.Gauge(hosts, help, func() float64 { _, n := b.hosts(); return float64(n) }, "state", "refused")
}

// server connects the book with the rest of the system.
type server struct {
	env      *weft.Env
	store    *store
	standing *weft.BaselineFlows
	news     chan struct{} // notified when segments may have changed
}

// follow handles the events of other services.
func (s *server) follow() {
	b, k := s.store, s.standing
	weft.OnChange(s.env, reads, func(c nib.Change) {
		stale, all, segments := b.networkChanged(c)
		k.NetworkChanged(c)
		switch {
		case all:
			k.Recompute()
		case len(stale) > 0:
			k.Recompute(stale...)
		}
		if segments {
			s.ring()
		}
	})
	weft.On(s.env, api.RolesSettledEvent, func(_ context.Context, e *api.RolesSettled) { k.RolesSettled(e) })
	weft.On(s.env, api.FlowsObservedEvent, func(_ context.Context, e *api.FlowsObserved) { k.FlowsObserved(e) })
}

func (s *server) ring() { object.Notify(s.news) }

// announce publishes changes of segments until ctx ends; at first, all segments.
func (s *server) announce(ctx context.Context) {
	s.ring()
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.news:
		}
		for _, e := range s.store.news() {
			weft.Publish(s.env, api.SegmentChangedEvent, e)
		}
	}
}

// tick does the timed work until ctx ends.
func (s *server) tick(ctx context.Context) {
	tick := time.NewTicker(lingers / 20)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-tick.C:
			if changed := s.store.expire(now); len(changed) > 0 {
				s.standing.Recompute(changed...)
				s.ring()
			}
		}
	}
}

// settle waits for the switches to confirm a change.
func (s *server) settle(ctx context.Context) {
	s.standing.SettleWithin(ctx, s.store.cfg.Load().Deadline, "virtual networks")
}

// serve answers calls.
func (s *server) serve() {
	b := s.store
	weft.Handle(s.env, api.SetTenant, func(ctx context.Context, r *api.SetTenantRequest) (*api.Tenant, error) {
		t, changed, err := b.setTenant(ctx, r.GetTenant())
		if err == nil && changed {
			s.settle(ctx)
		}
		return t, err
	})
	weft.Handle(s.env, api.DeleteTenant, func(ctx context.Context, r *api.DeleteTenantRequest) (*api.DeleteTenantResponse, error) {
		resp, err := b.deleteTenant(ctx, r.GetName())
		if err != nil || resp.Deleted {
			s.settle(ctx)
		}
		return resp, err
	})
	weft.Handle(s.env, api.ListTenants, func(context.Context, *api.ListTenantsRequest) (*api.ListTenantsResponse, error) {
		return &api.ListTenantsResponse{Tenants: b.listTenants()}, nil
	})
	weft.Handle(s.env, api.SetNetwork, func(ctx context.Context, r *api.SetNetworkRequest) (*api.TenantNetwork, error) {
		n, changed, err := b.setNetwork(ctx, r.GetNetwork())
		if err == nil && changed {
			s.settle(ctx)
		}
		return n, err
	})
	weft.Handle(s.env, api.DeleteNetwork, func(ctx context.Context, r *api.DeleteNetworkRequest) (*api.DeleteNetworkResponse, error) {
		deleted, err := b.deleteNetwork(ctx, r.GetTenant(), r.GetName())
		if err != nil {
			return nil, err
		}
		if deleted {
			s.settle(ctx)
		}
		return &api.DeleteNetworkResponse{Deleted: deleted}, nil
	})
	weft.Handle(s.env, api.ListNetworks, func(_ context.Context, r *api.ListNetworksRequest) (*api.ListNetworksResponse, error) {
		return &api.ListNetworksResponse{Networks: b.listNetworks(r.GetTenant())}, nil
	})
	weft.Handle(s.env, api.GetTenantsStatus, func(context.Context, *api.GetTenantsStatusRequest) (*api.TenantsStatus, error) {
		return b.status(s.standing.Status), nil
	})
}
