package local

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/weft-sdn/weft"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/plan"
)

// Stages are consecutive stages of this process for one session of a switch of
// this process or another. They are not for concurrent use.
type Stages struct {
	Recorder *Recorder
	here     []*Service // the services, in order
	known    map[*Service]weft.StageFunc
	funcs    []weft.StageFunc
	owners   []*Service // of funcs
	passed   []*Tally   // of packets to funcs; nil for the first of a guest, which its process counts
	dense    *Tally     // whose rate tells whether all packets are measured; nil for none
	From     string     // the service that opened the session; empty if another process did
	at       int        // the current stage
	ended    []uint32   // packets by their last stage, not settled yet
	any      bool       // of ended
	seen     uint64     // packets, from a random number on
	when     int64      // time of the packets of ended
}

// strangers is how many services that do not run for a session any more may
// keep their state of it.
const strangers = 8

// Open makes the stages those of some services. Services that had a stage
// before keep their state of the session.
func (r *Stages) Open(sw flow.DPID, here []*Service) {
	if r.known != nil && slices.Equal(r.here, here) {
		return
	}
	r.Settle()
	if r.known == nil {
		r.known = map[*Service]weft.StageFunc{}
		r.seen = rand.Uint64()
	}
	r.here, r.funcs, r.owners, r.passed = slices.Clone(here), nil, nil, nil
	r.dense = nil
	from := r.From
	for _, s := range here {
		f, known := r.known[s]
		if !known {
			f = s.openStage(sw)
			r.known[s] = f
		}
		if f != nil { // nil: it ignores this switch
			r.funcs, r.owners = append(r.funcs, f), append(r.owners, s)
			var t *Tally
			if from != "" {
				t = s.worker.crossings.held(CrossingOf{From: from, To: s.Spec.Name, Kind: sentPacket, Transport: plan.Inproc})
			}
			r.passed = append(r.passed, t)
			r.dense = cmp.Or(r.dense, t)
			from = s.Spec.Name
		}
	}
	if len(r.known) > len(here)+strangers {
		maps.DeleteFunc(r.known, func(s *Service, _ weft.StageFunc) bool { return !slices.Contains(here, s) })
	}
	r.ended = make([]uint32, len(r.funcs))
}

// Run runs the stages on a packet until one of them ends it. If a stage panics,
// the packet and all operations so far are dropped.
func (r *Stages) Run(in *flow.PacketIn, d *flow.Decision) flow.Verdict {
	if in.Time != r.when && r.any && in.Time/slotLength != r.when/slotLength {
		r.Settle()
	}
	v := r.runStages(in, d)
	r.when = in.Time
	if r.at < len(r.ended) {
		r.ended[r.at]++
		r.any = true
	}
	return v
}

func (r *Stages) runStages(in *flow.PacketIn, d *flow.Decision) (v flow.Verdict) {
	defer r.dropOnPanic(d, &v)
	r.seen++
	measured := chosen(r.seen)
	if measured && in.Time != 0 && len(r.owners) > 0 {
		defer r.stayed(in.Time)
	}
	observed := measured || r.dense != nil && !r.dense.sparse.Load() || in.Trace != 0
	for r.at = range r.funcs {
		if observed {
			v = r.runObserved(in, d, measured)
		} else {
			v = r.funcs[r.at](in, d)
		}
		if v != flow.Next {
			return v
		}
		if len(in.HeldBy) > 0 {
			in.Pass(r.owners[r.at].Spec.Name)
		}
	}
	return flow.Next
}

// stayed, deferred, records how long a packet that arrived at a time was in this process.
func (r *Stages) stayed(arrived int64) {
	r.owners[0].sent.packets.passed(time.Duration(max(0, time.Now().UnixNano()-arrived)))
}

// dropOnPanic, deferred, drops the packet if a stage panics.
func (r *Stages) dropOnPanic(d *flow.Decision, v *flow.Verdict) {
	if p := recover(); p != nil {
		_ = r.owners[r.at].panicked("the stage", p) // panicked logs it
		d.Reset()
		*v = flow.Drop
	}
}

// runObserved runs the current stage and records the time that it takes; as that
// of work if it is measured.
func (r *Stages) runObserved(in *flow.PacketIn, d *flow.Decision, measured bool) flow.Verdict {
	before := len(d.Ops)
	d.Kept = false
	began := time.Now()
	v := r.funcs[r.at](in, d)
	ended := time.Now()
	if t := r.passed[r.at]; t != nil {
		t.Took(ended.Sub(began), 1)
	}
	if measured {
		w := &r.owners[r.at].sent.packets
		w.took(ended.Sub(began))
		if r.at == 0 && in.Time != 0 {
			w.waited(time.Duration(began.UnixNano() - in.Time))
		}
	}
	if in.Trace != 0 {
		s := Span{Trace: in.Trace, Name: r.owners[r.at].Spec.Name, Switch: in.Switch, Verdict: v, Began: began, Ended: ended}
		if r.Recorder.Watches(in.Trace) {
			s.Operations, s.Programs, s.Kept = Operations(d, before), programs(d, before), d.Kept
		}
		r.Recorder.Span(s)
	}
	return v
}

// Settle adds the packets to the counts of the services whose stages processed
// them: one addition per batch instead of one per packet and stage.
func (r *Stages) Settle() {
	if !r.any {
		return
	}
	var seen uint64
	for at, s := range slices.Backward(r.owners) {
		seen += uint64(r.ended[at])
		r.ended[at] = 0
		if seen > 0 {
			s.sent.packets.arriveAt(seen, r.when)
			if t := r.passed[at]; t != nil {
				t.Add(seen)
			}
		}
	}
	r.any = false
}

// openStage calls the open function of the service's stage.
func (s *Service) openStage(sw flow.DPID) weft.StageFunc {
	s.registrations.mu.Lock()
	open := s.open
	s.registrations.mu.Unlock()
	if open == nil {
		panic(fmt.Sprintf("the stage of %s is not set up yet; open the pipeline after weft.Ready", s.Spec.Name))
	}
	f := open(sw)
	if f != nil && s.worker.wire != nil {
		return s.encodedStage(f)
	}
	return f
}
