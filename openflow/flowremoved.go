package openflow

import "github.com/weft-sdn/weft/flow"

// RemovedReason says why an entry was removed (OpenFlow 1.3.5 §7.4.2).
type RemovedReason uint8

// The reasons.
const (
	RemovedIdleTimeout RemovedReason = 0
	RemovedHardTimeout RemovedReason = 1
	RemovedDelete      RemovedReason = 2
	RemovedGroupDelete RemovedReason = 3
)

// FlowRemoved reports a flow entry that is gone (OpenFlow 1.3.5 §7.4.2).
type FlowRemoved struct {
	Reason       RemovedReason
	Table        uint8 // 0 in OpenFlow 1.0
	Partial      bool  // the match has fields that package flow has no place for
	Priority     uint16
	IdleTimeout  uint16
	HardTimeout  uint16 // 0 in OpenFlow 1.0
	Cookie       flow.Cookie
	DurationSec  uint32
	DurationNsec uint32
	Packets      uint64
	Bytes        uint64
	Match        flow.Match
}

const (
	flowRemovedLen   = 48 // before the match
	flowRemovedLen10 = 88
)

// AppendFlowRemoved appends a flow-removed.
func (v Version) AppendFlowRemoved(dst []byte, xid uint32, r *FlowRemoved) ([]byte, error) {
	start, err := len(dst), error(nil)
	out := appendHeader(dst, v, uint8(TypeFlowRemoved), xid)
	if v == V10 {
		if out, err = appendMatch10(out, "flow-removed", &r.Match); err != nil {
			return out[:start], err
		}
	}
	out = be.AppendUint64(out, uint64(r.Cookie))
	out = be.AppendUint16(out, r.Priority)
	if v == V10 {
		out = append(out, byte(r.Reason), 0)
	} else {
		out = append(out, byte(r.Reason), r.Table)
	}
	out = be.AppendUint32(out, r.DurationSec)
	out = be.AppendUint32(out, r.DurationNsec)
	out = be.AppendUint16(out, r.IdleTimeout)
	if v == V10 {
		out = append(out, 0, 0)
	} else {
		out = be.AppendUint16(out, r.HardTimeout)
	}
	out = be.AppendUint64(out, r.Packets)
	out = be.AppendUint64(out, r.Bytes)
	if v != V10 {
		if out, err = appendMatch(out, &r.Match); err != nil {
			return out[:start], err
		}
	}
	return finish(out, start, TypeFlowRemoved)
}

// DecodeFlowRemoved reads a flow-removed into r.
func (v Version) DecodeFlowRemoved(msg []byte, r *FlowRemoved) error {
	n := flowRemovedLen + matchMinLen
	if v == V10 {
		n = flowRemovedLen10
	}
	if len(msg) < n {
		return malformed(TypeFlowRemoved, len(msg), "cut short", badRequestLen)
	}
	b := msg[HeaderLen:]
	r.Partial = false
	if v == V10 {
		decodeMatch10(b, &r.Match)
		b = b[match10Len:]
	}
	r.Cookie, r.Priority, r.Reason = flow.Cookie(be.Uint64(b)), be.Uint16(b[8:]), RemovedReason(b[10])
	r.DurationSec, r.DurationNsec, r.IdleTimeout = be.Uint32(b[12:]), be.Uint32(b[16:]), be.Uint16(b[20:])
	r.Packets, r.Bytes = be.Uint64(b[24:]), be.Uint64(b[32:])
	if v == V10 {
		r.Table, r.HardTimeout = 0, 0
		return nil
	}
	r.Table, r.HardTimeout = b[11], be.Uint16(b[22:])
	_, err := decodeMatch(TypeFlowRemoved, msg, flowRemovedLen, &r.Match, &r.Partial)
	return err
}
