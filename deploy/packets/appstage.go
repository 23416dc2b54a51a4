package packets

import (
	"bytes"
	"context"
	"slices"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/deploy/apps"
	"github.com/weft-sdn/weft/deploy/local"
	"github.com/weft-sdn/weft/deploy/members"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/plan"
)

// bundle is a batch of packets that came from another process, or that this
// process sends to an app.
type bundle struct {
	list     []apps.Packet
	sessions []uint64 // of each packet
}

// readBundle reads the packets of a request after its header.
func readBundle(r *members.Cursor) (*bundle, error) {
	b := &bundle{}
	for len(r.B) > 0 {
		session, sw := r.Uint64(), flow.DPID(r.Uint64())
		at, count := int64(r.Uint64()), r.Uint32()
		if r.Err != nil {
			return nil, r.Err
		}
		for range count {
			in, d := &flow.PacketIn{}, &flow.Decision{}
			in.Switch, in.Time = sw, at
			if err := readPacket(r, in, d); err != nil {
				return nil, err
			}
			b.list = append(b.list, apps.Packet{In: in, Decision: d})
			b.sessions = append(b.sessions, session)
		}
	}
	return b, nil
}

// ask sends a batch of packet-ins to an app that is attached here, and passes
// on those that the app answers with next.
func (c *Lanes) ask(ctx context.Context, app apps.App, process uint64, rest []string, r *members.Cursor) ([]byte, error) {
	b, err := readBundle(r)
	if err != nil {
		return nil, err
	}
	name := rest[0]
	policy := plan.AbsentHold
	asked := false
	walks := c.beginApp(b.list)
	if err := app.Packets(ctx, b.list); err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		policy = c.policy(c.Links.View.Load(), name)
		c.failed(name, policy, len(b.list), err)
		if policy == plan.AbsentHold {
			// The sender sends the packets again.
			return append([]byte{members.AnswerOK}, bytes.Repeat([]byte{byte(undecided)}, len(b.list))...), nil
		}
		verdict := flow.Next
		if policy == plan.AbsentDrop {
			verdict = flow.Drop
		}
		for i := range b.list {
			b.list[i].Verdict = verdict
		}
	} else {
		c.counted(name, b.list)
		c.endApp(name, b.list, walks)
		asked = true
	}
	w := c.scratch(rest[1:])
	defer w.free()
	for i, p := range b.list {
		if asked && p.Verdict == flow.Next {
			p.In.Pass(name)
		}
		if err := c.answer(w, sessionID{process, b.sessions[i]}, p.Verdict, p.In, p.Decision); err != nil {
			return nil, err
		}
	}
	return c.finish(ctx, w), nil
}

// appWalk is what is known of recorded packets when an app is asked.
type appWalk struct {
	began  time.Time
	before []int // operations, by packet
}

// beginApp notes what packets have before an app is asked, if any is recorded.
func (c *Lanes) beginApp(list []apps.Packet) *appWalk {
	if !slices.ContainsFunc(list, func(p apps.Packet) bool { return p.In.Trace != 0 }) {
		return nil
	}
	w := &appWalk{began: time.Now()}
	for _, p := range list {
		w.before = append(w.before, len(p.Decision.Ops))
	}
	return w
}

// endApp records the recorded packets' way through an app.
func (c *Lanes) endApp(name string, list []apps.Packet, w *appWalk) {
	if w == nil {
		return
	}
	recorder, ended := c.Worker.Recorder(), time.Now()
	for i, p := range list {
		if p.In.Trace == 0 {
			continue
		}
		s := local.Span{Trace: p.In.Trace, Name: name, Switch: p.In.Switch, Verdict: p.Verdict, Began: w.began, Ended: ended}
		if recorder.Watches(s.Trace) {
			s.Operations = local.Operations(p.Decision, w.before[i])
		}
		recorder.Span(s)
	}
}

// policy returns what to do with packets for a stage that no process runs: the
// plan's policy for an app. For a service, packets wait, unless the service was
// only part of an earlier plan.
func (c *Lanes) policy(v *members.View, stage string) string {
	if v.Current != nil {
		if app := v.Current.InForce().App(stage); app != nil {
			return app.Absent
		}
		if !slices.Contains(v.Current.InForce().Stages(c.Specs), stage) {
			return plan.AbsentSkip
		}
	}
	return plan.AbsentHold
}

// without handles packets whose next stage is absent and is not waited for.
func (c *Lanes) without(ctx context.Context, p *batch, left []int, policy string) error {
	name := p.rest[0]
	if c.Links.View.Load().Current.InForce().App(name) != nil {
		c.spared(name, policy, len(left))
	}
	onward := &batch{}
	onward.begin(c.Self, p.rest[1:])
	for _, i := range left {
		rec := &p.records[i]
		head := members.Cursor{B: p.data[rec.run:]}
		session := head.Uint64()
		in, d := flow.PacketIn{Switch: flow.DPID(head.Uint64()), Time: int64(head.Uint64())}, flow.Decision{}
		at := members.Cursor{B: p.data[rec.start:rec.end]}
		if err := readPacket(&at, &in, &d); err != nil {
			return err
		}
		if policy == plan.AbsentSkip && len(p.rest) > 1 {
			if err := onward.add(nil, session, &in, &d, rec.since); err != nil {
				return err
			}
			continue
		}
		verdict := flow.Next
		if policy == plan.AbsentDrop {
			verdict = flow.Drop
		}
		var decision []byte
		if !d.Empty() {
			var err error
			if decision, err = d.AppendBinary(nil); err != nil {
				return err
			}
		}
		rec.verdict, rec.decision, rec.done = verdict, decision, true
	}
	if onward.empty() {
		return nil
	}
	c.forward(ctx, onward, onward.all())
	for n, i := range left {
		if r := &onward.records[n]; r.done {
			rec := &p.records[i]
			rec.verdict, rec.decision, rec.done = r.verdict, r.decision, true
		}
	}
	return nil
}

// counted counts an app's decisions.
func (c *Lanes) counted(name string, list []apps.Packet) {
	var verdicts [3]int
	for i := range list {
		if v := list[i].Verdict; int(v) < len(verdicts) {
			verdicts[v]++
		}
	}
	for v, n := range verdicts {
		if n > 0 {
			word := [...]string{flow.Next: "next", flow.Done: "done", flow.Drop: "drop"}[v]
			c.metrics.Counter("app_packets_total", "Packet-ins that an app has dealt with, by verdict.", "app", name, "verdict", word).Add(float64(n))
		}
	}
}

// failed counts and logs that an app did not answer.
func (c *Lanes) failed(name, policy string, packets int, err error) {
	reason := map[codes.Code]string{codes.DeadlineExceeded: "timeout", codes.InvalidArgument: "malformed"}[api.KindOf(err)]
	if reason == "" {
		reason = "gone"
	}
	c.metrics.Counter("app_failures_total", "Batches of packet-ins that an app has not dealt with.", "app", name, "reason", reason).Add(1)
	c.Log.Warn("app has not dealt with packet-ins", "app", name, "packets", packets, "then", policy, "error", err)
	c.spared(name, policy, packets)
}

// spared counts packets that skip an app.
func (c *Lanes) spared(name, policy string, packets int) {
	switch policy {
	case plan.AbsentSkip:
		c.metrics.Counter("app_skipped_total", "Packet-ins that have gone on to the next stage without an app that was absent or did not answer.", "app", name).Add(float64(packets))
	case plan.AbsentDrop:
		c.metrics.Counter("packets_shed_total", "Packet-ins given up, by reason.", "reason", "app_absent").Add(float64(packets))
	}
}
