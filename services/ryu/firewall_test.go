package ryu

import (
	"context"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/wefttest"
)

// TestFirewallService: rules keep their numbers apart over restarts, those of
// others are left alone, and what does not work is told.
func TestFirewallService(t *testing.T) {
	wefttest.Run(t, Spec(Process{}), func(t *testing.T, h *wefttest.Harness) {
		c := newBrowser(t, h, "report_refusals: true")
		rules := map[string]*api.FirewallRule{"other": {Id: "other", Dpid: "0000000000000005", Action: "deny"}}
		var failures []*api.FirewallFailure
		var away error
		wefttest.Fake(h, api.AddFirewallRules, func(_ context.Context, r *api.AddFirewallRulesRequest) (*api.AddFirewallRulesResponse, error) {
			if away != nil {
				return nil, away
			}
			for _, m := range r.Rules {
				rules[m.Id] = m
			}
			return &api.AddFirewallRulesResponse{Failures: failures}, nil
		})
		wefttest.Fake(h, api.ListFirewallRules, func(context.Context, *api.ListFirewallRulesRequest) (*api.ListFirewallRulesResponse, error) {
			resp := &api.ListFirewallRulesResponse{}
			for _, m := range rules {
				resp.Rules = append(resp.Rules, m)
			}
			return resp, away
		})
		wefttest.Fake(h, api.DeleteFirewallRules, func(_ context.Context, r *api.DeleteFirewallRulesRequest) (*api.DeleteFirewallRulesResponse, error) {
			for _, id := range r.Ids {
				delete(rules, id)
			}
			return &api.DeleteFirewallRulesResponse{}, nil
		})
		h.Start()
		const path = "/firewall/rules/0000000000000005"
		c.want("GET", path, "", 400, "firewall sw is not connected.")
		wefttest.Publish(h, api.SwitchChangedEvent, switchUp(5, "1.3"))
		h.Settle()
		added := func(n string) string {
			return `[{"command_result":[{"result":"success","details":"Rule added. : rule_id=` + n + `"}],"switch_id":"0000000000000005"}]`
		}
		c.want("POST", path, `{"nw_src": "10.0.0.1"}`, 200, added("1"))
		c.want("POST", path, `{"nw_src": "10.0.0.2", "actions": "DENY"}`, 200, added("2"))
		if m := rules["ryu.0000000000000005.rule.0.2"]; m.GetAction() != "deny" || m.GetMatch()["ipv4_src"] != "10.0.0.2" || m.GetPriority() != 1 {
			t.Errorf("rule 2 is %v", m)
		}
		c.want("PUT", "/firewall/log/disable/all", "", 200, "*")
		c.want("DELETE", path, `{"rule_id": "all"}`, 200, "*")
		if len(rules) != 1 || rules["other"] == nil {
			t.Errorf("after all are deleted: %v", rules)
		}
		h.Restart()
		wefttest.Publish(h, api.SwitchChangedEvent, switchUp(5, "1.3"))
		h.Settle()
		c.want("GET", "/firewall/log/status", "", 200, `[{"log_status":"disable","switch_id":"0000000000000005"}]`)
		c.want("POST", path, `{"nw_src": "10.0.0.1"}`, 200, added("3"))
		failures = []*api.FirewallFailure{{Dpid: "5", Text: "table full"}}
		c.want("POST", path, `{"nw_src": "10.0.0.3"}`, 400, "table full")
		away = api.Errorf(codes.Unavailable, "no firewall")
		c.want("POST", path, `{"nw_src": "10.0.0.4"}`, 404, "*")
		c.want("GET", path, "", 404, "*")
	})
}

// TestHostileRules: no body of a rule does harm, and none that is wrong is taken.
func TestHostileRules(t *testing.T) {
	for _, text := range []string{
		`{"priority": [1], "nw_src": "10.0.0.1"}`, `{"priority": 99999999999999999999, "nw_src": "10.0.0.1"}`, `{"dl_type": []}`, `{"dl_type": null}`, `{"dl_type": {"a": 1}}`,
		`{"nw_proto": [], "nw_src": "10.0.0.1"}`, `{"nw_src": {}}`, `{"dl_type": "IPv4", "dl_vlan": 70000}`, `{"dl_type": "IPv4", "actions": {}}`, `{"dl_type": "IPv4", "in_port": -1}`,
	} {
		v, err := parseLiteral(text)
		if err != nil {
			t.Fatal(err)
		}
		if m, _, err := readRule(v.(dict), 0); err == nil {
			t.Errorf("%s is taken as %v", text, m)
		}
		if m, err := readQosRule(dict{"match": v}, 0); err == nil && !strings.Contains(text, `"priority"`) && !strings.Contains(text, `"actions"`) {
			t.Errorf("%s is taken as the match of %v", text, m)
		}
	}
}
