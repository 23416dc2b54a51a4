package local

import (
	"sync"
	"sync/atomic"
	"time"
)

// queueBound is how many events may wait for one service before its publishers
// wait, too.
const queueBound = 65536

// inboxBatch is how many events deliver takes from an inbox at a time.
const inboxBatch = 64

// idleRing is the size of the largest ring that an empty inbox keeps.
const idleRing = 1024

// delivery is one event for one service.
type delivery struct {
	to        *subscription
	event     any
	tally     *Tally // nil for none
	published int64  // nanoseconds since 1970; 0 if it is not measured
}

// counted counts a delivery that has been handled.
func (d *delivery) counted() {
	if d.tally == nil {
		return
	}
	d.tally.Add(1)
	if d.published != 0 {
		d.tally.Took(time.Duration(time.Now().UnixNano()-d.published), 1)
	}
}

// inbox is the queue of events for one service, with many publishers and one
// consumer. It keeps the order of the put calls.
type inbox struct {
	pending atomic.Int64 // events published to the service and not handled yet

	mu      sync.Mutex // guards what follows
	ring    []delivery // its length is a power of two
	head, n int
	waiting int // publishers
	closed  bool
	filled  sync.Cond // not empty any more, or closed
	freed   sync.Cond // there is room again, or closed
}

func newInbox() *inbox {
	b := &inbox{}
	b.filled.L, b.freed.L = &b.mu, &b.mu
	return b
}

// announce counts an event before put; retract uncounts it if put is never
// called.
func (b *inbox) announce() { b.pending.Add(1) }
func (b *inbox) retract()  { b.pending.Add(-1) }

// put appends an announced event; it waits for room. It calls slow if that
// takes longer than a second. It returns false when the inbox is closed.
func (b *inbox) put(d delivery, slow func()) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.n >= queueBound && !b.closed {
		timer := time.AfterFunc(time.Second, slow)
		b.waiting++
		for b.n >= queueBound && !b.closed {
			b.freed.Wait()
		}
		b.waiting--
		timer.Stop()
	}
	return b.append(d)
}

// putNow appends an announced event whether or not there is room: the retained
// events of a new subscription, before anybody reads the inbox.
func (b *inbox) putNow(d delivery) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.append(d)
}

// append appends an event. The caller holds the lock.
func (b *inbox) append(d delivery) bool {
	if b.closed {
		b.retract()
		return false
	}
	if b.n == len(b.ring) {
		b.grow()
	}
	b.ring[(b.head+b.n)&(len(b.ring)-1)] = d
	b.n++
	if b.n == 1 {
		b.filled.Signal()
	}
	return true
}

func (b *inbox) grow() {
	ring := make([]delivery, max(64, 2*len(b.ring)))
	n := copy(ring, b.ring[b.head:])
	copy(ring[n:], b.ring[:b.head])
	b.ring, b.head = ring, 0
}

// take waits for events and moves up to a batch of them to out. It returns 0
// when the inbox is closed, even if it is not empty.
func (b *inbox) take(out *[inboxBatch]delivery) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	for b.n == 0 && !b.closed {
		if len(b.ring) > idleRing {
			b.ring, b.head = nil, 0
		}
		b.filled.Wait()
	}
	if b.closed {
		return 0
	}
	n := min(b.n, inboxBatch)
	for i := range n {
		at := (b.head + i) & (len(b.ring) - 1)
		out[i], b.ring[at] = b.ring[at], delivery{}
	}
	b.head = (b.head + n) & (len(b.ring) - 1)
	b.n -= n
	if b.waiting > 0 {
		b.freed.Broadcast()
	}
	return n
}

// handled counts an event as handled.
func (b *inbox) handled() { b.pending.Add(-1) }

// close drops the queued events and releases all waiting goroutines.
func (b *inbox) close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	b.pending.Add(int64(-b.n))
	b.ring, b.head, b.n = nil, 0, 0
	b.filled.Broadcast()
	b.freed.Broadcast()
}
