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
	w := &walk{}
	for _, st := range s.worker.pipeline {
		f := st.openStage(sw)
		if f == nil {
			continue // it has nothing to do with this switch
		}
		if s.worker.wire != nil {
			f = st.encodedStage(f)
		}
		w.stages, w.owners = append(w.stages, f), append(w.owners, st)
	}
	if len(w.stages) == 1 {
		return w.single
	}
	return w.all
}

// walk is the opened pipeline of one switch.
type walk struct {
	stages []weft.StageFunc
	owners []*service // of the stages
}

func (w *walk) all(in *flow.PacketIn, d *flow.Decision) (v flow.Verdict) {
	at := 0
	defer w.dropOnPanic(&at, d, &v)
	for at = range w.stages {
		if v := w.stages[at](in, d); v != flow.Next {
			return v
		}
	}
	return flow.Next
}

func (w *walk) single(in *flow.PacketIn, d *flow.Decision) (v flow.Verdict) {
	at := 0
	defer w.dropOnPanic(&at, d, &v)
	return w.stages[0](in, d)
}

// dropOnPanic, deferred, makes of a panic in a stage a dropped packet.
func (w *walk) dropOnPanic(at *int, d *flow.Decision, v *flow.Verdict) {
	if p := recover(); p != nil {
		_ = w.owners[*at].panicked("the stage", p) // logged there
		d.Reset()
		*v = flow.Drop
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
