package openflow

import (
	"fmt"

	"github.com/weft-sdn/weft/flow"
)

// MultipartType is the kind of a multipart message (OpenFlow 1.3.5 §7.3.5);
// OpenFlow 1.0, where they are called statistics, has the first six and
// MultipartExperimenter.
type MultipartType uint16

// The multipart types.
const (
	MultipartDesc          MultipartType = 0
	MultipartFlow          MultipartType = 1
	MultipartAggregate     MultipartType = 2
	MultipartTable         MultipartType = 3
	MultipartPortStats     MultipartType = 4
	MultipartQueue         MultipartType = 5
	MultipartGroup         MultipartType = 6
	MultipartGroupDesc     MultipartType = 7
	MultipartGroupFeatures MultipartType = 8
	MultipartMeter         MultipartType = 9
	MultipartMeterConfig   MultipartType = 10
	MultipartMeterFeatures MultipartType = 11
	MultipartTableFeatures MultipartType = 12
	MultipartPortDesc      MultipartType = 13
	MultipartExperimenter  MultipartType = 0xffff
)

// MultipartRequest asks for statistics or descriptions (OpenFlow 1.3.5 §7.3.5).
type MultipartRequest struct {
	Type MultipartType
	More bool // another request of the same transaction follows

	// Flow and aggregate: which entries.
	Table      uint8 // flow.TableAll for all
	OutPort    flow.Port
	OutGroup   uint32
	Cookie     flow.Cookie
	CookieMask flow.Cookie
	Match      flow.Match

	Port  flow.Port // port statistics and queue; flow.PortAny for all
	Queue uint32    // queue; QueueAll for all
	Group uint32    // group; flow.GroupAll for all
	Meter uint32    // meter and meter-config; flow.MeterAll for all

	Features []TableFeatures // table-features: what to set; empty only asks

	Experimenter uint32 // experimenter
	ExpType      uint32
	Data         []byte
}

// MultipartReply is the frame of a multipart reply; the decoder for its Type
// reads the Body.
type MultipartReply struct {
	Type MultipartType
	More bool // another reply of the same transaction follows
	Body []byte
}

// QueueAll asks for all queues of a port.
const QueueAll uint32 = 0xffffffff

const (
	multipartMore  = 1
	multipartLen   = 16
	multipartLen10 = 12
)

// String returns the name of the type, such as "flow statistics".
func (t MultipartType) String() string {
	names := [...]string{
		"description", "flow statistics", "aggregate statistics", "table statistics", "port statistics", "queue statistics",
		"group statistics", "group description", "group features", "meter statistics", "meter configuration",
		"meter features", "table features", "port description",
	}
	if int(t) < len(names) {
		return names[t]
	}
	if t == MultipartExperimenter {
		return "experimenter multipart"
	}
	return fmt.Sprintf("multipart type %d", uint16(t))
}

// multipartHeader is the length of a multipart message before its body.
func (v Version) multipartHeader() int {
	if v == V10 {
		return multipartLen10
	}
	return multipartLen
}

func (v Version) appendMultipart(dst []byte, kind Type, xid uint32, t MultipartType, more bool) ([]byte, error) {
	if t > MultipartPortDesc && t != MultipartExperimenter || v == V10 && t > MultipartQueue && t != MultipartExperimenter {
		return dst, unsupported(v, kind.String(), t.String(), badRequestMultipart)
	}
	wire := typeToWire(v, kind)
	dst = appendHeader(dst, v, wire, xid)
	var flags uint32
	if more {
		flags = multipartMore
	}
	dst = be.AppendUint32(dst, uint32(t)<<16|flags)
	if v != V10 {
		dst = append(dst, 0, 0, 0, 0)
	}
	return dst, nil
}

// AppendMultipartReply appends a multipart reply; the body is a list of what
// the Append functions for its type append. A list that is too long for one
// message goes in several, all but the last with more.
func (v Version) AppendMultipartReply(dst []byte, xid uint32, t MultipartType, more bool, body []byte) ([]byte, error) {
	start := len(dst)
	out, err := v.appendMultipart(room(dst, multipartLen+len(body)), TypeMultipartReply, xid, t, more)
	if err != nil {
		return dst, err
	}
	out = append(out, body...)
	return finish(out, start, TypeMultipartReply)
}

// DecodeMultipartReply reads the frame of a multipart reply; its Body is a part
// of msg.
func (v Version) DecodeMultipartReply(msg []byte) (MultipartReply, error) {
	n := v.multipartHeader()
	if len(msg) < n {
		return MultipartReply{}, malformed(TypeMultipartReply, len(msg), "cut short", badRequestLen)
	}
	return MultipartReply{Type: MultipartType(be.Uint16(msg[8:])), More: be.Uint16(msg[10:])&multipartMore != 0, Body: msg[n:]}, nil
}

// finishRecord fills in the length of the element of a reply that starts at
// start; at is where in it the length stands.
func finishRecord(dst []byte, start, at int) ([]byte, error) {
	n := len(dst) - start
	if n > MaxLen-multipartLen {
		return dst[:start], &TooLongError{Type: TypeMultipartReply, Length: n + multipartLen}
	}
	dst[start+at], dst[start+at+1] = byte(n>>8), byte(n)
	return dst, nil
}

// record is the length of the element of a reply at off, which has at least
// least octets; at is where in it the length stands.
func (v Version) record(body []byte, off, at, least int) (int, error) {
	if len(body)-off < least {
		return 0, inBody(v, malformed(TypeMultipartReply, off, "element cut short", badRequestLen), 0)
	}
	n := int(be.Uint16(body[off+at:]))
	switch {
	case n < least:
		return 0, inBody(v, malformed(TypeMultipartReply, off+at, "element length below that of its header", badRequestLen), 0)
	case n%8 != 0:
		return 0, inBody(v, malformed(TypeMultipartReply, off+at, "element length is no multiple of 8", badRequestLen), 0)
	case n > len(body)-off:
		return 0, inBody(v, malformed(TypeMultipartReply, off+at, "element longer than the message", badRequestLen), 0)
	}
	return n, nil
}

// checkBody checks a body of fixed length.
func (v Version) checkBody(body []byte, want int) error {
	if len(body) != want {
		return inBody(v, malformed(TypeMultipartReply, len(body), fmt.Sprintf("body of %d octets instead of %d", len(body), want), badRequestLen), 0)
	}
	return nil
}

// checkRecords checks a body that is a list of elements of fixed length.
func (v Version) checkRecords(body []byte, size int) error {
	if len(body)%size != 0 {
		return inBody(v, malformed(TypeMultipartReply, len(body), fmt.Sprintf("body of %d octets, no multiple of %d", len(body), size), badRequestLen), 0)
	}
	return nil
}

// inBody makes the offset of a *MalformedError one from the start of the message.
func inBody(v Version, err error, off int) error {
	if m, ok := err.(*MalformedError); ok {
		m.Offset += off + v.multipartHeader()
	}
	return err
}

// AppendPortDesc appends one port to the body of a port description reply
// (OpenFlow 1.3.5 §7.3.5.7).
func (v Version) AppendPortDesc(dst []byte, p *PortDesc) ([]byte, error) {
	return v.appendPort(dst, "port description", p)
}

// DecodePortDesc appends the ports in the body of a port description reply to dst.
func (v Version) DecodePortDesc(body []byte, dst []PortDesc) ([]PortDesc, error) {
	n := v.portSize()
	if err := v.checkRecords(body, n); err != nil {
		return dst, err
	}
	for ; len(body) > 0; body = body[n:] {
		dst = append(dst, v.parsePort(body[:n]))
	}
	return dst, nil
}

// AppendExperimenterStats appends the body of an experimenter multipart
// (OpenFlow 1.3.5 §7.3.5.15); OpenFlow 1.0 has no type.
func (v Version) AppendExperimenterStats(dst []byte, id, expType uint32, data []byte) ([]byte, error) {
	if v == V10 && expType != 0 {
		return dst, unsupported(v, "experimenter multipart", "an experimenter type", badRequestType)
	}
	dst = be.AppendUint32(dst, id)
	if v != V10 {
		dst = be.AppendUint32(dst, expType)
	}
	return append(dst, data...), nil
}

// DecodeExperimenterStats reads the body of an experimenter multipart; data is
// a part of it.
func (v Version) DecodeExperimenterStats(body []byte) (id, expType uint32, data []byte, err error) {
	n := 8
	if v == V10 {
		n = 4
	}
	if len(body) < n {
		return 0, 0, nil, inBody(v, malformed(TypeMultipartReply, len(body), "cut short", badRequestLen), 0)
	}
	if v != V10 {
		expType = be.Uint32(body[4:])
	}
	return be.Uint32(body), expType, body[n:], nil
}
