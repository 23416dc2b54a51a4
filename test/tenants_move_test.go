package test

import (
	"context"
	"strconv"
	"strings"
	"testing"

	"github.com/weft-sdn/weft"
	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/lab"
	"github.com/weft-sdn/weft/lab/topology"
)

// echoesHeard returns how many echo requests a host has got, of IPv4 and IPv6.
func echoesHeard(t *testing.T, l *lab.Lab, g guest) int {
	t.Helper()
	const count = `awk '/^Icmp:/ { if (!n) { n = split($0, name) } else { for (i = 1; i <= n; i++) if (name[i] == "InEchos") s += $i } }
/^Icmp6InEchos / { s += $2 } END { print s }' /proc/net/snmp /proc/net/snmp6`
	out, err := l.Exec(context.Background(), g.name, "sh", "-c", count)
	n, err2 := strconv.Atoi(strings.TrimSpace(out))
	if err != nil || err2 != nil {
		t.Fatalf("%s: %q %v %v", g.name, out, err, err2)
	}
	return n
}

// TestTenantMove has two tenants with the same addresses, Ethernet and IP, over
// three switches, and moves hosts: a port from one tenant to the other, and a
// host that is a member by its address from one switch to another. A host
// reaches those of its own tenant and no other, before, after, and when the
// controller has been started again.
func TestTenantMove(t *testing.T) {
	t.Parallel()
	c := start(t, options{})
	topo, err := topology.Resolve("linear:3,3")
	if err != nil {
		t.Fatal(err)
	}
	l := bring(t, topo, c)
	settled(c, l)
	red1, red2 := guest{"h1", 1, 0}, guest{"h4", 2, 0}   // at s1 and s2
	blue1, blue2 := guest{"h2", 1, 0}, guest{"h5", 2, 0} // at s1 and s2
	mover := guest{"h7", 7, 0}                           // at s3
	roamer, later := guest{"h8", 8, 0}, guest{"h3", 8, 0}
	for _, g := range []guest{red1, red2, blue1, blue2, mover, roamer} {
		readdress(t, l, g)
	}
	network := func(c *controller, tenant string, members ...*api.TenantMember) {
		t.Helper()
		call(c, api.SetNetwork, &api.SetNetworkRequest{Network: &api.TenantNetwork{Tenant: tenant, Name: "net", Members: members}})
	}
	for _, name := range []string{"red", "blue"} {
		call(c, api.SetTenant, &api.SetTenantRequest{Tenant: &api.Tenant{Name: name}})
	}
	byAddress := &api.TenantMember{Mac: roamer.mac().String()}
	network(c, "red", portOf(t, l, red1), portOf(t, l, red2), portOf(t, l, mover))
	network(c, "blue", portOf(t, l, blue1), portOf(t, l, blue2), byAddress)
	inForce(c, 3)
	// speaks has a guest ask the address that both tenants have, and checks who
	// of the two hears it.
	speaks := func(when string, from, to, not guest) {
		t.Helper()
		for _, ip := range []string{to.ip(), to.ip6()} {
			// Open vSwitch may go on for a moment by what it has cached.
			eventually(t, when+": "+from.name+" is answered by "+ip+" of "+to.name, func() bool {
				heard, wrong := echoesHeard(t, l, to), echoesHeard(t, l, not)
				return reaches(l, from, ip, 1) && echoesHeard(t, l, to) > heard && echoesHeard(t, l, not) == wrong
			})
			heard, wrong := echoesHeard(t, l, to), echoesHeard(t, l, not)
			if !reaches(l, from, ip, 5) {
				t.Errorf("%s: %s is not answered by %s any more", when, from.name, ip)
			}
			if n := echoesHeard(t, l, to); n == heard {
				t.Errorf("%s: %s is answered, and not by %s", when, from.name, to.name)
			}
			if n := echoesHeard(t, l, not); n != wrong {
				t.Errorf("%s: %s of the other tenant has heard %s", when, not.name, from.name)
			}
		}
	}
	all := func(when string, mine, others guest, roaming guest) {
		t.Helper()
		speaks(when, red1, red2, blue2)
		speaks(when, blue1, blue2, red2)
		speaks(when, mover, mine, others)
		speaks(when, roaming, blue2, red2)
	}
	reaches(l, roamer, blue2.ip(), 5) // it is known where it is once it has spoken
	all("at first", red2, blue2, roamer)

	// A port can be a member of one network only.
	_, err = weft.Call(context.Background(), c.env, api.SetNetwork, &api.SetNetworkRequest{Network: &api.TenantNetwork{Tenant: "blue", Name: "net",
		Members: []*api.TenantMember{portOf(t, l, blue1), portOf(t, l, blue2), byAddress, portOf(t, l, mover)}}})
	if err == nil {
		t.Error("a port is a member of two networks")
	}
	network(c, "red", portOf(t, l, red1), portOf(t, l, red2))
	network(c, "blue", portOf(t, l, blue1), portOf(t, l, blue2), byAddress, portOf(t, l, mover))
	inForce(c, 3)
	speaks("with the other tenant", mover, blue2, red2)

	// The host that is a member by its address turns up at another switch.
	if err := l.LinkDown(context.Background(), roamer.name, "s3"); err != nil {
		t.Fatal(err)
	}
	readdress(t, l, later)
	all("after the moves", blue2, red2, later)

	c.stop()
	c = start(t, options{store: c.store, address: c.address})
	inForce(c, 3)
	all("after a restart", blue2, red2, later)
}
