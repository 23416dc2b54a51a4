package tenants

import (
	"strings"
	"testing"

	"github.com/weft-sdn/weft/api"
)

func member1(dpid string, port, vlan uint32) *api.TenantMember {
	return &api.TenantMember{Dpid: dpid, Port: port, Vlan: vlan}
}

func TestReadNetwork(t *testing.T) {
	n, err := readNetwork(&api.TenantNetwork{Tenant: "red", Name: "a", Members: []*api.TenantMember{
		{Mac: "02:00:00:00:00:AA"}, member1("2", 1, 5), member1("1", 3, 0), member1("1", 3, 0)}})
	if err != nil {
		t.Fatal(err)
	}
	if len(n.ports) != 2 || len(n.said.Members) != 3 || n.said.Members[0].Dpid != "0000000000000001" || n.said.Members[2].Mac != "02:00:00:00:00:aa" {
		t.Errorf("%v", n.said)
	}
	for _, c := range []struct {
		network *api.TenantNetwork
		want    string
	}{
		{&api.TenantNetwork{Tenant: "red", Name: "a", Segment: 1}, "segment"},
		{&api.TenantNetwork{Tenant: "red", Name: "a", Segment: 4095}, "segment"},
		{&api.TenantNetwork{Tenant: "red", Name: "a", Members: []*api.TenantMember{{Mac: "ff:ff:ff:ff:ff:ff"}}}, "host"},
		{&api.TenantNetwork{Tenant: "red", Name: "a", Members: []*api.TenantMember{{Mac: "02:00:00:00:00:01", Port: 1}}}, "make them two"},
		{&api.TenantNetwork{Tenant: "red", Name: "a", Members: []*api.TenantMember{{}}}, "datapath"},
		{&api.TenantNetwork{Tenant: "red", Name: "a", Members: []*api.TenantMember{member1("1", 0, 0)}}, "port"},
		{&api.TenantNetwork{Tenant: "red", Name: "a", Members: []*api.TenantMember{member1("1", 0xfffffffd, 0)}}, "port"},
		{&api.TenantNetwork{Tenant: "red", Name: "a", Members: []*api.TenantMember{member1("1", 1, 4095)}}, "vlan"},
	} {
		if _, err := readNetwork(c.network); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: %v, want %q", c.network, err, c.want)
		}
	}
	for _, bad := range []*api.TenantNetwork{nil, {Name: "a"}, {Tenant: "red"}, {Tenant: "red", Name: "a/b"}} {
		if _, err := networkName(bad); err == nil {
			t.Errorf("named: %v", bad)
		}
	}
	for _, bad := range []*api.Tenant{{Name: "a", MaxHosts: 1 << 20}, {Name: "a", BurstKbit: 1}} {
		if _, err := readTenant(bad); err == nil {
			t.Errorf("taken: %v", bad)
		}
	}
}

func TestClash(t *testing.T) {
	read := func(name string, segment uint32, m ...*api.TenantMember) *network {
		n, err := readNetwork(&api.TenantNetwork{Tenant: "red", Name: name, Segment: segment, Members: m})
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	host := &api.TenantMember{Mac: "02:00:00:00:00:01"}
	a := read("a", 10, member1("1", 1, 0), member1("1", 2, 5), host)
	for _, c := range []struct {
		b    *network
		want string
	}{
		{read("b", 10), "carries"},
		{read("b", 11, member1("1", 1, 0)), "already"},
		{read("b", 11, member1("1", 1, 7)), "no other frames"},
		{read("b", 11, member1("1", 2, 5)), "already"},
		{read("b", 11, member1("1", 2, 0)), "no untagged frames"},
		{read("b", 11, member1("1", 2, 6), member1("2", 1, 0)), ""},
		{read("b", 11, host), "host"},
	} {
		err := c.b.clash(a)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: %v, want %q", c.b.said, err, c.want)
		}
	}
	if read("c", 1+11, member1("1", 1, 0), member1("1", 1, 4)).itself() == nil {
		t.Error("one port twice is taken")
	}
}

func TestConfig(t *testing.T) {
	if err := DefaultConfig().Validate(); err != nil {
		t.Fatal(err)
	}
	for _, change := range []func(*Config){
		func(c *Config) { c.Tenants = 0 }, func(c *Config) { c.Members = 0 }, func(c *Config) { c.FirstSegment = 1 },
		func(c *Config) { c.FirstSegment, c.LastSegment = 9, 8 }, func(c *Config) { c.LastSegment = 4095 }, func(c *Config) { c.Deadline = 0 },
	} {
		c := DefaultConfig()
		change(c)
		if c.Validate() == nil {
			t.Errorf("taken: %+v", c)
		}
	}
}
