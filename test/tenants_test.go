package test

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weft-sdn/weft"
	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/lab"
	"github.com/weft-sdn/weft/lab/traffic"

	"github.com/weft-sdn/weft/lab/topology"

	"github.com/weft-sdn/weft/packet"
)

// What is needed of forwarding and hosts for the tests of this file to pass:
//
//   - hosts are told apart by address and VLAN, so that one address in several
//     networks is several hosts;
//   - routes are between hosts of one VLAN, and the last switch takes the tag
//     off, or changes it, as SegmentChanged says of the port;
//   - multicasts of a network leave at its ports only, each with its tag, and
//     those of the common network at none of the ports that are members;
//   - what the controller itself sends (answers to ARP, packets that wait for a
//     route) leaves at a port in the same way.

// guest is a host of the tests, with addresses that others have as well.
type guest struct {
	name string // of the lab's host
	n    byte   // 10.0.0.n, fd00::n and 02:00:00:00:aa:n
	vlan uint16 // of its frames on the wire
}

func (g guest) ip() string    { return fmt.Sprintf("10.0.0.%d", g.n) }
func (g guest) ip6() string   { return fmt.Sprintf("fd00::%d", g.n) }
func (g guest) mac() flow.MAC { return flow.MAC{2, 0, 0, 0, 0xaa, g.n} }

// The guests of tenants red and blue and of the common network: wherever one
// has the number of another, they have the same addresses.
var (
	a1, a2, a3 = guest{"h1", 1, 0}, guest{"h4", 2, 0}, guest{"h7", 3, 0}  // red, at s1, s2 and s3
	t5         = guest{"h10", 5, 300}                                     // red, at s4, tagged on the wire
	b1, b2, b4 = guest{"h2", 1, 0}, guest{"h5", 2, 0}, guest{"h11", 4, 0} // blue, at s1, s2 and s4
	m8         = guest{"h8", 8, 0}                                        // blue, at s3, by its address
	c1, c3     = guest{"h3", 1, 0}, guest{"h9", 3, 0}                     // common, at s1 and s3
	free       = guest{"h12", 7, 0}                                       // common, at s4
	raw        = guest{"h6", 9, 300}                                      // red, at s2, tagged; frames by hand only
)

func guests() []guest { return []guest{a1, a2, a3, t5, b1, b2, b4, m8, c1, c3, free, raw} }

// tenantsLab is a ring of four switches with three hosts each.
func tenantsLab(t *testing.T, c *controller) *lab.Lab {
	t.Helper()
	topo, err := topology.Ring(4, 3)
	if err != nil {
		t.Fatal(err)
	}
	for i := range topo.Hosts {
		if topo.Hosts[i].Name == t5.name {
			topo.Hosts[i].VLAN = t5.vlan
		}
	}
	return bring(t, topo, c)
}

// readdress gives a host of the lab the addresses of a guest.
func readdress(t *testing.T, l *lab.Lab, g guest) {
	t.Helper()
	dev, err := l.Exec(context.Background(), g.name, "sh", "-c", "ip -br -4 addr show scope global | sed 's/[@ ].*//'")
	if err != nil {
		t.Fatal(err)
	}
	dev = strings.TrimSpace(dev)
	for _, args := range []string{
		"link set eth0 down", "link set eth0 address " + g.mac().String(), "link set eth0 up",
		"addr flush dev " + dev, "link set " + dev + " address " + g.mac().String(), "link set " + dev + " up",
		"addr add " + g.ip() + "/24 dev " + dev, "addr add " + g.ip6() + "/64 nodad dev " + dev, "neigh flush all",
	} {
		if _, err := l.Exec(context.Background(), g.name, append([]string{"ip"}, strings.Fields(args)...)...); err != nil {
			t.Fatalf("%s: ip %s: %v", g.name, args, err)
		}
	}
}

// virtualNetworks makes the virtual networks of red and blue.
func virtualNetworks(c *controller, l *lab.Lab) (red, blue *api.TenantNetwork) {
	c.t.Helper()
	for _, name := range []string{"red", "blue"} {
		call(c, api.SetTenant, &api.SetTenantRequest{Tenant: &api.Tenant{Name: name}})
	}
	net := func(tenant string, members ...*api.TenantMember) *api.TenantNetwork {
		return call(c, api.SetNetwork, &api.SetNetworkRequest{Network: &api.TenantNetwork{Tenant: tenant, Name: "net", Members: members}})
	}
	red = net("red", portOf(c.t, l, a1), portOf(c.t, l, a2), portOf(c.t, l, a3), portOf(c.t, l, t5), portOf(c.t, l, raw))
	blue = net("blue", portOf(c.t, l, b1), portOf(c.t, l, b2), portOf(c.t, l, b4), &api.TenantMember{Mac: m8.mac().String()})
	return red, blue
}

func portOf(t *testing.T, l *lab.Lab, g guest) *api.TenantMember {
	t.Helper()
	h := lookup(t, l, g.name)
	return &api.TenantMember{Dpid: dpid(t, l, h.Switch), Port: uint32(h.Port), Vlan: uint32(g.vlan)}
}

// reaches reports whether a guest gets an answer from an address, asking several
// times at most.
func reaches(l *lab.Lab, from guest, ip string, tries int) bool {
	for range tries {
		if _, err := l.Exec(context.Background(), from.name, "ping", "-n", "-c", "1", "-W", "1", ip); err == nil {
			return true
		}
	}
	return false
}

// inForce waits until all switches, so many, do what tenants need.
func inForce(c *controller, switches int) {
	c.t.Helper()
	var last *api.TenantsStatus
	defer func() {
		if c.t.Failed() {
			c.t.Log(last)
		}
	}()
	eventually(c.t, "tenants in force", func() bool {
		last = call(c, api.GetTenantsStatus, &api.GetTenantsStatusRequest{})
		for _, s := range last.Switches {
			if s.State != "enforced" {
				return false
			}
		}
		return len(last.Switches) == switches
	})
}

// isolated checks who reaches whom, several pairs at a time.
func isolated(t *testing.T, l *lab.Lab, when string) {
	t.Helper()
	var work sync.WaitGroup
	defer work.Wait()
	slots := make(chan struct{}, 6)
	check := func(want bool, from guest, list ...guest) {
		for _, to := range list {
			for _, ip := range []string{to.ip(), to.ip6()} {
				slots <- struct{}{}
				work.Go(func() {
					defer func() { <-slots }()
					tries := map[bool]int{true: 15, false: 2}[want]
					if got := reaches(l, from, ip, tries); got != want {
						t.Errorf("%s: %s reaches %s: %v, want %v", when, from.name, ip, got, want)
					}
				})
			}
		}
	}
	check(true, a1, a2, a3, t5)
	check(true, a3, a1, t5)
	check(true, t5, a2)
	check(true, m8, b1, b4)
	check(true, b1, b2, b4, m8)
	check(true, c1, c3, free)
	// Those that are in another network only.
	check(false, a1, b4, m8, free)
	check(false, b1, a3, t5, free)
	check(false, c1, a2, t5, b4, m8)
	check(false, m8, a3, free)
}

// marker is an Ethernet frame of no protocol, told apart by its text.
func marker(src, dst flow.MAC, text string, tags ...uint16) []byte {
	f := append(append([]byte{}, dst[:]...), src[:]...)
	for _, v := range tags {
		f = append(f, 0x81, 0, byte(v>>8), byte(v))
	}
	return packet.Pad(append(append(f, 0x88, 0xb5), text...))
}

// ears listen at guests for a text, and count.
type ears struct {
	t     *testing.T
	l     *lab.Lab
	wires map[guest]*wire
	heard map[guest]*atomic.Int64
	text  atomic.Pointer[[]byte]
}

func listen(t *testing.T, l *lab.Lab) *ears {
	e := &ears{t: t, l: l, wires: map[guest]*wire{}, heard: map[guest]*atomic.Int64{}}
	none := []byte("nothing yet")
	e.text.Store(&none)
	for _, g := range guests() {
		n := &atomic.Int64{}
		e.heard[g] = n
		e.wires[g] = attach(t, l, g.name)
		e.wires[g].listen(func(frame []byte) {
			if bytes.Contains(frame, *e.text.Load()) {
				n.Add(1)
			}
		})
	}
	return e
}

// says has a guest send frames several times, and returns who has heard text.
// Those who are to hear it are waited for.
func (e *ears) says(from guest, text string, frame []byte, want ...guest) map[string]bool {
	e.t.Helper()
	b := []byte(text)
	for _, n := range e.heard {
		n.Store(0)
	}
	e.text.Store(&b)
	for range 10 {
		e.wires[from].send(frame)
		time.Sleep(30 * time.Millisecond)
	}
	deaf := func(g guest) bool { return e.heard[g].Load() == 0 }
	for end := time.Now().Add(patience); slices.ContainsFunc(want, deaf) && time.Now().Before(end); {
		time.Sleep(20 * time.Millisecond)
	}
	time.Sleep(300 * time.Millisecond) // for who is not to hear it
	heard := map[string]bool{}
	for g, n := range e.heard {
		if n.Load() > 0 && g != from {
			heard[g.name] = true
		}
	}
	return heard
}

// pingAnswer is the number of an answer that ping tells of.
var pingAnswer = regexp.MustCompile(`icmp_seq=(\d+) ttl=`)

func names(list ...guest) map[string]bool {
	m := map[string]bool{}
	for _, g := range list {
		m[g.name] = true
	}
	return m
}

// TestTenants has two tenants and the common network on one ring of switches,
// with the same Ethernet and IP addresses in each.
func TestTenants(t *testing.T) {
	t.Parallel()
	c := start(t, options{})
	l := tenantsLab(t, c)
	red, blue := virtualNetworks(c, l)
	if red.Segment == blue.Segment || red.Segment < 2 {
		t.Fatalf("segments %d and %d", red.Segment, blue.Segment)
	}
	settled(c, l)
	inForce(c, 4)
	for _, g := range guests() {
		readdress(t, l, g)
	}
	reaches(l, m8, b1.ip(), 10) // it is known where it is once it has spoken
	isolated(t, l, "at first")

	e := listen(t, l)
	heardBy := func(what string, from guest, text string, frame []byte, want ...guest) {
		t.Helper()
		if got := e.says(from, text, frame, want...); fmt.Sprint(got) != fmt.Sprint(names(want...)) {
			t.Errorf("%s is heard by %v, want %v", what, got, names(want...))
		}
	}
	r, b := uint16(red.Segment), uint16(blue.Segment)
	heardBy("a broadcast of red", a1, "red-broadcast", marker(a1.mac(), flow.Broadcast, "red-broadcast"), a2, a3, t5, raw)
	heardBy("a tagged broadcast of red", raw, "tagged-broadcast", marker(raw.mac(), flow.Broadcast, "tagged-broadcast", 300), a1, a2, a3, t5)
	// The port of m8, which is blue by its address, carries the common network, too.
	heardBy("a broadcast of blue", b1, "blue-broadcast", marker(b1.mac(), flow.Broadcast, "blue-broadcast"), b2, b4, m8)
	heardBy("a broadcast of the common network", c1, "common-broadcast", marker(c1.mac(), flow.Broadcast, "common-broadcast"), c3, free, m8)
	arp := packet.AppendARPRequest(nil, 0, packet.ARPFields{SenderMAC: a1.mac(), SenderIP: lookup(t, l, "h1").IPv4.Addr(), TargetIP: lookup(t, l, "h11").IPv4.Addr()})
	for who := range e.says(a1, string(arp[14:42]), arp) {
		if !names(a2, a3, t5, raw)[who] {
			t.Errorf("ARP of red is heard by %s", who)
		}
	}
	// Tags that lead into another network, at members and at others.
	for _, v := range []struct {
		what  string
		from  guest
		frame []byte
	}{
		{"a tag of blue at a port of red", a1, marker(a1.mac(), flow.Broadcast, "hop", b)},
		{"a tag of red at a port of red", a1, marker(a1.mac(), flow.Broadcast, "hop", r)},
		{"two tags at a port of red", a1, marker(a1.mac(), flow.Broadcast, "hop", r, b)},
		{"a foreign tag at a tagged port of red", raw, marker(raw.mac(), flow.Broadcast, "hop", b)},
		{"the segment of red at a tagged port of red", raw, marker(raw.mac(), flow.Broadcast, "hop", r)},
		{"no tag at a tagged port of red", raw, marker(raw.mac(), flow.Broadcast, "hop")},
		{"a tag of red at a port of nobody", free, marker(free.mac(), flow.Broadcast, "hop", r)},
		{"two tags at a port of nobody", free, marker(free.mac(), flow.Broadcast, "hop", r, b)},
		{"a tag of red to a host of red, at a port of nobody", free, marker(free.mac(), a1.mac(), "hop", r)},
		{"a tag of a host that is a member by its address", m8, marker(m8.mac(), flow.Broadcast, "hop", b)},
	} {
		heardBy(v.what, v.from, "hop", v.frame)
	}

	// A second tag behind that of red is dropped, or carried within red.
	for who := range e.says(raw, "second", marker(raw.mac(), flow.Broadcast, "second", 300, b)) {
		if !names(a1, a2, a3, t5)[who] {
			t.Errorf("a second tag at a tagged port of red is heard by %s", who)
		}
	}

	// Over the other half of the ring.
	if err := l.LinkDown(context.Background(), "s1", "s2"); err != nil {
		t.Fatal(err)
	}
	eventually(t, "red over the other half of the ring", func() bool { return reaches(l, a1, a2.ip(), 1) })
	isolated(t, l, "with a link less")
	if err := l.LinkUp(context.Background(), "s1", "s2"); err != nil {
		t.Fatal(err)
	}
	settled(c, l)

	said := &script{}
	ping := exec.Command("ping", "-n", "-i", "0.05", a3.ip())
	ping.Stdout = said
	if err := l.StartCmd(a1.name, ping); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ping.Process.Kill(); _ = ping.Wait() })
	answered := func() (count, last int) {
		seen := map[int]bool{}
		for _, m := range pingAnswer.FindAllStringSubmatch(said.String(), -1) {
			n, _ := strconv.Atoi(m[1])
			seen[n], last = true, max(last, n)
		}
		return len(seen), last
	}
	more := func(what string) {
		t.Helper()
		_, before := answered()
		eventually(t, what, func() bool { _, n := answered(); return n >= before+10 })
	}
	more("red talks")
	c.stop()
	c = start(t, options{store: c.store, address: c.address})
	settled(c, l)
	inForce(c, 4)
	more("red talks after a restart")
	if count, last := answered(); count != last { // the first has number 1
		t.Errorf("red over a restart: %d of %d pings answered", count, last)
	}
	if list := call(c, api.ListNetworks, &api.ListNetworksRequest{}).Networks; len(list) != 2 || list[0].Segment != blue.Segment || list[1].Segment != red.Segment {
		t.Errorf("after a restart: %v", list)
	}
	isolated(t, l, "after a restart")

	// Without its network, a port is of the common network again.
	call(c, api.DeleteTenant, &api.DeleteTenantRequest{Name: "blue"})
	inForce(c, 4)
	eventually(t, "the port of b4 is of the common network", func() bool { return reaches(l, b4, free.ip(), 1) })
	if !reaches(l, a1, a2.ip(), 10) {
		t.Error("red is gone with blue")
	}
}

// TestTenantLimits has a tenant kept to its number of hosts and to its rate.
func TestTenantLimits(t *testing.T) {
	t.Parallel()
	c := start(t, options{})
	l := up(t, "linear:3", c)
	settled(c, l)
	var members []*api.TenantMember
	for _, name := range []string{"h1", "h2", "h3"} {
		h := lookup(t, l, name)
		members = append(members, &api.TenantMember{Dpid: dpid(t, l, h.Switch), Port: uint32(h.Port)})
	}
	call(c, api.SetTenant, &api.SetTenantRequest{Tenant: &api.Tenant{Name: "red", RateKbps: 5000}})
	call(c, api.SetNetwork, &api.SetNetworkRequest{Network: &api.TenantNetwork{Tenant: "red", Name: "net", Members: members}})
	pings := func(from, to string) bool {
		r, err := l.Ping(context.Background(), from, to, traffic.PingOptions{Count: 1})
		return err == nil && r.Lost() == 0
	}
	inForce(c, 3)
	eventually(t, "h1 and h2 reach each other", func() bool { return pings("h1", "h2") })
	slow := between(0.5, 8, func() float64 { return throughput(t, l, "h1", "h2") })
	t.Logf("tenant limited to 5 Mbit/s: %.1f Mbit/s", slow)
	if slow < 0.5 || slow > 8 {
		t.Errorf("%.1f Mbit/s through a tenant's limit of 5", slow)
	}
	call(c, api.SetTenant, &api.SetTenantRequest{Tenant: &api.Tenant{Name: "red"}})
	if fast := fastest(3*slow, func() float64 { return throughput(t, l, "h1", "h2") }); fast < 3*slow {
		t.Errorf("%.1f Mbit/s without a limit, %.1f with", fast, slow)
	}
	// The hosts that have come first are let in: now no more than there are.
	usage := func() *api.TenantUsage {
		return call(c, api.GetTenantsStatus, &api.GetTenantsStatusRequest{}).Tenants[0]
	}
	eventually(t, "all three are known", func() bool { pings("h3", "h1"); return usage().Hosts == 3 })
	call(c, api.SetTenant, &api.SetTenantRequest{Tenant: &api.Tenant{Name: "red", MaxHosts: 3}})
	inForce(c, 3)
	// h3 becomes another host.
	for _, args := range []string{"link set eth0 down", "addr flush dev eth0", "link set eth0 address 02:00:00:00:bb:03", "link set eth0 up", "addr add 10.0.0.33/24 dev eth0"} {
		if _, err := l.Exec(context.Background(), "h3", append([]string{"ip"}, strings.Fields(args)...)...); err != nil {
			t.Fatal(err)
		}
	}
	fourth := guest{name: "h3"}
	h1 := lookup(t, l, "h1").IPv4.Addr().String()
	if reaches(l, fourth, h1, 3) {
		t.Error("a fourth host is let in")
	}
	if u := usage(); u.Hosts != 3 {
		t.Errorf("usage: %v", u)
	}
	eventually(t, "hosts within the limit reach each other", func() bool { return pings("h1", "h2") })
	call(c, api.SetTenant, &api.SetTenantRequest{Tenant: &api.Tenant{Name: "red"}})
	eventually(t, "h3 is let in without the limit", func() bool { return reaches(l, fourth, h1, 1) })
}

// TestTenantsOpenFlow10: a network with a port of a switch that cannot keep networks apart is
// refused, naming the switch.
func TestTenantsOpenFlow10(t *testing.T) {
	t.Parallel()
	c := start(t, options{})
	topo, err := topology.Resolve("linear:2")
	if err != nil {
		t.Fatal(err)
	}
	topo.Switches[1].Protocols = []string{"OpenFlow10"}
	l := bring(t, topo, c)
	settled(c, l)
	h2 := lookup(t, l, "h2")
	call(c, api.SetTenant, &api.SetTenantRequest{Tenant: &api.Tenant{Name: "red"}})
	network := &api.TenantNetwork{Tenant: "red", Name: "net", Members: []*api.TenantMember{{Dpid: dpid(t, l, "s2"), Port: uint32(h2.Port)}}}
	if _, err := weft.Call(t.Context(), c.env, api.SetNetwork, &api.SetNetworkRequest{Network: network}); err == nil || !strings.Contains(err.Error(), "switch "+dpid(t, l, "s2")+" has OpenFlow 1.0") {
		t.Errorf("a member at s2: %v", err)
	}
}
