package mastership

import (
	"container/heap"
	"math/rand/v2"
	"testing"
	"time"
)

// shelf is a store for leases without time: a value, and how often it was
// written.
type shelf struct {
	t   Tenure
	rev uint64
}

func (s *shelf) swap(t Tenure, over uint64) (uint64, bool) {
	if over != s.rev {
		return 0, false
	}
	s.t, s.rev = t, s.rev+1
	return s.rev, true
}

// at is a time of the tests' clock.
func at(ms int) time.Time { return time.Unix(0, 0).Add(time.Duration(ms) * time.Millisecond) }

func leaseOf(name string, place int) *lease {
	return &lease{Terms: Terms{Lasts: 600 * time.Millisecond, Renew: 150 * time.Millisecond, Place: place}, self: Tenure{Holder: name, Run: name}}
}

// settle does all that a lease wants done now, and returns for how long it has
// nothing to do.
func settle(l *lease, s *shelf, now time.Time) time.Duration {
	for {
		do, wait := l.next(now, 50*time.Millisecond)
		switch {
		case wait > 0 || do == actWait:
			return wait
		case do == actRead:
			l.recordRead(now, s.t, s.rev)
		default:
			t, over := l.wantedTenure(100)
			if rev, done := s.swap(t, over); done {
				l.recordWrite(now, now, t, rev)
			} else {
				l.recordRefusal()
			}
		}
	}
}

// look has a lease read the store.
func look(l *lease, s *shelf, now time.Time) {
	l.recordRead(now, s.t, s.rev)
	settle(l, s, now)
}

func TestLeaseIsTakenRenewedAndGivenBack(t *testing.T) {
	s := &shelf{}
	a, b := leaseOf("a", 0), leaseOf("b", 1)
	settle(b, s, at(0))
	settle(a, s, at(1))
	if !a.isHeld(at(1)) || b.isHeld(at(1)) || a.epoch != 100 {
		t.Fatalf("at the start the first in place is master: %+v %+v", a, b)
	}
	settle(a, s, at(151))
	if !a.isHeld(at(600)) || a.isHeld(at(151+600)) {
		t.Error("a renewal lasts from when it was sent, and no longer")
	}
	s.t.Released = true
	s.rev++
	look(b, s, at(200))
	if !b.isHeld(at(201)) || b.epoch != 101 {
		t.Errorf("what was given back is taken at once, under the next epoch: %+v", b)
	}
}

func TestLeaseOfADeadMaster(t *testing.T) {
	s := &shelf{}
	a, b, c := leaseOf("a", 0), leaseOf("b", 1), leaseOf("c", 2)
	settle(a, s, at(0))
	look(b, s, at(10))
	look(c, s, at(10))
	for ms := 50; ms < 610; ms += 50 {
		look(b, s, at(ms))
		look(c, s, at(ms))
		if b.epoch != 0 || c.epoch != 0 {
			t.Fatalf("taken after %d ms, while it may be held", ms)
		}
	}
	// Both want it at the same moment, having read the same.
	_, overB := b.wantedTenure(100)
	tb, _ := b.wantedTenure(100)
	tc, overC := c.wantedTenure(100)
	revB, first := s.swap(tb, overB)
	_, second := s.swap(tc, overC)
	if !first || second {
		t.Fatal("of two that race one wins")
	}
	b.recordWrite(at(611), at(612), tb, revB)
	c.recordRefusal()
	settle(c, s, at(613))
	if !b.isHeld(at(620)) || c.isHeld(at(620)) {
		t.Error("whoever has lost the race stands by")
	}
	// The dead one wakes up.
	if a.isHeld(at(620)) {
		t.Error("the former master believes that it still is, with its lease over")
	}
	settle(a, s, at(620))
	if !a.lost {
		t.Error("the former master has not noticed that it is not any more")
	}
}

func TestLeaseAfterAWriteOfUnknownFate(t *testing.T) {
	for _, done := range []bool{false, true} {
		s := &shelf{}
		a := leaseOf("a", 0)
		settle(a, s, at(0))
		w, over := a.wantedTenure(100) // sent at 150, never answered
		if done {
			s.swap(w, over)
		}
		a.recordRefusal()
		if a.isHeld(at(540)) {
			t.Error("a renewal of which nothing is known prolongs nothing")
		}
		settle(a, s, at(700))
		if !a.isHeld(at(710)) || a.epoch != 100 || a.lost {
			t.Errorf("nobody else has taken it, so the master goes on under its epoch: %+v", a)
		}
	}
	// The same of one that begins.
	s := &shelf{}
	b := leaseOf("b", 0)
	b.recordRead(at(0), Tenure{}, 0)
	w, over := b.wantedTenure(100)
	s.swap(w, over)
	b.recordRefusal()
	settle(b, s, at(10))
	if !b.isHeld(at(20)) || b.epoch != 101 {
		t.Errorf("a take-over of unknown fate is made good: %+v", b)
	}
}

func TestLeaseWithoutStandby(t *testing.T) {
	s := &shelf{}
	a := leaseOf("a", 0)
	a.Renew = 0
	settle(a, s, at(0))
	if _, forever := a.heldUntil(); !forever || s.t.Lasts != 0 {
		t.Error("without a standby the mastership does not end by itself")
	}
	again := leaseOf("a", 0) // it died, and is started again
	again.Renew, again.self.Run = 0, "later"
	settle(again, s, at(1))
	if again.epoch != 101 {
		t.Errorf("without a standby nobody is waited for: epoch %d", again.epoch)
	}
	b := leaseOf("b", 1) // a plan gives it a standby
	look(b, s, at(100))
	again.Renew = 150 * time.Millisecond
	settle(again, s, at(200))
	look(b, s, at(210))
	if b.epoch != 0 || s.t.Lasts != 600 || again.epoch != 101 {
		t.Errorf("the master goes on with a lease: %+v", s.t)
	}
}

func TestLeaseRaised(t *testing.T) {
	s := &shelf{}
	a := leaseOf("a", 0)
	settle(a, s, at(0))
	a.floor = 5000
	settle(a, s, at(1))
	if a.epoch != 5000 || s.t.Epoch != 5000 {
		t.Errorf("a higher epoch is had of the store: %d", a.epoch)
	}
	s.t, s.rev = Tenure{Run: "b", Epoch: 5001, Lasts: 600}, s.rev+1
	a.floor = 6000
	settle(a, s, at(2))
	if !a.lost || s.t.Epoch != 5001 {
		t.Error("whoever has lost the mastership has no higher epoch")
	}
}

// event is something that happens in the simulation at a time.
type event struct {
	at time.Duration
	do func()
}

type events []event

func (e events) Len() int           { return len(e) }
func (e events) Less(i, k int) bool { return e[i].at < e[k].at }
func (e events) Swap(i, k int)      { e[i], e[k] = e[k], e[i] }
func (e *events) Push(x any)        { *e = append(*e, x.(event)) }
func (e *events) Pop() any {
	old := *e
	x := old[len(old)-1]
	*e = old[:len(old)-1]
	return x
}

// TestLeaseNeverHeldTwice simulates processes that sleep, die, and lose the
// store, with messages to the store that are late, lost on the way there or on
// the way back: never do two hold the mastership at once, and when all is well
// again one does.
func TestLeaseNeverHeldTwice(t *testing.T) {
	taken, pledges := 0, 0
	const seeds = 200
	for seed := range uint64(seeds) {
		n, p := simulate(t, seed)
		taken, pledges = taken+n, pledges+p
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
	if taken < 3*seeds || pledges < 5*seeds {
		t.Errorf("the mastership was taken %d times, and prolonged by the others %d times", taken, pledges)
	}
}

type actor struct {
	l      *lease
	asleep time.Duration // until then
	cut    time.Duration // from the store, until then
	run    int
	call   int // the request that is waited for; answers to others are late
}

// simulate returns how often the mastership was taken, and prolonged by promises.
func simulate(t *testing.T, seed uint64) (taken, pledges int) {
	r := rand.New(rand.NewPCG(seed, 1))
	var q events
	now := time.Duration(0)
	clock := func() time.Time { return time.Unix(1000, 0).Add(now) }
	later := func(d time.Duration, do func()) { heap.Push(&q, event{now + d, do}) }
	const calm = 40 * time.Second
	store := &shelf{}
	actors := make([]*actor, 3)
	last := uint64(0) // epoch of who was master last
	check := func() {
		holding := 0
		for _, a := range actors {
			if a.l.isHeld(clock()) {
				holding++
				if a.l.epoch < last {
					t.Errorf("seed %d, %v: master under epoch %d after %d", seed, now, a.l.epoch, last)
				}
				if a.l.epoch > last {
					last = a.l.epoch
					taken++
				}
			}
		}
		if holding > 1 {
			t.Errorf("seed %d, %v: %d masters", seed, now, holding)
		}
	}
	var step func(i int, a *actor)
	// awake runs do when the process is awake.
	var awake func(a *actor, do func())
	awake = func(a *actor, do func()) {
		if now < a.asleep {
			later(a.asleep-now, func() { awake(a, do) })
			return
		}
		do()
	}
	sluggish := time.Duration(0) // until then the store is slow
	trip := func() time.Duration {
		if now < min(calm, sluggish) {
			return time.Duration(r.IntN(400)) * time.Millisecond
		}
		if now < calm && r.IntN(20) == 0 {
			return time.Duration(r.IntN(900)) * time.Millisecond
		}
		return time.Duration(r.IntN(8000)) * time.Microsecond
	}
	request := func(i int, a *actor, l *lease, there func(), back func()) {
		a.call++
		call, run, sent := a.call, a.run, clock()
		current := func() bool { return a.call == call && a.run == run }
		lost := now < calm && (now < a.cut || r.IntN(40) == 0)
		if !lost || r.IntN(2) == 0 { // what is lost may have been done
			later(trip(), func() {
				there()
				if !lost {
					later(trip(), func() {
						awake(a, func() {
							if current() {
								a.call++
								l.recordLatency(clock().Sub(sent))
								back()
								step(i, a)
							}
						})
					})
				}
			})
		}
		later(l.patience(), func() {
			awake(a, func() {
				if current() {
					a.call++
					l.recordTimeout(clock().Sub(sent))
					step(i, a)
				}
			})
		})
	}
	step = func(i int, a *actor) {
		l, run := a.l, a.run
		if l.lost { // it is started again
			a.run++
			a.l = simulated(i, a.run)
			later(50*time.Millisecond, func() { awake(a, func() { step(i, a) }) })
			return
		}
		do, wait := l.next(clock(), 40*time.Millisecond)
		a.call++
		call := a.call
		later(wait, func() {
			awake(a, func() {
				if a.run != run || a.call != call {
					return
				}
				switch do {
				case actRead:
					var have Tenure
					var rev uint64
					request(i, a, l, func() { have, rev = store.t, store.rev }, func() { l.recordRead(clock(), have, rev) })
				case actWrite:
					w, over := l.wantedTenure(100)
					sent := clock()
					l.sends(sent, w)
					var rev uint64
					var done bool
					request(i, a, l, func() { rev, done = store.swap(w, over) }, func() {
						if done {
							l.recordWrite(sent, clock(), w, rev)
						} else {
							l.recordRefusal()
						}
					})
				default:
					step(i, a)
				}
			})
		})
	}
	// vouch asks the others to leave the mastership, as long as the store is late.
	var vouch func(a *actor)
	vouch = func(a *actor) {
		later(75*time.Millisecond, func() { awake(a, func() { vouch(a) }) })
		l := a.l
		if at, never := l.askAt(clock()); never || clock().Before(at) {
			return
		}
		asked, t, yes := clock(), l.have, 0
		for _, b := range actors {
			if b == a || now < calm && r.IntN(20) == 0 {
				continue
			}
			later(trip(), func() {
				awake(b, func() {
					if !b.l.pledge(clock(), t) {
						return
					}
					later(trip(), func() {
						awake(a, func() {
							if yes++; yes == len(actors)-1 && a.l == l {
								l.recordPledge(asked, clock(), t)
								pledges++
							}
						})
					})
				})
			})
		}
	}
	for i := range actors {
		a := &actor{l: simulated(i, 0)}
		actors[i] = a
		later(time.Duration(r.IntN(50))*time.Millisecond, func() { step(i, a) })
		later(0, func() { vouch(a) })
	}
	var trouble func()
	trouble = func() {
		if now > calm-4*time.Second {
			return
		}
		i := r.IntN(len(actors))
		a := actors[i]
		for k, x := range actors { // rather whoever is master
			if r.IntN(2) == 0 && x.l.isHeld(clock()) {
				i, a = k, x
			}
		}
		lasting := time.Duration(r.IntN(2500)) * time.Millisecond
		switch r.IntN(5) {
		case 4:
			sluggish = now + lasting
		case 3: // the store is away
			for _, x := range actors {
				x.cut = now + lasting
			}
		case 0:
			a.asleep = now + lasting
		case 1:
			a.cut = now + lasting
		case 2: // killed
			a.run++
			a.l = simulated(i, a.run)
			later(lasting/4, func() { step(i, a) })
		}
		later(time.Duration(r.IntN(1500))*time.Millisecond, trouble)
	}
	later(time.Second, trouble)
	for len(q) > 0 && now < calm+12*time.Second {
		e := heap.Pop(&q).(event)
		now = e.at
		e.do()
		check()
	}
	holding := 0
	for _, a := range actors {
		if a.l.isHeld(clock()) {
			holding++
		}
	}
	if holding != 1 {
		t.Errorf("seed %d: in the end %d are master; it was taken %d times, and prolonged by the others %d times", seed, holding, taken, pledges)
	}
	return taken, pledges
}
