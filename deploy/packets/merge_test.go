package packets

import (
	"fmt"
	"hash/maphash"
	"testing"

	"github.com/weft-sdn/weft/flow"
)

// TestMerge: packets of a session that are the same to the octet are sent once,
// and answered each: with what is sent of the first, without its entries. Those
// of other sessions, other ports, or with another octet, are not the same.
func TestMerge(t *testing.T) {
	walks := []*session{{}, {}}
	p := &batch{}
	p.begin(1, []string{"hosts"})
	frame := func(n byte) []byte {
		b := make([]byte, 60)
		b[12], b[59] = 8, n
		return b
	}
	var d flow.Decision
	type packet struct {
		session int
		port    flow.Port
		n       byte
		like    int32
	}
	packets := []packet{{0, 1, 1, 0}, {0, 1, 1, 1}, {0, 1, 2, 0}, {0, 2, 1, 0}, {1, 1, 1, 0}, {0, 1, 1, 1}, {1, 1, 1, 5}, {0, 1, 2, 3}}
	for _, k := range packets {
		in := &flow.PacketIn{Switch: flow.DPID(k.session), BufferID: flow.BufferNone, TotalLen: 60, Data: frame(k.n), Key: flow.Key{InPort: k.port}}
		if err := p.add(walks[k.session], uint64(k.session), in, &d, 1); err != nil {
			t.Fatal(err)
		}
	}
	if n := p.merge(maphash.MakeSeed()); n != 4 {
		t.Errorf("%d merged, want 4", n)
	}
	for i, k := range packets {
		if p.records[i].like != k.like {
			t.Errorf("packet %d is like %d, want %d", i, p.records[i].like, k.like)
		}
	}
	if got := fmt.Sprint(p.all()); got != "[0 2 3 4]" {
		t.Errorf("sent: %s", got)
	}
	d.AddFlow(7).Entry.Priority = 9
	d.PacketOut(7, flow.PacketOut{BufferID: flow.BufferNone, InPort: 1, Data: frame(1)})
	decision, err := d.AppendBinary(nil)
	if err != nil {
		t.Fatal(err)
	}
	p.records[0].done, p.records[0].verdict, p.records[0].decision = true, flow.Done, decision
	p.records[2].done, p.records[2].verdict = true, flow.Drop
	if got := p.unlike(nil); len(got) != 0 {
		t.Errorf("cross by themselves: %v", got)
	}
	if err := p.unmerge(); err != nil {
		t.Fatal(err)
	}
	for _, i := range []int{1, 5} {
		r := &p.records[i]
		if err := d.UnmarshalBinary(r.decision); err != nil || !r.done || r.verdict != flow.Done || len(d.Ops) != 1 || d.Ops[0].Kind != flow.OpPacketOut || d.Outs[0].Data[59] != 1 {
			t.Errorf("packet %d: %v, %+v, %+v", i, err, r, d.Ops)
		}
	}
	if r := &p.records[7]; !r.done || r.verdict != flow.Drop || len(r.decision) != 0 {
		t.Errorf("%+v", r)
	}
	if p.records[6].done {
		t.Error("the first is not done, and what is like it is")
	}
	p.records[4].done, p.records[4].verdict = true, flow.Done // a stage keeps it
	if got := fmt.Sprint(p.unlike(nil)); got != "[6]" {
		t.Errorf("cross by themselves: %s, want [6]", got)
	}
}

// BenchmarkMerge measures what looking for the same packets costs one that is like
// no other.
func BenchmarkMerge(b *testing.B) {
	p := &batch{}
	p.begin(1, []string{"hosts"})
	var d flow.Decision
	w := &session{}
	for n := range 256 {
		data := make([]byte, 100)
		data[99] = byte(n)
		if err := p.add(w, 1, &flow.PacketIn{BufferID: flow.BufferNone, TotalLen: 100, Data: data}, &d, 1); err != nil {
			b.Fatal(err)
		}
	}
	seed := maphash.MakeSeed()
	b.ReportAllocs()
	for i := 0; i < b.N; i += 256 {
		p.merge(seed)
	}
}
