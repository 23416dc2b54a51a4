package balancer

import (
	"bytes"
	"context"
	"net/netip"
	"testing"
	"time"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/packet"
	"github.com/weft-sdn/weft/wefttest"
)

// setOwned makes a VIP of scp's.
func (g *rig) setOwned(v *api.Vip) {
	g.t.Helper()
	if _, err := g.b.SetOwnedVip(context.Background(), &api.SetOwnedVipRequest{Owner: "scp", Vip: v}); err != nil {
		g.t.Fatal(err)
	}
}

// owned has a segment come in from a client for the own address of a member of web, as scp's stage
// leaves it.
func (g *rig) owned(client, member int, port uint16, flags uint8) (flow.Verdict, *flow.PacketIn, *flow.Decision) {
	at := placeOf(client)
	in := wefttest.NewPacketIn(at.Switch, at.Port, segment(client, member, port, 8080, flags))
	in.Time, in.Cookie, in.Table = g.now, flow.OwnAddressCookie("web"), flow.TableProxy
	d := &flow.Decision{}
	return g.b.packet(in, d), in, d
}

// reached is owned for the first segment of a connection; it returns the host that gets it.
func (g *rig) reached(client, member int, port uint16) int {
	g.t.Helper()
	verdict, in, _ := g.owned(client, member, port, packet.TCPSyn)
	if verdict != flow.Next {
		g.t.Fatalf("%v", verdict)
	}
	return int(in.Key.IPv4Dst[3])
}

// connOf returns the connection of a client with a member's own address.
func (g *rig) connOf(client, member int, port uint16) *conn {
	return g.b.tracker.by[connKey{client: netip.AddrPortFrom(v4(client), port), to: netip.AddrPortFrom(v4(member), 8080), proto: flow.IPProtoTCP}]
}

// through returns a frame as an entry leaves it, which must match.
func (g *rig) through(e flow.Entry, frame []byte) []byte {
	g.t.Helper()
	var k flow.Key
	packet.Parse(frame, &k)
	if e.Match.Normalize(); !e.Match.Matches(&k) {
		g.t.Errorf("%v does not match %+v", e.Match, k)
	}
	for _, a := range e.Apply {
		frame, _ = packet.Apply(frame, a)
	}
	return frame
}

// TestOwnAddress: connections to the own address of any member go to the member that the VIP gives the
// client, both ways, and all of a client's to the same if the VIP has pairs.
func TestOwnAddress(t *testing.T) {
	for _, per := range []string{"pair", "connection"} {
		g := newRig(t)
		v := web("", 5, 6)
		v.Per = per
		g.setOwned(v)
		if got := g.reached(1, 5, 40000); got != 5 {
			t.Errorf("%s: the first client: %d", per, got)
		}
		verdict, in, d := g.owned(2, 5, 40000, packet.TCPSyn)
		there, back := mods(d, 1, flow.Add), mods(d, 2, flow.Add)
		if verdict != flow.Next || len(there) != 1 || len(back) != 1 || in.Dst != placeOf(6) || in.DstMAC != macOfHost(6) {
			t.Fatalf("%s: the second: %v %v", per, verdict, d.Ops)
		}
		want := segment(2, 6, ^uint16(40000), 8080, packet.TCPSyn)
		if !bytes.Equal(in.Data, want) {
			t.Errorf("%s: the packet: %x, want %x", per, in.Data, want)
		}
		if got := g.through(there[0], segment(2, 5, 40000, 8080, packet.TCPSyn)); !bytes.Equal(got, want) {
			t.Errorf("%s: there: %x, want %x", per, got, want)
		}
		answer := packet.AppendTCP(nil, packet.Ether{Dst: macOfHost(2), Src: macOfHost(6)}, packet.IP{Src: v4(5), Dst: v4(2)},
			packet.TCPFields{SrcPort: 8080, DstPort: 40000, Flags: packet.TCPAck, Seq: 1000, Ack: 2000}, nil)
		if got := g.through(back[0], segment(6, 2, 8080, ^uint16(40000), packet.TCPAck)); !bytes.Equal(got, answer) {
			t.Errorf("%s: back: %x, want %x", per, got, answer)
		}
		if _, in, d := g.owned(2, 5, 40000, packet.TCPAck); in.Key.IPv4Dst != v4(6).As4() || !d.Empty() {
			t.Errorf("%s: its next packet: %v, %v", per, in.Key.IPv4Dst, d.Ops)
		}
		wanted := map[string]int{"pair": 6, "connection": 5}[per]
		if got := g.reached(2, 5, 40001); got != wanted {
			t.Errorf("%s: another of the second: %d, want %d", per, got, wanted)
		}
		if list, err := g.b.ListConnections(t.Context(), &api.ListConnectionsRequest{}); err != nil || len(list.Connections) != 3 {
			t.Errorf("%s: %v, %v", per, list, err)
		}
		g.consistent()
	}
}

// TestOwnAddressKept: a client reaches a member that it has had at its own address, for it may
// follow a Location, as long as that serves.
func TestOwnAddressKept(t *testing.T) {
	g := newRig(t)
	v := pairs(5, 6)
	g.setOwned(v)
	if g.open(1, 4000) != 5 || g.open(2, 4000) != 6 {
		t.Fatal("pairs")
	}
	for i, c := range []struct{ client, own, want int }{{1, 5, 5}, {1, 6, 5}, {2, 6, 6}, {2, 5, 6}} {
		if got := g.reached(c.client, c.own, 40000+uint16(i)); got != c.want {
			t.Errorf("client %d at %d: %d, want %d", c.client, c.own, got, c.want)
		}
	}
	v.Pool[0].State = "draining"
	g.setOwned(v)
	if got := g.reached(1, 5, 40010); got != 6 {
		t.Errorf("it drains: %d", got)
	}
	v.Pool[0].State = ""
	g.setOwned(v)
	for _, own := range []int{5, 6} {
		if got := g.reached(1, own, 40010+uint16(own)); got != own {
			t.Errorf("it has had both: at %d %d", own, got)
		}
	}
	v.Pool[0].State, v.Pool[1].State = "draining", "draining"
	g.setOwned(v)
	if got := g.reached(1, 5, 40020); got != 5 || g.connOf(1, 5, 40020).kind != direct {
		t.Errorf("nobody serves: %d", got)
	}
	g.consistent()
}

// TestOwnAddressWithPair: a client with a pair of the VIP with the same member is at another port
// there, as on a connection past its pair, and its first packet comes to the member once more.
func TestOwnAddressWithPair(t *testing.T) {
	g := newRig(t)
	var later []func()
	g.b.tracker.after = func(_ time.Duration, f func()) { later = append(later, f) }
	g.setOwned(pairs(5, 6))
	if g.open(1, 4000) != 5 {
		t.Fatal("no pair")
	}
	_, in, d := g.owned(1, 6, 4001, packet.TCPSyn)
	if there := mods(d, 1, flow.Add); len(there) != 2 || there[0].HardTimeout != shieldTime || in.Key.TPSrc != ^uint16(4001) || in.Key.IPv4Dst != v4(5).As4() || len(later) != 1 {
		t.Errorf("%v %d", d.Ops, len(later))
	}
	if got := g.open(1, 4001); got != 5 {
		t.Errorf("from the same port to the VIP: %d", got)
	}
	if v, in, _ := g.owned(1, 5, 4001, packet.TCPSyn); v != flow.Next || in.Key.IPv4Dst != v4(6).As4() {
		t.Errorf("from the same port to the member, which could not tell both: %v", in.Key.IPv4Dst)
	}
	if v, d := g.guarded(1, segment(1, 5, 4001, 8080, packet.TCPAck), uint8(paired)|genGuard); v != flow.Next || len(d.Outs) != 0 {
		t.Errorf("by the guard of the pair: %v %v", v, d.Ops)
	}
	g.consistent()
}

// TestOwnAddressOlder: connections that are older than what balances them go on as they are, also after
// they were idle. One whose member has gone is reset.
func TestOwnAddressOlder(t *testing.T) {
	g := newRig(t)
	g.setOwned(pairs(5, 6))
	g.reached(2, 5, 40000) // 5 is the next client's no more
	old, _, d := g.owned(1, 5, 40000, packet.TCPAck)
	if there := mods(d, 1, flow.Add); old != flow.Next || len(there) != 2 || len(there[0].Apply) != 0 || len(d.Outs) != 0 {
		t.Errorf("an older one: %v %v", old, d.Ops)
	}
	g.end(g.connOf(1, 5, 40000), "idle_timeout")
	if _, in, _ := g.owned(1, 5, 40000, packet.TCPAck); in.Key.IPv4Dst != v4(5).As4() || in.Key.TPSrc != 40000 {
		t.Errorf("after it was idle: %v", in.Key)
	}
	if got := g.reached(1, 5, 40000); got != 6 {
		t.Errorf("its port is used again: %d", got)
	}
	g.end(g.connOf(1, 5, 40000), "idle_timeout")
	g.now += int64(time.Minute)
	if _, in, _ := g.owned(1, 5, 40000, packet.TCPAck); in.Key.IPv4Dst != v4(6).As4() || in.Key.TPSrc != ^uint16(40000) {
		t.Errorf("a new one after it was idle: %v", in.Key)
	}
	g.b.mu.Lock()
	g.b.tracker.lose(g.b.vips.Get("web").member(netip.AddrPortFrom(v4(6), 8080)), g.now)
	g.b.mu.Unlock()
	if v, _, d := g.owned(1, 5, 40000, packet.TCPAck); v != flow.Drop || len(resets(d)) != 1 {
		t.Errorf("its member has gone: %v %v", v, d.Ops)
	}
	g.consistent()
}

// TestOwnAddressLeft: what is not for a member, or not to be rewritten, is left alone.
func TestOwnAddressLeft(t *testing.T) {
	g := newRig(t)
	g.setOwned(pairs(5, 6))
	other := pairs(7)
	other.Name, other.Address = "operators", "10.0.0.101"
	g.set(other)
	for what, c := range map[string]struct{ client, member int }{"no member": {1, 8}, "a member to the other": {5, 6}} {
		if got := g.reached(c.client, c.member, 40000); got != c.member {
			t.Errorf("%s: to %d", what, got)
		}
	}
	in := wefttest.NewPacketIn(1, 1, segment(1, 7, 40000, 8080, packet.TCPSyn))
	in.Time, in.Cookie = g.now, flow.OwnAddressCookie("operators")
	if d := (&flow.Decision{}); g.b.packet(in, d) != flow.Next || !d.Empty() {
		t.Errorf("an operator's VIP: %v", d.Ops)
	}
	g.connect(1, 1)
	if _, in, d := g.owned(1, 5, 40000, packet.TCPSyn); in.Key.IPv4Dst != v4(5).As4() || !d.Empty() {
		t.Errorf("a switch that cannot rewrite: %v", d.Ops)
	}
	g.consistent()
}

// TestOwnAddressRestart: another run knows the connections by their entries.
func TestOwnAddressRestart(t *testing.T) {
	g := newRig(t)
	g.setOwned(pairs(5, 6))
	for _, port := range []uint16{40000, 65535} {
		for client := 1; client <= 4; client++ {
			g.reached(client, 5, port)
			g.reached(client, 6, port+1)
		}
	}
	entries, n := g.entries(), len(g.b.tracker.by)
	g.start(g.store)
	for sw, flows := range entries {
		g.observed(sw, flows)
	}
	if d := g.posted(); !d.Empty() || len(g.b.tracker.by) != n {
		t.Errorf("%d of %d, %v", len(g.b.tracker.by), n, d.Ops)
	}
	g.consistent()
}

// TestOwnAddressRetires: the client of a connection to a member that retires is asked to open
// another, by the addresses that it knows.
func TestOwnAddressRetires(t *testing.T) {
	g := newRig(t)
	v := pairs(5, 6)
	g.setOwned(v)
	g.reached(2, 5, 40000)
	if g.reached(1, 5, 40000) != 6 {
		t.Fatal("not to 6")
	}
	v.Pool[1].State = "retiring"
	g.setOwned(v)
	g.now += int64(time.Second)
	_, in, d := g.owned(1, 5, 40000, packet.TCPAck)
	in = wefttest.NewPacketIn(1, 1, packet.AppendTCP(nil, packet.Ether{Dst: macOfHost(5), Src: macOfHost(1)}, packet.IP{Src: v4(1), Dst: v4(5)},
		packet.TCPFields{SrcPort: 40000, DstPort: 8080, Flags: pushed, Seq: 1000, Ack: 2000}, http2Frame(frameHeaders, 5, 40)))
	in.Time, in.Cookie, in.Table, d = g.now, flow.NewCookie(flow.OwnerBalancer, uint8(redirected)|genBye, 1), flow.TableTranslate, &flow.Decision{}
	if verdict := g.b.packet(in, d); verdict != flow.Next || len(d.Outs) == 0 {
		t.Fatalf("%v %v", verdict, d.Ops)
	}
	var k flow.Key
	packet.Parse(d.Outs[0].Data, &k)
	s, _ := packet.ParseTCP(d.Outs[0].Data)
	if _, is := lastOf(s.Payload()); !is || k.IPv4Src != v4(5).As4() || k.TPSrc != 8080 || k.IPv4Dst != v4(1).As4() || k.TPDst != 40000 {
		t.Errorf("GOAWAY: %+v %x", k, s.Payload())
	}
	if got := g.reached(1, 5, 40001); got != 5 {
		t.Errorf("a new one: %d", got)
	}
	g.consistent()
}
