package nat

import (
	"context"
	"net/netip"
	"testing"

	"weft/api"
	"weft/flow"
	"weft/packet"
	"weft/wefttest"
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
func rig(t testing.TB) (*book, *gateway) {
	t.Helper()
	bucket, err := wefttest.NewStore().Bucket(context.Background(), "nat.gateways")
	if err != nil {
		t.Fatal(err)
	}
	b := newBook(DefaultConfig(), bucket, newResidents())
	b.switchChanged(&api.SwitchChanged{Switch: &api.Switch{Dpid: sw3, Connected: true, Openflow: "1.3", Tables: 254}})
	if _, err := b.set(context.Background(), wanted()); err != nil {
		t.Fatal(err)
	}
	if _, changed, err := b.learnt(context.Background(), "internet", hop, hopMAC); !changed || err != nil {
		t.Fatal(changed, err)
	}
	return b, b.gateways["internet"]
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

func TestPrefixes(t *testing.T) {
	first := netip.MustParseAddr("198.51.100.1")
	for n := uint32(0); n < 256; n++ {
		v := number(first) + n
		last := netip.AddrFrom4([4]byte{byte(v >> 24), byte(v >> 16), byte(v >> 8), byte(v)})
		total := uint64(0)
		for _, p := range prefixes(first, last) {
			total += 1 << (32 - p.Bits())
			if p != p.Masked() || p.Addr().Less(first) || last.Less(p.Addr()) {
				t.Fatalf("%v is not within %v to %v", p, first, last)
			}
		}
		if total != span(first, last) {
			t.Fatalf("%v to %v: %d addresses", first, last, total)
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
	book := newBook(DefaultConfig(), bucket, newResidents())
	in, d := wefttest.NewPacketIn(1, 1, syn(h1MAC, hopMAC, h1, far)), &flow.Decision{}
	for b.Loop() {
		book.packet(in, d)
	}
}
