package flow

import (
	"slices"
	"time"
)

// OpKind is the kind of one operation of a Decision.
type OpKind uint8

// The kinds of operation.
const (
	OpFlow OpKind = iota
	OpGroup
	OpMeter
	OpPacketOut
	OpFence // wait: everything before it, on every switch, is confirmed by barrier before anything after it is sent
)

// Programs reports whether operations of the kind change what a switch has.
func (k OpKind) Programs() bool { return k <= OpMeter }

// Op is one operation on one switch; Index numbers it among those of its kind
// in the Decision.
type Op struct {
	Kind   OpKind
	Index  uint32
	Switch DPID
}

// Decision is a program for the network: operations on switches, applied in
// order, each switch seeing its own in order. It is a value in reused memory:
// Reset empties it and keeps what it has allocated. Pointers and slices that
// its methods return are valid until the next call of a method.
type Decision struct {
	Ops    []Op
	Flows  []Mod
	Groups []GroupMod
	Meters []MeterMod
	Outs   []PacketOut
	Trace  uint64 // of the packet, if somebody watches it: switches confirm what the decision changes; 0 otherwise
	Kept   bool   // by a stage: it decides later, and sends what it then does with Trace; does not cross to other processes

	actions []Action
	buckets []Bucket // decoded by UnmarshalBinary, as are bands and data
	bands   []Band
	data    []byte
}

// Confirmation is what became, at one switch, of a decision with a Trace.
type Confirmation struct {
	Decision *Decision
	Switch   DPID
	Ended    time.Time
	Failed   map[int]error // by the number of the operation: why it is not confirmed
}

// Reset empties the decision.
func (d *Decision) Reset() {
	d.Ops, d.Flows, d.Groups, d.Meters, d.Outs, d.Trace = d.Ops[:0], d.Flows[:0], d.Groups[:0], d.Meters[:0], d.Outs[:0], 0
	d.Kept = false
	d.actions, d.buckets, d.bands, d.data = d.actions[:0], d.buckets[:0], d.bands[:0], d.data[:0]
}

// Fenced reports whether the decision has a fence.
func (d *Decision) Fenced() bool {
	for i := range d.Ops {
		if d.Ops[i].Kind == OpFence {
			return true
		}
	}
	return false
}

// Solely reports whether all operations are for one switch, without a fence.
func (d *Decision) Solely(sw DPID) bool {
	for i := range d.Ops {
		if op := &d.Ops[i]; op.Switch != sw || op.Kind == OpFence {
			return false
		}
	}
	return true
}

// Programs returns the switches whose entries, groups or meters the operations
// from one on change, in the order of their first.
func (d *Decision) Programs(from int) (list []DPID) {
	for i := min(from, len(d.Ops)); i < len(d.Ops); i++ {
		if op := &d.Ops[i]; op.Kind.Programs() && !slices.Contains(list, op.Switch) {
			list = append(list, op.Switch)
		}
	}
	return list
}

// Empty reports whether the decision has no operations.
func (d *Decision) Empty() bool { return len(d.Ops) == 0 }

// Actions copies a list of actions into the decision's own memory.
func (d *Decision) Actions(list ...Action) []Action {
	n := len(d.actions)
	d.actions = append(d.actions, list...)
	return d.actions[n:len(d.actions):len(d.actions)]
}

// Output returns, in the decision's own memory, the list of one action that
// sends the packet out of p. It writes the action in place, which is twice as
// fast as copying one.
func (d *Decision) Output(p Port) []Action {
	n := len(d.actions)
	if n == cap(d.actions) {
		return d.Actions(Output(p))
	}
	d.actions = d.actions[:n+1]
	a := &d.actions[n]
	a.Kind, a.Field, a.MaxLen, a.Arg, a.Value, a.Data = ActionOutput, 0, 0, uint32(p), [16]byte{}, ""
	if p == PortController {
		a.MaxLen = NoBuffer
	}
	return d.actions[n : n+1 : n+1]
}

// AddFlow appends a flow-mod that adds an empty entry, to be filled in place.
func (d *Decision) AddFlow(sw DPID) *Mod {
	d.Ops = append(d.Ops, Op{OpFlow, uint32(len(d.Flows)), sw})
	n := len(d.Flows)
	if n < cap(d.Flows) {
		d.Flows = d.Flows[:n+1]
		d.Flows[n].clear()
	} else {
		d.Flows = append(d.Flows, Mod{})
	}
	m := &d.Flows[n]
	m.BufferID, m.OutPort, m.OutGroup = BufferNone, PortAny, GroupAny
	return m
}

// Flow appends a flow-mod.
func (d *Decision) Flow(sw DPID, m Mod) {
	d.Ops = append(d.Ops, Op{OpFlow, uint32(len(d.Flows)), sw})
	d.Flows = append(d.Flows, m)
}

// Group appends a group-mod.
func (d *Decision) Group(sw DPID, m GroupMod) {
	d.Ops = append(d.Ops, Op{OpGroup, uint32(len(d.Groups)), sw})
	d.Groups = append(d.Groups, m)
}

// Meter appends a meter-mod.
func (d *Decision) Meter(sw DPID, m MeterMod) {
	d.Ops = append(d.Ops, Op{OpMeter, uint32(len(d.Meters)), sw})
	d.Meters = append(d.Meters, m)
}

// PacketOut appends a packet-out.
func (d *Decision) PacketOut(sw DPID, o PacketOut) {
	d.Ops = append(d.Ops, Op{OpPacketOut, uint32(len(d.Outs)), sw})
	d.Outs = append(d.Outs, o)
}

// Fence appends a fence: operations after it wait until those before it are
// confirmed.
func (d *Decision) Fence() { d.Ops = append(d.Ops, Op{Kind: OpFence}) }
