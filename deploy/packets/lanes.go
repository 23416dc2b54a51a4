// Package packets carries packet-ins to stages in other processes of a plan and
// to apps, and runs the stages here on those of others.
//
// Only deploy imports it.
package packets

import (
	"context"
	"hash/maphash"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weft-sdn/weft"
	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/deploy/apps"
	"github.com/weft-sdn/weft/deploy/local"
	"github.com/weft-sdn/weft/deploy/members"
	"github.com/weft-sdn/weft/flow"
)

// Lanes send packet-ins to stages in other processes, and receive those of
// others. Packets wait in lanes. A lane has one batch in flight and collects
// the next one meanwhile, so batches grow with the load. All packets of a flow
// use one lane, so they never overtake each other, whichever replica receives a
// batch. Link probes have a lane of their own, so a delay of other packets
// makes no link look dead. A batch that gets no answer goes to another replica,
// or waits until one is back. Packets that waited too long, or find no room,
// are dropped and counted.
type Lanes struct {
	Config
	lanes [laneCount + 1]lane // the last is for probes
	last  atomic.Uint64       // number of a session
	turn  atomic.Uint32       // next replica for round robin

	mu      sync.Mutex // guards what follows
	remotes map[sessionID]*remoteSession

	taps atomic.Pointer[[]*tap] // to observers; replaced, never written to

	metrics                  *local.Metrics
	dropped                  weft.Counter // packets not sent to observers
	carried, retried, merged weft.Counter
	seed                     maphash.Seed
	shedHeld, shedFull, lost weft.Counter
	astray                   weft.Counter
}

// Config says what the packets of a process pass.
type Config struct {
	Self   uint64         // incarnation of this process
	Specs  []weft.Spec    // of all services
	Worker *local.Worker  // runs those of this process
	Links  *members.Links // reach the others
	Log    *slog.Logger
	// Apply applies the operations of a decision that are for switches of other
	// partitions than the packet's own, removes them from it, and returns those
	// that failed.
	Apply func(owner *local.Service, sw flow.DPID, d *flow.Decision) []*api.ApplyFailure
	// Stage returns the app of a name that is attached here as a stage; nil if
	// there is none.
	Stage func(name string) apps.App
	// Observers returns the observers that are attached here.
	Observers func() map[string]apps.App
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

// New returns the lanes of a process.
func New(config Config) *Lanes {
	c := &Lanes{Config: config, metrics: config.Worker.Metrics("deploy"), seed: maphash.MakeSeed(), remotes: map[sessionID]*remoteSession{}}
	m := c.metrics
	c.carried = m.Counter("packets_carried_total", "Packet-ins that stages in other processes have dealt with.")
	c.retried = m.Counter("packets_retried_total", "Packet-ins sent again, because the process that they were sent to gave no answer.")
	c.merged = m.Counter("packets_merged_total", "Packet-ins that crossed together with one that was the same to the octet.")
	c.dropped = m.Counter("observer_packets_dropped_total", "Copies of packet-ins that were not sent to the process of an observer, which is too slow.")
	const shed = "Packet-ins given up, by reason."
	c.shedHeld = m.Counter("packets_shed_total", shed, "reason", "held_too_long")
	c.shedFull = m.Counter("packets_shed_total", shed, "reason", "queue_full")
	c.lost = m.Counter("packets_shed_total", shed, "reason", "session_closed")
	c.astray = m.Counter("operations_astray_total", "Operations of packets' decisions that were not carried out, as the partition of their switch could not be reached, or the switch refused them.")
	m.Gauge("packets_waiting", "Packet-ins that wait for a stage in another process.", func() float64 { return float64(c.Waiting()) })
	for i := range c.lanes {
		c.lanes[i].init(c)
	}
	return c
}

// Waiting returns how many packets wait for a stage in another process.
func (c *Lanes) Waiting() (sum int64) {
	for i := range c.lanes {
		sum += c.lanes[i].count.Load()
	}
	return sum
}

func (c *Lanes) probes() *lane { return &c.lanes[laneCount] }

// Run sends batches until ctx ends.
func (c *Lanes) Run(ctx context.Context) {
	var work sync.WaitGroup
	for i := range c.lanes {
		work.Go(func() { c.lanes[i].run(ctx) })
	}
	work.Wait()
}

// lane is a queue of batches. It sends them one at a time.
type lane struct {
	all   *Lanes
	wake  local.Signal
	count atomic.Int64 // packets that wait or are in flight

	mu      sync.Mutex // guards what follows
	freed   sync.Cond  // signalled when there is room
	batches []*batch   // in order
	free    []*batch
	packets int // in the queue
	bytes   int
	moved   time.Time // when a batch was last taken from the queue
	waiting int       // goroutines that wait for room
}

func (l *lane) init(c *Lanes) {
	l.all, l.wake = c, local.NewSignal()
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
	p.begin(l.all.Self, rest)
	return p
}

// send queues a batch. It waits for room; if there is none in time, it drops
// the batch's packets.
func (l *lane) send(p *batch) {
	p.recordHandover(time.Now().UnixNano())
	l.mu.Lock()
	defer l.mu.Unlock()
	if (l.packets >= lanePackets || l.bytes >= laneBytes) && !l.room() {
		l.all.shedFull.Add(float64(len(p.records)))
		for i := range p.records {
			p.records[i].session.returns(1, l == l.all.probes())
		}
		p.back()
		l.recycle(p)
		return
	}
	l.batches = append(l.batches, p)
	l.packets += len(p.records)
	l.bytes += len(p.data)
	l.count.Add(int64(len(p.records)))
	l.wake.Notify()
}

// room waits for room as long as the lane moves. The caller holds the lock.
func (l *lane) room() bool {
	l.wake.Notify()
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
			merged := p.merge(l.all.seed)
			l.all.forward(ctx, p, p.all())
			if merged > 0 {
				l.all.merged.Add(float64(merged))
				l.all.forward(ctx, p, p.unlike(nil))
				if err := p.unmerge(); err != nil {
					l.all.Log.Error("decision from another process cannot be read", "error", err)
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
		last.returns(returned, l == l.all.probes())
		if returned = 0; !closed {
			last.deliver(nil)
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
		if r.trace != 0 {
			l.all.Worker.Recorder().Span(local.Span{Trace: r.trace, Root: true, Name: local.RootSpan, Switch: r.session.sw, Verdict: r.verdict, Began: time.Unix(0, r.since), Ended: time.Now()})
		}
		if len(r.decision) == 0 {
			continue
		}
		if err := d.UnmarshalBinary(r.decision); err != nil {
			l.all.Log.Error("decision from another process cannot be read", "error", err)
			continue
		}
		d.Trace = l.all.Worker.Recorder().WatchedTrace(r.trace)
		if !d.Solely(r.session.sw) {
			r.session.Apply(d)
		}
		r.session.deliver(d)
	}
	end()
	l.all.carried.Add(float64(carried))
	l.all.shedHeld.Add(float64(held))
	l.all.lost.Add(float64(lost))
}
