package nat

import (
	"context"
	"net/netip"
	"testing"

	"google.golang.org/grpc/codes"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/nib"
	"github.com/weft-sdn/weft/packet"
	"github.com/weft-sdn/weft/wefttest"
)

func arpReply(ip netip.Addr, mac flow.MAC, to netip.Addr, toMAC flow.MAC) []byte {
	return packet.AppendARPReply(nil, 0, packet.ARPFields{SenderMAC: mac, SenderIP: ip, TargetMAC: toMAC, TargetIP: to})
}

var (
	h1MAC  = flow.MAC{2, 0, 0, 0, 0, 1}
	hopMAC = flow.MAC{2, 0, 0, 0, 0, 9}
	h1     = netip.MustParseAddr("10.0.0.1")
	hop    = netip.MustParseAddr("198.51.100.9")
	far    = netip.MustParseAddr("203.0.113.5")
	inside = netip.MustParseAddr("10.0.0.254")
)

// rig is a book with the gateway of wanted, whose next hop is known.
func rig(t testing.TB) (*store, *gateway) {
	t.Helper()
	bucket, err := wefttest.NewStore().Bucket(context.Background(), "nat.gateways")
	if err != nil {
		t.Fatal(err)
	}
	b := newStore(DefaultConfig())
	b.gateways.Open(bucket)
	wefttest.Network(nib.Switches|nib.Hosts, b.networkChanged)(&api.SwitchChanged{Switch: &api.Switch{Dpid: sw3, Connected: true, Openflow: "1.3", Tables: 254}})
	if _, _, err := b.gateways.Set(context.Background(), wanted()); err != nil {
		t.Fatal(err)
	}
	if changed, err := b.learnt(context.Background(), "internet", hop, hopMAC); !changed || err != nil {
		t.Fatal(changed, err)
	}
	return b, b.gateways.Get("internet")
}

func syn(src, dst flow.MAC, from, to netip.Addr) []byte {
	return packet.AppendTCP(nil, packet.Ether{Src: src, Dst: dst}, packet.IP{Src: from, Dst: to}, packet.TCPFields{SrcPort: 1000, DstPort: 80, Flags: packet.TCPSyn}, nil)
}

func TestStage(t *testing.T) {
	b, g := rig(t)
	request := func(ip netip.Addr, mac flow.MAC, target netip.Addr) []byte {
		return packet.AppendARPRequest(nil, 0, packet.ARPFields{SenderMAC: mac, SenderIP: ip, TargetIP: target})
	}
	for what, c := range map[string]struct {
		sw    flow.DPID
		port  flow.Port
		role  flow.PortRole
		frame []byte
		want  flow.Verdict
		outs  int
	}{
		"who is the gateway":        {1, 4, flow.RoleEdge, request(h1, h1MAC, inside), flow.Done, 1},
		"who is another":            {1, 4, flow.RoleEdge, request(h1, h1MAC, h1), flow.Next, 0},
		"I am the gateway":          {1, 4, flow.RoleEdge, request(inside, h1MAC, h1), flow.Drop, 0},
		"outside asks for the pool": {3, 2, flow.RoleEdge, request(hop, hopMAC, g.last), flow.Done, 1},
		"outside asks for inside":   {3, 2, flow.RoleEdge, request(hop, hopMAC, inside), flow.Next, 0},
		"inside asks for the pool":  {1, 4, flow.RoleEdge, request(h1, h1MAC, g.last), flow.Next, 0},
		"to the outside":            {1, 4, flow.RoleEdge, syn(h1MAC, g.mac, h1, far), flow.Next, 1},
		"on its way there":          {2, 4, flow.RoleLink, syn(h1MAC, g.mac, h1, far), flow.Done, 1},
		"of a stranger":             {1, 4, flow.RoleEdge, syn(h1MAC, g.mac, far, far), flow.Drop, 0},
		"to the inside":             {1, 4, flow.RoleEdge, syn(h1MAC, g.mac, h1, netip.MustParseAddr("10.0.0.7")), flow.Drop, 0},
		"to the pool":               {1, 4, flow.RoleEdge, syn(h1MAC, g.mac, h1, g.first), flow.Drop, 0},
		"from the outside":          {3, 2, flow.RoleEdge, syn(hopMAC, g.mac, far, g.first), flow.Drop, 0},
		"as the gateway":            {1, 4, flow.RoleEdge, syn(g.mac, h1MAC, far, h1), flow.Drop, 0},
		"by the gateway":            {3, 2, flow.RoleEdge, syn(g.mac, h1MAC, far, h1), flow.Next, 0},
		"between others":            {1, 4, flow.RoleEdge, syn(h1MAC, hopMAC, h1, far), flow.Next, 0},
	} {
		in := wefttest.NewPacketIn(c.sw, c.port, c.frame)
		in.Role = c.role
		d := &flow.Decision{}
		v := b.packet(in, d)
		if v != c.want || len(d.Outs) != c.outs {
			t.Errorf("%s: verdict %d and %d packets, want %d and %d", what, v, len(d.Outs), c.want, c.outs)
		}
		if what != "to the outside" {
			continue
		}
		// The packet itself is translated by the switch; what forwarding has to
		// deliver gives nothing away.
		if _, ok := packet.ParseARP(in.Data); !ok || in.Dst != g.at || in.DstMAC != g.mac {
			t.Errorf("handed on: %x to %v", in.Data, in.Dst)
		}
		if ct, ok := flow.ParseCT(d.Outs[0].Actions[0]); !ok || !ct.NAT.Src || d.Ops[0].Switch != 3 {
			t.Errorf("sent with %v", d.Outs[0].Actions)
		}
	}
}

// wanted6 is a gateway of IPv6 at the port of that of wanted.
func wanted6() *api.NatGateway {
	return &api.NatGateway{Name: "internet6", Dpid: sw3, Port: 2, Pool: "2001:db8::1:0/112", NextHop: "fe80::9",
		Gateway: "fd00::fe", Inside: []string{"fd00::/64"}, Forwards: []*api.NatForward{{Protocol: "udp", Port: 53, To: "fd00::3"}}}
}

func TestStage6(t *testing.T) {
	b, v4 := rig(t)
	if _, _, err := b.gateways.Set(context.Background(), wanted6()); err != nil {
		t.Fatal(err)
	}
	g := b.gateways.Get("internet6")
	if g.zone == v4.zone || g.mac == v4.mac {
		t.Fatalf("zones %d and %d, addresses %v and %v", g.zone, v4.zone, g.mac, v4.mac)
	}
	h1, fe, hop6, far := netip.MustParseAddr("fd00::1"), netip.MustParseAddr("fe80::1"), netip.MustParseAddr("fe80::9"), netip.MustParseAddr("2001:db8:5::5")
	pool := netip.MustParseAddr("2001:db8::1:7")
	solicit := func(src netip.Addr, mac flow.MAC, target netip.Addr) []byte {
		return packet.AppendNDSolicit(nil, 0, packet.NDFields{SrcMAC: mac, SrcIP: src, Target: target})
	}
	advert := func(mac flow.MAC, target netip.Addr, to netip.Addr, toMAC flow.MAC) []byte {
		return packet.AppendNDAdvert(nil, 0, packet.NDFields{SrcMAC: mac, SrcIP: target, DstMAC: toMAC, DstIP: to, Target: target, Solicited: true})
	}
	run := func(sw flow.DPID, port flow.Port, role flow.PortRole, frame []byte) (flow.Verdict, *flow.PacketIn, *flow.Decision) {
		in := wefttest.NewPacketIn(sw, port, frame)
		in.Role = role
		d := &flow.Decision{}
		return b.packet(in, d), in, d
	}
	if v, _, _ := run(3, 2, flow.RoleEdge, advert(hopMAC, hop6, g.first, g.mac)); v != flow.Done {
		t.Errorf("the next hop's answer: %v", v)
	}
	select {
	case a := <-b.news:
		if changed, err := b.learnt(context.Background(), a.gateway, a.hop, a.mac); !changed || err != nil || a.mac != hopMAC {
			t.Fatal(a, changed, err)
		}
	default:
		t.Fatal("the next hop's answer is not taken")
	}
	ping := packet.AppendICMPEcho(nil, packet.Ether{Src: h1MAC, Dst: g.mac}, packet.IP{Src: h1, Dst: g.addr}, packet.Echo{ID: 1, Data: []byte("x")})
	for what, c := range map[string]struct {
		sw    flow.DPID
		port  flow.Port
		role  flow.PortRole
		frame []byte
		want  flow.Verdict
		outs  int
	}{
		"who is the gateway":          {1, 4, flow.RoleEdge, solicit(h1, h1MAC, g.addr), flow.Done, 1},
		"who is it, by link":          {1, 4, flow.RoleEdge, solicit(fe, h1MAC, g.addr), flow.Done, 1},
		"is the address free":         {1, 4, flow.RoleEdge, solicit(netip.IPv6Unspecified(), h1MAC, g.addr), flow.Done, 1},
		"who is another":              {1, 4, flow.RoleEdge, solicit(h1, h1MAC, far), flow.Next, 0},
		"I am the gateway":            {1, 4, flow.RoleEdge, advert(h1MAC, g.addr, h1, hopMAC), flow.Drop, 0},
		"I, the gateway, ask":         {1, 4, flow.RoleEdge, solicit(g.addr, h1MAC, far), flow.Drop, 0},
		"outside asks for the pool":   {3, 2, flow.RoleEdge, solicit(hop6, hopMAC, pool), flow.Done, 1},
		"outside asks for the inside": {3, 2, flow.RoleEdge, solicit(hop6, hopMAC, g.addr), flow.Next, 0},
		"inside asks for the pool":    {1, 4, flow.RoleEdge, solicit(h1, h1MAC, pool), flow.Next, 0},
		"ping of the gateway":         {1, 4, flow.RoleEdge, ping, flow.Done, 0},
		"to the outside":              {1, 4, flow.RoleEdge, syn(h1MAC, g.mac, h1, far), flow.Next, 1},
		"on its way there":            {2, 4, flow.RoleLink, syn(h1MAC, g.mac, h1, far), flow.Done, 1},
		"of a stranger":               {1, 4, flow.RoleEdge, syn(h1MAC, g.mac, far, far), flow.Drop, 0},
		"to the inside":               {1, 4, flow.RoleEdge, syn(h1MAC, g.mac, h1, netip.MustParseAddr("fd00::7")), flow.Drop, 0},
		"to the pool":                 {1, 4, flow.RoleEdge, syn(h1MAC, g.mac, h1, pool), flow.Drop, 0},
		"from the outside":            {3, 2, flow.RoleEdge, syn(hopMAC, g.mac, far, pool), flow.Drop, 0},
		"IPv4 to the gateway of IPv6": {1, 4, flow.RoleEdge, syn(h1MAC, g.mac, netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("203.0.113.5")), flow.Drop, 0},
		"IPv6 to the gateway of IPv4": {1, 4, flow.RoleEdge, syn(h1MAC, v4.mac, h1, far), flow.Drop, 0},
	} {
		v, in, d := run(c.sw, c.port, c.role, c.frame)
		if v != c.want || len(d.Outs) != c.outs {
			t.Errorf("%s: verdict %d and %d packets, want %d and %d", what, v, len(d.Outs), c.want, c.outs)
		}
		if what != "to the outside" {
			continue
		}
		if nd, ok := packet.ParseND(in.Data); !ok || nd.Target() != hop6 || in.Dst != g.at || in.DstMAC != g.mac {
			t.Errorf("handed on: %x to %v", in.Data, in.Dst)
		}
		if ct, ok := flow.ParseCT(d.Outs[0].Actions[0]); !ok || !ct.NAT.Src || ct.NAT.Min != g.first || d.Ops[0].Switch != 3 {
			t.Errorf("sent with %v", d.Outs[0].Actions)
		}
	}
	// Hosts inside are reached by addresses that are of the networks inside.
	wefttest.Network(nib.Switches|nib.Hosts, b.networkChanged)(&api.HostChanged{Change: "learnt", Host: &api.Host{Mac: "02:00:00:00:00:03", At: &api.Location{Dpid: sw1, Port: 4}, Ipv6: []string{"fd00::3", "fe80::3", "2001:db8::3"}}})
	if reach := b.reach(g); len(reach) != 1 || reach[netip.MustParseAddr("fd00::3")] != (flow.MAC{2, 0, 0, 0, 0, 3}) {
		t.Errorf("reached inside: %v", reach)
	}
	if reach := b.reach(v4); len(reach) != 0 {
		t.Errorf("reached inside by IPv4: %v", reach)
	}
	other := wanted6()
	other.Name = "other"
	if _, _, err := b.gateways.Set(context.Background(), other); api.KindOf(err) != codes.AlreadyExists {
		t.Errorf("the same port twice: %v", err)
	}
	mixed := wanted6()
	mixed.Inside = []string{"fd00::/64", "10.0.0.0/24"}
	if _, _, err := b.gateways.Set(context.Background(), mixed); api.KindOf(err) != codes.InvalidArgument {
		t.Errorf("both versions: %v", err)
	}
}

func TestPrefixes(t *testing.T) {
	for _, text := range []string{"198.51.100.1", "0.0.0.0", "255.255.255.0", "2001:db8::1", "::", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ff00"} {
		first := netip.MustParseAddr(text)
		for n := uint64(0); n < 256; n++ {
			if _, low := halves(first); first.Is4() && low&0xffffffff+n > 0xffffffff {
				break
			}
			last := plus(first, n)
			total := uint64(0)
			for _, p := range prefixes(first, last) {
				total += 1 << (p.Addr().BitLen() - p.Bits())
				if p != p.Masked() || p.Addr().Less(first) || last.Less(p.Addr()) {
					t.Fatalf("%v is not within %v to %v", p, first, last)
				}
			}
			if total != span(first, last) || total != n+1 {
				t.Fatalf("%v to %v: %d addresses", first, last, total)
			}
		}
	}
}

func TestReadPool(t *testing.T) {
	for text, want := range map[string]string{
		"198.51.100.1": "198.51.100.1 198.51.100.1", "198.51.100.1-198.51.100.3": "198.51.100.1 198.51.100.3", "198.51.100.77/30": "198.51.100.76 198.51.100.79",
		"198.51.100.0/24": "198.51.100.0 198.51.100.255", "2001:db8::1": "2001:db8::1 2001:db8::1", "2001:db8::1-2001:db8::ff": "2001:db8::1 2001:db8::ff",
		"2001:db8::5/112": "2001:db8:: 2001:db8::ffff", "2001:db8::1-2001:db8::1:0": "2001:db8::1 2001:db8::1:0",
	} {
		if first, last, err := readPool(text); err != nil || first.String()+" "+last.String() != want {
			t.Errorf("%s: %v to %v, %v", text, first, last, err)
		}
	}
	for _, text := range []string{"", "-", "a", "198.51.100.0/23", "198.51.100.1-2001:db8::1", "2001:db8::/111", "::/0", "0.0.0.0/24", "2001:db8::1-2001:db8::1:1",
		"2001:db8::1-2001:db8:0:1::", "::ffff:198.51.100.1", "fe80::1%eth0", "ff02::1", "224.0.0.0/28", "198.51.100.2-198.51.100.1", "::-ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"} {
		if first, last, err := readPool(text); err == nil {
			t.Errorf("%q is taken for %v to %v", text, first, last)
		}
	}
}

// FuzzStage gives any octets to the stage, from inside and outside: it takes
// them, and what it lets pass for the gateway is no packet of a host.
func FuzzStage(f *testing.F) {
	b, g := rig(f)
	f.Add(syn(h1MAC, g.mac, h1, far), uint8(0))
	f.Add(arpReply(hop, hopMAC, g.first, g.mac), uint8(1))
	f.Add(packet.AppendICMPEcho(nil, packet.Ether{Src: h1MAC, Dst: g.mac}, packet.IP{Src: h1, Dst: inside}, packet.Echo{ID: 1}), uint8(2))
	f.Fuzz(func(t *testing.T, frame []byte, from uint8) {
		in := wefttest.NewPacketIn(flow.DPID(from%4), flow.Port(from/4%4), frame)
		in.Role = flow.PortRole(from >> 6)
		v := b.packet(in, &flow.Decision{})
		if v == flow.Next && in.Dst == g.at {
			if _, ok := packet.ParseARP(in.Data); !ok {
				t.Fatalf("%x would leave untranslated", frame)
			}
		}
	})
}

func BenchmarkStageIdle(b *testing.B) {
	bucket, _ := wefttest.NewStore().Bucket(context.Background(), "nat.gateways")
	book := newStore(DefaultConfig())
	book.gateways.Open(bucket)
	in, d := wefttest.NewPacketIn(1, 1, syn(h1MAC, hopMAC, h1, far)), &flow.Decision{}
	for b.Loop() {
		book.packet(in, d)
	}
}
