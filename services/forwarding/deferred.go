package forwarding

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
)

// Bounds on the packets that wait for a path, the same as for packets that wait
// for a stage in another process.
const (
	deferredMost    = 1 << 16
	deferredOctets  = 16 << 20
	deferredFor     = 10 * time.Second
	deferredWorkers = 64 // pairs connected at once
)

// deferral keeps the packets that need a path from another process, so that the
// stage does not wait. Its own goroutines connect their pairs: several at once,
// the packets of each in order.
type deferral struct {
	find finder
	send func(*flow.Decision) (*api.ApplyResult, error)

	packets atomic.Int64 // waiting or being connected

	mu      sync.Mutex          // guards all below
	pairs   map[pair][]deferred // waiting packets; includes the pairs being connected
	queue   []pair              // pairs that no goroutine is connecting
	octets  int
	running int // goroutines
	closed  bool
	working sync.WaitGroup
}

// deferred is a packet that waits.
type deferred struct {
	in      flow.PacketIn
	rewrite []flow.Action
}

// hasWaiting reports whether packets of a pair are waiting.
func (q *deferral) hasWaiting(p pair) bool {
	if q.packets.Load() == 0 {
		return false
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	_, waits := q.pairs[p]
	return waits
}

// drain lets waiting packets be connected and refuses new ones; after a second
// it gives up.
func (q *deferral) drain(giveUp func()) {
	q.mu.Lock()
	q.closed = true
	q.mu.Unlock()
	late := time.AfterFunc(time.Second, giveUp)
	defer late.Stop()
	q.working.Wait()
}
