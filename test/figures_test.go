package test

import (
	"slices"
	"strings"
	"testing"

	"github.com/weft-sdn/weft/api"
)

// TestFiguresGoWithObjects: figures that are labelled by names that people have
// given, there are only as long as what is named is there, and only of kinds of
// objects whose number the configuration bounds.
func TestFiguresGoWithObjects(t *testing.T) {
	t.Parallel()
	c := start(t, options{})
	const name = "zz-named"
	labelled := func() (list []string) {
		for _, f := range c.gather() {
			for _, m := range f.Metric {
				for _, l := range m.Label {
					if strings.Contains(l.GetValue(), name) && !slices.Contains(list, f.GetName()) {
						list = append(list, f.GetName())
					}
				}
			}
		}
		slices.Sort(list)
		return list
	}
	call(c, api.SetVip, &api.SetVipRequest{Vip: &api.Vip{Name: name, Address: "10.0.0.200", Protocol: "tcp", Port: 80, Pool: []*api.PoolMember{{Address: "10.0.0.3"}}}})
	call(c, api.SetNat, &api.SetNatRequest{Gateway: &api.NatGateway{Name: name, Dpid: "1", Port: 1, Pool: "198.51.100.1", NextHop: "198.51.100.9", Gateway: "10.0.0.254", Inside: []string{"10.0.0.0/24"}}})
	call(c, api.QosSetPolicy, &api.QosSetPolicyRequest{Policy: &api.QosPolicy{Name: name, Limit: &api.QosLimit{RateKbps: 1000}}})
	call(c, api.SetTenant, &api.SetTenantRequest{Tenant: &api.Tenant{Name: name, RateKbps: 1000}})
	call(c, api.SetNetwork, &api.SetNetworkRequest{Network: &api.TenantNetwork{Tenant: name, Name: name, Members: []*api.TenantMember{{Dpid: "1", Port: 1}}}})
	call(c, api.AddFirewallRules, &api.AddFirewallRulesRequest{Rules: []*api.FirewallRule{{Id: name, Action: "allow"}}})
	// A new kind here must be bounded by its service's configuration, and be
	// taken back by it (Metrics.Remove).
	want := []string{"weft_balancer_member_connections", "weft_balancer_member_connections_given", "weft_balancer_member_up",
		"weft_nat_exhausted", "weft_nat_exhausted_total", "weft_nat_packets_total"}
	var got []string
	defer func() {
		if t.Failed() {
			t.Logf("labelled by a name: %q, want %q", got, want)
		}
	}()
	eventually(t, "just these are labelled by a name", func() bool { got = labelled(); return slices.Equal(got, want) })
	call(c, api.DeleteVip, &api.DeleteVipRequest{Name: name})
	call(c, api.DeleteNat, &api.DeleteNatRequest{Name: name})
	call(c, api.QosDeletePolicy, &api.QosDeletePolicyRequest{Name: name})
	call(c, api.DeleteTenant, &api.DeleteTenantRequest{Name: name})
	call(c, api.DeleteFirewallRules, &api.DeleteFirewallRulesRequest{Ids: []string{name}})
	eventually(t, "no figures of what is deleted", func() bool { got, want = labelled(), nil; return len(got) == 0 })
}
