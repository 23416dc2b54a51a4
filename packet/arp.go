package packet

import (
	"encoding/binary"
	"net/netip"

	"github.com/weft-sdn/weft/flow"
)

// The operations of ARP (RFC 826).
const (
	ARPRequest uint16 = 1
	ARPReply   uint16 = 2
)

// ARP is a view of an ARP packet for IPv4 over Ethernet (RFC 826).
type ARP []byte

// ParseARP returns the ARP packet in a frame, false if there is none or it is
// not for IPv4 over Ethernet.
func ParseARP(frame []byte) (ARP, bool) {
	var l layers
	if !locate(frame, &l) || l.ethType != flow.EthTypeARP || l.l3 == 0 {
		return nil, false
	}
	return arpAt(frame[l.l3:])
}

func arpAt(b []byte) (ARP, bool) {
	if len(b) < arpLen || be32(b[0:4]) != 0x00010800 || b[4] != 6 || b[5] != 4 {
		return nil, false
	}
	return ARP(b[:arpLen]), true
}

// Op returns the operation.
func (a ARP) Op() uint16 { return be16(a[6:8]) }

// SenderMAC returns the sender's hardware address.
func (a ARP) SenderMAC() flow.MAC { return flow.MAC(a[8:14]) }

// SenderIP returns the sender's address; 0.0.0.0 in a probe (RFC 5227).
func (a ARP) SenderIP() netip.Addr { return netip.AddrFrom4([4]byte(a[14:18])) }

// TargetMAC returns the target's hardware address, zero in a request.
func (a ARP) TargetMAC() flow.MAC { return flow.MAC(a[18:24]) }

// TargetIP returns the target's address.
func (a ARP) TargetIP() netip.Addr { return netip.AddrFrom4([4]byte(a[24:28])) }

// ARPFields is what an ARP packet to be built says. Addresses that are not
// IPv4 are written as 0.0.0.0.
type ARPFields struct {
	SenderMAC flow.MAC
	SenderIP  netip.Addr
	TargetMAC flow.MAC
	TargetIP  netip.Addr
}

// AppendARPRequest appends a frame that asks for f.TargetIP: broadcast, or to
// f.TargetMAC where that is set, as a probe of a known host. vlan is as in
// Ether.
func AppendARPRequest(b []byte, vlan uint16, f ARPFields) []byte {
	dst := f.TargetMAC
	if dst == (flow.MAC{}) {
		dst = flow.Broadcast
	}
	f.TargetMAC = flow.MAC{}
	return appendARP(b, Ether{Dst: dst, Src: f.SenderMAC, VLAN: vlan}, ARPRequest, f)
}

// AppendARPReply appends a frame that tells f.TargetMAC that f.SenderIP is at
// f.SenderMAC. vlan is as in Ether.
func AppendARPReply(b []byte, vlan uint16, f ARPFields) []byte {
	return appendARP(b, Ether{Dst: f.TargetMAC, Src: f.SenderMAC, VLAN: vlan}, ARPReply, f)
}

func appendARP(b []byte, e Ether, op uint16, f ARPFields) []byte {
	b = AppendEthernet(b, e, flow.EthTypeARP)
	b = append(b, 0, 1, 8, 0, 6, 4)
	b = binary.BigEndian.AppendUint16(b, op)
	sender, target := as4(f.SenderIP), as4(f.TargetIP)
	b = append(b, f.SenderMAC[:]...)
	b = append(b, sender[:]...)
	b = append(b, f.TargetMAC[:]...)
	return append(b, target[:]...)
}

// as4 returns an IPv4 address's octets, zeros for any other.
func as4(a netip.Addr) [4]byte {
	if a = a.Unmap(); a.Is4() {
		return a.As4()
	}
	return [4]byte{}
}

// as16 returns an IPv6 address's octets, zeros for any other.
func as16(a netip.Addr) [16]byte {
	if a.Is6() {
		return a.As16()
	}
	return [16]byte{}
}
