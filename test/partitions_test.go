package test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weft-sdn/weft"
	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/deploy/config"
	"github.com/weft-sdn/weft/deploy/members"
	"github.com/weft-sdn/weft/deploy/plans"
	"github.com/weft-sdn/weft/internal/testwait"
	"github.com/weft-sdn/weft/lab"
	"github.com/weft-sdn/weft/lab/topology"

	"github.com/weft-sdn/weft/plan"
	"github.com/weft-sdn/weft/services"
	"github.com/weft-sdn/weft/services/gateway"
	"github.com/weft-sdn/weft/wefttest"
)

// halved is the built-in plan hydra, each of its workers a node of its own: one
// network in two partitions.
type halved struct {
	*controller
	addresses map[string]string // HOST:PORT of the southbounds, by process
	start     func(process string)

	mu   sync.Mutex
	ends map[string]func() // of the nodes that run
}

// hydra runs the plan until the test ends.
func hydra(t *testing.T) *halved {
	t.Helper()
	h := &halved{controller: &controller{t: t, store: wefttest.NewStore()}, addresses: map[string]string{"east": freeAddress(t), "west": freeAddress(t)}, ends: map[string]func(){}}
	text, err := plans.Read("hydra")
	if err != nil {
		t.Fatal(err)
	}
	p, err := plan.Parse("hydra", []byte(strings.NewReplacer(
		"127.0.0.1:6653", h.addresses["east"], "127.0.0.1:6654", h.addresses["west"],
		"name: hydra\n", "name: hydra\nevents: grpc\n",
		"  front: {services: [stats, ryu, gateway]}\n", "  front: {services: [stats, ryu, gateway, probe]}\nconfig: {gateway: {listen: \"127.0.0.1:0\"}}\n",
	).Replace(string(text))))
	if err != nil {
		t.Fatal(err)
	}
	got := make(chan *weft.Env, 1)
	specs := append(services.All(gateway.Process{Started: time.Now()}), probe(got))
	if err := config.CheckPlan(p, specs); err != nil {
		t.Fatal(err)
	}
	level := slog.LevelError
	if os.Getenv("WEFT_TEST_LOG") != "" {
		level = slog.LevelDebug
	}
	log := slog.New(slog.NewTextHandler(testWriter{t}, &slog.HandlerOptions{Level: level}))
	directory, err := members.OpenDirectory(context.Background(), h.store)
	if err != nil {
		t.Fatal(err)
	}
	first, err := members.Succeed(nil, p, specs)
	if err == nil {
		err = directory.Put(context.Background(), first, 0)
	}
	if err != nil {
		t.Fatal(err)
	}
	h.start = func(process string) {
		ctx, cancel := context.WithCancel(context.Background())
		n := h.node(ctx, process, specs, nil, log)
		done := make(chan struct{})
		go func() {
			defer close(done)
			if err := n.Run(ctx); err != nil {
				t.Errorf("node %s: %v", process, err)
			}
		}()
		h.mu.Lock()
		defer h.mu.Unlock()
		h.ends[process] = func() { cancel(); <-done }
	}
	for _, i := range p.Instances() {
		h.start(i.Name)
	}
	t.Cleanup(func() {
		var all sync.WaitGroup
		for _, i := range p.Instances() {
			all.Go(func() { h.end(i.Name) })
		}
		all.Wait()
	})
	select {
	case h.env = <-got:
	case <-time.After(testwait.Limit):
		t.Fatal("the plan is not up")
	}
	return h
}

// end ends a node.
func (h *halved) end(process string) {
	h.mu.Lock()
	end := h.ends[process]
	delete(h.ends, process)
	h.mu.Unlock()
	if end != nil {
		end()
	}
}

// TestPartitionsOfOneNetwork has two southbounds hold the switches of one ring,
// which the services that work for both see as one: links, routes and rules go
// across the border. It then does without one of them for a while.
func TestPartitionsOfOneNetwork(t *testing.T) {
	t.Parallel()
	h := hydra(t)
	topo, err := topology.Resolve("ring:4")
	if err != nil {
		t.Fatal(err)
	}
	half := map[string]string{}
	for i := range topo.Switches { // s1 and s2 are of east, s3 and s4 of west
		if i >= 2 {
			topo.Switches[i].DPID = 0x101 + topology.DPID(i)
		}
		half[topo.Switches[i].Name] = []string{"east", "west"}[i/2]
	}
	ctx := context.Background()
	l, err := lab.Up(ctx, topo, lab.Options{
		Temporary: true,
		Name:      fmt.Sprintf("p%d", time.Now().UnixNano()%1e9), KeeperCommand: []string{os.Args[0]},
		Controllers: []string{"tcp:" + h.addresses["east"], "tcp:" + h.addresses["west"]}, // each refuses the switches of the other
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Down(ctx); err != nil {
			t.Error(err)
		}
	})
	settled(h.controller, l)
	pingAll(t, l, false)

	// A route across the border has its entries on switches of both partitions.
	from, to := l.Topology().Hosts[0].Name, l.Topology().Hosts[2].Name
	names, hops := path(h.controller, l, from, to)
	if len(names) != 3 || half[names[0]] == half[names[2]] {
		t.Fatalf("the route from %s to %s leads over %v", from, to, names)
	}
	programmed(h.controller, l)
	for _, hop := range hops {
		if r := call(h.controller, api.ReadFlows, &api.ReadFlowsRequest{Dpid: hop.Dpid, Owner: "routes"}); len(r.Flows) < 2 {
			t.Errorf("switch %s has %d entries of routes", hop.Dpid, len(r.Flows))
		}
	}

	// Each partition has a firewall, and all have the same rules; what is listed
	// is of the whole network, each thing once.
	added := call(h.controller, api.AddFirewallRules, &api.AddFirewallRulesRequest{Rules: []*api.FirewallRule{
		{Id: "web", Action: "deny", Match: map[string]string{"tcp_dst": "80"}},
	}})
	status := call(h.controller, api.GetFirewallStatus, &api.GetFirewallStatusRequest{})
	if added.Added != 1 || len(added.Failures) > 0 || status.Rules != 1 || len(status.Switches) != 4 {
		t.Errorf("rule added: %v; status: %v", added, status)
	}
	for _, s := range status.Switches {
		if s.Mode != "compiled" || s.Rules == 0 {
			t.Errorf("firewall of a switch: %v", s)
		}
	}
	if r := call(h.controller, api.ListFirewallRules, &api.ListFirewallRulesRequest{}); len(r.Rules) != 1 || r.Total != 1 {
		t.Errorf("rules: %v", r)
	}
	// And each enforces the policies at its switches.
	policy := &api.QosPolicy{Name: "slow", Class: &api.QosClass{Protocol: "tcp", DstPort: 81}, Limit: &api.QosLimit{RateKbps: 1000}}
	call(h.controller, api.QosSetPolicy, &api.QosSetPolicyRequest{Policy: policy})
	if r := call(h.controller, api.QosListPolicies, &api.QosListPoliciesRequest{}); len(r.Policies) != 1 {
		t.Errorf("policies: %v", r)
	}
	eventually(t, "all switches enforce the policy", func() bool {
		s := call(h.controller, api.QosGetStatus, &api.QosGetStatusRequest{})
		return len(s.Switches) == 4 && len(s.Policies) == 1 && s.Policies[0].State == "enforced" && len(s.Policies[0].Switches) == 4
	})
	eventually(t, "the heartbeats of both partitions are told", func() bool {
		return len(call(h.controller, api.ListHeartbeats, &api.ListHeartbeatsRequest{}).Switches) == 4
	})

	// A link across the border fails: what went over it goes another way.
	across := 0
	for half[names[across]] == half[names[across+1]] {
		across++
	}
	a, b := names[across], names[across+1]
	if err := l.LinkDown(ctx, a, b); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the route leads another way", func() bool {
		next, _ := path(h.controller, l, from, to)
		return strings.Join(next, " ") != strings.Join(names, " ")
	})
	mended(t, l)
	programmed(h.controller, l)

	// Without west's southbound, flows go on, on the switches of both, and what is
	// asked is answered as far as it can be.
	before := entries(t, l)
	h.end("west")
	flows := steady(l, from, to, 50, 10*time.Millisecond)
	list := call(h.controller, api.ListSwitches, &api.ListSwitchesRequest{})
	if len(list.Switches) != 2 || len(list.Incomplete) != 1 || !strings.HasPrefix(list.Incomplete[0], "partition west: ") {
		t.Errorf("without west: %v", list)
	}
	if r := <-flows; r.Lost() > 0 || r.Error != "" {
		t.Errorf("%d of %d packets of an established flow are lost while west is away %s", r.Lost(), r.Sent, r.Error)
	}
	flows = steady(l, from, to, 200, 10*time.Millisecond)
	h.start("west")
	eventually(t, "the switches of west are back", func() bool {
		list = call(h.controller, api.ListSwitches, &api.ListSwitchesRequest{})
		connected := 0
		for _, s := range list.Switches {
			if s.Connected {
				connected++
			}
		}
		return connected == 4 && len(list.Incomplete) == 0
	})
	after := entries(t, l)
	// Entries stay. They may be written again: forwarding programs a route that has just
	// moved a second time.
	for e := range before {
		if _, there := after[e]; strings.Contains(e, "priority=10000,") && !there {
			t.Errorf("entry %s is gone", e)
		}
	}
	if r := <-flows; r.Lost() > 0 || r.Error != "" {
		t.Errorf("%d of %d packets of an established flow are lost while west comes back %s", r.Lost(), r.Sent, r.Error)
	}
	if err := l.LinkUp(ctx, a, b); err != nil {
		t.Fatal(err)
	}
	settled(h.controller, l)
	pingAll(t, l, true)
	explain(h.controller)
}
