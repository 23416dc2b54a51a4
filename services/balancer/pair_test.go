package balancer

import (
	"bytes"
	"context"
	"fmt"
	"net/netip"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/packet"
	"github.com/weft-sdn/weft/wefttest"
)

// pairs is web with an entry for each pair of client and member.
func pairs(hosts ...int) *api.Vip {
	v := web("", hosts...)
	v.Per = "pair"
	return v
}

// segment is a TCP segment of a host to another's port.
func segment(from, to int, src, dst uint16, flags uint8) []byte {
	return packet.AppendTCP(nil, packet.Ether{Dst: macOfHost(to), Src: macOfHost(from)}, packet.IP{Src: v4(from), Dst: v4(to)},
		packet.TCPFields{SrcPort: src, DstPort: dst, Flags: flags, Seq: 1000, Ack: 2000}, nil)
}

// ack is a segment of an established connection of a host to 10.0.0.100.
func (g *rig) ack(client int, port uint16) []byte {
	f := g.frame(client, port)
	t := segment(client, 100, port, 80, packet.TCPAck)
	copy(t[:6], f[:6])
	return t
}

// by returns what has a key, of a pair if port is 0.
func (g *rig) by(client int, port uint16) *conn {
	return g.b.tracker.by[connKey{client: netip.AddrPortFrom(v4(client), port), to: netip.AddrPortFrom(v4(100), 80), proto: flow.IPProtoTCP}]
}

// guarded has a frame come in by an entry of the balancer.
func (g *rig) guarded(client int, frame []byte, gen uint8) (flow.Verdict, *flow.Decision) {
	at := placeOf(client)
	in := wefttest.NewPacketIn(at.Switch, at.Port, frame)
	in.Time, in.Cookie, in.Table = g.now, flow.NewCookie(flow.OwnerBalancer, gen, 1), flow.TableTranslate
	d := &flow.Decision{}
	return g.b.packet(in, d), d
}

// TestDeclaredGeneration: what a declared entry leads to the controller is handled the same
// whatever its generation is, which flowrules chooses.
func TestDeclaredGeneration(t *testing.T) {
	for gen := range 256 {
		g := newRig(t)
		g.set(pairs(5, 6))
		at := placeOf(1)
		for what, frame := range map[string][]byte{"for a VIP": g.frame(1, 4000), "for a member": segment(1, 5, 4000, 8080, packet.TCPSyn)} {
			in := wefttest.NewPacketIn(at.Switch, at.Port, frame)
			in.Time, in.Cookie, in.Table = g.now, flow.NewCookie(flow.OwnerBalancer, uint8(gen), 0), flow.TableTranslate
			if v := g.b.packet(in, &flow.Decision{}); v != flow.Next {
				t.Errorf("generation %#x: a packet %s: %v", gen, what, v)
			}
		}
	}
}

// TestPair: one pair of entries serves all connections of a client to a member,
// whatever their number, and what the client sends to the member's own address
// comes to the controller once.
func TestPair(t *testing.T) {
	g := newRig(t)
	g.set(pairs(5, 6))
	_, _, d := g.send(1, g.frame(1, 4000))
	fence := -1
	for i, op := range d.Ops {
		if op.Kind == flow.OpFence {
			fence = i
		}
	}
	there, back := mods(d, 1, flow.Add), mods(d, 2, flow.Add)
	if len(there) != 2 || len(back) != 1 || fence != 1 || d.Ops[0].Switch != 2 {
		t.Fatalf("%v: want the way back, a fence, the way there, the guard", d.Ops)
	}
	for i, want := range []string{
		"ip_proto=6,ipv4_dst=10.0.0.100,ipv4_src=10.0.0.1,tcp_dst=80", "ip_proto=6,ipv4_dst=10.0.0.5,ipv4_src=10.0.0.1,tcp_dst=8080",
		"ip_proto=6,ipv4_dst=10.0.0.1,ipv4_src=10.0.0.5,tcp_src=8080",
	} {
		e := append(append([]flow.Entry{}, there...), back...)[i]
		text := e.Match.String()
		for _, part := range bytes.Split([]byte(want), []byte(",")) {
			if !bytes.Contains([]byte(text), part) {
				t.Errorf("entry %d matches %s, want %s", i, text, want)
			}
		}
		if e.Priority != flow.PriorityPair {
			t.Errorf("entry %d has priority %d", i, e.Priority)
		}
	}
	for port := range uint16(100) {
		if _, in, d := g.send(1, g.frame(1, 5000+port)); !d.Empty() || in.Key.IPv4Dst[3] != 5 {
			t.Fatalf("connection %d: to %v, %v", port, in.Key.IPv4Dst, d.Ops)
		}
	}
	if g.open(2, 4000) != 6 || g.show("web").Pairs != 2 || g.show("web").Connections != 0 {
		t.Errorf("another client: %v", g.show("web"))
	}
	g.consistent()
}

// TestPairIdle: after a pair has been idle, the next connection is balanced anew,
// or goes to the same member; a segment of an older one goes where it was in any
// case, and without a binding is reset.
func TestPairIdle(t *testing.T) {
	for _, again := range []string{"balance", "bound"} {
		g := newRig(t)
		v := pairs(5, 6, 7)
		v.Again = again
		g.set(v)
		first := g.open(1, 4000)
		g.end(g.by(1, 0), "idle_timeout")
		g.now += int64(10 * time.Second)
		if _, in, _ := g.send(1, g.ack(1, 4000)); int(in.Key.IPv4Dst[3]) != first || g.by(1, 0) == nil {
			t.Fatalf("%s: a segment of a forgotten connection goes to %v, want %d", again, in.Key.IPv4Dst, first)
		}
		g.end(g.by(1, 0), "idle_timeout")
		if got := g.open(1, 4001); (got == first) != (again == "bound") {
			t.Errorf("%s: after idling %d, before %d", again, got, first)
		}
		g.now += int64(24 * time.Hour)
		g.end(g.by(1, 0), "idle_timeout")
		g.now += int64(24 * time.Hour)
		g.b.tidy(g.now)
		if verdict, _, d := g.send(1, g.ack(1, 4001)); verdict != flow.Drop || len(d.Outs) != 1 || len(g.b.tracker.bindings) != 0 {
			t.Errorf("%s: a segment without binding: %v %v", again, verdict, d.Outs)
		}
		g.consistent()
	}
}

// TestPairDrained: connections stay with a drained member by entries of their own,
// new ones go elsewhere, and after the idle time the client has a pair elsewhere.
func TestPairDrained(t *testing.T) {
	g := newRig(t)
	g.set(pairs(5, 6))
	if g.open(1, 4000) != 5 {
		t.Fatal("not to 5")
	}
	drain := func(undo bool) {
		t.Helper()
		if _, err := g.b.DrainMember(context.Background(), &api.DrainMemberRequest{Vip: "web", Address: v4(5).String(), Port: 8080, Undo: undo}); err != nil {
			t.Fatal(err)
		}
	}
	drain(false)
	if e := mods(g.posted(), 1, flow.Add); len(e) == 0 || len(e[0].Apply) != 1 || flow.Port(e[0].Apply[0].Arg) != flow.PortController {
		t.Fatalf("the entry there of a drained pair: %+v", e)
	}
	g.now += int64(5 * time.Second)
	if _, in, d := g.send(1, g.ack(1, 4000)); in.Key.IPv4Dst != v4(5).As4() || len(mods(d, 1, flow.Add)) != 1 || len(mods(d, 2, flow.Add)) != 1 {
		t.Errorf("a live connection: to %v, %v", in.Key.IPv4Dst, d.Ops)
	}
	if got := g.open(1, 4001); got != 6 {
		t.Errorf("a new connection goes to %d", got)
	}
	g.b.tidy(g.now)
	g.now += int64(2 * time.Minute)
	g.b.tidy(g.now)
	if p := g.by(1, 0); p != nil || g.open(1, 4002) != 6 || g.by(1, 0) == nil || g.by(1, 0).m.addr.Addr != v4(6) {
		t.Errorf("after the idle time: %+v", g.by(1, 0))
	}
	if _, in, _ := g.send(1, g.ack(1, 4000)); in.Key.IPv4Dst != v4(5).As4() {
		t.Errorf("the old connection goes to %v", in.Key.IPv4Dst)
	}
	g.consistent()

	g.open(2, 4000) // 6, which is drained and comes back
	if _, err := g.b.DrainMember(context.Background(), &api.DrainMemberRequest{Vip: "web", Address: v4(6).String(), Port: 8080}); err != nil {
		t.Fatal(err)
	}
	g.posted()
	if _, err := g.b.DrainMember(context.Background(), &api.DrainMemberRequest{Vip: "web", Address: v4(6).String(), Port: 8080, Undo: true}); err != nil {
		t.Fatal(err)
	}
	if p := g.by(2, 0); p == nil || p.split || g.open(2, 4001) != 6 {
		t.Errorf("drained and undone: %+v", p)
	}
	drain(true)
	g.consistent()
}

// TestPairOfTheLastMember: while nobody serves, the new connections of a client whose pair is
// that of the last member, which is drained, go to the responder as those of others.
func TestPairOfTheLastMember(t *testing.T) {
	g := newRig(t)
	v := pairs(5)
	v.Refuse = "to:10.0.0.8:9090"
	g.set(v)
	g.open(1, 4000)
	drain := func(undo bool) {
		t.Helper()
		if _, err := g.b.DrainMember(context.Background(), &api.DrainMemberRequest{Vip: "web", Address: v4(5).String(), Port: 8080, Undo: undo}); err != nil {
			t.Fatal(err)
		}
	}
	drain(false)
	for client, port := range map[int]uint16{1: 4001, 2: 4000} {
		if got := g.open(client, port); got != 8 {
			t.Errorf("client %d is sent to %d, want the responder", client, got)
		}
	}
	if _, in, _ := g.send(1, g.ack(1, 4000)); in.Key.IPv4Dst != v4(5).As4() {
		t.Errorf("the connection in use goes to %v", in.Key.IPv4Dst)
	}
	drain(true)
	if got := g.open(1, 4002); got != 5 {
		t.Errorf("served again, a new connection goes to %d", got)
	}
	g.consistent()
}

// TestPairsOfTwoVips: a client whose pair with a member is another VIP's has
// connections there, for answers could not be told apart.
func TestPairsOfTwoVips(t *testing.T) {
	g := newRig(t)
	g.set(pairs(5))
	other := pairs(5)
	other.Name, other.Port = "other", 81
	g.set(other)
	g.open(1, 4000)
	f := g.frame(1, 4000)
	syn := packet.AppendTCP(nil, packet.Ether{Dst: flow.MAC(f[:6]), Src: macOfHost(1)}, packet.IP{Src: v4(1), Dst: v4(100)},
		packet.TCPFields{SrcPort: 4001, DstPort: 81, Flags: packet.TCPSyn}, nil)
	if v, in, d := g.send(1, syn); v != flow.Next || in.Key.IPv4Dst != v4(5).As4() || mods(d, 2, flow.Add)[0].Priority != flow.PriorityConnection {
		t.Errorf("%v %v", v, d.Ops)
	}
	if g.show("web").Pairs != 1 || g.show("other").Pairs != 0 || g.show("other").Connections != 1 {
		t.Errorf("%v %v", g.show("web"), g.show("other"))
	}
	g.consistent()
}

// TestPairMoves: client and member move to other switches.
func TestPairMoves(t *testing.T) {
	g := newRig(t)
	g.set(pairs(5))
	g.open(1, 4000)
	g.now += int64(2 * time.Second)
	in := wefttest.NewPacketIn(2, 20, g.frame(1, 4001))
	in.Time = g.now
	d := &flow.Decision{}
	if v := g.b.packet(in, d); v != flow.Next || len(mods(d, 1, flow.DeleteStrict)) != 2 || len(mods(d, 2, flow.Add)) != 3 {
		t.Errorf("the client has moved to switch 2: %v", d.Ops)
	}
	g.host(5, flow.Location{Switch: 1, Port: 30}, "moved")
	if d = g.posted(); len(mods(d, 2, flow.DeleteStrict)) != 1 || len(mods(d, 1, flow.Add)) != 1 {
		t.Errorf("the member has moved to switch 1: %v", d.Ops)
	}
	g.consistent()
}

// TestPairsAreAdopted: another run knows pairs, direct connections and drained
// pairs by the entries of the switches.
func TestPairsAreAdopted(t *testing.T) {
	g := newRig(t)
	g.set(pairs(5, 6))
	g.open(1, 4000)
	g.open(2, 4000)
	g.guarded(1, segment(1, 5, 7000, 8080, packet.TCPSyn), uint8(paired)|genGuard)
	entries := g.entries()
	g.start(g.store)
	for _, sw := range []flow.DPID{1, 2} {
		g.observed(sw, entries[sw])
	}
	if d := g.posted(); !d.Empty() || g.show("web").Pairs != 2 || len(g.b.tracker.by) != 3 || len(g.b.tracker.backs) != 3 {
		t.Errorf("%v %v, %d", g.show("web"), d.Ops, len(g.b.tracker.by))
	}
	g.consistent()
	g.now += 2 * young
	for _, sw := range []flow.DPID{2, 1} {
		g.observed(sw, entries[sw])
	}
	if d := g.posted(); !d.Empty() {
		t.Errorf("observed again: %v", d.Ops)
	}
	g.observed(1, nil) // it comes back empty
	if got := g.open(1, 4001); got != 5 {
		t.Errorf("to %d", got)
	}
	g.consistent()
	// A VIP that has pairs no more gives its connections entries of their own.
	g.set(web("", 5, 6))
	g.posted()
	if got := g.open(1, 4002); got == 0 || g.by(1, 4002) == nil {
		t.Errorf("to %d", got)
	}
	g.consistent()
}

// TestListPairs adds up what both entries of a pair have counted.
func TestListPairs(t *testing.T) {
	g := newRig(t)
	g.set(pairs(5, 6))
	g.open(1, 4000)
	g.open(2, 4000)
	entries := g.entries()
	read := func(_ context.Context, sw flow.DPID) ([]*api.FlowEntry, error) {
		for _, f := range entries[sw] {
			f.Packets, f.Bytes = uint64(sw), 100
		}
		return entries[sw], nil
	}
	r, err := g.b.ListPairs(context.Background(), &api.ListPairsRequest{Vip: "web"}, read)
	if err != nil || r.Total != 2 || len(r.Pairs) != 2 || r.Pairs[0].Client != "10.0.0.1" || r.Pairs[0].Packets != 3 || r.Pairs[0].Bytes != 200 || r.Pairs[0].MemberPort != 8080 {
		t.Errorf("%v, %v", r, err)
	}
	if r, err = g.b.ListPairs(context.Background(), &api.ListPairsRequest{Limit: 1}, read); err != nil || r.Total != 2 || len(r.Pairs) != 1 {
		t.Errorf("%v, %v", r, err)
	}
	// Of a member that is drained, a connection that goes on counts still, and a new one with
	// the other member.
	first := r.Pairs[0].Member
	if _, err := g.b.DrainMember(context.Background(), &api.DrainMemberRequest{Vip: "web", Address: first, Port: 8080}); err != nil {
		t.Fatal(err)
	}
	g.open(1, 4001)
	entries = g.entries()
	r, err = g.b.ListPairs(context.Background(), &api.ListPairsRequest{Vip: "web"}, read)
	members := map[string]bool{}
	for _, p := range r.GetPairs() {
		if p.Client == "10.0.0.1" && p.Packets > 0 {
			members[p.Member] = true
		}
	}
	if err != nil || len(members) != 2 {
		t.Errorf("a client of a drained member and of another: %v, %v", r, err)
	}
	g.b.DrainMember(context.Background(), &api.DrainMemberRequest{Vip: "web", Address: first, Port: 8080, Undo: true})
	entries = g.entries()
	gone := func(_ context.Context, sw flow.DPID) ([]*api.FlowEntry, error) {
		if sw == 2 {
			return nil, fmt.Errorf("away")
		}
		return read(context.Background(), sw)
	}
	if r, err = g.b.ListPairs(context.Background(), &api.ListPairsRequest{}, gone); err != nil || len(r.Incomplete) != 1 || r.Pairs[0].Packets != 1 {
		t.Errorf("%v, %v", r, err)
	}
	if _, err = g.b.ListPairs(context.Background(), &api.ListPairsRequest{Limit: 10_001}, read); api.KindOf(err) != codes.InvalidArgument {
		t.Error(err)
	}
}

// TestShares: each member's share is within 5 % of its weight, of connections and
// of clients with pairs.
func TestShares(t *testing.T) {
	weights := map[int]uint32{5: 50, 6: 30, 7: 20}
	for _, per := range []string{"connection", "pair"} {
		for _, policy := range policies {
			n := 10_000
			if per == "pair" {
				n = 1_000
			}
			g := newRig(t)
			v := web(policy, 5, 6, 7)
			v.Per = per
			for i := range v.Pool {
				v.Pool[i].Weight = weights[5+i]
			}
			mac, _ := flow.ParseMAC(g.set(v).Mac)
			got := map[int]int{}
			for i := range n {
				src := netip.AddrFrom4([4]byte{10, 9, byte(i >> 8), byte(i)})
				in := wefttest.NewPacketIn(1, 1, packet.AppendTCP(nil, packet.Ether{Dst: mac, Src: macOfHost(1)}, packet.IP{Src: src, Dst: v4(100)},
					packet.TCPFields{SrcPort: 4000, DstPort: 80, Flags: packet.TCPSyn}, nil))
				if verdict := g.b.packet(in, &flow.Decision{}); verdict != flow.Next {
					t.Fatalf("%v", verdict)
				}
				got[int(in.Key.IPv4Dst[3])]++
			}
			for host, w := range weights {
				if share := 100 * float64(got[host]) / float64(n); policy != "hash" && (share < float64(w)*0.95 || share > float64(w)*1.05) {
					t.Errorf("%s, %s: host %d has %.1f %%, want %d", per, policy, host, share, w)
				}
			}
		}
	}
}

// TestPairIPv6InAVLAN: the entries of a pair are for its family and its VLAN.
func TestPairIPv6InAVLAN(t *testing.T) {
	g := newRig(t)
	for _, n := range []int{1, 5} {
		g.feed(&api.HostChanged{Change: "learnt", Host: &api.Host{
			Mac: macOfHost(n).String(), Vlan: 7, At: api.NewLocation(placeOf(n)), Ipv6: []string{v6(n).String()},
		}})
	}
	v := pairs(5)
	v.Address, v.Vlan, v.Pool[0].Address = v6(100).String(), 7, v6(5).String()
	mac, _ := flow.ParseMAC(g.set(v).Mac)
	frame := func(to netip.Addr, dst uint16) []byte {
		return packet.AppendTCP(nil, packet.Ether{Dst: mac, Src: macOfHost(1), VLAN: flow.VLANPresent | 7}, packet.IP{Src: v6(1), Dst: to},
			packet.TCPFields{SrcPort: 4000, DstPort: dst, Flags: packet.TCPSyn}, nil)
	}
	verdict, in, d := g.send(1, frame(v6(100), 80))
	if verdict != flow.Next || in.Key.IPv6Dst != v6(5).As16() || len(mods(d, 1, flow.Add)) != 2 || len(mods(d, 2, flow.Add)) != 1 {
		t.Fatalf("%v %v", verdict, d.Ops)
	}
	for _, e := range append(mods(d, 1, flow.Add), mods(d, 2, flow.Add)...) {
		if err := e.Match.Check(); err != nil || e.Match.Key.VLAN != flow.VLANPresent|7 || e.Match.Key.EthType != flow.EthTypeIPv6 {
			t.Errorf("%v: %v", e.Match, err)
		}
	}
	if v, d := g.guarded(1, frame(v6(5), 8080), uint8(paired)|genGuard); v != flow.Next || len(mods(d, 1, flow.Add)) != 2 || len(mods(d, 2, flow.Add)) != 1 {
		t.Errorf("a direct connection: %v %v", v, d.Ops)
	}
	entries := g.entries()
	g.b.tracker.connections = newConnections()
	for _, m := range g.b.vips.Get("web").pool {
		m.conns, m.live, m.vip.pairs = map[*conn]struct{}{}, 0, 0
	}
	for _, sw := range []flow.DPID{1, 2} {
		g.observed(sw, entries[sw])
	}
	if d := g.posted(); !d.Empty() || len(g.b.tracker.by) != 2 {
		t.Errorf("read back: %d, %v", len(g.b.tracker.by), d.Ops)
	}
	g.consistent()
}

// TestFormerVips: a VIP that an earlier build has stored is what it was: everybody
// may connect, and each connection has entries of its own.
func TestFormerVips(t *testing.T) {
	g := newRig(t)
	stored := web("", 5)
	stored.Mac, stored.Pool[0].Weight, stored.Pool[0].State = "06:57:62:00:00:01", 1, "up"
	value, err := protojson.Marshal(stored)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := g.store.Update(context.Background(), "web", value, 0); err != nil {
		t.Fatal(err)
	}
	g.start(g.store)
	v := g.show("web")
	if v.Owner != "operator" || v.Allow != nil || v.Refuse != "reset" || v.Per != "connection" || v.Shadow || v.Pool[0].Priority != 0 || g.open(1, 4000) != 5 || g.by(1, 4000) == nil {
		t.Errorf("%v", v)
	}
}

// TestOnlyOpeningsAreBalanced: a segment of a connection that nobody knows is
// reset, unless the policy says which member it is of.
func TestOnlyOpeningsAreBalanced(t *testing.T) {
	for policy, want := range map[string]flow.Verdict{"weighted": flow.Drop, "least": flow.Drop, "hash": flow.Next, "sticky": flow.Next} {
		g := newRig(t)
		v := web(policy, 5, 6)
		if policy == "sticky" {
			v.Policy, v.Stickiness = "", 1000
		}
		g.set(v)
		first := g.open(1, 4000)
		verdict, in, d := g.send(1, g.ack(1, 4001))
		if verdict != want || want == flow.Next && int(in.Key.IPv4Dst[3]) != first || want == flow.Drop && len(resets(d)) != 1 {
			t.Errorf("%s: %v to %v", policy, verdict, in.Key.IPv4Dst)
		}
		if _, err := g.b.DrainMember(context.Background(), &api.DrainMemberRequest{Vip: "web", Address: v4(first).String(), Port: 8080}); err != nil {
			t.Fatal(err)
		}
		if verdict, _, _ := g.send(1, g.ack(1, 4002)); policy == "sticky" && verdict != flow.Drop {
			t.Errorf("%s: its member is drained: %v", policy, verdict)
		}
		if verdict, _, _ := g.send(1, g.ack(1, 4000)); verdict != flow.Next {
			t.Errorf("%s: a connection of the drained member: %v", policy, verdict)
		}
		g.consistent()
	}
}
