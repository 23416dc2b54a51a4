package flow

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// opSame, in the octet with the kind of an operation, means that it is for the
// same switch as the one before.
const opSame = 0x80

// traceOf, in the place of the kind of an operation, says that the number of the
// packet's trace follows.
const traceOf = 0x60

// AppendBinary appends the encoding of d (encoding.BinaryAppender): its
// operations in order, each with its operand; it leaves out what no operation
// refers to.
func (d *Decision) AppendBinary(b []byte) ([]byte, error) { return d.append(b, false) }

func (d *Decision) append(b []byte, records bool) ([]byte, error) {
	b = append(b, wireDecision)
	if d.Trace != 0 {
		b = binary.LittleEndian.AppendUint64(append(b, traceOf), d.Trace)
	}
	var last DPID
	for i, op := range d.Ops {
		kind, n := uint8(op.Kind), uint64(op.Index)
		record := false
		switch {
		case !records:
		case op.Kind == OpFlow && n < uint64(len(d.Flows)) && d.Flows[n].recorded():
			kind, record = recordFlow, true
		case op.Kind == OpPacketOut && n < uint64(len(d.Outs)) && d.Outs[n].recorded():
			kind, record = recordOut, true
		}
		if op.Switch == last {
			b = append(b, kind|opSame)
		} else {
			b = binary.LittleEndian.AppendUint64(append(b, kind), uint64(op.Switch))
			last = op.Switch
		}
		var err error
		switch {
		case record && op.Kind == OpFlow:
			b = d.Flows[n].appendRecord(b)
		case record:
			b = d.Outs[n].appendRecord(b)
		case op.Kind == OpFlow && n < uint64(len(d.Flows)):
			b, err = appendMod(b, &d.Flows[n])
		case op.Kind == OpGroup && n < uint64(len(d.Groups)):
			b, err = appendGroup(b, &d.Groups[n])
		case op.Kind == OpMeter && n < uint64(len(d.Meters)):
			b = appendMeter(b, &d.Meters[n])
		case op.Kind == OpPacketOut && n < uint64(len(d.Outs)):
			b, err = appendOut(b, &d.Outs[n])
		case op.Kind == OpFence:
		default:
			err = fmt.Errorf("kind %d, index %d: there is no such thing in the decision", op.Kind, op.Index)
		}
		if err != nil {
			return b, fmt.Errorf("flow: encode decision: operation %d: %w", i, err)
		}
	}
	return b, nil
}

// UnmarshalBinary decodes what AppendBinary wrote into d's own memory, whatever
// d held before. After an error d is empty.
func (d *Decision) UnmarshalBinary(b []byte) error {
	d.Reset()
	r := reader{b: b}
	r.begin(wireDecision)
	var sw DPID
	for len(r.b) > 0 {
		kind := r.uint8()
		if kind == traceOf {
			d.Trace = r.uint64()
			continue
		}
		if kind&opSame == 0 {
			sw = DPID(r.uint64())
		}
		switch OpKind(kind &^ opSame) {
		case OpFlow:
			d.decodeMod(&r, sw)
		case OpGroup:
			d.decodeGroup(&r, sw)
		case OpMeter:
			d.decodeMeter(&r, sw)
		case OpPacketOut:
			d.decodeOut(&r, sw)
		case recordFlow:
			d.decodeRecord(&r, sw)
		case recordOut:
			d.decodeOutRecord(&r, sw)
		case OpFence:
			d.Ops = append(d.Ops, Op{Kind: OpFence, Switch: sw})
		default:
			r.fail(fmt.Errorf("operation of kind %d: there is none", kind&^opSame))
		}
	}
	err := r.end("decision")
	if err != nil {
		d.Reset()
	}
	return err
}

// decodeActions reads a list of actions into d's memory.
func (d *Decision) decodeActions(r *reader) []Action {
	n := len(d.actions)
	d.actions = r.actions(d.actions)
	if len(d.actions) == n {
		return nil
	}
	return d.actions[n:len(d.actions):len(d.actions)]
}

// Presence bits of a flow-mod.
const (
	modBuffer = 1 << iota
	modOutPort
	modOutGroup
	modCookieMask
)

func appendMod(b []byte, m *Mod) ([]byte, error) {
	var flags uint8
	for i, set := range [...]bool{m.BufferID != BufferNone, m.OutPort != PortAny, m.OutGroup != GroupAny, m.CookieMask != 0} {
		if set {
			flags |= 1 << i
		}
	}
	b = append(b, uint8(m.Command), flags)
	if flags&modBuffer != 0 {
		b = binary.LittleEndian.AppendUint32(b, m.BufferID)
	}
	if flags&modOutPort != 0 {
		b = binary.LittleEndian.AppendUint32(b, uint32(m.OutPort))
	}
	if flags&modOutGroup != 0 {
		b = binary.LittleEndian.AppendUint32(b, m.OutGroup)
	}
	if flags&modCookieMask != 0 {
		b = binary.LittleEndian.AppendUint64(b, uint64(m.CookieMask))
	}
	return appendEntry(b, &m.Entry)
}

func (d *Decision) decodeMod(r *reader, sw DPID) {
	m := d.AddFlow(sw)
	m.Command = r.command()
	flags := r.uint8()
	if flags&modBuffer != 0 {
		m.BufferID = r.uint32()
	}
	if flags&modOutPort != 0 {
		m.OutPort = Port(r.uint32())
	}
	if flags&modOutGroup != 0 {
		m.OutGroup = r.uint32()
	}
	if flags&modCookieMask != 0 {
		m.CookieMask = Cookie(r.uint64())
	}
	r.entry(&m.Entry)
	m.Entry.Apply = d.decodeActions(r)
	m.Entry.Write = d.decodeActions(r)
}

func (r *reader) command() Command {
	c := Command(r.uint8())
	if c > DeleteStrict {
		r.fail(fmt.Errorf("command %d: there is none", c))
	}
	return c
}

func appendGroup(b []byte, g *GroupMod) ([]byte, error) {
	b = append(b, uint8(g.Command), uint8(g.Group.Kind))
	b = binary.LittleEndian.AppendUint32(b, g.Group.ID)
	b = binary.AppendUvarint(b, uint64(len(g.Group.Buckets)))
	for i := range g.Group.Buckets {
		k := &g.Group.Buckets[i]
		b = binary.LittleEndian.AppendUint16(b, k.Weight)
		b = binary.LittleEndian.AppendUint32(b, uint32(k.WatchPort))
		b = binary.LittleEndian.AppendUint32(b, k.WatchGroup)
		var err error
		if b, err = appendActions(b, k.Actions); err != nil {
			return b, err
		}
	}
	return b, nil
}

func (d *Decision) decodeGroup(r *reader, sw DPID) {
	g := GroupMod{Command: r.command()}
	g.Group.Kind, g.Group.ID = GroupKind(r.uint8()), r.uint32()
	first := len(d.buckets)
	for n := r.uvarint(); n > 0 && r.err == nil; n-- {
		k := Bucket{Weight: r.uint16(), WatchPort: Port(r.uint32()), WatchGroup: r.uint32()}
		k.Actions = d.decodeActions(r)
		d.buckets = append(d.buckets, k)
	}
	if n := len(d.buckets); n > first {
		g.Group.Buckets = d.buckets[first:n:n]
	}
	d.Group(sw, g)
}

func appendMeter(b []byte, m *MeterMod) []byte {
	b = append(b, uint8(m.Command))
	b = binary.LittleEndian.AppendUint32(b, m.Meter.ID)
	b = binary.LittleEndian.AppendUint16(b, m.Meter.Flags)
	b = binary.AppendUvarint(b, uint64(len(m.Meter.Bands)))
	for _, band := range m.Meter.Bands {
		b = binary.LittleEndian.AppendUint16(b, uint16(band.Kind))
		b = binary.LittleEndian.AppendUint32(b, band.Rate)
		b = binary.LittleEndian.AppendUint32(b, band.BurstSize)
		b = append(b, band.PrecLevel)
	}
	return b
}

func (d *Decision) decodeMeter(r *reader, sw DPID) {
	m := MeterMod{Command: r.command()}
	m.Meter.ID, m.Meter.Flags = r.uint32(), r.uint16()
	first := len(d.bands)
	for n := r.uvarint(); n > 0 && r.err == nil; n-- {
		d.bands = append(d.bands, Band{MeterKind(r.uint16()), r.uint32(), r.uint32(), r.uint8()})
	}
	if n := len(d.bands); n > first {
		m.Meter.Bands = d.bands[first:n:n]
	}
	d.Meter(sw, m)
}

func appendOut(b []byte, o *PacketOut) ([]byte, error) {
	b = binary.LittleEndian.AppendUint32(b, o.BufferID)
	b = binary.LittleEndian.AppendUint32(b, uint32(o.InPort))
	b, err := appendActions(b, o.Actions)
	if err != nil {
		return b, err
	}
	if len(o.Data) > 0xffff {
		return b, errors.New("packet-out of more than 65535 octets")
	}
	b = binary.AppendUvarint(b, uint64(len(o.Data)))
	return append(b, o.Data...), nil
}

func (d *Decision) decodeOut(r *reader, sw DPID) {
	o := PacketOut{BufferID: r.uint32(), InPort: Port(r.uint32())}
	o.Actions = d.decodeActions(r)
	first := len(d.data)
	d.data = append(d.data, r.bytes()...)
	if n := len(d.data); n > first {
		o.Data = d.data[first:n:n]
	}
	d.PacketOut(sw, o)
}
