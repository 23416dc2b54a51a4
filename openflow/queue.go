package openflow

import (
	"fmt"

	"github.com/weft-sdn/weft/flow"
)

// Queue describes a queue of a port (OpenFlow 1.3.5 §7.2.2).
type Queue struct {
	Port       flow.Port
	ID         uint32
	MinRate    uint16 // in 1/10 of a percent; QueueRateNone if not given
	MaxRate    uint16 // likewise
	Properties []QueueProperty
}

// QueueProperty is an experimenter's property of a queue.
type QueueProperty struct {
	Experimenter uint32
	Data         []byte
}

// QueueRateNone is the rate of a queue that has none.
const QueueRateNone uint16 = 0xffff

const (
	queuePropMinRate      = 1
	queuePropMaxRate      = 2
	queuePropExperimenter = 0xffff
	queuePropLen          = 16
	queuePropHeader       = 8
	queueLen              = 16 // before the properties
	queueLen10            = 8
)

// AppendQueueGetConfigRequest appends a request for the queues of a port,
// flow.PortAny for all ports (OpenFlow 1.3.5 §7.3.6).
func (v Version) AppendQueueGetConfigRequest(dst []byte, xid uint32, port flow.Port) ([]byte, error) {
	start := len(dst)
	dst, err := v.appendQueueConfig(dst, TypeQueueGetConfigRequest, xid, port)
	if err != nil {
		return dst, err
	}
	return finish(dst, start, TypeQueueGetConfigRequest)
}

// appendQueueConfig appends header and port of a request or reply.
func (v Version) appendQueueConfig(dst []byte, t Type, xid uint32, port flow.Port) ([]byte, error) {
	wire := typeToWire(v, t)
	if v != V10 {
		return be.AppendUint64(appendHeader(dst, v, wire, xid), uint64(port)<<32), nil
	}
	p, ok := port10(port)
	if !ok {
		return dst, unsupported(v, t.String(), "port "+port.String(), badRequestPort)
	}
	dst = appendHeader(dst, v, wire, xid)
	if t == TypeQueueGetConfigRequest {
		return be.AppendUint32(dst, uint32(p)<<16), nil
	}
	return be.AppendUint64(dst, uint64(p)<<48), nil
}

// DecodeQueueGetConfigRequest reads a request for the queues of a port.
func (v Version) DecodeQueueGetConfigRequest(msg []byte) (flow.Port, error) {
	n := HeaderLen + 8
	if v == V10 {
		n = HeaderLen + 4
	}
	if len(msg) < n {
		return 0, malformed(TypeQueueGetConfigRequest, len(msg), "cut short", badRequestLen)
	}
	if v == V10 {
		return portFrom10(be.Uint16(msg[8:])), nil
	}
	return flow.Port(be.Uint32(msg[8:])), nil
}

// AppendQueueGetConfigReply appends a reply with the queues of a port.
func (v Version) AppendQueueGetConfigReply(dst []byte, xid uint32, port flow.Port, queues []Queue) ([]byte, error) {
	start := len(dst)
	out, err := v.appendQueueConfig(dst, TypeQueueGetConfigReply, xid, port)
	if err != nil {
		return dst, err
	}
	for i := range queues {
		if out, err = v.appendQueue(out, &queues[i]); err != nil {
			return out[:start], err
		}
	}
	return finish(out, start, TypeQueueGetConfigReply)
}

func (v Version) appendQueue(dst []byte, q *Queue) ([]byte, error) {
	const op = "queue-get-config-reply"
	start, at := len(dst), 8
	dst = be.AppendUint32(dst, q.ID)
	if v == V10 {
		if q.MaxRate != QueueRateNone || len(q.Properties) > 0 {
			return dst, unsupported(v, op, "queue properties other than the minimum rate", badRequestType)
		}
		at = 4
		dst = be.AppendUint32(dst, 0)
	} else {
		dst = be.AppendUint32(dst, uint32(q.Port))
		dst = be.AppendUint64(dst, 0)
	}
	if q.MinRate != QueueRateNone {
		dst = be.AppendUint64(dst, queuePropMinRate<<48|queuePropLen<<32)
		dst = be.AppendUint64(dst, uint64(q.MinRate)<<48)
	}
	if q.MaxRate != QueueRateNone {
		dst = be.AppendUint64(dst, queuePropMaxRate<<48|queuePropLen<<32)
		dst = be.AppendUint64(dst, uint64(q.MaxRate)<<48)
	}
	for i := range q.Properties {
		p := &q.Properties[i]
		n := queuePropLen + len(p.Data)
		if n%8 != 0 || n > MaxLen {
			return dst, unsupported(v, op, fmt.Sprintf("experimenter property of %d octets, no multiple of 8", n), badRequestLen)
		}
		dst = be.AppendUint64(dst, queuePropExperimenter<<48|uint64(n)<<32)
		dst = be.AppendUint64(dst, uint64(p.Experimenter)<<32)
		dst = append(dst, p.Data...)
	}
	n := len(dst) - start // where this overflows the message is too long as well
	dst[start+at], dst[start+at+1] = byte(n>>8), byte(n)
	return dst, nil
}

// DecodeQueueGetConfigReply reads a reply with the queues of a port. The data
// of experimenter properties is a part of msg; properties unknown to both
// OpenFlow 1.3.5 and this package are passed over.
func (v Version) DecodeQueueGetConfigReply(msg []byte) (port flow.Port, queues []Queue, err error) {
	const t = TypeQueueGetConfigReply
	if len(msg) < 16 {
		return 0, nil, malformed(t, len(msg), "cut short", badRequestLen)
	}
	fixed, at := queueLen, 8
	if v == V10 {
		port, fixed, at = portFrom10(be.Uint16(msg[8:])), queueLen10, 4
	} else {
		port = flow.Port(be.Uint32(msg[8:]))
	}
	for off := 16; off < len(msg); {
		if len(msg)-off < fixed {
			return port, queues, malformed(t, off, "queue cut short", badRequestLen)
		}
		n := int(be.Uint16(msg[off+at:]))
		if n < fixed || n%8 != 0 || n > len(msg)-off {
			return port, queues, malformed(t, off+at, "queue length below that of its header, no multiple of 8, or beyond the message", badRequestLen)
		}
		q := Queue{Port: port, ID: be.Uint32(msg[off:]), MinRate: QueueRateNone, MaxRate: QueueRateNone}
		if v != V10 {
			q.Port = flow.Port(be.Uint32(msg[off+4:]))
		}
		if err := decodeQueueProperties(msg, off+fixed, off+n, &q); err != nil {
			return port, queues, err
		}
		queues = append(queues, q)
		off += n
	}
	return port, queues, nil
}

func decodeQueueProperties(msg []byte, off, end int, q *Queue) error {
	const t = TypeQueueGetConfigReply
	for off < end {
		if end-off < queuePropHeader {
			return malformed(t, off, "queue property cut short", badRequestLen)
		}
		kind, n := be.Uint16(msg[off:]), int(be.Uint16(msg[off+2:]))
		if n < queuePropHeader || n%8 != 0 || n > end-off {
			return malformed(t, off+2, "queue property length below that of its header, no multiple of 8, or beyond its queue", badRequestLen)
		}
		switch kind {
		case queuePropMinRate, queuePropMaxRate, queuePropExperimenter:
			if n < queuePropLen {
				return malformed(t, off+2, "queue property too short for its type", badRequestLen)
			}
		}
		switch kind {
		case queuePropMinRate:
			q.MinRate = be.Uint16(msg[off+8:])
		case queuePropMaxRate:
			q.MaxRate = be.Uint16(msg[off+8:])
		case queuePropExperimenter:
			q.Properties = append(q.Properties, QueueProperty{be.Uint32(msg[off+8:]), msg[off+16 : off+n]})
		}
		off += n
	}
	return nil
}
