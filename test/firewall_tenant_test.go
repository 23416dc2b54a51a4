package test

import (
	"testing"

	"github.com/weft-sdn/weft/api"
)

// TestFirewallTenant denies what one tenant does, by its name: in all its virtual
// networks, those that it gets later, too, and in nobody else's, on hosts with the
// same addresses.
func TestFirewallTenant(t *testing.T) {
	t.Parallel()
	c := start(t, options{})
	defer explain(c)
	l := tenantsLab(t, c)
	red, _ := virtualNetworks(c, l)
	settled(c, l)
	inForce(c, 4)
	for _, g := range []guest{a1, a2, b1, b2, c1, c3} {
		readdress(t, l, g)
	}
	through := func(what string, from, to guest) {
		t.Helper()
		eventually(t, what, func() bool { return reaches(l, from, to.ip(), 1) })
	}
	through("red", a1, a2)
	through("blue", b1, b2)
	addRules(c, &api.FirewallRule{Id: "red", Priority: 1, Action: "deny", Tenant: "red", Match: map[string]string{"ip_proto": "1"}})
	eventually(t, "red is denied", func() bool { return !reaches(l, a1, a2.ip(), 1) })
	through("blue, with red denied", b1, b2)
	through("the common network, with red denied", c1, c3)

	// The same hosts in another network of red's.
	call(c, api.SetNetwork, &api.SetNetworkRequest{Network: &api.TenantNetwork{Tenant: "red", Name: "net",
		Members: []*api.TenantMember{portOf(t, l, a3)}}})
	more := call(c, api.SetNetwork, &api.SetNetworkRequest{Network: &api.TenantNetwork{Tenant: "red", Name: "more",
		Members: []*api.TenantMember{portOf(t, l, a1), portOf(t, l, a2)}}})
	if more.Segment == red.Segment {
		t.Fatalf("both networks of red have segment %d", red.Segment)
	}
	inForce(c, 4)
	eventually(t, "red is denied in another network", func() bool { return !reaches(l, a1, a2.ip(), 1) })
	c.stop()
	c = start(t, options{store: c.store, address: c.address})
	settled(c, l)
	inForce(c, 4)
	if reaches(l, a1, a2.ip(), 2) {
		t.Error("red is not denied after a restart")
	}
	deleteRules(c, "red")
	through("red, without the rule", a1, a2)
}
