package forwarding

import (
	"net/netip"
	"testing"

	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/packet"
)

// Questions for the address of a known host reach that host alone, as they were
// asked; it answers itself.
func TestARPRequestsGoToTheOwner(t *testing.T) {
	net, a, b := line(t, 3)
	e := testEngine(t, net, nil, a.at, b.at)
	ask := packet.AppendARPRequest(nil, 0, packet.ARPFields{SenderMAC: a.mac, SenderIP: a.ip, TargetIP: b.ip})
	_, d, _ := punt(e, a, &b, ask)
	net.apply(d)
	if len(net.out) != 1 || net.out[0].at != b.at || net.out[0].frame != string(ask) {
		t.Fatalf("%v, want the question at its owner", net.out)
	}

	net.out = nil
	beside := b
	beside.at = a.at
	if _, d, _ = punt(e, a, &beside, ask); !d.Empty() {
		t.Error("a question goes back to the port that it came from")
	}

	net.out = nil
	check := packet.AppendARPRequest(nil, 0, packet.ARPFields{SenderMAC: a.mac, SenderIP: a.ip, TargetMAC: b.mac, TargetIP: b.ip})
	_, d, _ = punt(e, a, &b, check)
	net.apply(d)
	if len(net.out) != 1 || net.out[0].at != b.at || net.out[0].frame != string(check) {
		t.Fatalf("%v, want the check of one neighbour at that neighbour", net.out)
	}

	net.out = nil
	if _, d, _ = punt(e, a, nil, ask); len(d.Flows) != 0 {
		t.Error("a question was programmed")
	}
	net.apply(d)
	if len(net.out) != 1 || net.out[0].at != b.at {
		t.Errorf("question for an unknown host came out at %v, want all other edge ports", net.out)
	}

	net.out = nil
	announce := packet.AppendARPRequest(nil, 0, packet.ARPFields{SenderMAC: a.mac, SenderIP: a.ip, TargetIP: a.ip})
	_, d, _ = punt(e, a, &a, announce)
	net.apply(d)
	if len(net.out) != 1 || net.out[0].at != b.at {
		t.Errorf("announcement came out at %v, want all other edge ports", net.out)
	}

	net.out = nil
	answer := packet.AppendARPReply(nil, 0, packet.ARPFields{SenderMAC: b.mac, SenderIP: b.ip, TargetMAC: a.mac, TargetIP: a.ip})
	_, d, _ = punt(e, b, &a, answer)
	net.apply(d)
	if len(net.out) != 1 || net.out[0].at != a.at || len(d.Flows) != 0 {
		t.Errorf("a host's own answer came out at %v, want who asked", net.out)
	}
}

func TestNeighbourSolicitationsGoToTheOwner(t *testing.T) {
	net, a, b := line(t, 3)
	e := testEngine(t, net, nil, a.at, b.at)
	a6, b6 := ip("fd00::1"), ip("fd00::2")
	ask := packet.AppendNDSolicit(nil, 0, packet.NDFields{SrcMAC: a.mac, SrcIP: a6, Target: b6})
	_, d, _ := punt(e, a, &b, ask)
	net.apply(d)
	if len(net.out) != 1 || net.out[0].at != b.at || net.out[0].frame != string(ask) {
		t.Fatalf("%v, want the question at its owner, who knows whether it is a router", net.out)
	}

	net.out = nil
	dad := packet.AppendNDSolicit(nil, 0, packet.NDFields{SrcMAC: a.mac, SrcIP: netip.IPv6Unspecified(), Target: b6})
	_, d, _ = punt(e, a, &b, dad)
	net.apply(d)
	if len(net.out) != 1 || net.out[0].at != b.at {
		t.Errorf("duplicate address detection came out at %v, want the owner to hear it", net.out)
	}
}

func TestFloodsHaveAnAllowance(t *testing.T) {
	net, a, b := line(t, 2)
	e := testEngine(t, net, func(c *Config) { c.FloodsPerSecond = 10 }, a.at, b.at)
	for range 100 {
		_, d, _ := punt(e, a, nil, tcp(a, host{mac: flow.MACFrom(0x0200000000ff), ip: ip("10.0.0.99")}))
		net.apply(d)
	}
	if n := len(net.out); n < 10 || n > 12 {
		t.Errorf("%d of 100 floods, want 10", n)
	}
	if e.count.floodsShed.Load() < 88 {
		t.Errorf("%d counted as shed", e.count.floodsShed.Load())
	}
	net.out = nil
	_, d, _ := punt(e, b, nil, tcp(b, host{mac: flow.MACFrom(0x0200000000ff), ip: ip("10.0.0.99")}))
	if net.apply(d); len(net.out) != 1 {
		t.Error("one port's floods have used up another's allowance")
	}
}

func TestBetweenSubnets(t *testing.T) {
	net := newNetwork(t)
	net.link(1, 3, 2, 2)
	a := host{flow.MACFrom(0x020000000001), ip("10.0.1.10"), flow.Location{Switch: 1, Port: 1}}
	b := host{flow.MACFrom(0x020000000002), ip("10.0.2.20"), flow.Location{Switch: 2, Port: 1}}
	e := testEngine(t, net, func(c *Config) {
		c.Subnets = []Subnet{{Gateway: "10.0.1.1/24"}, {Gateway: "10.0.2.1/24", VLAN: 20}}
	}, a.at, b.at)
	router := e.cfg.RouterMAC
	via := func(from, to host) []byte {
		return tcp(host{mac: from.mac, ip: from.ip}, host{mac: router, ip: to.ip})
	}

	_, d, _ := punt(e, a, nil, packet.AppendARPRequest(nil, 0, packet.ARPFields{SenderMAC: a.mac, SenderIP: a.ip, TargetIP: ip("10.0.1.1")}))
	net.apply(d)
	if r, ok := packet.ParseARP([]byte(net.out[0].frame)); !ok || r.SenderMAC() != router {
		t.Fatal("the gateway does not answer for its address")
	}

	// The destination is not known: it is asked for, and the packet held.
	net.out = nil
	_, d, _ = punt(e, a, nil, via(a, b))
	net.apply(d)
	asked := 0
	for _, o := range net.out {
		if r, ok := packet.ParseARP([]byte(o.frame)); ok && r.TargetIP() == b.ip && r.SenderIP() == ip("10.0.2.1") {
			asked++
		}
	}
	if asked != 2 {
		t.Fatalf("asked at %d ports, want 2", asked)
	}
	net.out = nil
	reply := packet.AppendARPReply(nil, 20|flow.VLANPresent, packet.ARPFields{SenderMAC: b.mac, SenderIP: b.ip, TargetMAC: router, TargetIP: ip("10.0.2.1")})
	_, d, _ = punt(e, b, nil, reply)
	net.apply(d)
	check := func(when string) {
		t.Helper()
		for _, o := range net.out {
			var k flow.Key
			packet.Parse([]byte(o.frame), &k)
			if k.EthType != flow.EthTypeIPv4 {
				continue
			}
			p, _ := packet.ParseIPv4([]byte(o.frame))
			if o.at != b.at || k.EthDst != b.mac || k.EthSrc != router || k.VLAN != 20|flow.VLANPresent || p.TTL() != 63 || !p.ChecksumGood() {
				t.Errorf("%s: at %v from %v to %v VLAN %x TTL %d", when, o.at, k.EthSrc, k.EthDst, k.VLAN, p.TTL())
			}
			return
		}
		t.Errorf("%s: no packet came out, but %d frames", when, len(net.out))
	}
	check("held packet")
	net.out = nil
	net.forward(a.at, string(via(a, b)), 0)
	check("second packet, in the switches")

	net.out = nil
	ping := packet.AppendICMPEcho(nil, packet.Ether{Src: a.mac, Dst: router}, packet.IP{Src: a.ip, Dst: ip("10.0.1.1"), TTL: 64}, packet.Echo{ID: 7, Seq: 1})
	_, d, _ = punt(e, a, nil, ping)
	net.apply(d)
	if m, ok := packet.ParseICMP([]byte(net.out[0].frame)); !ok || m.Type() != packet.ICMPv4EchoReply || m.EchoID() != 7 {
		t.Error("the gateway does not answer a ping")
	}

	net.out = nil
	last := packet.AppendTCP(nil, packet.Ether{Src: a.mac, Dst: router}, packet.IP{Src: a.ip, Dst: b.ip, TTL: 1}, packet.TCPFields{}, nil)
	_, d, _ = punt(e, a, &b, last)
	if net.apply(d); len(net.out) != 0 || e.count.unroutable.Load() == 0 {
		t.Error("a packet at the end of its time to live was routed")
	}
	_, d, _ = punt(e, a, nil, via(a, host{ip: ip("192.0.2.1")}))
	if net.apply(d); len(net.out) != 0 {
		t.Error("a packet to nowhere was routed")
	}
}

func TestGatewayAnswersIPv6Ping(t *testing.T) {
	net := newNetwork(t)
	net.link(1, 3, 2, 2)
	a := host{flow.MACFrom(0x020000000001), ip("fd00:1::9"), flow.Location{Switch: 1, Port: 1}}
	e := testEngine(t, net, func(c *Config) { c.Subnets = []Subnet{{Gateway: "fd00:1::1/64"}} }, a.at)
	ping := packet.AppendICMPEcho(nil, packet.Ether{Src: a.mac, Dst: e.cfg.RouterMAC}, packet.IP{Src: a.ip, Dst: ip("fd00:1::1"), TTL: 64}, packet.Echo{ID: 7, Seq: 1})
	_, d, _ := punt(e, a, nil, ping)
	net.apply(d)
	if len(net.out) != 1 {
		t.Fatalf("%d frames came out, want the answer", len(net.out))
	}
	if m, ok := packet.ParseICMPv6([]byte(net.out[0].frame)); !ok || m.Type() != packet.ICMPv6EchoReply || m.EchoID() != 7 {
		t.Error("the gateway does not answer a ping over IPv6")
	}
}

func TestConfig(t *testing.T) {
	for _, v := range []struct {
		want   string
		change func(*Config)
	}{
		{"mode", func(c *Config) { c.Mode = "hub" }},
		{"idle_timeout", func(c *Config) { c.IdleTimeout = 0 }},
		{"settle", func(c *Config) { c.Settle = 0 }},
		{"floods_per_second", func(c *Config) { c.FloodsPerSecond = 0 }},
		{"max_routes", func(c *Config) { c.MaxRoutes = 0 }},
		{"router_mac", func(c *Config) { c.RouterMAC = flow.Broadcast }},
		{"subnets[0].gateway", func(c *Config) { c.Subnets = []Subnet{{Gateway: "10.0.0.1"}} }},
		{"subnets[0].vlan", func(c *Config) { c.Subnets = []Subnet{{Gateway: "10.0.0.1/24", VLAN: 4095}} }},
		{"subnets[1].gateway", func(c *Config) { c.Subnets = []Subnet{{Gateway: "10.0.0.1/24"}, {Gateway: "10.0.0.129/25"}} }},
	} {
		c := defaults()
		if err := c.Validate(); err != nil {
			t.Fatal(err)
		}
		v.change(c)
		if err := c.Validate(); err == nil || len(err.Error()) < len(v.want) || err.Error()[:len(v.want)] != v.want {
			t.Errorf("%s: got %v", v.want, err)
		}
	}
}
