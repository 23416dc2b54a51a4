package deploy

import (
	"time"

	"github.com/weft-sdn/weft"
	"github.com/weft-sdn/weft/flow"
)

// Tracer records the steps of single packet-ins, to show where time goes.
// Several goroutines call its methods on the packet path, so they must not
// block. deploy/tracing has one.
type Tracer interface {
	// Sample returns the number of a new trace; 0 if the next packet-in is not
	// traced.
	Sample() uint64
	// Span records a part of the way of a traced packet-in.
	Span(Span)
}

// Span is a part of the way of a packet-in: all of it, a stage, or the way to
// another process and back.
type Span struct {
	Trace        uint64 // number from Sample
	Root         bool   // the whole way, from the switch's message to the decision
	Name         string // packet-in, the name of a stage's service, or "crossing to" that of the next stage
	Switch       flow.DPID
	Port         flow.Port // of a root span in the process of the session; else 0
	Src, Dst     flow.MAC  // likewise
	Verdict      flow.Verdict
	Began, Ended time.Time
}

const rootSpan = "packet-in"

// traced is Packet for a packet with a trace.
func (w *walk) traced(t Tracer, in *flow.PacketIn, d *flow.Decision) (v flow.Verdict) {
	began, plain := time.Now(), w.stages
	w.stages = tracedStages(t, plain, w.owners)
	v = w.run(in, d)
	w.stages = plain
	w.tally.end(w.at)
	if v == flow.Next && w.lane != nil {
		return w.send(in, d) // the lane ends the trace
	}
	if !d.Empty() {
		w.abroad(d)
	}
	t.Span(Span{Trace: in.Trace, Root: true, Name: rootSpan, Switch: in.Switch, Port: in.Key.InPort, Src: in.Key.EthSrc, Dst: in.Key.EthDst,
		Verdict: v, Began: began, Ended: time.Now()})
	return v
}

// tracedStages returns stages that record the time they take.
func tracedStages(t Tracer, stages []weft.StageFunc, owners []*service) []weft.StageFunc {
	list := make([]weft.StageFunc, len(stages))
	for i, f := range stages {
		list[i] = func(in *flow.PacketIn, d *flow.Decision) flow.Verdict {
			began := time.Now()
			v := f(in, d)
			t.Span(Span{Trace: in.Trace, Name: owners[i].spec.Name, Switch: in.Switch, Verdict: v, Began: began, Ended: time.Now()})
			return v
		}
	}
	return list
}

// tellCrossing records spans for a batch's traced packets that went to another
// process and back.
func tellCrossing(t Tracer, p *batch, list []int, began time.Time) {
	ended := time.Now()
	for _, i := range list {
		if r := &p.records[i]; r.trace != 0 {
			t.Span(Span{Trace: r.trace, Name: "crossing to " + p.rest[0], Verdict: r.verdict, Began: began, Ended: ended})
		}
	}
}
