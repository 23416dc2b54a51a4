package flow

import (
	"encoding/binary"
	"fmt"
)

// What stages decide about most packets has a fixed layout in the encoding of a
// decision, besides the general one: a flow-mod that adds or changes an entry
// for a port, two Ethernet addresses and a VLAN, with one output, and a
// packet-out with one output. Such a record is written and read without a look
// at every field.

// The kinds of records, numbered like operations.
const (
	recordFlow = 0x40 + iota
	recordOut
)

const (
	recordFields    = 1<<FieldInPort | 1<<FieldEthDst | 1<<FieldEthSrc | 1<<FieldVLAN
	recordFlowBytes = 46
	recordOutBytes  = 16 // before the packet
)

// AppendRecords is AppendBinary with records for all operations that have one.
// UnmarshalBinary reads both; that of builds before records reads only what
// AppendBinary writes.
func (d *Decision) AppendRecords(b []byte) ([]byte, error) { return d.append(b, true) }

// recorded reports whether m fits a record.
func (m *Mod) recorded() bool {
	e := &m.Entry
	return e.Match.Set == recordFields && e.Match.Masked == 0 && len(e.Apply) == 1 && e.Apply[0].Kind == ActionOutput &&
		len(e.Write) == 0 && !e.HasWrite && !e.Clear && e.Goto == 0 && e.Meter == 0 && e.Metadata|e.MetaMask == 0 &&
		m.OutPort == PortAny && m.OutGroup == GroupAny && m.CookieMask == 0
}

// recorded reports whether o fits a record.
func (o *PacketOut) recorded() bool {
	return len(o.Actions) == 1 && o.Actions[0].Kind == ActionOutput && len(o.Data) <= 0xffff
}

// appendRecord appends the record of a flow-mod.
func (m *Mod) appendRecord(b []byte) []byte {
	e, k, a := &m.Entry, &m.Entry.Match.Key, &m.Entry.Apply[0]
	le := binary.LittleEndian
	var r [recordFlowBytes]byte
	le.PutUint64(r[0:], uint64(e.Cookie))
	le.PutUint64(r[8:], uint64(m.BufferID)|uint64(k.InPort)<<32)
	le.PutUint64(r[16:], uint64(a.Arg)|uint64(a.MaxLen)<<32|uint64(k.VLAN)<<48)
	copy(r[24:], k.EthDst[:])
	copy(r[30:], k.EthSrc[:])
	le.PutUint64(r[36:], uint64(e.Priority)|uint64(e.IdleTimeout)<<16|uint64(e.HardTimeout)<<32|uint64(e.Flags)<<48)
	r[44], r[45] = e.Table, uint8(m.Command)
	return append(b, r[:]...)
}

// decodeRecord reads the record of a flow-mod.
func (d *Decision) decodeRecord(r *reader, sw DPID) {
	v := r.take(recordFlowBytes)
	if v == nil {
		return
	}
	le := binary.LittleEndian
	m := d.AddFlow(sw)
	e, k := &m.Entry, &m.Entry.Match.Key
	buffer, output, times := le.Uint64(v[8:]), le.Uint64(v[16:]), le.Uint64(v[36:])
	e.Cookie, m.BufferID = Cookie(le.Uint64(v)), uint32(buffer)
	e.Match.Set = recordFields
	k.InPort, k.VLAN, k.EthDst, k.EthSrc = Port(buffer>>32), uint16(output>>48), MAC(v[24:30]), MAC(v[30:36])
	e.Priority, e.IdleTimeout, e.HardTimeout, e.Flags = uint16(times), uint16(times>>16), uint16(times>>32), uint16(times>>48)
	e.Table = v[44]
	if m.Command = Command(v[45]); m.Command > DeleteStrict {
		r.fail(fmt.Errorf("command %d: there is none", m.Command))
	}
	e.Apply = d.Output(Port(output))
	e.Apply[0].MaxLen = uint16(output >> 32)
}

// appendRecord appends the record of a packet-out.
func (o *PacketOut) appendRecord(b []byte) []byte {
	a := &o.Actions[0]
	var r [recordOutBytes]byte
	binary.LittleEndian.PutUint64(r[0:], uint64(o.BufferID)|uint64(o.InPort)<<32)
	binary.LittleEndian.PutUint64(r[8:], uint64(a.Arg)|uint64(a.MaxLen)<<32|uint64(len(o.Data))<<48)
	return append(append(b, r[:]...), o.Data...)
}

// decodeOutRecord reads the record of a packet-out.
func (d *Decision) decodeOutRecord(r *reader, sw DPID) {
	v := r.take(recordOutBytes)
	if v == nil {
		return
	}
	from, to := binary.LittleEndian.Uint64(v), binary.LittleEndian.Uint64(v[8:])
	o := PacketOut{BufferID: uint32(from), InPort: Port(from >> 32), Actions: d.Output(Port(to))}
	o.Actions[0].MaxLen = uint16(to >> 32)
	first := len(d.data)
	d.data = append(d.data, r.take(int(to>>48))...)
	if n := len(d.data); n > first {
		o.Data = d.data[first:n:n]
	}
	d.PacketOut(sw, o)
}
