// Package l2vpn is the service that keeps layer-2 circuits between ports of
// switches (RFC 4664's VPWS and VPLS), over the label-switched paths of tunnels. All kinds
// of circuits are here, since one writer has to refuse two that take the same frames.
//
// Only the list of services imports it; only this file imports weft.
package l2vpn

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/weft-sdn/weft"
	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/internal/backoff"
	"github.com/weft-sdn/weft/nib"
	"github.com/weft-sdn/weft/object"
	"github.com/weft-sdn/weft/services/l2vpn/oam"
)

// Spec declares the service.
func Spec() weft.Spec {
	return weft.Spec{
		Name: "l2vpn",
		Doc:  "keeps layer-2 circuits between ports, over tunnels",
		Serves: weft.Methods(api.SetCircuits, api.DeleteCircuit, api.GetCircuit, api.ListCircuits, api.PreviewCircuit, api.GetCircuitHistory, api.SwapCircuit, api.RerouteCircuits,
			api.PingCircuit, api.ListCircuitMacs, api.ValidateCircuits),
		Calls:      weft.Methods(api.SetStanding, api.ReadMultipart, api.SetTunnels, api.RerouteTunnels, api.ListTunnels, api.Send, api.ReadFlows, api.ReadGroups, api.ReadMeters),
		Reads:      reads,
		Subscribes: weft.Subjects(api.RolesSettledEvent, api.FlowsObservedEvent, api.FlowRemovedEvent, api.TunnelChangedEvent),
		Publishes:  weft.Subjects(api.CircuitChangedEvent, api.CircuitPortChangedEvent),
		Buckets:    []string{"circuits", "macs", "records"},
		Class:      weft.Latency,
		Scale:      weft.PerPartition,
		Config:     defaults(),
		Stage:      true,
		Run:        run,
	}
}

// reads is what the service reads of the network.
const reads = nib.Switches | nib.Ports | nib.Roles | nib.Links | nib.Nodes

// poll is how often tunnels are asked for again that cannot be had as they should be.
const poll = time.Second

type server struct {
	env    *weft.Env
	cfg    *Config
	b      *store
	tunnel *keeper
	stand  *weft.BaselineFlows
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
	records, err := weft.State(env, "records")
	if err != nil {
		return err
	}
	if err := b.circuits.Load(ctx); err != nil {
		return err
	}
	persister := object.NewPersister(records)
	if err := persister.Load(ctx, b.recall); err != nil {
		return err
	}
	macs, err := weft.State(env, "macs")
	if err != nil {
		return err
	}
	macKeeper := object.NewPersister(macs)
	if err := macKeeper.Load(ctx, b.recallMACs); err != nil {
		return err
	}
	for _, state := range []string{"requested", "scheduled", "up", "degraded", "down"} {
		env.Metric.Gauge("circuits", "Circuits, by their state.", func() float64 { return float64(b.having(state)) }, "state", state)
	}
	for kind, way := range []string{"received", "sent", "dropped"} {
		env.Metric.CounterFunc("packets_total", "Frames from and to customers of circuits, and those from customers that were not carried, as last read.",
			func() float64 {
				b.mu.Lock()
				defer b.mu.Unlock()
				return float64(b.counters.total()[kind].packets)
			}, "direction", way)
	}
	s := &server{env: env, cfg: cfg, b: b, turn: make(chan struct{}, 1), stand: weft.NewObjectFlows(env, flow.OwnerCircuits, b.pieces, b.piece)}
	p := &poller{b: b, read: s}
	s.tunnel = &keeper{b: b, list: func(ctx context.Context) ([]*api.Tunnel, error) {
		r, err := weft.Call(ctx, env, api.ListTunnels, &api.ListTunnelsRequest{})
		return r.GetTunnels(), err
	},
		turn: make(chan struct{}, 1), kicked: make(chan struct{}, 1),
		ask: func(ctx context.Context, q *api.SetTunnelsRequest) (*api.SetTunnelsResponse, error) {
			return weft.Call(ctx, env, api.SetTunnels, q)
		}}
	news, tight := make(chan struct{}, 1), make(chan struct{}, 1)
	mover := &mover{b: b, try: s.tunnel.ask}
	s.stand.OnReply(b.answered)
	b.mu.Lock()
	b.declare, b.kick, b.news = s.stand.RecomputeObjects, func() { object.Notify(s.tunnel.kicked) }, func() { object.Notify(news) }
	b.tight = func() { object.Notify(tight) }
	b.mu.Unlock()
	weft.ReportLimits(env, b.reached.List)
	weft.OnChange(env, reads, func(c nib.Change) {
		b.networkChanged(c)
		s.stand.NetworkChanged(c)
	})
	weft.On(env, api.RolesSettledEvent, func(_ context.Context, e *api.RolesSettled) { s.stand.RolesSettled(e) })
	weft.On(env, api.FlowsObservedEvent, func(_ context.Context, e *api.FlowsObserved) { s.stand.FlowsObserved(e) })
	weft.On(env, api.TunnelChangedEvent, func(_ context.Context, e *api.TunnelChanged) {
		if !e.Deleted {
			b.learn([]*api.Tunnel{e.Tunnel}, false)
			return
		}
		b.gone(e.GetTunnel().GetName())
	})
	weft.On(env, api.FlowRemovedEvent, func(_ context.Context, e *api.FlowRemoved) {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.counters.flowRemoved(e)
	})
	weft.Handle(env, api.SetCircuits, s.set)
	weft.Handle(env, api.DeleteCircuit, func(ctx context.Context, q *api.DeleteCircuitRequest) (*api.DeleteCircuitResponse, error) {
		r, err := s.set(ctx, &api.SetCircuitsRequest{Delete: []string{q.GetName()}})
		return &api.DeleteCircuitResponse{Deleted: len(r.GetDeleted()) > 0}, err
	})
	weft.Handle(env, api.GetCircuit, func(ctx context.Context, q *api.GetCircuitRequest) (*api.Circuit, error) {
		p.readOne(ctx, q.GetName())
		if m := b.get(q.GetName()); m != nil {
			return m, nil
		}
		return nil, missing(q.GetName())
	})
	weft.Handle(env, api.ListCircuits, func(ctx context.Context, q *api.ListCircuitsRequest) (*api.ListCircuitsResponse, error) {
		p.readEach(ctx)
		return &api.ListCircuitsResponse{Circuits: b.list(q.GetType())}, nil
	})
	by := &operations{b: b, move: func(ctx context.Context, q *api.RerouteTunnelsRequest) (*api.RerouteTunnelsResponse, error) {
		return weft.Call(ctx, env, api.RerouteTunnels, q)
	}}
	weft.Handle(env, api.SwapCircuit, by.swap)
	weft.Handle(env, api.RerouteCircuits, by.reroute)
	weft.Handle(env, api.GetCircuitHistory, func(_ context.Context, q *api.GetCircuitHistoryRequest) (*api.CircuitHistory, error) {
		return b.historyOf(q.GetName())
	})
	weft.Handle(env, api.ListCircuitMacs, func(_ context.Context, q *api.ListCircuitMacsRequest) (*api.ListCircuitMacsResponse, error) {
		return b.macsOf(q.GetName())
	})
	weft.Handle(env, api.PreviewCircuit, s.preview)
	send := func(ctx context.Context, d *flow.Decision) error {
		_, err := weft.Call(ctx, env, api.Send, d)
		return err
	}
	o, r := newObserver(b, send), newRings(b)
	v := &maintenance{b: b, control: o.p.Control}
	weft.Stage(env, func(flow.DPID) weft.StageFunc {
		return func(in *flow.PacketIn, d *flow.Decision) flow.Verdict {
			if o.takes(in) || r.takes(in) || v.takes(in, d) {
				return flow.Done
			}
			return b.packet(in)
		}
	})
	weft.Handle(env, api.PingCircuit, o.ping)
	from := &switchReader{
		flows: func(ctx context.Context, sw flow.DPID) ([]*api.FlowEntry, error) {
			r, err := weft.Call(ctx, env, api.ReadFlows, &api.ReadFlowsRequest{Dpid: sw.String(), Owner: flow.OwnerCircuits.String()})
			return r.GetFlows(), err
		},
		groups: func(ctx context.Context, sw flow.DPID) ([]*api.Group, error) {
			r, err := weft.Call(ctx, env, api.ReadGroups, &api.ReadGroupsRequest{Dpid: sw.String()})
			return r.GetGroups(), err
		},
		meters: func(ctx context.Context, sw flow.DPID) ([]*api.Meter, error) {
			r, err := weft.Call(ctx, env, api.ReadMeters, &api.ReadMetersRequest{Dpid: sw.String()})
			return r.GetMeters(), err
		},
	}
	weft.Handle(env, api.ValidateCircuits, func(ctx context.Context, q *api.ValidateCircuitsRequest) (*api.ValidateCircuitsResponse, error) {
		return s.validate(ctx, q, from)
	})
	counts(env, o.p)
	if err := weft.Ready(ctx, env); err != nil {
		return err
	}
	var work sync.WaitGroup
	defer work.Wait()
	work.Go(func() { b.circuits.Follow(ctx) })
	work.Go(func() { s.publish(ctx, news) })
	work.Go(func() { s.runLANs(ctx) })
	work.Go(func() { s.keepTimes(ctx) })
	work.Go(func() { p.run(ctx) })
	work.Go(func() { o.run(ctx) })
	work.Go(func() { r.run(ctx, send) })
	work.Go(func() { v.run(ctx, send) })
	work.Go(func() { s.record(ctx, persister, macKeeper) })
	s.look(ctx) // before, nothing is known of the groups by which circuits enter
	work.Go(func() { s.watch(ctx) })
	work.Go(func() { followMarks(ctx, b, s.meterFeatures) })
	work.Go(func() { mover.run(ctx, tight) })
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
		if backoff.Sleep(ctx, poll) != nil {
			return
		}
	}
}

// watch keeps tunnels until ctx ends.
func (s *server) watch(ctx context.Context) {
	tick := time.NewTicker(poll)
	defer tick.Stop()
	returned := time.After(returnTime)
	for {
		select {
		case <-ctx.Done():
			return
		case <-returned:
			s.b.mu.Lock()
			s.b.net.returned = true
			s.b.assessAll()
			s.b.mu.Unlock()
		case <-tick.C:
			s.tunnel.keep(ctx, true)
		case <-s.tunnel.kicked:
			s.tunnel.keep(ctx, false)
		}
	}
}

// runLANs sees to vpls until ctx ends.
func (s *server) runLANs(ctx context.Context) {
	tick := time.NewTicker(learnGap)
	defer tick.Stop()
	for n := 1; ; n++ {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		second := n%int(time.Second/learnGap) == 0
		if s.b.spread(second); second {
			s.b.replant(ctx)
		}
	}
}

// keepTimes lets circuits begin and end until ctx ends.
func (s *server) keepTimes(ctx context.Context) {
	for {
		wait := poll
		if next := s.b.turn(); !next.IsZero() {
			wait = min(wait, max(next.Sub(s.b.now()), time.Millisecond))
		}
		if backoff.Sleep(ctx, wait) != nil {
			return
		}
	}
}

// readTime bounds how long a switch may take to say what entries have counted.
const readTime = 2 * time.Second

// entries reads what entries of a switch have counted.
func (s *server) entries(ctx context.Context, sw flow.DPID, cookie, mask flow.Cookie) ([]*api.FlowEntry, error) {
	ctx, cancel := context.WithTimeout(ctx, readTime)
	defer cancel()
	r, err := weft.Call(ctx, s.env, api.ReadMultipart, &api.ReadMultipartRequest{Dpid: sw.String(), Kind: api.Multipart_MULTIPART_FLOW,
		Table: allTables, OutPort: uint32(flow.PortAny), OutGroup: flow.GroupAny, Cookie: uint64(cookie), CookieMask: uint64(mask)})
	if err != nil {
		return nil, err
	}
	var list []*api.FlowEntry
	for _, f := range r.Flows {
		list = append(list, f.Flow)
	}
	return list, nil
}

// meters reads what a meter of a switch has counted, or all.
func (s *server) meters(ctx context.Context, sw flow.DPID, meter uint32) ([]*api.MeterStats, error) {
	ctx, cancel := context.WithTimeout(ctx, readTime)
	defer cancel()
	r, err := weft.Call(ctx, s.env, api.ReadMultipart, &api.ReadMultipartRequest{Dpid: sw.String(), Kind: api.Multipart_MULTIPART_METER_STATS, Meter: meter})
	return r.GetMeters(), err
}

// meterFeatures reads what the meters of a switch can do.
func (s *server) meterFeatures(ctx context.Context, sw flow.DPID) (*api.MeterFeatures, error) {
	ctx, cancel := context.WithTimeout(ctx, readTime)
	defer cancel()
	r, err := weft.Call(ctx, s.env, api.ReadMultipart, &api.ReadMultipartRequest{Dpid: sw.String(), Kind: api.Multipart_MULTIPART_METER_FEATURES})
	return r.GetMeterFeatures(), err
}

// allTables is OFPTT_ALL.
const allTables = 255

// storing is how often what is kept of circuits is stored.
const storing = 2 * time.Second

// record stores the states and counters of circuits, and what is learnt of vpls, until ctx
// ends, and then once more.
func (s *server) record(ctx context.Context, p, macs *object.Persister) {
	tick := time.NewTicker(storing)
	defer tick.Stop()
	for done := false; !done; {
		select {
		case <-ctx.Done():
			done = true
		case <-tick.C:
		}
		last, cancel := context.WithTimeout(context.WithoutCancel(ctx), readTime)
		err := errors.Join(p.Follow(last, &s.b.mu, func() uint64 { return s.b.version + s.b.counters.version }, s.b.records, s.cfg.Circuits),
			macs.Follow(last, &s.b.mu, func() uint64 { return s.b.macs }, s.b.keptMACs, macParts*s.cfg.Circuits))
		cancel()
		if err != nil && !done {
			s.env.Log.Warn("states and counters of circuits, and learnt addresses, not stored", "error", err)
		}
	}
}

// publish publishes the changes of circuits and of their ports until ctx ends.
func (s *server) publish(ctx context.Context, news <-chan struct{}) {
	for {
		s.b.mu.Lock()
		ports := s.b.reserved.changes()
		s.b.mu.Unlock()
		for _, e := range ports {
			weft.Publish(s.env, api.CircuitPortChangedEvent, e)
		}
		s.b.mu.Lock()
		circuits := s.b.changes.take()
		s.b.mu.Unlock()
		for _, e := range circuits {
			weft.Publish(s.env, api.CircuitChangedEvent, e)
		}
		select {
		case <-ctx.Done():
			return
		case <-news:
		}
	}
}

// pending is how often it is looked whether circuits are still requested.
const pending = 5 * time.Millisecond

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
	if err := s.tunnel.reserve(ctx, t); err != nil {
		return nil, err
	}
	if q.DryRun {
		return t.outcome(s.b), nil
	}
	if err := t.error(); err != nil {
		return nil, err
	}
	r := t.outcome(s.b)
	if err := t.commit(ctx, s.b); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, s.cfg.Deadline)
	defer cancel()
	s.tunnel.keep(ctx, false)
	s.stand.SettleWithin(ctx, s.cfg.Deadline, "circuits")
	for s.pending(r) { // a switch may have connected just now
		select {
		case <-ctx.Done():
		case <-time.After(pending):
			continue
		}
		break
	}
	for _, o := range r.Outcomes {
		o.Circuit = s.b.get(o.Name)
	}
	return r, nil
}

// pending reports whether a circuit that a batch has made or changed is requested only,
// or a switch that is there has not confirmed it.
func (s *server) pending(r *api.SetCircuitsResponse) bool {
	b := s.b
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, name := range slices.Concat(r.Added, r.Changed) {
		st := b.status[name]
		if st == nil {
			continue
		}
		if st.state == "requested" || slices.ContainsFunc(st.circuit.switches(), func(sw flow.DPID) bool {
			return b.net.Info(sw).GetConnected() && !st.confirmed(sw) && st.refused[sw] == ""
		}) {
			return true
		}
	}
	return false
}

// preview answers PreviewCircuit.
func (s *server) preview(ctx context.Context, q *api.PreviewCircuitRequest) (*api.CircuitPreview, error) {
	t, err := s.b.read(&api.SetCircuitsRequest{Circuits: []*api.Circuit{q.GetCircuit()}})
	if err != nil {
		return nil, err
	}
	if err := s.tunnel.reserve(ctx, t); err != nil {
		return nil, err
	}
	p, wants := t.preview(s.b)
	if wants, err = s.roomy(ctx, t, wants); err != nil {
		return nil, err
	}
	if ahead := t.planned[0]; len(ahead) > 0 {
		p.Path, p.Standby = ways(ahead[0])
		t.fit(s.b, ahead, p)
		return p, nil
	}
	if len(wants) == 0 {
		if t.refused[0] == nil {
			t.fit(s.b, nil, p)
		}
		return p, nil
	}
	r, err := weft.Call(ctx, s.env, api.SetTunnels, &api.SetTunnelsRequest{User: user, Tunnels: wants, DryRun: true})
	if err != nil {
		return nil, err
	}
	var tunnels []*api.Tunnel
	for i, o := range r.Outcomes {
		tunnels = append(tunnels, o.Tunnel)
		p.Preempted = append(p.Preempted, o.Preempts...)
		switch m := o.Tunnel; {
		case o.Code != 0:
			p.Feasible, p.Reason = false, "tunnel "+o.Name+": "+o.Error
		case m.GetState() == "down":
			p.Feasible, p.Reason = false, "tunnel "+o.Name+": "+m.GetReason()
		}
		if i == 0 {
			p.Path, p.Standby = ways(o.Tunnel)
		}
	}
	t.fit(s.b, tunnels, p)
	return p, nil
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
