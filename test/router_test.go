package test

import (
	"context"
	"fmt"
	"net/netip"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/lab/topology"
)

// routedHosts are the hosts of Ryu's documentation of rest_router, and their IPv6
// addresses.
var routedHosts = map[string][4]string{
	"h1": {"172.16.20.10/24", "172.16.20.1", "fd00:20::10/64", "fd00:20::1"},
	"h2": {"172.16.10.10/24", "172.16.10.1", "fd00:10::10/64", "fd00:10::1"},
	"h3": {"192.168.30.10/24", "192.168.30.1", "fd00:30::10/64", "fd00:30::1"},
}

// routedLab is three switches in a row, each with a host in a subnet of its own;
// those that are named speak OpenFlow 1.0.
func routedLab(t *testing.T, c *controller, old ...string) *farm {
	t.Helper()
	topo, err := topology.Resolve("linear:3")
	if err != nil {
		t.Fatal(err)
	}
	for i := range topo.Hosts {
		h := &topo.Hosts[i]
		as := routedHosts[h.Name]
		h.IPv4, h.GW4 = netip.MustParsePrefix(as[0]), netip.MustParseAddr(as[1])
		h.IPv6, h.GW6 = netip.MustParsePrefix(as[2]), netip.MustParseAddr(as[3])
	}
	for i := range topo.Switches {
		if s := &topo.Switches[i]; slices.Contains(old, s.Name) {
			s.Protocols = []string{"OpenFlow10"}
		}
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
	eventually(f.t, from+" pings "+to, func() bool {
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
	eventually(t, "the switches route by themselves", func() bool {
		before := c.metric("weft_router_carried_total")
		f.reaches("h1", "192.168.30.10")
		f.reaches("h3", "fd00:20::10")
		return c.metric("weft_router_carried_total") == before
	})
	out, err := f.Exec(context.Background(), "h1", "ping", "-c", "1", "-W", "10", "192.168.30.10")
	if err != nil || !strings.Contains(out, "ttl=61") {
		t.Errorf("three routers on the way take three from the time to live: %v %s", err, out)
	}
}

// says waits until a command on a host says a text.
func (f *farm) says(text, host string, command ...string) {
	f.t.Helper()
	out := ""
	f.t.Cleanup(func() {
		if f.t.Failed() {
			f.t.Logf("%s: %v, wanted %q: %s", host, command, text, out)
		}
	})
	eventually(f.t, host+": "+text, func() bool {
		out, _ = f.Exec(context.Background(), host, command...)
		return strings.Contains(out, text)
	})
}

// TestRouterErrors: whose packets go no further is told so by the router at which
// they end, also where it is the switch that finds out.
func TestRouterErrors(t *testing.T) {
	t.Parallel()
	c := start(t, options{})
	f := routedLab(t, c)
	for _, a := range [][2]string{{"s1", "172.16.20.1/24"}, {"s2", "172.16.10.1/24"}, {"s1", "fd00:20::1/64"}, {"s2", "fd00:10::1/64"}} {
		f.address(a[0], a[1])
	}
	f.says("From 172.16.20.1 icmp_seq=1 Destination Net Unreachable", "h1", "ping", "-c", "1", "-W", "2", "172.16.10.10")
	f.says("From fd00:20::1 icmp_seq=1 Destination unreachable: No route", "h1", "ping", "-c", "1", "-W", "2", "fd00:10::10")
	f.documented()
	f.allRouted()
	f.says("From 172.16.30.1 icmp_seq=1 Destination Host Unreachable", "h1", "ping", "-c", "1", "-W", "5", "172.16.10.77")
	f.says("From fd00:12::2 icmp_seq=1 Destination unreachable: Address unreachable", "h1", "ping", "-c", "1", "-W", "5", "fd00:10::77")
	f.says("refused", "h1", "python3", "-c", `
import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.settimeout(2); s.connect(("172.16.20.1", 9)); s.send(b"x")
try: s.recv(1)
except ConnectionRefusedError: print("refused")`)
	for n, from := range []string{"172.16.20.1", "172.16.30.1", "192.168.10.20"} {
		f.says("From "+from+" icmp_seq=1 Time to live exceeded", "h1", "ping", "-c", "1", "-W", "2", "-t", strconv.Itoa(n+1), "192.168.30.10")
	}
	for n, from := range []string{"fd00:20::1", "fd00:12::2", "fd00:23::3"} {
		f.says("From "+from+" icmp_seq=1 Time exceeded: Hop limit", "h1", "ping", "-c", "1", "-W", "2", "-t", strconv.Itoa(n+1), "fd00:30::10")
	}
	// The default routes of s1 and s2 lead to each other.
	f.says("Time to live exceeded", "h1", "ping", "-c", "1", "-W", "2", "203.0.113.1")
}

// TestRouterRestart: the switches go on routing while the controller is away, and
// the next one takes nothing from them that it puts back.
func TestRouterRestart(t *testing.T) {
	t.Parallel()
	c := start(t, options{})
	f := routedLab(t, c)
	f.documented()
	f.allRouted()
	counted := func() (packets uint64) {
		for _, e := range call(f.c, api.ReadFlows, &api.ReadFlowsRequest{Dpid: dpid(t, f.Lab, "s1"), Owner: "router"}).Flows {
			if e.Match["ipv4_dst"] == "192.168.30.10" {
				packets = e.Packets
			}
		}
		return packets
	}
	eventually(t, "an entry that counts", func() bool { f.reaches("h1", "192.168.30.10"); return counted() > 2 })
	for name := range routedHosts {
		eventually(t, "both addresses of "+name+" kept", func() bool { return keysWith(t, c.store, "router.neighbours", f.host(name).MAC.String()) == 2 })
	}
	before, list := counted(), call(c, api.ListRouters, &api.ListRoutersRequest{})
	c.stop()
	f.reaches("h1", "192.168.30.10")
	f.c = start(t, options{store: c.store, address: c.address})
	settled(f.c, f.Lab)
	for _, r := range list.Routers {
		eventually(t, "router of "+r.Dpid+" up", func() bool {
			now := call(f.c, api.ListRouters, &api.ListRoutersRequest{Dpid: r.Dpid}).Routers
			return len(now) == 1 && now[0].State == "up" && len(now[0].Addresses) == len(r.Addresses) && len(now[0].Routes) == len(r.Routes) && now[0].Mac == r.Mac
		})
	}
	// Nothing is sent meanwhile: an entry that was replaced would count from 0.
	eventually(t, fmt.Sprintf("the entry, which had counted %d packets, has not been replaced and counts on", before), func() bool { return counted() > before })
	f.allRouted()
	again := call(f.c, api.AddRouterAddress, &api.AddRouterAddressRequest{Dpid: "1", Address: "172.16.20.1/24"})
	if again.Added || again.Address.Id != 1 {
		t.Errorf("added once more: %v", again)
	}
	for _, r := range list.Routers {
		for _, x := range r.Routes {
			call(f.c, api.DeleteRouterRoute, &api.DeleteRouterRouteRequest{Dpid: r.Dpid, Destination: x.Destination})
		}
		for _, x := range r.Addresses {
			call(f.c, api.DeleteRouterAddress, &api.DeleteRouterAddressRequest{Dpid: r.Dpid, Address: x.Address})
		}
	}
	eventually(t, "no entries left", func() bool { return ofOwner(f.c, dpid(t, f.Lab, "s1"), "router") == 0 })
}

// TestRouterGateway: what is for networks that Weft does not know goes by a
// gateway among the hosts, which is asked for, and comes back.
func TestRouterGateway(t *testing.T) {
	t.Parallel()
	c := start(t, options{})
	f := routedLab(t, c)
	f.documented()
	for _, command := range []string{"ip addr add 10.99.0.1/32 dev lo", "ip addr add fd00:99::1/128 dev lo"} {
		if out, err := f.Exec(context.Background(), "h2", strings.Fields(command)...); err != nil {
			t.Fatal(err, out)
		}
	}
	f.route("s2", "10.99.0.0/16", "172.16.10.10")
	f.route("s2", "fd00:99::/64", "fd00:10::10")
	for _, h := range []string{"h1", "h3"} {
		f.reaches(h, "10.99.0.1")
		f.reaches(h, "fd00:99::1")
	}
	call(c, api.DeleteRouterRoute, &api.DeleteRouterRouteRequest{Dpid: "2", Destination: "10.99.0.0/16"})
	f.says("Time to live exceeded", "h1", "ping", "-c", "1", "-W", "2", "10.99.0.1")
}

// TestRouterOldSwitches: for switches that cannot route, the controller does, and
// says so.
func TestRouterOldSwitches(t *testing.T) {
	t.Parallel()
	c := start(t, options{})
	f := routedLab(t, c, "s1", "s3")
	f.documented()
	for from := range routedHosts {
		for to, as := range routedHosts {
			if from != to {
				f.reaches(from, netip.MustParsePrefix(as[0]).Addr().String())
			}
		}
	}
	eventually(t, "the routers say who routes", func() bool {
		list := call(c, api.ListRouters, &api.ListRoutersRequest{}).Routers
		for _, r := range list {
			want := map[string]string{dpid(t, f.Lab, "s1"): "carried", dpid(t, f.Lab, "s2"): "up", dpid(t, f.Lab, "s3"): "carried"}[r.Dpid]
			if r.State != want {
				return false
			}
		}
		return len(list) == 3
	})
}

// TestRouterBalancer: a virtual address in the subnet of its members is reached
// from others, and answers.
func TestRouterBalancer(t *testing.T) {
	t.Parallel()
	c := start(t, options{})
	f := routedLab(t, c)
	f.servers = map[string]*exec.Cmd{}
	f.documented()
	f.allRouted()
	f.serve("h2")
	f.set(&api.Vip{Name: "web", Address: "172.16.10.200", Protocol: "tcp", Port: 80, IdleTimeout: 60,
		Health: &api.HealthCheck{Kind: "tcp", IntervalMs: 300, TimeoutMs: 5000, Rise: 1, Fall: 2},
		Pool:   []*api.PoolMember{{Address: "172.16.10.10", Port: 8080}}})
	for _, h := range []string{"h1", "h3"} {
		eventually(t, h+" is served", func() bool { return f.get(h, "http://172.16.10.200/who") == "h2" })
	}
}

// second is a host behind the port of another, in a subnet of its own.
const second = `
unshare --net sleep 300 & P=$!
trap 'kill $P' TERM
until [ "$(readlink /proc/$P/ns/net)" != "$(readlink /proc/self/ns/net)" ]; do sleep 0.05; done
ip link add mv0 link eth0 address 02:00:00:00:00:99 type macvlan mode bridge && ip link set mv0 netns $P
nsenter -t $P -n sh -c 'ip link set lo up && ip addr add 10.9.0.9/24 dev mv0 && ip link set mv0 up && ip route add default via 10.9.0.1'
wait $P`

// TestRouterSamePort: two hosts in different subnets behind one port reach each
// other, at first by the controller and then by the switch.
func TestRouterSamePort(t *testing.T) {
	t.Parallel()
	c := start(t, options{})
	f := routedLab(t, c)
	f.address("s1", "172.16.20.1/24")
	f.address("s1", "10.9.0.1/24")
	cmd, err := f.Start(context.Background(), "h1", "sh", "-c", second)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Signal(syscall.SIGTERM); _ = cmd.Wait() })
	f.reaches("h1", "10.9.0.9")
	eventually(t, "the switch sends packets back by itself", func() bool {
		before := c.metric("weft_router_carried_total")
		f.reaches("h1", "10.9.0.9")
		return c.metric("weft_router_carried_total") == before
	})
}

// TestRouterTenants: a router of the VLAN that carries a virtual network routes
// for that network's hosts, and for nobody else.
func TestRouterTenants(t *testing.T) {
	t.Parallel()
	c := start(t, options{})
	f := routedLab(t, c)
	call(c, api.SetTenant, &api.SetTenantRequest{Tenant: &api.Tenant{Name: "red"}})
	var members []*api.TenantMember
	for _, h := range []string{"h1", "h3"} {
		members = append(members, &api.TenantMember{Dpid: dpid(t, f.Lab, f.host(h).Switch), Port: uint32(f.host(h).Port)})
	}
	n := call(c, api.SetNetwork, &api.SetNetworkRequest{Network: &api.TenantNetwork{Tenant: "red", Name: "net", Members: members}})
	for sw, a := range map[string]string{"s1": "172.16.20.1/24", "s2": "172.16.10.1/24", "s3": "192.168.30.1/24"} {
		call(c, api.AddRouterAddress, &api.AddRouterAddressRequest{Dpid: dpid(t, f.Lab, sw), Vlan: n.Segment, Address: a})
	}
	call(c, api.AddRouterAddress, &api.AddRouterAddressRequest{Dpid: dpid(t, f.Lab, "s1"), Vlan: n.Segment, Address: "192.168.30.2/24"})
	call(c, api.AddRouterAddress, &api.AddRouterAddressRequest{Dpid: dpid(t, f.Lab, "s3"), Vlan: n.Segment, Address: "172.16.20.2/24"})
	f.reaches("h1", "192.168.30.10")
	f.reaches("h3", "172.16.20.1")
	if out, err := f.Exec(context.Background(), "h2", "ping", "-c", "1", "-W", "1", "172.16.10.1"); err == nil {
		t.Errorf("a host of the common network reaches the router: %s", out)
	}
}
