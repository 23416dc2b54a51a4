package test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/lab"
	"github.com/weft-sdn/weft/lab/traffic"
)

// TestSwitchAway has a switch lose its controller, or its entries with it, and
// come back: what the operator has asked for meanwhile is done then, and what
// was right is not touched.
func TestSwitchAway(t *testing.T) {
	t.Parallel()
	for _, v := range []struct {
		name    string
		flushed bool
	}{{"disconnected", false}, {"rebooted", true}} {
		t.Run(v.name, func(t *testing.T) {
			t.Parallel()
			c := start(t, options{})
			l := up(t, "ring:4", c)
			settled(c, l)
			pingAll(t, l, false)
			s2 := dpid(t, l, "s2")
			bridge, err := l.Bridge("s2")
			if err != nil {
				t.Fatal(err)
			}
			vsctl := func(args ...string) string {
				t.Helper()
				out, err := l.VSCtl(context.Background(), args...)
				if err != nil {
					t.Fatal(err)
				}
				return strings.TrimSpace(out)
			}
			call(c, api.AddFlows, &api.AddFlowsRequest{Flows: []*api.FlowEntry{
				{Dpid: s2, Priority: 20001, Match: map[string]string{"eth_type": "0x0800", "ipv4_dst": "192.0.2.1"}, Cookie: "b1"},
				{Dpid: s2, Priority: 20002, Match: map[string]string{"eth_type": "0x0800", "ipv4_dst": "192.0.2.2"}, Cookie: "b2"},
			}})
			time.Sleep(2 * time.Second) // so that the age of an entry tells
			before, noted := entries(t, l), time.Now()
			target := vsctl("get-controller", bridge)
			if v.flushed {
				vsctl("del-controller", bridge) // Open vSwitch then drops all entries
			} else {
				vsctl("set-controller", bridge, target+".gone")
			}
			eventually(t, "the switch away", func() bool { return !switchOf(c, s2).Connected && syncOf(c, s2).State == "away" })
			added := call(c, api.AddFlows, &api.AddFlowsRequest{NoWait: true, Flows: []*api.FlowEntry{
				{Dpid: s2, Priority: 20003, Match: map[string]string{"eth_type": "0x0800", "ipv4_dst": "192.0.2.3"}, Cookie: "b3"},
			}})
			if s := added.Flows[0]; s.State != "requested" || s.Reason == "" {
				t.Errorf("an entry for a switch that is away: %s (%s), want requested, and why it waits", s.State, s.Reason)
			}
			call(c, api.DeleteFlows, &api.DeleteFlowsRequest{Flows: []*api.FlowEntry{
				{Dpid: s2, Priority: 20002, Match: map[string]string{"eth_type": "0x0800", "ipv4_dst": "192.0.2.2"}},
			}})
			if v.flushed {
				around(c, l, "h1", "h3", s2)
			}
			r, err := l.Ping(context.Background(), "h1", "h3", traffic.PingOptions{Count: 20, Interval: 20 * time.Millisecond, Timeout: patience})
			if err != nil || r.Lost() > 0 {
				t.Errorf("while s2 was away h1 -> h3 lost %d of %d: %v", r.Lost(), r.Sent, err)
			}
			vsctl("set-controller", bridge, target)
			settled(c, l)
			eventually(t, "the switch in sync again", func() bool { return syncOf(c, s2).State == "in_sync" })
			if present(t, l, "s2", "nw_dst=192.0.2.1") != 1 || present(t, l, "s2", "nw_dst=192.0.2.2") != 0 || present(t, l, "s2", "nw_dst=192.0.2.3") != 1 {
				t.Error("the operator's entries are not what was asked for")
			}
			pingAll(t, l, false)
			pingAll(t, l, true)
			passed := time.Since(noted).Seconds() // however long it takes to look at them, they are older
			after := entries(t, l)
			for e, age := range before {
				if v.flushed || !strings.HasPrefix(e, "s2 ") || strings.Contains(e, "192.0.2.2") {
					continue
				}
				if strings.Contains(e, "priority=45000") || strings.Contains(e, "priority=30000") || strings.Contains(e, "priority=10000") {
					continue // routes and flooding go another way while the switch is away
				}
				if now, ok := after[e]; !ok {
					t.Errorf("gone: %s", e)
				} else if now < age+passed-0.5 {
					t.Errorf("rewritten: %s", e)
				}
			}
			explain(c)
		})
	}
}

// around waits until two hosts reach each other by a way that does not cross a
// switch.
func around(c *controller, l *lab.Lab, a, b, sw string) {
	c.t.Helper()
	ends := []string{mac(c.t, l, a).String(), mac(c.t, l, b).String()}
	eventually(c.t, a+" reaches "+b+" around switch "+sw, func() bool {
		for _, r := range call(c, api.ListRoutes, &api.ListRoutesRequest{}).Routes {
			crosses := slices.ContainsFunc(r.Hops, func(h *api.Hop) bool { return h.Dpid == sw })
			if crosses && slices.Contains(ends, r.Src) && slices.Contains(ends, r.Dst) {
				return false
			}
		}
		r, err := l.Ping(context.Background(), a, b, traffic.PingOptions{Count: 1})
		return err == nil && r.Lost() == 0
	})
}

// TestWipedSwitch has somebody delete all entries of a switch while it is
// connected.
func TestWipedSwitch(t *testing.T) {
	t.Parallel()
	c := start(t, options{set: []string{"flowrules.verify_interval=1s"}})
	l := up(t, "ring:4", c)
	settled(c, l)
	pingAll(t, l, false)
	result := steady(l, "h3", "h4", 1000, 5*time.Millisecond)
	standing := func() (n [3]int) {
		for i, priority := range []string{"priority=65535", "priority=40000", "priority=0 "} {
			n[i] = present(t, l, "s2", priority)
		}
		return n
	}
	before, began := standing(), time.Now()
	ofctl(t, l, "s2", "del-flows")
	eventually(t, "the entries put back", func() bool { return standing() == before })
	t.Logf("standing entries put back after %v", time.Since(began))
	settled(c, l)
	pingAll(t, l, false)
	pingAll(t, l, true)
	if r := <-result; r.Lost() > 0 {
		t.Errorf("h3 -> h4 lost %d of %d", r.Lost(), r.Sent)
	}
	if c.metric("weft_flowrules_restored")+c.metric("weft_flowrules_repaired", "fault", "missing") == 0 {
		t.Error("the repair is not counted")
	}
	agree(c, l)
	explain(c)
}
