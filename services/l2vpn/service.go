// Package l2vpn is the service that keeps layer-2 circuits between ports of
// switches (RFC 4664's VPWS and VPLS), over the label-switched paths of tunnels. All kinds
// of circuits are here, since one writer has to refuse two that take the same frames.
//
// Only the list of services imports it; only this file imports weft.
package l2vpn

import (
	"context"
	"sync"
	"time"

	"github.com/weft-sdn/weft"
	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/object"
	"github.com/weft-sdn/weft/services/l2vpn/oam"
)

// Spec declares the service.
func Spec() weft.Spec {
	return weft.Spec{
		Name: "l2vpn",
		Doc:  "keeps layer-2 circuits between ports, over tunnels",
		Serves: weft.Methods(api.SetCircuits, api.DeleteCircuit, api.GetCircuit, api.ListCircuits, api.PreviewCircuit, api.GetCircuitHistory,
			api.PingCircuit, api.ValidateCircuits),
		Calls: weft.Methods(api.SetStanding, api.SetTunnel, api.DeleteTunnel, api.ListTunnels, api.Send, api.ReadFlows),
		Subscribes: weft.Subjects(api.SwitchChangedEvent, api.PortChangedEvent, api.PortRoleChangedEvent, api.LinkChangedEvent,
			api.FlowsObservedEvent),
		Publishes: weft.Subjects(api.CircuitChangedEvent),
		Buckets:   []string{"circuits"},
		Class:     weft.Latency,
		Scale:     weft.PerPartition,
		Config:    defaults(),
		Stage:     true,
		Run:       run,
	}
}

// poll is how often tunnels are looked at.
const poll = time.Second

type server struct {
	env    *weft.Env
	cfg    *Config
	b      *store
	tunnel *keeper
	stand  *weft.Standing
	turn   chan struct{} // capacity one: of batches
}

func run(ctx context.Context, env *weft.Env) error {
	cfg := env.Config.(*Config)
	kept, err := weft.State(env, "circuits")
	if err != nil {
		return err
	}
	b := newStore(cfg, kept, func() time.Time { return weft.Now(env) }, func(name string, err error) {
		env.Log.Warn("circuit of an earlier run not read", "name", name, "error", err)
	})
	if err := b.circuits.Load(ctx); err != nil {
		return err
	}
	for _, state := range []string{"requested", "scheduled", "up", "degraded", "down"} {
		env.Metric.Gauge("circuits", "Circuits, by their state.", func() float64 { return float64(b.count(state)) }, "state", state)
	}
	s := &server{env: env, cfg: cfg, b: b, turn: make(chan struct{}, 1), stand: weft.KeepStanding(env, flow.OwnerCircuits, b.want)}
	s.tunnel = &keeper{b: b, turn: make(chan struct{}, 1), kicked: make(chan struct{}, 1),
		set: func(ctx context.Context, t *api.Tunnel) (*api.Tunnel, error) {
			return weft.Call(ctx, env, api.SetTunnel, &api.SetTunnelRequest{Tunnel: t})
		},
		remove: func(ctx context.Context, name string) error {
			_, err := weft.Call(ctx, env, api.DeleteTunnel, &api.DeleteTunnelRequest{Name: name})
			return err
		}}
	news := make(chan struct{}, 1)
	s.stand.OnConfirmed(b.confirmed)
	b.mu.Lock()
	b.declare, b.kick, b.news = s.stand.Changed, func() { object.Notify(s.tunnel.kicked) }, func() { object.Notify(news) }
	b.mu.Unlock()
	weft.On(env, api.SwitchChangedEvent, func(_ context.Context, e *api.SwitchChanged) {
		b.switchChanged(e)
		s.stand.SwitchChanged(e)
	})
	weft.On(env, api.PortChangedEvent, func(_ context.Context, e *api.PortChanged) { b.portChanged(e) })
	weft.On(env, api.PortRoleChangedEvent, func(_ context.Context, e *api.PortRoleChanged) { b.roleChanged(e) })
	weft.On(env, api.LinkChangedEvent, func(_ context.Context, e *api.LinkChanged) { b.linkChanged(e) })
	weft.On(env, api.FlowsObservedEvent, func(_ context.Context, e *api.FlowsObserved) { s.stand.FlowsObserved(e) })
	weft.Handle(env, api.SetCircuits, s.set)
	weft.Handle(env, api.DeleteCircuit, func(ctx context.Context, q *api.DeleteCircuitRequest) (*api.DeleteCircuitResponse, error) {
		r, err := s.set(ctx, &api.SetCircuitsRequest{Delete: []string{q.GetName()}})
		return &api.DeleteCircuitResponse{Deleted: len(r.GetDeleted()) > 0}, err
	})
	weft.Handle(env, api.GetCircuit, func(_ context.Context, q *api.GetCircuitRequest) (*api.Circuit, error) {
		if m := b.get(q.GetName()); m != nil {
			return m, nil
		}
		return nil, missing(q.GetName())
	})
	weft.Handle(env, api.ListCircuits, func(_ context.Context, q *api.ListCircuitsRequest) (*api.ListCircuitsResponse, error) {
		return &api.ListCircuitsResponse{Circuits: b.list(q.GetType())}, nil
	})
	weft.Handle(env, api.GetCircuitHistory, func(_ context.Context, q *api.GetCircuitHistoryRequest) (*api.CircuitHistory, error) {
		return b.historyOf(q.GetName())
	})
	weft.Handle(env, api.PreviewCircuit, s.preview)
	o := newObserver(b, func(ctx context.Context, d *flow.Decision) error {
		_, err := weft.Call(ctx, env, api.Send, d)
		return err
	})
	weft.Stage(env, func(flow.DPID) weft.StageFunc {
		return func(in *flow.PacketIn, d *flow.Decision) flow.Verdict {
			if o.takes(in) {
				return flow.Done
			}
			return b.packet(in, d)
		}
	})
	weft.Handle(env, api.PingCircuit, o.ping)
	weft.Handle(env, api.ValidateCircuits, func(ctx context.Context, q *api.ValidateCircuitsRequest) (*api.ValidateCircuitsResponse, error) {
		return s.validate(ctx, q, func(ctx context.Context, sw flow.DPID) ([]*api.FlowEntry, error) {
			r, err := weft.Call(ctx, env, api.ReadFlows, &api.ReadFlowsRequest{Dpid: sw.String(), Owner: flow.OwnerCircuits.String()})
			return r.GetFlows(), err
		})
	})
	counts(env, o.p)
	if err := weft.Ready(ctx, env); err != nil {
		return err
	}
	var work sync.WaitGroup
	defer work.Wait()
	work.Go(func() { b.circuits.Follow(ctx) })
	work.Go(func() { s.publish(ctx, news) })
	work.Go(func() { b.runLANs(ctx) })
	work.Go(func() { o.run(ctx) })
	s.look(ctx) // before, nothing is known of the groups by which circuits enter
	work.Go(func() { s.watch(ctx) })
	s.stand.Run(ctx)
	return nil
}

// look learns which tunnels there are; it tries until it has.
func (s *server) look(ctx context.Context) {
	for {
		r, err := weft.Call(ctx, s.env, api.ListTunnels, &api.ListTunnelsRequest{})
		if err == nil {
			s.b.learn(r.Tunnels, true)
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(poll):
		}
	}
}

// watch keeps tunnels until ctx ends.
func (s *server) watch(ctx context.Context) {
	tick := time.NewTicker(poll)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			s.look(ctx)
		case <-s.tunnel.kicked:
		}
		s.tunnel.keep(ctx)
	}
}

// publish tells of circuits until ctx ends.
func (s *server) publish(ctx context.Context, news <-chan struct{}) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-news:
		}
		for _, e := range s.b.changes() {
			weft.Publish(s.env, api.CircuitChangedEvent, e)
		}
	}
}

// set answers SetCircuits.
func (s *server) set(ctx context.Context, q *api.SetCircuitsRequest) (*api.SetCircuitsResponse, error) {
	select {
	case s.turn <- struct{}{}:
		defer func() { <-s.turn }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	t, err := s.b.read(q)
	if err != nil {
		return nil, err
	}
	if q.DryRun {
		return s.b.outcome(t), nil
	}
	if err := t.error(); err != nil {
		return nil, err
	}
	r := s.b.outcome(t)
	if err := s.b.commit(ctx, t); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, s.cfg.Deadline)
	defer cancel()
	s.tunnel.keep(ctx)
	s.stand.Confirm(ctx, s.cfg.Deadline, "circuits")
	for _, o := range r.Outcomes {
		o.Circuit = s.b.get(o.Name)
	}
	return r, nil
}

// preview answers PreviewCircuit.
func (s *server) preview(_ context.Context, q *api.PreviewCircuitRequest) (*api.CircuitPreview, error) {
	t, err := s.b.read(&api.SetCircuitsRequest{Circuits: []*api.Circuit{q.GetCircuit()}})
	if err != nil {
		return nil, err
	}
	return s.b.preview(t)
}

// counts registers the metrics of probes.
func counts(env *weft.Env, p *oam.Prober) {
	for what, get := range map[string]func(oam.Counts) uint64{
		"sent":     func(c oam.Counts) uint64 { return c.Sent },
		"returned": func(c oam.Counts) uint64 { return c.Returned },
		"lost":     func(c oam.Counts) uint64 { return c.Lost },
		"late":     func(c oam.Counts) uint64 { return c.Late },
		"forged":   func(c oam.Counts) uint64 { return c.Forged },
	} {
		env.Metric.CounterFunc("probes_total", "Probes of circuits, by what became of them.", func() float64 { return float64(get(p.Counts())) }, "outcome", what)
	}
}
