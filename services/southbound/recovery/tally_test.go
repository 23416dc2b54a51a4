package recovery

import (
	"math/rand/v2"
	"testing"
	"time"
)

// TestTally: whatever happens to sessions, and whenever the process is killed,
// what was read is settled, lost or being dealt with; what is being dealt with is
// lost for the next process, once.
func TestTally(t *testing.T) {
	memory := make([]byte, Size)
	for i := range memory {
		memory[i] = 0xff // of another layout
	}
	openTallyOf := func(memory []byte) *Tally {
		t, _ := Open(memory, time.Now())
		return t
	}
	r := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		tally := openTallyOf(memory)
		if n := tally.read.Load(); n != tally.settled.Load()+tally.killed.Load()+tally.ended.Load() {
			t.Fatalf("at start %d read, %d settled, %d and %d lost", n, tally.settled.Load(), tally.killed.Load(), tally.ended.Load())
		}
		killed := tally.killed.Load()
		var open int64
		for range r.IntN(5) {
			a := Progress{Tally: tally}
			read := int64(r.IntN(100))
			a.Read(read)
			away := r.Int64N(read + 1)
			back := uint64(r.Int64N(away + 1))
			a.Back(back, 0) // before it is known that they have left
			a.Leave(away)
			a.Back(back, 0)
			a.Settle(r.Int64N(read - away + 1))
			if r.IntN(2) == 0 {
				a.End()
				a.Back(back+1, 0) // late
			} else {
				open += a.Pending.Load() + a.away
			}
		}
		if left := int64(tally.read.Load() - tally.settled.Load() - tally.killed.Load() - tally.ended.Load()); left != open {
			t.Fatalf("%d are being dealt with, want %d", left, open)
		}
		if next := openTallyOf(memory); next.killed.Load() != killed+uint64(open) {
			t.Fatalf("%d killed, want %d", next.killed.Load(), killed+uint64(open))
		}
	}
}
