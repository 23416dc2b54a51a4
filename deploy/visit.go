package deploy

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"time"

	"weft"
	"weft/flow"
)

var errNotHere = errors.New("the stage is not there")

// visitor names a session of another process.
type visitor struct{ process, session uint64 }

// visit is a session of another process at the stages that are here.
type visit struct {
	mu     sync.Mutex // one batch of it at a time
	stages map[*service]weft.StageFunc
	used   time.Time
}

// visitLife is how long the stages' notes of a session that sends nothing are
// kept.
const visitLife = 10 * time.Minute

func (c *crossing) visit(v visitor) *visit {
	c.mu.Lock()
	defer c.mu.Unlock()
	at := c.visits[v]
	if at == nil {
		if len(c.visits)%1024 == 1023 {
			for k, old := range c.visits {
				if time.Since(old.used) > visitLife {
					delete(c.visits, k)
				}
			}
		}
		at = &visit{stages: map[*service]weft.StageFunc{}}
		c.visits[v] = at
	}
	at.used = time.Now()
	return at
}

// workbench is the memory in which a batch of another process is dealt with.
type workbench struct {
	packet   flow.PacketIn
	decision flow.Decision
	rest     parcel
	back     []int // which packet each of rest is
	results  []result
	answer   []byte
}

// result is what has become of a packet: the verdict, and where in the answer
// under construction, or in that of the next process, its decision is.
type result struct {
	verdict    flow.Verdict
	start, end int
	elsewhere  []byte
}

var workbenches = sync.Pool{New: func() any { return &workbench{} }}

// packets answers a batch of packet-ins of another process: it runs all
// consecutive stages that are here and passes the rest on.
func (c *crossing) packets(ctx context.Context, request []byte) ([]byte, error) {
	r := cursor{b: request}
	process, rest := r.uint64(), r.strings()
	if r.err != nil {
		return nil, r.err
	}
	var here []*service
	t := c.node.worker.tables.Load()
	for _, name := range rest {
		s := t.service(name)
		if s == nil || !s.serving.Load() {
			break
		}
		here = append(here, s)
	}
	if len(here) == 0 {
		return []byte{answerNotHere}, nil
	}
	for _, s := range here {
		s.busy.Add(1)
		defer s.busy.Add(-1)
	}
	w := workbenches.Get().(*workbench)
	defer workbenches.Put(w)
	defer w.rest.reset()
	w.rest.rest = rest[len(here):]
	w.results, w.back, w.answer = w.results[:0], w.back[:0], w.answer[:0]
	if err := c.work(w, process, here, &r); err != nil {
		return nil, err
	}
	if len(w.rest.records) > 0 {
		c.pass(ctx, &w.rest)
		for i, at := range w.back {
			rec := &w.rest.records[i]
			if !rec.done {
				w.results[at] = result{verdict: undecided}
				continue
			}
			w.results[at] = result{verdict: rec.verdict, elsewhere: rec.decision}
		}
	}
	return w.encode(), nil
}

// work runs the stages that are here on every packet of a request.
func (c *crossing) work(w *workbench, process uint64, here []*service, r *cursor) error {
	var at *visit
	var session uint64
	defer func() {
		if at != nil {
			at.mu.Unlock()
		}
	}()
	var stages []weft.StageFunc
	var owners []*service
	for len(r.b) > 0 {
		number, hash := r.uint64(), r.uint32()
		packet := r.take(uint64(r.uint32()))
		decision := r.take(uint64(r.uint32()))
		if r.err != nil {
			return r.err
		}
		if err := w.packet.UnmarshalBinary(packet); err != nil {
			return err
		}
		w.decision.Reset()
		if len(decision) > 0 {
			if err := w.decision.UnmarshalBinary(decision); err != nil {
				return err
			}
		}
		if at == nil || number != session {
			if at != nil {
				at.mu.Unlock()
			}
			session, at = number, c.visit(visitor{process, number})
			at.mu.Lock()
			stages, owners = at.open(here, w.packet.Switch, stages[:0], owners[:0])
		}
		v := runStages(stages, owners, &w.packet, &w.decision)
		if v == flow.Next && len(w.rest.rest) > 0 {
			if err := w.rest.add(nil, c.onward(process, number), &w.packet, &w.decision, hash); err != nil {
				return err
			}
			w.back = append(w.back, len(w.results))
			w.results = append(w.results, result{verdict: undecided})
			continue
		}
		start := len(w.answer)
		if !w.decision.Empty() {
			var err error
			if w.answer, err = w.decision.AppendBinary(w.answer); err != nil {
				return fmt.Errorf("encode the decision: %w", err)
			}
		}
		w.results = append(w.results, result{verdict: v, start: start, end: len(w.answer)})
	}
	return nil
}

// onward returns the number under which a session of another process is known
// to the processes after this one.
func (c *crossing) onward(process, session uint64) uint64 {
	return (process*0x9e3779b97f4a7c15 ^ session) | 1<<63
}

// open returns the stages for a session of a switch.
func (v *visit) open(here []*service, sw flow.DPID, stages []weft.StageFunc, owners []*service) ([]weft.StageFunc, []*service) {
	for _, s := range here {
		f, known := v.stages[s]
		if !known {
			f = s.openStage(sw)
			if v.stages[s] = f; len(v.stages) > 8 { // of services that have gone
				v.stages = map[*service]weft.StageFunc{s: f}
			}
		}
		if f != nil {
			stages, owners = append(stages, f), append(owners, s)
		}
	}
	return stages, owners
}

// runStages runs stages on a packet; one that panics has it dropped.
func runStages(stages []weft.StageFunc, owners []*service, in *flow.PacketIn, d *flow.Decision) (v flow.Verdict) {
	at := 0
	defer func() {
		if p := recover(); p != nil {
			_ = owners[at].panicked("the stage", p) // logged there
			d.Reset()
			v = flow.Drop
		}
	}()
	for at = range stages {
		if v := stages[at](in, d); v != flow.Next {
			return v
		}
	}
	return flow.Next
}

// encode returns the answer.
func (w *workbench) encode() []byte {
	size := 1
	for i := range w.results {
		size += 5 + w.results[i].end - w.results[i].start + len(w.results[i].elsewhere)
	}
	b := append(make([]byte, 0, size), answerOK)
	for i := range w.results {
		r := &w.results[i]
		decision := r.elsewhere
		if decision == nil {
			decision = w.answer[r.start:r.end]
		}
		b = append(b, byte(r.verdict))
		b = binary.LittleEndian.AppendUint32(b, uint32(len(decision)))
		b = append(b, decision...)
	}
	return b
}
