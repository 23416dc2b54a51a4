// Package packet reads and writes network packets: it extracts the header
// fields of a frame into a flow.Key, gives views over the headers of the
// protocols that a controller takes part in, builds frames, and applies
// OpenFlow's rewriting actions.
//
// Anyone may import it; it imports flow and the standard library only.
//
// A view, such as ARP, is the frame's own memory from the header's first octet:
// it copies nothing and is valid as long as the frame. The function that makes
// it checks every length that its methods rely on, so no method of a view can
// run out of bounds whatever the frame holds. Builders append to a slice and
// return it, as append does.
package packet

import (
	"encoding/binary"

	"github.com/weft-sdn/weft/flow"
)

// be16, be32 read numbers in network order.
func be16(b []byte) uint16 { return binary.BigEndian.Uint16(b) }
func be32(b []byte) uint32 { return binary.BigEndian.Uint32(b) }

// IPv6 extension headers (RFC 8200 §4) by their next-header number.
const (
	extHopByHop = 0
	extRouting  = 43
	extFragment = 44
	extESP      = 50
	extAuth     = 51
	extNone     = 59
	extDestOpts = 60
)

// The bits of flow.Key.IPv6Ext (OpenFlow 1.3.5 §7.2.3.7, ofp_ipv6exthdr_flags).
const (
	ExtNoNext uint16 = 1 << iota // no next header
	ExtESP                       // encrypted payload
	ExtAuth                      // authentication
	ExtDest                      // destination options, once or twice
	ExtFrag                      // fragment
	ExtRouter                    // routing
	ExtHop                       // hop-by-hop options
	ExtUnrep                     // a header repeated that should not be
	ExtUnseq                     // headers in another order than RFC 8200 prefers
)

// ethTypeNone stands for a frame of IEEE 802.3 whose payload no ethertype
// names, as OpenFlow has it since 1.0 (OFP_DL_TYPE_NOT_ETH_TYPE).
const ethTypeNone = 0x05ff

// Lengths of headers, without options.
const (
	ethernetLen = 14
	vlanLen     = 4
	mplsLen     = 4
	arpLen      = 28
	ipv4Len     = 20
	ipv6Len     = 40
	tcpLen      = 20
	udpLen      = 8
	sctpLen     = 12
	icmpLen     = 8
	ndLen       = 24 // neighbour solicitation or advertisement without options
	pbbLen      = 18 // addresses, ethertype and I-TAG before the customer frame
)

// layers says where the headers of a frame begin. Offsets are from the start of
// the frame; a layer that is absent or truncated has offset 0.
type layers struct {
	typeAt   int    // the ethertype that names the payload
	l3       int    // the payload of Ethernet
	l4       int    // the payload of IP, if it begins in this fragment
	end      int    // the end of the IP packet; padding follows
	tags     int    // VLAN tags
	ethType  uint16 // that of the payload, or ethTypeNone
	ext      uint16 // Ext* bits of IPv6
	proto    uint8  // of IP, after extension headers
	whole    bool   // no header that was begun is cut off or malformed
	fragment bool   // of IP, the first or a later one
	routed   bool   // an IPv6 routing header has segments left
	snap     bool   // IEEE 802.3 with SNAP
}

// locate finds the headers of a frame. It reports false if not even the
// Ethernet header is there.
func locate(frame []byte, l *layers) bool {
	*l = layers{}
	if len(frame) < ethernetLen {
		return false
	}
	l.whole, l.end = true, len(frame)
	at := 12
	t := be16(frame[12:14])
	for t == flow.EthTypeVLAN || t == flow.EthTypeQinQ {
		if len(frame) < at+vlanLen+2 {
			l.ethType, l.typeAt, l.whole = t, at, false
			return true
		}
		at += vlanLen
		l.tags++
		t = be16(frame[at : at+2])
	}
	l.typeAt, l.l3 = at, at+2
	if t < 0x0600 {
		t = l.llc(frame)
	}
	l.ethType = t
	switch t {
	case flow.EthTypeIPv4:
		l.ipv4(frame)
	case flow.EthTypeIPv6:
		l.ipv6(frame)
	}
	return true
}

// llc returns the ethertype that a SNAP header names (IEEE 802), ethTypeNone
// if there is none.
func (l *layers) llc(frame []byte) uint16 {
	b := frame[l.l3:]
	if len(b) < 8 || b[0] != 0xaa || b[1] != 0xaa || b[2] != 3 || b[3]|b[4]|b[5] != 0 {
		return ethTypeNone
	}
	t := be16(b[6:8])
	if t < 0x0600 {
		return ethTypeNone
	}
	l.typeAt, l.l3, l.snap = l.l3+6, l.l3+8, true
	return t
}

// ipv4 finds what IPv4 carries.
func (l *layers) ipv4(frame []byte) {
	b := frame[l.l3:]
	if len(b) < ipv4Len {
		l.l3, l.whole = 0, false
		return
	}
	head, total := int(b[0]&15)*4, int(be16(b[2:4]))
	if b[0]>>4 != 4 || head < ipv4Len || head > len(b) || total < head {
		l.l3, l.whole = 0, false
		return
	}
	if total <= len(b) {
		l.end = l.l3 + total
	} else {
		l.whole = false
	}
	l.proto = b[9]
	frag := be16(b[6:8])
	l.fragment = frag&0x3fff != 0
	if frag&0x1fff == 0 {
		l.l4 = l.l3 + head
	}
}

// ipv6 walks the extension headers of IPv6 to what it carries.
func (l *layers) ipv6(frame []byte) {
	b := frame[l.l3:]
	if len(b) < ipv6Len || b[0]>>4 != 6 {
		l.l3, l.whole = 0, false
		return
	}
	if n := ipv6Len + int(be16(b[4:6])); n <= len(b) {
		l.end = l.l3 + n
		b = b[:n]
	} else {
		l.whole = false
	}
	next, at := b[6], ipv6Len
	if next == flow.IPProtoTCP || next == flow.IPProtoUDP || next == flow.IPProtoICMPv6 {
		l.proto, l.l4 = next, l.l3+at
		return
	}
	dests := 0
	for {
		var size int
		switch next {
		case extHopByHop:
			if l.ext&^ExtHop != 0 || at != ipv6Len {
				l.ext |= ExtUnseq
			}
			l.see(ExtHop)
		case extRouting:
			if l.ext&^(ExtHop|ExtDest|ExtRouter|ExtUnrep|ExtUnseq) != 0 || dests > 1 {
				l.ext |= ExtUnseq
			}
			l.see(ExtRouter)
		case extFragment:
			if l.ext&^(ExtHop|ExtDest|ExtRouter|ExtFrag|ExtUnrep|ExtUnseq) != 0 || dests > 1 {
				l.ext |= ExtUnseq
			}
			l.see(ExtFrag)
		case extAuth:
			if l.ext&^(ExtHop|ExtDest|ExtRouter|ExtFrag|ExtAuth|ExtUnrep|ExtUnseq) != 0 || dests > 1 {
				l.ext |= ExtUnseq
			}
			l.see(ExtAuth)
		case extDestOpts:
			if dests++; dests > 2 {
				l.ext |= ExtUnrep
			}
			l.ext |= ExtDest
		case extESP:
			l.see(ExtESP)
			l.proto = next
			return
		case extNone:
			l.ext |= ExtNoNext
			l.proto = next
			return
		default:
			l.proto, l.l4 = next, l.l3+at
			return
		}
		if len(b) < at+8 {
			l.whole = false
			return
		}
		switch next {
		case extFragment:
			size = 8
			offset := be16(b[at+2 : at+4])
			l.fragment = l.fragment || offset != 0 // reserved bits, too, as Open vSwitch has it
			if offset&0xfff8 != 0 {
				l.proto = extFragment
				return
			}
		case extAuth:
			size = (int(b[at+1]) + 2) * 4
		default:
			size = (int(b[at+1]) + 1) * 8
			if next == extRouting && b[at+3] != 0 {
				l.routed = true
			}
		}
		if len(b) < at+size {
			l.whole = false
			return
		}
		next, at = b[at], at+size
	}
}

// see notes an extension header that may appear once.
func (l *layers) see(bit uint16) {
	if l.ext&bit != 0 {
		l.ext |= ExtUnrep
	}
	l.ext |= bit
}
