package packet

import (
	"encoding/binary"
	"math/bits"
	"net/netip"
)

// Checksum returns the Internet checksum (RFC 1071) of b, ready to be stored;
// it is 0 where b holds a right checksum already.
func Checksum(b []byte) uint16 { return ^fold(sum(b, 0)) }

// sum adds b, as 16-bit numbers in network order, to a one's complement sum.
func sum(b []byte, s uint64) uint64 {
	var carry uint64
	for len(b) >= 8 {
		s, carry = bits.Add64(s, binary.BigEndian.Uint64(b), carry)
		b = b[8:]
	}
	var tail uint64
	if len(b) >= 4 {
		tail = uint64(be32(b))
		b = b[4:]
	}
	if len(b) >= 2 {
		tail += uint64(be16(b))
		b = b[2:]
	}
	if len(b) == 1 {
		tail += uint64(b[0]) << 8
	}
	s, carry = bits.Add64(s, tail, carry)
	s, carry = bits.Add64(s, 0, carry)
	return s + carry
}

// fold brings a one's complement sum to 16 bits.
func fold(s uint64) uint16 {
	s = s>>32 + s&0xffffffff
	s = s>>32 + s&0xffffffff
	s = s>>16 + s&0xffff
	s = s>>16 + s&0xffff
	return uint16(s)
}

// pseudo returns the sum of the pseudo-header of what IP carries: n octets of
// protocol proto (RFC 793 §3.1, RFC 8200 §8.1).
func pseudo(src, dst netip.Addr, proto uint8, n int) uint64 {
	s := uint64(proto) + uint64(n)
	if src.Is4() {
		a, c := src.As4(), as4(dst)
		return sum(c[:], sum(a[:], s))
	}
	a, c := as16(src), as16(dst)
	return sum(c[:], sum(a[:], s))
}

// adjust changes the checksum stored at c for octets that were was and are
// now now, both of the same even length (RFC 1624 eq. 3).
func adjust(c, was, now []byte) {
	s := uint64(^be16(c))
	for i := 0; i+1 < len(was); i += 2 {
		s += uint64(^be16(was[i:])) + uint64(be16(now[i:]))
	}
	binary.BigEndian.PutUint16(c, ^fold(s))
}
