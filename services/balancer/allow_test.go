package balancer

import (
	"context"
	"net/netip"
	"testing"

	"google.golang.org/grpc/codes"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/packet"
)

// resets returns the TCP resets of a decision: to whom, and the sequence number.
func resets(d *flow.Decision) map[netip.AddrPort]uint32 {
	out := map[netip.AddrPort]uint32{}
	for _, o := range d.Outs {
		var k flow.Key
		packet.Parse(o.Data, &k)
		if t, ok := packet.ParseTCP(o.Data); ok && t.Flags()&packet.TCPRst != 0 {
			out[netip.AddrPortFrom(netip.AddrFrom4(k.IPv4Dst), t.DstPort())] = t.Seq()
		}
	}
	return out
}

// TestAllow: who may not connect is refused at the first packet, and who may is
// served.
func TestAllow(t *testing.T) {
	for _, c := range []struct {
		allow *api.Allow
		want  [2]bool // of h1 and h2
	}{
		{nil, [2]bool{true, true}},
		{&api.Allow{}, [2]bool{}},
		{&api.Allow{Clients: []string{"10.0.0.1"}}, [2]bool{true, false}},
		{&api.Allow{Clients: []string{"10.9.0.0/16", "10.0.0.2/31"}}, [2]bool{false, true}},
	} {
		g := newRig(t)
		v := web("", 5)
		v.Allow = c.allow
		g.set(v)
		g.start(g.store) // what is kept says the same
		for i, want := range c.want {
			verdict, _, d := g.send(1+i, g.frame(1+i, 4000))
			if (verdict == flow.Next) != want || !want && (verdict != flow.Drop || len(resets(d)) != 1) {
				t.Errorf("allow %v: h%d: %v", c.allow, 1+i, verdict)
			}
		}
	}
}

// TestRefuse: who is not served is reset, dropped, or sent to the responder, as are
// all if no member serves.
func TestRefuse(t *testing.T) {
	g := newRig(t)
	v := web("", 5)
	v.Allow = &api.Allow{Clients: []string{"10.0.0.1"}}
	v.Refuse = "drop"
	g.set(v)
	if verdict, _, d := g.send(2, g.frame(2, 4000)); verdict != flow.Drop || !d.Empty() {
		t.Errorf("drop: %v %v", verdict, d.Ops)
	}
	v.Refuse = "to:10.0.0.8:9090"
	if got := g.set(v).Refuse; got != "to: 10.0.0.8:9090" {
		t.Errorf("refuse is shown as %q", got)
	}
	verdict, in, d := g.send(2, g.frame(2, 4000))
	if verdict != flow.Next || in.Key.IPv4Dst != v4(8).As4() || in.Key.TPDst != 9090 || len(mods(d, 2, flow.Add)) != 1 {
		t.Errorf("to the responder: %v %v", verdict, d.Ops)
	}
	if g.open(1, 4000) != 5 {
		t.Error("a client that may connect is refused")
	}
	g.consistent()
	if _, err := g.b.DeleteMember(context.Background(), &api.DeleteMemberRequest{Vip: "web", Address: v4(5).String(), Port: 8080}); err != nil {
		t.Fatal(err)
	}
	if g.open(1, 4001) != 8 {
		t.Error("without members the responder does not get clients that may connect")
	}
	entries := g.entries()
	g.start(g.store)
	for sw, flows := range entries {
		g.observed(sw, flows)
	}
	if d := g.posted(); !d.Empty() || len(g.b.tracker.by) != 2 {
		t.Errorf("after a restart: %d, %v", len(g.b.tracker.by), d.Ops)
	}
	g.consistent()
	for _, text := range []string{"perhaps", "to:", "to: 10.0.0.8", "to: fd00::8:1", "to: 10.0.0.100:80"} {
		v.Refuse = text
		if _, _, err := g.b.vips.Set(context.Background(), v); api.KindOf(err) != codes.InvalidArgument {
			t.Errorf("refuse %q: %v", text, err)
		}
	}
	for _, text := range []string{"h1", "fd00::1", "10.0.0.1/33", ""} {
		v.Refuse, v.Allow = "", &api.Allow{Clients: []string{text}}
		if _, _, err := g.b.vips.Set(context.Background(), v); api.KindOf(err) != codes.InvalidArgument {
			t.Errorf("client %q: %v", text, err)
		}
	}
}

// TestRevoked: when allow shrinks, the connections and pairs of who may not connect
// any more end: their client's next segment, or the member's, has both reset with
// the sequence numbers that they expect. Others stay.
func TestRevoked(t *testing.T) {
	for _, per := range []string{"connection", "pair"} {
		g := newRig(t)
		v := web("", 5)
		v.Per = per
		g.set(v)
		g.open(1, 4000)
		g.open(2, 4000)
		v.Allow = &api.Allow{Clients: []string{"10.0.0.2"}}
		g.set(v)
		d := g.posted()
		gone, sealed := mods(d, 1, flow.DeleteStrict), mods(d, 2, flow.Add)
		if want := 1 + btoi(per == "pair"); len(gone) != want || len(sealed) != 1 || sealed[0].Goto != 0 || sealed[0].Cookie.Generation()&genSeal == 0 {
			t.Fatalf("%s: %v", per, d.Ops)
		}
		if per == "connection" && (len(d.Outs) != 1 || d.Outs[0].Actions[0] != flow.Output(1)) {
			t.Errorf("%s: the client is not made to answer: %v", per, d.Outs)
		}
		client, member := netip.AddrPortFrom(v4(1), 4000), netip.AddrPortFrom(v4(5), 8080)
		verdict, _, d := g.send(1, g.ack(1, 4000))
		if got := resets(d); verdict != flow.Drop || len(got) != 2 || got[client] != 2000 || got[member] != 1000 {
			t.Errorf("%s: the client's segment: %v, %v", per, verdict, got)
		}
		verdict, d = g.guarded(5, segment(5, 1, 8080, 4000, packet.TCPAck), sealed[0].Cookie.Generation())
		if got := resets(d); verdict != flow.Drop || len(got) != 2 || got[client] != 1000 || got[member] != 2000 {
			t.Errorf("%s: the member's segment: %v, %v", per, verdict, got)
		}
		if verdict, _, _ := g.send(1, g.frame(1, 4001)); verdict != flow.Drop {
			t.Errorf("%s: a new connection: %v", per, verdict)
		}
		if g.open(2, 4001) != 5 || g.show("web").Pairs != uint32(btoi(per == "pair")) {
			t.Errorf("%s: who may still connect: %v", per, g.show("web"))
		}
		v.Allow = nil
		g.set(v)
		if g.open(1, 4002) != 5 {
			t.Errorf("%s: who may connect again does not", per)
		}
		g.consistent()
		v.Allow, v.Refuse = &api.Allow{}, "drop"
		g.set(v)
		d = g.posted()
		for _, e := range mods(d, 2, flow.Add) {
			if len(e.Apply) != 0 || e.Goto != 0 {
				t.Errorf("%s: refuse drop: %+v", per, e)
			}
		}
		if verdict, _, d := g.send(2, g.ack(2, 4001)); verdict != flow.Drop || !d.Empty() {
			t.Errorf("%s: refuse drop: %v %v", per, verdict, d.Outs)
		}
		g.consistent()
	}
}
