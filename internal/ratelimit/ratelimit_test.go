package ratelimit

import (
	"testing"
	"time"
)

const ms = int64(time.Millisecond)

func TestTake(t *testing.T) {
	l, now := NewKeyed[int](100), int64(0)
	count := func(key int, gap, depth int64) (n int) {
		for range 100 {
			if l.Take(key, now, gap, depth) {
				n++
			}
		}
		return n
	}
	if n := count(1, 100*ms, 500*ms); n != 5 {
		t.Errorf("%d at once, want 5", n)
	}
	if n := count(2, 100*ms, 500*ms); n != 5 {
		t.Errorf("%d of another key, want 5", n)
	}
	if b := l.buckets[1]; b.Wait(now, 100*ms, 500*ms) != 100*ms || b.Full(now) || !b.Full(now+500*ms) {
		t.Errorf("an empty bucket has the next token in %d ns, want 100 ms", b.Wait(now, 100*ms, 500*ms))
	}
	now = 200 * ms
	if n := count(1, 100*ms, 500*ms); n != 2 {
		t.Errorf("%d after 200 ms, want 2", n)
	}
	now = 10_000 * ms
	if n := count(1, 10*ms, 500*ms); n != 50 {
		t.Errorf("%d at another rate, want 50", n)
	}
	if l.Forget(1); count(1, 100*ms, 500*ms) != 5 {
		t.Error("a key that was forgotten does not begin anew")
	}
	if l.Clear(); count(1, 100*ms, 500*ms) != 5 {
		t.Error("a key does not begin anew after Clear")
	}
}

// TestBound: full buckets are forgotten first, and all if most are not full.
func TestBound(t *testing.T) {
	l := NewKeyed[int](10)
	for key := range 8 {
		l.Take(key, 0, ms, ms)
	}
	for key := range 2 {
		l.Take(10+key, ms, ms, ms)
	}
	if l.Take(20, ms, ms, ms); len(l.buckets) != 3 {
		t.Errorf("%d keys, want the two with empty buckets and the new one", len(l.buckets))
	}
	for key := range 7 {
		l.Take(30+key, ms, ms, ms)
	}
	if l.Take(40, ms, ms, ms); len(l.buckets) != 1 {
		t.Errorf("%d keys, want the new one", len(l.buckets))
	}
}
