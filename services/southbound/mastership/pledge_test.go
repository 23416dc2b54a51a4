package mastership

import (
	"fmt"
	"testing"
	"time"
)

// simulated is the lease of an instance of the simulation in one of its runs.
func simulated(i, run int) *lease {
	l := leaseOf(fmt.Sprint(i), i)
	l.self.Run = fmt.Sprintf("%d/%d", i, run)
	for k := range 3 {
		if k != i {
			l.others = append(l.others, fmt.Sprint(k))
		}
	}
	return l
}

// TestLeaseWhileTheStoreIsAway: the mastership lasts as long as the only one who
// could take it promises to leave it, and ends when it does not.
func TestLeaseWhileTheStoreIsAway(t *testing.T) {
	s := &shelf{}
	a, b := leaseOf("a", 0), leaseOf("b", 1)
	a.others, b.others = []string{"b"}, []string{"a"}
	settle(a, s, at(0))
	look(b, s, at(10))
	last := 0
	for ms := 10; ms < 10_000; ms += 10 { // the store is away
		asked, never := a.askAt(at(ms))
		if never || !a.isHeld(at(ms)) {
			t.Fatalf("the mastership has ended after %d ms", ms)
		}
		if at(ms).Before(asked) {
			continue
		}
		if !b.pledge(at(ms+3), a.have) {
			t.Fatalf("no promise after %d ms", ms)
		}
		a.recordPledge(at(ms), at(ms+5), a.have)
		last = ms
	}
	look(b, s, at(10_000)) // the store is back, and the master is dead
	if b.epoch != 0 || a.isHeld(at(last+526)) || !a.isHeld(at(last+524)) {
		t.Errorf("a promise counts from the question, an eighth less: %v", a.until)
	}
	look(b, s, at(last+602))
	if b.epoch != 0 {
		t.Error("the standby has broken its promise")
	}
	look(b, s, at(last+604))
	if !b.isHeld(at(last + 605)) {
		t.Error("the standby does not take over when its promise has ended")
	}
	if b.pledge(at(last+606), a.have) {
		t.Error("who has the mastership promises to leave it to another")
	}
	a.recordPledge(at(last+520), at(last+610), a.have)
	if a.isHeld(at(last + 611)) {
		t.Error("a lease that has ended is renewed by a promise")
	}
}

// TestPledgeIsRefused: no promise is made by who is taking the mastership, nor to
// a former holder.
func TestPledgeIsRefused(t *testing.T) {
	b := leaseOf("b", 1)
	holder := Tenure{Holder: "a", Run: "a", Epoch: 7, Lasts: 600}
	b.writing = true
	if b.pledge(at(0), holder) {
		t.Error("a promise while a write of one's own is on its way")
	}
	b.writing = false
	b.recordRead(at(0), Tenure{Holder: "c", Run: "c", Epoch: 8, Lasts: 600}, 3)
	if b.pledge(at(1), holder) {
		t.Error("a promise to a former holder")
	}
}

// TestStrangerWaits: who is not asked for promises waits until the holder, if it
// lives, has learnt of it.
func TestStrangerWaits(t *testing.T) {
	s := &shelf{}
	a, c := leaseOf("a", 0), leaseOf("c", 1)
	a.others = []string{"b"}
	settle(a, s, at(0))
	look(c, s, at(10))
	look(c, s, at(20_000))
	if c.epoch != 0 {
		t.Error("a stranger takes over at once")
	}
	look(c, s, at(31_000))
	if !c.isHeld(at(31_001)) {
		t.Error("a stranger never takes over")
	}
	// The holder asks also those whom a write has named that nobody has confirmed.
	a.others = []string{"b", "c"}
	a.wantedTenure(0)
	if len(a.asks()) != 2 {
		t.Errorf("asked: %v", a.asks())
	}
}

// TestFaith: a master that does not reach a store which takes writes here is left
// alone for a moment only.
func TestFaith(t *testing.T) {
	var f faith
	if !f.recordQuestion(at(0), question{Renewed: 7}, 0) || !f.recordQuestion(at(1_000), question{Renewed: 7}, 0) {
		t.Error("the store may be away for all")
	}
	began, try := f.open(at(1_000))
	if !try || began != at(0) {
		t.Fatal("the store is not tried")
	}
	f.recordProof(began, at(1_500))
	if !f.recordQuestion(at(2_900), question{Renewed: 7}, 0) || f.recordQuestion(at(3_100), question{Renewed: 7}, 0) {
		t.Error("a master that is cut off has its time, and no more")
	}
	if !f.recordQuestion(at(3_200), question{Renewed: 8}, 0) {
		t.Error("a master that has renewed its lease since is not cut off")
	}
	if began, try := f.open(at(3_200)); !try || began != at(3_200) {
		t.Error("the store is not tried again for its new questions")
	}
	f.recordProof(at(0), at(3_300))
	if !f.recordQuestion(at(5_100), question{Renewed: 8}, 0) {
		t.Error("what the store did before the questions says nothing of them")
	}
	f.recordProof(at(3_200), at(5_200))
	if f.recordQuestion(at(6_800), question{Renewed: 8}, 0) || !f.recordQuestion(at(9_000), question{Renewed: 8}, 0) {
		t.Error("another time begins anew")
	}
}

// TestFaithOnASlowStore: a master that may be changing servers has more time
// where the store is slow, and not for ever.
func TestFaithOnASlowStore(t *testing.T) {
	var f faith
	f.recordQuestion(at(0), question{Renewed: 7}, 0)
	f.recordProof(at(0), at(500))
	f.recordQuestion(at(1_500), question{Renewed: 7}, 0)
	if f.recordQuestion(at(2_100), question{Renewed: 7}, 5*time.Millisecond) {
		t.Error("on a store that answers at once a master that is cut off has 1.5 s, and no more")
	}
	if !f.recordQuestion(at(3_000), question{Renewed: 7}, 200*time.Millisecond) || f.recordQuestion(at(3_700), question{Renewed: 7}, 200*time.Millisecond) {
		t.Error("on a store that takes 0.2 s it has 1.6 s more")
	}
	f.recordQuestion(at(4_700), question{Renewed: 7}, 0)
	if f.recordQuestion(at(5_600), question{Renewed: 7}, 10*time.Second) {
		t.Error("a master that is cut off stays for ever")
	}
}

// TestFaithOfALongLease: the questions of a master whose lease is long are far
// apart. They go on being the same, so that a master that is cut off does not stay
// for ever.
func TestFaithOfALongLease(t *testing.T) {
	for _, lasts := range []int{600, 5_000, 30_000} {
		a, b := leaseOf("a", 0), faith{}
		a.Lasts, a.Renew, a.others = time.Duration(lasts)*time.Millisecond, time.Duration(lasts/4)*time.Millisecond, []string{"b"}
		settle(a, &shelf{}, at(0))
		ms := 0
		for ; a.isHeld(at(ms)); ms += 10 {
			if ms > 2*lasts+10_000 {
				t.Fatalf("a lease of %d ms: the master stays for ever", lasts)
			}
			if began, try := b.open(at(ms)); try && ms%250 == 0 {
				b.recordProof(began, at(ms))
			}
			if asked, _ := a.askAt(at(ms)); !at(ms).Before(asked) && b.recordQuestion(at(ms), question{a.have, a.rev}, 0) {
				a.recordPledge(at(ms), at(ms), a.have)
			}
		}
		if ms <= lasts {
			t.Errorf("a lease of %d ms: nobody has left it to the master, until %d ms", lasts, ms)
		}
	}
}

// TestLeaseOfAStoreAway: however long the store does not answer, a lease is not
// longer for that.
func TestLeaseOfAStoreAway(t *testing.T) {
	l := leaseOf("a", 0)
	l.recordLatency(5 * time.Millisecond)
	for range 100 {
		if l.recordTimeout(l.patience()); l.patience() > lastsMost/2 {
			t.Fatalf("waits %v for an answer", l.patience())
		}
	}
	if l.renewalTime() != l.Lasts {
		t.Errorf("a lease of %v", l.renewalTime())
	}
	if l.recordLatency(5 * time.Millisecond); l.patience() != l.Lasts/2 {
		t.Errorf("waits %v for an answer once it is back", l.patience())
	}
}
