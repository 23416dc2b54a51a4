package flow

import (
	"fmt"
	"math/bits"
	"net/netip"
)

// Ethertypes and IP protocol numbers that matches ask for by name.
const (
	EthTypeIPv4    uint16 = 0x0800
	EthTypeARP     uint16 = 0x0806
	EthTypeVLAN    uint16 = 0x8100
	EthTypeIPv6    uint16 = 0x86dd
	EthTypeMPLS    uint16 = 0x8847
	EthTypeMPLSMC  uint16 = 0x8848
	EthTypeQinQ    uint16 = 0x88a8
	EthTypeLLDP    uint16 = 0x88cc
	EthTypePBB     uint16 = 0x88e7
	IPProtoICMP    uint8  = 1
	IPProtoTCP     uint8  = 6
	IPProtoUDP     uint8  = 17
	IPProtoICMPv6  uint8  = 58
	IPProtoSCTP    uint8  = 132
	EthTypeRARP    uint16 = 0x8035 // by which a hypervisor says where a virtual machine is now
	ICMPv6Router   uint8  = 133    // router solicitation (RFC 4861 §4.1)
	ICMPv6Solicit  uint8  = 135    // neighbour solicitation (RFC 4861 §4.3)
	ICMPv6Advert   uint8  = 136    // neighbour advertisement (RFC 4861 §4.4)
	ICMPv6RSolicit uint8  = 133    // router solicitation (RFC 4861 §4.1)
	ICMPv6RAdvert  uint8  = 134    // router advertisement (RFC 4861 §4.2)
)

// The With methods return the match with one more condition, so that a match
// is built in one expression from Match{}. Each also asks for its
// prerequisites (OpenFlow 1.3.5 §7.2.3.8) where only one value meets them:
// WithIPv4Dst for eth_type 0x0800, WithTCPDst for ip_proto 6, but not whether
// that is over IPv4 or IPv6. The result is normal.

// with is With of an exact number.
func (m Match) with(f Field, v uint64) Match {
	oh, ol := f.ones()
	m.put(f, 0, v, oh, ol)
	return m
}

// WithInPort asks for the ingress port.
func (m Match) WithInPort(p Port) Match { return m.with(FieldInPort, uint64(p)) }

// WithMetadata asks for the metadata bits that are one in mask.
func (m Match) WithMetadata(value, mask uint64) Match {
	m.put(FieldMetadata, 0, value, 0, mask)
	return m
}

// WithTunnelID asks for the tunnel id.
func (m Match) WithTunnelID(id uint64) Match { return m.with(FieldTunnelID, id) }

// WithTunnelIDMasked asks for the bits of the tunnel id that are one in mask.
func (m Match) WithTunnelIDMasked(id, mask uint64) Match {
	m.put(FieldTunnelID, 0, id, 0, mask)
	return m
}

// WithEthDst asks for the destination address.
func (m Match) WithEthDst(a MAC) Match { return m.with(FieldEthDst, a.Uint64()) }

// WithEthDstMasked asks for the bits of the destination address that are one in mask.
func (m Match) WithEthDstMasked(a, mask MAC) Match {
	m.put(FieldEthDst, 0, a.Uint64(), 0, mask.Uint64())
	return m
}

// WithEthSrc asks for the source address.
func (m Match) WithEthSrc(a MAC) Match { return m.with(FieldEthSrc, a.Uint64()) }

// WithEthSrcMasked asks for the bits of the source address that are one in mask.
func (m Match) WithEthSrcMasked(a, mask MAC) Match {
	m.put(FieldEthSrc, 0, a.Uint64(), 0, mask.Uint64())
	return m
}

// WithEthType asks for the ethertype, that after any VLAN tags.
func (m Match) WithEthType(t uint16) Match { return m.with(FieldEthType, uint64(t)) }

// WithVLAN asks for a frame whose outer tag has this VLAN identifier.
func (m Match) WithVLAN(vid uint16) Match {
	return m.with(FieldVLAN, uint64(vid&0xfff|VLANPresent))
}

// A VLANBlock is the VLANs that have the bits of Mask as ID has them.
type VLANBlock struct{ ID, Mask uint16 }

// In returns a match that asks for a tagged frame of those, too, by its outer tag.
func (b VLANBlock) In(m Match) Match {
	m.put(FieldVLAN, 0, uint64(b.ID&b.Mask&0xfff|VLANPresent), 0, uint64(b.Mask&0xfff|VLANPresent))
	return m
}

// WithAnyVLAN asks for a tagged frame, whatever its VLAN.
func (m Match) WithAnyVLAN() Match {
	m.put(FieldVLAN, 0, uint64(VLANPresent), 0, uint64(VLANPresent))
	return m
}

// WithoutVLAN asks for a frame without a tag.
func (m Match) WithoutVLAN() Match { return m.with(FieldVLAN, 0) }

// WithNoVLAN asks for a frame that is in no VLAN: without a tag, or with one that
// gives it a priority only (IEEE 802.1Q §6.8.1). Hosts take both for the same.
func (m Match) WithNoVLAN() Match {
	m.put(FieldVLAN, 0, 0, 0, 0xfff)
	return m
}

// WithVLANPCP asks for the priority in the outer tag; ask for a VLAN too.
func (m Match) WithVLANPCP(pcp uint8) Match { return m.with(FieldVLANPCP, uint64(pcp)) }

// WithIPDSCP asks for the differentiated services code point.
func (m Match) WithIPDSCP(dscp uint8) Match { return m.with(FieldIPDSCP, uint64(dscp)) }

// WithIPProto asks for the IP protocol.
func (m Match) WithIPProto(p uint8) Match { return m.with(FieldIPProto, uint64(p)) }

// WithIPv4Src asks for an IPv4 source in p. It panics if p is not IPv4: use
// WithIPSrc for a prefix of either family.
func (m Match) WithIPv4Src(p netip.Prefix) Match { return m.withIPv4(FieldIPv4Src, p) }

// WithIPv4Dst asks for an IPv4 destination in p; it panics as WithIPv4Src does.
func (m Match) WithIPv4Dst(p netip.Prefix) Match { return m.withIPv4(FieldIPv4Dst, p) }

// WithIPv6Src asks for an IPv6 source in p. It panics if p is not IPv6: use
// WithIPSrc for a prefix of either family.
func (m Match) WithIPv6Src(p netip.Prefix) Match { return m.withIPv6(FieldIPv6Src, p) }

// WithIPv6Dst asks for an IPv6 destination in p; it panics as WithIPv6Src does.
func (m Match) WithIPv6Dst(p netip.Prefix) Match { return m.withIPv6(FieldIPv6Dst, p) }

// WithIPSrc asks for a source in p, whose family decides the ethertype. It
// panics if p is not valid.
func (m Match) WithIPSrc(p netip.Prefix) Match {
	if p.Addr().Is4() {
		return m.WithIPv4Src(p)
	}
	return m.WithIPv6Src(p)
}

// WithIPDst asks for a destination in p as WithIPSrc does for the source.
func (m Match) WithIPDst(p netip.Prefix) Match {
	if p.Addr().Is4() {
		return m.WithIPv4Dst(p)
	}
	return m.WithIPv6Dst(p)
}

// withIPv4 is With of an address field in a prefix.
func (m Match) withIPv4(f Field, p netip.Prefix) Match {
	if !p.IsValid() || !p.Addr().Is4() {
		panic(fmt.Sprintf("flow: match %v=%v: not an IPv4 prefix", f, p))
	}
	if f == FieldARPSPA || f == FieldARPTPA {
		m = m.WithEthType(EthTypeARP)
	} else {
		m = m.WithEthType(EthTypeIPv4)
	}
	m.put(f, 0, getUint32(p.Addr().As4()), 0, prefixMask(32, p.Bits()))
	return m
}

// withIPv6 is With of an address field in a prefix.
func (m Match) withIPv6(f Field, p netip.Prefix) Match {
	if !p.IsValid() || p.Addr().Is4() {
		panic(fmt.Sprintf("flow: match %v=%v: not an IPv6 prefix", f, p))
	}
	m = m.WithEthType(EthTypeIPv6)
	a := p.Addr().As16()
	mh, ml := prefixMask(64, min(p.Bits(), 64)), prefixMask(64, max(p.Bits()-64, 0))
	m.put(f, getUint64(a[0:8]), getUint64(a[8:16]), mh, ml)
	return m
}

// prefixMask returns n ones followed by zeros, width bits in all.
func prefixMask(width, n int) uint64 {
	return ^uint64(0) << (width - n) & (^uint64(0) >> (64 - width))
}

// prefixLen returns how many ones mask begins with and whether only zeros
// follow; width is its length in bits.
func prefixLen(width int, mask uint64) (n int, ok bool) {
	n = width - min(bits.TrailingZeros64(mask), width)
	return n, mask == prefixMask(width, n)
}

// WithTCPSrc asks for the TCP source port.
func (m Match) WithTCPSrc(port uint16) Match {
	return m.WithIPProto(IPProtoTCP).with(FieldTCPSrc, uint64(port))
}

// WithTCPDst asks for the TCP destination port.
func (m Match) WithTCPDst(port uint16) Match {
	return m.WithIPProto(IPProtoTCP).with(FieldTCPDst, uint64(port))
}

// WithUDPSrc asks for the UDP source port.
func (m Match) WithUDPSrc(port uint16) Match {
	return m.WithIPProto(IPProtoUDP).with(FieldUDPSrc, uint64(port))
}

// WithUDPDst asks for the UDP destination port.
func (m Match) WithUDPDst(port uint16) Match {
	return m.WithIPProto(IPProtoUDP).with(FieldUDPDst, uint64(port))
}

// WithSCTPSrc asks for the SCTP source port.
func (m Match) WithSCTPSrc(port uint16) Match {
	return m.WithIPProto(IPProtoSCTP).with(FieldSCTPSrc, uint64(port))
}

// WithSCTPDst asks for the SCTP destination port.
func (m Match) WithSCTPDst(port uint16) Match {
	return m.WithIPProto(IPProtoSCTP).with(FieldSCTPDst, uint64(port))
}

// WithICMPv4Type asks for the ICMP type over IPv4.
func (m Match) WithICMPv4Type(t uint8) Match {
	return m.WithEthType(EthTypeIPv4).WithIPProto(IPProtoICMP).with(FieldICMPv4Type, uint64(t))
}

// WithICMPv6Type asks for the ICMPv6 type.
func (m Match) WithICMPv6Type(t uint8) Match {
	return m.WithEthType(EthTypeIPv6).WithIPProto(IPProtoICMPv6).with(FieldICMPv6Type, uint64(t))
}

// WithNDTarget asks for the target of a neighbour solicitation or
// advertisement; ask for the ICMPv6 type, 135 or 136, too.
func (m Match) WithNDTarget(a netip.Addr) Match {
	b := a.As16()
	m.put(FieldNDTarget, getUint64(b[0:8]), getUint64(b[8:16]), ^uint64(0), ^uint64(0))
	return m
}

// WithNDSLL asks for the source's Ethernet address in a neighbour solicitation, zero
// for one that gives none; ask for the ICMPv6 type, 135, too.
func (m Match) WithNDSLL(a MAC) Match { return m.with(FieldNDSLL, a.Uint64()) }

// WithNDTLL asks for the target's Ethernet address in a neighbour advertisement, zero
// for one that gives none; ask for the ICMPv6 type, 136, too.
func (m Match) WithNDTLL(a MAC) Match { return m.with(FieldNDTLL, a.Uint64()) }

// WithARPOp asks for the ARP operation: 1 request, 2 reply.
func (m Match) WithARPOp(op uint16) Match {
	return m.WithEthType(EthTypeARP).with(FieldARPOp, uint64(op))
}

// WithARPSPA asks for an ARP sender in p; it panics as WithIPv4Src does.
func (m Match) WithARPSPA(p netip.Prefix) Match { return m.withIPv4(FieldARPSPA, p) }

// WithARPTPA asks for an ARP target in p; it panics as WithIPv4Src does.
func (m Match) WithARPTPA(p netip.Prefix) Match { return m.withIPv4(FieldARPTPA, p) }

// WithARPSHA asks for the sender's hardware address in ARP.
func (m Match) WithARPSHA(a MAC) Match {
	return m.WithEthType(EthTypeARP).with(FieldARPSHA, a.Uint64())
}

// WithARPTHA asks for the target's hardware address in ARP.
func (m Match) WithARPTHA(a MAC) Match {
	return m.WithEthType(EthTypeARP).with(FieldARPTHA, a.Uint64())
}

// WithMPLSLabel asks for the outer label; ask for the ethertype, 0x8847 or
// 0x8848, too.
func (m Match) WithMPLSLabel(label uint32) Match { return m.with(FieldMPLSLabel, uint64(label)) }

// WithMPLSTC asks for the traffic class of the outer label; ask for the ethertype, too.
func (m Match) WithMPLSTC(tc uint8) Match { return m.with(FieldMPLSTC, uint64(tc)) }

// WithMPLSBOS asks for the outer label to be the last (1), or to cover another (0);
// ask for the ethertype, too.
func (m Match) WithMPLSBOS(bit uint8) Match { return m.with(FieldMPLSBOS, uint64(bit)) }

// WithFirstFragment asks for the first fragment of an IP packet; ask for the
// ethertype, too.
func (m Match) WithFirstFragment() Match { return m.with(FieldIPFrag, uint64(FragAny)) }

// WithLaterFragment asks for a fragment of an IP packet other than the first; ask
// for the ethertype, too.
func (m Match) WithLaterFragment() Match { return m.with(FieldIPFrag, uint64(FragAny|FragLater)) }

// transportFields are those that later fragments of a packet do not have.
const transportFields = 1<<FieldTCPSrc | 1<<FieldTCPDst | 1<<FieldUDPSrc | 1<<FieldUDPDst | 1<<FieldSCTPSrc | 1<<FieldSCTPDst |
	1<<FieldICMPv4Type | 1<<FieldICMPv4Code | 1<<FieldICMPv6Type | 1<<FieldICMPv6Code | 1<<FieldNDTarget | 1<<FieldNDSLL | 1<<FieldNDTLL

// LaterFragments returns the match of what can be later fragments of packets that m
// matches: they have no transport fields and, over IPv6, another protocol. It reports
// false if m matches these itself, or no fragments. Packets that m does not match have such
// fragments, too.
func (m Match) LaterFragments() (Match, bool) {
	without := FieldSet(transportFields)
	switch {
	case !m.Set.Has(FieldEthType):
		return Match{}, false
	case m.Key.EthType == EthTypeIPv6:
		without |= FieldIPProto.Bit()
	case m.Key.EthType != EthTypeIPv4:
		return Match{}, false
	}
	if m.Set&without == 0 {
		return Match{}, false
	}
	for s := m.Set & without; s != 0; s &= s - 1 {
		m.put(Field(bits.TrailingZeros64(uint64(s))), 0, 0, 0, 0)
	}
	return m.WithLaterFragment(), true
}

// WithMPLSTTL asks for the time to live of the outer label; ask for the ethertype, too.
func (m Match) WithMPLSTTL(ttl uint8) Match { return m.with(FieldMPLSTTL, uint64(ttl)) }
