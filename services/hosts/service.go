// Package hosts is the service that knows which host is attached where and what
// its addresses are. It is the stage of the pipeline after discovery: it learns
// from edge ports only, rejects packets that do not fit, and gives the later
// stages the places of a packet's sender and destination.
//
// Only the list of services imports it; only this file imports weft.
package hosts

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/weft-sdn/weft"
	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
)

// Spec declares the service.
func Spec() weft.Spec {
	return weft.Spec{
		Name: "hosts",
		Doc:  "knows which host is attached where, and its addresses",
		Serves: weft.Methods(api.ListHosts, api.FindHost, api.BindHost, api.UnbindHost, api.ListBindings, api.SetPortSecurity, api.DeletePortSecurity,
			api.SetHold, api.DeleteHold, api.ListHolds, api.ApproveHost, api.RevokeHost),
		Calls:      weft.Methods(api.Send, api.SetStanding, api.EchoSwitches),
		Subscribes: weft.Subjects(api.SwitchChangedEvent, api.SwitchForgottenEvent, api.PortChangedEvent, api.PortRoleChangedEvent, api.RolesSettledEvent, api.SegmentChangedEvent, api.FlowsObservedEvent, api.CircuitPortChangedEvent),
		Optional:   []string{"tenants", "flowrules", "l2vpn"},
		Publishes:  weft.Subjects(api.HostChangedEvent, api.HostsSettledEvent, api.HostClaimedEvent),
		Buckets:    []string{"hosts", "bindings", "holds"},
		Rebuilt:    []string{"hosts"},
		Stage:      true,
		Class:      weft.Latency,
		Scale:      weft.Single,
		Config:     DefaultConfig(),
		Live:       live(),
		Run:        run,
	}
}

func run(ctx context.Context, env *weft.Env) error {
	t := newTable(env.Config.(*Config))
	for r := accepted + 1; r < refusals; r++ {
		t.tally.metrics[r] = env.Metric.Counter("refused_total", "Packets not taken as evidence of a host.", "reason", r.String())
	}
	env.Metric.Gauge("hosts", "Hosts known.", func() float64 { return float64(t.index.size()) })
	env.Metric.Gauge("events_waiting", "Hosts whose changes are not published yet.", func() float64 { return float64(t.news.countMarked()) })
	kept, err := weft.State(env, "hosts")
	if err != nil {
		return err
	}
	bound, err := weft.State(env, "bindings")
	if err != nil {
		return err
	}
	held, err := weft.State(env, "holds")
	if err != nil {
		return err
	}
	s := &persister{bucket: kept}
	b := &bindingPersister{journal{store: bound, run: s}}
	holds := &holdPersister{journal{store: held, run: s}}
	if err := b.load(ctx, &t.bindings, func(key string, err error) {
		env.Log.Warn("binding of an earlier run left out", "key", key, "error", err)
	}); err != nil {
		return err
	}
	if err := holds.load(ctx, &t.holds, func(key string, err error) {
		env.Log.Error("hold of an earlier run left out", "key", key, "error", err)
	}); err != nil {
		return err
	}
	if err := s.load(ctx, now(), t, func(key string, err error) {
		env.Log.Warn("host of an earlier run not read", "key", key, "error", err)
	}); err != nil {
		return err
	}
	t.permits.drain() // switches are declared all of it when they connect
	gauges(env.Metric, t)
	failed := env.Metric.Counter("questions_failed_total", "Questions to hosts that could not be sent.")

	g := newGuard()
	k := weft.NewBaselineFlows(env, flow.OwnerBindings, func(info *api.Switch) *api.SetStandingRequest { return t.enforcement.request(g, info) })
	n := weft.NewObjectFlows(env, flow.OwnerNeighbours, t.permits.pieces, t.permits.piece)
	weft.Stage(env, func(sw flow.DPID) weft.StageFunc { return t.open(sw, env.Log) })
	weft.OnConfig(env, func(_ context.Context, _, c *Config) error {
		t.retune(now(), c)
		return nil
	})
	weft.On(env, api.SwitchChangedEvent, func(_ context.Context, m *api.SwitchChanged) {
		if sw, err := flow.ParseDPID(m.GetSwitch().GetDpid()); err == nil {
			t.permits.routesIn(now(), sw, flow.ForwardTable(m.Switch.GetTables(), m.Switch.GetOpenflow() == "1.0"))
			t.enforcement.describeSwitch(sw, m.Switch)
			t.switchChanged(now(), sw, m.Switch.GetConnected(), m.Ports)
			if m.Switch.GetConnected() {
				g.switchChanged(sw, m.Ports)
			}
			k.SwitchChanged(m)
			n.SwitchChanged(m)
		}
	})
	weft.On(env, api.SwitchForgottenEvent, func(_ context.Context, m *api.SwitchForgotten) {
		if sw, err := flow.ParseDPID(m.GetDpid()); err == nil {
			t.forgetSwitch(sw)
		}
	})
	weft.On(env, api.PortChangedEvent, func(_ context.Context, m *api.PortChanged) {
		if sw, err := flow.ParseDPID(m.GetPort().GetDpid()); err == nil {
			t.portChanged(now(), sw, m.Port, m.Removed)
			if g.portChanged(sw, m.Port, m.Removed) && t.enforcement.active() {
				k.Recompute(sw)
			}
		}
	})
	weft.On(env, api.PortRoleChangedEvent, func(_ context.Context, m *api.PortRoleChanged) {
		at := m.GetPort().GetAt().Flow()
		t.roleChanged(now(), at, m.GetPort().GetRole())
		if m.Gone {
			g.drop(at)
		} else if g.set(at, m.GetPort().GetRole()) && t.enforcement.active() {
			k.Recompute(at.Switch)
		}
	})
	weft.On(env, api.CircuitPortChangedEvent, func(_ context.Context, m *api.CircuitPortChanged) {
		t.setCircuitEnd(m.GetAt().Flow(), uint16(m.GetVlan()), !m.GetGone())
	})
	weft.On(env, api.RolesSettledEvent, func(_ context.Context, m *api.RolesSettled) {
		k.RolesSettled(m)
		n.RolesSettled(m)
	})
	weft.On(env, api.FlowsObservedEvent, func(_ context.Context, m *api.FlowsObserved) {
		k.FlowsObserved(m)
		n.FlowsObserved(m)
	})
	weft.On(env, api.SegmentChangedEvent, func(_ context.Context, m *api.SegmentChanged) { t.questions.segmentChanged(m) })
	weft.Handle(env, api.ListHosts, func(context.Context, *api.ListHostsRequest) (*api.ListHostsResponse, error) {
		return t.list(), nil
	})
	weft.Handle(env, api.FindHost, func(_ context.Context, r *api.FindHostRequest) (*api.Host, error) {
		return t.find(r.GetAddress(), r.GetVlan())
	})
	handleBindings(env, t, b, k)
	handleHolds(env, &t.holds, holds)
	if err := weft.Ready(ctx, env); err != nil {
		return err
	}
	var work sync.WaitGroup
	defer work.Wait()
	work.Go(func() {
		t.silences.run(ctx, func(ctx context.Context, r *api.EchoSwitchesRequest) (*api.EchoSwitchesResponse, error) {
			return weft.Call(ctx, env, api.EchoSwitches, r)
		})
	})
	work.Go(func() { announce(ctx, env, t, n) })
	work.Go(func() { keep(ctx, env, t, s, b) })
	work.Go(func() { k.Run(ctx) })
	work.Go(func() { n.Run(ctx) })
	work.Go(func() { watchBindings(ctx, t, func() { k.Recompute() }) })
	tick := time.NewTicker(25 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		d := &flow.Decision{}
		t.advance(now(), d)
		if d.Empty() {
			continue
		}
		if err := send(ctx, env, d); err != nil && ctx.Err() == nil {
			failed.Add(float64(len(d.Outs)))
			env.Log.Debug("questions to hosts not sent", "error", err)
		}
	}
}

// gauges registers the metrics of port security.
func gauges(m weft.Metrics, t *table) {
	read := func(f func() int) func() float64 {
		return func() float64 {
			t.mu.Lock()
			defer t.mu.Unlock()
			return float64(f())
		}
	}
	m.Gauge("bindings", "Bindings of hosts.", read(func() int { return len(t.bindings.of) }))
	m.Gauge("neighbour_entries", "Entries that let hosts ask others whether they are still there.", read(t.permits.entries))
	m.Gauge("quarantined", "Claimants in quarantine.", read(t.claims.countQuarantined))
	m.CounterFunc("readdressed_total", "Times that others were sent the new Ethernet address of an IP address.", read(func() int { return int(t.notices.sent) }))
	m.CounterFunc("readdressed_dropped_total", "New Ethernet addresses that others were not sent, because too many waited.", read(func() int { return int(t.notices.dropped) }))
	m.CounterFunc("claim_events_dropped_total", "Events about claims that were not published, because too many waited.", read(func() int { return int(t.claims.lost) }))
}

// send sends questions soon or not at all: they are asked again, and while the
// southbound is away there is other work to do.
func send(ctx context.Context, env *weft.Env, d *flow.Decision) error {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	_, err := weft.Call(ctx, env, api.Send, d)
	return err
}

// handleBindings answers the calls about bindings. Changes are stored before it
// answers.
func handleBindings(env *weft.Env, t *table, b *bindingPersister, k *weft.BaselineFlows) {
	kept := func(ctx context.Context, err error) error {
		if err != nil {
			return err
		}
		return inForce(b.save(ctx, &t.bindings))
	}
	weft.Handle(env, api.BindHost, func(ctx context.Context, r *api.BindHostRequest) (*api.HostBinding, error) {
		m, err := t.bindHost(weft.Now(env).UnixNano(), r.GetBinding())
		if err = kept(ctx, err); err == nil {
			t.enforcement.addState(m, k.OverallStatus)
		}
		return m, err
	})
	weft.Handle(env, api.UnbindHost, func(ctx context.Context, r *api.UnbindHostRequest) (*api.UnbindHostResponse, error) {
		m, err := t.bindings.unbind(r)
		return m, kept(ctx, err)
	})
	weft.Handle(env, api.SetPortSecurity, func(ctx context.Context, r *api.SetPortSecurityRequest) (*api.PortSecurity, error) {
		m, err := t.enforcement.setPort(weft.Now(env).UnixNano(), r.GetSecurity())
		return m, kept(ctx, err)
	})
	weft.Handle(env, api.DeletePortSecurity, func(ctx context.Context, r *api.DeletePortSecurityRequest) (*api.DeletePortSecurityResponse, error) {
		m, err := t.bindings.unsetPort(r)
		return m, kept(ctx, err)
	})
	weft.Handle(env, api.ListBindings, func(context.Context, *api.ListBindingsRequest) (*api.ListBindingsResponse, error) {
		return t.enforcement.listBindings(k.OverallStatus), nil
	})
}

// handleHolds answers the calls about holds.
func handleHolds(env *weft.Env, h *holds, s *holdPersister) {
	weft.Handle(env, api.SetHold, func(ctx context.Context, r *api.SetHoldRequest) (*api.HostHold, error) {
		return s.set(ctx, h, weft.Now(env).UnixNano(), r.GetHold())
	})
	weft.Handle(env, api.DeleteHold, func(ctx context.Context, r *api.DeleteHoldRequest) (*api.DeleteHoldResponse, error) {
		return s.drop(ctx, h, r.GetStage())
	})
	weft.Handle(env, api.ListHolds, func(context.Context, *api.ListHoldsRequest) (*api.ListHoldsResponse, error) {
		return h.list(""), nil
	})
	weft.Handle(env, api.ApproveHost, func(ctx context.Context, r *api.ApproveHostRequest) (*api.ApproveHostResponse, error) {
		return s.approve(ctx, h, r)
	})
	weft.Handle(env, api.RevokeHost, func(ctx context.Context, r *api.RevokeHostRequest) (*api.RevokeHostResponse, error) {
		return s.revoke(ctx, h, r)
	})
}

// watchBindings calls changed after bindings have changed, until ctx ends:
// soon, but less often if there are many and an update takes longer.
func watchBindings(ctx context.Context, t *table, changed func()) {
	seen := t.bindings.changes()
	t.enforcement.recordSent(seen)
	for {
		n, pause := t.bindings.changes(), 100*time.Millisecond
		if n != seen {
			seen = n
			changed()
			t.enforcement.recordSent(n)
			pause += time.Duration(t.bindings.size()) * time.Millisecond
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
	}
}

// keep writes changes every second until ctx ends, and the remaining ones then.
func keep(ctx context.Context, env *weft.Env, t *table, s *persister, b *bindingPersister) {
	save := func(ctx context.Context) error { return errors.Join(s.save(ctx, t), b.save(ctx, &t.bindings)) }
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			last, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
			defer cancel()
			if err := save(last); err != nil {
				env.Log.Warn("last changes of hosts not kept", "error", err)
			}
			return
		case <-tick.C:
		}
		if err := save(ctx); err != nil && ctx.Err() == nil {
			env.Log.Warn("hosts not kept: they may be unknown after a restart", "error", err)
		}
	}
}

// announce publishes changes, and declares what hosts may say, until ctx ends.
func announce(ctx context.Context, env *weft.Env, t *table, n *weft.BaselineFlows) {
	var list []*host
	for settled := false; ; {
		if !settled && t.saidAll() {
			settled = true
			weft.Publish(env, api.HostsSettledEvent, &api.HostsSettled{})
		}
		select {
		case <-ctx.Done():
			return
		case <-t.news.wake:
			list = t.publishMarked(now(), list, func(e *api.HostChanged) {
				if ctx.Err() == nil {
					weft.Publish(env, api.HostChangedEvent, e)
				}
			})
			for _, e := range t.claims.takeEvents() {
				if ctx.Err() == nil {
					weft.Publish(env, api.HostClaimedEvent, e)
				}
			}
			for sw, names := range t.permits.drain() {
				n.RecomputeObjects(sw, names...)
			}
		}
	}
}
