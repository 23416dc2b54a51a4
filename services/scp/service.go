// Package scp is the service that does in the switches what 3GPP's service
// communication proxy does as a program in the way (TS 23.501 §6.2.19; Fondo-
// Ferreiro et al., IEEE Access 2022). Its front takes the place of the NRF: it
// answers discoveries with one address for all producers of a type, and passes on
// registrations, from which it knows the producers. The balancer, which is the only
// one that translates, gives each consumer a producer. A stage before it judges
// connections to producers' own addresses.
//
// Only the list of services imports it; only this file imports weft.
package scp

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/weft-sdn/weft"
	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/internal/backoff"
	"github.com/weft-sdn/weft/nib"
	"github.com/weft-sdn/weft/object"
)

// Spec declares the service.
func Spec() weft.Spec {
	return weft.Spec{
		Name: "scp",
		Doc:  "lets 5G network functions find and reach each other through the switches",
		Serves: weft.Methods(api.GetScp, api.ListScpPairs, api.SetScpPolicy, api.DeleteScpPolicy, api.ListScpPolicies,
			api.DrainProducer, api.ForgetProducer, api.SetProducerWeight),
		Calls:      weft.Methods(api.ListVips, api.SetOwnedVip, api.DeleteOwnedVip, api.ListPairs, api.Send, api.Apply, api.SetStanding, api.ReadFlows),
		Reads:      reads,
		Subscribes: weft.Subjects(api.RolesSettledEvent, api.FlowsObservedEvent),
		Optional:   []string{"tenants"},
		Buckets:    []string{"instances", "endpoints", "keys", "policies"},
		Rebuilt:    []string{"instances", "keys"},
		Stage:      true,
		Listens:    true,
		Drains:     true,
		Class:      weft.Latency,
		Scale:      weft.PerPartition,
		Config:     DefaultConfig(),
		Live:       []string{"vips", "strict", "registrars", "notifications", "overload", "errors", "margin", "validity", "nrf_timeout", "instances", "endpoints"},
		Run:        run,
	}
}

// reads is what the service reads of the network.
const reads = nib.Switches | nib.Roles | nib.Links | nib.Hosts | nib.Segments

func run(ctx context.Context, env *weft.Env) error {
	cfg := env.Config.(*Config)
	policies, err1 := weft.State(env, "policies")
	instances, err2 := weft.State(env, "instances")
	endpoints, err3 := weft.State(env, "endpoints")
	keys, err4 := weft.State(env, "keys")
	if err := errors.Join(err1, err2, err3, err4); err != nil {
		return err
	}
	p := newProxy(cfg, policies, env.Log)
	p.count = newCounts(func(name, help string, labels ...string) Counter { return env.Metric.Counter(name, help, labels...) })
	p.traffic = newTraffic(func(name, help string, labels ...string) Counter { return env.Metric.Counter(name, help, labels...) },
		func(name, help string, bounds []float64, labels ...string) Observer {
			return env.Metric.Histogram(name, help, bounds, labels...)
		})
	p.single = newPairMeter(env.Metric)
	at, err := frontSockets(env, cfg, p)
	if err != nil {
		return err
	}
	n, err := newNRF(cfg, at)
	if err != nil {
		return err
	}
	keptInstances, keptEndpoints := object.NewPersister(instances), object.NewPersister(endpoints)
	instance, endpoint := p.restore(now())
	if err := errors.Join(keptInstances.Load(ctx, instance), keptEndpoints.Load(ctx, endpoint), p.policies.Load(ctx)); err != nil {
		return err
	}
	b := balancerCalls{env}
	r := newReconciler(p, b)
	gauges(env, p)

	k := follow(env, p)
	weft.ReportLimits(env, p.reached.List)
	weft.Stage(env, func(flow.DPID) weft.StageFunc { return p.packet })
	weft.OnConfig(env, func(_ context.Context, _, c *Config) error {
		p.configure(c)
		return nil
	})
	handle(env, p, b)
	if err := weft.Ready(ctx, env); err != nil {
		return err
	}
	var work sync.WaitGroup
	defer work.Wait()
	last, end := context.WithCancel(context.WithoutCancel(ctx)) // of what the front needs to leave
	work.Go(func() { r.run(last) })
	work.Go(func() { p.policies.Follow(ctx) })
	work.Go(func() { p.shelve(last, keptInstances, keptEndpoints) })
	work.Go(func() { declare(last, p.wire, k) })
	work.Go(func() { p.ways.keep(last, p, k.Recompute) })
	work.Go(func() {
		p.ways.keepDoors(last, p, object.VLAN(uint32(cfg.VLAN)), func(ctx context.Context, d *flow.Decision) error {
			ctx, cancel := context.WithTimeout(ctx, sendTime)
			defer cancel()
			_, err := weft.Call(ctx, env, api.Apply, d)
			return err
		})
	})
	if server, _ := cfg.resolver(); server.IsValid() { // Validate has seen it
		work.Go(func() { (&resolver{p, lookupAt(server)}).run(ctx) })
	}
	if at != nil {
		f := newFront(p, n, at, exitOf(p, r), r.await, env.Log)
		f.notifier = newNotifier(ctx, f, keys)
		work.Go(func() {
			defer end()
			f.serve(ctx)
		})
	} else {
		p.begun()
		p.surveyed.Store(true)
		context.AfterFunc(ctx, end)
	}
	if p.wire != nil {
		work.Go(func() { p.wire.run(last) })
	}
	work.Go(func() { p.strain.watchPairs(ctx, p, b) })
	work.Go(func() {
		p.single.run(ctx, func(ctx context.Context, req *api.ListScpPairsRequest) (*api.ListScpPairsResponse, error) {
			return p.pairs(ctx, req, b)
		})
	})
	<-ctx.Done()
	return nil
}

// frontSockets returns where the front has its sockets, nil if there is no front. A
// front without a host has a TCP stack, to which the proxy gives its packets.
func frontSockets(env *weft.Env, cfg *Config, p *proxy) (sockets, error) {
	counter := func(name, help string, labels ...string) Counter { return env.Metric.Counter(name, help, labels...) }
	conns := newPlaces(cfg.Connections, &p.reached, counter("front_connections_refused_total", "Connections to the front that did not come about, by reason.", "reason", "full"),
		counter("front_connections_closed_total", "Idle connections to the front that were closed to make room for others."), env.Log)
	if cfg.front() != "" {
		env.Metric.Gauge("front_connections", "Connections to the front, with those that are being made.", func() float64 { return float64(conns.all.Len()) })
	}
	switch cfg.front() {
	case frontHost:
		at, err := cfg.listen()
		return &hostSockets{namespace: cfg.Namespace, at: at, places: conns, locate: p.station}, err
	case frontPackets:
		w, err := newWire(cfg, newWireCounts(counter), &p.tagging, conns)
		if err != nil {
			return nil, err
		}
		w.locate, w.relays = p.station, p.relays
		w.send = func(ctx context.Context, d *flow.Decision) {
			ctx, cancel := context.WithTimeout(ctx, sendTime)
			defer cancel()
			if _, err := weft.Call(ctx, env, api.Send, d); err != nil && ctx.Err() == nil {
				env.Log.Debug("packets of the front not sent", "packets", len(d.Outs), "error", err)
			}
		}
		w.apply = func(ctx context.Context, d *flow.Decision) ([]*api.ApplyFailure, error) {
			ctx, cancel := context.WithTimeout(ctx, sendTime)
			defer cancel()
			r, err := weft.Call(ctx, env, api.Apply, d)
			return r.GetFailures(), err
		}
		p.wire = w
		return w, nil
	}
	return nil, nil
}

// exitOf returns how what is for the NRF gets past the front.
func exitOf(p *proxy, r *reconciler) exit {
	if p.wire != nil {
		return p.wire
	}
	return r
}

// sendTime is how long packets of the front may take to get to their switches.
const sendTime = time.Second

// follow follows the network, and keeps the entries that stand whatever the traffic.
func follow(env *weft.Env, p *proxy) *weft.BaselineFlows {
	w := p.wire
	k := weft.NewBaselineFlows(env, flow.OwnerSCP, func(sw *api.Switch) *api.SetStandingRequest { return p.ways.standing(w, sw) })
	weft.OnChange(env, reads, func(c nib.Change) {
		p.networkChanged(c)
		k.NetworkChanged(c)
	})
	weft.On(env, api.RolesSettledEvent, func(_ context.Context, e *api.RolesSettled) { k.RolesSettled(e) })
	weft.On(env, api.FlowsObservedEvent, func(_ context.Context, e *api.FlowsObserved) { k.FlowsObserved(e) })
	if w != nil {
		w.changed, w.settle = k.Recompute, func(ctx context.Context) { _ = k.Settle(ctx) }
		w.due = func(sw flow.DPID) bool {
			state, _ := k.Status(sw)
			return state == "syncing" || state == "failing"
		}
	}
	k.OnReply(func(sw flow.DPID, objects []string, failed []*api.WantedFlow) {
		p.ways.gates.answered(sw, failed)
		if w != nil {
			w.answered(sw, objects, failed)
		}
	})
	return k
}

// declare declares entries until ctx ends: those of an earlier run stay until the
// front serves, or has had the time to.
func declare(ctx context.Context, w *wire, k *weft.BaselineFlows) {
	for end := time.Now().Add(declareTime); w != nil && !w.open.Load() && time.Now().Before(end); {
		if backoff.Sleep(ctx, declareTime/100) != nil {
			return
		}
	}
	k.Run(ctx)
}

const declareTime = 10 * time.Second

// handle answers the calls.
func handle(env *weft.Env, p *proxy, b balancer) {
	weft.Handle(env, api.GetScp, func(ctx context.Context, req *api.GetScpRequest) (*api.GetScpResponse, error) {
		if err := checkType(p, req.GetType()); err != nil {
			return nil, err
		}
		vips, err := b.list(ctx)
		if err != nil {
			return nil, err
		}
		return p.get(req, vips, now()), nil
	})
	weft.Handle(env, api.ListScpPairs, func(ctx context.Context, req *api.ListScpPairsRequest) (*api.ListScpPairsResponse, error) {
		return p.pairs(ctx, req, b)
	})
	weft.Handle(env, api.SetScpPolicy, func(ctx context.Context, req *api.SetScpPolicyRequest) (*api.ScpPolicy, error) {
		policy, err := readPolicy(req.GetPolicy())
		if err == nil {
			err = checkType(p, policy.Type)
		}
		if err != nil {
			return nil, err
		}
		_, now, err := p.policies.Change(ctx, policy.Type, func(*api.ScpPolicy) (*api.ScpPolicy, error) { return policy, nil })
		return now, err
	})
	weft.Handle(env, api.DeleteScpPolicy, func(ctx context.Context, req *api.DeleteScpPolicyRequest) (*api.DeleteScpPolicyResponse, error) {
		policy, err := readPolicy(&api.ScpPolicy{Type: req.GetType()})
		if err != nil {
			return nil, err
		}
		old, err := p.policies.Remove(ctx, policy.Type)
		if err == nil && old == nil {
			err = checkType(p, policy.Type)
		}
		return &api.DeleteScpPolicyResponse{Deleted: old != nil}, err
	})
	weft.Handle(env, api.ListScpPolicies, func(context.Context, *api.ListScpPoliciesRequest) (*api.ListScpPoliciesResponse, error) {
		p.mu.Lock()
		defer p.mu.Unlock()
		return &api.ListScpPoliciesResponse{Policies: p.policies.List()}, nil
	})
	weft.Handle(env, api.DrainProducer, func(_ context.Context, req *api.DrainProducerRequest) (*api.ScpProducer, error) { return p.drain(req) })
	weft.Handle(env, api.SetProducerWeight, func(_ context.Context, req *api.SetProducerWeightRequest) (*api.ScpProducer, error) {
		return setWeight(p, req, now())
	})
	weft.Handle(env, api.ForgetProducer, func(_ context.Context, req *api.ForgetProducerRequest) (*api.ScpProducer, error) {
		return p.forgetProducer(req)
	})
}

// balancerCalls are the calls to the balancer.
type balancerCalls struct{ env *weft.Env }

func (b balancerCalls) list(ctx context.Context) ([]*api.Vip, error) {
	resp, err := weft.Call(ctx, b.env, api.ListVips, &api.ListVipsRequest{})
	return resp.GetVips(), err
}

func (b balancerCalls) set(ctx context.Context, v *api.Vip) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	_, err := weft.Call(ctx, b.env, api.SetOwnedVip, &api.SetOwnedVipRequest{Owner: owner, Vip: v})
	return err
}

func (b balancerCalls) remove(ctx context.Context, name string) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	_, err := weft.Call(ctx, b.env, api.DeleteOwnedVip, &api.DeleteOwnedVipRequest{Owner: owner, Name: name})
	return err
}

func (b balancerCalls) pairs(ctx context.Context, vip string, limit uint32) (*api.ListPairsResponse, error) {
	return weft.Call(ctx, b.env, api.ListPairs, &api.ListPairsRequest{Vip: vip, Limit: limit})
}

func (b balancerCalls) flows(ctx context.Context, sw flow.DPID) ([]*api.FlowEntry, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	resp, err := weft.Call(ctx, b.env, api.ReadFlows, &api.ReadFlowsRequest{Dpid: sw.String(), Owner: flow.OwnerSCP.String()})
	return resp.GetFlows(), err
}

// gauges registers the metrics that are read when somebody looks.
func gauges(env *weft.Env, p *proxy) {
	read := func(f func() int) func() float64 {
		return func() float64 {
			p.mu.Lock()
			defer p.mu.Unlock()
			return float64(f())
		}
	}
	env.Metric.Gauge("instances", "Instances of network functions that are known.", read(func() int { return len(p.book) }))
	env.Metric.Gauge("instances_apart", "Instances for which no end point can stand (weft scp get).", read(func() (n int) {
		for _, x := range p.book {
			if x.whyNot != "" {
				n++
			}
		}
		return n
	}))
	env.Metric.Gauge("producers_relieved", "End points of producers that get fewer new requests, for they are overloaded.", func() float64 { return float64(p.strain.relieved(now())) })
	env.Metric.Gauge("endpoints", "Common addresses of producers.", read(func() int { return len(p.endpoints) }))
	env.Metric.Gauge("intercepting", "Whether the front listens.", read(func() int {
		if p.serving {
			return 1
		}
		return 0
	}))
}
