package balancer

import (
	"context"
	"sync"

	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/object"
)

// chunk bounds the operations of one decision.
const chunk = 512

// outbox is a queue of messages to send outside the packet path, in order. post
// is called under a lock; sending happens without it.
type outbox struct {
	mu    sync.Mutex // guards queue
	queue []*flow.Decision
	bell  chan struct{}
}

func newOutbox() *outbox { return &outbox{bell: make(chan struct{}, 1)} }

// post queues a decision of flow-mods and packet-outs, which then belongs to the
// outbox.
func (o *outbox) post(d *flow.Decision) {
	if d.Empty() {
		return
	}
	o.mu.Lock()
	if len(d.Ops) <= chunk {
		o.queue = append(o.queue, d)
	} else {
		part := &flow.Decision{}
		for _, op := range d.Ops {
			if op.Kind == flow.OpFlow {
				part.Flow(op.Switch, d.Flows[op.Index])
			} else {
				part.PacketOut(op.Switch, d.Outs[op.Index])
			}
			if len(part.Ops) == chunk {
				o.queue = append(o.queue, part)
				part = &flow.Decision{}
			}
		}
		if !part.Empty() {
			o.queue = append(o.queue, part)
		}
	}
	o.mu.Unlock()
	object.Notify(o.bell)
}

func (o *outbox) next() *flow.Decision {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.queue) == 0 {
		return nil
	}
	d := o.queue[0]
	o.queue = o.queue[1:]
	return d
}

// run sends until ctx ends.
func (o *outbox) run(ctx context.Context, send func(*flow.Decision)) {
	for ctx.Err() == nil {
		if d := o.next(); d != nil {
			send(d)
			continue
		}
		select {
		case <-ctx.Done():
		case <-o.bell:
		}
	}
}
