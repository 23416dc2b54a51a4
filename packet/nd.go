package packet

import (
	"encoding/binary"
	"net/netip"

	"github.com/weft-sdn/weft/flow"
)

// The options of neighbour discovery (RFC 4861 §4.6) that carry an Ethernet
// address or a prefix.
const (
	optSourceMAC uint8 = 1
	optTargetMAC uint8 = 2
	optPrefix    uint8 = 3
)

// ND is a view of a message of neighbour discovery (RFC 4861): a neighbour
// solicitation or advertisement, a router solicitation or advertisement.
type ND []byte

// ParseND returns the neighbour discovery message in a frame, false if there is
// none or RFC 4861 §6.1 and §7.1 have it dropped: cut off, hop limit not 255,
// code not 0, wrong checksum, malformed options. It need not be a link-local
// sender's.
func ParseND(frame []byte) (ND, bool) {
	var l layers
	b, ok := segment(frame, &l, flow.IPProtoICMPv6, icmpLen)
	if !ok || l.ethType != flow.EthTypeIPv6 || l.fragment || b[1] != 0 {
		return nil, false
	}
	nd := ND(b)
	head := nd.head()
	if head == 0 || len(b) < head || !optionsWhole(b[head:]) {
		return nil, false
	}
	if IPv6(frame[l.l3:]).HopLimit() != 255 || !ICMPv6Good(frame) {
		return nil, false
	}
	return nd, true
}

// head returns how many octets precede the options, 0 if the type is none of
// neighbour discovery's.
func (m ND) head() int {
	switch m[0] {
	case flow.ICMPv6Solicit, flow.ICMPv6Advert:
		return ndLen
	case flow.ICMPv6RSolicit:
		return 8
	case flow.ICMPv6RAdvert:
		return 16
	}
	return 0
}

// optionsWhole reports whether b is a list of options, none of them of length
// zero or cut off.
func optionsWhole(b []byte) bool {
	for len(b) > 0 {
		if len(b) < 8 || b[1] == 0 || int(b[1])*8 > len(b) {
			return false
		}
		b = b[int(b[1])*8:]
	}
	return true
}

// Type returns the ICMPv6 type: flow.ICMPv6Solicit and so on.
func (m ND) Type() uint8 { return m[0] }

// Target returns the address that a neighbour solicitation asks for or an
// advertisement tells of; the zero Addr in router messages.
func (m ND) Target() netip.Addr {
	if m.head() != ndLen {
		return netip.Addr{}
	}
	return netip.AddrFrom16([16]byte(m[8:24]))
}

// Router reports whether the sender of a neighbour advertisement is a router.
func (m ND) Router() bool { return m[0] == flow.ICMPv6Advert && m[4]&0x80 != 0 }

// Solicited reports whether the advertisement answers a solicitation.
func (m ND) Solicited() bool { return m[0] == flow.ICMPv6Advert && m[4]&0x40 != 0 }

// Override reports whether the advertisement is to replace what is cached.
func (m ND) Override() bool { return m[0] == flow.ICMPv6Advert && m[4]&0x20 != 0 }

// RouterLifetime returns for how many seconds the sender of a router
// advertisement is a default router.
func (m ND) RouterLifetime() uint16 {
	if m[0] != flow.ICMPv6RAdvert {
		return 0
	}
	return be16(m[6:8])
}

// SourceMAC returns the source link-layer address option, false if absent.
func (m ND) SourceMAC() (flow.MAC, bool) { return m.mac(optSourceMAC) }

// TargetMAC returns the target link-layer address option, false if absent.
func (m ND) TargetMAC() (flow.MAC, bool) { return m.mac(optTargetMAC) }

func (m ND) mac(option uint8) (flow.MAC, bool) {
	for b := m[m.head():]; len(b) >= 8; b = b[int(b[1])*8:] {
		if b[0] == option && b[1] == 1 {
			return flow.MAC(b[2:8]), true
		}
		if b[1] == 0 || int(b[1])*8 > len(b) {
			break
		}
	}
	return flow.MAC{}, false
}

// Prefixes appends the prefixes that a router advertisement announces.
func (m ND) Prefixes(list []netip.Prefix) []netip.Prefix {
	if m[0] != flow.ICMPv6RAdvert {
		return list
	}
	for b := m[m.head():]; len(b) >= 8; b = b[int(b[1])*8:] {
		if b[0] == optPrefix && b[1] == 4 && b[2] <= 128 {
			list = append(list, netip.PrefixFrom(netip.AddrFrom16([16]byte(b[16:32])), int(b[2])).Masked())
		}
	}
	return list
}

// SolicitedNode returns the multicast address at which the owner of a hears
// solicitations (RFC 4291 §2.7.1), and the Ethernet address of that (RFC 2464 §7).
func SolicitedNode(a netip.Addr) (netip.Addr, flow.MAC) {
	b := as16(a)
	group := netip.AddrFrom16([16]byte{0: 0xff, 1: 2, 11: 1, 12: 0xff, 13: b[13], 14: b[14], 15: b[15]})
	return group, flow.MAC{0x33, 0x33, 0xff, b[13], b[14], b[15]}
}

// NDFields is what a neighbour solicitation or advertisement to be built says.
type NDFields struct {
	SrcMAC flow.MAC
	SrcIP  netip.Addr
	DstMAC flow.MAC   // solicitation: zero is the solicited-node group; advertisement: zero is all nodes
	DstIP  netip.Addr // as DstMAC
	Target netip.Addr
	// of an advertisement
	TargetMAC flow.MAC // zero is SrcMAC
	Router    bool
	Solicited bool
	Override  bool
}

// AppendNDSolicit appends a frame with a neighbour solicitation for f.Target,
// with f.SrcMAC as source link-layer address unless f.SrcIP is :: (duplicate
// address detection). vlan is as in Ether.
func AppendNDSolicit(b []byte, vlan uint16, f NDFields) []byte {
	group, mac := SolicitedNode(f.Target)
	if !f.DstIP.IsValid() {
		f.DstIP = group
	}
	if f.DstMAC == (flow.MAC{}) {
		f.DstMAC = mac
	}
	option := optSourceMAC
	if f.SrcIP.IsUnspecified() {
		option = 0
	}
	return appendND(b, vlan, f, flow.ICMPv6Solicit, 0, option, f.SrcMAC)
}

// AppendNDAdvert appends a frame with a neighbour advertisement: f.Target is at
// f.TargetMAC. vlan is as in Ether.
func AppendNDAdvert(b []byte, vlan uint16, f NDFields) []byte {
	if !f.DstIP.IsValid() {
		f.DstIP = netip.IPv6LinkLocalAllNodes()
	}
	if f.DstMAC == (flow.MAC{}) {
		f.DstMAC = flow.MAC{0x33, 0x33, 0, 0, 0, 1}
	}
	if f.TargetMAC == (flow.MAC{}) {
		f.TargetMAC = f.SrcMAC
	}
	var flags uint32
	for i, set := range [...]bool{f.Router, f.Solicited, f.Override} {
		if set {
			flags |= 1 << (31 - i)
		}
	}
	return appendND(b, vlan, f, flow.ICMPv6Advert, flags, optTargetMAC, f.TargetMAC)
}

// appendND appends a neighbour message with one address option, none if option
// is 0.
func appendND(b []byte, vlan uint16, f NDFields, kind uint8, flags uint32, option uint8, mac flow.MAC) []byte {
	var body [28]byte
	binary.BigEndian.PutUint32(body[0:], flags)
	target := as16(f.Target)
	n := 4 + copy(body[4:], target[:])
	if option != 0 {
		body[n], body[n+1] = option, 1
		n += 2 + copy(body[n+2:], mac[:])
	}
	ip := IP{Src: f.SrcIP, Dst: f.DstIP, TTL: 255}
	if !ip.Src.IsValid() {
		ip.Src = netip.IPv6Unspecified()
	}
	return AppendICMP(b, Ether{Dst: f.DstMAC, Src: f.SrcMAC, VLAN: vlan}, ip, kind, 0, body[:n])
}
