package deploy

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weft-sdn/weft"
	"github.com/weft-sdn/weft/flow"
)

// walk is the pipeline of one session of a switch: the stages in this process
// up to the first that runs elsewhere, and the route to the rest.
type walk struct {
	owner   *service // the southbound, which opened it
	sw      flow.DPID
	session uint64
	later   weft.Later
	handing sync.Mutex // held while later is called: packets and probes use different lanes
	closed  atomic.Bool

	version uint64 // of the worker's pipeline when the walk was opened
	stages  []weft.StageFunc
	owners  []*service // of the stages
	open    map[*service]weft.StageFunc
	rest    []string // the remaining stages, from the first that runs elsewhere
	lane    *lane    // nil if none is
	taps    []*tap   // to observers
	batch   *batch   // packets to send to the rest; nil if there are none
	probes  *batch   // the same, of probes
	at      int      // the current stage
	tally   tally    // counts packets per stage

	away atomic.Int64  // packets in flight through the rest
	back atomic.Uint64 // packets that came back
	seen atomic.Uint64 // of back: probes
	here int           // how many stages of the pipeline precede the rest
	held bool          // stages could move here, but packets are in flight
}

// Pipeline opens every stage for one session of a switch and returns them as
// one. If a stage panics, the packet and all operations so far are dropped.
func (s *service) Pipeline(sw flow.DPID, later weft.Later) weft.Pipeline {
	if !s.spec.Pipeline && s.spec.Beside == nil {
		panic(fmt.Sprintf("%s opens the pipeline, but its Spec does not say Pipeline", s.spec.Name))
	}
	w := &walk{owner: s, sw: sw, later: later}
	if n := s.worker.node; n != nil {
		w.session = n.crossing.last.Add(1)
	}
	w.reopen()
	return w
}

// reopen looks up the stages again. Stages that are still there keep their
// state of the session.
func (w *walk) reopen() {
	w.Flush()
	defer func() { w.tally.reset(len(w.stages)) }()
	worker := w.owner.worker
	w.version = worker.version.Load()
	t := worker.tables.Load()
	if worker.node != nil {
		w.taps = nil
		if list := worker.node.taps.Load(); list != nil {
			w.taps = *list
		}
	}
	before := w.open
	w.stages, w.owners, w.rest, w.lane, w.open = nil, nil, nil, nil, map[*service]weft.StageFunc{}
	w.held = false
	names := w.names(t.pipeline)
	most := len(names)
	if !w.returned() { // no packet overtakes those in flight
		most = w.here
	}
	w.here = len(names)
	for i, name := range names {
		s := t.service(name)
		absent := s == nil || !s.serving.Load()
		switch {
		case worker.node != nil && (absent || i >= most):
			w.here, w.held = i, !absent
			w.rest, w.lane = names[i:], worker.node.crossing.lane(w.session)
			return
		case s == nil:
			continue
		}
		f, known := before[s]
		if !known {
			if f = s.openStage(w.sw); f != nil && worker.wire != nil {
				f = s.encodedStage(f)
			}
		}
		w.open[s] = f
		if f != nil { // nil: it ignores this switch
			w.stages, w.owners = append(w.stages, f), append(w.owners, s)
		}
	}
}

// names returns the stages for the packets of the session, in order.
func (w *walk) names(order []string) []string {
	without := w.owner.spec.Beside
	if !slices.ContainsFunc(order, func(name string) bool { return slices.Contains(without, name) }) {
		return order
	}
	return slices.DeleteFunc(slices.Clone(order), func(name string) bool { return slices.Contains(without, name) })
}

// returnTime is how long a session whose pipeline has changed waits for its
// packets in flight. If that is not enough, the walk does not use the stages
// that have moved here yet.
const returnTime = 10 * time.Millisecond

// returned waits, for a short time, until no packet is in flight.
func (w *walk) returned() bool {
	for end := time.Now().Add(returnTime); w.away.Load() > 0; time.Sleep(100 * time.Microsecond) {
		if time.Now().After(end) {
			return false
		}
	}
	return true
}

// Packet runs the local stages on a packet and sends it to the rest.
func (w *walk) Packet(in *flow.PacketIn, d *flow.Decision) flow.Verdict {
	if w.version != w.owner.worker.version.Load() || w.held && w.away.Load() == 0 {
		w.reopen()
	}
	for _, t := range w.taps {
		t.put(w.session, in)
	}
	in.Trace = 0
	if t := w.owner.worker.tracer; t != nil {
		if in.Trace = t.Sample(); in.Trace != 0 {
			return w.traced(t, in, d)
		}
	}
	v := w.run(in, d)
	w.tally.end(w.at)
	if v == flow.Next && w.lane != nil {
		return w.send(in, d)
	}
	if !d.Empty() {
		w.abroad(d)
	}
	return v
}

func (w *walk) run(in *flow.PacketIn, d *flow.Decision) (v flow.Verdict) {
	defer w.dropOnPanic(d, &v)
	for w.at = range w.stages {
		if v := w.stages[w.at](in, d); v != flow.Next {
			return v
		}
		if len(in.HeldBy) > 0 {
			in.Pass(w.owners[w.at].spec.Name)
		}
	}
	return flow.Next
}

// dropOnPanic, deferred, drops the packet if a stage panics.
func (w *walk) dropOnPanic(d *flow.Decision, v *flow.Verdict) {
	if p := recover(); p != nil {
		_ = w.owners[w.at].panicked("the stage", p) // panicked logs it
		d.Reset()
		*v = flow.Drop
	}
}

// send adds a packet to those for the rest.
func (w *walk) send(in *flow.PacketIn, d *flow.Decision) flow.Verdict {
	to, lane := &w.batch, w.lane
	if in.Key.EthType == flow.EthTypeLLDP {
		to, lane = &w.probes, w.owner.worker.node.crossing.probes()
	}
	if *to == nil {
		*to = lane.begin(w.rest)
	}
	if err := (*to).add(w, w.session, in, d, in.Time); err != nil {
		w.owner.log.Error("packet-in cannot be sent to another process", "error", err)
		return flow.Drop
	}
	if len((*to).data) >= batchFull {
		w.Flush()
	}
	w.away.Add(1)
	return flow.Away
}

// Flush sends the collected packets.
func (w *walk) Flush() {
	w.tally.settle(w.owners)
	if w.probes != nil {
		w.owner.worker.node.crossing.probes().send(w.probes)
		w.probes = nil
	}
	if w.batch != nil {
		w.lane.send(w.batch)
		w.batch = nil
	}
}

// Returned returns how many packets have come back from other processes, and
// how many of them were probes.
func (w *walk) Returned() (all, probes uint64) {
	all = w.back.Load()
	return all, min(all, w.seen.Load())
}

// returns counts packets that came back.
func (w *walk) returns(n uint64, probes bool) {
	if probes {
		w.seen.Add(n) // before back: rather too many probes than too many others
	}
	w.back.Add(n)
}

// Away returns how many packets of the session are in flight through stages in
// other processes.
func (w *walk) Away() int64 { return w.away.Load() }

// hand passes a decision to the session, or nil at the end of a series.
func (w *walk) hand(d *flow.Decision) {
	w.handing.Lock()
	defer w.handing.Unlock()
	w.later(d)
}

// Close ends the session.
func (w *walk) Close() {
	w.closed.Store(true)
}

// openStage calls the open function of the service's stage.
func (s *service) openStage(sw flow.DPID) weft.StageFunc {
	s.mu.Lock()
	open := s.open
	s.mu.Unlock()
	if open == nil {
		panic(fmt.Sprintf("the stage of %s is not set up yet; open the pipeline after weft.Ready", s.spec.Name))
	}
	return open(sw)
}
