package local

import (
	"math"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/packet"
)

// Recorder records the steps of single packet-ins in this process, for an
// exporter (Tracer) and for those who watch packets. What is watched waits in a
// ring until it is read. Without either, a packet costs one atomic load.
type Recorder struct {
	process string
	tracer  Tracer                   // nil for none
	life    time.Duration            // of a watch that is not renewed
	watches atomic.Pointer[[]*watch] // nil: nobody watches; replaced, never written to
	packets atomic.Pointer[spanRing] // what they see; nil if nobody watches
	mu      sync.Mutex               // guards what follows
	askers  map[uint64]*asker        // by the run of their process
	timer   *time.Timer              // ends watches that are not renewed; nil if there are none
}

// Bits of a trace's number: whether somebody watches the packet, and whether the
// exporter takes no part in it.
const (
	traceWatched    = 1 << 63
	traceUnexported = 1 << 62
)

// Bounds of what a process keeps for those who watch.
const (
	watchAskers = 16
	watchMost   = 64   // watches
	ringSpans   = 4096 // spans
	answerSpans = 256  // of one answer
	// MostWatches is how many watches one asker may have: those of the clients of a
	// gateway, and of some whom it has asked to go.
	MostWatches = 16
	// MaxWatchRate is the most packets per second of one watch.
	MaxWatchRate = 100
)

// asker is a process that asks for what clients there watch.
type asker struct {
	watches []*watch
	until   time.Time
}

// watch chooses packets for one client.
type watch struct {
	id    uint64
	hold  bool      // nothing is chosen for it yet; guarded by Recorder.mu
	rest  uint32    // a packet is chosen if its draw is at most this
	sw    flow.DPID // 0: all
	match flow.Match
	Pace
}

// CheckWatch returns what packets a request asks for.
func CheckWatch(r *api.WatchPacketsRequest) (m flow.Match, sw flow.DPID, err error) {
	if m, err = flow.ParseMatch(r.GetMatch()); err == nil && r.GetDpid() != "" {
		sw, err = flow.ParseDPID(r.Dpid)
	}
	return m, sw, err
}

// Pace admits at most a number of packets in any second.
type Pace struct {
	gap, slack int64        // ns
	next       atomic.Int64 // when the next is due, if none came early
}

// Set sets the number, 1 to MaxWatchRate; 0 is the most.
func (p *Pace) Set(perSecond uint32) {
	n := int64(min(perSecond, MaxWatchRate))
	if n == 0 {
		n = MaxWatchRate
	}
	burst := (n + 3) / 4 // so many at once, and the rest one after the other
	p.gap = int64(time.Second) / (n - burst + 1)
	p.slack = (burst - 1) * p.gap
}

// Admits reports whether a packet at a time, in ns, is admitted.
func (p *Pace) Admits(now int64) bool {
	for {
		next := p.next.Load()
		if next > now+p.slack {
			return false
		}
		if p.next.CompareAndSwap(next, max(next, now)+p.gap) {
			return true
		}
	}
}

// On reports whether anything is recorded.
func (r *Recorder) On() bool { return r.tracer != nil || r.watches.Load() != nil }

// lottery draws a number for every packet of a session.
type lottery uint64

func (l *lottery) draw() uint32 { // Knuth's generator, the upper half
	*l = *l*6364136223846793005 + 1442695040888963407
	return uint32(*l >> 32)
}

// begin decides whether a packet-in is recorded, and sets its Trace.
func (r *Recorder) begin(in *flow.PacketIn, l *lottery) {
	in.Trace = 0
	if r.tracer != nil {
		in.Trace = r.tracer.Sample() &^ (traceWatched | traceUnexported)
	}
	if list := r.watches.Load(); list != nil {
		r.choose(*list, in, l.draw())
	}
}

// choose begins to record a packet that somebody who watches gets.
func (r *Recorder) choose(list []*watch, in *flow.PacketIn, draw uint32) {
	var ids []uint64
	for _, w := range list {
		if draw > w.rest || w.sw != 0 && w.sw != in.Switch {
			continue
		}
		if w.match.Set != 0 && !w.match.Matches(packet.Headers(in)) || !w.Admits(readAt(in)) {
			continue
		}
		ids = append(ids, w.id)
	}
	ring := r.packets.Load()
	if len(ids) == 0 || ring == nil {
		return
	}
	if in.Trace == 0 {
		in.Trace = rand.Uint64()>>2 | traceUnexported | 1
	}
	in.Trace |= traceWatched
	at := readAt(in)
	ring.put(entry{
		&api.WatchSpan{Trace: in.Trace, Watches: ids, Began: at, Ended: at, Packet: &api.WatchedPacket{Process: r.process}},
		&head{in.Switch, *packet.Headers(in), len(in.Data)},
	})
}

// readAt returns when a packet was read, ns since 1970.
func readAt(in *flow.PacketIn) int64 {
	if in.Time != 0 {
		return in.Time
	}
	return time.Now().UnixNano()
}

// Watches reports whether what happens to a packet with this trace is wanted by
// those who watch.
func (r *Recorder) Watches(trace uint64) bool {
	return trace&traceWatched != 0 && r.packets.Load() != nil
}

// Span records a part of the way of a packet that is recorded.
func (r *Recorder) Span(s Span) {
	if r.Watches(s.Trace) {
		if ring := r.packets.Load(); ring != nil {
			w := &api.WatchSpan{
				Trace: s.Trace, To: s.To, Transport: s.Transport, End: s.Root,
				Began: s.Began.UnixNano(), Ended: s.Ended.UnixNano(), Verdict: s.Verdict.String(), Operations: s.Operations,
				Programs: s.Programs, Kept: s.Kept,
			}
			if !s.Root && s.Transport == "" {
				w.Service = s.Name
			}
			ring.put(entry{WatchSpan: w})
		}
	}
	if r.tracer != nil && s.Trace&traceUnexported == 0 {
		s.Trace &^= traceWatched
		r.tracer.Span(s)
	}
}

// Watch takes what another process, or this one, asks for those who watch there,
// and returns what was recorded since it asked last.
func (r *Recorder) Watch(o *api.WatchOrder) *api.WatchSpans {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	before := r.askers[o.GetAsker()]
	delete(r.askers, o.GetAsker())
	if len(o.GetWatches()) > 0 && len(r.askers) < watchAskers {
		a := &asker{until: now.Add(r.life)}
		for _, p := range o.Watches[:min(len(o.Watches), MostWatches)] {
			w := before.find(p.GetId())
			if w == nil {
				w = newWatch(p)
			}
			if w != nil {
				w.hold = p.GetHold()
				a.watches = append(a.watches, w)
			}
		}
		if r.askers == nil {
			r.askers = map[uint64]*asker{}
		}
		r.askers[o.Asker] = a
	}
	ring := r.packets.Load()
	r.renew(now)
	answer := &api.WatchSpans{Process: r.process, Next: o.GetAfter()}
	if ring == nil {
		ring = r.packets.Load()
	}
	if ring != nil {
		answer.Spans, answer.Next, answer.More = ring.after(o.GetAfter())
	}
	return answer
}

func newWatch(p *api.PacketWatch) *watch {
	m, sw, err := CheckWatch(p.GetWanted())
	if err != nil {
		return nil // of another version: the asker has checked it
	}
	w := &watch{id: p.Id, rest: math.MaxUint32 / max(p.Wanted.GetOneIn(), 1), sw: sw, match: m}
	w.Set(p.Wanted.GetMaxPerS())
	return w
}

// find returns the watch of an id; nil if there is none.
func (a *asker) find(id uint64) *watch {
	if a != nil {
		for _, w := range a.watches {
			if w.id == id {
				return w
			}
		}
	}
	return nil
}

// renew lets packets be chosen for the watches that have been renewed in time.
// The caller holds the lock.
func (r *Recorder) renew(now time.Time) {
	var list []*watch
	var last time.Time
	for run, a := range r.askers {
		if !a.until.After(now) {
			delete(r.askers, run)
			continue
		}
		for _, w := range a.watches {
			if !w.hold && len(list) < watchMost {
				list = append(list, w)
			}
		}
		if a.until.After(last) {
			last = a.until
		}
	}
	if r.timer != nil {
		r.timer.Stop()
		r.timer = nil
	}
	if len(r.askers) == 0 {
		r.watches.Store(nil)
		r.packets.Store(nil)
		return
	}
	if r.packets.Load() == nil {
		r.packets.Store(&spanRing{})
	}
	r.watches.Store(&list)
	r.timer = time.AfterFunc(last.Sub(now), func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.renew(time.Now())
	})
}
