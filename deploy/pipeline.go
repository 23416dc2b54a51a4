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

// walk is the opened pipeline of one session of a switch: the stages that are
// in this process up to the first that is not, and how the rest is reached.
type walk struct {
	owner   *service // who has opened it: the southbound
	sw      flow.DPID
	session uint64
	later   weft.Later
	handing sync.Mutex // held while later is called: packets and probes come back in lanes of their own
	closed  atomic.Bool

	version uint64 // of the worker's pipeline when it was opened
	stages  []weft.StageFunc
	owners  []*service // of the stages
	open    map[*service]weft.StageFunc
	rest    []string // the stages from the first that is elsewhere
	lane    *lane    // nil if none is
	taps    []*tap   // to observers
	parcel  *parcel  // what is to be sent to the rest; nil if there is nothing
	probes  *parcel  // the same, of probes
	at      int      // the stage that is at work
	tally   tally    // of the packets that the stages have seen

	away atomic.Int64  // packets that are on their way through the rest
	back atomic.Uint64 // packets that have been
	seen atomic.Uint64 // of back, probes
	here int           // how many stages, of all, come before the rest
	held bool          // more of them could be here, but for the packets that are away
}

// Pipeline opens every stage for one session of a switch and returns them as
// one. A stage that panics has its packet dropped and all operations so far
// forgotten.
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

// reopen looks again which stages there are. Those that are still there keep
// what they have noted of the session.
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
	if !w.returned() { // no packet overtakes those that are away
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
		if f != nil { // else it has nothing to do with this switch
			w.stages, w.owners = append(w.stages, f), append(w.owners, s)
		}
	}
}

// names returns the stages that the packets of the session pass, in order.
func (w *walk) names(order []string) []string {
	without := w.owner.spec.Beside
	if !slices.ContainsFunc(order, func(name string) bool { return slices.Contains(without, name) }) {
		return order
	}
	return slices.DeleteFunc(slices.Clone(order), func(name string) bool { return slices.Contains(without, name) })
}

// returnTime is how long a session whose pipeline has changed waits for its
// packets that are away; the stages that have come here meanwhile are passed by
// if it is not enough.
const returnTime = 10 * time.Millisecond

// returned waits, a moment, until no packet is away.
func (w *walk) returned() bool {
	for end := time.Now().Add(returnTime); w.away.Load() > 0; time.Sleep(100 * time.Microsecond) {
		if time.Now().After(end) {
			return false
		}
	}
	return true
}

// Packet runs the stages that are here on a packet and sends it on to the rest.
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

// dropOnPanic, deferred, makes of a panic in a stage a dropped packet.
func (w *walk) dropOnPanic(d *flow.Decision, v *flow.Verdict) {
	if p := recover(); p != nil {
		_ = w.owners[w.at].panicked("the stage", p) // logged there
		d.Reset()
		*v = flow.Drop
	}
}

// send puts a packet among those that are to be sent to the rest.
func (w *walk) send(in *flow.PacketIn, d *flow.Decision) flow.Verdict {
	to, lane := &w.parcel, w.lane
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
	if len((*to).data) >= parcelFull {
		w.Flush()
	}
	w.away.Add(1)
	return flow.Away
}

// Flush sends off the packets that are away.
func (w *walk) Flush() {
	w.tally.settle(w.owners)
	if w.probes != nil {
		w.owner.worker.node.crossing.probes().send(w.probes)
		w.probes = nil
	}
	if w.parcel != nil {
		w.lane.send(w.parcel)
		w.parcel = nil
	}
}

// Returned is how many packets have been away and are so no more, and how many of
// these are probes.
func (w *walk) Returned() (all, probes uint64) {
	all = w.back.Load()
	return all, min(all, w.seen.Load())
}

// returns takes packets that are away no more.
func (w *walk) returns(n uint64, probes bool) {
	if probes {
		w.seen.Add(n) // before back: rather too many probes than too many others
	}
	w.back.Add(n)
}

// Away returns how many packets of the session are on their way through stages in
// other processes.
func (w *walk) Away() int64 { return w.away.Load() }

// hand hands a decision to the session, or nil behind a series.
func (w *walk) hand(d *flow.Decision) {
	w.handing.Lock()
	defer w.handing.Unlock()
	w.later(d)
}

// Close ends the session.
func (w *walk) Close() {
	w.closed.Store(true)
}

// openStage calls the open function that the service registered.
func (s *service) openStage(sw flow.DPID) weft.StageFunc {
	s.mu.Lock()
	open := s.open
	s.mu.Unlock()
	if open == nil {
		panic(fmt.Sprintf("the stage of %s is not set up yet; open the pipeline after weft.Ready", s.spec.Name))
	}
	return open(sw)
}
