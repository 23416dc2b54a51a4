package deploy

import (
	"fmt"

	"weft"
	"weft/flow"
)

// Pipeline opens every stage for one switch and returns them as one. A stage
// that panics has its packet dropped and all operations so far forgotten.
func (s *service) Pipeline(sw flow.DPID) weft.StageFunc {
	if !s.spec.Pipeline {
		panic(fmt.Sprintf("%s opens the pipeline, but its Spec does not say Pipeline", s.spec.Name))
	}
	var stages []weft.StageFunc
	for _, st := range s.worker.pipeline {
		f := st.openStage(sw)
		if f == nil {
			continue // it has nothing to do with this switch
		}
		if s.worker.wire != nil {
			f = st.encodedStage(f)
		}
		stages = append(stages, f)
	}
	switch len(stages) {
	case 0:
		return func(*flow.PacketIn, *flow.Decision) flow.Verdict { return flow.Next }
	case 1:
		stage := stages[0]
		return func(in *flow.PacketIn, d *flow.Decision) (v flow.Verdict) {
			defer s.dropOnPanic(d, &v)
			return stage(in, d)
		}
	}
	return func(in *flow.PacketIn, d *flow.Decision) (v flow.Verdict) {
		defer s.dropOnPanic(d, &v)
		for _, stage := range stages {
			if v := stage(in, d); v != flow.Next {
				return v
			}
		}
		return flow.Next
	}
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

// dropOnPanic, deferred, makes of a panic in the pipeline a dropped packet.
func (s *service) dropOnPanic(d *flow.Decision, v *flow.Verdict) {
	if p := recover(); p != nil {
		_ = s.panicked("a stage of the pipeline", p) // logged there
		d.Reset()
		*v = flow.Drop
	}
}
