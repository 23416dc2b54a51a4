package test

import (
	"context"
	"math/rand/v2"
	"net/netip"
	"runtime"
	"testing"
	"time"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/internal/testwait"
	"github.com/weft-sdn/weft/lab"
	"github.com/weft-sdn/weft/lab/traffic"

	"github.com/weft-sdn/weft/openflow/oftest"
	"github.com/weft-sdn/weft/packet"
)

// switchOf returns what is known of a switch, nil if nothing.
func switchOf(c *controller, sw string) *api.Switch {
	c.t.Helper()
	for _, s := range call(c, api.ListSwitches, &api.ListSwitchesRequest{}).Switches {
		if s.Dpid == sw {
			return s
		}
	}
	return nil
}

// linksUp returns how many directions of links are up, and how many there are.
func linksUp(c *controller) (up, all int) {
	c.t.Helper()
	for _, k := range call(c, api.ListLinks, &api.ListLinksRequest{}).Links {
		all++
		if k.State == "up" {
			up++
		}
	}
	return up, all
}

// join connects a fake switch; the channel tells when a connection ends.
func join(c *controller, d *oftest.Device) <-chan error {
	ctx, cancel := context.WithCancel(context.Background())
	c.t.Cleanup(cancel)
	ended := make(chan error, 1)
	go func() { ended <- d.Dial(ctx, "tcp", c.address) }()
	return ended
}

// TestHostileSwitches has switches misbehave beside a network under traffic,
// which loses nothing by it.
func TestHostileSwitches(t *testing.T) {
	t.Parallel()
	c := start(t, options{set: []string{"southbound.echo_interval=500ms", "southbound.dead_after=2s"}})
	l := up(t, "ring:3", c)
	settled(c, l)
	pingAll(t, l, false)
	result := steady(l, "h1", "h2", 1300, 5*time.Millisecond)
	stranger := func(n flow.DPID) (*oftest.Device, string, <-chan error) {
		d := oftest.NewDevice(oftest.Config{DPID: n}, nil)
		ended := join(c, d)
		eventually(t, "the fake switch connected", func() bool {
			s := switchOf(c, n.String())
			return s != nil && s.Connected
		})
		return d, n.String(), ended
	}
	gone := func(what, sw string) {
		t.Helper()
		eventually(t, what+" disconnected", func() bool { return !switchOf(c, sw).Connected })
		t.Logf("%s: %s", what, switchOf(c, sw).Reason)
	}

	// CVE-2024-29461, CVE-2013-7333: a second switch with an identity in use.
	s1 := dpid(t, l, "s1")
	before := switchOf(c, s1)
	for range 5 {
		select {
		case <-join(c, oftest.NewDevice(oftest.Config{DPID: 1}, nil)):
		case <-time.After(testwait.Limit):
			t.Fatal("a connection with an identity in use is left open")
		}
	}
	if s := switchOf(c, s1); !s.Connected || s.Address != before.Address || s.Since != before.Since || s.Duplicates != 5 {
		t.Errorf("the incumbent after 5 duplicates: %v, before %v", s, before)
	}
	if n := c.metric("weft_southbound_connections_refused_total", "reason", "duplicate"); n != 5 {
		t.Errorf("%v duplicates counted, want 5", n)
	}

	// A malformed message in the middle of a session (CVE-2024-34489 and others).
	d, sw, ended := stranger(0x91)
	d.Say([]byte{4, 20, 0, 3, 0, 0, 0, 0, 4, 10, 0, 8})
	gone("the malformed message", sw)
	<-ended

	// CVE-2017-1000361: a flood of port status.
	d, sw, _ = stranger(0x92)
	for range 50_000 / 2 {
		d.SetLink(2, false)
		d.SetLink(2, true)
	}
	eventually(t, "the flood over and the port up", func() bool {
		for _, p := range call(c, api.ListPorts, &api.ListPortsRequest{Dpid: sw}).Ports {
			if p.Port == 2 && p.Up {
				return c.metric("weft_southbound_port_events_held_total") > 1000
			}
		}
		return false
	})
	t.Logf("port status: %v held back", c.metric("weft_southbound_port_events_held_total"))

	// CVE-2017-1000357: a switch that stops reading.
	d, sw, _ = stranger(0x93)
	d.SetFaults(oftest.Faults{StopReading: true})
	for i := range 3 {
		req := &api.AddFlowsRequest{NoWait: true}
		for j := range 1000 {
			req.Flows = append(req.Flows, &api.FlowEntry{Dpid: sw, Priority: uint32(1000*i + j + 1)})
		}
		call(c, api.AddFlows, req)
	}
	gone("the switch that stopped reading", sw)

	r := <-result
	if r.Lost() > 0 || r.Error != "" {
		t.Errorf("the network lost %d of %d by that; %s", r.Lost(), r.Sent, r.Error)
	}
	if up, _ := linksUp(c); up != 6 {
		t.Errorf("%d of 6 links up", up)
	}
	for _, s := range l.Topology().Switches {
		if s := switchOf(c, s.DPID.String()); !s.Connected || s.Since > before.Since && s.Dpid == s1 {
			t.Errorf("switch %s was hurt: %v", s.Dpid, s)
		}
	}
	pingAll(t, l, false)
	explain(c)
}

// TestHostileLLDP has hosts send forged and foreign discovery frames and relay
// real ones: no link appears and none is lost (CVE-2015-1611, -1612,
// CVE-2024-51406, -57672, -57673).
func TestHostileLLDP(t *testing.T) {
	t.Parallel()
	c := start(t, options{set: []string{"discovery.lock_after=1s"}})
	l := up(t, "ring:4", c)
	settled(c, l)
	pingAll(t, l, false)
	time.Sleep(1200 * time.Millisecond) // so that the hosts' ports are locked
	result := steady(l, "h2", "h4", 600, 5*time.Millisecond)
	h1, h3 := attach(t, l, "h1"), attach(t, l, "h3")

	// Relayed: each hears the other's probes.
	relayed := make(chan int, 1000)
	relay := func(from, to *wire) {
		from.listen(func(frame []byte) {
			var k flow.Key
			if packet.ParseEthernet(frame, &k) && k.EthType == 0x88cc {
				to.send(frame)
				relayed <- len(frame)
			}
		})
	}
	relay(h1, h3)
	relay(h3, h1)

	// Foreign, forged, and of the old kind.
	lldp := packet.AppendLLDP(nil, packet.Ether{Dst: packet.LLDPNearestBridge, Src: mac(t, l, "h1")}, packet.LLDPFields{
		ChassisSubtype: packet.ChassisLocal, ChassisID: []byte(dpid(t, l, "s3")),
		PortSubtype: packet.PortLocal, PortID: []byte("00000001"), TTL: 120,
	})
	forged := packet.AppendLLDP(nil, packet.Ether{Dst: packet.LLDPNearestBridge, Src: mac(t, l, "h1")}, packet.LLDPFields{
		ChassisSubtype: packet.ChassisLocal, ChassisID: []byte(dpid(t, l, "s3")),
		PortSubtype: packet.PortLocal, PortID: []byte("00000001"), TTL: 120,
		Organization: []packet.OrgTLV{{OUI: [3]byte{2, 'W', 'F'}, Subtype: 1, Value: make([]byte, 40)}},
	})
	bddp := append([]byte(nil), lldp...)
	bddp[12], bddp[13] = 0x89, 0x42
	bddp[0], bddp[5] = 0xff, 0xff
	broken := append([]byte(nil), lldp[:20]...) // CVE-2025-29310
	for range 50 {
		for _, frame := range [][]byte{lldp, forged, bddp, broken} {
			h1.send(frame)
		}
		time.Sleep(10 * time.Millisecond)
	}
	time.Sleep(2 * time.Second) // for what the attack may do
	eventually(t, "probes relayed: the attack has taken place", func() bool { return len(relayed) >= 2 })
	for _, why := range []string{"foreign", "forged", "malformed", "host_port"} {
		eventually(t, "frames refused as "+why, func() bool { return c.metric("weft_discovery_refused_total", "reason", why) > 0 })
		t.Logf("refused as %s: %v", why, c.metric("weft_discovery_refused_total", "reason", why))
	}
	if up, all := linksUp(c); up != 8 || all != 8 {
		t.Errorf("%d links, %d up; want the 8 that there are", all, up)
	}
	for _, p := range call(c, api.ListPortRoles, &api.ListPortRolesRequest{}).Ports {
		if h := lookup(t, l, "h1"); p.At.Dpid == dpid(t, l, "s1") && p.At.Port == uint32(h.Port) && (p.Role != "edge" || p.Refused == 0) {
			t.Errorf("the attacker's port: %v; want edge, with refusals", p)
		}
	}
	if r := <-result; r.Lost() > 0 {
		t.Errorf("others lost %d of %d", r.Lost(), r.Sent)
	}
	pingAll(t, l, false)
	explain(c)
}

// at checks where a host is known to be.
func at(c *controller, l *lab.Lab, address, name, sw string) {
	c.t.Helper()
	h := call(c, api.FindHost, &api.FindHostRequest{Address: address, Vlan: -1})
	if want := dpid(c.t, l, sw); h.At.Dpid != want || h.Mac != mac(c.t, l, name).String() {
		c.t.Errorf("%s is known as %s at %v; want %s at switch %s", address, h.Mac, h.At, mac(c.t, l, name), want)
	}
}

// TestSpoofers has a host claim the addresses of another (CVE-2015-1610,
// CVE-2023-41591).
func TestSpoofers(t *testing.T) {
	t.Parallel()
	c := start(t, options{})
	l := up(t, "ring:4", c)
	settled(c, l)
	pingAll(t, l, false)
	pingAll(t, l, true)
	victim := lookup(t, l, "h3")
	result := steady(l, "h1", "h3", 700, 5*time.Millisecond)
	h2 := attach(t, l, "h2")
	for range 50 {
		for _, src := range []flow.MAC{mac(t, l, "h2"), flow.MAC(victim.MAC)} { // with its own address, and with the victim's
			h2.send(packet.AppendARPReply(nil, 0, packet.ARPFields{SenderMAC: src, SenderIP: victim.IPv4.Addr(), TargetMAC: mac(t, l, "h1"), TargetIP: lookup(t, l, "h1").IPv4.Addr()}))
			h2.send(packet.AppendARPRequest(nil, 0, packet.ARPFields{SenderMAC: src, SenderIP: victim.IPv4.Addr(), TargetIP: victim.IPv4.Addr()}))
			h2.send(packet.AppendNDAdvert(nil, 0, packet.NDFields{SrcMAC: src, SrcIP: victim.IPv6.Addr(), Target: victim.IPv6.Addr(), TargetMAC: src}))
		}
		time.Sleep(50 * time.Millisecond)
	}
	r := <-result
	t.Logf("h1 -> h3 while h2 claims to be h3: %d of %d lost", r.Lost(), r.Sent)
	if r.Lost() > r.Sent/100 {
		t.Errorf("h1 -> h3 lost %d of %d while h2 claimed to be h3", r.Lost(), r.Sent)
	}
	at(c, l, victim.IPv4.Addr().String(), "h3", "s3")
	at(c, l, victim.IPv6.Addr().String(), "h3", "s3")
	at(c, l, victim.MAC.String(), "h3", "s3")
	refused := call(c, api.ListHosts, &api.ListHostsRequest{}).Refused
	t.Logf("refused: %v", refused)
	if refused["spoofed"]+refused["unverified"] == 0 {
		t.Errorf("refusals %v: the spoofing is not counted", refused)
	}
	pingAll(t, l, false)
	pingAll(t, l, true)
	explain(c)
}

// TestPacketInFlood has one host send from, and to, new addresses all the time.
func TestPacketInFlood(t *testing.T) { // alone: it measures the memory of the process
	const limit = 50
	c := start(t, options{set: []string{"hosts.port_limit=50"}})
	l := up(t, "ring:4", c)
	settled(c, l)
	pingAll(t, l, false)
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	established := steady(l, "h2", "h3", 800, 5*time.Millisecond)
	h1 := attach(t, l, "h1")
	sent := 0
	rng := rand.New(rand.NewPCG(1, 2))
	ins := c.metric("weft_southbound_packet_ins_total")
	for end := time.Now().Add(3 * time.Second); time.Now().Before(end); time.Sleep(time.Millisecond) {
		for range 25 {
			src := flow.MACFrom(0x02<<40 | rng.Uint64()&0xffffffffff)
			ip := netip.AddrFrom4([4]byte{10, 7, byte(rng.Uint32()), byte(rng.Uint32())})
			if sent%2 == 0 {
				h1.send(packet.AppendARPRequest(nil, 0, packet.ARPFields{SenderMAC: src, SenderIP: ip, TargetIP: ip.Next()}))
			} else {
				h1.send(packet.AppendUDP(nil, packet.Ether{Src: src, Dst: flow.MACFrom(0x02<<40 | rng.Uint64()&0xffffffffff)}, packet.IP{Src: ip, Dst: ip.Next()}, 1, 2, nil))
			}
			sent++
		}
	}
	// While it lasts, and has not been worked off: hosts that have not talked yet.
	fresh, err := l.Ping(context.Background(), "h4", "h2", traffic.PingOptions{IPv6: true, Count: 20, Interval: 50 * time.Millisecond, Timeout: patience})
	if err != nil {
		t.Fatal(err)
	}
	r := <-established
	runtime.GC()
	runtime.ReadMemStats(&after)
	refused := call(c, api.ListHosts, &api.ListHostsRequest{}).Refused
	t.Logf("%d frames sent, %v packet-ins; established lost %d of %d, new lost %d of %d; heap %d to %d KiB; refused %v", sent,
		c.metric("weft_southbound_packet_ins_total")-ins, r.Lost(), r.Sent, fresh.Lost(), fresh.Sent, before.HeapAlloc>>10, after.HeapAlloc>>10, refused)
	if r.Lost() > r.Sent/50 {
		t.Errorf("established traffic lost %d of %d", r.Lost(), r.Sent)
	}
	if fresh.Lost() > fresh.Sent/10 {
		t.Errorf("new traffic lost %d of %d", fresh.Lost(), fresh.Sent)
	}
	if n := len(call(c, api.ListHosts, &api.ListHostsRequest{}).Hosts); n > limit+3 {
		t.Errorf("%d hosts known, want at most %d", n, limit+3)
	}
	if refused["port_limit"] == 0 {
		t.Errorf("refusals %v: the limit of the port is not counted", refused)
	}
	if up, all := linksUp(c); up != 8 || all != 8 {
		t.Errorf("%d links, %d up, want 8", all, up)
	}
	for _, k := range call(c, api.ListLinks, &api.ListLinksRequest{}).Links {
		if k.Flaps > 0 {
			t.Errorf("link %v-%v went down %d times", k.Src, k.Dst, k.Flaps)
		}
	}
	if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); grown > 64<<20 {
		t.Errorf("memory has grown by %d MiB", grown>>20)
	}
	explain(c)
}
