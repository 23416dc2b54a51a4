// Package calendar books bandwidth by time: how much of what links carry is
// promised when. It is plain data and knows no clock: the caller passes times.
package calendar

import (
	"fmt"
	"slices"
	"time"
)

// A Booking is an amount of bandwidth of some links from a time until another.
type Booking struct {
	Name        string
	Links       []string // each once
	Kbps        uint64
	From, Until time.Time // zero: from ever, for ever
}

// overlaps reports whether a booking is in force at some time of a span.
func (b *Booking) overlaps(from, until time.Time) bool {
	return (until.IsZero() || b.From.IsZero() || b.From.Before(until)) && (b.Until.IsZero() || from.IsZero() || from.Before(b.Until))
}

// A Calendar is bookings, by name and by link. The zero Calendar is empty.
type Calendar struct {
	byName map[string]*Booking
	byLink map[string][]*Booking // in no order
}

// Check returns an error if a span has no time in it.
func Check(from, until time.Time) error {
	if !until.IsZero() && !from.Before(until) {
		return fmt.Errorf("from %s until %s: it would end before it begins", from.UTC().Format(time.RFC3339), until.UTC().Format(time.RFC3339))
	}
	return nil
}

// Set books, in place of the booking of that name if there is one.
func (c *Calendar) Set(b Booking) {
	c.Remove(b.Name)
	if c.byName == nil {
		c.byName, c.byLink = map[string]*Booking{}, map[string][]*Booking{}
	}
	b.Links = slices.Clone(b.Links)
	c.byName[b.Name] = &b
	for _, l := range b.Links {
		c.byLink[l] = append(c.byLink[l], &b)
	}
}

// Remove takes back a booking; it reports whether there was one.
func (c *Calendar) Remove(name string) bool {
	b := c.byName[name]
	if b == nil {
		return false
	}
	delete(c.byName, name)
	for _, l := range b.Links {
		list := c.byLink[l]
		i := slices.Index(list, b)
		list[i] = list[len(list)-1]
		if list = list[:len(list)-1]; len(list) == 0 {
			delete(c.byLink, l)
		} else {
			c.byLink[l] = list
		}
	}
	return true
}

// Peak returns the most that is booked of a link at one time of a span, and the
// first time of that; but names a booking that does not count.
func (c *Calendar) Peak(link string, from, until time.Time, but string) (kbps uint64, at time.Time) {
	type step struct {
		at    time.Time
		begin bool
		kbps  uint64
	}
	var steps []step
	var now uint64 // when the span begins
	for _, b := range c.byLink[link] {
		if b.Name == but || !b.overlaps(from, until) {
			continue
		}
		if b.From.IsZero() || !from.IsZero() && !from.Before(b.From) {
			now += b.Kbps
		} else {
			steps = append(steps, step{b.From, true, b.Kbps})
		}
		if !b.Until.IsZero() && (until.IsZero() || b.Until.Before(until)) {
			steps = append(steps, step{b.Until, false, b.Kbps})
		}
	}
	slices.SortFunc(steps, func(a, b step) int {
		if d := a.at.Compare(b.at); d != 0 || a.begin == b.begin {
			return d
		}
		if a.begin { // one may begin when another ends
			return 1
		}
		return -1
	})
	kbps, at = now, from
	for _, s := range steps {
		if !s.begin {
			now -= s.kbps
		} else if now += s.kbps; now > kbps {
			kbps, at = now, s.at
		}
	}
	return kbps, at
}

// Lacking returns the links of which a booking cannot be had: capacity says how
// much a link carries.
func (c *Calendar) Lacking(b Booking, capacity func(link string) uint64) (links []string) {
	for _, l := range b.Links {
		if kbps, _ := c.Peak(l, b.From, b.Until, b.Name); kbps+b.Kbps > capacity(l) || kbps+b.Kbps < kbps {
			links = append(links, l)
		}
	}
	return links
}

// Next returns the first time after one at which a booking begins or ends; zero if
// there is none.
func (c *Calendar) Next(after time.Time) (next time.Time) {
	for _, b := range c.byName {
		for _, at := range []time.Time{b.From, b.Until} {
			if at.After(after) && (next.IsZero() || at.Before(next)) {
				next = at
			}
		}
	}
	return next
}
