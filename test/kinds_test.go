package test

import (
	"context"
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/lab"
	"github.com/weft-sdn/weft/lab/traffic"

	"github.com/weft-sdn/weft/lab/topology"

	"github.com/weft-sdn/weft/packet"
)

// TestOldSwitches has switches that speak OpenFlow 1.0 only, alone and among
// others.
func TestOldSwitches(t *testing.T) {
	t.Parallel()
	for _, v := range []struct {
		name string
		old  func(i int) bool
	}{{"all", func(int) bool { return true }}, {"mixed", func(i int) bool { return i%2 == 0 }}} {
		t.Run(v.name, func(t *testing.T) {
			t.Parallel()
			topo, err := topology.Resolve("ring:4")
			if err != nil {
				t.Fatal(err)
			}
			want := map[string]string{}
			for i := range topo.Switches {
				s := &topo.Switches[i]
				want[s.DPID.String()] = "1.3"
				if v.old(i) {
					s.Protocols = []string{"OpenFlow10"}
					want[s.DPID.String()] = "1.0"
				}
			}
			c := start(t, options{})
			l := bring(t, topo, c)
			settled(c, l)
			for _, s := range call(c, api.ListSwitches, &api.ListSwitchesRequest{}).Switches {
				if s.Openflow != want[s.Dpid] {
					t.Errorf("switch %s speaks OpenFlow %s, want %s", s.Dpid, s.Openflow, want[s.Dpid])
				}
			}
			pingAll(t, l, false)
			pingAll(t, l, true)
			s := endless(t, l, "h1", "h2", 5*time.Millisecond)
			s.flows(50)
			if err := l.LinkDown(context.Background(), "s1", "s2"); err != nil {
				t.Fatal(err)
			}
			mended(t, l)
			s.flows(50)
			r := s.end()
			t.Logf("s1-s2 cut under h1 -> h2: %d of %d lost, outage %.0f ms", r.Lost(), r.Sent, r.Outage)
			if r.Error != "" {
				t.Error(r.Error)
			}
			explain(c)
		})
	}
}

// unreachable checks that nothing of a host comes to another.
func unreachable(t *testing.T, l *lab.Lab, from, to string) {
	t.Helper()
	r, err := l.Ping(context.Background(), from, to, traffic.PingOptions{Count: 3, Interval: 50 * time.Millisecond, Timeout: 300 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	if r.Received > 0 {
		t.Errorf("%s -> %s: %d of %d answered, want none", from, to, r.Received, r.Sent)
	}
}

func prefix(s string) netip.Prefix { return netip.MustParsePrefix(s) }

// TestVLANs has hosts of two VLANs and without one, with the same IP addresses
// in both VLANs, on a ring.
func TestVLANs(t *testing.T) {
	t.Parallel()
	topo, err := topology.Ring(4, 0)
	if err != nil {
		t.Fatal(err)
	}
	for i, vlan := range []uint16{10, 20, 0} {
		for j := range 3 {
			a := j + 1
			if vlan == 0 {
				a += 10
			}
			topo.Hosts = append(topo.Hosts, topology.Host{
				Name: fmt.Sprintf("v%d-%d", vlan, j+1), Switch: fmt.Sprintf("s%d", (i+j)%4+1), VLAN: vlan,
				IPv4: prefix(fmt.Sprintf("10.0.0.%d/24", a)), IPv6: prefix(fmt.Sprintf("fd00::%d/64", a)),
			})
		}
	}
	for i := range topo.Links {
		topo.Links[i].APort, topo.Links[i].BPort = 0, 0 // after those of the hosts
	}
	topo.Complete()
	c := start(t, options{})
	l := bring(t, topo, c)
	settled(c, l)
	pingAll(t, l, false)
	pingAll(t, l, true)
	for _, h := range call(c, api.ListHosts, &api.ListHostsRequest{}).Hosts {
		for _, want := range l.Topology().Hosts {
			if want.MAC.String() == h.Mac && uint32(want.VLAN) != h.Vlan {
				t.Errorf("%s is known in VLAN %d, want %d", want.Name, h.Vlan, want.VLAN)
			}
		}
	}

	// Neither what is broadcast nor what is addressed to them comes to hosts
	// of another VLAN.
	unreachable(t, l, "v10-1", "v0-1")
	unreachable(t, l, "v0-1", "v10-1")
	victim := attach(t, l, "v20-1")
	heard := 0
	stop := victim.listen(func(frame []byte) {
		if ip, ok := packet.ParseIPv4(frame); ok && ip.DSCP() == 42 {
			heard++
		}
	})
	sender := attach(t, l, "v10-1")
	from := mac(t, l, "v10-1")
	for _, to := range []flow.MAC{mac(t, l, "v20-1"), {0xff, 0xff, 0xff, 0xff, 0xff, 0xff}} {
		for range 10 {
			sender.send(packet.AppendUDP(nil, packet.Ether{Dst: to, Src: from},
				packet.IP{Src: netip.MustParseAddr("10.0.0.1"), Dst: netip.MustParseAddr("10.0.0.2"), DSCP: 42}, 1, 2, []byte("other VLAN")))
		}
	}
	time.Sleep(300 * time.Millisecond)
	stop()
	if heard > 0 {
		t.Errorf("%d frames of VLAN 10 came to a host of VLAN 20", heard)
	}
	explain(c)
}

// TestSubnets routes between subnets, one of them in a VLAN; the first packet
// waits until its destination is found.
func TestSubnets(t *testing.T) {
	t.Parallel()
	topo, err := topology.Ring(4, 0)
	if err != nil {
		t.Fatal(err)
	}
	for i, h := range []struct {
		sw   string
		net  int
		vlan uint16
	}{{"s1", 1, 0}, {"s2", 1, 0}, {"s3", 2, 0}, {"s1", 2, 0}, {"s4", 3, 30}, {"s2", 3, 30}} {
		topo.Hosts = append(topo.Hosts, topology.Host{
			Name: fmt.Sprintf("n%d-%d", h.net, i%2+1), Switch: h.sw, VLAN: h.vlan,
			IPv4: prefix(fmt.Sprintf("10.1.%d.%d/24", h.net, 10+i)), GW4: netip.MustParseAddr(fmt.Sprintf("10.1.%d.1", h.net)),
			IPv6: prefix(fmt.Sprintf("fd01:%d::%d/64", h.net, 10+i)), GW6: netip.MustParseAddr(fmt.Sprintf("fd01:%d::1", h.net)),
		})
	}
	for i := range topo.Links {
		topo.Links[i].APort, topo.Links[i].BPort = 0, 0
	}
	topo.Complete()
	c := start(t, options{set: []string{
		`forwarding.subnets=[{gateway: 10.1.1.1/24}, {gateway: 10.1.2.1/24}, {gateway: 10.1.3.1/24, vlan: 30}, ` +
			`{gateway: "fd01:1::1/64"}, {gateway: "fd01:2::1/64"}, {gateway: "fd01:3::1/64", vlan: 30}]`,
	}})
	l := bring(t, topo, c)
	settled(c, l)
	hosts := l.Topology().Hosts
	for _, v6 := range []bool{false, true} {
		for round := range 2 { // the first one finds nobody known
			for _, a := range hosts {
				for _, b := range hosts {
					if a.Name == b.Name {
						continue
					}
					r, err := l.Ping(context.Background(), a.Name, b.Name, traffic.PingOptions{IPv6: v6, Count: 1, Timeout: patience})
					if err != nil {
						t.Fatal(err)
					}
					if r.Lost() > 0 || r.Error != "" {
						t.Errorf("round %d: %s -> %s (IPv6 %v): lost %s", round+1, a.Name, b.Name, v6, r.Error)
					}
				}
			}
		}
	}
	for _, gw := range [][]string{{"ping", "-c1", "-W10", "10.1.1.1"}, {"ping", "-c1", "-W10", "fd01:1::1"}} {
		if out, err := l.Exec(context.Background(), "n1-1", gw...); err != nil {
			t.Errorf("the gateway does not answer: %v %s", err, out)
		}
	}
	// A link of the routed path is cut, and then another.
	s := endless(t, l, "n1-1", "n2-1", 5*time.Millisecond)
	s.flows(50)
	if err := l.LinkDown(context.Background(), "s1", "s2"); err != nil {
		t.Fatal(err)
	}
	if err := l.LinkUp(context.Background(), "s1", "s2"); err != nil {
		t.Fatal(err)
	}
	if err := l.LinkDown(context.Background(), "s1", "s4"); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the routed path leads another way", func() bool {
		r, err := l.Ping(context.Background(), "n1-1", "n2-1", traffic.PingOptions{Count: 20, Interval: 20 * time.Millisecond})
		return err == nil && r.Lost() == 0
	})
	s.flows(50)
	r := s.end()
	t.Logf("%d of %d lost on the routed path, outage %.0f ms", r.Lost(), r.Sent, r.Outage)
	if r.Error != "" || r.Outage > 2500 { // before a silent link would be found, which takes up to 3 s
		t.Errorf("outage of the routed path %.0f ms; %s", r.Outage, r.Error)
	}
	explain(c)
}

// TestDHCP has a client get an address from a server on another switch, and
// the controller learn it.
func TestDHCP(t *testing.T) {
	t.Parallel()
	c := start(t, options{})
	l := up(t, "ring:3", c)
	settled(c, l)
	client, server := attach(t, l, "h1"), attach(t, l, "h2")
	clientMAC, serverMAC := flow.MAC{2, 0xc1, 0, 0, 0, 1}, mac(t, l, "h2")
	serverIP, given := lookup(t, l, "h2").IPv4.Addr(), netip.MustParseAddr("10.0.0.77")
	broadcast := flow.MAC{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}
	everyone := netip.MustParseAddr("255.255.255.255")

	server.listen(func(frame []byte) {
		m, ok := packet.ParseDHCPv4(frame)
		if !ok || m.Reply() {
			return
		}
		f := packet.DHCPv4Fields{XID: m.XID(), ClientMAC: m.ClientMAC(), YourIP: given, ServerID: serverIP, LeaseTime: 3600}
		to, ip := broadcast, everyone // an offer by broadcast, the rest to the client itself
		switch m.Type() {
		case packet.DHCPDiscover:
			f.Type = packet.DHCPOffer
		case packet.DHCPRequest:
			f.Type = packet.DHCPAck
			to, ip = m.ClientMAC(), given
		default:
			return
		}
		server.send(packet.AppendDHCPv4(nil, packet.Ether{Dst: to, Src: serverMAC}, packet.IP{Src: serverIP, Dst: ip}, f))
	})
	got := make(chan uint8, 10)
	client.listen(func(frame []byte) {
		if m, ok := packet.ParseDHCPv4(frame); ok && m.Reply() && m.XID() == 7 {
			got <- m.Type()
		}
	})
	say := func(kind uint8, want uint8) {
		t.Helper()
		f := packet.DHCPv4Fields{Type: kind, XID: 7, ClientMAC: clientMAC}
		if kind == packet.DHCPRequest {
			f.RequestedIP, f.ServerID = given, serverIP
		}
		client.send(packet.AppendDHCPv4(nil, packet.Ether{Dst: broadcast, Src: clientMAC}, packet.IP{Src: netip.IPv4Unspecified(), Dst: everyone}, f))
		select {
		case is := <-got:
			if is != want {
				t.Fatalf("DHCP message of type %d, want %d", is, want)
			}
		case <-time.After(patience):
			t.Fatalf("no answer to DHCP message of type %d", kind)
		}
	}
	say(packet.DHCPDiscover, packet.DHCPOffer)
	say(packet.DHCPRequest, packet.DHCPAck)
	time.Sleep(100 * time.Millisecond)
	if n := len(got); n > 0 {
		t.Errorf("%d answers more than there should be", n)
	}
	eventually(t, "the client known by the address it was given", func() bool {
		for _, h := range call(c, api.ListHosts, &api.ListHostsRequest{}).Hosts {
			if h.Mac == clientMAC.String() && len(h.Ipv4) == 1 && h.Ipv4[0] == given.String() {
				return true
			}
		}
		return false
	})
	explain(c)
}
