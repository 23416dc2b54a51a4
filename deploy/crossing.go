package deploy

import (
	"context"
	"encoding/binary"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"weft"
	"weft/flow"
)

// crossing carries packet-ins to stages in other processes, and takes in those
// of others. Packets wait in lanes: a lane has one batch under way at a time
// and gathers the next meanwhile, so that batches grow with the load and the
// packets of a flow, which are all in one lane, never overtake each other,
// whichever replica a batch goes to. A batch that gets no answer is sent to
// another replica, or held until one is back; only what has been held for too
// long, or finds no room, is shed, and counted.
type crossing struct {
	node  *Node
	lanes [laneCount]lane
	last  atomic.Uint64 // session

	mu       sync.Mutex // guards what follows
	sessions map[uint64]*walk
	visits   map[visitor]*visit

	carried, retried         weft.Counter
	shedHeld, shedFull, lost weft.Counter
	held                     atomic.Int64 // packets that wait for a stage that is away
}

// laneCount is the number of lanes: enough for one batch to travel while
// others are dealt with.
const laneCount = 4

// Bounds of what waits in a lane.
const (
	lanePackets = 1 << 16
	laneBytes   = 16 << 20
	laneWait    = 100 * time.Millisecond // a full lane that moves is waited for so long
)

func newCrossing(n *Node) *crossing {
	c := &crossing{node: n, sessions: map[uint64]*walk{}, visits: map[visitor]*visit{}}
	m := &metrics{n.worker.registry, "deploy"}
	c.carried = m.Counter("packets_carried_total", "Packet-ins that stages in other processes have dealt with.")
	c.retried = m.Counter("packets_retried_total", "Packet-ins sent again, because the process that they were sent to gave no answer.")
	const shed = "Packet-ins given up, by reason."
	c.shedHeld = m.Counter("packets_shed_total", shed, "reason", "held_too_long")
	c.shedFull = m.Counter("packets_shed_total", shed, "reason", "queue_full")
	c.lost = m.Counter("packets_shed_total", shed, "reason", "session_closed")
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

// number makes a session known and returns its number.
func (c *crossing) number(w *walk) uint64 {
	session := c.last.Add(1)
	c.mu.Lock()
	c.sessions[session] = w
	c.mu.Unlock()
	return session
}

func (c *crossing) forget(session uint64) {
	c.mu.Lock()
	delete(c.sessions, session)
	c.mu.Unlock()
}

func (c *crossing) lane(session uint64) *lane { return &c.lanes[session%laneCount] }

// run carries until ctx ends.
func (c *crossing) run(ctx context.Context) {
	var work sync.WaitGroup
	for i := range c.lanes {
		work.Go(func() { c.lanes[i].run(ctx) })
	}
	work.Go(func() { c.node.watchPeers(ctx) })
	work.Wait()
}

// parcel is packets on their way through the same stages.
type parcel struct {
	rest    []string // the stages that they have before them
	data    []byte   // the records one after the other
	records []record
}

// record is one packet of a parcel, and what has become of it.
type record struct {
	walk       *walk // of this process; nil if the packet came from another
	start, end int   // in data
	hash       uint32
	since      int64 // ns
	verdict    flow.Verdict
	done       bool
	decision   []byte // encoded; empty for none
}

func (p *parcel) reset() {
	clear(p.records) // of pointers
	p.rest, p.data, p.records = nil, p.data[:0], p.records[:0]
}

// add appends a packet and the decision so far.
func (p *parcel) add(w *walk, session uint64, in *flow.PacketIn, d *flow.Decision, hash uint32) error {
	start := len(p.data)
	b := binary.LittleEndian.AppendUint64(p.data, session)
	b = binary.LittleEndian.AppendUint32(b, hash)
	b, err := appendSized(b, in)
	if err == nil && !d.Empty() {
		b, err = appendSized(b, d)
	} else {
		b = append(b, 0, 0, 0, 0)
	}
	if err != nil {
		return err
	}
	p.data = b
	p.records = append(p.records, record{walk: w, start: start, end: len(b), hash: hash, since: in.Time})
	return nil
}

// appendSized appends an encoding behind its length, 4 octets.
func appendSized(b []byte, v interface {
	AppendBinary([]byte) ([]byte, error)
}) ([]byte, error) {
	at := len(b)
	b, err := v.AppendBinary(append(b, 0, 0, 0, 0))
	if err == nil {
		binary.LittleEndian.PutUint32(b[at:], uint32(len(b)-at-4))
	}
	return b, err
}

// flowHash is the same for both directions of a pair of addresses.
func flowHash(k *flow.Key) uint32 {
	mac := func(m flow.MAC) uint64 {
		return uint64(m[0])<<40 | uint64(m[1])<<32 | uint64(m[2])<<24 | uint64(m[3])<<16 | uint64(m[4])<<8 | uint64(m[5])
	}
	h := (mac(k.EthSrc) + mac(k.EthDst)) ^ uint64(k.VLAN)<<48
	h *= 0x9e3779b97f4a7c15
	return uint32(h >> 32)
}

// lane is a queue of packets with one batch under way.
type lane struct {
	crossing *crossing
	wake     chan struct{}
	count    atomic.Int64 // packets that wait or are under way

	mu      sync.Mutex // guards what follows
	freed   sync.Cond  // there is room
	parcels []*parcel  // in order; the last is open
	free    []*parcel
	packets int // that wait
	bytes   int
	moved   time.Time // when a batch came back last
	waiting int       // adders
}

func (l *lane) init(c *crossing) {
	l.crossing, l.wake = c, make(chan struct{}, 1)
	l.freed.L = &l.mu
}

// wakeAt is how much is sent off without waiting for the end of a batch.
const wakeAt = 64 << 10

// add takes a packet. It returns Away, or Drop if the packet is shed.
func (l *lane) add(w *walk, in *flow.PacketIn, d *flow.Decision) flow.Verdict {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.packets >= lanePackets || l.bytes >= laneBytes {
		if !l.room() {
			l.crossing.shedFull.Add(1)
			return flow.Drop
		}
	}
	p := l.open(w.rest)
	before := len(p.data)
	if err := p.add(w, w.session, in, d, flowHash(&in.Key)); err != nil {
		l.crossing.node.log.Error("packet-in cannot be carried", "error", err)
		l.crossing.shedFull.Add(1)
		return flow.Drop
	}
	l.packets++
	l.bytes += len(p.data) - before
	l.count.Add(1)
	if l.bytes >= wakeAt {
		l.flush()
	}
	return flow.Away
}

// room waits for room as long as the lane moves; it is called with the lock.
func (l *lane) room() bool {
	l.flush()
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

// open returns the parcel to which a packet with the given stages before it is
// added; it is called with the lock.
func (l *lane) open(rest []string) *parcel {
	if n := len(l.parcels); n > 0 {
		p := l.parcels[n-1]
		if len(p.data) < 1<<20 && slices.Equal(p.rest, rest) {
			return p
		}
	}
	p := &parcel{}
	if n := len(l.free); n > 0 {
		p, l.free = l.free[n-1], l.free[:n-1]
	}
	p.rest = rest
	l.parcels = append(l.parcels, p)
	return p
}

func (l *lane) flush() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// run carries the lane's parcels, one after the other.
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
			l.crossing.pass(ctx, p)
			l.deliver(p, &d)
			l.count.Add(int64(-len(p.records)))
			l.put(p)
		}
	}
}

// next takes the first parcel off the queue.
func (l *lane) next() *parcel {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.moved = time.Now()
	if len(l.parcels) == 0 {
		return nil
	}
	p := l.parcels[0]
	l.parcels = slices.Delete(l.parcels, 0, 1)
	l.packets -= len(p.records)
	l.bytes -= len(p.data)
	if l.waiting > 0 {
		l.freed.Broadcast()
	}
	return p
}

func (l *lane) put(p *parcel) {
	p.reset()
	l.mu.Lock()
	if len(l.free) < 4 {
		l.free = append(l.free, p)
	}
	l.mu.Unlock()
}

// deliver hands the decisions of a parcel to the sessions of its packets.
func (l *lane) deliver(p *parcel, d *flow.Decision) {
	var last *walk
	for i := range p.records {
		r := &p.records[i]
		if r.walk != last {
			if last != nil && !last.closed.Load() {
				last.later(nil)
			}
			last = r.walk
		}
		switch {
		case !r.done:
			l.crossing.shedHeld.Add(1)
			continue
		case r.walk.closed.Load():
			l.crossing.lost.Add(1)
			continue
		}
		l.crossing.carried.Add(1)
		if len(r.decision) == 0 {
			continue
		}
		if err := d.UnmarshalBinary(r.decision); err != nil {
			l.crossing.node.log.Error("decision from another process cannot be read", "error", err)
			continue
		}
		r.walk.later(d)
	}
	if last != nil && !last.closed.Load() {
		last.later(nil)
	}
}

// pass has the stages that a parcel has before it deal with its packets. What
// is not done afterwards has been held for too long.
func (c *crossing) pass(ctx context.Context, p *parcel) {
	left := make([]int, len(p.records))
	for i := range left {
		left[i] = i
	}
	for attempt := 0; len(left) > 0 && ctx.Err() == nil; attempt++ {
		v := c.node.view.Load()
		targets := c.targets(v, p.rest[0])
		if len(targets) > 0 {
			if attempt > 0 {
				c.retried.Add(float64(len(left)))
			}
			if c.scatter(ctx, v, p, left, targets, attempt); len(undone(p, left)) == 0 {
				return
			}
			left = undone(p, left)
		}
		if attempt == 0 {
			c.held.Add(int64(len(left)))
			defer c.held.Add(int64(-len(left)))
		}
		if c.node.pause(ctx, v, time.Now().Add(time.Hour)) != nil {
			return
		}
		now := time.Now().UnixNano()
		left = slices.DeleteFunc(left, func(i int) bool { return now-p.records[i].since > int64(holdMax) })
	}
}

func undone(p *parcel, list []int) []int {
	return slices.DeleteFunc(list, func(i int) bool { return p.records[i].done })
}

// targets returns the instances of a stage that serve now.
func (c *crossing) targets(v *view, stage string) []*target {
	var list []*target
	for _, t := range v.routes[stage] {
		if t.state == StateReady {
			list = append(list, t)
		}
	}
	return usableFirst(list)
}

// scatter shares packets out among instances and waits for all answers.
func (c *crossing) scatter(ctx context.Context, v *view, p *parcel, list []int, targets []*target, attempt int) {
	if len(targets) == 1 {
		c.send(ctx, p, list, targets[0])
		return
	}
	shares := make([][]int, len(targets))
	balance := c.node.balanceOf(v, targets[0])
	round := uint32(c.last.Load()) + uint32(attempt)
	if balance == "round-robin" {
		round = uint32(c.last.Add(1))
	}
	for _, i := range list {
		r := &p.records[i]
		var at int
		switch balance {
		case "round-robin": // a flow's packets within the parcel stay together
			at = int((r.hash + round) % uint32(len(targets)))
		case "least":
			at = leastBusy(targets)
		case "switch":
			at = int(binary.LittleEndian.Uint64(p.data[r.start:]) % uint64(len(targets)))
		default:
			at = int(uint64(r.hash) * uint64(len(targets)) >> 32)
		}
		shares[at] = append(shares[at], i)
	}
	var sent sync.WaitGroup
	for at, share := range shares {
		if len(share) > 0 {
			sent.Go(func() { c.send(ctx, p, share, targets[at]) })
		}
	}
	sent.Wait()
}

func leastBusy(targets []*target) int {
	best, least := 0, int64(1<<62)
	for i, t := range targets {
		var n int64
		if t.peer != nil {
			n = t.peer.outstanding.Load()
		}
		if n < least {
			best, least = i, n
		}
	}
	return best
}

// send sends packets to one instance and takes down its answer.
func (c *crossing) send(ctx context.Context, p *parcel, list []int, t *target) {
	request := c.request(p, list)
	var answer []byte
	var err error
	if t.peer == nil {
		answer, err = c.packets(ctx, request)
	} else {
		answer, err = t.peer.request(ctx, packetsMethod, request)
	}
	if err == nil {
		err = p.answered(answer, list)
	}
	if err != nil && ctx.Err() == nil {
		c.node.log.Debug("packet-ins not dealt with yet", "stage", p.rest[0], "packets", len(list), "error", err)
	}
}

// request encodes packets of a parcel.
func (c *crossing) request(p *parcel, list []int) []byte {
	size := 64
	for _, i := range list {
		size += p.records[i].end - p.records[i].start
	}
	b := binary.LittleEndian.AppendUint64(make([]byte, 0, size), c.node.self)
	b = append(b, byte(len(p.rest)))
	for _, name := range p.rest {
		b = appendBytes(b, []byte(name))
	}
	for _, i := range list {
		b = append(b, p.data[p.records[i].start:p.records[i].end]...)
	}
	return b
}

// answered reads an answer to packets of a parcel, whose memory it keeps.
func (p *parcel) answered(answer []byte, list []int) error {
	if len(answer) == 0 || answer[0] != answerOK {
		return errNotHere
	}
	r := cursor{b: answer[1:]}
	for _, i := range list {
		verdict := flow.Verdict(r.uint8())
		decision := r.take(uint64(r.uint32()))
		if r.err != nil {
			return r.err
		}
		if verdict != undecided {
			rec := &p.records[i]
			rec.verdict, rec.decision, rec.done = verdict, decision, true
		}
	}
	return nil
}

// undecided, in place of a verdict, says that a packet has been held for too
// long further on.
const undecided flow.Verdict = 0xff
