package l2vpn

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/weft-sdn/weft/flow"
)

// The times and bounds of learning.
const (
	answerTime = 30 * time.Second // in which a sender that is asked for has to be heard
	flapTime   = 10 * time.Second // in which an address that moves more often than flapMoves flaps
	flapMoves  = 5
	holdTime   = 30 * time.Second // that an address which flapped stays where it was
	blockTime  = time.Minute      // that an end behind which there is a loop is shut
	learnRate  = 200              // new senders of an end in paceTime; with more, it is quiet
	paceTime   = time.Second
	quietTime  = 10 * time.Second // that nothing is learnt of an end
)

// A lan is what has been learnt of the senders of a vpls. Who is where outlives a restart
// (keptmacs.go); what is held, blocked or quiet does not.
type lan struct {
	full    func(at end, now time.Time) // is called when an end gets the last address that it may have; may be nil
	most    int                         // addresses of an end
	age     time.Duration               // after which a sender is asked for
	known   map[flow.MAC]*sender
	count   map[end]int
	blocked map[end]shut
	pace    map[end]*pace
}

// A sender is where an address is. While it is asked for, its next frame is sent
// to the controller as that of an unknown one.
type sender struct {
	at, home end // home: where it was before it began to move
	heard    time.Time
	asked    bool
	moves    int
	moved    uint32    // how often since it was learnt
	since    time.Time // of the first of moves
	held     time.Time // until then it stays
}

// shut is until when an end is blocked, and why.
type shut struct {
	until time.Time
	why   string
}

// pace is how often new senders of an end are heard.
type pace struct {
	since time.Time
	heard int
	quiet time.Time // until then none is heard
}

func newLAN(most int, age time.Duration) *lan {
	return &lan{most: most, age: age, known: map[flow.MAC]*sender{}, count: map[end]int{}, blocked: map[end]shut{}, pace: map[end]*pace{}}
}

// learn follows that a frame of an address has come in at an end where it was not
// known. It reports whether entries change by it.
func (l *lan) learn(mac flow.MAC, at end, now time.Time) bool {
	if mac.Multicast() || mac == (flow.MAC{}) {
		return false
	}
	if _, is := l.blocked[at]; is {
		return false
	}
	s := l.known[mac]
	if s != nil && s.at == at { // the switch does not know yet that it is known, or it was asked for
		s.heard = now
		was := s.asked
		s.asked = false
		return was
	}
	if p := l.paced(at, now); now.Before(p.quiet) {
		return false
	} else if p.heard++; p.heard > learnRate {
		p.quiet = now.Add(quietTime)
		return true
	}
	switch {
	case s != nil && now.Before(s.held):
		return false
	case s != nil:
		return l.move(mac, s, at, now)
	case l.count[at] >= l.most:
		return false
	}
	l.known[mac] = &sender{at: at, home: at, heard: now}
	if l.count[at]++; l.count[at] >= l.most && l.full != nil {
		l.full(at, now)
	}
	return true
}

// paced returns how often an end has been heard in this second.
func (l *lan) paced(at end, now time.Time) *pace {
	p := l.pace[at]
	if p == nil || now.Sub(p.since) >= paceTime && !now.Before(p.quiet) {
		p = &pace{since: now}
		l.pace[at] = p
	}
	return p
}

// move follows that an address is heard at another end. One that moves too often
// goes back to where it was first, and the end that is not that one is blocked: most
// likely there is a loop behind it.
func (l *lan) move(mac flow.MAC, s *sender, at end, now time.Time) bool {
	if now.Sub(s.since) > flapTime {
		s.moves, s.since, s.home = 0, now, s.at
	}
	if s.moves++; s.moves <= flapMoves {
		if l.count[at] >= l.most {
			return false
		}
		l.place(s, at)
		s.heard, s.asked = now, false
		return true
	}
	culprit := at
	if at == s.home {
		culprit = s.at
	}
	why := fmt.Sprintf("address %v is heard at %v and at %v in turn: a loop behind them?", mac, s.home, culprit)
	l.place(s, s.home)
	s.moves, s.held, s.heard, s.asked = 0, now.Add(holdTime), now, false
	l.block(culprit, why, now)
	return true
}

// place has an address be at an end.
func (l *lan) place(s *sender, at end) {
	if l.uncount(s.at); s.at != at {
		s.moved++
	}
	s.at = at
	l.count[at]++
}

func (l *lan) uncount(at end) {
	if l.count[at]--; l.count[at] <= 0 {
		delete(l.count, at)
	}
}

// block shuts an end for a time.
func (l *lan) block(at end, why string, now time.Time) {
	l.forget(at)
	l.blocked[at] = shut{now.Add(blockTime), why}
}

// forget forgets the addresses of an end. It reports whether there were any.
func (l *lan) forget(at end) bool {
	n := len(l.known)
	maps.DeleteFunc(l.known, func(_ flow.MAC, s *sender) bool { return s.at == at })
	delete(l.count, at)
	return len(l.known) < n
}

// keep forgets all ends but these, and reports whether it knew others.
func (l *lan) keep(ends []end) (changed bool) {
	gone := map[end]bool{}
	for at := range l.count {
		gone[at] = !slices.Contains(ends, at)
	}
	for at := range l.blocked {
		gone[at] = !slices.Contains(ends, at)
	}
	for at, is := range gone {
		if is {
			l.forget(at)
			delete(l.blocked, at)
			delete(l.pace, at)
			changed = true
		}
	}
	return changed
}

// pass lets time pass: senders that have not been heard for long are asked for,
// and forgotten without an answer; ends are opened again. It reports whether
// entries change by it.
func (l *lan) pass(now time.Time) (changed bool) {
	for mac, s := range l.known {
		old := now.Sub(s.heard)
		switch {
		case old > l.age+answerTime:
			l.uncount(s.at)
			delete(l.known, mac)
			changed = true
		case old > l.age && !s.asked:
			s.asked, changed = true, true
		}
	}
	for at, b := range l.blocked {
		if !now.Before(b.until) {
			delete(l.blocked, at)
			changed = true
		}
	}
	for at, p := range l.pace {
		if now.Sub(p.since) >= paceTime && !now.Before(p.quiet) {
			changed = changed || !p.quiet.IsZero()
			delete(l.pace, at)
		}
	}
	return changed
}

// hears reports whether unknown senders of an end are sent to the controller.
func (l *lan) hears(at end) bool {
	p := l.pace[at]
	return l.count[at] < l.most && (p == nil || p.quiet.IsZero())
}

// macs returns the addresses, in order.
func (l *lan) macs() []flow.MAC {
	return slices.SortedFunc(maps.Keys(l.known), func(a, b flow.MAC) int { return slices.Compare(a[:], b[:]) })
}
