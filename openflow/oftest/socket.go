package oftest

import (
	"encoding/binary"
	"fmt"
	"net/netip"

	"github.com/weft-sdn/weft/flow"
)

// Socket counts the datagrams, or TCP segments, that a host's socket gets out of the
// frames that reach the host. It is as forgiving as any host that we know of: it takes
// unicast IP in frames to groups and with tags of VLAN 0, however many (Linux), LLC and SNAP,
// and IPv6 fragments whose first has not all headers (before Linux 5.11).
type Socket struct {
	MAC   flow.MAC
	At    netip.AddrPort
	Proto uint8
	Got   int // so far

	parts map[string]*parcel // of packets of which not all is there
}

// parcel is the fragments of one packet.
type parcel struct {
	octets map[int]byte
	size   int // 0 until the last has come
	next   uint8
}

// Take takes a frame.
func (s *Socket) Take(frame []byte) {
	if len(frame) < 14 || flow.MAC(frame[:6]) != s.MAC && !flow.MAC(frame[:6]).Multicast() {
		return
	}
	at := 12
	kind := binary.BigEndian.Uint16(frame[at:])
	for kind == flow.EthTypeVLAN || kind == flow.EthTypeQinQ {
		if len(frame) < at+6 || binary.BigEndian.Uint16(frame[at+2:])&0xfff != 0 {
			return
		}
		at += 4
		kind = binary.BigEndian.Uint16(frame[at:])
	}
	if kind < 0x600 {
		at += 8
		if len(frame) < at+2 {
			return
		}
		kind = binary.BigEndian.Uint16(frame[at:])
	}
	switch p := frame[at+2:]; kind {
	case flow.EthTypeIPv4:
		s.ipv4(p)
	case flow.EthTypeIPv6:
		s.ipv6(p)
	}
}

func (s *Socket) ipv4(p []byte) {
	if len(p) < 20 || p[0]>>4 != 4 {
		return
	}
	head, total := int(p[0]&15)*4, int(binary.BigEndian.Uint16(p[2:]))
	if head < 20 || total < head || total > len(p) || netip.AddrFrom4([4]byte(p[16:20])) != s.At.Addr() {
		return
	}
	body, frag := p[head:total], binary.BigEndian.Uint16(p[6:])
	if frag&0x3fff == 0 {
		s.segment(p[9], body)
		return
	}
	s.collect(fmt.Sprintf("%x %x %d", p[4:6], p[12:20], p[9]), p[9], int(frag&0x1fff)*8, frag&0x2000 != 0, body)
}

func (s *Socket) ipv6(p []byte) {
	if len(p) < 40 || p[0]>>4 != 6 || netip.AddrFrom16([16]byte(p[24:40])) != s.At.Addr() {
		return
	}
	body, n := p[40:], int(binary.BigEndian.Uint16(p[4:]))
	if n > len(body) {
		return
	}
	if n > 0 || p[6] != hopByHop { // as for a jumbogram, Linux goes by the frame
		body = body[:n]
	}
	s.headers(p, p[6], body)
}

// headers walks extension headers.
func (s *Socket) headers(ip []byte, next uint8, b []byte) {
	for next == hopByHop || next == destination || next == routing || next == fragmented {
		if len(b) < 8 {
			return
		}
		if next == fragmented {
			if frag := binary.BigEndian.Uint16(b[2:]); frag&0xfff9 != 0 {
				s.collect(fmt.Sprintf("%x %x", b[4:8], ip[8:40]), b[0], int(frag&0xfff8), frag&1 != 0, b[8:])
				return
			}
		}
		n := 8
		if next != fragmented {
			n += int(b[1]) * 8
		}
		if len(b) < n || next == routing && b[3] != 0 {
			return
		}
		next, b = b[0], b[n:]
	}
	s.segment(next, b)
}

// collect takes a fragment.
func (s *Socket) collect(key string, next uint8, from int, more bool, b []byte) {
	if s.parts == nil {
		s.parts = map[string]*parcel{}
	}
	p := s.parts[key]
	if p == nil {
		p = &parcel{octets: map[int]byte{}}
		s.parts[key] = p
	}
	for i, v := range b {
		p.octets[from+i] = v
	}
	if !more {
		p.size = from + len(b)
	}
	if from == 0 {
		p.next = next
	}
	if p.size == 0 || len(p.octets) < p.size {
		return
	}
	delete(s.parts, key)
	whole := make([]byte, p.size)
	for i := range whole {
		whole[i] = p.octets[i]
	}
	s.headers(make([]byte, 40), p.next, whole)
}

// segment takes what IP carries.
func (s *Socket) segment(proto uint8, b []byte) {
	if proto == s.Proto && len(b) >= 8 && binary.BigEndian.Uint16(b[2:]) == s.At.Port() {
		s.Got++
	}
}
