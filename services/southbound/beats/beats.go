// Package beats asks switches for signs of life by a standing order: every
// switch gets an echo request (OpenFlow 1.3.5 §7.5.2) once per interval. The
// requests are encoded beforehand. Whoever handles packet-ins sends those that
// are due (Turn), and whoever writes to a switch takes its next one along
// (Beat.Join); a timer sends only what nobody else has sent. Answers are matched
// by a ring of the latest requests. It knows no sessions; session and the
// southbound import it.
package beats

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/internal/backoff"
)

// Order is a standing order for beats.
type Order struct {
	Interval  time.Duration // from one beat of a switch to its next
	Deadline  time.Duration // how long after it was due a beat may be answered; at most Interval
	LostAfter int           // how many beats in a row a switch misses before it is lost
}

// Bounds of an order.
const (
	intervalLeast = 10 * time.Millisecond
	intervalMost  = time.Second
	deadlineLeast = time.Millisecond
)

// check says what is wrong with an order.
func (o *Order) check() error {
	switch {
	case o.Interval < intervalLeast || o.Interval > intervalMost:
		return api.Errorf(codes.InvalidArgument, "interval_us: %v: want %v to %v", o.Interval, intervalLeast, intervalMost)
	case o.Deadline < deadlineLeast || o.Deadline > o.Interval:
		return api.Errorf(codes.InvalidArgument, "deadline_us: %v: want %v to the interval", o.Deadline, deadlineLeast)
	case o.LostAfter < 1:
		return api.Errorf(codes.InvalidArgument, "lost_after: %d: want at least 1", o.LostAfter)
	}
	return nil
}

// orderLasts is for how long an order counts if it is not given again: longer
// than it takes a process to be replaced.
const orderLasts = 10 * time.Second

// errLate is why a beat is missed that was due so long ago that it could not
// be answered in time.
var errLate = errors.New("the controller did not ask in time")

// Beats are the beats of all switches of a process.
type Beats struct {
	base    time.Time
	order   atomic.Pointer[Order] // nil: none
	next    atomic.Int64          // when there is something to do
	counts  counts
	retimed chan struct{} // holds one: next is earlier than it was

	mu      sync.Mutex // guards what follows, and the places of members
	until   int64      // when the order ends
	members map[*Beat]bool
	wheel   wheel
	sending hand
	judging hand // a deadline behind

	changes struct {
		mu   sync.Mutex // guards list
		list []*Beat
		bell chan struct{} // holds one: there are some
	}
}

// New returns beats without an order.
func New() *Beats {
	b := &Beats{base: time.Now(), retimed: make(chan struct{}, 1), members: map[*Beat]bool{}}
	b.counts.buckets = make([]bucket, len(api.BeatBounds)+1)
	b.changes.bell = make(chan struct{}, 1)
	b.next.Store(never)
	return b
}

// At returns a time as nanoseconds of a clock that is never set.
func (b *Beats) At(t time.Time) int64 { return int64(t.Sub(b.base)) }

// Ordered reports whether there is an order.
func (b *Beats) Ordered() bool { return b.order.Load() != nil }

// Add adds a switch that has connected. request is an encoded echo request.
func (b *Beats) Add(p Peer, name string, request []byte) *Beat {
	m := &Beat{of: b, peer: p, name: name, request: request, since: time.Now(), told: untold}
	m.soon.Store(never)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.members[m] = true
	if b.order.Load() != nil {
		if len(b.members) == 1 {
			b.restart()
		}
		b.wheel.add(m)
		b.plan()
		m.list()
	}
	return m
}

// Drop removes a switch that has gone for a reason.
func (b *Beats) Drop(m *Beat, reason string) {
	b.mu.Lock()
	if b.members[m] {
		delete(b.members, m)
		if b.order.Load() != nil {
			b.wheel.drop(m)
			b.plan()
		}
	}
	b.mu.Unlock()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.soon.Store(never)
	m.row, m.left = 0, reason
	m.become(away)
}

// Give gives an order, in place of the former one, or renews it.
func (b *Beats) Give(o Order) error {
	if err := o.check(); err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.until = b.At(time.Now()) + int64(orderLasts)
	old := b.order.Swap(&o)
	if old == nil || old.Interval != o.Interval {
		b.clearEarly()
		b.wheel = newWheel(o.Interval)
		for m := range b.members {
			b.wheel.add(m)
			m.list()
		}
		b.restart()
	}
	b.plan()
	return nil
}

// restart has the wheel turn from now on; mu is held.
func (b *Beats) restart() {
	b.sending = hand{start: b.At(time.Now())}
	b.judging = b.sending
}

// clearEarly cancels all early beats; mu is held.
func (b *Beats) clearEarly() {
	for m := range b.members {
		m.mu.Lock()
		m.soon.Store(never)
		m.joined = false
		m.mu.Unlock()
	}
}

// plan sets when there is something to do next; mu is held.
func (b *Beats) plan() {
	next, o := int64(never), b.order.Load()
	if o != nil {
		next = min(b.until, b.wheel.first(b.sending))
		if judging := b.wheel.first(b.judging); judging != never {
			next = min(next, judging+int64(o.Deadline))
		}
	}
	if next < b.next.Swap(next) {
		select {
		case b.retimed <- struct{}{}:
		default:
		}
	}
}

// Turn sends what is due, unless somebody else is doing so. With nothing due it
// costs one comparison.
func (b *Beats) Turn(now time.Time) {
	if at := b.At(now); at >= b.next.Load() && b.mu.TryLock() {
		b.runDue(at)
		b.mu.Unlock()
	}
}

// runDue sends the beats that are due and counts those that were missed; mu is held.
func (b *Beats) runDue(at int64) {
	o := b.order.Load()
	if o == nil {
		return
	}
	if at >= b.until {
		b.order.Store(nil)
		b.clearEarly()
		b.plan()
		return
	}
	if n := b.sending.skip(&b.wheel, at); n > 0 {
		b.judging.start += n * b.wheel.interval
		for m := range b.members {
			m.skip(uint64(n), at, o)
		}
	}
	for {
		judge, send := b.judging.due(&b.wheel)+int64(o.Deadline), b.sending.due(&b.wheel)
		switch {
		case judge <= min(send, at):
			for _, m := range b.wheel.slots[b.judging.slot] {
				m.mu.Lock()
				m.countMissed(at, o)
				m.mu.Unlock()
			}
			b.judging.next(&b.wheel)
		case send <= at:
			for _, m := range b.wheel.slots[b.sending.slot] {
				m.sendDue(send, send+b.wheel.interval, at, o)
			}
			b.sending.next(&b.wheel)
		default:
			b.plan()
			return
		}
	}
}

// Run sends what nobody else sends, until ctx ends.
func (b *Beats) Run(ctx context.Context) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		next := b.next.Load()
		timer.Reset(time.Duration(min(next-b.At(time.Now()), int64(time.Hour))))
		select {
		case <-ctx.Done():
			return nil
		case <-b.retimed:
		case <-timer.C:
			b.mu.Lock()
			b.runDue(b.At(time.Now()))
			b.mu.Unlock()
		}
	}
}

// changed adds a switch to those whose state has changed.
func (b *Beats) changed(m *Beat) {
	b.changes.mu.Lock()
	b.changes.list = append(b.changes.list, m)
	b.changes.mu.Unlock()
	select {
	case b.changes.bell <- struct{}{}:
	default:
	}
}

// Counts returns the beats of all switches so far.
func (b *Beats) Counts() *api.BeatCounts {
	c := b.counts.read()
	c.Since = uint64(b.base.UnixNano())
	return c
}

// changeEvery is how often changes are reported, at most.
const changeEvery = 20 * time.Millisecond

// Report reports changes until ctx ends. A state that has changed back before
// it was reported is not.
func (b *Beats) Report(ctx context.Context, changed func(*api.BeatChanged)) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-b.changes.bell:
		}
		b.ReportChanges(changed)
		if backoff.Sleep(ctx, changeEvery) != nil {
			return nil
		}
	}
}

// ReportChanges reports the changes that were not reported yet.
func (b *Beats) ReportChanges(changed func(*api.BeatChanged)) {
	b.changes.mu.Lock()
	list := b.changes.list
	b.changes.list = nil
	b.changes.mu.Unlock()
	for _, m := range list {
		if e := m.changeEvent(); e != nil {
			changed(e)
		}
	}
}
