package beats

import (
	"math/rand/v2"
	"testing"
	"time"
)

// TestWheel: whatever is added and dropped, each member has one place, slots
// differ by what was dropped only, and a revolution passes every member once.
func TestWheel(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for range 200 {
		w := newWheel(time.Duration(10+rng.IntN(990)) * time.Millisecond)
		members := map[*Beat]bool{}
		for range rng.IntN(500) {
			if len(members) > 0 && rng.IntN(3) == 0 {
				for m := range members {
					w.drop(m)
					delete(members, m)
					break
				}
				continue
			}
			m := &Beat{}
			w.add(m)
			members[m] = true
		}
		h := hand{start: rng.Int64N(1e9)}
		for range rng.IntN(3 * len(w.slots)) {
			h.next(&w)
		}
		first, seen := h.due(&w), 0
		for last := first - 1; h.due(&w) < first+w.interval; h.next(&w) {
			if h.due(&w) <= last {
				t.Fatalf("slot %d is due at %d, after one that was at %d", h.slot, h.due(&w), last)
			}
			last = h.due(&w)
			for place, m := range w.slots[h.slot] {
				seen++
				if !members[m] || m.slot != h.slot || m.place != place {
					t.Fatalf("slot %d, place %d: it says %d and %d", h.slot, place, m.slot, m.place)
				}
			}
		}
		if seen != len(members) {
			t.Fatalf("%d of %d members are due in a revolution", seen, len(members))
		}
		if h.due(&w) != first+w.interval {
			t.Fatalf("the next revolution is due at %d, want %d", h.due(&w), first+w.interval)
		}
	}
}

// TestWheelEven: members that only come are spread evenly.
func TestWheelEven(t *testing.T) {
	w := newWheel(time.Second)
	for range 2560 {
		w.add(&Beat{})
	}
	for i, s := range w.slots {
		if len(s) < 51 || len(s) > 52 {
			t.Errorf("slot %d has %d members", i, len(s))
		}
	}
}

// TestHandSkip: after a skip a hand is less than a revolution behind, at the slot
// at which it was.
func TestHandSkip(t *testing.T) {
	w := newWheel(10 * time.Millisecond)
	for _, behind := range []int64{-5, 0, 1, 9_999_999, 10_000_000, 35_000_000, int64(time.Hour)} {
		h := hand{start: 1000, slot: 2}
		at := h.due(&w) + behind
		n := h.skip(&w, at)
		if left := at - h.due(&w); h.slot != 2 || n != max(0, behind)/w.interval || left >= w.interval || behind >= 0 && left < 0 {
			t.Errorf("%d ns behind: skipped %d, still %d behind", behind, n, left)
		}
	}
}

// TestWheelFirst: empty slots are not waited for.
func TestWheelFirst(t *testing.T) {
	w := newWheel(time.Second)
	h := hand{start: 0, slot: 10}
	if w.first(h) != never {
		t.Error("an empty wheel is due")
	}
	w.add(&Beat{}) // slot 0
	if got := w.first(h); got != int64(time.Second) {
		t.Errorf("due at %v, want 1s", time.Duration(got))
	}
}
