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
)

// TestPairBypassed: a client that also uses its member's own address gets entries
// for that connection that rewrite nothing, and its port is not used for the VIP
// with the same member.
func TestPairBypassed(t *testing.T) {
	g := newRig(t)
	g.set(pairs(5, 6))
	g.open(1, 4000)
	v, d := g.guarded(1, segment(1, 5, 7000, 8080, packet.TCPSyn), uint8(paired)|genGuard)
	there, back := mods(d, 1, flow.Add), mods(d, 2, flow.Add)
	alias := ^uint16(7000)
	if v != flow.Next || len(there) != 2 || len(back) != 1 || back[0].Goto != flow.TableForward || back[0].Priority != flow.PriorityConnection ||
		back[0].Match.Key.TPDst != alias || len(back[0].Apply) != 1 || len(there[1].Apply) != 1 {
		t.Fatalf("%v %+v %+v", v, there, back)
	}
	// A switch's cache may have rewritten the member's first answer as the pair's. The reset by
	// which the client answers that must not reach the member by the pair's entry.
	if s := there[0]; s.Match.Key.TPSrc != alias || s.Match.Key.IPv4Dst != v4(100).As4() || s.Goto != 0 || s.HardTimeout == 0 || s.IdleTimeout != 0 {
		t.Errorf("the shield: %v", s)
	}
	reset := packet.AppendTCP(nil, packet.Ether{Dst: flow.MAC(g.frame(1, 4000)[:6]), Src: macOfHost(1)}, packet.IP{Src: v4(1), Dst: v4(100)},
		packet.TCPFields{SrcPort: alias, DstPort: 80, Flags: packet.TCPRst}, nil)
	if v, _, d := g.send(1, reset); v != flow.Drop || !d.Empty() {
		t.Errorf("a reset from the port that the client has at the member: %v %v", v, d)
	}
	for _, port := range []uint16{7000, 7001} {
		if got := g.open(1, port); got != 5 {
			t.Errorf("the VIP from port %d: %d, want the pair's member, which tells them apart", port, got)
		}
	}
	next := func() (frame []byte, mods int) {
		frame = segment(1, 5, 7000, 8080, packet.TCPAck)
		v, d := g.guarded(1, frame, uint8(paired)|genGuard)
		if v != flow.Next {
			t.Errorf("its next packet: %v", v)
		}
		return frame, len(d.Flows)
	}
	if frame, mods := next(); !bytes.Equal(frame, segment(1, 5, alias, 8080, packet.TCPAck)) || mods != 0 {
		t.Errorf("its next packet: %x, %d entries", frame, mods)
	}
	if v, d := g.guarded(1, segment(1, 5, 7009, 8080, packet.TCPRst), uint8(paired)|genGuard); v != flow.Next || len(d.Flows) != 0 {
		t.Errorf("a reset from another port: %v %v", v, d.Flows)
	}
	g.consistent()
	n := 0
	for _, c := range g.b.tracker.by {
		if c.kind == aliased {
			n++
			g.end(c, "idle_timeout")
		}
	}
	g.consistent()
	if n != 1 || g.open(1, 7002) != 5 {
		t.Errorf("%d direct connections", n)
	}
	if frame, mods := next(); !bytes.Equal(frame, segment(1, 5, alias, 8080, packet.TCPAck)) || mods != 2 {
		t.Errorf("its next packet after idling: %x, %d entries", frame, mods)
	}
	// The guard of a pair that has gone removes itself.
	if _, err := g.b.vips.Delete(context.Background(), &api.Vip{Name: "web"}); err != nil {
		t.Fatal(err)
	}
	g.posted()
	other := pairs(7)
	other.Name, other.Port = "other", 81
	g.set(other)
	if v, d := g.guarded(1, segment(1, 5, 7003, 8080, packet.TCPSyn), uint8(paired)|genGuard); v != flow.Next || len(mods(d, 1, flow.DeleteStrict)) != 1 {
		t.Errorf("a guard without a pair: %v %v", v, d.Ops)
	}
}

// TestMemberDownKeepsConnectionsToItself: when a member goes down, connections to its own address
// keep their entries: it is slow, perhaps, and would reset what came without them.
func TestMemberDownKeepsConnectionsToItself(t *testing.T) {
	g := newRig(t)
	g.set(pairs(5, 6))
	g.open(1, 4000)
	g.guarded(1, segment(1, 5, 7000, 8080, packet.TCPSyn), uint8(paired)|genGuard)
	g.b.mu.Lock()
	g.b.tracker.lose(g.b.vips.Get("web").member(netip.AddrPortFrom(v4(5), 8080)), g.now)
	g.b.mu.Unlock()
	for _, op := range g.posted().Flows {
		if op.Entry.Priority == flow.PriorityConnection {
			t.Errorf("removed: %v", op.Entry)
		}
	}
	frame := segment(1, 5, 7000, 8080, packet.TCPAck)
	if v, _ := g.guarded(1, frame, uint8(paired)|genGuard); v != flow.Next || !bytes.Equal(frame, segment(1, 5, ^uint16(7000), 8080, packet.TCPAck)) {
		t.Errorf("its next packet: %v %x", v, frame)
	}
	g.consistent()
}

// TestPairOlder: a connection to the member's own address that is older than the pair
// keeps its port. From the same port the VIP gives another member, for the member
// could not tell both.
func TestPairOlder(t *testing.T) {
	g := newRig(t)
	g.set(pairs(5, 6))
	g.open(1, 4000)
	v, d := g.guarded(1, segment(1, 5, 7000, 8080, packet.TCPAck), uint8(paired)|genGuard)
	there, back := mods(d, 1, flow.Add), mods(d, 2, flow.Add)
	if v != flow.Next || len(there) != 2 || len(back) != 1 || len(back[0].Apply) != 0 || len(there[0].Apply) != 0 || there[1].Goto != 0 {
		t.Fatalf("%v %+v %+v", v, there, back)
	}
	if v, _, d := g.send(1, g.ack(1, 7000)); v != flow.Drop || len(d.Flows) != 0 {
		t.Errorf("a segment from the same port to the VIP is balanced: %v", v)
	}
	if got := g.open(1, 7000); got != 6 {
		t.Errorf("the VIP from the same port: %d, want the other member", got)
	}
	g.consistent()
	entries := g.entries()
	g.start(g.store)
	for _, sw := range []flow.DPID{1, 2} {
		g.observed(sw, entries[sw])
	}
	if d := g.posted(); !d.Empty() || len(g.b.tracker.by) != 3 {
		t.Errorf("another run: %d, %v", len(g.b.tracker.by), d.Ops)
	}
	g.consistent()
}

// TestDirectTwice: the first packet of a direct connection reaches the member once
// more, when its switch has forgotten how it rewrote the pair's packets; others do
// not.
func TestDirectTwice(t *testing.T) {
	g := newRig(t)
	var later []func()
	g.b.tracker.after = func(_ time.Duration, f func()) { later = append(later, f) }
	g.set(pairs(5))
	if g.open(1, 4000) != 5 {
		t.Fatal("no pair")
	}
	g.posted()
	syn := segment(1, 5, 4001, 8080, packet.TCPSyn)
	member := segment(1, 5, ^uint16(4001), 8080, packet.TCPSyn) // as it has it
	guarded := func(frame []byte) {
		if v, _ := g.guarded(1, frame, uint8(paired)|genGuard); v != flow.Next {
			t.Errorf("%v", v)
		}
	}
	guarded(bytes.Clone(syn))
	guarded(syn)
	guarded(segment(1, 5, 4002, 8080, packet.TCPAck))
	if len(later) != 1 {
		t.Fatalf("%d packets once more, want the first", len(later))
	}
	later[0]()
	if d := g.posted(); len(d.Outs) != 1 || d.Ops[0].Switch != placeOf(5).Switch || !bytes.Equal(d.Outs[0].Data, member) {
		t.Errorf("%v", d.Ops)
	}
}
