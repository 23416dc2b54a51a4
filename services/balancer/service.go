// Package balancer is the service of virtual IPs: it answers for their addresses,
// gives each connection to a member of the pool, makes the switches rewrite its
// packets there and back, and checks which members serve. It is the stage of the
// pipeline before forwarding, which then sees packets as if clients had addressed
// the members.
//
// Only the list of services imports it; only this file imports weft.
package balancer

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/weft-sdn/weft"
	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/internal/backoff"
	"github.com/weft-sdn/weft/nib"
	kit "github.com/weft-sdn/weft/policy"
)

// Spec declares the service.
func Spec() weft.Spec {
	return kit.Declare(weft.Spec{
		Name: "balancer",
		Doc:  "spreads connections to virtual IPs over pools of hosts",
		Serves: weft.Methods(api.SetMember, api.DeleteMember, api.DrainMember, api.ListConnections, api.ListPairs,
			api.SetOwnedVip, api.DeleteOwnedVip),
		Calls:      weft.Methods(api.Send, api.Apply, api.Observe, api.ReadFlows),
		Subscribes: weft.Subjects(api.FlowRemovedEvent),
		Optional:   []string{"tenants"},
		Stage:      true,
		Config:     DefaultConfig(),
		Live:       []string{"*"},
		Run:        run,
	}, new(balancer).kind())
}

func newBalancer(cfg *Config, count *counts, log *slog.Logger) *balancer {
	b := &balancer{
		log: log, count: count, out: newOutbox(), damaged: func() bool { return false }, settle: func(context.Context) {},
		net: newNetwork(),
	}
	b.cfg.Store(cfg)
	b.tracker = &tracker{
		cfg: &b.cfg, net: b.net, index: &b.index, out: b.out, count: count,
		connections: newConnections(), bindings: bindings{}, seals: seals{},
	}
	b.tracker.after = func(d time.Duration, f func()) {
		time.AfterFunc(d, func() {
			b.mu.Lock()
			defer b.mu.Unlock()
			f()
		})
	}
	b.prober = &prober{
		cfg: &b.cfg, log: log, net: b.net, count: count, down: b.tracker.lose, probes: map[probeKey]*member{}, asked: map[place]asked{},
	}
	b.vips = kit.New(b.kind())
	return b
}

// reads is what the service reads of the network.
const reads = nib.Switches | nib.Roles | nib.Hosts | nib.Segments

// kind describes the VIPs.
func (b *balancer) kind() kit.Kind[*api.Vip, *vip] {
	return kit.Kind[*api.Vip, *vip]{
		Owner: flow.OwnerBalancer, What: "vip", Many: "VIPs", Bucket: "vips", Guard: &b.mu, Raise: "balancer.vips",
		Set: api.SetVip, Delete: api.DeleteVip, List: api.ListVips,
		Check: b.check, Load: b.load, Said: func(v *vip) *api.Vip { return v.said }, Status: b.status,
		Admit: b.admit, Release: func(v *vip) error { return v.mine(byOperator) }, Changed: b.changed, Unchanged: hasten, All: b.rules,
		Reads: reads, Network: func(c nib.Change) { b.networkChanged(c, now()) },
		Observed: func(e *api.FlowsObserved) { b.observed(e, now()) },
		Most:     func() int { return b.cfg.Load().Vips }, Settle: func(ctx context.Context) { b.settle(ctx) },
	}
}

func run(ctx context.Context, env *weft.Env) error {
	count := newCounts(func(name, help string, labels ...string) Counter { return env.Metric.Counter(name, help, labels...) })
	b := newBalancer(env.Config.(*Config), count, env.Log)
	b.damaged = func() bool { return weft.Damage(env) != "" }
	b.tracker.last = rand.Uint32() >> 1 // different from those of earlier runs
	if err := kit.Serve(ctx, env, b.vips); err != nil {
		return err
	}
	gauges(env, b)
	m := &meters{metric: env.Metric, balancer: b, of: map[[2]string]bool{}}
	m.update()
	b.settle = func(ctx context.Context) {
		m.update()
		deadline := b.cfg.Load().Deadline
		flush, cancel := context.WithTimeout(ctx, deadline)
		defer cancel()
		b.out.flush(flush)
		b.vips.Flows().SettleWithin(ctx, deadline, "groups")
	}

	weft.ReportLimits(env, b.tracker.reached.List)
	weft.Stage(env, func(flow.DPID) weft.StageFunc { return b.packet })
	weft.On(env, api.FlowRemovedEvent, func(_ context.Context, e *api.FlowRemoved) { b.removed(e, now()) })
	weft.OnConfig(env, func(_ context.Context, _, c *Config) error {
		b.cfg.Store(c)
		return nil
	})
	read := readCounters(env, b)
	weft.Handle(env, api.SetMember, b.SetMember)
	weft.Handle(env, api.DeleteMember, b.DeleteMember)
	weft.Handle(env, api.DrainMember, b.DrainMember)
	weft.Handle(env, api.SetOwnedVip, b.SetOwnedVip)
	kit.Answer(b.vips, api.DeleteOwnedVip, b.DeleteOwnedVip)
	weft.Handle(env, api.ListConnections, b.ListConnections)
	weft.Handle(env, api.ListPairs, func(ctx context.Context, req *api.ListPairsRequest) (*api.ListPairsResponse, error) {
		return b.ListPairs(ctx, req, read)
	})
	if err := weft.Ready(ctx, env); err != nil {
		return err
	}
	var work sync.WaitGroup
	defer work.Wait()
	work.Go(func() { b.vips.Run(ctx) })
	work.Go(func() { b.out.run(ctx, func(l letter) { send(ctx, env, b, l) }) })
	work.Go(func() { observe(ctx, env, b) })
	work.Go(func() { b.follow(ctx, read) })
	tick, broom := time.NewTicker(checkTick), time.NewTicker(tidyTick)
	defer tick.Stop()
	defer broom.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			d := &flow.Decision{}
			b.advance(now(), d)
			b.out.post(d)
		case <-broom.C:
			b.tidy(now())
			m.update()
		}
	}
}

// readCounters reads the balancer's entries on a switch, with their counters.
func readCounters(env *weft.Env, b *balancer) counters {
	return func(ctx context.Context, sw flow.DPID) ([]*api.FlowEntry, error) {
		ctx, cancel := context.WithTimeout(ctx, b.cfg.Load().Deadline)
		defer cancel()
		resp, err := weft.Call(ctx, env, api.ReadFlows, &api.ReadFlowsRequest{Dpid: sw.String(), Owner: flow.OwnerBalancer.String()})
		return resp.GetFlows(), err
	}
}

// send sends flow-mods and packets. A switch that did not take its flow-mods is read anew;
// packets are sent again with the next check.
func send(ctx context.Context, env *weft.Env, b *balancer, l letter) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	method := api.Send
	if l.confirmed {
		method = api.Apply
	}
	resp, err := weft.Call(ctx, env, method, l.Decision)
	b.missed(l.Decision, resp.GetFailures(), err)
	if err != nil && ctx.Err() == nil {
		b.count.sendingFails.Add(1)
		env.Log.Debug("not sent", "operations", len(l.Ops), "error", err)
	}
}

// observe asks for the balancer's entries on the connected switches that have not
// reported them. What connects is reported anyway, but a report may be lost, or
// come before this run hears of any.
func observe(ctx context.Context, env *weft.Env, b *balancer) {
	for pauses := (backoff.Exponential{First: 100 * time.Millisecond, Last: 5 * time.Second}); ; {
		b.mu.Lock()
		list := b.net.unread(now())
		b.mu.Unlock()
		if len(list) > 0 {
			_, err := weft.Call(ctx, env, api.Observe, &api.ObserveRequest{Owner: flow.OwnerBalancer.String(), Dpids: list})
			switch kind := api.KindOf(err); {
			case err == nil || ctx.Err() != nil:
			case kind != codes.Unavailable && kind != codes.DeadlineExceeded && kind != codes.NotFound:
				env.Log.Warn("connections of an earlier run are not known", "error", err)
			}
		}
		if pauses.Wait(ctx) != nil {
			return
		}
	}
}

// gauges registers the metrics of all VIPs together.
func gauges(env *weft.Env, b *balancer) {
	m := env.Metric
	m.Gauge("connections", "Connections that are balanced, and pairs.", func() float64 { return float64(b.totals().connections) })
	m.Gauge("pairs", "Pairs of client and member with entries.", func() float64 { return float64(b.totals().pairs) })
	m.Gauge("bindings", "Connections and pairs remembered after their entries have ended.", func() float64 { return float64(b.totals().bindings) })
	const members = "Members of pools, by state."
	m.Gauge("members", members, func() float64 { return float64(b.totals().up) }, "state", "up")
	m.Gauge("members", members, func() float64 { return float64(b.totals().down) }, "state", "down")
	m.Gauge("members", members, func() float64 { return float64(b.totals().unknown) }, "state", "unknown")
	m.Gauge("members", members, func() float64 { return float64(b.totals().draining) }, "state", "draining")
	m.Gauge("members", members, func() float64 { return float64(b.totals().away) }, "state", "away")
}

// meters are the metrics of single members. They come and go with the members, so
// balancer.vips and balancer.members bound them.
type meters struct {
	metric   weft.Metrics
	balancer *balancer

	mu sync.Mutex // guards of
	of map[[2]string]bool
}

const (
	memberConnections = "member_connections"
	memberGiven       = "member_connections_given"
	memberUp          = "member_up"
)

// update adds metrics of new members and removes those of deleted ones.
func (m *meters) update() {
	m.mu.Lock()
	defer m.mu.Unlock()
	there := m.balancer.members()
	for key := range m.of {
		if !there[key] {
			delete(m.of, key)
			for _, name := range []string{memberConnections, memberGiven, memberUp} {
				m.metric.Remove(name, "vip", key[0], "member", key[1])
			}
		}
	}
	for key := range there {
		if m.of[key] {
			continue
		}
		m.of[key] = true
		labels := []string{"vip", key[0], "member", key[1]}
		m.metric.Gauge(memberConnections, "Connections of a member.", func() float64 {
			n, _, _ := m.balancer.memberCounts(key[0], key[1])
			return n
		}, labels...)
		m.metric.Gauge(memberGiven, "Connections that a member was given since the service started.", func() float64 {
			_, n, _ := m.balancer.memberCounts(key[0], key[1])
			return n
		}, labels...)
		m.metric.Gauge(memberUp, "Whether a member is given connections.", func() float64 {
			if _, _, up := m.balancer.memberCounts(key[0], key[1]); up {
				return 1
			}
			return 0
		}, labels...)
	}
}

func now() int64 { return time.Now().UnixNano() }
