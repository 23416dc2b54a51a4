package flow

import "slices"

// Append appends the operations of another decision, with which it then shares
// no memory.
func (d *Decision) Append(o *Decision) {
	for _, op := range o.Ops {
		switch op.Kind {
		case OpFlow:
			m := o.Flows[op.Index]
			m.Entry.Apply, m.Entry.Write = d.Actions(m.Entry.Apply...), d.Actions(m.Entry.Write...)
			d.Flow(op.Switch, m)
		case OpGroup:
			g := o.Groups[op.Index]
			g.Group.Buckets = slices.Clone(g.Group.Buckets)
			for i := range g.Group.Buckets {
				g.Group.Buckets[i].Actions = d.Actions(g.Group.Buckets[i].Actions...)
			}
			d.Group(op.Switch, g)
		case OpMeter:
			m := o.Meters[op.Index]
			m.Meter.Bands = slices.Clone(m.Meter.Bands)
			d.Meter(op.Switch, m)
		case OpPacketOut:
			out := o.Outs[op.Index]
			out.Actions = d.Actions(out.Actions...)
			n := len(d.data)
			d.data = append(d.data, out.Data...)
			out.Data = d.data[n:len(d.data):len(d.data)]
			d.PacketOut(op.Switch, out)
		case OpFence:
			d.Fence()
		}
	}
}
