package southbound

import (
	"runtime"
	"sync"

	"github.com/weft-sdn/weft/flow"
)

// gathering is the switches that packets of others are held for, so that those
// of several readers go out with one write each: that is what a packet would
// cost most by, as it leaves by its last switch and seldom by its first.
type gathering struct {
	mu    sync.Mutex
	list  []*session
	since int64 // when the first came onto it, ns
	spare []*session
}

const (
	// gatherFrom is the size of a batch from which on others are waited for. Less
	// is sent at its end.
	gatherFrom = 512
	// gatherMost is for how long, in nanoseconds, after which whoever comes sends.
	gatherMost = int64(500_000)
	// heldMost is how much is held for one switch.
	heldMost = 32 << 10
)

// lone returns the switch of a decision that does nothing but hand a packet out
// there. Whatever programs switches is sent at once, in its order.
func lone(d *flow.Decision) (at dpid, yes bool) {
	if len(d.Ops) != 1 || d.Ops[0].Kind != flow.OpPacketOut {
		return 0, false
	}
	return d.Ops[0].Switch, true
}

// holdForeign holds the packet of a lone decision for another switch until the
// end of the batch.
func (s *session) holdForeign(target *session, d *flow.Decision) {
	ws := s.in.ws
	b, err := target.appendOp(ws.foreign[:0], d, &d.Ops[0], target.xid.Add(1))
	if err != nil {
		s.hub.unsendable(target, err)
		return
	}
	ws.foreign = b[:0]
	target.count.op(flow.OpPacketOut)
	mine, err := target.out.hold(b)
	if err != nil {
		target.shed(err)
	}
	if mine {
		s.holding = append(s.holding, target)
	}
}

// sendHeld sends what the batch, of so many octets, has had held: after a
// large one together with what others have, who are let go first.
func (s *session) sendHeld(octets int, now int64) {
	if len(s.holding) == 0 {
		return
	}
	g := &s.hub.gathering
	if octets < gatherFrom {
		release(s.holding)
	} else if first, due := g.add(s.holding, now); first || due {
		if !due {
			runtime.Gosched() // whoever has read something adds to it
		}
		list := g.take()
		release(list)
		g.giveBack(list)
	}
	s.holding = s.holding[:0]
}

// letGo sends what the batch has had held so far.
func (s *session) letGo() {
	release(s.holding)
	s.holding = s.holding[:0]
}

// release sends what is held for switches, and forgets them.
func release(list []*session) {
	for _, s := range list {
		s.out.release()
	}
	clear(list)
}

// add puts switches onto the list. first says that there were none, so that the
// caller is to send; due, that it has been so for too long.
func (g *gathering) add(list []*session, now int64) (first, due bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if first = len(g.list) == 0; first {
		g.since = now
	}
	g.list = append(g.list, list...)
	return first, now-g.since > gatherMost
}

// take takes the whole list.
func (g *gathering) take() []*session {
	g.mu.Lock()
	defer g.mu.Unlock()
	list := g.list
	g.list, g.spare = g.spare[:0], nil
	return list
}

// giveBack returns the memory of a list.
func (g *gathering) giveBack(list []*session) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.spare = list[:0]
}
