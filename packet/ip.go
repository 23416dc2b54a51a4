package packet

import (
	"encoding/binary"
	"net/netip"

	"github.com/weft-sdn/weft/flow"
)

// IPv4 is a view of an IPv4 packet (RFC 791), from its header to its end, or to
// the end of the frame where that comes first.
type IPv4 []byte

// ParseIPv4 returns the IPv4 packet in a frame, false if there is none or its
// header is malformed.
func ParseIPv4(frame []byte) (IPv4, bool) {
	var l layers
	if !locate(frame, &l) || l.ethType != flow.EthTypeIPv4 || l.l3 == 0 {
		return nil, false
	}
	return IPv4(frame[l.l3:l.end]), true
}

// HeaderLen returns the length of the header with its options in octets.
func (p IPv4) HeaderLen() int { return int(p[0]&15) * 4 }

// TotalLen returns the length that the header gives the packet in octets.
func (p IPv4) TotalLen() int { return int(be16(p[2:4])) }

// DSCP returns the differentiated services code point.
func (p IPv4) DSCP() uint8 { return p[1] >> 2 }

// ID returns the identification that fragments of one packet share.
func (p IPv4) ID() uint16 { return be16(p[4:6]) }

// FragmentOffset returns where in the whole packet's payload this fragment
// belongs, in octets.
func (p IPv4) FragmentOffset() int { return int(be16(p[6:8])&0x1fff) * 8 }

// MoreFragments reports whether fragments follow.
func (p IPv4) MoreFragments() bool { return p[6]&0x20 != 0 }

// TTL returns the time to live.
func (p IPv4) TTL() uint8 { return p[8] }

// Proto returns the protocol carried.
func (p IPv4) Proto() uint8 { return p[9] }

// Src returns the source address.
func (p IPv4) Src() netip.Addr { return netip.AddrFrom4([4]byte(p[12:16])) }

// Dst returns the destination address.
func (p IPv4) Dst() netip.Addr { return netip.AddrFrom4([4]byte(p[16:20])) }

// ChecksumGood reports whether the header checksum is right.
func (p IPv4) ChecksumGood() bool { return Checksum(p[:p.HeaderLen()]) == 0 }

// Payload returns what follows the header.
func (p IPv4) Payload() []byte { return p[p.HeaderLen():] }

// IPv6 is a view of an IPv6 packet (RFC 8200), from its header to its end, or
// to the end of the frame where that comes first.
type IPv6 []byte

// ParseIPv6 returns the IPv6 packet in a frame, false if there is none or its
// header is malformed.
func ParseIPv6(frame []byte) (IPv6, bool) {
	var l layers
	if !locate(frame, &l) || l.ethType != flow.EthTypeIPv6 || l.l3 == 0 {
		return nil, false
	}
	return IPv6(frame[l.l3:l.end]), true
}

// HopLimit returns the hop limit.
func (p IPv6) HopLimit() uint8 { return p[7] }

// NextHeader returns the number of what follows the fixed header, which may be
// an extension header.
func (p IPv6) NextHeader() uint8 { return p[6] }

// Src returns the source address.
func (p IPv6) Src() netip.Addr { return netip.AddrFrom16([16]byte(p[8:24])) }

// Dst returns the destination address.
func (p IPv6) Dst() netip.Addr { return netip.AddrFrom16([16]byte(p[24:40])) }

// Payload returns what follows the fixed header.
func (p IPv6) Payload() []byte { return p[ipv6Len:] }

// IP is the network header of a packet to be built. Both addresses are of one
// family, which decides whether it is IPv4 or IPv6.
type IP struct {
	Src, Dst netip.Addr
	TTL      uint8  // hop limit in IPv6; 0 stands for 64
	DSCP     uint8  // differentiated services code point
	ID       uint16 // IPv4: identification
}

// ethType returns the ethertype of the packet.
func (ip IP) ethType() uint16 {
	if ip.Dst.Is4() {
		return flow.EthTypeIPv4
	}
	return flow.EthTypeIPv6
}

// appendIP appends the header of a packet with n octets of payload.
func appendIP(b []byte, ip IP, proto uint8, n int) []byte {
	ttl := ip.TTL
	if ttl == 0 {
		ttl = 64
	}
	if ip.Dst.Is4() {
		at := len(b)
		b = append(b, 0x45, ip.DSCP<<2)
		b = binary.BigEndian.AppendUint16(b, uint16(ipv4Len+n))
		b = binary.BigEndian.AppendUint16(b, ip.ID)
		b = append(b, 0x40, 0, ttl, proto, 0, 0)
		src, dst := as4(ip.Src), as4(ip.Dst)
		b = append(b, src[:]...)
		b = append(b, dst[:]...)
		binary.BigEndian.PutUint16(b[at+10:], Checksum(b[at:]))
		return b
	}
	b = binary.BigEndian.AppendUint32(b, 6<<28|uint32(ip.DSCP&63)<<22)
	b = binary.BigEndian.AppendUint16(b, uint16(n))
	b = append(b, proto, ttl)
	src, dst := as16(ip.Src), as16(ip.Dst)
	b = append(b, src[:]...)
	return append(b, dst[:]...)
}

// fillChecksum writes the checksum, with pseudo-header, of a transport segment
// at its octet c, which holds zero. A checksum of zero becomes all ones, as UDP
// wants it and the others allow.
func fillChecksum(segment []byte, c int, ip IP, proto uint8) {
	v := ^fold(sum(segment, pseudo(ip.Src, ip.Dst, proto, len(segment))))
	if v == 0 {
		v = 0xffff
	}
	binary.BigEndian.PutUint16(segment[c:], v)
}
