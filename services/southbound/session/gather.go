package session

import (
	"runtime"
	"sync"

	"github.com/weft-sdn/weft/flow"
)

// gathering is the list of switches that packets from other switches are held
// for, so that one write sends the packets of several readers. A packet would
// cost most by those writes, because it leaves by its last switch and seldom by
// its first.
type gathering struct {
	mu    sync.Mutex
	list  []*Session
	since int64 // when the first was added, in ns
	spare []*Session
}

const (
	// gatherFrom is the size of a batch, in bytes, from which on its packets
	// wait for those of other readers. Packets of a smaller batch go out at its
	// end.
	gatherFrom = 512
	// gatherMost is for how long packets are gathered, in nanoseconds; after
	// that the next reader sends.
	gatherMost = int64(500_000)
)

// soleTarget returns the switch of a decision that does nothing but send a packet out
// of that switch. Decisions that program switches are sent at once, in order.
func soleTarget(d *flow.Decision) (at dpid, yes bool) {
	if len(d.Ops) != 1 || d.Ops[0].Kind != flow.OpPacketOut {
		return 0, false
	}
	return d.Ops[0].Switch, true
}

// holding is the switches for which only one batch holds packets. Only the goroutine
// of that batch uses it.
type holding []*Session

// add holds the packet of a lone decision for another switch until the end of the
// batch, which began at a time by the clock of the beats.
func (l *holding) add(target *Session, d *flow.Decision, m *messages, at int64) {
	b, err := target.appendOp(m.foreign[:0], d, &d.Ops[0], target.xid.Add(1))
	if err != nil {
		target.shared.countUnsendable(&target.channel, flow.OpPacketOut, err)
		return
	}
	target.count.op(flow.OpPacketOut)
	b = target.alive.joinBeat(b, at)
	m.foreign = b[:0]
	mine, err := target.out.hold(b)
	if err != nil {
		target.shed(err, b)
	}
	if mine {
		*l = append(*l, target)
	}
}

// send sends the packets that a batch of octets bytes has held. After a
// large batch it lets other readers run first and sends their packets with its
// own.
func (l *holding) send(g *gathering, octets int, now int64) {
	if len(*l) == 0 {
		return
	}
	if octets < gatherFrom {
		release(*l)
	} else if first, due := g.add(*l, now); first || due {
		if !due {
			runtime.Gosched() // a reader that has read something adds to the list
		}
		list := g.take()
		release(list)
		g.giveBack(list)
	}
	*l = (*l)[:0]
}

// release sends the packets that the batch has held so far.
func (l *holding) release() {
	release(*l)
	*l = (*l)[:0]
}

// release sends what is held for the switches and clears the list.
func release(list []*Session) {
	for _, s := range list {
		s.out.release()
	}
	clear(list)
}

// add puts switches on the list. first reports that the list was empty, so that
// the caller must send; due, that it has not been empty for too long.
func (g *gathering) add(list []*Session, now int64) (first, due bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if first = len(g.list) == 0; first {
		g.since = now
	}
	g.list = append(g.list, list...)
	return first, now-g.since > gatherMost
}

// take returns the whole list and empties it.
func (g *gathering) take() []*Session {
	g.mu.Lock()
	defer g.mu.Unlock()
	list := g.list
	g.list, g.spare = g.spare[:0], nil
	return list
}

// giveBack returns the memory of a list.
func (g *gathering) giveBack(list []*Session) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.spare = list[:0]
}
