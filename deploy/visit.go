package deploy

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/weft-sdn/weft"
	"github.com/weft-sdn/weft/flow"
)

var errNotHere = errors.New("the stage is not there")

// visitor identifies a session of another process.
type visitor struct{ process, session uint64 }

// visit is the local stages' state of a session of another process.
type visit struct {
	mu     sync.Mutex // one batch of it at a time
	stages map[*service]weft.StageFunc
	used   time.Time
}

// visitLife is how long the stages' state of an idle session is kept.
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

// workbench is the memory for processing a batch of another process.
type workbench struct {
	packet   flow.PacketIn
	decision flow.Decision
	rest     batch // packets for stages further on
	results  []result
	answer   []byte
	tally    tally
}

// result is the result of a packet: its part of the answer, or its index in the
// workbench's rest.
type result struct{ start, end, onward int }

var workbenches = sync.Pool{New: func() any { return &workbench{} }}

// packets answers a batch of packet-ins of another process: it runs all
// consecutive stages that are here and sends the rest on.
func (c *crossing) packets(ctx context.Context, stamp *stamp, request []byte) ([]byte, error) {
	r := cursor{b: request}
	process, rest := r.uint64(), r.strings()
	if r.err != nil {
		return nil, r.err
	}
	var here []*service
	t := c.node.worker.tables.Load()
	for _, name := range rest {
		s := t.service(name)
		if s == nil {
			break
		}
		s.busy.Add(1) // before the check, so that it does not stop meanwhile
		defer s.busy.Add(-1)
		if !s.serving.Load() || len(here) == 0 && !stamp.meant(s) {
			break
		}
		here = append(here, s)
	}
	if len(here) == 0 {
		if len(rest) > 0 {
			if app := (*c.node.apps.stages.Load())[rest[0]]; app != nil {
				return c.ask(ctx, app, process, rest, &r)
			}
		}
		return []byte{answerNotHere}, nil
	}
	w := workbenches.Get().(*workbench)
	defer func() {
		w.packet.Data = nil
		w.rest.reset()
		workbenches.Put(w)
	}()
	w.rest.begin(c.node.self, rest[len(here):])
	w.results, w.answer = w.results[:0], append(w.answer[:0], answerOK)
	if err := c.work(w, process, here, &r); err != nil {
		return nil, err
	}
	if w.rest.empty() {
		return bytes.Clone(w.answer), nil
	}
	c.pass(ctx, &w.rest, w.rest.all(nil))
	return w.merge(), nil
}

// work runs the local stages on every packet of a request.
func (c *crossing) work(w *workbench, process uint64, here []*service, r *cursor) error {
	now := time.Now().UnixNano()
	onward := len(w.rest.rest) > 0
	var stages []weft.StageFunc
	var owners []*service
	for len(r.b) > 0 {
		session, sw := r.uint64(), flow.DPID(r.uint64())
		_, count := r.uint64(), r.uint32()
		if r.err != nil {
			return r.err
		}
		v := c.visit(visitor{process, session})
		v.mu.Lock()
		stages, owners = v.open(here, sw, stages[:0], owners[:0])
		w.tally.reset(len(stages))
		err := func() error {
			defer v.mu.Unlock()
			defer w.tally.settle(owners)
			w.packet.Switch, w.packet.Time = sw, now // the sender's clock may differ
			for range count {
				if err := r.packet(&w.packet, &w.decision); err != nil {
					return err
				}
				stages := stages
				if t := c.node.worker.tracer; t != nil && w.packet.Trace != 0 {
					stages = tracedStages(t, stages, owners)
				}
				verdict, last := runStages(stages, owners, &w.packet, &w.decision)
				w.tally.end(last)
				if verdict == flow.Next && onward {
					if err := w.rest.add(nil, c.onward(process, session), &w.packet, &w.decision, now); err != nil {
						return err
					}
					w.results = append(w.results, result{onward: len(w.rest.records)})
					continue
				}
				start := len(w.answer)
				var err error
				if w.answer, err = appendVerdict(w.answer, verdict, &w.decision); err != nil {
					return fmt.Errorf("encode the decision: %w", err)
				}
				if onward {
					w.results = append(w.results, result{start: start, end: len(w.answer)})
				}
			}
			return nil
		}()
		if err != nil {
			return err
		}
	}
	return nil
}

// merge returns the answer, with the results of the processes further on.
func (w *workbench) merge() []byte {
	b := append(make([]byte, 0, 2*len(w.answer)+16*len(w.results)), answerOK)
	for _, r := range w.results {
		if r.onward == 0 {
			b = append(b, w.answer[r.start:r.end]...)
			continue
		}
		rec := &w.rest.records[r.onward-1]
		switch {
		case !rec.done:
			b = append(b, byte(undecided))
		case len(rec.decision) == 0:
			b = append(b, byte(rec.verdict))
		default:
			b = append(b, byte(rec.verdict)|hasDecision)
			b = binary.LittleEndian.AppendUint32(b, uint32(len(rec.decision)))
			b = append(b, rec.decision...)
		}
	}
	return b
}

// onward returns the number by which the processes further on know a session of
// another process.
func (c *crossing) onward(process, session uint64) uint64 {
	return (process*0x9e3779b97f4a7c15 ^ session) | 1<<63
}

// open returns the stages for a session of a switch.
func (v *visit) open(here []*service, sw flow.DPID, stages []weft.StageFunc, owners []*service) ([]weft.StageFunc, []*service) {
	for _, s := range here {
		f, known := v.stages[s]
		if !known {
			f = s.openStage(sw)
			if v.stages[s] = f; len(v.stages) > 8 { // of services that are gone
				v.stages = map[*service]weft.StageFunc{s: f}
			}
		}
		if f != nil {
			stages, owners = append(stages, f), append(owners, s)
		}
	}
	return stages, owners
}

// runStages runs stages on a packet, and returns the last one that processed
// it; a stage that panics drops the packet.
func runStages(stages []weft.StageFunc, owners []*service, in *flow.PacketIn, d *flow.Decision) (v flow.Verdict, at int) {
	defer func() {
		if p := recover(); p != nil {
			_ = owners[at].panicked("the stage", p) // panicked logs it
			d.Reset()
			v = flow.Drop
		}
	}()
	for at = range stages {
		if v := stages[at](in, d); v != flow.Next {
			return v, at
		}
		if len(in.HeldBy) > 0 {
			in.Pass(owners[at].spec.Name)
		}
	}
	return flow.Next, at
}
