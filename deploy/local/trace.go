package local

import (
	"time"

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
	To           string   // of the way to another process: its name
	Transport    string   // and over what
	Operations   []string // of a stage, if somebody watches: what it added to the decision
	Programs     []uint64 // likewise: the switches that these change
	Kept         bool     // likewise: it decides later
}

const RootSpan = "packet-in"
