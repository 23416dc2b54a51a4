package forwarding

import (
	"slices"
	"testing"
	"time"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
)

// Forwarding and discovery are started again, and discovery does not know at once
// what the ports of hosts are: the entries that switches have stay, and forwarding
// knows their routes when it does.
func TestRestartWithDiscovery(t *testing.T) {
	net, hosts, edges := ring(t, 4)
	c := newCluster(t, net, 1, nil, edges...)
	for i := 0; i < len(hosts); i += 2 {
		c.packet(0, hosts[i], hosts[i+1])
	}
	before, written := c.run[0].ways(), len(net.log)
	c.edges = nil
	i := c.restart()
	for _, at := range edges {
		setRole(i.engine.portTable, at, flow.RoleUnsettled)
	}
	for range 10 {
		c.clock = c.clock.Add(time.Second)
		i.upkeep()
	}
	for _, at := range edges {
		setRole(i.engine.portTable, at, flow.RoleEdge)
	}
	i.upkeep()
	if !slices.Equal(i.ways(), before) || len(net.log) != written {
		t.Errorf("%d of %d routes known, %d writes, want all and none", i.routes.size(), len(before), len(net.log)-written)
	}
}

// An instance sees a part only of the network, and gives up routes of others that
// are whole: their owner keeps them, and it knows them later, too.
func TestRoutesOfOthersWholeLater(t *testing.T) {
	net, hosts, edges := ring(t, 8)
	c := newCluster(t, net, 1, nil, edges...)
	for i := 0; i < len(hosts); i += 2 {
		c.packet(0, hosts[i], hosts[i+1])
	}
	before := c.run[0].ways()
	late := c.start()
	late.routes = newRouteTable()
	late.replicas.set(2, 3)
	var at flow.Location
	c.run[0].routes.each(func(r *route) {
		if !late.replicas.owns(r.pair) {
			at = flow.Location{Switch: r.hops[1].sw, Port: r.hops[1].out}
		}
	})
	link := c.link(at)
	link.Removed = true
	late.linkChanged(link)
	late.askAgain()
	for range 4 {
		c.clock = c.clock.Add(time.Second)
		late.upkeep()
	}
	if n := late.routes.size(); n == len(before) {
		t.Fatalf("all %d routes known without the link", n)
	}
	late.linkChanged(c.link(at))
	for range 30 {
		c.clock = c.clock.Add(time.Second)
		late.upkeep()
	}
	if n := late.routes.size(); n != len(before) {
		t.Errorf("%d routes known, want %d", n, len(before))
	}
}

// TestAskedOverTakeover: a switch that did not take what it was sent, as when nobody was its
// master for a moment, is asked later what it has, also if a new master publishes its session
// again meanwhile, which reads nothing. One that connects anew reports by itself.
func TestAskedOverTakeover(t *testing.T) {
	now := time.Unix(1e9, 0)
	session := &api.Switch{Connected: true, Since: now.Format(time.RFC3339), Address: "10.0.0.1:40000"}
	for _, c := range []struct {
		what  string
		next  *api.Switch
		asked bool
	}{
		{"published again", session, true},
		{"connected anew", &api.Switch{Connected: true, Since: session.Since, Address: "10.0.0.1:40001"}, false},
		{"gone", &api.Switch{}, false},
	} {
		a := newAdoption()
		a.expectReport(1, session, now)
		a.askSwitchAt(1, now.Add(unsure))
		a.expectReport(1, c.next, now.Add(time.Second))
		if _, asked := a.again[1]; asked != c.asked {
			t.Errorf("%s: asked again: %v, want %v", c.what, asked, c.asked)
		}
	}
}
