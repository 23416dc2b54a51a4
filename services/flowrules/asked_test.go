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
