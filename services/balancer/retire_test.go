package balancer

import (
	"bytes"
	"encoding/binary"
	"testing"
	"time"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/packet"
	"github.com/weft-sdn/weft/wefttest"
)

// said is what an end of a connection gets.
type said struct {
	seq, ack uint32
	payload  []byte
	flags    uint8
}

// exchange is a connection of host 1, from port 4000, to 10.0.0.100, with host 5.
type exchange struct {
	*rig
}

// fromClient has a segment come from the client. It returns what the member gets, and what
// is sent to the client meanwhile.
func (x *exchange) fromClient(seq, ack uint32, flags uint8, payload []byte) (member said, client []said) {
	x.t.Helper()
	f := x.frame(1, 4000)
	e := packet.Ether{Dst: flow.MAC(f[:6]), Src: macOfHost(1)}
	verdict, in, d := x.send(1, packet.AppendTCP(nil, e, packet.IP{Src: v4(1), Dst: v4(100)},
		packet.TCPFields{SrcPort: 4000, DstPort: 80, Seq: seq, Ack: ack, Flags: flags}, payload))
	t, ok := packet.ParseTCP(in.Data)
	if verdict != flow.Next || !ok || in.Key.IPv4Dst != v4(5).As4() {
		x.t.Fatalf("a segment of the client: %v, to %v", verdict, in.Key.IPv4Dst)
	}
	return heard(t), outs(d)
}

// fromMember has a segment come from the member, by the entry that leads to the controller.
func (x *exchange) fromMember(seq, ack uint32, flags uint8, payload []byte) (client []said) {
	x.t.Helper()
	in := wefttest.NewPacketIn(2, 5, packet.AppendTCP(nil, packet.Ether{Dst: macOfHost(1), Src: macOfHost(5)}, packet.IP{Src: v4(5), Dst: v4(1)},
		packet.TCPFields{SrcPort: 8080, DstPort: 4000, Seq: seq, Ack: ack, Flags: flags}, payload))
	in.Time, in.Cookie, in.Table = x.now, flow.NewCookie(flow.OwnerBalancer, genBye, 1), flow.TableTranslate
	d := &flow.Decision{}
	if verdict := x.b.packet(in, d); verdict != flow.Done {
		x.t.Fatalf("a segment of the member: %v", verdict)
	}
	return outs(d)
}

func heard(t packet.TCP) said {
	return said{t.Seq(), t.Ack(), bytes.Clone(t.Payload()), t.Flags()}
}

func outs(d *flow.Decision) (list []said) {
	for _, o := range d.Outs {
		if t, ok := packet.ParseTCP(o.Data); ok {
			list = append(list, heard(t))
		}
	}
	return list
}

// retire has host 5 retire, or serve again.
func (g *rig) retire(v *api.Vip, state string) {
	v.Pool[0].State = state
	g.set(v)
}

// lastOf returns the last stream that a GOAWAY says was processed; false if it is none.
func lastOf(p []byte) (uint32, bool) {
	if len(p) != 17 || p[3] != frameGoAway {
		return 0, false
	}
	return binary.BigEndian.Uint32(p[9:]), true
}

const pushed = packet.TCPAck | packet.TCPPsh

// TestRetireBusy: a connection in use is led to the controller, its client is sent GOAWAY
// between two frames, and what either end sends from then on reaches the other, by the
// sequence numbers that it knows.
func TestRetireBusy(t *testing.T) {
	for _, per := range []string{"connection", "pair"} {
		g := newRig(t)
		v := web("", 5, 6)
		v.Per = per
		g.set(v)
		if g.open(1, 4000) != 5 {
			t.Fatal("not to 5")
		}
		g.posted()
		g.retire(v, "retiring")
		x := &exchange{rig: g}
		for _, e := range mods(g.posted(), 1, flow.Add) {
			if len(e.Apply) != 1 || flow.Port(e.Apply[0].Arg) != flow.PortController {
				t.Errorf("%s: the entry there: %+v", per, e)
			}
		}
		request, answer := http2Frame(frameHeaders, 5, 40), append(http2Frame(frameHeaders, 5, 20), http2Frame(0, 5, 100)...)
		if to, back := x.fromClient(1000, 2000, pushed, request); len(back) != 0 || to.seq != 1000 || !bytes.Equal(to.payload, request) {
			t.Errorf("%s: a request at once: %+v %+v", per, to, back)
		}
		if back := x.fromMember(2000, 1049, pushed, answer); len(back) != 1 || back[0].seq != 2000 {
			t.Errorf("%s: its answer: %+v", per, back)
		}
		g.now += int64(200 * time.Millisecond)
		x.fromClient(1049, 2000, packet.TCPAck, nil) // it has all that the controller has not seen
		if back := x.fromMember(2000, 1049, pushed, answer); len(back) != 2 && len(back) != 1 {
			t.Errorf("%s: the answer again: %+v", per, back)
		}
		to, back := x.fromClient(1049, 2138, pushed, request)
		if !bytes.Equal(to.payload, request) || to.seq != 1049 {
			t.Errorf("%s: a request under way: %+v", per, to)
		}
		if len(back) == 1 {
			if last, ok := lastOf(back[0].payload); !ok || last != lastStream || back[0].seq != 2138 {
				t.Errorf("%s: GOAWAY: %+v", per, back)
			}
		} else if !g.by(1, 4000).bye.told {
			t.Errorf("%s: no GOAWAY", per)
		}
		// Its answer, and what was answered before, sent again together.
		if back := x.fromMember(2138, 1098, pushed, answer); len(back) != 1 || back[0].seq != 2155 || back[0].ack != 1098 {
			t.Errorf("%s: an answer behind GOAWAY: %+v", per, back)
		}
		if back := x.fromMember(2000, 1098, pushed, append(bytes.Clone(answer), answer...)); len(back) != 1 || back[0].seq != 2000 || !bytes.Equal(back[0].payload, answer) {
			t.Errorf("%s: both again: %+v", per, back)
		}
		for from, want := range map[uint32]uint32{2138: 2138, 2150: 2138, 2155: 2138, 2156: 2139, 2293: 2276} {
			if to, _ := x.fromClient(1098, from, packet.TCPAck, nil); to.ack != want {
				t.Errorf("%s: the client acknowledges %d, the member gets %d, want %d", per, from, to.ack, want)
			}
		}
		g.now += retireAgain
		if _, back := x.fromClient(1098, 2138, packet.TCPAck, nil); len(back) != 1 || len(back[0].payload) != 17 {
			t.Errorf("%s: a lost GOAWAY is not sent again: %+v", per, back)
		}
		if got := g.open(1, 4001); got != 6 {
			t.Errorf("%s: a new connection goes to %d", per, got)
		}
		if got := g.open(1, 4000); got != 6 {
			t.Errorf("%s: a new connection from the same port goes to %d", per, got)
		}
		g.consistent()
	}
}

// TestRetireSilent: the first request on a connection that was silent when its member began
// to retire does not reach the member: GOAWAY tells the client that it was not processed.
func TestRetireSilent(t *testing.T) {
	g := newRig(t)
	v := pairs(5, 6)
	g.set(v)
	g.open(1, 4000)
	g.retire(v, "retiring")
	g.now += int64(time.Second)
	x := &exchange{rig: g}
	before, request := http2Frame(8, 0, 4), http2Frame(frameHeaders, 7, 30)
	to, back := x.fromClient(1000, 2000, pushed, append(bytes.Clone(before), request...))
	if to.seq != 1000 || !bytes.Equal(to.payload, before) {
		t.Errorf("the member gets %+v, want what comes before the request", to)
	}
	if len(back) != 1 || back[0].seq != 2000 || back[0].ack != 1052 {
		t.Fatalf("the client gets %+v", back)
	} else if last, ok := lastOf(back[0].payload); !ok || last != 5 {
		t.Errorf("the last stream is %d, want that before the request's", last)
	}
	if to, back := x.fromClient(1052, 2017, pushed, request); len(to.payload) != 0 || to.seq != 1013 || to.ack != 2000 || len(back) != 1 || back[0].ack != 1091 {
		t.Errorf("what follows: the member gets %+v, the client %+v", to, back)
	}
	// An answer that was still to come, and the end of both.
	if back := x.fromMember(2000, 1013, pushed, http2Frame(0, 5, 1)); len(back) != 1 || back[0].seq != 2017 || back[0].ack != 1091 {
		t.Errorf("an answer: %+v", back)
	}
	if to, _ := x.fromClient(1091, 2027, packet.TCPAck|packet.TCPFin, nil); to.seq != 1013 || to.ack != 2010 || to.flags&packet.TCPFin == 0 {
		t.Errorf("the client's end: %+v", to)
	}
	if back := x.fromMember(2010, 1014, packet.TCPAck|packet.TCPFin, nil); len(back) != 1 || back[0].seq != 2027 || back[0].ack != 1092 {
		t.Errorf("the member's end: %+v", back)
	}
	if to, _ := x.fromClient(1092, 2028, packet.TCPAck, nil); to.seq != 1014 || to.ack != 2011 {
		t.Errorf("the last acknowledgement: %+v", to)
	}
	g.consistent()
}

// TestRetireOthers: what is not HTTP/2 goes on with its member, and so does everything where
// no other member serves.
func TestRetireOthers(t *testing.T) {
	g := newRig(t)
	v := web("", 5, 6)
	g.set(v)
	g.open(1, 4000)
	g.retire(v, "retiring")
	g.posted()
	x := &exchange{rig: g}
	for range retireStrange {
		g.now += int64(time.Second)
		if to, back := x.fromClient(1000, 2000, pushed, []byte("\x17\x03\x03\x00\x20 of TLS")); len(back) != 0 || len(to.payload) == 0 {
			t.Fatalf("TLS: %+v %+v", to, back)
		}
	}
	if c := g.by(1, 4000); c.attended() {
		t.Errorf("a connection by TLS still comes to the controller: %+v", c.bye)
	}
	g.retire(v, "up")
	if c := g.by(1, 4000); c.bye != nil {
		t.Errorf("its member serves again: %+v", c.bye)
	}
	g.set(web("", 5))
	g.posted()
	g.retire(web("", 5), "retiring")
	if c := g.by(1, 4000); c.bye != nil || len(mods(g.posted(), 1, flow.Add)) != 0 {
		t.Errorf("of the only member: %+v", c.bye)
	}
	g.consistent()
}

// TestRetireAnswer: an answer that is under way when the member begins to retire reaches its
// client, which has sent nothing since.
func TestRetireAnswer(t *testing.T) {
	g := newRig(t)
	v := web("", 5, 6)
	g.set(v)
	g.open(1, 4000)
	g.retire(v, "retiring")
	in := wefttest.NewPacketIn(2, 5, packet.AppendTCP(nil, packet.Ether{Dst: macOfHost(1), Src: macOfHost(5)}, packet.IP{Src: v4(5), Dst: v4(1)},
		packet.TCPFields{SrcPort: 8080, DstPort: 4000, Seq: 2000, Ack: 1000, Flags: pushed}, http2Frame(0, 1, 10)))
	in.Time, in.Cookie, in.Table = g.now, flow.NewCookie(flow.OwnerBalancer, genBye, 1), flow.TableTranslate
	d := &flow.Decision{}
	if verdict := g.b.packet(in, d); verdict != flow.Done || len(d.Outs) != 1 || flow.MAC(d.Outs[0].Data[:6]) != macOfHost(1) {
		t.Errorf("%v, %v", verdict, d.Outs)
	}
}

// TestRetireUndone: a member that serves again before its client was sent GOAWAY has its
// connection back.
func TestRetireUndone(t *testing.T) {
	g := newRig(t)
	v := web("", 5, 6)
	g.set(v)
	g.open(1, 4000)
	g.retire(v, "retiring")
	g.posted()
	g.retire(v, "up")
	list := mods(g.posted(), 1, flow.Add)
	if len(list) != 1 || list[0].Cookie.Generation() != 0 || list[0].Goto != flow.TableForward {
		t.Errorf("the entry there: %+v", list)
	}
	g.consistent()
}

// TestRetireRestart: a connection whose client may have been sent GOAWAY by an earlier run
// does not go on, for nobody knows.
func TestRetireRestart(t *testing.T) {
	g := newRig(t)
	v := web("", 5, 6)
	g.set(v)
	g.open(1, 4000)
	g.posted()
	g.retire(v, "retiring")
	d := g.posted()
	there, back := mods(d, 1, flow.Add), mods(d, 2, flow.Add)
	if len(there) != 1 || len(back) != 1 {
		t.Fatalf("%+v %+v", there, back)
	}
	report := func(sw flow.DPID, list []flow.Entry) {
		e := &api.FlowsObserved{Dpid: sw.String(), Owner: flow.OwnerBalancer.String()}
		for i := range list {
			e.Flows = append(e.Flows, api.NewFlowEntry(sw, &list[i]))
		}
		g.b.observed(e, g.now)
	}
	report(1, there)
	report(2, back)
	if d := g.posted(); len(mods(d, 1, flow.DeleteStrict))+len(mods(d, 2, flow.DeleteStrict)) != 0 {
		t.Errorf("entries of this run are removed: %v", d.Ops)
	}
	g.start(g.store)
	report(1, there)
	report(2, back)
	if d := g.posted(); len(mods(d, 1, flow.DeleteStrict)) != 1 || len(mods(d, 2, flow.DeleteStrict)) != 1 || g.by(1, 4000) != nil {
		t.Errorf("entries of an earlier run stay: %v", d.Ops)
	}
	if verdict, _, d := g.send(1, g.ack(1, 4000)); verdict != flow.Drop || len(d.Outs) != 1 {
		t.Errorf("the client is not reset: %v %v", verdict, d.Outs)
	}
	if _, err := g.b.vips.Delete(t.Context(), &api.Vip{Name: "web"}); err != nil {
		t.Fatal(err)
	}
}
