package flowrules

import (
	"strings"
	"testing"
	"testing/synctest"

	"google.golang.org/grpc/codes"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
)

// TestLostActionsAreRefused: an entry or group of which a switch would not carry
// out all is refused, with the reason, before anything is sent or stored.
func TestLostActionsAreRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newRig(t, defaults(), 1)
		g.connect(1)
		entry := func(write bool, match map[string]string, actions ...string) *api.FlowEntry {
			f := &api.FlowEntry{Dpid: "1", Priority: 7, Match: match}
			if f.Actions = actions; write {
				f.Actions, f.WriteActions = nil, actions
			}
			return f
		}
		mpls := map[string]string{"eth_type": "0x8847"}
		for want, f := range map[string]*api.FlowEntry{
			"action encap(ethernet): the packet has an Ethernet header already":      entry(false, nil, "encap(ethernet)", "output:1"),
			"action output:1: the packet has no Ethernet header here":                entry(false, nil, "encap(mpls)", "output:1"),
			"needs a packet with a label":                                            entry(false, nil, "dec_mpls_ttl", "output:1"),
			"what decap has uncovered":                                               entry(false, mpls, "decap()", "decap(packet_type(ns=0,type=0))", "pop_vlan", "output:1"),
			"write-actions: actions output:1 and output:2: an action set has one":    entry(true, nil, "output:1", "output:2"),
			"write-actions: actions ct(commit) and output:2: an action set sends pa": entry(true, nil, "ct(commit)", "output:2"),
		} {
			_, err := g.rules.AddFlows(t.Context(), &api.AddFlowsRequest{Flows: []*api.FlowEntry{f}})
			if api.KindOf(err) != codes.InvalidArgument || !strings.Contains(err.Error(), want) {
				t.Errorf("got %v\nwant %s", err, want)
			}
			_, err = g.rules.SetStanding(t.Context(), &api.SetStandingRequest{Dpid: "1", Owner: "balancer", Flows: []*api.FlowEntry{f}})
			if api.KindOf(err) != codes.InvalidArgument || !strings.Contains(err.Error(), want) {
				t.Errorf("standing: got %v\nwant %s", err, want)
			}
		}
		for want, b := range map[string]*api.Bucket{
			"bucket 0: actions encap(mpls) and encap(ethernet): an action set has one encap only": {WatchPort: 2, Actions: []string{"encap(mpls)", "encap(ethernet)", "output:1"}},
			"actions ct(commit) and output:1: an action set sends packets in one way only":        {WatchPort: 2, Actions: []string{"ct(commit)", "output:1"}},
			"bucket 0: one of a fast failover group watches a port or a group: give watch_port":   {Actions: []string{"output:1"}},
		} {
			group := &api.Group{Dpid: "1", Id: testGroup, Type: "fast_failover", Buckets: []*api.Bucket{b}}
			_, err := g.rules.SetStanding(t.Context(), &api.SetStandingRequest{Dpid: "1", Owner: "balancer", Groups: []*api.Group{group}})
			if api.KindOf(err) != codes.InvalidArgument || !strings.Contains(err.Error(), want) {
				t.Errorf("got %v\nwant %s", err, want)
			}
		}
		g.wantHistory("nothing was sent")
	})
}

// TestCircuitIsInstalled: the entries of an Ethernet circuit over a protected
// tunnel, with their group, are installed as they are written.
func TestCircuitIsInstalled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newRig(t, defaults(), 1)
		g.connect(1)
		in := &api.FlowEntry{
			Dpid: "1", Priority: 7, Match: map[string]string{"in_port": "4"},
			Actions: []string{"encap(mpls)", "set_field:500->mpls_label", "encap(ethernet)", flow.ToGroup(testGroup).String()},
		}
		out := &api.FlowEntry{
			Dpid: "1", Priority: 8, Match: map[string]string{"eth_type": "0x8847", "mpls_label": "500", "mpls_bos": "1"},
			Actions: []string{"decap()", "decap(packet_type(ns=0,type=0))", "output:4"},
		}
		tunnel := &api.Group{Dpid: "1", Id: testGroup, Type: "fast_failover", Buckets: []*api.Bucket{
			{WatchPort: 2, Actions: []string{"push_mpls:0x8847", "set_field:1001->mpls_label", "output:2"}},
			{WatchPort: 6, Actions: []string{"push_mpls:0x8847", "set_field:2001->mpls_label", "output:6"}},
		}}
		if r := g.balance(tunnel, in, out); len(r.Failed) > 0 {
			t.Fatal(r)
		}
		sw := g.net.switches[1]
		sw.mu.Lock()
		defer sw.mu.Unlock()
		for _, f := range []*api.FlowEntry{in, out} {
			want := entryOf(t, flow.OwnerBalancer, f)
			if have, ok := sw.entries[want.Key()]; !ok || flow.FormatActions(have.Apply) != strings.Join(f.Actions, ",") {
				t.Errorf("the switch has %v, want %v", have, f)
			}
		}
	})
}
