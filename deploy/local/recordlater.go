package local

import (
	"time"

	"google.golang.org/grpc/codes"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
)

// States of a change that a switch was to confirm.
const (
	StateConfirmed = "confirmed"
	StateRefused   = "refused"
	StateLate      = "late"
	StateLost      = "lost"
)

// VerdictLater is in the place of the verdict of a stage that decided later.
const VerdictLater = "later"

// WatchedTrace returns the trace of a packet for its decision: 0 if nobody
// watches the packet.
func (r *Recorder) WatchedTrace(trace uint64) uint64 {
	if trace == 0 || !r.Watches(trace) {
		return 0
	}
	return trace
}

// put records a part of the way of a packet that somebody watches.
func (r *Recorder) put(s *api.WatchSpan) {
	if r.Watches(s.Trace) {
		if ring := r.packets.Load(); ring != nil {
			ring.put(entry{WatchSpan: s})
		}
	}
}

// confirmed records what a switch has said to the changes of a decision.
func (r *Recorder) confirmed(c *flow.Confirmation) {
	d := c.Decision
	if !r.Watches(d.Trace) {
		return
	}
	at := c.Ended.UnixNano()
	s := &api.WatchSpan{Trace: d.Trace, Began: at, Ended: at}
	for i, op := range d.Ops {
		if op.Switch != c.Switch || !op.Kind.Programs() {
			continue
		}
		if len(s.Entries) == operationsMost {
			break
		}
		e := &api.WatchedEntry{Dpid: c.Switch.String(), Operation: short(operation(d, op)), State: StateConfirmed}
		if err := c.Failed[i]; err != nil {
			e.State, e.Error = stateOf(err), short(err.Error())
		}
		s.Entries = append(s.Entries, e)
	}
	r.put(s)
}

// stateOf returns the state of a change that is not confirmed.
func stateOf(err error) string {
	switch api.KindOf(err) {
	case codes.FailedPrecondition:
		return StateRefused
	case codes.DeadlineExceeded:
		return StateLate
	}
	return StateLost
}

// decidedLater records what a stage does about a packet that it had kept.
func (r *Recorder) decidedLater(stage string, d *flow.Decision, began time.Time) {
	r.put(&api.WatchSpan{
		Trace: d.Trace, Service: stage, Later: true, Began: began.UnixNano(), Ended: time.Now().UnixNano(), Verdict: VerdictLater,
		Operations: Operations(d, 0), Programs: programs(d, 0),
	})
}
