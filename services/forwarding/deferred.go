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

// postpone keeps a packet of a pair until its path is known; false if there is no
// room.
func (pp *packetPath) postpone(in *flow.PacketIn, p pair, rewrite []flow.Action) bool {
	q := &pp.deferral
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed || q.packets.Load() >= deferredMost || q.octets+len(in.Data) > deferredOctets {
		pp.count.pathFull.Add(1)
		pp.reached.ReachAt(in.Time, "the room for packets that wait for their paths", deferredMost, flow.Location{Switch: in.Switch, Port: in.Key.InPort})
		return false
	}
	pp.count.deferred.Add(1)
	kept := deferred{*in, rewrite}
	kept.in.Following = nil
	kept.in.Data = append([]byte(nil), in.Data...)
	list, waits := q.pairs[p]
	if q.pairs == nil {
		q.pairs = map[pair][]deferred{}
	}
	q.pairs[p] = append(list, kept)
	q.packets.Add(1)
	q.octets += len(in.Data)
	if waits {
		return true
	}
	q.queue = append(q.queue, p)
	if q.running < deferredWorkers {
		q.running++
		q.working.Go(pp.connectDeferred)
	}
	return true
}

// connectDeferred connects pairs until none is waiting.
func (pp *packetPath) connectDeferred() {
	q := &pp.deferral
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.queue) > 0 {
		p := q.queue[0]
		q.queue = q.queue[1:]
		for list := q.pairs[p]; len(list) > 0; list = q.pairs[p] {
			q.pairs[p] = nil
			q.mu.Unlock()
			pp.connectAll(p, list)
			q.mu.Lock()
			q.packets.Add(int64(-len(list)))
			for i := range list {
				q.octets -= len(list[i].in.Data)
			}
		}
		delete(q.pairs, p)
	}
	q.running--
}

// connectAll connects a pair, and releases its packets.
func (pp *packetPath) connectAll(p pair, list []deferred) {
	d := &flow.Decision{}
	send := func() {
		if d.Empty() && d.Trace == 0 {
			return
		}
		if err := pp.execute(pp.deferral.send, d); err != nil {
			pp.log.Error("routes not programmed", "packets", len(list), "error", err)
		}
	}
	for i := range list {
		x := &list[i]
		if x.in.Trace != 0 || d.Trace != 0 { // by itself, so that those who watch see what becomes of it
			send()
			d = &flow.Decision{Trace: x.in.Trace}
		}
		now := pp.now().UnixNano()
		if now-x.in.Time > int64(deferredFor) {
			pp.count.pathLate.Add(1)
			continue
		}
		x.in.Time = now
		if pp.connectBy(pp.deferral.find, &x.in, d, p, x.rewrite, nil) != nil { // find has waited for it
			pp.count.unreachable.Add(1)
		}
	}
	send()
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
