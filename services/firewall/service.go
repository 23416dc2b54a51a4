// Package firewall is the service that lets packets into the network or not, by
// ordered rules over all header fields. It is the stage of the pipeline behind
// hosts. It also makes the switches filter by themselves: by an entry for each
// rule if there is room, else by its verdicts on flows.
//
// Only the list of services imports it; only this file imports weft.
package firewall

import (
	"context"
	"sync"

	"github.com/weft-sdn/weft"
	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/nib"
	"github.com/weft-sdn/weft/policy"
)

// Spec declares the service.
func Spec() weft.Spec {
	return policy.Declare(weft.Spec{
		Name: "firewall",
		Doc:  "lets packets in or not, by ordered rules over all header fields",
		Serves: weft.Methods(api.AddFirewallRules, api.DeleteFirewallRules, api.ListFirewallRules, api.SetFirewallDefault,
			api.GetFirewallStatus, api.CheckFirewall),
		Calls:      weft.Methods(api.Apply, api.Send, api.ReadFlows),
		Subscribes: weft.Subjects(api.FlowRemovedEvent),
		Optional:   []string{"tenants"}, // rules of tenants then wait
		Stage:      true,
		Config:     DefaultConfig(),
		Live:       []string{"rules"},
		Run:        run,
	}, new(store).kind())
}

func run(ctx context.Context, env *weft.Env) error {
	b := newStore(env.Config.(*Config), southbound{env}, env.Log)
	b.damage = func() string { return weft.Damage(env) }
	b.network = func() nib.Snapshot { return weft.NIB(env) }
	if err := policy.Serve(ctx, env, b.kept); err != nil {
		return err
	}
	if b.unread != nil {
		return b.unread
	}
	b.keeper = b.kept.Flows()
	b.kept.Flows().OnReply(func(sw flow.DPID, _ []string, failed []*api.WantedFlow) { b.answered(sw, failed) })
	gauges(env.Metric, b)
	if err := b.configure(ctx, env.Config.(*Config)); err != nil {
		return err
	}
	weft.OnConfig(env, func(ctx context.Context, _, c *Config) error { return b.configure(ctx, c) })

	weft.ReportLimits(env, b.reached.List)
	weft.Stage(env, func(sw flow.DPID) weft.StageFunc { return b.open(sw) })
	weft.On(env, api.FlowRemovedEvent, func(_ context.Context, ev *api.FlowRemoved) { b.flowRemoved(ev) })
	weft.Handle(env, api.AddFirewallRules, b.addByAPI)
	weft.Handle(env, api.DeleteFirewallRules, b.deleteByAPI)
	weft.Handle(env, api.ListFirewallRules, b.listRules)
	weft.Handle(env, api.SetFirewallDefault, b.setDefault)
	weft.Handle(env, api.GetFirewallStatus, b.status)
	weft.Handle(env, api.CheckFirewall, b.check)
	if err := weft.Ready(ctx, env); err != nil {
		return err
	}
	var work sync.WaitGroup
	defer work.Wait()
	work.Go(func() { b.watch(ctx) })
	work.Go(func() { b.follow(ctx) })
	for range 8 {
		work.Go(func() { b.serve(ctx) })
	}
	b.kept.Run(ctx)
	return nil
}

// southbound is the network of the southbound service.
type southbound struct{ env *weft.Env }

func (s southbound) Apply(ctx context.Context, d *flow.Decision) (*api.ApplyResult, error) {
	return weft.Call(ctx, s.env, api.Apply, d)
}

func (s southbound) Send(ctx context.Context, d *flow.Decision) (*api.ApplyResult, error) {
	return weft.Call(ctx, s.env, api.Send, d)
}

func (s southbound) ReadFlows(ctx context.Context, sw flow.DPID, owner flow.Owner) ([]*api.FlowEntry, error) {
	resp, err := weft.Call(ctx, s.env, api.ReadFlows, &api.ReadFlowsRequest{Dpid: sw.String(), Owner: owner.String()})
	return resp.GetFlows(), err
}

func gauges(m weft.Metrics, b *store) {
	sum := func(read func(*site) uint64) func() float64 {
		return func() float64 {
			n := uint64(0)
			for _, s := range b.sites.all() {
				n += read(s)
			}
			return float64(n)
		}
	}
	m.CounterFunc("judged_total", "Packets judged by the controller.", sum(func(s *site) uint64 { return s.allowed.Load() }), "action", actionAllow)
	m.CounterFunc("judged_total", "Packets judged by the controller.", sum(func(s *site) uint64 { return s.denied.Load() }), "action", actionDeny)
	m.CounterFunc("verdicts_shed_total", "Verdicts that were not installed, as there were too many.", sum(func(s *site) uint64 { return s.shed.Load() }))
	for _, mode := range []string{modeOff, modeCompiled, modeReactive, modeController} {
		m.Gauge("switches", "Connected switches, by how they do what the rules say.", sum(func(s *site) uint64 {
			s.mu.Lock()
			defer s.mu.Unlock()
			if s.info.GetConnected() && s.program != nil && s.program.mode == mode {
				return 1
			}
			return 0
		}), "mode", mode)
	}
}
