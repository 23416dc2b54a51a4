package packets

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"sync"
	"time"

	"github.com/weft-sdn/weft/deploy/local"
	"github.com/weft-sdn/weft/deploy/members"
	"github.com/weft-sdn/weft/flow"
)

// sessionID identifies a session of another process.
type sessionID struct{ process, session uint64 }

// remoteSession is a session of another process whose packets stages here process.
type remoteSession struct {
	mu     sync.Mutex // one batch of it at a time
	stages local.Stages
	used   time.Time
}

// remoteLife is how long the stages' state of an idle session is kept.
const remoteLife = 10 * time.Minute

func (c *Lanes) remoteSession(id sessionID) *remoteSession {
	c.mu.Lock()
	defer c.mu.Unlock()
	g := c.remotes[id]
	if g == nil {
		if len(c.remotes)%1024 == 1023 {
			for k, old := range c.remotes {
				if time.Since(old.used) > remoteLife {
					delete(c.remotes, k)
				}
			}
		}
		g = &remoteSession{stages: local.Stages{Recorder: c.Worker.Recorder()}}
		c.remotes[id] = g
	}
	g.used = time.Now()
	return g
}

// scratch is the memory for processing a batch of another process.
type scratch struct {
	packet   flow.PacketIn
	decision flow.Decision
	rest     batch // packets for stages further on
	results  []result
	answer   []byte
	now      int64 // when the batch came
	encode   encoding
}

// result is the result of a packet: its part of the answer, or its index in the
// scratch's rest.
type result struct{ start, end, onward int }

var scratches = sync.Pool{New: func() any { return &scratch{} }}

// Packets answers a batch of packet-ins of another process: it runs all
// consecutive stages that are here and sends the rest on.
func (c *Lanes) Packets(ctx context.Context, stamp *members.Stamp, request []byte) ([]byte, error) {
	r := members.Cursor{B: request}
	process, rest := r.Uint64(), r.Strings()
	if r.Err != nil {
		return nil, r.Err
	}
	var here []*local.Service
	t := c.Worker.Running()
	for _, name := range rest {
		s := t.Service(name)
		if s == nil {
			break
		}
		if !s.Takes() {
			break
		}
		defer s.Done()
		if len(here) == 0 && !stamp.Meant(s) {
			break
		}
		here = append(here, s)
	}
	if len(here) == 0 {
		if len(rest) > 0 {
			if app := c.Stage(rest[0]); app != nil {
				return c.ask(ctx, app, process, rest, &r)
			}
		}
		return []byte{members.AnswerNotHere}, nil
	}
	w := c.scratch(rest[len(here):])
	defer w.free()
	if err := c.work(w, process, here, &r); err != nil {
		return nil, err
	}
	return c.finish(ctx, w), nil
}

// scratch returns memory for a batch. Packets that pass the stages here go on
// to the stages rest in other processes.
func (c *Lanes) scratch(rest []string) *scratch {
	w := scratches.Get().(*scratch)
	w.rest.begin(c.Self, rest)
	w.results, w.answer, w.now = w.results[:0], append(w.answer[:0], members.AnswerOK), time.Now().UnixNano()
	w.encode = (*flow.Decision).AppendBinary
	if c.Links.View.Load().Records {
		w.encode = (*flow.Decision).AppendRecords
	}
	return w
}

// free keeps the memory for another batch.
func (w *scratch) free() {
	w.packet.Data = nil
	w.rest.reset()
	scratches.Put(w)
}

// finish sends the packets for stages further on, and returns the answer.
func (c *Lanes) finish(ctx context.Context, w *scratch) []byte {
	if w.rest.empty() {
		return bytes.Clone(w.answer)
	}
	w.rest.recordHandover(time.Now().UnixNano())
	c.forward(ctx, &w.rest, w.rest.all())
	return w.merge()
}

// work runs the local stages on every packet of a request.
func (c *Lanes) work(w *scratch, process uint64, here []*local.Service, r *members.Cursor) error {
	for len(r.B) > 0 {
		id, sw := sessionID{process, r.Uint64()}, flow.DPID(r.Uint64())
		_, count := r.Uint64(), r.Uint32()
		if r.Err != nil {
			return r.Err
		}
		w.packet.Switch, w.packet.Time = sw, w.now // the sender's clock may differ
		if err := c.runStages(w, id, here, r, count); err != nil {
			return err
		}
	}
	return nil
}

// runStages runs the local stages on packets of one session.
func (c *Lanes) runStages(w *scratch, id sessionID, here []*local.Service, r *members.Cursor, count uint32) error {
	g := c.remoteSession(id)
	g.mu.Lock()
	defer g.mu.Unlock()
	g.stages.Open(w.packet.Switch, here)
	defer g.stages.Settle()
	for range count {
		if err := readPacket(r, &w.packet, &w.decision); err != nil {
			return err
		}
		if err := c.answer(w, id, g.stages.Run(&w.packet, &w.decision), &w.packet, &w.decision); err != nil {
			return err
		}
	}
	return nil
}

// answer appends what the stages here made of a packet to the answer, or the
// packet to those for the stages further on.
func (c *Lanes) answer(w *scratch, id sessionID, v flow.Verdict, in *flow.PacketIn, d *flow.Decision) error {
	if v == flow.Next && len(w.rest.rest) > 0 {
		if err := w.rest.add(nil, id.remoteNumber(), in, d, w.now); err != nil {
			return err
		}
		w.results = append(w.results, result{onward: len(w.rest.records)})
		return nil
	}
	start := len(w.answer)
	var err error
	if w.answer, err = appendVerdict(w.answer, v, d, w.encode); err != nil {
		return fmt.Errorf("encode the decision: %w", err)
	}
	if len(w.rest.rest) > 0 {
		w.results = append(w.results, result{start: start, end: len(w.answer)})
	}
	return nil
}

// merge returns the answer, with the results of the processes further on.
func (w *scratch) merge() []byte {
	b := append(make([]byte, 0, 2*len(w.answer)+16*len(w.results)), members.AnswerOK)
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

// remoteNumber returns the number of the session in the processes further on.
func (id sessionID) remoteNumber() uint64 {
	return (id.process*0x9e3779b97f4a7c15 ^ id.session) | 1<<63
}
