package router

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/object"
	"github.com/weft-sdn/weft/packet"
	"github.com/weft-sdn/weft/wefttest"
)

// icmp returns type, code and source of the ICMP message that is sent first.
func icmp(t *testing.T, d *flow.Decision) (kind, code uint8, from string) {
	t.Helper()
	if len(d.Outs) == 0 {
		t.Fatal("nothing is sent")
	}
	if m, ok := packet.ParseICMP(d.Outs[0].Data); ok {
		ip, _ := packet.ParseIPv4(d.Outs[0].Data)
		if !ip.ChecksumGood() {
			t.Error("wrong checksum")
		}
		return m.Type(), m.Code(), ip.Src().String()
	}
	m, ok := packet.ParseICMPv6(d.Outs[0].Data)
	if !ok || !packet.ICMPv6Good(d.Outs[0].Data) {
		t.Fatalf("sent %x", d.Outs[0].Data)
	}
	ip, _ := packet.ParseIPv6(d.Outs[0].Data)
	return m.Type(), m.Code(), ip.Src().String()
}

func TestRouted(t *testing.T) {
	g := newRig(t)
	g.three()
	h1, h3 := g.host(1, "1", 0, "10.1.0.9", "fd00:1::9"), g.host(3, "3", 0, "10.3.0.9")
	v, in, d := g.in(1, ping(h1, g.mac(1), "10.1.0.9", "10.3.0.9", 64))
	ip, _ := packet.ParseIPv4(in.Data)
	if v != flow.Next || !d.Empty() || in.DstMAC != h3 || in.Key.EthDst != h3 || in.Dst != (flow.Location{Switch: 3, Port: 1}) || ip.TTL() != 61 || !ip.ChecksumGood() {
		t.Errorf("verdict %d, to %v at %v, ttl %d", v, in.DstMAC, in.Dst, ip.TTL())
	}
	k := flow.Key{}
	packet.Parse(in.Data, &k)
	if k.EthDst != h3 || k.EthSrc != h1 {
		t.Errorf("from %v to %v", k.EthSrc, k.EthDst)
	}
	// What comes by a link, because its switch had no entry, is routed all the same.
	in = wefttest.NewPacketIn(2, 1, ping(h1, g.mac(1), "10.1.0.9", "10.3.0.9", 64))
	in.Role = flow.RoleLink
	if v := g.packet(in, &flow.Decision{}); v != flow.Next || in.DstMAC != h3 {
		t.Errorf("by a link: verdict %d to %v", v, in.DstMAC)
	}
	// Somebody behind the port that it came in by: forwarding would not send it back.
	g.host(4, "1", 0, "10.1.0.4")
	g.address("1", 0, "10.4.0.1/24")
	h5 := g.host(5, "1", 0, "10.4.0.5")
	if v, _, d := g.in(1, ping(h1, g.mac(1), "10.1.0.9", "10.4.0.5", 64)); v != flow.Done || len(d.Outs) != 1 || flow.MAC(d.Outs[0].Data[:6]) != h5 {
		t.Errorf("at the same port: verdict %d, %d packets", v, len(d.Outs))
	}
	text := ""
	for _, e := range g.rules(&api.Switch{Dpid: "1", Openflow: "1.3", Tables: 254}).Flows {
		text += e.String() + "\n"
	}
	for _, e := range []string{
		"table=30 priority=10065 in_port=1,eth_dst=" + g.mac(1).String() + ",eth_type=0x0800,vlan_vid=none,ipv4_dst=10.4.0.5 actions=dec_ttl,set_field:" + h5.String() + "->eth_dst,in_port\n",
		"table=30 priority=10064 eth_dst=" + g.mac(1).String() + ",eth_type=0x0800,vlan_vid=none,ipv4_dst=10.4.0.5 actions=dec_ttl,set_field:" + h5.String() + "->eth_dst goto_table=50\n",
	} {
		if !strings.Contains(text, e) {
			t.Errorf("without %s in\n%s", e, text)
		}
	}
	if strings.Contains(text, "in_port=1,eth_dst="+g.mac(1).String()+",eth_type=0x0800,vlan_vid=none,ipv4_dst=10.3.0.9") {
		t.Error("an entry back to a port where the host is not")
	}
}

func TestAnswers(t *testing.T) {
	g := newRig(t)
	g.three()
	h1 := g.host(1, "1", 0, "10.1.0.9", "fd00:1::9")
	r1 := g.mac(1)
	for what, c := range map[string]struct {
		frame      []byte
		kind, code uint8
		from       string
	}{
		"ping of the router":           {ping(h1, r1, "10.1.0.9", "10.1.0.1", 64), 0, 0, "10.1.0.1"},
		"ping of another of its":       {ping(h1, r1, "10.1.0.9", "10.12.0.1", 1), 0, 0, "10.12.0.1"},
		"ping of the next router":      {ping(h1, r1, "10.1.0.9", "10.23.0.2", 64), 0, 0, "10.23.0.2"},
		"ping by IPv6":                 {ping(h1, r1, "fd00:1::9", "fd00:1::1", 64), 129, 0, "fd00:1::1"},
		"one hop":                      {ping(h1, r1, "10.1.0.9", "10.3.0.9", 1), 11, 0, "10.1.0.1"},
		"two hops":                     {ping(h1, r1, "10.1.0.9", "10.3.0.9", 2), 11, 0, "10.12.0.2"},
		"three hops":                   {ping(h1, r1, "10.1.0.9", "10.3.0.9", 3), 11, 0, "10.23.0.3"},
		"one hop by IPv6":              {ping(h1, r1, "fd00:1::9", "fd00:2::9", 1), 3, 0, "fd00:1::1"},
		"one hop to the next router":   {ping(h1, r1, "10.1.0.9", "10.23.0.2", 1), 11, 0, "10.1.0.1"},
		"nowhere, in a circle":         {ping(h1, r1, "10.1.0.9", "203.0.113.1", 64), 11, 0, "10.12.0.2"},
		"nowhere by IPv6":              {ping(h1, r1, "fd00:1::9", "fd00:9::9", 64), 1, 0, "fd00:2::1"},
		"TCP to the router":            {packet.AppendTCP(nil, packet.Ether{Src: h1, Dst: r1}, packet.IP{Src: netip.MustParseAddr("10.1.0.9"), Dst: netip.MustParseAddr("10.1.0.1")}, packet.TCPFields{SrcPort: 1, DstPort: 2, Flags: packet.TCPSyn}, nil), 3, 3, "10.1.0.1"},
		"a sender of no subnet at all": {ping(h1, r1, "198.51.100.9", "10.3.0.9", 1), 11, 0, "10.12.0.1"},
	} {
		v, _, d := g.in(1, c.frame)
		if v != flow.Done {
			t.Errorf("%s: verdict %d", what, v)
			continue
		}
		kind, code, from := icmp(t, d)
		if kind != c.kind || code != c.code || from != c.from || flow.MAC(d.Outs[0].Data[:6]) != h1 || flow.MAC(d.Outs[0].Data[6:12]) != r1 || d.Ops[0].Switch != 1 {
			t.Errorf("%s: type %d code %d from %s, want %d %d %s", what, kind, code, from, c.kind, c.code, c.from)
		}
	}
	// The switch has found the time to live used up at the second router.
	in := wefttest.NewPacketIn(1, 1, ping(h1, g.mac(2), "10.1.0.9", "10.3.0.9", 1))
	in.Reason = flow.ReasonInvalidTTL
	d := &flow.Decision{}
	if v := g.packet(in, d); v != flow.Done {
		t.Fatalf("verdict %d", v)
	}
	if kind, _, from := icmp(t, d); kind != 11 || from != "10.12.0.2" {
		t.Errorf("type %d from %s", kind, from)
	}
	// About errors nothing is said.
	silent := packet.AppendICMP(nil, packet.Ether{Src: h1, Dst: r1}, packet.IP{Src: netip.MustParseAddr("10.1.0.9"), Dst: netip.MustParseAddr("10.3.0.9"), TTL: 1}, 3, 1, make([]byte, 32))
	if v, _, d := g.in(1, silent); v != flow.Done || len(d.Outs) != 0 {
		t.Errorf("an error about an error: verdict %d, %d packets", v, len(d.Outs))
	}
}

func TestARP(t *testing.T) {
	g := newRig(t)
	g.three()
	g.address("3", 0, "10.1.0.1/24") // the same as that of the router of switch 1
	h1 := g.host(1, "1", 0, "10.1.0.9")
	ask := func(from, target string) []byte {
		return packet.AppendARPRequest(nil, 0, packet.ARPFields{SenderMAC: h1, SenderIP: netip.MustParseAddr(from), TargetIP: netip.MustParseAddr(target)})
	}
	for sw, want := range map[flow.DPID]flow.MAC{1: g.mac(1), 2: g.mac(1), 3: g.mac(3)} {
		v, _, d := g.in(sw, ask("10.1.0.9", "10.1.0.1"))
		if v != flow.Done || len(d.Outs) != 1 {
			t.Fatalf("verdict %d", v)
		}
		if a, ok := packet.ParseARP(d.Outs[0].Data); !ok || a.SenderMAC() != want || a.Op() != packet.ARPReply {
			t.Errorf("at switch %d the answer is %v", sw, a)
		}
	}
	if v, _, d := g.in(1, ask("10.1.0.9", "10.1.0.7")); v != flow.Next || !d.Empty() {
		t.Errorf("for another host: verdict %d", v)
	}
	if v, _, d := g.in(1, ask("10.1.0.1", "10.1.0.7")); v != flow.Drop || !d.Empty() {
		t.Errorf("as the router: verdict %d", v)
	}
	if v, _, _ := g.in(1, ping(g.mac(2), h1, "10.1.0.1", "10.1.0.9", 64)); v != flow.Drop {
		t.Errorf("with the router's Ethernet address: verdict %d", v)
	}
	tagged := packet.AppendARPRequest(nil, 5|flow.VLANPresent, packet.ARPFields{SenderMAC: h1, SenderIP: netip.MustParseAddr("10.1.0.9"), TargetIP: netip.MustParseAddr("10.1.0.1")})
	if v, _, d := g.in(1, tagged); v != flow.Next || !d.Empty() {
		t.Errorf("in another VLAN: verdict %d", v)
	}
	solicit := packet.AppendNDSolicit(nil, 0, packet.NDFields{SrcMAC: h1, SrcIP: netip.MustParseAddr("fd00:1::9"), Target: netip.MustParseAddr("fd00:1::1")})
	v, _, d := g.in(1, solicit)
	if v != flow.Done || len(d.Outs) != 1 {
		t.Fatalf("neighbour solicitation: verdict %d", v)
	}
	if nd, ok := packet.ParseND(d.Outs[0].Data); !ok || nd.Target().String() != "fd00:1::1" || !nd.Router() || !nd.Solicited() {
		t.Errorf("answered with %x", d.Outs[0].Data)
	}
	steal := packet.AppendNDAdvert(nil, 0, packet.NDFields{SrcMAC: h1, SrcIP: netip.MustParseAddr("fd00:1::9"), Target: netip.MustParseAddr("fd00:1::1"), Override: true})
	if v, _, _ := g.in(1, steal); v != flow.Drop {
		t.Errorf("as the router, by IPv6: verdict %d", v)
	}
}

func TestWaiting(t *testing.T) {
	g := newRig(t, func(c *Config) { c.Waiting = 80 })
	g.three()
	h1 := g.host(1, "1", 0, "10.1.0.9")
	send := func(to string) *flow.Decision {
		v, _, d := g.in(1, ping(h1, g.mac(1), "10.1.0.9", to, 64))
		if v != flow.Done {
			t.Fatalf("verdict %d", v)
		}
		return d
	}
	d := send("10.3.0.9")
	a, ok := packet.ParseARP(d.Outs[0].Data)
	if !ok || len(d.Outs) != 3 || a.TargetIP().String() != "10.3.0.9" || a.SenderIP().String() != "10.3.0.1" || a.SenderMAC() != g.mac(3) {
		t.Fatalf("asked at %d switches: %v", len(d.Outs), a)
	}
	for range 20 {
		if d := send("10.3.0.9"); !d.Empty() {
			t.Fatal("asked again at once")
		}
	}
	if n := g.waiting.n; n != waitingEach {
		t.Errorf("%d wait", n)
	}
	for i := range 20 {
		send(fmt.Sprintf("10.3.0.%d", 10+i/10))
	}
	if n := g.waiting.n; n != 10 || g.waiting.from[flow.Location{Switch: 1, Port: 1}] != 10 || g.waiting.on[object.In(addr("10.3.0.11"), 0)] != nil {
		t.Errorf("%d of a port wait, want an eighth of 80", n)
	}
	other := wefttest.NewPacketIn(1, 2, ping(h1, g.mac(1), "10.1.0.9", "10.3.0.12", 64))
	if g.packet(other, &flow.Decision{}); g.waiting.n != 11 {
		t.Error("a packet of another port does not wait")
	}
	d = &flow.Decision{}
	if g.attend(time.Now().Add(g.cfg.Load().Resolve/2).UnixNano(), d); g.waiting.n != 11 {
		t.Errorf("given up too early: %d wait", g.waiting.n)
	}
	// The answer releases them, and later packets pass though hosts has not told yet.
	select {
	case <-g.stale:
	default:
	}
	h3 := flow.MAC{2, 0, 0, 0, 0, 3}
	reply := packet.AppendARPReply(nil, 0, packet.ARPFields{SenderMAC: h3, SenderIP: netip.MustParseAddr("10.3.0.9"), TargetMAC: g.mac(3), TargetIP: netip.MustParseAddr("10.3.0.1")})
	v, _, d := g.in(3, reply)
	if v != flow.Done || len(d.Outs) != waitingEach || flow.MAC(d.Outs[0].Data[:6]) != h3 || d.Ops[0].Switch != 3 || len(g.stale) == 0 {
		t.Fatalf("verdict %d, %d packets, %d notified", v, len(d.Outs), len(g.stale))
	}
	if ip, _ := packet.ParseIPv4(d.Outs[0].Data); ip.TTL() != 61 {
		t.Errorf("ttl %d", ip.TTL())
	}
	if v, in, _ := g.in(1, ping(h1, g.mac(1), "10.1.0.9", "10.3.0.9", 64)); v != flow.Next || in.DstMAC != h3 {
		t.Errorf("afterwards: verdict %d to %v", v, in.DstMAC)
	}
	// The other has not answered: its senders are told.
	d = &flow.Decision{}
	g.attend(time.Now().Add(g.cfg.Load().Resolve+time.Second).UnixNano(), d)
	if kind, code, from := icmp(t, d); kind != 3 || code != 1 || from != "10.23.0.3" || len(d.Outs) != 3 || g.waiting.n != 0 {
		t.Errorf("type %d code %d from %s, %d packets; %d wait", kind, code, from, len(d.Outs), g.waiting.n)
	}
	// One who is heard of by hosts is sent what waits, too.
	send("10.3.0.11")
	h := g.host(11, "3", 0, "10.3.0.11")
	if len(g.sent.Outs) != 1 || flow.MAC(g.sent.Outs[0].Data[:6]) != h {
		t.Errorf("%d packets sent", len(g.sent.Outs))
	}
}

func TestErrorsAreBounded(t *testing.T) {
	g := newRig(t, func(c *Config) { c.ErrorsPerSecond = 10 })
	g.three()
	sent, now := 0, time.Now().UnixNano()
	for i := range 1000 {
		in, d := wefttest.NewPacketIn(1, 1, ping(flow.MAC{2, 1}, g.mac(1), "10.1.0.9", "10.1.0.1", 64)), &flow.Decision{}
		in.Time = now + int64(i)*int64(2*time.Millisecond)
		g.packet(in, d)
		sent += len(d.Outs)
	}
	if sent != 20 {
		t.Errorf("%d answers in two seconds, want 20", sent)
	}
	if l := g.reached.List(now); len(l) != 1 || l[0].Key != "router.errors_per_second" || l[0].Limit != 10 || l[0].Who != "port 1/1" || l[0].Times != 980 {
		t.Errorf("health learns %v", l)
	}
	in, d := wefttest.NewPacketIn(1, 2, ping(flow.MAC{2, 1}, g.mac(1), "10.1.0.9", "10.1.0.1", 64)), &flow.Decision{}
	if in.Time = now; g.packet(in, d) != flow.Done || len(d.Outs) != 1 {
		t.Error("who is at another port gets no answer")
	}
}

// TestIdleStage: where there are no routers, a packet costs nothing.
func TestIdleStage(t *testing.T) {
	g := newRig(t)
	in, d := wefttest.NewPacketIn(1, 1, ping(flow.MAC{2, 1}, flow.MAC{2, 2}, "10.1.0.9", "10.1.0.1", 64)), &flow.Decision{}
	if n := testing.AllocsPerRun(100, func() { g.packet(in, d) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// FuzzStage gives any octets to the stage: it takes them.
func FuzzStage(f *testing.F) {
	g := newRig(f)
	g.three()
	h1 := g.host(1, "1", 0, "10.1.0.9", "fd00:1::9")
	f.Add(ping(h1, g.mac(1), "10.1.0.9", "10.3.0.9", 1), false)
	f.Add(ping(h1, g.mac(1), "fd00:1::9", "fd00:1::1", 64), true)
	f.Add(packet.AppendARPRequest(nil, 0, packet.ARPFields{SenderMAC: h1, SenderIP: netip.MustParseAddr("10.1.0.9"), TargetIP: netip.MustParseAddr("10.1.0.1")}), false)
	f.Fuzz(func(t *testing.T, frame []byte, link bool) {
		if len(frame) > 1600 {
			return
		}
		in := wefttest.NewPacketIn(1, 1, append([]byte(nil), frame...))
		if link {
			in.Role, in.Src = flow.RoleLink, flow.Location{Switch: 1, Port: 1}
		}
		g.packet(in, &flow.Decision{})
	})
}

// TestNeighboursOfAnEarlierRun: they are routed to until the service hosts has said all,
// which is when those are forgotten that it has not named.
func TestNeighboursOfAnEarlierRun(t *testing.T) {
	g := newRig(t)
	g.address("1", 0, "10.1.0.1/24")
	at := func(n byte) place { return object.In(netip.AddrFrom4([4]byte{10, 1, 0, n}), 0) }
	for n := byte(8); n <= 9; n++ {
		g.neighbours.Restore(at(n), station{MAC: flow.MAC{2, 0, 0, 0, 0, n}})
	}
	g.host(9, "1", 0, "10.1.0.9")
	knows := func(n byte) bool { _, known := g.neighbours.Station(at(n)); return known }
	if !knows(8) || !knows(9) {
		t.Error("a neighbour is forgotten before hosts has said all")
	}
	<-g.stale
	g.feed(&api.HostsSettled{})
	if knows(8) || !knows(9) || len(g.stale) != 1 {
		t.Error("want the one neighbour forgotten that hosts has not named, and other entries")
	}
}
