package sim

import (
	"testing"
	"time"

	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/internal/testwait"
	"github.com/weft-sdn/weft/openflow"
)

// take issues a packet from the next free slot.
func (t *tracker) take(sent int64) uint32 {
	s := t.free[len(t.free)-1]
	t.free = t.free[:len(t.free)-1]
	return t.issue(s, 1, sent)
}

func TestIdentities(t *testing.T) {
	var a, b tracker
	a.resize(4)
	b.resize(4)
	expect := func(tr *tracker, id uint32, want verdict) {
		t.Helper()
		if _, got := tr.settle(id); got != want {
			t.Errorf("verdict %d, want %d", got, want)
		}
	}
	expect(&a, a.key, verdictWrong) // slot 0 before it was ever used
	id := a.take(5)
	if id>>31 != 0 {
		t.Errorf("identity %#x is negative to some", id)
	}
	expect(&b, id, verdictWrong)
	expect(&a, id|1<<31, verdictWrong)
	expect(&a, id+1<<slotBits, verdictWrong)
	expect(&a, id, verdictAnswer)
	expect(&a, id, verdictDuplicate)
	lost := a.take(6)
	next := a.take(9)
	a.expire(7, func(sent int64) {
		if sent != 6 {
			t.Errorf("gave up a packet sent at %d", sent)
		}
	})
	expect(&a, lost, verdictLate)
	if a.outstanding() != 1 {
		t.Errorf("%d outstanding, want 1", a.outstanding())
	}
	expect(&a, next, verdictAnswer)
	a.resize(64)
	expect(&a, id, verdictDuplicate)
	expect(&a, lost, verdictLate)
	seen := map[uint32]bool{}
	for range 64 {
		seen[a.take(1)] = true
	}
	if len(seen) != 64 || len(a.free) != 0 {
		t.Errorf("%d identities for 64 packets", len(seen))
	}
}

func TestIdentitiesStartOver(t *testing.T) {
	var a tracker
	a.resize(1)
	var last uint32
	for range turnMask + 10 {
		last = a.take(1)
		if _, v := a.settle(last); v != verdictAnswer {
			t.Fatalf("verdict %d of an outstanding packet", v)
		}
	}
	if _, v := a.settle(last); v != verdictDuplicate {
		t.Errorf("verdict %d, want duplicate", v)
	}
	if last = a.take(1); last == flow.BufferNone {
		t.Error("an identity that means no buffer")
	}
}

// BenchmarkPacket is what one packet-in and its answer cost the generator,
// without system calls.
func BenchmarkPacket(b *testing.B) {
	for _, v := range versions {
		b.Run(v.String(), func(b *testing.B) {
			topo, err := Isolated(1, 1000, 16)
			if err != nil {
				b.Fatal(err)
			}
			n, err := New(Config{Topology: topo, Version: v, Address: "127.0.0.1:1"})
			if err != nil {
				b.Fatal(err)
			}
			defer n.close()
			nd := n.nodes[0]
			l := n.newLoad(Load{Window: 512, Duration: 1})
			n.load, l.stage = l, stageMeasure
			nd.phase, nd.version = phaseUp, v
			nd.track.resize(512)
			nd.gen.begin(nd, l)
			canned, at := cannedAnswer(v)
			answers := make([]byte, 0, 512*len(canned))
			for range 512 {
				answers = append(answers, canned...)
			}
			b.ReportAllocs()
			b.ResetTimer()
			for done := 0; done < b.N; done += 512 {
				n.now++
				l.feed(nd) // the write fails: there is no connection
				nd.phase = phaseUp
				for i := range 512 {
					copy(answers[i*len(canned)+at:][:4], l.blank[i*l.layout.size+l.layout.bufferID:])
				}
				if _, err := nd.take(answers); err != nil {
					b.Fatal(err)
				}
			}
			if l.counts.Answered < uint64(b.N) || l.counts.Wrong != 0 {
				b.Fatalf("%+v of %d", l.counts, b.N)
			}
		})
	}
}

func TestPacketsAreNotAllocated(t *testing.T) {
	for _, v := range []openflow.Version{openflow.V10, openflow.V13} {
		n := start(t, Config{Topology: isolated(t, 2, 100, 4), Version: v, Address: startFloor(t)})
		ctx := within(t, testwait.Limit)
		if err := n.WaitUp(ctx, 0); err != nil {
			t.Fatal(err)
		}
		var answered uint64
		allocs := testing.AllocsPerRun(1, func() {
			r, err := n.Measure(ctx, Load{Window: 64, Duration: 100 * time.Millisecond, Patience: testwait.Limit})
			if err != nil {
				t.Fatal(err)
			}
			answered = r.Answered
		})
		t.Logf("%v: %v allocations for %d packets", v, allocs, answered)
		if answered == 0 || allocs > 50+float64(answered)/100 {
			t.Errorf("%v: %v allocations for %d packets", v, allocs, answered)
		}
	}
}
