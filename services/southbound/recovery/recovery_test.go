package recovery

import (
	"encoding/binary"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/openflow"
)

// sentAway is the packet-in with a number, of some length.
func sentAway(t testing.TB, number, size int) []byte {
	t.Helper()
	data := make([]byte, size)
	binary.BigEndian.PutUint64(data, uint64(number))
	in := flow.PacketIn{BufferID: flow.BufferNone, TotalLen: uint16(size), Data: data, Key: flow.Key{InPort: 1}}
	msg, err := openflow.V13.AppendPacketIn(nil, 1, &in)
	if err != nil {
		t.Fatal(err)
	}
	return msg
}

// numberOf returns the number of a packet-in.
func numberOf(t *testing.T, msg []byte) int {
	t.Helper()
	var in flow.PacketIn
	if err := openflow.V13.DecodePacketIn(msg, &in); err != nil {
		t.Fatal(err)
	}
	return int(binary.BigEndian.Uint64(in.Data))
}

// TestKeep: whatever was sent away and has returned, the next process gets those
// that have not, the last ones if there is not room for all, and each packet-in is
// counted once.
func TestKeep(t *testing.T) {
	memory := make([]byte, Size)
	r := rand.New(rand.NewPCG(1, 2))
	for round := range 100 {
		now := time.Unix(int64(round)*1000, 0)
		tally, k := Open(memory, now)
		k.Expire(now.Add(LeftOverFor))
		sw := flow.DPID(1 + r.IntN(3))
		o, _ := k.Begin(sw)
		p := Progress{Tally: tally, Ring: o.Ring}
		n := 1 + r.IntN(1000)
		p.Read(int64(n))
		p.Leave(int64(n))
		back := r.IntN(n)
		for i := range n {
			o.Away(sentAway(t, i, 64+r.IntN(1400)), &flow.PacketIn{BufferID: flow.BufferNone, Time: now.UnixNano()})
			if i == n/2 {
				p.Back(uint64(min(back, n/2)), 0)
			}
		}
		p.Back(uint64(back), 0)
		killed := tally.killed.Load()

		next, k := Open(memory, now.Add(time.Second))
		if _, left := k.Begin(sw + 5); left != nil {
			t.Fatalf("%d packets for another switch", len(left))
		}
		other, left := k.Begin(sw)
		if other.Ring == nil {
			t.Fatal("no ring")
		}
		for i, l := range left {
			if got := numberOf(t, l.Msg); got != n-1-i || got < back {
				t.Fatalf("of %d packets, the first %d of which have returned, packet %d is kept at %d from the end", n, back, got, i)
			}
		}
		if len(left) < min(n-back, 100) {
			t.Fatalf("%d packets left of %d", len(left), n-back)
		}
		if now := next.killed.Load() - killed; now != uint64(n-back-len(left)) {
			t.Fatalf("%d counted as lost, want %d", now, n-back-len(left))
		}
		again := Progress{Tally: next}
		again.Pending.Add(int64(len(left)))
		again.Lose(int64(len(left) / 2))
		again.End()
		if read := next.read.Load(); read != next.settled.Load()+next.killed.Load()+next.ended.Load() {
			t.Fatalf("%d read, %d settled, %d and %d lost", read, next.settled.Load(), next.killed.Load(), next.ended.Load())
		}
	}
}

// TestKeepExpires: what an earlier process has left of a switch that does not come
// back is lost, and what it has left is not believed if it is no packet-in.
func TestKeepExpires(t *testing.T) {
	memory := make([]byte, Size)
	now := time.Unix(1000, 0)
	tally, k := Open(memory, now)
	list := []*Outgoing{}
	for sw := range flow.DPID(3) {
		o, _ := k.Begin(sw)
		tally.read.Add(10)
		for i := range 10 {
			o.Away(sentAway(t, i, 100), &flow.PacketIn{BufferID: flow.BufferNone, Time: now.UnixNano()})
		}
		list = append(list, &o)
	}
	binary.LittleEndian.PutUint64(list[1].Ring.data[:], 1<<63)
	list[2].Ring.head.Store(1<<63 + 1)
	next, k := Open(memory, now)
	if n := next.killed.Load(); n != 20 {
		t.Errorf("%d lost at once, want the 20 that cannot be read", n)
	}
	k.Expire(now.Add(LeftOverFor - 1))
	if n := next.killed.Load(); n != 20 {
		t.Errorf("%d lost before the switch could be back", n)
	}
	k.Expire(now.Add(LeftOverFor))
	k.Expire(now.Add(2 * LeftOverFor))
	if n := next.killed.Load(); n != 30 {
		t.Errorf("%d lost after that, want 30", n)
	}
	if len(k.free) != ringCount {
		t.Errorf("%d rings free, want %d", len(k.free), ringCount)
	}
}

// TestKeepIsBounded: sessions beyond the number of rings have none, and those of
// sessions that are over are used again.
func TestKeepIsBounded(t *testing.T) {
	_, k := Open(make([]byte, Size), time.Now())
	var list []Outgoing
	for sw := range flow.DPID(ringCount + 10) {
		o, _ := k.Begin(sw)
		o.Away(sentAway(t, 1, 100), &flow.PacketIn{BufferID: flow.BufferNone})
		list = append(list, o)
	}
	if list[ringCount-1].Ring == nil || list[ringCount].Ring != nil {
		t.Error("want a ring for the first 128 sessions only")
	}
	for _, o := range list {
		k.End(o.Ring)
	}
	if o, _ := k.Begin(1); o.Ring == nil || o.Ring.head.Load() != 0 {
		t.Error("want an empty ring again")
	}
}

// BenchmarkKeep is what it costs to keep a packet-in that is sent to another
// process, and to count what becomes of it.
func BenchmarkKeep(b *testing.B) {
	tally, k := Open(make([]byte, Size), time.Now())
	in := &flow.PacketIn{BufferID: flow.BufferNone, Time: 1}
	for _, size := range []int{64, 1500} {
		msg := sentAway(b, 1, size)
		b.Run("away", func(b *testing.B) {
			o, _ := k.Begin(1)
			b.SetBytes(int64(len(msg)))
			b.ReportAllocs()
			for b.Loop() {
				o.Away(msg, in)
			}
			k.End(o.Ring)
		})
	}
	b.Run("counted", func(b *testing.B) { // of a batch of one packet-in
		p := Progress{Tally: tally}
		b.ReportAllocs()
		for b.Loop() {
			p.Read(1)
			p.Settle(1)
		}
	})
}
