package apps

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
)

// giving returns a grant of some methods and operations.
func giving(switches string, names ...string) Grant {
	g := Grant{Entries: 2, PacketsPerSecond: 10, May: func(name string) bool {
		for _, n := range names {
			if n == name {
				return true
			}
		}
		return false
	}}
	if switches != "" {
		g.Switches, _ = flow.ParseSwitchList(strings.Split(switches, " "))
	}
	return g
}

// TestAppsCallWhatThePlanGivesThem: a call of an app that changes something needs
// the plan's leave, for the method, its switches and tables; what reads needs none.
func TestAppsCallWhatThePlanGivesThem(t *testing.T) {
	c := &calls{grant: func(name string) Grant {
		switch name {
		case "some":
			g := giving("1-2", "tunnels.SetTunnel", "l2vpn.SetCircuits", "discovery.AllowLink", "qos.SetPolicy", "firewall.AddFirewallRules", "flowrules.AddFlows", "flowrules.DeleteFlows", "firewall.SetFirewallDefault", "tenants.SetTenant", "hosts.SetHold", "hosts.ApproveHost", "hosts.RevokeHost", "hosts.DeleteHold")
			g.Tables = []int{0}
			return g
		case "all":
			return giving("", "flowrules.AddFlows", "firewall.SetFirewallDefault")
		}
		return giving("")
	}}
	add := func(dpid string, table uint32) proto.Message {
		return &api.AddFlowsRequest{Flows: []*api.FlowEntry{{Dpid: "1"}, {Dpid: dpid, Table: table}}}
	}
	for _, x := range []struct {
		app, method string
		req         proto.Message
		text        string // of the error; empty: allowed
	}{
		{"", "hosts.ListHosts", &api.ListHostsRequest{}, ""},
		{"none", "hosts.ListHosts", &api.ListHostsRequest{}, ""},
		{"", "flowrules.AddFlows", add("1", 0), "without the name of an app"},
		{"none", "flowrules.AddFlows", add("1", 0), "add it to apps.none.may"},
		{"some", "flowrules.AddFlows", add("2", 0), ""},
		{"some", "flowrules.AddFlows", add("3", 0), "does not give app some switch"},
		{"some", "flowrules.AddFlows", add("x", 0), "does not give app some switch"},
		{"some", "flowrules.AddFlows", add("2", 4), "does not give app some table 4"},
		{"some", "flowrules.DeleteFlows", &api.DeleteFlowsRequest{AllOf: "all"}, "all_of"},
		{"some", "flowrules.DeleteFlows", &api.DeleteFlowsRequest{Flows: []*api.FlowEntry{{Dpid: "3"}}}, "switch"},
		{"some", "firewall.SetFirewallDefault", &api.SetFirewallDefaultRequest{}, "whole network"},
		{"some", "firewall.SetFirewallDefault", &api.SetFirewallDefaultRequest{Dpid: "2"}, ""},
		{"some", "firewall.SetFirewallDefault", &api.SetFirewallDefaultRequest{Dpid: "3"}, "does not give app some switch"},
		{"some", "discovery.AllowLink", &api.AllowLinkRequest{A: &api.Location{Dpid: "1"}, B: &api.Location{Dpid: "2"}}, ""},
		{"some", "discovery.AllowLink", &api.AllowLinkRequest{A: &api.Location{Dpid: "1"}, B: &api.Location{Dpid: "3"}}, "does not give app some switch"},
		{"some", "discovery.AllowLink", &api.AllowLinkRequest{A: &api.Location{Dpid: "1"}}, "whole network"},
		{"some", "hosts.SetHold", &api.SetHoldRequest{Hold: &api.HostHold{At: []*api.Location{{Dpid: "2"}, {Port: 3}}}}, "whole network"},
		{"some", "tunnels.SetTunnel", &api.SetTunnelRequest{Tunnel: &api.Tunnel{Name: "t", From: "2", To: "3", ExcludeLinks: []*api.Location{{Dpid: "1"}}}}, "whole network"},
		{"some", "l2vpn.SetCircuits", &api.SetCircuitsRequest{}, "whole network"},
		{"some", "qos.SetPolicy", &api.QosSetPolicyRequest{Policy: &api.QosPolicy{Name: "of-another-switch", Dpid: "1"}}, "whole network"},
		{"some", "firewall.AddFirewallRules", &api.AddFirewallRulesRequest{Rules: []*api.FirewallRule{{Id: "of-another-switch", Dpid: "1"}}}, "whole network"},
		{"some", "firewall.DeleteFirewallRules", &api.DeleteFirewallRulesRequest{}, "may"},
		{"some", "hosts.SetHold", &api.SetHoldRequest{}, "whole network"},
		{"some", "hosts.SetHold", &api.SetHoldRequest{Hold: &api.HostHold{At: []*api.Location{{Dpid: "3"}}}}, "does not give app some switch"},
		{"some", "hosts.SetHold", &api.SetHoldRequest{Hold: &api.HostHold{At: []*api.Location{{Dpid: "2"}}}}, ""},
		{"some", "hosts.SetHold", &api.SetHoldRequest{Hold: &api.HostHold{Stage: "all", At: []*api.Location{{Dpid: "2"}}}}, "is not app some"},
		{"some", "hosts.ApproveHost", &api.ApproveHostRequest{Stage: "some"}, ""},
		{"some", "hosts.ApproveHost", &api.ApproveHostRequest{Stage: "all"}, "is not app some"},
		{"some", "hosts.RevokeHost", &api.RevokeHostRequest{Stage: "all"}, "is not app some"},
		{"some", "hosts.DeleteHold", &api.DeleteHoldRequest{Stage: "all"}, "is not app some"},
		{"all", "hosts.ApproveHost", &api.ApproveHostRequest{}, "add it to apps.all.may"},
		{"all", "flowrules.AddFlows", add("99", 7), ""},
		{"all", "firewall.SetFirewallDefault", &api.SetFirewallDefaultRequest{}, ""},
	} {
		err := c.permit(visitor{app: x.app}, x.method, x.req)
		switch {
		case x.text == "" && err != nil, x.text != "" && (api.KindOf(err) != codes.PermissionDenied || !strings.Contains(err.Error(), x.text)):
			t.Errorf("%s, %s: %v; want %q", x.app, x.method, err, x.text)
		}
		if a, ok := x.req.(*api.ApproveHostRequest); ok && err == nil && a.Stage != x.app {
			t.Errorf("%s: approval in the name of %q", x.app, a.Stage)
		}
		if a, ok := x.req.(*api.AddFlowsRequest); ok && err == nil && (a.Flows[1].Owner != "app "+x.app || a.Most != 2) {
			t.Errorf("%s: %v is not the app's own", x.app, a)
		}
	}
}

// TestUnnamedCallersOnlyRead: over REST and gRPC without a name, and with one that
// the plan does not give the method, nothing is changed.
func TestUnnamedCallersOnlyRead(t *testing.T) {
	var refused sync.Map
	w := serve(t, func(c *Config) {
		c.Caller = adding{}
		c.Refused = func(app, reason string) { refused.Store(app+" "+reason, true) }
		c.Grant = func(name string) Grant {
			if name == "mine" {
				return giving("", "flowrules.AddFlows")
			}
			return giving("")
		}
	})
	if _, code, text := callREST(t, w, "flowrules.AddFlows", ""); code != codes.PermissionDenied {
		t.Errorf("REST: %v %s", code, text)
	}
	if _, code, text := callWS(t, w, "flowrules.AddFlows", "{}"); code != codes.PermissionDenied {
		t.Errorf("WebSocket: %v %s", code, text)
	}
	client := api.NewFlowrulesClient(dial(t, w, nil))
	for app, want := range map[string]codes.Code{"": codes.PermissionDenied, "other": codes.PermissionDenied, "mine": codes.OK} {
		ctx := t.Context()
		if app != "" {
			ctx = metadata.AppendToOutgoingContext(ctx, "weft-app", app)
		}
		if _, err := client.AddFlows(ctx, &api.AddFlowsRequest{}); status.Code(err) != want {
			t.Errorf("gRPC as %q: %v; want %v", app, err, want)
		}
	}
	for _, want := range []string{" unnamed", "other method"} {
		if _, told := refused.Load(want); !told {
			t.Errorf("%q is not counted", want)
		}
	}
}

// TestDecisionsStayWithinTheGrant: operations that the plan does not give refuse
// the answer; entries carry the app's cookie; packets beyond the rate are left out.
func TestDecisionsStayWithinTheGrant(t *testing.T) {
	now := time.Unix(1000, 0)
	entry := func(priority uint16, idle uint16) flow.Mod {
		return flow.Mod{Command: flow.Add, Entry: flow.Entry{Table: 0, Priority: priority, IdleTimeout: idle, Cookie: 0x1122334455667788}}
	}
	add := func(sw flow.DPID, m flow.Mod) []flow.Decision {
		d := flow.Decision{}
		d.Flow(sw, m)
		return []flow.Decision{d}
	}
	inTable := func(table uint8, priority uint16) flow.Mod {
		m := entry(priority, 0)
		m.Entry.Table = table
		return m
	}
	g := giving("1", "add_flow", "delete_flow", "packet_out")
	l := &allowance{}
	none := giving("")
	deleting := entry(1, 0)
	deleting.Command = flow.DeleteStrict
	group := flow.Decision{}
	group.Group(1, flow.GroupMod{})
	for i, x := range []struct {
		g    *Grant
		list []flow.Decision
		want string
	}{
		{&none, []flow.Decision{{}}, ""}, // a verdict alone
		{&none, add(1, entry(1, 0)), "add_flow"},
		{&none, add(1, deleting), "delete_flow"},
		{&g, []flow.Decision{group}, "groups"},
		{&g, add(2, entry(1, 0)), "switch"},
		{&g, add(1, entry(flow.PriorityMax, 0)), "reserved"},
		{&g, add(1, entry(0, 0)), "reserved"},
		{&g, add(1, entry(25000, 0)), "reserved"},
		{&g, add(1, inTable(flow.TableForward, flow.PriorityRoute)), "reserved"},
		{&g, add(1, inTable(flow.TableForward, 10001)), ""},
		{&g, add(1, inTable(flow.TableFirewall, 5)), "reserved"},
	} {
		err := l.decide("a", x.g, x.list, now, nil)
		if (err == nil) != (x.want == "") || err != nil && !strings.Contains(err.Error(), x.want) {
			t.Errorf("%d: %v; want %q", i, err, x.want)
		}
	}

	l = &allowance{}
	for i, x := range []struct {
		list []flow.Decision
		want string
	}{
		{add(1, entry(1, 0)), "operation"}, {add(2, entry(1, 0)), "operation"}, {[]flow.Decision{group}, "operation"},
	} {
		if got := reasonOf(l.decide("a", &none, x.list, now, nil)); got != x.want {
			t.Errorf("%d: refused for %q, want %q", i, got, x.want)
		}
	}
	first, other := add(1, entry(1, 10)), add(1, entry(1, 10))
	if err := l.decide("a", &g, first, now, nil); err != nil {
		t.Fatal(err)
	}
	if err := new(allowance).decide("b", &g, other, now, nil); err != nil {
		t.Fatal(err)
	}
	a, b := first[0].Flows[0].Entry.Cookie, other[0].Flows[0].Entry.Cookie
	if a == b || a>>48 != 0x4150 || uint32(a) != 0x55667788 {
		t.Errorf("cookies %x and %x", a, b)
	}
	// Two entries are the most; one that is over makes room.
	if err := l.decide("a", &g, add(1, entry(2, 0)), now, nil); err != nil {
		t.Error(err)
	}
	if err := l.decide("a", &g, add(1, entry(3, 0)), now, nil); api.KindOf(err) != codes.ResourceExhausted {
		t.Errorf("a third entry: %v", err)
	}
	if err := l.decide("a", &g, add(1, entry(3, 0)), now.Add(11*time.Second), nil); err != nil {
		t.Errorf("after the first is over: %v", err)
	}

	// Ten packets a second.
	sent, over := 0, 0
	for range 3 {
		d := flow.Decision{}
		for range 5 {
			d.PacketOut(1, flow.PacketOut{})
		}
		list := []flow.Decision{d}
		if err := l.decide("a", &g, list, now.Add(20*time.Second), func() { over++ }); err != nil {
			t.Fatal(err)
		}
		sent += len(list[0].Ops)
	}
	if got := fmt.Sprint(sent, " ", over); got != "10 5" {
		t.Errorf("%s packets are sent and left out, want 10 5", got)
	}
}

// TestGroupsAreTheirOwn: what apps call group 1 are several groups, and theirs
// only; those of Weft cannot be named.
func TestGroupsAreTheirOwn(t *testing.T) {
	g := giving("", "groups", "add_flow", "packet_out")
	decision := func(command flow.Command, id uint32) []flow.Decision {
		d := flow.Decision{}
		d.Group(1, flow.GroupMod{Command: command, Group: flow.Group{ID: id, Buckets: []flow.Bucket{{Actions: []flow.Action{flow.ToGroup(7)}}}}})
		d.Flow(1, flow.Mod{Command: flow.Add, Entry: flow.Entry{Priority: 9, Apply: []flow.Action{flow.ToGroup(id)}}})
		d.PacketOut(1, flow.PacketOut{Actions: []flow.Action{flow.ToGroup(id)}})
		return []flow.Decision{d}
	}
	now, numbers := time.Unix(1000, 0), map[uint32]bool{}
	for _, app := range []string{"a", "b"} {
		l := &allowance{}
		for id := range uint32(2) {
			list := decision(flow.Add, id+1)
			if err := l.decide(app, &g, list, now, nil); err != nil {
				t.Fatal(err)
			}
			d := &list[0]
			number := d.Groups[0].Group.ID
			if owner := flow.GroupOwner(number); owner != flow.OwnerForeign || number < flow.AppGroups || numbers[number] {
				t.Errorf("app %s: group %d is %#x, of %v", app, id+1, number, owner)
			}
			numbers[number] = true
			for i, got := range []uint32{d.Flows[0].Entry.Apply[0].Arg, d.Outs[0].Actions[0].Arg} {
				if got != number {
					t.Errorf("app %s: %d names group %#x, want %#x", app, i, got, number)
				}
			}
			if got := d.Groups[0].Group.Buckets[0].Actions[0].Arg; got != flow.AppGroup(flow.MarkOf(app), 7) {
				t.Errorf("app %s: a bucket names group %#x", app, got)
			}
		}
		if err := l.decide(app, &g, decision(flow.Add, 3), now, nil); api.KindOf(err) != codes.ResourceExhausted || reasonOf(err) != "entries" {
			t.Errorf("app %s, a third group: %v", app, err)
		}
		if err := l.decide(app, &g, decision(flow.Delete, 1), now, nil); err != nil {
			t.Error(err)
		}
		for _, id := range []uint32{flow.BalancerGroups, flow.FloodGroups + 1, 1 << 16} {
			if err := l.decide(app, &g, decision(flow.Delete, id), now, nil); reasonOf(err) != "reserved" {
				t.Errorf("app %s, group %#x: %v", app, id, err)
			}
		}
	}
}
