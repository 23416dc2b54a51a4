package openflow

import "encoding/binary"

// HeaderLen is the length of the header of every message.
const HeaderLen = 8

// MaxLen is the length of the longest message that can be encoded.
const MaxLen = 0xffff

// Type is the kind of a message, the same for all versions: the number of
// OpenFlow 1.3.5 §7.1.
type Type uint8

// The message types.
const (
	TypeHello                 Type = 0
	TypeError                 Type = 1
	TypeEchoRequest           Type = 2
	TypeEchoReply             Type = 3
	TypeExperimenter          Type = 4 // vendor in OpenFlow 1.0
	TypeFeaturesRequest       Type = 5
	TypeFeaturesReply         Type = 6
	TypeGetConfigRequest      Type = 7
	TypeGetConfigReply        Type = 8
	TypeSetConfig             Type = 9
	TypePacketIn              Type = 10
	TypeFlowRemoved           Type = 11
	TypePortStatus            Type = 12
	TypePacketOut             Type = 13
	TypeFlowMod               Type = 14
	TypeGroupMod              Type = 15
	TypePortMod               Type = 16
	TypeTableMod              Type = 17
	TypeMultipartRequest      Type = 18 // statistics in OpenFlow 1.0
	TypeMultipartReply        Type = 19
	TypeBarrierRequest        Type = 20
	TypeBarrierReply          Type = 21
	TypeQueueGetConfigRequest Type = 22
	TypeQueueGetConfigReply   Type = 23
	TypeRoleRequest           Type = 24
	TypeRoleReply             Type = 25
	TypeGetAsyncRequest       Type = 26
	TypeGetAsyncReply         Type = 27
	TypeSetAsync              Type = 28
	TypeMeterMod              Type = 29
	TypeUnknown               Type = 0xff // the number means nothing in the message's version
)

// String returns the name of the type, such as "packet-in".
func (t Type) String() string {
	if int(t) < len(typeNames) {
		return typeNames[t]
	}
	return "unknown message"
}

var typeNames = [...]string{
	"hello", "error", "echo-request", "echo-reply", "experimenter",
	"features-request", "features-reply", "get-config-request", "get-config-reply", "set-config",
	"packet-in", "flow-removed", "port-status", "packet-out", "flow-mod", "group-mod", "port-mod", "table-mod",
	"multipart-request", "multipart-reply", "barrier-request", "barrier-reply",
	"queue-get-config-request", "queue-get-config-reply", "role-request", "role-reply",
	"get-async-request", "get-async-reply", "set-async", "meter-mod",
}

// The numbers of OpenFlow 1.0.1 §5.1 from port-mod on; those before are equal.
const (
	wire10PortMod               = 15
	wire10StatsRequest          = 16
	wire10StatsReply            = 17
	wire10BarrierRequest        = 18
	wire10BarrierReply          = 19
	wire10QueueGetConfigRequest = 20
	wire10QueueGetConfigReply   = 21
)

func typeFromWire(v Version, n uint8) Type {
	if n <= uint8(TypeFlowMod) {
		return Type(n)
	}
	if v != V10 {
		if n <= uint8(TypeMeterMod) {
			return Type(n)
		}
		return TypeUnknown
	}
	switch n {
	case wire10PortMod:
		return TypePortMod
	case wire10StatsRequest:
		return TypeMultipartRequest
	case wire10StatsReply:
		return TypeMultipartReply
	case wire10BarrierRequest:
		return TypeBarrierRequest
	case wire10BarrierReply:
		return TypeBarrierReply
	case wire10QueueGetConfigRequest:
		return TypeQueueGetConfigRequest
	case wire10QueueGetConfigReply:
		return TypeQueueGetConfigReply
	}
	return TypeUnknown
}

// typeToWire returns the number of t in v, 0 if v has no such message.
func typeToWire(v Version, t Type) uint8 {
	if t <= TypeFlowMod || v != V10 {
		if t > TypeMeterMod {
			return 0
		}
		return uint8(t)
	}
	switch t {
	case TypePortMod:
		return wire10PortMod
	case TypeMultipartRequest:
		return wire10StatsRequest
	case TypeMultipartReply:
		return wire10StatsReply
	case TypeBarrierRequest:
		return wire10BarrierRequest
	case TypeBarrierReply:
		return wire10BarrierReply
	case TypeQueueGetConfigRequest:
		return wire10QueueGetConfigRequest
	case TypeQueueGetConfigReply:
		return wire10QueueGetConfigReply
	}
	return 0
}

// Header is the header of a message (OpenFlow 1.3.5 §7.1).
type Header struct {
	Version Version
	Type    Type // TypeUnknown if the version has no such message
	Length  uint16
	Xid     uint32
}

// ParseHeader reads the header at the start of b. An unknown version is no
// error, for a hello may carry any; a length below HeaderLen is.
func ParseHeader(b []byte) (Header, error) {
	if len(b) < HeaderLen {
		return Header{}, malformed(TypeUnknown, len(b), "header cut short", badRequestLen)
	}
	h := Header{Version: Version(b[0]), Length: binary.BigEndian.Uint16(b[2:]), Xid: binary.BigEndian.Uint32(b[4:])}
	h.Type = typeFromWire(h.Version, b[1])
	if h.Length < HeaderLen {
		return h, malformed(h.Type, 2, "length below that of the header", badRequestLen)
	}
	return h, nil
}

// Next cuts the next whole message from a receive buffer. While the message is
// incomplete msg and err are nil and rest is buf. An error means that the
// stream cannot be read any further.
func Next(buf []byte) (msg, rest []byte, err error) {
	if len(buf) < HeaderLen {
		return nil, buf, nil
	}
	n := int(binary.BigEndian.Uint16(buf[2:]))
	if n < HeaderLen {
		return nil, buf, malformed(typeFromWire(Version(buf[0]), buf[1]), 2, "length below that of the header", badRequestLen)
	}
	if len(buf) < n {
		return nil, buf, nil
	}
	return buf[:n:n], buf[n:], nil
}

// appendHeader appends the header of a message whose length finish fills in.
func appendHeader(dst []byte, v Version, wire uint8, xid uint32) []byte {
	return append(dst, byte(v), wire, 0, 0, byte(xid>>24), byte(xid>>16), byte(xid>>8), byte(xid))
}

// finish fills in the length of the message that starts at start.
func finish(dst []byte, start int, t Type) ([]byte, error) {
	n := len(dst) - start
	if n > MaxLen {
		return dst[:start], &TooLongError{Type: t, Length: n}
	}
	dst[start+2], dst[start+3] = byte(n>>8), byte(n)
	return dst, nil
}

// appendBare appends a message that is a header only.
func appendBare(dst []byte, v Version, wire uint8, xid uint32) []byte {
	return append(dst, byte(v), wire, 0, HeaderLen, byte(xid>>24), byte(xid>>16), byte(xid>>8), byte(xid))
}

// extend lengthens dst by n octets of undefined value.
func extend(dst []byte, n int) []byte {
	if m := len(dst) + n; m <= cap(dst) {
		return dst[:m]
	}
	return append(dst, make([]byte, n)...)
}

// room makes sure that n octets can be appended without growing.
func room(dst []byte, n int) []byte {
	if cap(dst)-len(dst) >= n {
		return dst
	}
	return append(dst, make([]byte, n)...)[:len(dst)]
}

// pad8 is n rounded up to a multiple of eight.
func pad8(n int) int { return (n + 7) &^ 7 }

// appendZeros appends n zero octets.
func appendZeros(dst []byte, n int) []byte {
	for ; n > 8; n -= 8 {
		dst = append(dst, 0, 0, 0, 0, 0, 0, 0, 0)
	}
	var zero [8]byte
	return append(dst, zero[:n]...)
}

// appendName appends s in a field of n octets, cut short so that a zero
// octet always ends it.
func appendName(dst []byte, s string, n int) []byte {
	s = s[:min(len(s), n-1)]
	dst = append(dst, s...)
	return appendZeros(dst, n-len(s))
}

// name is the text before the first zero octet of b.
func name(b []byte) string {
	for i, c := range b {
		if c == 0 {
			return string(b[:i])
		}
	}
	return string(b)
}
