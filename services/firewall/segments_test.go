package firewall

import (
	"slices"
	"testing"
	"time"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/internal/testwait"
	"github.com/weft-sdn/weft/wefttest"
)

// segment tells that a VLAN carries a virtual network of a tenant, or no more.
func segment(h *wefttest.Harness, tenant string, vlan uint32, removed bool) {
	wefttest.Publish(h, api.SegmentChangedEvent, &api.SegmentChanged{Segment: &api.Segment{Tenant: tenant, Vlan: vlan, Network: "net"}, Removed: removed})
}

// TestTenantRules has a tenant's rule hold in all its virtual networks, those
// that come later, too, and from the start after a restart.
func TestTenantRules(t *testing.T) {
	wefttest.Run(t, Spec(), func(t *testing.T, h *wefttest.Harness) {
		p := newPeers(h)
		connect(h, 1, true)
		want := func(what string, lists ...[]string) {
			t.Helper()
			entries := slices.Sorted(slices.Values(slices.Concat(lists...)))
			for end := time.Now().Add(testwait.Limit); !slices.Equal(p.entries(1), entries); time.Sleep(10 * time.Millisecond) {
				if time.Now().After(end) {
					t.Fatalf("%s: entries %q, want %q", what, p.entries(1), entries)
				}
			}
		}
		segment(h, "red", 20, false)
		segment(h, "blue", 30, false)
		add(t, h, &api.FirewallRule{Id: "red", Priority: 9, Action: "deny", Tenant: "red", Match: map[string]string{"arp_op": "1"}},
			&api.FirewallRule{Id: "one", Priority: 8, Action: "deny", Tenant: "red", Vlan: 21},
			&api.FirewallRule{Id: "nobody", Priority: 7, Action: "deny", Tenant: "nobody"})
		one := []string{"10:8 vlan_vid=21 drop"}
		red := func(vlan string) (list []string) { // what is behind further tags cannot be known, and is denied, too
			for _, match := range []string{"eth_type=0x0806,vlan_vid=" + vlan + ",arp_op=1", "eth_type=0x8100,vlan_vid=" + vlan, "eth_type=0x88a8,vlan_vid=" + vlan} {
				list = append(list, "10:9 "+match+" drop")
			}
			return list
		}
		want("of one network", one, red("20"))
		segment(h, "red", 21, false)
		want("of two networks", one, red("20"), red("21"))
		segment(h, "red", 20, true)
		segment(h, "nobody", 31, false)
		want("of another, and of a tenant that has come", []string{"10:7 vlan_vid=31 drop"}, one, red("21"))
		segment(h, "red", 31, false)
		want("of one that has changed hands", one, red("21"), red("31"))
		h.Restart()
		connect(h, 1, true)
		add(t, h, &api.FirewallRule{Id: "more", Priority: 6, Action: "deny"})
		want("after a restart", []string{"10:6 any drop"}, one, red("21"), red("31"))
		status, err := wefttest.Call(h, api.GetFirewallStatus, &api.GetFirewallStatusRequest{})
		if err != nil || status.Rules != 4 {
			t.Errorf("status: %v %v", status, err)
		}
	})
}

// TestRuleOfNobody: the rule of a tenant without virtual networks is there, and in force.
func TestRuleOfNobody(t *testing.T) {
	wefttest.Run(t, Spec(), func(t *testing.T, h *wefttest.Harness) {
		newPeers(h)
		connect(h, 1, true)
		add(t, h, deny("other", 1, "tcp_dst=80"))
		add(t, h, &api.FirewallRule{Id: "nobody", Priority: 7, Action: "deny", Tenant: "nobody"})
		testwait.Until(t, "the rule in force", func() bool {
			list, err := wefttest.Call(h, api.ListFirewallRules, &api.ListFirewallRulesRequest{Ids: []string{"nobody"}})
			return err == nil && len(list.Rules) == 1 && list.Rules[0].State == inForce
		})
		if status, err := wefttest.Call(h, api.GetFirewallStatus, &api.GetFirewallStatusRequest{}); err != nil || status.Rules != 2 {
			t.Errorf("status: %v, %v", status, err)
		}
	})
}
