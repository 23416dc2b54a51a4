package test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/lab/traffic"
	"github.com/weft-sdn/weft/packet"
)

// trustHosts has a host claim what others have: that of a host which answers
// no questions, and that of one which is bound. Then a host gets another
// Ethernet address.
func trustHosts(t *testing.T, f *faults) {
	d := f.deploy(t, "name: one\nworkers:\n  all: {services: [southbound, discovery, hosts, paths, forwarding, flowrules, stats, gateway]}\n")
	l := d.network("ring:4")
	ctx := context.Background()
	hosts := api.NewHostsClient(d.conn)
	events := d.run("events", d.weft, "events", "--subjects", "hosts.HostClaimed", "--server", "http://"+d.north)
	told := func(what string) bool { return strings.Contains(events.Failed(errors.New("output")).Error(), what) }
	host := func(address string) *api.Host {
		h, _ := hosts.FindHost(ctx, &api.FindHostRequest{Address: address, Vlan: -1}) // none if it fails
		return h
	}
	in := func(host string, argv ...string) {
		t.Helper()
		if out, err := l.Exec(ctx, host, argv...); err != nil {
			t.Fatalf("%s: %v: %v %s", host, argv, err, out)
		}
	}
	speak := func(from, to string) { // whether there is an answer does not matter
		t.Helper()
		if _, err := l.Ping(ctx, from, to, traffic.PingOptions{Count: 1, Timeout: 300 * time.Millisecond}); err != nil {
			t.Fatal(err)
		}
	}

	// h2 answers nothing, and h4 claims to be h2.
	victim, attacker := lookup(t, l, "h2"), attach(t, l, "h4")
	in("h2", "sh", "-c", "echo 8 > /proc/sys/net/ipv4/conf/eth0/arp_ignore; echo 1 > /proc/sys/net/ipv6/conf/eth0/disable_ipv6")
	claim := packet.AppendARPRequest(nil, 0, packet.ARPFields{SenderMAC: flow.MAC(victim.MAC), SenderIP: victim.IPv4.Addr(), TargetIP: lookup(t, l, "h1").IPv4.Addr()})
	eventually(t, "the claimant in quarantine", func() bool {
		attacker.send(claim)
		return host(victim.MAC.String()).GetClaimedAt().GetDpid() == dpid(t, l, "s4")
	})
	if at := host(victim.MAC.String()).At.Dpid; at != dpid(t, l, "s2") {
		t.Errorf("the silent host is at %s while it is claimed, want s2", at)
	}
	eventually(t, "the true owner heard, and the claimant refused", func() bool {
		speak("h2", "h1")
		return told("quarantine") && told("the host was heard") && host(victim.MAC.String()).GetClaimedAt() == nil
	})
	if at := host(victim.MAC.String()).At.Dpid; at != dpid(t, l, "s2") {
		t.Errorf("the silent host is at %s, want s2", at)
	}

	// h3 is bound, and h4 claims its address; h3 has gone even.
	h3 := lookup(t, l, "h3")
	bind := []string{"host", "bind", h3.MAC.String(), "--at", fmt.Sprintf("%s/%d", dpid(t, l, "s3"), h3.Port), "--ip", h3.IPv4.Addr().String()}
	if out, err := d.command(ctx, bind...); err != nil {
		t.Fatalf("%v %s", err, out)
	}
	if err := l.LinkDown(ctx, "h3", "s3"); err != nil {
		t.Fatal(err)
	}
	bound := func() uint64 {
		m, _ := hosts.ListHosts(ctx, &api.ListHostsRequest{}) // none if it fails
		return m.GetRefused()["bound"]
	}
	for _, src := range []flow.MAC{flow.MAC(h3.MAC), mac(t, l, "h4")} {
		before := bound()
		eventually(t, "a claim of what is bound refused", func() bool {
			attacker.send(packet.AppendARPRequest(nil, 0, packet.ARPFields{SenderMAC: src, SenderIP: h3.IPv4.Addr(), TargetIP: victim.IPv4.Addr()}))
			return bound() > before
		})
	}
	if h := host(h3.MAC.String()); h != nil && h.At.Dpid != dpid(t, l, "s3") {
		t.Errorf("the bound host is at %v", h.At)
	}
	eventually(t, "an event about the binding", func() bool { return told("it is bound") })
	if err := l.LinkUp(ctx, "h3", "s3"); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the bound host shown at its port", func() bool {
		speak("h3", "h1")
		return host(h3.MAC.String()).GetBound() == "static"
	})

	// The switch of h4 keeps it from using the address of h3 along its own route.
	h1 := lookup(t, l, "h1")
	if r, err := l.Ping(ctx, "h4", "h1", traffic.PingOptions{Count: 2, Timeout: patience}); err != nil || r.Lost() > 0 {
		t.Fatalf("h4 -> h1: %v %v", r, err)
	}
	dropped := func() (packets uint64, there bool) {
		m, _ := api.NewSouthboundClient(d.conn).ReadFlows(ctx, &api.ReadFlowsRequest{Dpid: dpid(t, l, "s4")}) // none if it fails
		for _, e := range m.GetFlows() {
			if e.Owner == flow.OwnerBindings.String() && e.Match["ipv4_src"] == h3.IPv4.Addr().String() && e.Match["eth_src"] == "" {
				packets, there = packets+e.Packets, true
			}
		}
		return packets, there
	}
	eventually(t, "an entry against a bound source", func() bool { _, there := dropped(); return there })
	came := make(chan struct{}, 1)
	stop := attach(t, l, "h1").listen(func(frame []byte) {
		if bytes.Contains(frame, []byte("foreign source")) {
			select {
			case came <- struct{}{}:
			default:
			}
		}
	})
	foreign := packet.AppendUDP(nil, packet.Ether{Src: mac(t, l, "h4"), Dst: flow.MAC(h1.MAC)}, packet.IP{Src: h3.IPv4.Addr(), Dst: h1.IPv4.Addr()}, 7001, 7002, []byte("foreign source"))
	eventually(t, "packets with a bound source dropped in the switch", func() bool {
		attacker.send(foreign)
		n, _ := dropped()
		return n >= 20
	})
	stop()
	if len(came) > 0 {
		t.Error("a packet with a bound source has come through")
	}
	if r, err := l.Ping(ctx, "h3", "h1", traffic.PingOptions{Count: 3, Timeout: patience}); err != nil || r.Lost() > 0 {
		t.Errorf("h3, which is bound, to h1: %v %v", r, err)
	}

	// h4 gets another Ethernet address, and h1 hears of it from the controller.
	h4 := lookup(t, l, "h4")
	if r, err := l.Ping(ctx, "h1", "h4", traffic.PingOptions{Count: 2, Timeout: patience}); err != nil || r.Lost() > 0 {
		t.Fatalf("h1 -> h4: %v %v", r, err)
	}
	in("h4", "ip", "link", "set", "eth0", "down")
	in("h4", "ip", "link", "set", "eth0", "address", "02:11:22:33:44:55")
	in("h4", "ip", "link", "set", "eth0", "up")
	began := time.Now()
	eventually(t, "h1 knows the new Ethernet address of h4", func() bool {
		speak("h4", "h3")
		out, err := l.Exec(ctx, "h1", "ip", "neigh", "show", h4.IPv4.Addr().String())
		return err == nil && strings.Contains(out, "02:11:22:33:44:55")
	})
	t.Logf("h1 knows the new address %v after h4 had it", time.Since(began))
	if sent := d.figure("weft_hosts_readdressed_total"); sent == 0 {
		t.Error("the new address was not sent by the controller")
	}
}
