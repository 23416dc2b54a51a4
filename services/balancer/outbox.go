package balancer

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/object"
)

// chunk bounds the operations of one decision.
const chunk = 512

// outbox is a queue of messages to send outside the packet path, in order. post
// is called under a lock; sending happens without it.
type outbox struct {
	mu     sync.Mutex // guards queue
	queue  []letter
	posted uint64
	bell   chan struct{}

	sent    atomic.Uint64
	changed chan struct{} // rings when something has been sent
}

// letter is a decision to send; confirmed is that the next waits until switches
// have confirmed it.
type letter struct {
	*flow.Decision
	confirmed bool
}

func newOutbox() *outbox {
	return &outbox{bell: make(chan struct{}, 1), changed: make(chan struct{}, 1)}
}

// post queues a decision of flow-mods and packet-outs, which then belongs to the
// outbox.
func (o *outbox) post(d *flow.Decision) { o.put(d, false) }

// postConfirmed is post of what a call waits for, by flush.
func (o *outbox) postConfirmed(d *flow.Decision) { o.put(d, true) }

func (o *outbox) put(d *flow.Decision, confirmed bool) {
	if d.Empty() {
		return
	}
	o.mu.Lock()
	was := len(o.queue)
	if len(d.Ops) <= chunk {
		o.queue = append(o.queue, letter{d, confirmed})
	} else {
		part := &flow.Decision{}
		for _, op := range d.Ops {
			if op.Kind == flow.OpFlow {
				part.Flow(op.Switch, d.Flows[op.Index])
			} else {
				part.PacketOut(op.Switch, d.Outs[op.Index])
			}
			if len(part.Ops) == chunk {
				o.queue = append(o.queue, letter{part, confirmed})
				part = &flow.Decision{}
			}
		}
		if !part.Empty() {
			o.queue = append(o.queue, letter{part, confirmed})
		}
	}
	o.posted += uint64(len(o.queue) - was)
	o.mu.Unlock()
	object.Notify(o.bell)
}

func (o *outbox) next() (l letter, ok bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.queue) == 0 {
		return l, false
	}
	l = o.queue[0]
	o.queue = o.queue[1:]
	return l, true
}

// run sends until ctx ends.
func (o *outbox) run(ctx context.Context, send func(letter)) {
	for ctx.Err() == nil {
		if l, ok := o.next(); ok {
			send(l)
			o.sent.Add(1)
			object.Notify(o.changed)
			continue
		}
		select {
		case <-ctx.Done():
		case <-o.bell:
		}
	}
}

// flush waits until what has been posted is sent, or ctx ends.
func (o *outbox) flush(ctx context.Context) {
	o.mu.Lock()
	until := o.posted
	o.mu.Unlock()
	for o.sent.Load() < until {
		select {
		case <-ctx.Done():
			return
		case <-o.changed:
		case <-time.After(flushTick): // another call has taken the ring
		}
	}
}

const flushTick = 10 * time.Millisecond
