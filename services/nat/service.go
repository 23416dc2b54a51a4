// Package nat is the service of address translation between networks inside and
// the outside, at a port of a switch. The connection tracking of that switch
// translates, by baseline flows, so that connections outlive the controller. It
// is the stage of the pipeline before forwarding: it answers for the addresses of
// gateways and brings packets from hosts elsewhere to the gateway's switch.
//
// Only the list of services imports it; only this file imports weft.
package nat

import (
	"context"
	"errors"
	"slices"
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
		Name:    "nat",
		Doc:     "translates addresses between inside and outside by the switch's connection tracking",
		Calls:   weft.Methods(api.Send, api.ReadFlows),
		Buckets: []string{"hosts"},
		Rebuilt: []string{"hosts"},
		Stage:   true,
		Config:  DefaultConfig(),
		Live:    []string{"gateways", "hosts", "ask_interval", "poll", "exhausted", "deadline"},
		Run:     run,
	}, new(store).kind())
}

func run(ctx context.Context, env *weft.Env) error {
	keptHosts, err := weft.State(env, "hosts")
	if err != nil {
		return err
	}
	b, s := newStore(env.Config.(*Config)), object.NewPersister(keptHosts)
	if err := errors.Join(b.loadHosts(ctx, s), policy.Serve(ctx, env, b.gateways)); err != nil {
		return err
	}
	env.Metric.Gauge("stray_packets", "Packets to or from a gateway that were refused since the service started.", func() float64 { return float64(b.strays.Load()) })
	m := &meters{metric: env.Metric, store: b, of: map[string]bool{}}
	m.update()
	turns := []chan struct{}{make(chan struct{}, 1), make(chan struct{}, 1)} // of attend and watch
	weft.ReportLimits(env, b.reached.List)
	weft.Stage(env, func(flow.DPID) weft.StageFunc { return b.packet })
	weft.OnConfig(env, func(_ context.Context, _, c *Config) error {
		b.cfg.Store(c)
		b.gateways.Recompute() // another bound of hosts
		for _, t := range turns {
			object.Notify(t)
		}
		return nil
	})
	if err := weft.Ready(ctx, env); err != nil {
		return err
	}
	var work sync.WaitGroup
	defer work.Wait()
	work.Go(func() { attend(ctx, env, b, s, turns[0]) })
	work.Go(func() { watch(ctx, env, b, m, turns[1]) })
	b.gateways.Run(ctx)
	return nil
}

// attend asks for next hops, takes their answers and stores the hosts inside.
// again notifies it that the configuration has changed.
func attend(ctx context.Context, env *weft.Env, b *store, s *object.Persister, again <-chan struct{}) {
	tick := time.NewTicker(b.cfg.Load().AskInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-again:
			tick.Reset(b.cfg.Load().AskInterval)
		case a := <-b.news:
			changed, err := b.learnt(ctx, a.gateway, a.hop, a.mac)
			if err != nil {
				env.Log.Warn("next hop not kept", "gateway", a.gateway, "error", err)
			} else if changed {
				env.Log.Info("next hop found", "gateway", a.gateway, "address", a.hop, "mac", a.mac)
			}
		case <-tick.C:
			d := &flow.Decision{}
			if b.ask(now(), d); !d.Empty() {
				if _, err := call(ctx, env, api.Send, d); err != nil && ctx.Err() == nil {
					env.Log.Debug("next hops not asked for", "error", err)
				}
			}
			if err := b.keepHosts(ctx, s); err != nil && ctx.Err() == nil {
				env.Log.Warn("hosts inside not kept", "error", err)
			}
		}
	}
}

// watch reads from the gateways' switches how many packets were refused because
// no port was free, and publishes it.
func watch(ctx context.Context, env *weft.Env, b *store, m *meters, again <-chan struct{}) {
	tick := time.NewTicker(b.cfg.Load().Poll)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-again:
			tick.Reset(b.cfg.Load().Poll)
			continue
		case <-b.another:
			m.update()
			continue
		case <-tick.C:
		}
		m.update()
		for _, sw := range b.sites() {
			resp, err := call(ctx, env, api.ReadFlows, &api.ReadFlowsRequest{Dpid: sw.String(), Owner: flow.OwnerNAT.String()})
			if err != nil {
				continue // the switch has gone; the next turn reads what it has counted meanwhile
			}
			for _, r := range b.counted(sw, resp.Flows, now()) {
				m.refused(r)
				env.Log.Warn("no free address and port for new connections; widen the pool or its ports", "gateway", r.gateway, "dpid", sw, "packets", r.packets)
			}
		}
	}
}

// meters are the metrics of single gateways. They come and go with the gateways,
// so nat.gateways bounds them.
type meters struct {
	metric weft.Metrics
	store  *store

	mu sync.Mutex // guards of
	of map[string]bool
}

const (
	exhaustedTotal = "exhausted_total"
	exhaustedNow   = "exhausted"
	packetsTotal   = "packets_total"
)

// update adds metrics of new gateways and removes those of deleted ones.
func (m *meters) update() {
	m.mu.Lock()
	defer m.mu.Unlock()
	names := m.store.names()
	for name := range m.of {
		if !slices.Contains(names, name) {
			delete(m.of, name)
			m.metric.Remove(exhaustedTotal, "gateway", name)
			m.metric.Remove(exhaustedNow, "gateway", name)
			m.metric.Remove(packetsTotal, "gateway", name, "direction", "out")
			m.metric.Remove(packetsTotal, "gateway", name, "direction", "in")
		}
	}
	for _, name := range names {
		if m.of[name] {
			continue
		}
		m.of[name] = true
		m.counter(name)
		m.metric.Gauge(exhaustedNow, "Whether a connection was refused lately because no address and port of the pool were free.", func() float64 {
			if _, _, yes := m.store.read(name, now()); yes {
				return 1
			}
			return 0
		}, "gateway", name)
		const help = "Packets that a gateway has translated, since its switch has its entries."
		m.metric.CounterFunc(packetsTotal, help, func() float64 { n, _, _ := m.store.read(name, now()); return n }, "gateway", name, "direction", "out")
		m.metric.CounterFunc(packetsTotal, help, func() float64 { _, n, _ := m.store.read(name, now()); return n }, "gateway", name, "direction", "in")
	}
}

func (m *meters) counter(name string) weft.Counter {
	return m.metric.Counter(exhaustedTotal, "Packets dropped because no address and port were free.", "gateway", name)
}

// refused counts packets of a gateway, unless it has been deleted meanwhile.
func (m *meters) refused(r refusal) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.of[r.gateway] {
		m.counter(r.gateway).Add(float64(r.packets))
	}
}

// call is Call that takes 2 s at most.
func call[Req, Resp any](ctx context.Context, env *weft.Env, m api.Method[Req, Resp], req *Req) (*Resp, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	return weft.Call(ctx, env, m, req)
}
