package packet

import (
	"encoding/binary"

	"github.com/weft-sdn/weft/flow"
)

// The ICMP types of echo (RFC 792, RFC 4443 §4).
const (
	ICMPv4EchoReply   uint8 = 0
	ICMPv4EchoRequest uint8 = 8
	ICMPv6EchoRequest uint8 = 128
	ICMPv6EchoReply   uint8 = 129
)

// ICMP is a view of an ICMP message for IPv4 (RFC 792) or IPv6 (RFC 4443).
type ICMP []byte

// ParseICMP returns the ICMP message in an IPv4 frame, false if there is none
// or its header is cut off.
func ParseICMP(frame []byte) (ICMP, bool) {
	var l layers
	b, ok := segment(frame, &l, flow.IPProtoICMP, icmpLen)
	if !ok || l.ethType != flow.EthTypeIPv4 {
		return nil, false
	}
	return ICMP(b), true
}

// ParseICMPv6 returns the ICMPv6 message in an IPv6 frame, false if there is
// none or its header is cut off. The checksum is not looked at.
func ParseICMPv6(frame []byte) (ICMP, bool) {
	var l layers
	b, ok := segment(frame, &l, flow.IPProtoICMPv6, icmpLen)
	if !ok || l.ethType != flow.EthTypeIPv6 {
		return nil, false
	}
	return ICMP(b), true
}

// Type returns the type.
func (m ICMP) Type() uint8 { return m[0] }

// Code returns the code.
func (m ICMP) Code() uint8 { return m[1] }

// EchoID returns the identifier of an echo request or reply.
func (m ICMP) EchoID() uint16 { return be16(m[4:6]) }

// EchoSeq returns the sequence number of an echo request or reply.
func (m ICMP) EchoSeq() uint16 { return be16(m[6:8]) }

// Payload returns what follows the first 8 octets: the data of an echo, the
// beginning of the packet that an error is about.
func (m ICMP) Payload() []byte { return m[icmpLen:] }

// Echo is an echo request or reply to be built.
type Echo struct {
	Reply   bool
	ID, Seq uint16
	Data    []byte
}

// AppendICMPEcho appends a frame with an ICMP echo, of the version that the
// addresses of ip ask for.
func AppendICMPEcho(b []byte, e Ether, ip IP, echo Echo) []byte {
	body := make([]byte, 0, 256)
	body = binary.BigEndian.AppendUint16(body, echo.ID)
	body = binary.BigEndian.AppendUint16(body, echo.Seq)
	body = append(body, echo.Data...)
	kind := ICMPv6EchoRequest
	switch {
	case ip.Dst.Is4() && echo.Reply:
		kind = ICMPv4EchoReply
	case ip.Dst.Is4():
		kind = ICMPv4EchoRequest
	case echo.Reply:
		kind = ICMPv6EchoReply
	}
	return AppendICMP(b, e, ip, kind, 0, body)
}

// AppendICMP appends a frame with an ICMP message, of the version that the
// addresses of ip ask for; body is what follows the checksum.
func AppendICMP(b []byte, e Ether, ip IP, kind, code uint8, body []byte) []byte {
	proto := flow.IPProtoICMPv6
	if ip.Dst.Is4() {
		proto = flow.IPProtoICMP
	}
	b = AppendEthernet(b, e, ip.ethType())
	b = appendIP(b, ip, proto, 4+len(body))
	at := len(b)
	b = append(b, kind, code, 0, 0)
	b = append(b, body...)
	if ip.Dst.Is4() {
		binary.BigEndian.PutUint16(b[at+2:], Checksum(b[at:]))
	} else {
		fillChecksum(b[at:], 2, ip, proto)
	}
	return b
}

// ICMPv6Good reports whether an IPv6 frame carries an ICMPv6 message that is
// whole and has a right checksum.
func ICMPv6Good(frame []byte) bool {
	var l layers
	b, ok := segment(frame, &l, flow.IPProtoICMPv6, icmpLen)
	if !ok || l.ethType != flow.EthTypeIPv6 || !l.whole {
		return false
	}
	p := IPv6(frame[l.l3:])
	return fold(sum(b, pseudo(p.Src(), p.Dst(), flow.IPProtoICMPv6, len(b)))) == 0xffff
}
