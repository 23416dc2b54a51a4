package deploy

import (
	"context"
	"errors"
	"slices"

	"google.golang.org/grpc/codes"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/deploy/local"
	"github.com/weft-sdn/weft/deploy/members"
	"github.com/weft-sdn/weft/flow"
)

// run is a part of a decision: consecutive operations of one partition, none of
// them a fence.
type run struct {
	partition  string
	start, end int // indexes of operations
}

// segment divides the operations from start to the next fence, or to the end,
// into runs.
func segment(p *members.Parts, d *flow.Decision, start int) (runs []run, end int) {
	var last flow.DPID
	for end = start; end < len(d.Ops) && d.Ops[end].Kind != flow.OpFence; end++ {
		sw := d.Ops[end].Switch
		if n := len(runs); n > 0 && (sw == last || p.Plan.PartitionOf(sw) == runs[n-1].partition) {
			runs[n-1].end = end + 1
		} else {
			runs = append(runs, run{p.Plan.PartitionOf(sw), end, end + 1})
		}
		last = sw
	}
	return runs, end
}

// solePartition returns the partition of all operations, or false if there are
// several.
func solePartition(p *members.Parts, d *flow.Decision) (partition string, ok bool) {
	known := false
	for i := range d.Ops {
		if d.Ops[i].Kind == flow.OpFence {
			continue
		}
		switch of := p.Plan.PartitionOf(d.Ops[i].Switch); {
		case !known:
			partition, known = of, true
		case of != partition:
			return "", false
		}
	}
	return partition, known
}

// decide applies a decision whose switches may belong to several partitions. It
// works in order: a partition's part goes out when the others have accepted
// what precedes it, so that egress entries come first; after a fence, when
// everything before the fence is confirmed everywhere. Operations for an
// unreachable partition fail, like those for a disconnected switch; the rest is
// applied.
func (c *directedCall) decide(ctx context.Context, d *flow.Decision) (any, error) {
	if partition, ok := solePartition(c.parts, d); ok {
		return c.one(ctx, partition, d)
	}
	result := &api.ApplyResult{}
	if c.method.MethodName() == api.Send.Name && d.Fenced() {
		kept, err := copyDecision(d)
		if err != nil {
			return nil, err
		}
		later := *c
		later.method = api.Apply
		go later.carry(context.WithoutCancel(ctx), kept, &api.ApplyResult{})
		return result, nil
	}
	c.carry(ctx, d, result)
	if ctx.Err() != nil {
		return nil, local.ErrorOf(ctx.Err())
	}
	return result, nil
}

// carry applies a decision part by part.
func (c *directedCall) carry(ctx context.Context, d *flow.Decision, result *api.ApplyResult) {
	part := &flow.Decision{Flows: d.Flows, Groups: d.Groups, Meters: d.Meters, Outs: d.Outs, Trace: d.Trace}
	away := map[string]error{}
segments:
	for start := 0; start < len(d.Ops); {
		runs, end := segment(c.parts, d, start)
		for _, r := range runs {
			if err := away[r.partition]; err != nil {
				result.Failures = append(result.Failures, failures(d, r.start, r.end, err.Error())...)
				continue
			}
			sub := *part
			sub.Ops = d.Ops[r.start:r.end:r.end]
			resp, err := c.put(ctx, &sub, reach{partition: r.partition, patience: partPatience, present: true})
			if errors.Is(err, errReplanned) {
				if v, _, ok := c.n.directed(c.method); ok {
					c.view, c.parts, start = v, v.Parts, r.start
					continue segments
				}
			}
			if err != nil {
				away[r.partition] = err
				result.Failures = append(result.Failures, failures(d, r.start, r.end, err.Error())...)
				continue
			}
			for _, f := range resp.(*api.ApplyResult).GetFailures() {
				result.Failures = append(result.Failures, &api.ApplyFailure{
					Dpid: f.Dpid, Op: f.Op + uint32(r.start), Type: f.Type, Code: f.Code, Text: f.Text, Transient: f.Transient,
				})
			}
		}
		if len(result.Failures) > 0 && end < len(d.Ops) {
			result.Failures = append(result.Failures, failures(d, end, len(d.Ops), "not sent: an operation before the fence has failed")...)
			return
		}
		start = end + 1
	}
}

// failures returns failures for the operations that were not applied.
func failures(d *flow.Decision, start, end int, text string) (list []*api.ApplyFailure) {
	for i := start; i < end; i++ {
		if op := &d.Ops[i]; op.Kind != flow.OpFence {
			list = append(list, &api.ApplyFailure{Dpid: op.Switch.String(), Op: uint32(i), Text: text, Transient: true})
		}
	}
	return list
}

// copyDecision returns a copy that shares no memory with d.
func copyDecision(d *flow.Decision) (*flow.Decision, error) {
	b, err := d.AppendBinary(nil)
	kept := &flow.Decision{}
	if err == nil {
		err = kept.UnmarshalBinary(b)
	}
	if err != nil {
		return nil, api.Errorf(codes.Internal, "copy a decision: %w", err)
	}
	return kept, nil
}

// applyAbroad applies the part of a packet's decision that is not for the
// packet's own switch, if any of it is for switches of other partitions, and
// removes that part from d. The session sends the rest after what is for other
// switches, as usual. It returns what failed.
func (n *Node) applyAbroad(owner *local.Service, at flow.DPID, d *flow.Decision) []*api.ApplyFailure {
	v := n.members.links.View.Load()
	if v.Parts == nil || !slices.ContainsFunc(d.Ops, func(op flow.Op) bool {
		return op.Kind != flow.OpFence && op.Switch != at && v.Parts.Plan.PartitionOf(op.Switch) != v.Parts.Own
	}) {
		return nil
	}
	c := directedCall{n: n, from: owner, view: v, parts: v.Parts, method: api.Send}
	if d.Fenced() {
		if _, err := c.decide(owner.Context, d); err != nil {
			owner.Log.Error("decision for switches of several partitions cannot be carried out", "error", err)
		}
		d.Reset()
		return nil
	}
	others := &flow.Decision{Flows: d.Flows, Groups: d.Groups, Meters: d.Meters, Outs: d.Outs, Trace: d.Trace}
	for _, op := range d.Ops {
		if op.Switch != at {
			others.Ops = append(others.Ops, op)
		}
	}
	d.Ops = slices.DeleteFunc(d.Ops, func(op flow.Op) bool { return op.Switch != at })
	result := &api.ApplyResult{}
	c.carry(owner.Context, others, result)
	return result.Failures
}
