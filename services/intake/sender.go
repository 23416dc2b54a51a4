package intake

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/object"
)

// sender sends decisions to the southbound: those about packets of one switch in
// their order, waiting ones joined into one call. While the southbound is away
// they wait, and senders of further ones wait for room.
type sender struct {
	send   func(context.Context, *flow.Decision) (*api.ApplyResult, error)
	log    *slog.Logger
	queues [queueCount]queue

	reached       object.Limits
	calls, failed atomic.Uint64
	shed          struct{ full, away atomic.Uint64 } // decisions
}

const (
	queueCount = 4       // a switch always uses the same
	queueMost  = 4 << 20 // octets that wait in one queue, about
	joinMost   = 1 << 20 // octets of one call, about
	opOctets   = 256     // size of an operation without its data
	waitMost   = 10 * time.Second
)

// queue holds decisions for the southbound.
type queue struct {
	mu      sync.Mutex // guards what follows
	batches []*batch
	octets  int
	room    chan struct{} // closed when there is room again; nil if nobody waits
	more    chan struct{} // holds one
}

// batch is the decisions of one call.
type batch struct {
	flow.Decision
	octets, decisions int
	alone             bool // sent by itself: it has fences, or somebody watches its packet
}

func newSender(send func(context.Context, *flow.Decision) (*api.ApplyResult, error), log *slog.Logger) *sender {
	c := &sender{send: send, log: log}
	for i := range c.queues {
		c.queues[i].more = make(chan struct{}, 1)
	}
	return c
}

// enqueue queues the decision about a packet of a switch.
func (c *sender) enqueue(sw flow.DPID, d *flow.Decision) {
	l := &c.queues[uint64(sw)*0x9e3779b97f4a7c15>>62]
	if !l.put(d) {
		c.shed.full.Add(1)
		c.reached.Reach(time.Now().UnixNano(), "the room for decisions on their way to the southbound", queueMost, "switch "+sw.String())
	}
}

// put queues a copy of a decision; false if there was no room for too long.
func (l *queue) put(d *flow.Decision) bool {
	var patience *time.Timer
	for {
		l.mu.Lock()
		if l.octets < queueMost {
			break
		}
		if l.room == nil {
			l.room = make(chan struct{})
		}
		room := l.room
		l.mu.Unlock()
		if patience == nil {
			patience = time.NewTimer(waitMost)
			defer patience.Stop()
		}
		select {
		case <-room:
		case <-patience.C:
			return false
		}
	}
	n := opOctets * len(d.Ops)
	for i := range d.Outs {
		n += len(d.Outs[i].Data)
	}
	alone := d.Trace != 0 || d.Fenced()
	var last *batch
	if len(l.batches) > 0 {
		last = l.batches[len(l.batches)-1]
	}
	if last == nil || alone || last.alone || last.octets+n > joinMost {
		last = &batch{alone: alone}
		last.Trace = d.Trace
		l.batches = append(l.batches, last)
	}
	last.Append(d)
	last.octets += n
	last.decisions++
	l.octets += n
	l.mu.Unlock()
	select {
	case l.more <- struct{}{}:
	default:
	}
	return true
}

// take returns the next batch, nil if there is none.
func (l *queue) take() *batch {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.batches) == 0 {
		return nil
	}
	x := l.batches[0]
	l.batches[0] = nil
	l.batches = l.batches[1:]
	l.octets -= x.octets
	if l.room != nil {
		close(l.room)
		l.room = nil
	}
	return x
}

// run sends until ctx ends, and then sends the rest of the queue.
func (c *sender) run(ctx context.Context) {
	var lanes sync.WaitGroup
	for i := range c.queues {
		l := &c.queues[i]
		lanes.Go(func() {
			for {
				if x := l.take(); x != nil {
					c.deliver(ctx, x)
					continue
				}
				select {
				case <-ctx.Done():
					return
				case <-l.more:
				}
			}
		})
	}
	lanes.Wait()
}

// deliver makes one call.
func (c *sender) deliver(ctx context.Context, x *batch) {
	c.calls.Add(1)
	limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), waitMost)
	defer cancel()
	r, err := c.send(limited, &x.Decision)
	if err != nil {
		c.shed.away.Add(uint64(x.decisions))
		c.log.Error("decisions about packets are lost: the southbound does not take them", "decisions", x.decisions, "error", err)
		return
	}
	if n := len(r.GetFailures()); n > 0 {
		c.failed.Add(uint64(n))
		c.log.Warn("operations not sent", "operations", n, "first", r.Failures[0].GetText(), "dpid", r.Failures[0].GetDpid())
	}
}
