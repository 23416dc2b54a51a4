package local

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/weft-sdn/weft"
	"github.com/weft-sdn/weft/flow"
)

// pipeline is the pipeline of one session of a switch: the stages in this process
// up to the first that runs elsewhere, and the crossing to the rest.
type pipeline struct {
	Crossing
	owner *Service // the southbound, which opened it
	sw    flow.DPID

	version  uint64 // of the worker's pipeline when the stages were looked up
	stages   Stages
	rest     []string // the remaining stages, from the first that runs elsewhere
	here     int      // how many stages of the pipeline precede the rest
	held     bool     // stages could move here, but packets are in flight
	observed bool     // there are observers
	lottery  lottery  // of those who watch
}

// Pipeline opens every stage for one session of a switch and returns them as
// one. If a stage panics, the packet and all operations so far are dropped.
func (s *Service) Pipeline(sw flow.DPID, later weft.Later) weft.Pipeline {
	if !s.Spec.Pipeline && s.Spec.Beside == nil {
		panic(fmt.Sprintf("%s opens the pipeline, but its Spec does not say Pipeline", s.Spec.Name))
	}
	p := &pipeline{Crossing: s.worker.cluster.Open(s, sw, later), owner: s, sw: sw, stages: Stages{Recorder: s.worker.recorder, From: s.Spec.Name}, lottery: lottery(rand.Uint64())}
	p.reopen()
	return p
}

// reopen looks up the stages again. Stages that are still there keep their
// state of the session.
func (p *pipeline) reopen() {
	p.Flush()
	p.version = p.owner.worker.version.Load()
	t := p.owner.worker.tables.Load()
	names := p.names(t.Pipeline)
	most := len(names)
	if !p.returned() { // no packet overtakes those in flight
		most = p.here
	}
	var here []*Service
	p.here, p.held, p.rest = len(names), false, nil
	for i, name := range names {
		s := t.Service(name)
		absent := s == nil || !s.Serving.Load()
		if absent || i >= most {
			p.here, p.held, p.rest = i, !absent, names[i:]
			break
		}
		here = append(here, s)
	}
	p.stages.Open(p.sw, here)
	p.observed = p.Route(p.rest)
}

// names returns the stages for the packets of the session, in order.
func (p *pipeline) names(order []string) []string {
	without := p.owner.Spec.Beside
	if !slices.ContainsFunc(order, func(name string) bool { return slices.Contains(without, name) }) {
		return order
	}
	return slices.DeleteFunc(slices.Clone(order), func(name string) bool { return slices.Contains(without, name) })
}

// returnTime is how long a session whose pipeline has changed waits for its
// packets in flight. If that is not enough, the session does not use the stages
// that have moved here yet.
const returnTime = 10 * time.Millisecond

// returned waits, for a short time, until no packet is in flight.
func (p *pipeline) returned() bool {
	for end := time.Now().Add(returnTime); p.Away() > 0; time.Sleep(100 * time.Microsecond) {
		if time.Now().After(end) {
			return false
		}
	}
	return true
}

// Packet runs the local stages on a packet and sends it to the rest.
func (p *pipeline) Packet(in *flow.PacketIn, d *flow.Decision) flow.Verdict {
	if p.version != p.owner.worker.version.Load() || p.held && p.Away() == 0 {
		p.reopen()
	}
	if p.observed {
		p.Observe(in)
	}
	var began time.Time // of a trace
	if p.stages.Recorder.begin(in, &p.lottery); in.Trace != 0 {
		began = time.Now()
	}
	v := p.stages.Run(in, d)
	if in.Trace != 0 {
		d.Trace = p.stages.Recorder.WatchedTrace(in.Trace)
	}
	if v == flow.Next && len(p.rest) > 0 {
		return p.Send(in, d) // the crossing ends the trace
	}
	if !d.Solely(p.sw) {
		p.Apply(d)
	}
	if in.Trace != 0 {
		p.stages.Recorder.Span(Span{Trace: in.Trace, Root: true, Name: RootSpan, Switch: in.Switch, Port: in.Key.InPort, Src: in.Key.EthSrc, Dst: in.Key.EthDst,
			Verdict: v, Began: began, Ended: time.Now()})
	}
	return v
}

// Flush settles the counts and sends the packets for other processes.
func (p *pipeline) Flush() {
	p.stages.Settle()
	p.Crossing.Flush()
}
