package mastership

import (
	"testing"
	"time"
)

// TestLeaseOnASlowStore renews a lease for a minute on stores that take longer
// and longer for each request, as step does. Once the lease has adapted, it does
// not end. On a fast store it stays as its terms say.
func TestLeaseOnASlowStore(t *testing.T) {
	for _, c := range []struct {
		takes time.Duration
		lasts time.Duration // the lease in the end, at most
	}{
		{2 * time.Millisecond, 600 * time.Millisecond},
		{50 * time.Millisecond, 600 * time.Millisecond},
		{100 * time.Millisecond, 800 * time.Millisecond},
		{250 * time.Millisecond, 2 * time.Second},
		{400 * time.Millisecond, 3 * time.Second},
		{700 * time.Millisecond, lastsMost},
	} {
		s := &shelf{}
		l := leaseOf("a", 0)
		l.others = []string{"b"}
		ends := 0
		for ms := 0; ms < 60_000; {
			begin := at(ms)
			do, wait := l.next(begin, 40*time.Millisecond)
			limit := l.patience()
			takes := min(c.takes, limit)
			ms += int(wait.Milliseconds())
			if do == actWait {
				continue
			}
			sent, w, over := at(ms), Tenure{}, uint64(0)
			if do == actWrite {
				w, over = l.wantedTenure(100)
				l.sends(sent, w)
			}
			held := l.isHeld(sent)
			for end := ms + max(1, int(takes.Milliseconds())); ms < end; ms++ {
				if held && !l.isHeld(at(ms)) && ms > 5_000 {
					ends++
					held = false
				}
			}
			if takes == c.takes {
				l.recordLatency(takes)
			}
			switch {
			case takes < c.takes: // it was not waited for longer; nothing was done
				l.recordTimeout(takes)
				ms += int(limit.Milliseconds() / 8)
			case do == actRead:
				l.recordRead(at(ms), s.t, s.rev)
			default:
				if rev, done := s.swap(w, over); done {
					l.recordWrite(sent, at(ms), w, rev)
				} else {
					l.recordRefusal()
				}
			}
		}
		if ends > 0 || l.epoch == 0 {
			t.Errorf("a store that takes %v: the lease has ended %d times, epoch %d", c.takes, ends, l.epoch)
		}
		if l.term() > c.lasts {
			t.Errorf("a store that takes %v: a lease of %v, want at most %v", c.takes, l.term(), c.lasts)
		}
	}
}

// TestLeaseShortenedByAWriteOfUnknownFate: a renewal for a shorter time ends the
// mastership early even if its confirmation is lost, because a standby that has
// seen it waits for the shorter time only.
func TestLeaseShortenedByAWriteOfUnknownFate(t *testing.T) {
	s := &shelf{}
	a, b := leaseOf("a", 0), leaseOf("b", 1)
	a.others, b.others = []string{"b"}, []string{"a"}
	a.recordLatency(600 * time.Millisecond)
	settle(a, s, at(0)) // lasts 3.75 s
	if !a.isHeld(at(3_200)) {
		t.Fatalf("the lease on a slow store lasts until %v", a.until)
	}
	a.slow = 0
	w, over := a.wantedTenure(100)
	a.sends(at(150), w)
	s.swap(w, over) // and the confirmation is lost
	a.recordRefusal()
	look(b, s, at(151))
	for ms := 160; ms < 5_000; ms += 10 {
		look(b, s, at(ms))
		if a.isHeld(at(ms)) && b.isHeld(at(ms)) {
			t.Fatalf("two masters after %d ms", ms)
		}
	}
	if b.epoch == 0 {
		t.Error("the standby never takes over")
	}
}
