package packets

import (
	"encoding/binary"
	"errors"

	"github.com/weft-sdn/weft/deploy/members"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/packet"
)

// The encoding of packet-ins between processes. A request is the sending
// process (8 bytes), the names of the stages ahead, and runs: consecutive
// packets of one session, after a header with their common fields. Fields that
// the receiver can read from the frame itself are omitted. An answer has a
// verdict and the decision for each packet, in order.

// runHead is the length of a run's header: session, switch, time, and number of
// packets (8, 8, 8 and 4 bytes).
const runHead = 28

// The first byte of a packet says which optional fields it has.
const (
	packetBuffer   = 1 << iota // buffer id, 4 bytes
	packetLength               // length of the whole packet, if it was truncated, 2 bytes
	packetCookie               // 8
	packetSrc                  // location of the sender, 12
	packetDst                  // location and address of the destination, 18
	packetPipeline             // physical port, metadata and tunnel, 4, 8 and 8
	packetDecision             // the decision so far, after its length, 4
	packetTrace                // number of its trace, 8
)

// packetUnapproved, in the second byte, says that a service holds a host of the
// packet: the stages that have not approved it follow the trace.
const packetUnapproved = 1 << 7

var errFrame = errors.New("malformed packets from another process")

// appendPacket appends a packet and the decision so far.
func appendPacket(b []byte, in *flow.PacketIn, d *flow.Decision) ([]byte, error) {
	if len(in.Data) > 0xffff {
		return b, errors.New("packet-in of more than 65535 octets")
	}
	at := len(b)
	k := &in.Key
	b = append(b, 0, uint8(in.Reason)|uint8(in.Role)<<4, in.Table)
	b = binary.LittleEndian.AppendUint32(b, uint32(k.InPort))
	b = binary.LittleEndian.AppendUint16(b, uint16(len(in.Data)))
	var has uint8
	if in.BufferID != flow.BufferNone {
		has |= packetBuffer
		b = binary.LittleEndian.AppendUint32(b, in.BufferID)
	}
	if int(in.TotalLen) != len(in.Data) {
		has |= packetLength
		b = binary.LittleEndian.AppendUint16(b, in.TotalLen)
	}
	if in.Cookie != 0 {
		has |= packetCookie
		b = binary.LittleEndian.AppendUint64(b, uint64(in.Cookie))
	}
	if in.Src != (flow.Location{}) {
		has |= packetSrc
		b = appendLocation(b, in.Src)
	}
	if in.Dst != (flow.Location{}) || in.DstMAC != (flow.MAC{}) {
		has |= packetDst
		b = append(appendLocation(b, in.Dst), in.DstMAC[:]...)
	}
	if uint64(k.InPhyPort)|k.Metadata|k.TunnelID != 0 {
		has |= packetPipeline
		b = binary.LittleEndian.AppendUint32(b, uint32(k.InPhyPort))
		b = binary.LittleEndian.AppendUint64(b, k.Metadata)
		b = binary.LittleEndian.AppendUint64(b, k.TunnelID)
	}
	if in.Trace != 0 {
		has |= packetTrace
		b = binary.LittleEndian.AppendUint64(b, in.Trace)
	}
	if in.Unapproved {
		b[at+1] |= packetUnapproved
		b = append(b, uint8(len(in.HeldBy)))
		for _, stage := range in.HeldBy {
			b = members.AppendBytes(b, []byte(stage))
		}
	}
	b = append(b, in.Data...)
	if !d.Empty() {
		has |= packetDecision
		start := len(b)
		var err error
		if b, err = d.AppendBinary(append(b, 0, 0, 0, 0)); err != nil {
			return b[:at], err
		}
		binary.LittleEndian.PutUint32(b[start:], uint32(len(b)-start-4))
	}
	b[at] = has
	return b, nil
}

func appendLocation(b []byte, l flow.Location) []byte {
	return binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint64(b, uint64(l.Switch)), uint32(l.Port))
}

func readLocation(r *members.Cursor) flow.Location {
	b := r.Take(12)
	if b == nil {
		return flow.Location{}
	}
	return flow.Location{Switch: flow.DPID(binary.LittleEndian.Uint64(b)), Port: flow.Port(binary.LittleEndian.Uint32(b[8:]))}
}

// readPacket decodes a packet into in, whose Data then points into the request, and
// the decision so far into d. The run supplies the switch and the time.
func readPacket(r *members.Cursor, in *flow.PacketIn, d *flow.Decision) error {
	head := r.Take(9)
	if head == nil {
		return errFrame
	}
	has, k := head[0], &in.Key
	in.Reason, in.Role, in.Table = flow.Reason(head[1]&15), flow.PortRole(head[1]>>4&7), head[2]
	port := flow.Port(binary.LittleEndian.Uint32(head[3:]))
	n := binary.LittleEndian.Uint16(head[7:])
	in.BufferID, in.TotalLen, in.Cookie = flow.BufferNone, n, 0
	in.Src, in.Dst, in.DstMAC = flow.Location{}, flow.Location{}, flow.MAC{}
	if has&packetBuffer != 0 {
		in.BufferID = r.Uint32()
	}
	if has&packetLength != 0 {
		in.TotalLen = r.Uint16()
	}
	if has&packetCookie != 0 {
		in.Cookie = flow.Cookie(r.Uint64())
	}
	if has&packetSrc != 0 {
		in.Src = readLocation(r)
	}
	if has&packetDst != 0 {
		in.Dst = readLocation(r)
		copy(in.DstMAC[:], r.Take(6))
	}
	k.InPort, k.InPhyPort, k.Metadata, k.TunnelID = port, 0, 0, 0
	if has&packetPipeline != 0 {
		k.InPhyPort, k.Metadata, k.TunnelID = flow.Port(r.Uint32()), r.Uint64(), r.Uint64()
	}
	in.Trace = 0
	if has&packetTrace != 0 {
		in.Trace = r.Uint64()
	}
	in.HeldBy = nil
	if in.Unapproved = head[1]&packetUnapproved != 0; in.Unapproved {
		in.HeldBy = r.Strings()
	}
	in.Data = r.Take(uint64(n))
	if in.Parsed = !packet.ParseEthernet(in.Data, k); in.Parsed {
		packet.Parse(in.Data, k) // too short to parse; clears the previous packet's fields
	}
	d.Reset()
	if has&packetDecision != 0 {
		decision := r.Take(uint64(r.Uint32()))
		if r.Err == nil {
			return d.UnmarshalBinary(decision)
		}
	}
	return r.Err
}

// batch is packets with the same stages ahead: a request under
// construction, and the result for each packet.
type batch struct {
	rest    []string // the stages ahead
	data    []byte   // the request
	head    int      // length of the request's header
	run     int      // offset of the last run's header in data
	records []record
	seen    []int32 // used by merge
}

// record is a packet of a batch and its result.
type record struct {
	session    *session // nil if the packet came from another process
	run        int      // offset of its run's header in the batch's data
	start, end int      // offsets of the packet there
	hash       uint32
	verdict    flow.Verdict
	done       bool
	since      int64  // when it came into this process, ns
	handed     int64  // when it was handed over to another, ns
	trace      uint64 // 0: not traced
	decision   []byte // encoded; empty for none
	like       int32  // 1 + the index of the earlier packet that it equals; 0: none
}

// begin prepares an empty batch for packets.
func (p *batch) begin(process uint64, rest []string) {
	p.rest = rest
	b := binary.LittleEndian.AppendUint64(p.data[:0], process)
	b = append(b, byte(len(rest)))
	for _, name := range rest {
		b = members.AppendBytes(b, []byte(name))
	}
	p.data, p.head, p.run = b, len(b), -1
}

// empty reports whether the batch has no packets.
func (p *batch) empty() bool { return len(p.records) == 0 }

// reset empties a batch and keeps its memory.
func (p *batch) reset() {
	clear(p.records) // drops pointers
	p.rest, p.data, p.records = nil, p.data[:0], p.records[:0]
}

// back removes the packets from the count of those in flight.
func (p *batch) back() {
	for i := range p.records {
		p.records[i].session.away.Add(-1)
	}
}

// add appends a packet of a session, and the decision so far.
func (p *batch) add(from *session, session uint64, in *flow.PacketIn, d *flow.Decision, now int64) error {
	b := p.data
	if p.run < 0 || binary.LittleEndian.Uint64(b[p.run:]) != session || int64(binary.LittleEndian.Uint64(b[p.run+16:])) != in.Time {
		p.run = len(b)
		b = binary.LittleEndian.AppendUint64(b, session)
		b = binary.LittleEndian.AppendUint64(b, uint64(in.Switch))
		b = binary.LittleEndian.AppendUint64(b, uint64(in.Time))
		b = append(b, 0, 0, 0, 0)
	}
	start := len(b)
	b, err := appendPacket(b, in, d)
	if err != nil {
		p.data = b
		return err
	}
	binary.LittleEndian.PutUint32(b[p.run+24:], binary.LittleEndian.Uint32(b[p.run+24:])+1)
	p.data = b
	n := len(p.records)
	if n < cap(p.records) {
		p.records = p.records[:n+1]
	} else {
		p.records = append(p.records, record{})
	}
	r := &p.records[n]
	r.session, r.run, r.start, r.end, r.hash, r.since = from, p.run, start, len(b), flowHash(&in.Key), now
	r.done, r.decision, r.trace, r.like = false, nil, in.Trace, 0
	return nil
}

// join appends the packets of another batch with the same stages ahead.
func (p *batch) join(q *batch) {
	shift := len(p.data) - q.head
	p.data = append(p.data, q.data[q.head:]...)
	from := len(p.records)
	p.records = append(p.records, q.records...)
	for i := from; i < len(p.records); i++ {
		r := &p.records[i]
		r.run, r.start, r.end = r.run+shift, r.start+shift, r.end+shift
	}
	if q.run >= 0 {
		p.run = q.run + shift
	}
}

// request returns the request for the packets of list.
func (p *batch) request(list []int) []byte {
	if len(list) == len(p.records) {
		return p.data
	}
	b := append(make([]byte, 0, len(p.data)), p.data[:p.head]...)
	run, at := -1, 0
	for _, i := range list {
		r := &p.records[i]
		if r.run != run {
			run, at = r.run, len(b)
			b = append(b, p.data[run:run+24]...)
			b = append(b, 0, 0, 0, 0)
		}
		b = append(b, p.data[r.start:r.end]...)
		binary.LittleEndian.PutUint32(b[at+24:], binary.LittleEndian.Uint32(b[at+24:])+1)
	}
	return b
}

// hasDecision, in the verdict byte of an answer, says that a decision follows,
// after its length.
const hasDecision = 0x80

// undecided, in place of a verdict, says that a later process held the packet
// for too long.
const undecided flow.Verdict = 0x7f

// encoding encodes a decision.
type encoding func(*flow.Decision, []byte) ([]byte, error)

// appendVerdict appends the answer for one packet.
func appendVerdict(b []byte, v flow.Verdict, d *flow.Decision, encode encoding) ([]byte, error) {
	if d.Empty() {
		return append(b, byte(v)), nil
	}
	at := len(b)
	b, err := encode(d, append(b, byte(v)|hasDecision, 0, 0, 0, 0))
	if err == nil {
		binary.LittleEndian.PutUint32(b[at+1:], uint32(len(b)-at-5))
	}
	return b, err
}

// answered decodes an answer to the packets of list, and keeps its memory.
func (p *batch) answered(answer []byte, list []int) error {
	if len(answer) == 0 || answer[0] != members.AnswerOK {
		return members.ErrNotHere
	}
	r := members.Cursor{B: answer[1:]}
	for _, i := range list {
		verdict := r.Uint8()
		var decision []byte
		if verdict&hasDecision != 0 {
			decision = r.Take(uint64(r.Uint32()))
		}
		if r.Err != nil {
			return r.Err
		}
		if v := flow.Verdict(verdict &^ hasDecision); v != undecided {
			rec := &p.records[i]
			rec.verdict, rec.decision, rec.done = v, decision, true
		}
	}
	return nil
}

// all returns the indexes of all packets except those that equal an earlier
// one.
func (p *batch) all() []int {
	list := make([]int, 0, len(p.records))
	for i := range p.records {
		if p.records[i].like == 0 {
			list = append(list, i)
		}
	}
	return list
}

// flowHash is the same for both directions of a pair of addresses.
func flowHash(k *flow.Key) uint32 {
	h := (k.EthSrc.Uint64() + k.EthDst.Uint64()) ^ uint64(k.VLAN)<<48
	h *= 0x9e3779b97f4a7c15
	return uint32(h >> 32)
}
