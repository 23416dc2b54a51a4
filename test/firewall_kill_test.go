package test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/services"
	"github.com/weft-sdn/weft/services/gateway"
)

// TestFirewallKilled kills the process of the firewall alone, with rules in the
// switches and with verdicts: what was denied stays denied, and new flows are
// judged as soon as it is back.
func TestFirewallKilled(t *testing.T) {
	t.Parallel()
	var rest []string
	for _, spec := range services.All(gateway.Process{}) {
		if !slices.Contains([]string{"southbound", "discovery", "hosts", "firewall", "intake"}, spec.Name) {
			rest = append(rest, spec.Name)
		}
	}
	f := newFaults(t)
	for _, limit := range []string{"2000", "0"} {
		t.Run("limit "+limit, func(t *testing.T) {
			d := f.deploy(t, `name: firewall
transport: grpc
events: grpc
workers:
  southbound: {services: [southbound, discovery, hosts]}
  policy: {services: [firewall], settings: {firewall: {table_limit: `+limit+`}}}
  rest: {services: [`+strings.Join(rest, ", ")+`]}
`)
			l := d.network("linear:2")
			calls := api.NewFirewallClient(d.conn)
			ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
			defer cancel()
			pingAll(t, l, false)
			h2 := lookup(t, l, "h2").IPv4.Addr().String()
			resp, err := calls.AddFirewallRules(ctx, &api.AddFirewallRulesRequest{Rules: []*api.FirewallRule{
				{Id: "keep", Priority: 100, Action: "deny", Match: map[string]string{"ipv4_src": lookup(t, l, "h1").IPv4.Addr().String(), "ipv4_dst": h2}}}})
			if err != nil || len(resp.Failures) > 0 {
				t.Fatalf("add: %v %v", resp, err)
			}
			stopped(t, l, "h1", "h2", false)
			d.kill(d.watch(), "policy")
			stopped(t, l, "h1", "h2", false)
			eventually(t, "IPv6 passes", func() bool { return pings(t, l, "h1", "h2", true) })
			list, err := calls.ListFirewallRules(ctx, &api.ListFirewallRulesRequest{})
			if err != nil || len(list.Rules) != 1 {
				t.Fatalf("rules after the restart: %v %v", list, err)
			}
			deleted, err := calls.DeleteFirewallRules(ctx, &api.DeleteFirewallRulesRequest{Ids: []string{"keep"}})
			if err != nil || len(deleted.Failures) > 0 || deleted.Deleted != 1 {
				t.Fatalf("delete: %v %v", deleted, err)
			}
			passing(t, l, false)
		})
	}
}
