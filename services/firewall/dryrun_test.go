package firewall

import (
	"context"
	"maps"
	"slices"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/wefttest"
)

// TestDryRun: a dry run says what the same call then does, refuses what it
// refuses, and changes nothing.
func TestDryRun(t *testing.T) {
	wefttest.Run(t, Spec(), func(t *testing.T, h *wefttest.Harness) {
		h.Configure("max_rules: 4\nrules: [{id: kept, action: deny, match: {tcp_dst: 1}}]")
		p := newPeers(h)
		h.Start()
		connect(h, 1, true)
		add(t, h, deny("a", 10, "tcp_dst=22"), deny("b", 10, "tcp_dst=23"))
		untouched := func(dry func()) {
			t.Helper()
			before, rules, entries := storedNow(t, h), rulesNow(t, h), p.entries(1)
			dry()
			if !maps.Equal(before, storedNow(t, h)) || !proto.Equal(rules, rulesNow(t, h)) || !slices.Equal(entries, p.entries(1)) {
				t.Error("the dry run has changed something")
			}
		}
		for _, c := range []struct {
			name    string
			rules   []*api.FirewallRule
			effects []string
			code    codes.Code
		}{
			{"new, other and the same", []*api.FirewallRule{deny("c", 10, "tcp_dst=24"), deny("a", 11, "tcp_dst=22"), deny("b", 10, "tcp_dst=23")}, []string{"added", "replaced", "unchanged"}, codes.OK},
			{"wrong", []*api.FirewallRule{deny("d", 10, "nothing=1")}, nil, codes.InvalidArgument},
			{"of the configuration", []*api.FirewallRule{deny("config:kept", 10, "tcp_dst=1")}, nil, codes.InvalidArgument},
			{"too many", []*api.FirewallRule{deny("d", 10, "tcp_dst=25")}, nil, codes.ResourceExhausted},
		} {
			var would *api.AddFirewallRulesResponse
			var refused error
			untouched(func() {
				would, refused = wefttest.Call(h, api.AddFirewallRules, &api.AddFirewallRulesRequest{Rules: c.rules, DryRun: true})
			})
			is, err := wefttest.Call(h, api.AddFirewallRules, &api.AddFirewallRulesRequest{Rules: c.rules})
			if api.KindOf(refused) != c.code || !sameError(refused, err) || !proto.Equal(would, is) || !slices.Equal(would.GetEffects(), c.effects) {
				t.Errorf("%s: would be %v, %v; is %v, %v", c.name, would, refused, is, err)
			}
		}
		for _, req := range []*api.SetFirewallDefaultRequest{{Action: "deny"}, {Action: "deny"}, {Dpid: "1", Action: "block"}, {Dpid: "1"}, {Action: "x"}, {Action: "deny", Dpid: "x"}} {
			dry := proto.CloneOf(req)
			dry.DryRun = true
			var would *api.SetFirewallDefaultResponse
			var refused error
			untouched(func() { would, refused = wefttest.Call(h, api.SetFirewallDefault, dry) })
			is, err := wefttest.Call(h, api.SetFirewallDefault, req)
			if !sameError(refused, err) || !proto.Equal(would, is) {
				t.Errorf("%v: would be %v, %v; is %v, %v", req, would, refused, is, err)
			}
		}
		for _, req := range []*api.DeleteFirewallRulesRequest{{Ids: []string{"a", "x", "a"}}, {Ids: []string{"config:kept"}}, {AllOf: "x"}, {AllOf: "all"}, {AllOf: "all"}} {
			dry := proto.CloneOf(req)
			dry.DryRun = true
			var would *api.DeleteFirewallRulesResponse
			var refused error
			untouched(func() { would, refused = wefttest.Call(h, api.DeleteFirewallRules, dry) })
			is, err := wefttest.Call(h, api.DeleteFirewallRules, req)
			if !sameError(refused, err) || !proto.Equal(would, is) {
				t.Errorf("%v: would be %v, %v; is %v, %v", req, would, refused, is, err)
			}
		}
	})
}

func sameError(a, b error) bool {
	return (a == nil) == (b == nil) && (a == nil || a.Error() == b.Error())
}

func rulesNow(t *testing.T, h *wefttest.Harness) *api.ListFirewallRulesResponse {
	t.Helper()
	resp, err := wefttest.Call(h, api.ListFirewallRules, &api.ListFirewallRulesRequest{})
	if err != nil {
		t.Fatal(err)
	}
	return resp
}

// storedNow returns what the service's bucket holds.
func storedNow(t *testing.T, h *wefttest.Harness) map[string]string {
	t.Helper()
	all := map[string]string{}
	if err := h.Bucket("rules").All(context.Background(), func(key string, value []byte, _ uint64) error {
		all[key] = string(value)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return all
}
