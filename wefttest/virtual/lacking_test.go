package virtual

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weft-sdn/weft"
	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/openflow"
	"github.com/weft-sdn/weft/openflow/oftest"
)

// A lacking is a policy whose entries a switch confirms and does not have.
type lacking struct {
	name   string
	owner  flow.Owner
	rules  bool // all entries but the firewall's for the rest
	policy string
	// state returns what the service says of it.
	state func(ctx context.Context, s *site) (string, error)
	want  []string // what that has in it
}

func ruleState(ctx context.Context, s *site) (string, error) {
	list, err := weft.Call(ctx, s.by.env, api.ListFirewallRules, &api.ListFirewallRulesRequest{})
	if err != nil {
		return "", err
	}
	return list.Rules[0].State + ": " + list.Rules[0].Reason, nil
}

var lackings = []lacking{
	{"firewall", flow.OwnerFirewall, false, "a deny by port", ruleState, []string{"not in force: ", "does not have it"}},
	{"firewall's rules", flow.OwnerFirewall, true, "a deny by port", ruleState, []string{"in force: ", "judged by the controller"}},
	{"qos", flow.OwnerQoS, false, "a limit by port", func(ctx context.Context, s *site) (string, error) {
		st, err := weft.Call(ctx, s.by.env, api.QosGetStatus, &api.QosGetStatusRequest{})
		if err != nil {
			return "", err
		}
		return st.Policies[0].State + ": " + st.Policies[0].Reason, nil
	}, []string{"failing: ", "does not have it"}},
	{"tenants", flow.OwnerTenants, false, "a border of tenants", func(ctx context.Context, s *site) (string, error) {
		st, err := weft.Call(ctx, s.by.env, api.GetTenantsStatus, &api.GetTenantsStatusRequest{})
		if err != nil {
			return "", err
		}
		at := st.Switches[slices.IndexFunc(st.Switches, func(x *api.TenantsSwitch) bool { return x.Dpid == s.h2.Location().Switch.String() })]
		return at.State + ": " + at.Reason, nil
	}, []string{"failing: ", "does not have it"}},
	{"bindings", flow.OwnerBindings, false, "a binding", func(ctx context.Context, s *site) (string, error) {
		list, err := weft.Call(ctx, s.by.env, api.ListBindings, &api.ListBindingsRequest{})
		if err != nil {
			return "", err
		}
		return list.Bindings[0].State + ": " + list.Bindings[0].Reason, nil
	}, []string{"not in force: ", "does not have it"}},
	{"chains", flow.OwnerChains, false, "a chain", func(ctx context.Context, s *site) (string, error) {
		list, err := weft.Call(ctx, s.by.env, api.ListChains, &api.ListChainsRequest{})
		if err != nil {
			return "", err
		}
		return list.Chains[0].State + ": " + list.Chains[0].Reason, nil
	}, []string{"degraded: ", "does not have it"}},
	{"nat", flow.OwnerNAT, false, "a gateway", func(ctx context.Context, s *site) (string, error) {
		list, err := weft.Call(ctx, s.by.env, api.ListNats, &api.ListNatsRequest{})
		if err != nil {
			return "", err
		}
		return list.Gateways[0].State + ": " + list.Gateways[0].Reason, nil
	}, []string{"down: ", "does not have it"}},
	{"router", flow.OwnerRouter, false, "a router", func(ctx context.Context, s *site) (string, error) {
		list, err := weft.Call(ctx, s.by.env, api.ListRouters, &api.ListRoutersRequest{})
		if err != nil {
			return "", err
		}
		return list.Routers[0].State + ": " + list.Routers[0].Reason, nil
	}, []string{"failing: ", "does not have it"}},
}

// TestLacking: what a switch confirms and does not have is not said to be in force: not by
// the service, nor by the list of entries, which says why; be it that the switch never
// keeps it, or that it loses it every minute.
func TestLacking(t *testing.T) {
	for _, l := range lackings {
		for _, never := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, never %v", l.name, never), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { lacks(t, l, never) })
			})
		}
	}
}

func lacks(t *testing.T, l lacking, never bool) {
	w := newWorld(t, 1)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	is := func(e *flow.Entry) bool { return e.Cookie.Owner() == l.owner && (!l.rules || e.Cookie.ID() != 0) }
	cfg := oftest.Config{Nicira: true, Untracked: true, Tags: 2, Desc: openflow.Desc{Hardware: api.OpenVSwitch}}
	a := w.addSwitchAs(cfg)
	if never {
		cfg.Ignore = func(m *flow.Mod) bool { return is(&m.Entry) }
	}
	b := w.addSwitchAs(cfg)
	w.addLink(a, b)
	s := &site{world: w, h1: w.addStation(a), h2: w.addStation(b), h3: w.addStation(b), function: b.port()}
	if err := w.cluster.apply(ctx, fmt.Sprintf(strings.Replace(policyPlan, "balancer,", "balancer, router, nat,", 1), 2000)); err != nil {
		t.Fatal(err)
	}
	w.work.Go(func() { w.cluster.supervise(ctx) })
	defer func() {
		cancel()
		w.cluster.stop()
		w.work.Wait()
	}()
	w.powerOn(ctx, a)
	w.powerOn(ctx, b)
	if !s.h1.ping(ctx, s.h2, w.number(), 20*time.Second) {
		t.Fatalf("no answer\n%s\n%s", w.story.String(), w.logs.b.String())
	}
	s.by = w.cluster.present()
	known := append(slices.Clone(policies), encoded{name: "a router", set: func(ctx context.Context, s *site) error {
		return route(ctx, s, families[0], 0)
	}}, encoded{name: "a gateway", set: func(ctx context.Context, s *site) error {
		_, err := weft.Call(ctx, s.by.env, api.SetNat, &api.SetNatRequest{Gateway: &api.NatGateway{Name: "out", Dpid: s.function.Switch.String(), Port: uint32(s.function.Port),
			Pool: "198.51.100.1", NextHop: "198.51.100.9", Gateway: "10.0.0.98", Inside: []string{"10.0.0.0/24"}}})
		return err
	}}, encoded{name: "a chain", set: func(ctx context.Context, s *site) error {
		s.device(s.function.Switch).SetLink(s.function.Port, true)
		return s.chains(ctx, map[string]string{"eth_type": "0x0800", "ipv4_dst": "10.0.0.2"})
	}})
	if err := known[slices.IndexFunc(known, func(p encoded) bool { return p.name == l.policy })].set(ctx, s); err != nil {
		t.Fatal(err)
	}
	for range 6 {
		time.Sleep(50 * time.Second)
		if !never {
			b.Lose(is)
		}
	}
	time.Sleep(30 * time.Second)
	failed := 0
	flows, err := weft.Call(ctx, s.by.env, api.ListFlows, &api.ListFlowsRequest{Dpid: b.sw.String()})
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range flows.Flows {
		if _, e, _ := f.Flow.Entry(); f.State == "failed" && is(&e) && strings.Contains(f.Reason, "does not have it") {
			failed++
		}
	}
	sync, err := weft.Call(ctx, s.by.env, api.ListSync, &api.ListSyncRequest{})
	if err != nil {
		t.Fatal(err)
	}
	at := sync.Switches[slices.IndexFunc(sync.Switches, func(x *api.Sync) bool { return x.Dpid == b.sw.String() })]
	if byController := l.rules; !byController && (failed == 0 || at.State != "failing") {
		t.Errorf("%d entries have failed, the switch is %v", failed, at)
	}
	if l.state == nil {
		return
	}
	state, err := l.state(ctx, s)
	for _, want := range l.want {
		if err != nil || !strings.Contains(state, want) {
			t.Errorf("%q, %v: want %q in it", state, err, want)
		}
	}
	if l.rules {
		for name, got := range s.send(encoded{}) {
			if got > 0 {
				t.Errorf("%s: %d got there", name, got)
			}
		}
	}
}
