package calendar

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

var start = time.Date(2026, 11, 23, 0, 0, 0, 0, time.UTC)

func hour(n int) time.Time { return start.Add(time.Duration(n) * time.Hour) }

// TestAsBruteForce books, changes and takes back at random, within 24 hours and
// three links, and compares what the calendar says with a look at each hour.
func TestAsBruteForce(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 3))
		var c Calendar
		all := map[string]Booking{}
		span := func() (from, until time.Time) {
			a, b := r.IntN(24), 1+r.IntN(24)
			if a >= b {
				a, b = b-1, a+1
			}
			if from = hour(a); r.IntN(6) == 0 {
				from = time.Time{}
			}
			if until = hour(b); r.IntN(6) == 0 {
				until = time.Time{}
			}
			return from, until
		}
		in := func(b Booking, at time.Time) bool {
			return (b.From.IsZero() || !at.Before(b.From)) && (b.Until.IsZero() || at.Before(b.Until))
		}
		for range 60 {
			name := fmt.Sprint(r.IntN(12))
			if r.IntN(3) == 0 {
				if _, there := all[name]; c.Remove(name) != there {
					t.Fatalf("seed %d: booking %s", seed, name)
				}
				delete(all, name)
				continue
			}
			b := Booking{Name: name, Kbps: uint64(1 + r.IntN(5))}
			b.From, b.Until = span()
			for _, l := range []string{"a", "b", "c"} {
				if r.IntN(2) == 0 {
					b.Links = append(b.Links, l)
				}
			}
			peak := func(link string, from, until time.Time, but string) (most uint64, first time.Time) {
				first = from
				for h := -1; h <= 48; h++ { // every time at which something may begin
					at := hour(h)
					if !in(Booking{From: from, Until: until}, at) && !at.Equal(from) {
						continue
					}
					var now uint64
					for _, o := range all {
						if o.Name != but && slices.Contains(o.Links, link) && in(o, at) {
							now += o.Kbps
						}
					}
					if now > most {
						most, first = now, at
					}
				}
				return most, first
			}
			var lacking []string
			for _, l := range b.Links {
				most, first := peak(l, b.From, b.Until, name)
				got, at := c.Peak(l, b.From, b.Until, name)
				if got != most {
					t.Fatalf("seed %d: %d kbit/s of %s are booked between %v and %v, want %d", seed, got, l, b.From, b.Until, most)
				}
				if most > 0 && !b.From.IsZero() && !at.Equal(first) {
					t.Fatalf("seed %d: the peak is at %v, want %v", seed, at, first)
				}
				if most+b.Kbps > 12 {
					lacking = append(lacking, l)
				}
			}
			if got := c.Lacking(b, func(string) uint64 { return 12 }); !slices.Equal(got, lacking) {
				t.Fatalf("seed %d: lacking %v, want %v", seed, got, lacking)
			}
			if len(lacking) == 0 {
				c.Set(b)
				all[name] = b
			}
			after := hour(r.IntN(25))
			var next time.Time
			for _, o := range all {
				for _, at := range []time.Time{o.From, o.Until} {
					if at.After(after) && (next.IsZero() || at.Before(next)) {
						next = at
					}
				}
			}
			if got := c.Next(after); !got.Equal(next) {
				t.Fatalf("seed %d: next %v, want %v", seed, got, next)
			}
		}
		for name := range all {
			c.Remove(name)
		}
		if len(c.byName) != 0 || len(c.byLink) != 0 {
			t.Fatalf("seed %d: left over: %v", seed, c.byLink)
		}
	}
}

// TestCheck: a span has some time in it.
func TestCheck(t *testing.T) {
	for _, test := range []struct {
		from, until time.Time
		ok          bool
	}{
		{time.Time{}, time.Time{}, true}, {hour(1), time.Time{}, true}, {time.Time{}, hour(1), true}, {hour(1), hour(2), true},
		{hour(1), hour(1), false}, {hour(2), hour(1), false},
	} {
		if err := Check(test.from, test.until); (err == nil) != test.ok {
			t.Errorf("%v until %v: %v", test.from, test.until, err)
		}
	}
}

// TestNeverMoreThanThereIs: an amount that does not fit a number is not booked.
func TestNeverMoreThanThereIs(t *testing.T) {
	var c Calendar
	c.Set(Booking{Name: "a", Links: []string{"l"}, Kbps: 5})
	if got := c.Lacking(Booking{Name: "b", Links: []string{"l"}, Kbps: ^uint64(0) - 1}, func(string) uint64 { return 10 }); len(got) != 1 {
		t.Error("more than all is booked")
	}
}
