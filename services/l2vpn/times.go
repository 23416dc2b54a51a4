package l2vpn

import (
	"fmt"
	"time"

	"github.com/weft-sdn/weft/services/l2vpn/calendar"
)

// A phase says whether the time of a circuit has come. Outside of it a circuit carries
// nothing and wants no tunnels; its ends, numbers and history it keeps.
type phase int

const (
	inForce phase = iota
	waits         // for its beginning
	ended
)

// readTimes reads when a circuit begins and ends, and writes both as UTC.
func (c *circuit) readTimes() error {
	for _, t := range []struct {
		key  string
		text *string
		at   *time.Time
	}{{"from", &c.From, &c.from}, {"until", &c.Until, &c.until}} {
		if *t.text == "" {
			continue
		}
		at, err := time.Parse(time.RFC3339, *t.text)
		if err != nil || at.UTC().Year() < 1970 || at.UTC().Year() > 9999 {
			return fmt.Errorf("%s %.40q: want a time as RFC 3339 has it, such as 2026-12-01T08:00:00Z", t.key, *t.text)
		}
		*t.at = at.UTC().Truncate(time.Second)
		*t.text = t.at.Format(time.RFC3339)
	}
	return calendar.Check(c.from, c.until)
}

// phaseAt returns the phase of a circuit at a time.
func (c *circuit) phaseAt(now time.Time) phase {
	switch {
	case !c.until.IsZero() && !now.Before(c.until):
		return ended
	case now.Before(c.from):
		return waits
	}
	return inForce
}

// over reports whether a circuit would have ended before it is made or changed;
// old is the one before, nil if it is new.
func (c *circuit) over(old *circuit, now time.Time) bool {
	return c.phaseAt(now) == ended && (old == nil || old.Until != c.Until)
}

// idle returns the state of a circuit whose time it is not; an empty one if it is.
func (s *status) idle() (state, reason string) {
	switch s.phase {
	case waits:
		reason = "begins " + s.circuit.From
		if c := s.circuit; c.RateKbps > 0 && len(c.Planned) == 0 && !c.local() {
			reason += ", without its rate booked, as there was no path"
		}
		return "scheduled", reason
	case ended:
		return "down", "ended " + s.circuit.Until
	}
	return "", ""
}

// turn lets the circuits and loops begin and end whose time has come, and returns when
// the next one does; zero if none will.
func (b *store) turn() (next time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.now()
	for name := range b.timed {
		s := b.status[name]
		if p := s.circuit.phaseAt(now); p != s.phase {
			b.pass(s, p)
		}
		if l := s.circuit.loopsAt(now); l != s.looped {
			s.looped = l
			b.again(s)
			b.assess(s)
		}
		for _, at := range []time.Time{s.circuit.from, s.circuit.until, s.circuit.loopUntil} {
			if at.After(now) && (next.IsZero() || at.Before(next)) {
				next = at
			}
		}
	}
	return next
}

// pass puts a circuit into another phase. It is called with mu held.
func (b *store) pass(s *status, p phase) {
	if s.lan != nil {
		b.indexTrees(s, false)
		s.phase = p
		b.indexTrees(s, true)
	} else {
		b.wish(s.circuit, b.tunnelsOf(s.circuit), false)
		s.phase = p
		b.wish(s.circuit, b.tunnelsOf(s.circuit), true)
	}
	b.again(s)
	b.assess(s)
	b.kick()
}
