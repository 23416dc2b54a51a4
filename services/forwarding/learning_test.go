package forwarding

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/packet"
)

func learningPacket(t testing.TB, src, dst flow.MAC, in flow.Port, at time.Time) *flow.PacketIn {
	t.Helper()
	frame := packet.AppendTCP(nil, packet.Ether{Src: src, Dst: dst}, packet.IP{Src: ip("10.0.0.1"), Dst: ip("10.0.0.2")}, packet.TCPFields{}, nil)
	p := &flow.PacketIn{Switch: 1, Time: at.UnixNano(), BufferID: flow.BufferNone, Data: frame, TotalLen: uint16(len(frame))}
	packet.Parse(frame, &p.Key)
	p.Key.InPort = in
	return p
}

func TestLearning(t *testing.T) {
	l := &learner{sw: 1, idle: 60}
	a, b := flow.MACFrom(0x020000000001), flow.MACFrom(0x020000000002)
	now := time.Unix(1000, 0)
	d := &flow.Decision{}

	l.packet(learningPacket(t, a, b, 1, now), d)
	if len(d.Flows) != 0 || len(d.Outs) != 1 || d.Outs[0].Actions[0] != flow.Output(flow.PortFlood) {
		t.Fatalf("unknown destination: want a flood, got %+v", d)
	}
	d.Reset()
	l.packet(learningPacket(t, b, a, 2, now), d)
	if len(d.Flows) != 1 || len(d.Outs) != 1 || d.Outs[0].Actions[0] != flow.Output(1) || d.Flows[0].Entry.Apply[0] != flow.Output(1) {
		t.Fatalf("known destination: want an entry and the packet out of port 1, got %+v", d)
	}
	d.Reset()
	buffered := learningPacket(t, a, b, 1, now)
	buffered.BufferID = 7
	l.packet(buffered, d)
	if len(d.Flows) != 1 || len(d.Outs) != 0 || d.Flows[0].BufferID != 7 {
		t.Fatalf("packet kept by the switch: want an entry that releases it, got %+v", d)
	}
	d.Reset()
	if v := l.packet(learningPacket(t, a, b, 2, now), d); v != flow.Drop || !d.Empty() {
		t.Fatalf("destination behind the ingress port: want it dropped, got %v %+v", v, d)
	}
	d.Reset()
	l.packet(learningPacket(t, b, a, 2, now.Add((learnedFor+1)*time.Second)), d)
	if len(d.Flows) != 0 {
		t.Fatalf("forgotten destination: want a flood, got %+v", d)
	}
}

func TestMACTableEqualsMap(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	var table macTable
	want := map[uint64]flow.Port{}
	for i := range 200_000 {
		k, p := (1+r.Uint64N(50_000))<<8, flow.Port(r.Uint32N(48)+1)
		table.put(k, p, uint16(i/1000))
		want[k] = p
	}
	for k := uint64(1); k <= 50_000; k++ {
		p, ok := table.get(k<<8, 200)
		if w, known := want[k<<8]; ok != known || known && p != w {
			t.Fatalf("%x: got %v %v, want %v %v", k, p, ok, w, known)
		}
	}
}

func TestVLANsAreApart(t *testing.T) {
	l := &learner{sw: 1, idle: 60}
	a, b := flow.MACFrom(0x020000000001), flow.MACFrom(0x020000000002)
	d := &flow.Decision{}
	learn := func(src, dst flow.MAC, vlan uint16) int {
		in := learningPacket(t, src, dst, 3, time.Unix(1000, 0))
		in.Key.VLAN = vlan
		d.Reset()
		l.packet(in, d)
		return len(d.Flows)
	}
	learn(a, b, 5|flow.VLANPresent)
	if learn(b, a, 0) != 0 || learn(b, a, 6|flow.VLANPresent) != 0 {
		t.Error("what was learnt in a VLAN is known in another")
	}
	in := learningPacket(t, b, a, 4, time.Unix(1000, 0))
	in.Key.VLAN = 5 | flow.VLANPresent
	d.Reset()
	if l.packet(in, d); len(d.Flows) != 1 {
		t.Error("what was learnt in a VLAN is not known in it")
	}
}

func TestMACTableIsBounded(t *testing.T) {
	var table macTable
	for i := range uint64(3 * tableMax) {
		table.put(i+1, 1, 1)
	}
	if len(table.slots) > tableMax {
		t.Fatalf("%d slots, want at most %d", len(table.slots), tableMax)
	}
}

func TestLearningDoesNotAllocate(t *testing.T) {
	l := &learner{sw: 1, idle: 60}
	a, b := flow.MACFrom(0x020000000001), flow.MACFrom(0x020000000002)
	pa, pb := learningPacket(t, a, b, 1, time.Now()), learningPacket(t, b, a, 2, time.Now())
	d := &flow.Decision{}
	l.packet(pa, d)
	l.packet(pb, d)
	if n := testing.AllocsPerRun(1000, func() { d.Reset(); l.packet(pa, d); d.Reset(); l.packet(pb, d) }); n != 0 {
		t.Errorf("%v allocations for two packets, want none", n)
	}
}

func BenchmarkLearning(b *testing.B) {
	l := &learner{sw: 1, idle: 60}
	d := &flow.Decision{}
	var in [1024]*flow.PacketIn
	for i := range in {
		in[i] = learningPacket(b, flow.MACFrom(uint64(0x020000000000+i)), flow.MACFrom(uint64(0x020000000000+(i*7+1)%len(in))), flow.Port(i%24+1), time.Now())
		in[i].BufferID = uint32(i)
		l.packet(in[i], d)
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		d.Reset()
		l.packet(in[i%len(in)], d)
	}
}
