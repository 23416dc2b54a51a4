package virtual

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weft-sdn/weft"
	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/openflow"
	"github.com/weft-sdn/weft/openflow/oftest"
)

// atomicPlan has all services whose calls promise all or none in one process, and who
// calls them in another.
const atomicPlan = `name: atomic
partial: true
workers:
  all: {services: [southbound, discovery, hosts, paths, forwarding, flowrules, firewall, tenants, tunnels, l2vpn]}
  caller: {services: [witness]}
config:
  firewall: {table_limit: 0}
`

// atomicCall is a call of many objects.
type atomicCall struct {
	reset, call func(ctx context.Context, env *weft.Env, n int) error // before the n-th time, and then
	list        func(ctx context.Context, env *weft.Env) ([]string, error)
	later       bool // what the lists say is whole only when the switches have been asked
}

// atomicCalls are calls of the methods that promise all or none.
var atomicCalls = map[string]atomicCall{
	api.SetCircuits.Name: {
		reset: func(ctx context.Context, env *weft.Env, _ int) error {
			return setCircuits(ctx, env, circuitsTo("1:2", "kept", "moved"))
		},
		call: func(ctx context.Context, env *weft.Env, _ int) error {
			names := []string{"moved"}
			for i := range 30 {
				names = append(names, fmt.Sprint("new", i))
			}
			return setCircuits(ctx, env, circuitsTo("1:30", names...))
		},
		list: func(ctx context.Context, env *weft.Env) (list []string, err error) {
			r, err := weft.Call(ctx, env, api.ListCircuits, &api.ListCircuitsRequest{})
			for _, c := range r.GetCircuits() {
				list = append(list, c.Name+" "+strings.Join(c.Ends, " "))
			}
			return list, err
		},
	},
	api.AddFirewallRules.Name: {
		reset: func(ctx context.Context, env *weft.Env, _ int) error {
			if _, err := weft.Call(ctx, env, api.DeleteFirewallRules, &api.DeleteFirewallRulesRequest{AllOf: "all", NoWait: true}); err != nil {
				return err
			}
			return addRules(ctx, env, "allow", 600, 10)
		},
		call: func(ctx context.Context, env *weft.Env, _ int) error { return addRules(ctx, env, "deny", 0, 1200) },
		list: listRules,
	},
	api.DeleteFirewallRules.Name: {
		reset: func(ctx context.Context, env *weft.Env, _ int) error { return addRules(ctx, env, "deny", 0, 1200) },
		call: func(ctx context.Context, env *weft.Env, _ int) error {
			_, err := weft.Call(ctx, env, api.DeleteFirewallRules, &api.DeleteFirewallRulesRequest{AllOf: "all", NoWait: true})
			return err
		},
		list: listRules,
	},
	api.DeleteTenant.Name: {
		reset: func(ctx context.Context, env *weft.Env, _ int) error {
			for i := range 20 {
				t := fmt.Sprint("t", i%2)
				if _, err := weft.Call(ctx, env, api.SetTenant, &api.SetTenantRequest{Tenant: &api.Tenant{Name: t}}); err != nil {
					return err
				}
				n := &api.TenantNetwork{Tenant: t, Name: fmt.Sprint("n", i)}
				if _, err := weft.Call(ctx, env, api.SetNetwork, &api.SetNetworkRequest{Network: n}); err != nil {
					return err
				}
			}
			return nil
		},
		call: func(ctx context.Context, env *weft.Env, _ int) error {
			_, err := weft.Call(ctx, env, api.DeleteTenant, &api.DeleteTenantRequest{Name: "t1"})
			return err
		},
		list: func(ctx context.Context, env *weft.Env) (list []string, err error) {
			r, err := weft.Call(ctx, env, api.ListTenants, &api.ListTenantsRequest{})
			if err != nil {
				return nil, err
			}
			for _, t := range r.Tenants {
				list = append(list, t.Name)
			}
			networks, err := weft.Call(ctx, env, api.ListNetworks, &api.ListNetworksRequest{})
			for _, n := range networks.GetNetworks() {
				list = append(list, n.Tenant+" "+n.Name)
			}
			return list, err
		},
	},
	api.AddFlows.Name: {
		reset: func(ctx context.Context, env *weft.Env, _ int) error {
			if _, err := weft.Call(ctx, env, api.DeleteFlows, &api.DeleteFlowsRequest{AllOf: "all"}); err != nil {
				return err
			}
			_, err := weft.Call(ctx, env, api.AddFlows, &api.AddFlowsRequest{Flows: []*api.FlowEntry{entryOf(1, 1), entryOf(2, 1003)}})
			return err
		},
		call: func(ctx context.Context, env *weft.Env, n int) error {
			q := &api.AddFlowsRequest{Batch: fmt.Sprint("b", n), Part: 1, Total: 100}
			for i := range 100 {
				e := entryOf(flow.DPID(1+i%2), 1000+i)
				e.Actions = []string{"output:1"}
				q.Flows = append(q.Flows, e)
			}
			_, err := weft.Call(ctx, env, api.AddFlows, q)
			return err
		},
		list: func(ctx context.Context, env *weft.Env) (list []string, err error) {
			r, err := weft.Call(ctx, env, api.ListFlows, &api.ListFlowsRequest{})
			for _, f := range r.GetFlows() {
				if f.Flow.Owner == "operator" {
					list = append(list, fmt.Sprint(f.Flow.Dpid, f.Flow.Priority, f.Flow.Actions))
				}
			}
			return list, err
		},
		later: true,
	},
}

func circuitsTo(from string, names ...string) (list []*api.Circuit) {
	for i, name := range names {
		list = append(list, &api.Circuit{Name: name, Ends: []string{fmt.Sprintf("%s.%d", from, i+1), fmt.Sprintf("2:2.%d", i+1)}})
	}
	return list
}

func setCircuits(ctx context.Context, env *weft.Env, list []*api.Circuit) error {
	_, err := weft.Call(ctx, env, api.SetCircuits, &api.SetCircuitsRequest{Circuits: list, Exactly: true})
	return err
}

func addRules(ctx context.Context, env *weft.Env, action string, from, n int) error {
	q := &api.AddFirewallRulesRequest{NoWait: true}
	for i := range n {
		q.Rules = append(q.Rules, &api.FirewallRule{Id: fmt.Sprint("r", from+i), Action: action, Match: map[string]string{"tcp_dst": fmt.Sprint(1 + from + i)}})
	}
	_, err := weft.Call(ctx, env, api.AddFirewallRules, q)
	return err
}

func listRules(ctx context.Context, env *weft.Env) (list []string, err error) {
	r, err := weft.Call(ctx, env, api.ListFirewallRules, &api.ListFirewallRulesRequest{Limit: 2000})
	for _, m := range r.GetRules() {
		list = append(list, m.Id+" "+m.Action)
	}
	return list, err
}

// TestAllOrNone: of each call that promises all or none (api.MethodRules.atomic), all is
// there or none, with what was there before, after the process of its service has been
// killed at 20 moments during the call and has started again.
func TestAllOrNone(t *testing.T) {
	for _, m := range api.Methods() {
		if !api.RulesOf(m.MethodName()).GetAtomic() {
			continue
		}
		t.Run(m.MethodName(), func(t *testing.T) {
			c, ok := atomicCalls[m.MethodName()]
			if !ok {
				t.Fatalf("%s promises all or none, and no call of it is tried", m.MethodName())
			}
			synctest.Test(t, func(t *testing.T) { allOrNone(t, c) })
		})
	}
}

func allOrNone(t *testing.T, c atomicCall) {
	w := newWorld(t, 1)
	ctx, cancel := context.WithCancel(t.Context())
	w.ordinary = oftest.Config{Nicira: true, Tags: 2, Desc: openflow.Desc{Hardware: api.OpenVSwitch}} // circuits want no other
	a, b := w.addSwitch(), w.addSwitch()
	w.addLink(a, b)
	h1, h2 := w.addStation(a), w.addStation(b)
	for _, d := range []*device{a, b} {
		d.SetLink(30, true)
	}
	if err := w.cluster.apply(ctx, atomicPlan); err != nil {
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
	if !h1.ping(ctx, h2, w.number(), 20*time.Second) {
		t.Fatalf("no answer\n%s\n%s", w.story.String(), w.logs.b.String())
	}
	env := w.cluster.present().env
	list := func() (got []string) {
		t.Helper()
		if err := until(ctx, time.Minute, func(ctx context.Context) (err error) {
			got, err = c.list(ctx, env)
			return err
		}); err != nil {
			t.Fatal(err)
		}
		slices.Sort(got)
		return got
	}
	var before []string
	reset := func(n int) {
		t.Helper()
		if err := until(ctx, 2*time.Minute, func(ctx context.Context) error {
			err := c.reset(ctx, env, n)
			if c.later {
				rest(ctx, 10*time.Second)
			}
			if got := list(); err == nil && n > 0 && !slices.Equal(got, before) {
				err = fmt.Errorf("%d objects: %.300v", len(got), got)
			}
			return err
		}); err != nil {
			t.Fatalf("reset: %v", err)
		}
	}
	reset(0)
	before = list()
	var mu sync.Mutex // guards writes, last and giveUp
	writes, last, giveUp := 0, 0, func() {}
	w.bus.onWrite(func(process string) bool {
		mu.Lock()
		defer mu.Unlock()
		if process != "all" {
			return false
		}
		if writes++; writes == last {
			w.cluster.kill(w.cluster.process("all"))
			giveUp() // else the call is made again
			return w.chance.n(2) == 0
		}
		return false
	})
	if err := c.call(ctx, env, 0); err != nil {
		t.Fatal(err)
	}
	if c.later {
		rest(ctx, 20*time.Second)
	}
	mu.Lock()
	most := writes
	mu.Unlock()
	after := list()
	if slices.Equal(before, after) || most < 2 {
		t.Fatalf("%d writes, and nothing has changed: %v", most, after)
	}
	none, all := 0, 0
	for n := 1; n <= 20; n++ {
		reset(n)
		call, cancel := context.WithCancel(ctx)
		mu.Lock()
		writes, last, giveUp = 0, 1+w.chance.n(most), cancel
		mu.Unlock()
		err := c.call(call, env, n)
		if c.later && err == nil {
			rest(ctx, 20*time.Second) // it is killed only now
		}
		mu.Lock()
		last = 0
		mu.Unlock()
		cancel()
		got := list()
		if c.later {
			_ = until(ctx, time.Minute, func(context.Context) error {
				if got = list(); slices.Equal(got, after) || err != nil && slices.Equal(got, before) {
					return nil
				}
				return errAbsent
			})
		}
		switch {
		case slices.Equal(got, after):
			all++
		case !slices.Equal(got, before):
			t.Errorf("killed at a write of %d: %d objects, were %d and should be those or %d: %.300v", most, len(got), len(before), len(after), differ("", got, after))
		case err == nil:
			t.Errorf("killed at a write of %d: none, and the call has succeeded", most)
		default:
			none++
		}
	}
	t.Logf("%d writes; killed 20 times: %d times none, %d times all", most, none, all)
}
