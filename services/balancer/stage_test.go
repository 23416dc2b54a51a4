package balancer

import (
	"bytes"
	"context"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/packet"
	"github.com/weft-sdn/weft/wefttest"
)

func TestConnectionIsRewrittenThereAndBack(t *testing.T) {
	g := newRig(t)
	g.set(web("", 5))
	verdict, in, d := g.send(1, g.frame(1, 4000))
	if verdict != flow.Next || in.Dst != placeOf(5) || in.DstMAC != macOfHost(5) || in.Key.EthDst != macOfHost(5) ||
		in.Key.IPv4Dst != v4(5).As4() || in.Key.TPDst != 8080 {
		t.Fatalf("%v %+v", verdict, in)
	}
	want := packet.AppendTCP(nil, packet.Ether{Dst: macOfHost(5), Src: macOfHost(1)}, packet.IP{Src: v4(1), Dst: v4(5)},
		packet.TCPFields{SrcPort: 4000, DstPort: 8080, Flags: packet.TCPSyn}, nil)
	if !bytes.Equal(in.Data, want) {
		t.Errorf("the packet is\n%x, want\n%x", in.Data, want)
	}
	there, back := mods(d, 1, flow.Add), mods(d, 2, flow.Add)
	if len(there) != 1 || len(back) != 1 || d.Ops[0].Switch != 2 {
		t.Fatalf("%v: want the way back, then the way there", d.Ops)
	}
	for _, e := range []flow.Entry{there[0], back[0]} {
		if err := e.Match.Check(); err != nil || e.Table != flow.TableTranslate || e.Goto != flow.TableForward || e.Cookie.Owner() != flow.OwnerBalancer {
			t.Errorf("%+v %v", e, err)
		}
	}
	if got := flow.ActionStrings(there[0].Apply); !slices.Equal(got, []string{"set_field:02:00:00:00:00:05->eth_dst", "set_field:10.0.0.5->ipv4_dst", "set_field:8080->tcp_dst"}) {
		t.Error(got)
	}
	if got := flow.ActionStrings(back[0].Apply); !slices.Equal(got, []string{"set_field:10.0.0.100->ipv4_src", "set_field:80->tcp_src"}) {
		t.Error(got)
	}
	if _, _, d := g.send(1, g.frame(1, 4000)); !d.Empty() {
		t.Errorf("sent again at once: %v", d.Ops)
	}
}

func TestWhatIsNotForAVip(t *testing.T) {
	g := newRig(t)
	other := packet.AppendTCP(nil, packet.Ether{Dst: macOfHost(5), Src: macOfHost(1)}, packet.IP{Src: v4(1), Dst: v4(5)}, packet.TCPFields{SrcPort: 1, DstPort: 80}, nil)
	if v, _, d := g.send(1, other); v != flow.Next || !d.Empty() {
		t.Errorf("without VIPs: %v", v)
	}
	g.set(web("", 5))
	mac := g.show("web").Mac
	vipMAC, _ := flow.ParseMAC(mac)
	if v, _, d := g.send(1, other); v != flow.Next || !d.Empty() {
		t.Errorf("for a host: %v", v)
	}
	for name, c := range map[string]struct {
		frame  []byte
		answer bool
	}{
		"another port": {packet.AppendTCP(nil, packet.Ether{Dst: vipMAC, Src: macOfHost(1)}, packet.IP{Src: v4(1), Dst: v4(100)}, packet.TCPFields{SrcPort: 1, DstPort: 81, Flags: packet.TCPSyn}, nil), true},
		"a reset":      {packet.AppendTCP(nil, packet.Ether{Dst: vipMAC, Src: macOfHost(1)}, packet.IP{Src: v4(1), Dst: v4(100)}, packet.TCPFields{SrcPort: 1, DstPort: 81, Flags: packet.TCPRst}, nil), false},
		"udp":          {packet.AppendUDP(nil, packet.Ether{Dst: vipMAC, Src: macOfHost(1)}, packet.IP{Src: v4(1), Dst: v4(100)}, 1, 80, nil), false},
		"its mac":      {packet.AppendUDP(nil, packet.Ether{Dst: vipMAC, Src: macOfHost(1)}, packet.IP{Src: v4(1), Dst: v4(9)}, 1, 80, nil), false},
		"as the vip":   {packet.AppendUDP(nil, packet.Ether{Dst: macOfHost(5), Src: vipMAC}, packet.IP{Src: v4(100), Dst: v4(5)}, 80, 1, nil), false},
		"arp as it":    {packet.AppendARPReply(nil, 0, packet.ARPFields{SenderMAC: macOfHost(1), SenderIP: v4(100), TargetMAC: macOfHost(5), TargetIP: v4(5)}), false},
		"arp about it": {packet.AppendARPRequest(nil, 0, packet.ARPFields{SenderMAC: macOfHost(1), SenderIP: v4(100), TargetIP: v4(100)}), false},
	} {
		v, _, d := g.send(1, c.frame)
		if v != flow.Drop || (len(d.Outs) == 1) != c.answer || len(d.Flows) > 0 {
			t.Errorf("%s: %v, %d answers", name, v, len(d.Outs))
		}
	}
}

func TestQuestionsAreAnswered(t *testing.T) {
	g := newRig(t)
	v := g.set(web("", 5))
	six := web("", 5)
	six.Name, six.Address, six.Pool[0].Address = "six", v6(100).String(), v6(5).String()
	vip6 := g.set(six)
	mac, _ := flow.ParseMAC(v.Mac)
	mac6, _ := flow.ParseMAC(vip6.Mac)
	for name, c := range map[string]struct {
		frame []byte
		want  []byte
	}{
		"arp": {packet.AppendARPRequest(nil, 0, packet.ARPFields{SenderMAC: macOfHost(1), SenderIP: v4(1), TargetIP: v4(100)}),
			packet.AppendARPReply(nil, 0, packet.ARPFields{SenderMAC: mac, SenderIP: v4(100), TargetMAC: macOfHost(1), TargetIP: v4(1)})},
		"solicitation": {packet.AppendNDSolicit(nil, 0, packet.NDFields{SrcMAC: macOfHost(1), SrcIP: v6(1), Target: v6(100)}),
			packet.AppendNDAdvert(nil, 0, packet.NDFields{SrcMAC: mac6, SrcIP: v6(100), DstMAC: macOfHost(1), DstIP: v6(1), Target: v6(100), Solicited: true, Override: true})},
		"echo": {packet.AppendICMPEcho(nil, packet.Ether{Dst: mac, Src: macOfHost(1)}, packet.IP{Src: v4(1), Dst: v4(100)}, packet.Echo{ID: 3, Seq: 4, Data: []byte("abc")}),
			packet.AppendICMPEcho(nil, packet.Ether{Dst: macOfHost(1), Src: mac}, packet.IP{Src: v4(100), Dst: v4(1)}, packet.Echo{Reply: true, ID: 3, Seq: 4, Data: []byte("abc")})},
	} {
		verdict, _, d := g.send(1, c.frame)
		if verdict != flow.Done || len(d.Outs) != 1 || !bytes.Equal(d.Outs[0].Data, c.want) || d.Ops[0].Switch != 1 || d.Outs[0].Actions[0] != flow.Output(1) {
			t.Errorf("%s: %v %+v", name, verdict, d.Outs)
		}
	}
}

func TestClientAndMemberMove(t *testing.T) {
	g := newRig(t)
	g.set(web("", 5))
	g.open(1, 4000)
	g.now += int64(2 * time.Second)
	in := wefttest.NewPacketIn(2, 20, g.frame(1, 4000))
	in.Time = g.now
	d := &flow.Decision{}
	if v := g.b.packet(in, d); v != flow.Next || len(mods(d, 1, flow.DeleteStrict)) != 1 || len(mods(d, 2, flow.Add)) != 2 {
		t.Errorf("the client has moved to switch 2: %v", d.Ops)
	}
	g.host(5, flow.Location{Switch: 1, Port: 30}, "moved")
	d = g.posted()
	if len(mods(d, 2, flow.DeleteStrict)) != 1 || len(mods(d, 1, flow.Add)) != 1 {
		t.Errorf("the member has moved to switch 1: %v", d.Ops)
	}
	g.host(5, flow.Location{}, "gone")
	if m := g.show("web").Pool[0]; m.Health != "away" || g.open(1, 4001) != 0 {
		t.Errorf("the member is gone: %v", m)
	}
}

// TestSwitchesThatCannotRewrite: a client at one has its packets rewritten by
// the controller; a member at one gets no connections.
func TestSwitchesThatCannotRewrite(t *testing.T) {
	g := newRig(t)
	g.set(web("", 5))
	g.connect(1, 1)
	v, in, d := g.send(1, g.frame(1, 4000))
	if v != flow.Next || in.DstMAC != macOfHost(5) || len(mods(d, 1, flow.Add)) != 0 || len(mods(d, 2, flow.Add)) != 1 {
		t.Errorf("%v %v", v, d.Ops)
	}
	if v, in, d = g.send(1, g.frame(1, 4000)); v != flow.Next || in.DstMAC != macOfHost(5) || !d.Empty() {
		t.Errorf("the next packet: %v %v", v, d.Ops)
	}
	if n := g.show("web").Connections; n != 1 {
		t.Errorf("%d connections", n)
	}
	g.connect(1, 254)
	g.connect(2, 1)
	if g.open(1, 4001) != 0 || g.show("web").Pool[0].Health != "away" {
		t.Error("a member at a switch with one table is given connections")
	}
}

// TestCVE_2015_6569_ConcurrentCalls: concurrent calls and packets neither fail nor leave anything
// inconsistent (CVE-2015-6569, Floodlight's load balancer).
func TestCVE_2015_6569_ConcurrentCalls(t *testing.T) {
	g := newRig(t)
	g.set(web("", 5, 6))
	done := make(chan struct{})
	for n := range 8 {
		go func() {
			defer func() { done <- struct{}{} }()
			r := rand.New(rand.NewPCG(1, uint64(n)))
			ctx := context.Background()
			for range 200 {
				var err error
				switch r.IntN(8) {
				case 0:
					_, _, err = g.b.vips.Set(ctx, web([]string{"least", "hash", "weighted"}[r.IntN(3)], 5, 6, 7))
				case 1:
					_, err = g.b.vips.Delete(ctx, &api.Vip{Name: "web"})
				case 2:
					_, err = g.b.SetMember(ctx, &api.SetMemberRequest{Vip: "web", Member: &api.PoolMember{Address: v4(5 + r.IntN(4)).String(), Port: 8080}})
				case 3:
					_, err = g.b.DeleteMember(ctx, &api.DeleteMemberRequest{Vip: "web", Address: v4(5 + r.IntN(4)).String(), Port: 8080})
				case 4:
					_, err = g.b.DrainMember(ctx, &api.DrainMemberRequest{Vip: "web", Address: v4(5 + r.IntN(4)).String(), Port: 8080, Undo: r.IntN(2) == 0})
				case 5:
					g.b.mu.Lock()
					list := slices.Clone(g.b.vips.List())
					g.b.mu.Unlock()
					for _, v := range list {
						g.b.status(v)
					}
				case 6:
					g.b.advance(time.Now().UnixNano(), &flow.Decision{})
				default:
					g.open(1+r.IntN(4), uint16(1024+r.IntN(1000)))
				}
				if kind := api.KindOf(err); err != nil && kind != codes.NotFound {
					t.Errorf("%v", err)
				}
			}
		}()
	}
	for range 8 {
		<-done
	}
	g.consistent()
	if _, err := g.b.vips.Delete(context.Background(), &api.Vip{Name: "web"}); err != nil {
		t.Fatal(err)
	}
	if b := g.b; len(b.tracker.by)+len(b.tracker.backs)+len(b.tracker.at)+len(b.prober.probes) != 0 || b.index.Load() != nil {
		t.Errorf("after deleting all: %d, %d, %d, %d left", len(b.tracker.by), len(b.tracker.backs), len(b.tracker.at), len(b.prober.probes))
	}
}

// consistent checks that all that is counted is what there is.
func (g *rig) consistent() {
	g.t.Helper()
	n, backs := 0, 0
	for _, v := range g.b.vips.List() {
		live := [kinds]int{}
		for _, m := range v.all() {
			mine := 0
			for c := range m.conns {
				if c.m != m || g.b.tracker.by[c.key] != c || c.kind != through && g.b.tracker.backs[c.backKey()] != c {
					g.t.Errorf("connection %v of %v is not kept right", c.key, m.key())
				}
				if c.there || c.back {
					live[c.kind]++
					mine += btoi(c.kind == tracked || c.kind == paired || c.kind == redirected)
				}
				n++
				backs += btoi(c.kind != through)
			}
			if mine != m.live {
				g.t.Errorf("member %v counts %d, has %d", m.key(), m.live, mine)
			}
		}
		if live[tracked]+live[redirected] != v.live || live[paired] != v.pairs {
			g.t.Errorf("vip %s counts %d and %d pairs, has %v", v.name, v.live, v.pairs, live)
		}
	}
	if n != len(g.b.tracker.by) || backs != len(g.b.tracker.backs) {
		g.t.Errorf("members have %d connections, the table %d and %d", n, len(g.b.tracker.by), len(g.b.tracker.backs))
	}
}

// FuzzStage: no frame, however malformed, does harm.
func FuzzStage(f *testing.F) {
	g := newRig(f)
	g.set(web("", 5))
	f.Add(g.frame(1, 4000))
	f.Add(packet.AppendARPRequest(nil, 0, packet.ARPFields{SenderMAC: macOfHost(1), SenderIP: v4(1), TargetIP: v4(100)}))
	mac, _ := flow.ParseMAC(g.show("web").Mac)
	f.Add(packet.AppendICMPEcho(nil, packet.Ether{Dst: mac, Src: macOfHost(1)}, packet.IP{Src: v4(1), Dst: v4(100)}, packet.Echo{ID: 3, Seq: 4}))
	f.Add(packet.AppendNDSolicit(nil, 0, packet.NDFields{SrcMAC: macOfHost(1), SrcIP: v6(1), Target: v6(100)}))
	f.Fuzz(func(t *testing.T, frame []byte) {
		if len(frame) > 2000 {
			return
		}
		in := wefttest.NewPacketIn(1, 1, slices.Clone(frame))
		if g.b.packet(in, &flow.Decision{}); len(in.Data) != len(frame) {
			t.Errorf("a frame of %d octets has become one of %d", len(frame), len(in.Data))
		}
	})
}

// BenchmarkStage is the price of the stage for a packet that is not for a VIP.
func BenchmarkStage(b *testing.B) {
	for _, vips := range []int{0, 1000} {
		b.Run(map[int]string{0: "none", 1000: "1000 vips"}[vips], func(b *testing.B) {
			g := newRig(b)
			for n := range vips {
				v := web("", 5)
				v.Name, v.Port = v.Name+string(rune('a'+n/26/26))+string(rune('a'+n/26%26))+string(rune('a'+n%26)), uint32(1+n)
				if n%2 == 0 {
					v.Address = v4(100 + n%100).String()
				}
				g.set(v)
			}
			in := wefttest.NewPacketIn(1, 1, packet.AppendTCP(nil, packet.Ether{Dst: macOfHost(5), Src: macOfHost(1)},
				packet.IP{Src: v4(1), Dst: v4(5)}, packet.TCPFields{SrcPort: 1, DstPort: 80}, nil))
			in.Parsed = true
			d := &flow.Decision{}
			b.ReportAllocs()
			for b.Loop() {
				g.b.packet(in, d)
			}
		})
	}
}

// BenchmarkConnections is the price of a new connection.
func BenchmarkConnections(b *testing.B) {
	g := newRig(b)
	g.set(web("", 5, 6, 7))
	d := &flow.Decision{}
	n := 0
	for b.Loop() {
		n++
		if n%50_000 == 0 {
			g.b.mu.Lock()
			for _, c := range g.b.tracker.by {
				g.b.tracker.end(c)
			}
			g.b.mu.Unlock()
		}
		d.Reset()
		in := wefttest.NewPacketIn(1, 1, g.frame(1+n/60000%4, uint16(n%60000)))
		g.b.packet(in, d)
	}
}
