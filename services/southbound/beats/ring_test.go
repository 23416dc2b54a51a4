package beats

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// TestRing: against a model that keeps all requests, for answers in time, late,
// twice, out of order and to nothing: every request is settled once, as answered
// in time or missed.
func TestRing(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 2))
	for round := range 300 {
		var r ring
		type request struct {
			until    int64
			answered bool
		}
		model := map[uint32]*request{} // by xid
		at, xid, inTime, missed := int64(1), uint32(rng.Uint32()), uint64(0), uint64(0)
		pending := func() (n uint64) { return uint64(r.next - r.open) }
		for range 400 {
			at += rng.Int64N(20)
			switch rng.IntN(4) {
			case 0:
				xid++
				missed += r.put(sent{xid: xid, at: at, from: at, until: at + 1 + rng.Int64N(100)})
				model[xid] = &request{until: r.sent[(r.next-1)%ringSize].until}
			case 1:
				missed += r.expire(at)
			default:
				of := xid - uint32(rng.IntN(2*ringSize))
				s, ok := r.take(of, at)
				m := model[of]
				old := m == nil || m.answered || xid-of >= ringSize
				if ok == old {
					t.Fatalf("round %d: answer to %d of %d: taken %v, the model has %+v", round, of, xid, ok, m)
				}
				if !ok {
					continue
				}
				m.answered = true
				if s.inTime && at > m.until {
					t.Fatalf("round %d: in time at %d, the deadline was %d", round, at, m.until)
				}
				if s.inTime {
					inTime++
				}
			}
		}
		missed += r.expire(1 << 60)
		if inTime+missed != uint64(len(model)) || !r.allSettled() || pending() != 0 {
			t.Fatalf("round %d: %d in time and %d missed of %d", round, inTime, missed, len(model))
		}
	}
}

// TestRingBounded: a switch that answers nothing holds no more than the ring.
func TestRingBounded(t *testing.T) {
	var r ring
	missed := uint64(0)
	for i := range uint32(1000) {
		missed += r.put(sent{xid: i, until: 1 << 60})
	}
	if missed != 1000-ringSize || r.expire(1<<61) != ringSize {
		t.Errorf("%d missed", missed)
	}
}

// TestLatencies: quantiles are at most 1/16 too large and never too small.
func TestLatencies(t *testing.T) {
	for step := range steps {
		if got := stepOf(most(step)); most(step) <= longest && got != step {
			t.Fatalf("step %d ends at %d, which is in step %d", step, most(step), got)
		}
	}
	rng := rand.New(rand.NewPCG(1, 1))
	var l latencies
	var all []time.Duration
	for range 10_000 {
		d := time.Duration(rng.ExpFloat64() * float64(3*time.Millisecond)).Truncate(time.Microsecond)
		l.add(d)
		all = append(all, d)
	}
	slices.Sort(all)
	for _, q := range []float64{0, .5, .9, .99, 1} {
		want := all[int(q*float64(len(all)-1))]
		if got := l.quantile(q); got < want || got > want+want/15+time.Microsecond {
			t.Errorf("quantile %v: %v, want %v", q, got, want)
		}
	}
	if l.add(time.Hour); l.max != time.Hour || l.quantile(1) > time.Hour {
		t.Errorf("%v", l.max)
	}
}
