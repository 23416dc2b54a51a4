package deploy

import (
	"context"
	"encoding/binary"
	"hash/maphash"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weft-sdn/weft"
	"github.com/weft-sdn/weft/deploy/local"
	"github.com/weft-sdn/weft/deploy/members"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/plan"
)

// crossing sends packet-ins to stages in other processes, and receives those of
// others. Packets wait in lanes. A lane has one batch in flight and collects
// the next one meanwhile, so batches grow with the load. All packets of a flow
// use one lane, so they never overtake each other, whichever replica receives a
// batch. Link probes have a lane of their own, so a delay of other packets
// makes no link look dead. A batch that gets no answer goes to another replica,
// or waits until one is back. Packets that waited too long, or find no room,
// are dropped and counted.
type crossing struct {
	node  *Node
	lanes [laneCount + 1]lane // the last is for probes
	last  atomic.Uint64       // number of a session
	turn  atomic.Uint32       // next replica for round robin

	mu     sync.Mutex // guards what follows
	guests map[sessionID]*guest

	carried, retried, merged weft.Counter
	seed                     maphash.Seed
	shedHeld, shedFull, lost weft.Counter
	astray                   weft.Counter
}

// laneCount is the number of lanes: enough for one batch to travel while others
// are processed.
const laneCount = 4

// Bounds of the queue of a lane.
const (
	lanePackets = 1 << 16
	laneBytes   = 16 << 20
	laneWait    = 100 * time.Millisecond // how long send waits for a full lane that moves
)

func newCrossing(n *Node) *crossing {
	c := &crossing{node: n, seed: maphash.MakeSeed(), guests: map[sessionID]*guest{}}
	m := n.worker.Metrics("deploy")
	c.carried = m.Counter("packets_carried_total", "Packet-ins that stages in other processes have dealt with.")
	c.retried = m.Counter("packets_retried_total", "Packet-ins sent again, because the process that they were sent to gave no answer.")
	c.merged = m.Counter("packets_merged_total", "Packet-ins that crossed together with one that was the same to the octet.")
	const shed = "Packet-ins given up, by reason."
	c.shedHeld = m.Counter("packets_shed_total", shed, "reason", "held_too_long")
	c.shedFull = m.Counter("packets_shed_total", shed, "reason", "queue_full")
	c.lost = m.Counter("packets_shed_total", shed, "reason", "session_closed")
	c.astray = m.Counter("operations_astray_total", "Operations of packets' decisions that were not carried out, as the partition of their switch could not be reached, or the switch refused them.")
	m.Gauge("packets_waiting", "Packet-ins that wait for a stage in another process.", func() float64 {
		var sum float64
		for i := range c.lanes {
			sum += float64(c.lanes[i].count.Load())
		}
		return sum
	})
	for i := range c.lanes {
		c.lanes[i].init(c)
	}
	return c
}

func (c *crossing) probes() *lane { return &c.lanes[laneCount] }

// run sends batches until ctx ends.
func (c *crossing) run(ctx context.Context) {
	var work sync.WaitGroup
	for i := range c.lanes {
		work.Go(func() { c.lanes[i].run(ctx) })
	}
	work.Go(func() { c.node.watchPeers(ctx) })
	work.Wait()
}

// lane is a queue of batches. It sends them one at a time.
type lane struct {
	crossing *crossing
	wake     chan struct{}
	count    atomic.Int64 // packets that wait or are in flight

	mu      sync.Mutex // guards what follows
	freed   sync.Cond  // signalled when there is room
	batches []*batch   // in order
	free    []*batch
	packets int // in the queue
	bytes   int
	moved   time.Time // when a batch was last taken from the queue
	waiting int       // goroutines that wait for room
}

func (l *lane) init(c *crossing) {
	l.crossing, l.wake = c, make(chan struct{}, 1)
	l.freed.L = &l.mu
}

// Sizes of batches in bytes: the size at which a session sends a batch before
// its messages end, and the size up to which queued batches are merged.
const (
	batchFull = 32 << 10
	batchMost = 256 << 10
)

// begin returns an empty batch for packets with the given stages before them.
func (l *lane) begin(rest []string) *batch {
	l.mu.Lock()
	p := &batch{}
	if n := len(l.free); n > 0 {
		p, l.free = l.free[n-1], l.free[:n-1]
	}
	l.mu.Unlock()
	p.begin(l.crossing.node.self, rest)
	return p
}

// send queues a batch. It waits for room; if there is none in time, it drops
// the batch's packets.
func (l *lane) send(p *batch) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if (l.packets >= lanePackets || l.bytes >= laneBytes) && !l.room() {
		l.crossing.shedFull.Add(float64(len(p.records)))
		for i := range p.records {
			p.records[i].session.returns(1, l == l.crossing.probes())
		}
		p.back()
		l.recycle(p)
		return
	}
	l.batches = append(l.batches, p)
	l.packets += len(p.records)
	l.bytes += len(p.data)
	l.count.Add(int64(len(p.records)))
	l.rouse()
}

// room waits for room as long as the lane moves. The caller holds the lock.
func (l *lane) room() bool {
	l.rouse()
	if time.Since(l.moved) > laneWait {
		return false
	}
	late := false
	timer := time.AfterFunc(laneWait, func() {
		l.mu.Lock()
		late = true
		l.freed.Broadcast()
		l.mu.Unlock()
	})
	defer timer.Stop()
	l.waiting++
	defer func() { l.waiting-- }()
	for l.packets >= lanePackets || l.bytes >= laneBytes {
		if late {
			return false
		}
		l.freed.Wait()
	}
	return true
}

func (l *lane) rouse() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// run sends the lane's batches, one after the other.
func (l *lane) run(ctx context.Context) {
	var d flow.Decision
	for {
		select {
		case <-ctx.Done():
			return
		case <-l.wake:
		}
		for {
			p := l.next()
			if p == nil {
				break
			}
			merged := p.merge(l.crossing.seed)
			l.crossing.pass(ctx, p, p.all(nil))
			if merged > 0 {
				l.crossing.merged.Add(float64(merged))
				l.crossing.pass(ctx, p, p.unlike(nil))
				if err := p.unmerge(); err != nil {
					l.crossing.node.log.Error("decision from another process cannot be read", "error", err)
				}
			}
			l.deliver(p, &d)
			l.count.Add(int64(-len(p.records)))
			p.back()
			l.mu.Lock()
			l.recycle(p)
			l.mu.Unlock()
		}
	}
}

// next takes the first batch from the queue and merges into it the following
// ones with the same stages ahead.
func (l *lane) next() *batch {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.moved = time.Now()
	if len(l.batches) == 0 {
		return nil
	}
	p, n := l.batches[0], 1
	l.bytes -= len(p.data)
	for n < len(l.batches) && len(p.data)+len(l.batches[n].data) <= batchMost && slices.Equal(p.rest, l.batches[n].rest) {
		l.bytes -= len(l.batches[n].data)
		p.join(l.batches[n])
		l.recycle(l.batches[n])
		n++
	}
	l.batches = slices.Delete(l.batches, 0, n)
	l.packets -= len(p.records)
	if l.waiting > 0 {
		l.freed.Broadcast()
	}
	return p
}

// recycle keeps a batch for reuse. The caller holds the lock.
func (l *lane) recycle(p *batch) {
	p.reset()
	if len(l.free) < 16 {
		l.free = append(l.free, p)
	}
}

// deliver passes the decisions of a batch to the sessions of its packets.
func (l *lane) deliver(p *batch, d *flow.Decision) {
	var last *session
	closed, returned := false, uint64(0)
	end := func() {
		if last == nil {
			return
		}
		last.returns(returned, l == l.crossing.probes())
		if returned = 0; !closed {
			last.hand(nil)
		}
	}
	var carried, held, lost int
	for i := range p.records {
		r := &p.records[i]
		if r.session != last {
			end()
			last, closed = r.session, r.session.closed.Load()
		}
		returned++
		switch {
		case !r.done:
			held++
			continue
		case closed:
			lost++
			continue
		}
		carried++
		if t := l.crossing.node.config.Tracer; t != nil && r.trace != 0 {
			t.Span(local.Span{Trace: r.trace, Root: true, Name: local.RootSpan, Switch: r.session.sw, Verdict: r.verdict, Began: time.Unix(0, r.since), Ended: time.Now()})
		}
		if len(r.decision) == 0 {
			continue
		}
		if err := d.UnmarshalBinary(r.decision); err != nil {
			l.crossing.node.log.Error("decision from another process cannot be read", "error", err)
			continue
		}
		r.session.Apply(d)
		r.session.hand(d)
	}
	end()
	l.crossing.carried.Add(float64(carried))
	l.crossing.shedHeld.Add(float64(held))
	l.crossing.lost.Add(float64(lost))
}

// pass runs the remaining stages on the packets of a batch that list has. A
// packet that is not done when it returns has waited too long.
func (c *crossing) pass(ctx context.Context, p *batch, list []int) {
	for left := list; len(left) > 0; left = p.left(p.all(nil)) {
		v := c.node.links.View.Load()
		var replanned atomic.Bool
		apart(v.Parts, p, left, func(list []int, sw flow.DPID) {
			if !c.passShare(ctx, v.Wiring(), p, list, sw) {
				replanned.Store(true)
			}
		})
		if !replanned.Load() {
			return
		}
	}
}

// left returns the packets of list that are not done and have not waited too
// long.
func (p *batch) left(list []int) []int {
	now := time.Now().UnixNano()
	return slices.DeleteFunc(undone(p, list), func(i int) bool { return now-p.records[i].since > int64(holdMax) })
}

// apart calls f for the packets of each partition, with a switch of it;
// concurrently if there are several.
func apart(parts *members.Parts, p *batch, list []int, f func(list []int, sw flow.DPID)) {
	if len(list) == 0 {
		return
	}
	if parts == nil {
		f(list, 0)
		return
	}
	shares := map[string][]int{}
	for _, i := range list {
		name := parts.Plan.PartitionOf(p.switchOf(i))
		shares[name] = append(shares[name], i)
	}
	if len(shares) == 1 {
		f(list, p.switchOf(list[0]))
		return
	}
	var all sync.WaitGroup
	for _, share := range shares {
		all.Go(func() { f(share, p.switchOf(share[0])) })
	}
	all.Wait()
}

// passShare is pass for packets of one partition; sw is a switch of it. It
// returns false if the partition may have changed, because a plan with another
// wiring is in force.
func (c *crossing) passShare(ctx context.Context, wiring uint64, p *batch, left []int, sw flow.DPID) bool {
	sent := false
	for len(left) > 0 && ctx.Err() == nil {
		v := c.node.links.View.Load()
		if v.Wiring() != wiring {
			return false
		}
		targets := c.targets(v, p.rest[0], sw)
		if len(targets) == 0 {
			if policy := c.policy(v, p.rest[0]); policy != plan.AbsentHold {
				if err := c.without(ctx, p, left, policy); err != nil {
					c.node.log.Error("packet-ins cannot be passed on", "error", err)
				}
				return true
			}
		}
		if len(targets) > 0 {
			if sent {
				c.retried.Add(float64(len(left)))
			}
			c.scatter(ctx, v, p, left, targets)
			sent = true
			if left = undone(p, left); len(left) == 0 {
				return true
			}
			if n := len(c.targets(v, p.rest[0], sw)); n > 0 && n < len(targets) {
				continue // an instance has gone: ask the others at once
			}
		}
		if v.Pause(ctx, time.Now().Add(time.Hour)) != nil {
			return true
		}
		left = p.left(left)
	}
	return true
}

// switchOf returns the switch of a packet.
func (p *batch) switchOf(i int) flow.DPID {
	return flow.DPID(binary.LittleEndian.Uint64(p.data[p.records[i].run+8:]))
}

func undone(p *batch, list []int) []int {
	return slices.DeleteFunc(list, func(i int) bool { return p.records[i].done })
}

// targets returns the instances of a stage that serve packets of a switch now:
// those of its partition, if that runs the stage for itself. If none of them
// serves and the stage is clustered, it returns those of the other partitions.
func (c *crossing) targets(v *members.View, stage string, sw flow.DPID) []*members.Target {
	partition := ""
	if v.Parts != nil {
		partition = v.Parts.Plan.PartitionOf(sw)
	}
	list := serving(v.Of(stage, partition))
	if len(list) == 0 && v.Parts.Clustered(stage) {
		list = serving(v.Routes[stage])
	}
	return list
}

// serving returns the instances that serve now.
func serving(all []*members.Target) []*members.Target {
	var list []*members.Target
	for _, t := range all {
		if t.State == members.StateReady {
			list = append(list, t)
		}
	}
	return members.Usable(list)
}

// scatter divides packets among instances and waits for all answers.
func (c *crossing) scatter(ctx context.Context, v *members.View, p *batch, list []int, targets []*members.Target) {
	if len(targets) == 1 {
		c.send(ctx, v, p, list, targets[0])
		return
	}
	shares := make([][]int, len(targets))
	balance := v.BalanceOf(targets[0])
	var round uint32
	if balance == plan.BalanceRoundRobin {
		round = c.turn.Add(1)
	}
	for _, i := range list {
		r := &p.records[i]
		var at int
		switch balance {
		case plan.BalanceRoundRobin: // packets of a flow in the batch stay together
			at = int((r.hash + round) % uint32(len(targets)))
		case plan.BalanceLeast:
			at = leastBusy(targets)
		case plan.BalanceSwitch:
			at = int(binary.LittleEndian.Uint64(p.data[r.run:]) % uint64(len(targets)))
		default:
			at = int(uint64(r.hash) * uint64(len(targets)) >> 32)
		}
		shares[at] = append(shares[at], i)
	}
	var sent sync.WaitGroup
	for at, share := range shares {
		if len(share) > 0 {
			sent.Go(func() { c.send(ctx, v, p, share, targets[at]) })
		}
	}
	sent.Wait()
}

func leastBusy(targets []*members.Target) int {
	best, least := 0, int64(1<<62)
	for i, t := range targets {
		var n int64
		if t.Peer != nil {
			n = t.Peer.Outstanding.Load()
		}
		if n < least {
			best, least = i, n
		}
	}
	return best
}

// send sends packets to one instance and records its answer.
func (c *crossing) send(ctx context.Context, v *members.View, p *batch, list []int, t *members.Target) {
	request, stamp := p.request(list), v.Stamp(t, nil)
	var answer []byte
	var err error
	if tracer := c.node.config.Tracer; tracer != nil {
		began := time.Now()
		defer func() { traceCrossing(tracer, p, list, began) }()
	}
	if t.Peer == nil {
		answer, err = c.packets(ctx, stamp, request)
	} else {
		answer, err = t.Peer.Send(ctx, members.PacketsMethod, stamp, request)
	}
	if err == nil {
		err = p.answered(answer, list)
	}
	if err != nil && ctx.Err() == nil {
		c.node.log.Debug("packet-ins not dealt with yet", "stage", p.rest[0], "packets", len(list), "error", err)
	}
}
