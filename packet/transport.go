package packet

import (
	"encoding/binary"

	"github.com/weft-sdn/weft/flow"
)

// TCP is a view of a TCP segment (RFC 9293).
type TCP []byte

// ParseTCP returns the TCP segment in a frame, false if there is none, as in a
// later fragment, or its header is cut off.
func ParseTCP(frame []byte) (TCP, bool) {
	var l layers
	b, ok := segment(frame, &l, flow.IPProtoTCP, tcpLen)
	if head := TCP(b).headerLen(); !ok || head < tcpLen || head > len(b) {
		return nil, false
	}
	return TCP(b), true
}

func (t TCP) headerLen() int {
	if len(t) < tcpLen {
		return 0
	}
	return int(t[12]>>4) * 4
}

// The flags of TCP.
const (
	TCPFin uint8 = 1 << iota
	TCPSyn
	TCPRst
	TCPPsh
	TCPAck
	TCPUrg
)

// SrcPort returns the source port.
func (t TCP) SrcPort() uint16 { return be16(t[0:2]) }

// DstPort returns the destination port.
func (t TCP) DstPort() uint16 { return be16(t[2:4]) }

// Seq returns the sequence number.
func (t TCP) Seq() uint32 { return be32(t[4:8]) }

// Ack returns the acknowledgement number.
func (t TCP) Ack() uint32 { return be32(t[8:12]) }

// Flags returns the flags, TCPFin and so on.
func (t TCP) Flags() uint8 { return t[13] }

// Window returns the window, before it is scaled.
func (t TCP) Window() uint16 { return be16(t[14:16]) }

// Options returns the options, with their padding.
func (t TCP) Options() []byte { return t[tcpLen:t.headerLen()] }

// Payload returns what follows header and options.
func (t TCP) Payload() []byte { return t[t.headerLen():] }

// UDP is a view of a UDP datagram (RFC 768).
type UDP []byte

// ParseUDP returns the UDP datagram in a frame, false if there is none, as in a
// later fragment, or its header is cut off or gives a length below its own.
func ParseUDP(frame []byte) (UDP, bool) {
	var l layers
	b, ok := segment(frame, &l, flow.IPProtoUDP, udpLen)
	if !ok {
		return nil, false
	}
	n := int(be16(b[4:6]))
	if n < udpLen {
		return nil, false
	}
	return UDP(b[:min(n, len(b))]), true
}

// SrcPort returns the source port.
func (u UDP) SrcPort() uint16 { return be16(u[0:2]) }

// DstPort returns the destination port.
func (u UDP) DstPort() uint16 { return be16(u[2:4]) }

// Payload returns what follows the header.
func (u UDP) Payload() []byte { return u[udpLen:] }

// segment locates the headers of a frame and returns what IP carries in it if
// that is proto and at least need octets long.
func segment(frame []byte, l *layers, proto uint8, need int) ([]byte, bool) {
	if !locate(frame, l) || l.l4 == 0 || l.proto != proto || l.end-l.l4 < need {
		return nil, false
	}
	return frame[l.l4:l.end], true
}

// AppendUDP appends a frame with a UDP datagram. The payload may be up to
// 65,507 octets over IPv4, 65,527 over IPv6; beyond that lengths would not fit.
func AppendUDP(b []byte, e Ether, ip IP, src, dst uint16, payload []byte) []byte {
	n := udpLen + len(payload)
	b = AppendEthernet(b, e, ip.ethType())
	b = appendIP(b, ip, flow.IPProtoUDP, n)
	at := len(b)
	b = binary.BigEndian.AppendUint16(b, src)
	b = binary.BigEndian.AppendUint16(b, dst)
	b = binary.BigEndian.AppendUint16(b, uint16(n))
	b = append(b, 0, 0)
	b = append(b, payload...)
	fillChecksum(b[at:], 6, ip, flow.IPProtoUDP)
	return b
}

// TCPFields is the header of a TCP segment to be built.
type TCPFields struct {
	SrcPort, DstPort uint16
	Seq, Ack         uint32
	Flags            uint8
	Window           uint16 // 0 stands for 65535
	Options          []byte // padded to a multiple of 4 octets, at most 40
}

// AppendTCP appends a frame with a TCP segment.
func AppendTCP(b []byte, e Ether, ip IP, f TCPFields, payload []byte) []byte {
	if f.Window == 0 {
		f.Window = 0xffff
	}
	b = AppendEthernet(b, e, ip.ethType())
	head := tcpLen + len(f.Options)
	b = appendIP(b, ip, flow.IPProtoTCP, head+len(payload))
	at := len(b)
	b = binary.BigEndian.AppendUint16(b, f.SrcPort)
	b = binary.BigEndian.AppendUint16(b, f.DstPort)
	b = binary.BigEndian.AppendUint32(b, f.Seq)
	b = binary.BigEndian.AppendUint32(b, f.Ack)
	b = append(b, uint8(head/4<<4), f.Flags)
	b = binary.BigEndian.AppendUint16(b, f.Window)
	b = append(b, 0, 0, 0, 0)
	b = append(b, f.Options...)
	b = append(b, payload...)
	fillChecksum(b[at:], 16, ip, flow.IPProtoTCP)
	return b
}
