package flowrules

import (
	"testing"
	"time"

	"github.com/weft-sdn/weft/flow"
)

// TestAskedDuringARead: what is asked for, or suspected, while a read is under way is read
// next, however long that read took: entries that use groups wait for it.
func TestAskedDuringARead(t *testing.T) {
	for name, ask := range map[string]func(*worker, time.Time){
		"observed": func(w *worker, now time.Time) { w.ask(only(flow.OwnerLabels), now) },
		"a group suspected": func(w *worker, now time.Time) {
			w.ledger.rereadObjects(newRule(&flow.Entry{Apply: []flow.Action{flow.ToGroup(testGroup)}}, now), now)
		},
	} {
		t.Run(name, func(t *testing.T) {
			l, now := connected(nil, newReading(nil)), time.Now()
			key := objectKey{groupObject, testGroup}
			l.objects.wanted[key] = &resource{key: key, progress: progress{state: confirmed, since: now}}
			w := newWorker(l, func(*worker) {})
			l.readDue = now
			s := l.next(now)
			if s.kind != read {
				t.Fatalf("step %v, want a read", s.kind)
			}
			ask(w, now)
			const took = 5 * time.Second
			now = now.Add(took)
			l.read(newReading(nil), s.asked, now.Add(-took), now)
			l.again(took, 1, 0, now)
			if s := l.next(now); s.kind != read || s.asked == 0 {
				t.Errorf("the next step is %v, until %v", s.kind, s.until.Sub(now))
			}
			l.read(newReading(nil), l.asked, now, now)
			l.again(took, 1, 0, now)
			if s := l.next(now); s.kind == read {
				t.Error("it is read again, though nobody asks")
			}
		})
	}
}

// TestSlowReads: the time of a read makes the next one later, but a switch that once took
// long is not left alone for more than a few intervals.
func TestSlowReads(t *testing.T) {
	for _, c := range []struct {
		interval, took time.Duration
		switches       int
		lacked         bool // the reading lacked entries
		want           time.Duration
	}{
		{time.Minute, time.Millisecond, 1, false, time.Minute},
		{time.Minute, 2 * time.Second, 1, false, 200 * time.Second},
		{time.Minute, 30 * time.Second, 1, false, 5 * time.Minute},
		{time.Minute, 30 * time.Second, 10_000, false, 10 * time.Minute},
		{time.Minute, time.Millisecond, 1, true, 7 * time.Second},
		{time.Minute, 30 * time.Second, 1, true, 5 * time.Minute},
		{2 * time.Second, 30 * time.Second, 1, false, 10 * time.Second},
	} {
		l, now := connected(nil, newReading(nil)), time.Now()
		l.cfg.VerifyInterval, l.soon = c.interval, c.lacked
		l.asked = 0
		l.again(c.took, c.switches, 0.5, now)
		if got := l.readDue.Sub(now).Round(time.Millisecond); got != c.want {
			t.Errorf("%+v: the next read is in %v", c, got)
		}
	}
}
