package openflow

import "github.com/weft-sdn/weft/flow"

// FlowStats is a flow entry and its counters (OpenFlow 1.3.5 §7.3.5.2).
type FlowStats struct {
	flow.Entry
	// Partial says that the entry has match fields, instructions or actions
	// that package flow has no place for; they are left out of Entry.
	Partial      bool
	DurationSec  uint32
	DurationNsec uint32 // beyond DurationSec
	Packets      uint64
	Bytes        uint64
}

// Aggregate is the sum over flow entries (OpenFlow 1.3.5 §7.3.5.3).
type Aggregate struct {
	Packets uint64
	Bytes   uint64
	Flows   uint32
}

const (
	flowStatsLen   = 48 // before the match
	flowStatsLen10 = 88 // before the actions
	aggregateLen   = 24
)

// AppendFlowStats appends one entry to the body of a flow statistics reply.
func (v Version) AppendFlowStats(dst []byte, s *FlowStats) ([]byte, error) {
	const op = "flow statistics"
	start, err := len(dst), error(nil)
	e := &s.Entry
	out := append(dst, 0, 0, e.Table, 0)
	if v == V10 {
		if field := beyondEntry10(e); field != "" {
			return dst, unsupported(v, op, field, pair{ErrFlowModFailed, FlowModFailedUnknown})
		}
		if out, err = appendMatch10(out, op, &e.Match); err != nil {
			return out[:start], err
		}
	}
	out = be.AppendUint32(out, s.DurationSec)
	out = be.AppendUint32(out, s.DurationNsec)
	out = be.AppendUint16(out, e.Priority)
	out = be.AppendUint16(out, e.IdleTimeout)
	out = be.AppendUint16(out, e.HardTimeout)
	if v == V10 {
		out = appendZeros(out, 6)
	} else {
		out = be.AppendUint16(out, e.Flags)
		out = appendZeros(out, 4)
	}
	out = be.AppendUint64(out, uint64(e.Cookie))
	out = be.AppendUint64(out, s.Packets)
	out = be.AppendUint64(out, s.Bytes)
	if v == V10 {
		out, err = appendActions10(out, op, e.Apply)
	} else if out, err = appendMatch(out, &e.Match); err == nil {
		out, err = appendInstructions(out, op, e)
	}
	if err != nil {
		return out[:start], err
	}
	return finishRecord(out, start, 0)
}

// DecodeFlowStats calls each for every entry in the body of a flow statistics
// reply, until each returns an error, which is returned. The value is used
// again for the next entry: Clone keeps one.
func (v Version) DecodeFlowStats(body []byte, each func(*FlowStats) error) error {
	fixed := flowStatsLen + matchMinLen
	if v == V10 {
		fixed = flowStatsLen10
	}
	var s FlowStats
	for off := 0; off < len(body); {
		n, err := v.record(body, off, 0, fixed)
		if err != nil {
			return err
		}
		if err := v.decodeFlowStats(body[off:off+n], &s); err != nil {
			return inBody(v, err, off)
		}
		if err := each(&s); err != nil {
			return err
		}
		off += n
	}
	return nil
}

func (v Version) decodeFlowStats(b []byte, s *FlowStats) (err error) {
	e := &s.Entry
	e.Table, s.Partial = b[2], false
	c := b[4:]
	if v == V10 {
		decodeMatch10(c, &e.Match)
		c = c[match10Len:]
	}
	s.DurationSec, s.DurationNsec = be.Uint32(c), be.Uint32(c[4:])
	e.Priority, e.IdleTimeout, e.HardTimeout = be.Uint16(c[8:]), be.Uint16(c[10:]), be.Uint16(c[12:])
	e.Cookie, s.Packets, s.Bytes = flow.Cookie(be.Uint64(c[20:])), be.Uint64(c[28:]), be.Uint64(c[36:])
	if v == V10 {
		e.Flags = 0
		e.Apply, err = decodeActions10(TypeMultipartReply, b, flowStatsLen10, len(b), e.Match.Key.IPProto, e.Apply[:0], &s.Partial)
		return err
	}
	e.Flags = be.Uint16(c[14:])
	off, err := decodeMatch(TypeMultipartReply, b, flowStatsLen, &e.Match, &s.Partial)
	if err != nil {
		return err
	}
	return decodeInstructions(TypeMultipartReply, b, off, len(b), e, &s.Partial)
}

// AppendAggregate appends the body of an aggregate statistics reply.
func (v Version) AppendAggregate(dst []byte, a *Aggregate) []byte {
	dst = be.AppendUint64(dst, a.Packets)
	dst = be.AppendUint64(dst, a.Bytes)
	return be.AppendUint64(dst, uint64(a.Flows)<<32)
}

// DecodeAggregate reads the body of an aggregate statistics reply.
func (v Version) DecodeAggregate(body []byte) (Aggregate, error) {
	if err := v.checkBody(body, aggregateLen); err != nil {
		return Aggregate{}, err
	}
	return Aggregate{Packets: be.Uint64(body), Bytes: be.Uint64(body[8:]), Flows: be.Uint32(body[16:])}, nil
}
