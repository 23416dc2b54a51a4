package test

import (
	"context"
	"net/netip"
	"strings"
	"testing"
	"time"

	"weft/api"
	"weft/lab"
)

// routedHosts are the hosts of Ryu's documentation of rest_router, and their IPv6
// addresses.
var routedHosts = map[string][4]string{
	"h1": {"172.16.20.10/24", "172.16.20.1", "fd00:20::10/64", "fd00:20::1"},
	"h2": {"172.16.10.10/24", "172.16.10.1", "fd00:10::10/64", "fd00:10::1"},
	"h3": {"192.168.30.10/24", "192.168.30.1", "fd00:30::10/64", "fd00:30::1"},
}

// routedLab is three switches in a row, each with a host in a subnet of its own.
func routedLab(t *testing.T, c *controller) *farm {
	t.Helper()
	topo, err := lab.Resolve("linear:3")
	if err != nil {
		t.Fatal(err)
	}
	for i := range topo.Hosts {
		h := &topo.Hosts[i]
		as := routedHosts[h.Name]
		h.IPv4, h.GW4 = netip.MustParsePrefix(as[0]), netip.MustParseAddr(as[1])
		h.IPv6, h.GW6 = netip.MustParsePrefix(as[2]), netip.MustParseAddr(as[3])
	}
	f := &farm{t: t, c: c, Lab: bring(t, topo, c)}
	settled(c, f.Lab)
	return f
}

// address gives the router of a switch an address.
func (f *farm) address(sw, address string) {
	f.t.Helper()
	call(f.c, api.AddRouterAddress, &api.AddRouterAddressRequest{Dpid: dpid(f.t, f.Lab, sw), Address: address})
}

// route gives the router of a switch a route.
func (f *farm) route(sw, destination, gateway string) {
	f.t.Helper()
	call(f.c, api.AddRouterRoute, &api.AddRouterRouteRequest{Dpid: dpid(f.t, f.Lab, sw), Destination: destination, Gateway: gateway})
}

// documented sets up the routers of Ryu's documentation.
func (f *farm) documented() {
	f.t.Helper()
	for _, a := range [][2]string{
		{"s1", "172.16.20.1/24"}, {"s1", "172.16.30.30/24"}, {"s2", "172.16.10.1/24"}, {"s2", "172.16.30.1/24"}, {"s2", "192.168.10.1/24"},
		{"s3", "192.168.30.1/24"}, {"s3", "192.168.10.20/24"},
		{"s1", "fd00:20::1/64"}, {"s1", "fd00:12::1/64"}, {"s2", "fd00:10::1/64"}, {"s2", "fd00:12::2/64"}, {"s2", "fd00:23::2/64"},
		{"s3", "fd00:30::1/64"}, {"s3", "fd00:23::3/64"},
	} {
		f.address(a[0], a[1])
	}
	for _, r := range [][3]string{
		{"s1", "", "172.16.30.1"}, {"s2", "", "172.16.30.30"}, {"s3", "", "192.168.10.1"}, {"s2", "192.168.30.0/24", "192.168.10.20"},
		{"s1", "", "fd00:12::2"}, {"s2", "", "fd00:12::1"}, {"s3", "", "fd00:23::2"}, {"s2", "fd00:30::/64", "fd00:23::3"},
	} {
		f.route(r[0], r[1], r[2])
	}
}

// reaches waits until one host pings an address.
func (f *farm) reaches(from, to string) {
	f.t.Helper()
	out := ""
	f.t.Cleanup(func() {
		if f.t.Failed() {
			f.t.Logf("%s -> %s: %s", from, to, out)
		}
	})
	eventually(f.t, 30*time.Second, from+" pings "+to, func() bool {
		var err error
		out, err = f.Exec(context.Background(), from, "ping", "-c", "1", "-W", "2", to)
		return err == nil
	})
}

// allRouted pings between all subnets.
func (f *farm) allRouted() {
	f.t.Helper()
	for from := range routedHosts {
		for to, as := range routedHosts {
			if from != to {
				f.reaches(from, netip.MustParsePrefix(as[0]).Addr().String())
				f.reaches(from, netip.MustParsePrefix(as[2]).Addr().String())
			}
		}
	}
}

// TestRouter: hosts in subnets of three routers reach each other, whichever
// way the controller is run, and then by entries of the switches alone.
func TestRouter(t *testing.T) {
	t.Parallel()
	c := start(t, options{})
	f := routedLab(t, c)
	defer explain(c)
	f.documented()
	f.allRouted()
	for _, a := range []string{"172.16.20.1", "172.16.30.1", "192.168.30.1", "fd00:12::2"} {
		f.reaches("h1", a)
	}
	// The first packets were routed here; those after, by the switches.
	eventually(t, 20*time.Second, "the switches route by themselves", func() bool {
		before := c.metric("weft_router_carried_total")
		f.reaches("h1", "192.168.30.10")
		f.reaches("h3", "fd00:20::10")
		return c.metric("weft_router_carried_total") == before
	})
	out, err := f.Exec(context.Background(), "h1", "ping", "-c", "1", "-W", "2", "192.168.30.10")
	if err != nil || !strings.Contains(out, "ttl=61") {
		t.Errorf("three routers on the way take three from the time to live: %v %s", err, out)
	}
}
