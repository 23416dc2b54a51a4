package packet

import (
	"encoding/binary"
	"net/netip"

	"github.com/weft-sdn/weft/flow"
)

// The UDP ports of DHCP (RFC 2131 §4.1).
const (
	DHCPv4ServerPort uint16 = 67
	DHCPv4ClientPort uint16 = 68
)

// The message types of DHCP (RFC 2132 §9.6).
const (
	DHCPDiscover uint8 = 1 + iota
	DHCPOffer
	DHCPRequest
	DHCPDecline
	DHCPAck
	DHCPNak
	DHCPRelease
	DHCPInform
)

// The options of DHCP (RFC 2132) that a controller looks at.
const (
	DHCPOptSubnetMask  uint8 = 1
	DHCPOptRouter      uint8 = 3
	DHCPOptRequestedIP uint8 = 50
	DHCPOptLeaseTime   uint8 = 51
	DHCPOptMessageType uint8 = 53
	DHCPOptServerID    uint8 = 54
)

const (
	dhcpFixed  = 236 // octets before the magic cookie
	dhcpCookie = 0x63825363
)

// DHCPv4 is a view of a DHCP message for Ethernet (RFC 2131).
type DHCPv4 []byte

// ParseDHCPv4 returns the DHCP message in an IPv4 frame, false if there is
// none, or it is not for Ethernet, cut off, or plain BOOTP.
func ParseDHCPv4(frame []byte) (DHCPv4, bool) {
	u, ok := ParseUDP(frame)
	if !ok || !dhcpPort(u.SrcPort()) || !dhcpPort(u.DstPort()) {
		return nil, false
	}
	b := u.Payload()
	if len(b) < dhcpFixed+4 || b[1] != 1 || b[2] != 6 || be32(b[dhcpFixed:]) != dhcpCookie {
		return nil, false
	}
	d := DHCPv4(b)
	return d, d.Type() != 0
}

func dhcpPort(p uint16) bool { return p == DHCPv4ServerPort || p == DHCPv4ClientPort }

// Reply reports whether the message is from a server (BOOTREPLY).
func (d DHCPv4) Reply() bool { return d[0] == 2 }

// XID returns the transaction identifier.
func (d DHCPv4) XID() uint32 { return be32(d[4:8]) }

// ClientIP returns ciaddr, the address that the client has already.
func (d DHCPv4) ClientIP() netip.Addr { return netip.AddrFrom4([4]byte(d[12:16])) }

// YourIP returns yiaddr, the address that the server gives.
func (d DHCPv4) YourIP() netip.Addr { return netip.AddrFrom4([4]byte(d[16:20])) }

// RelayIP returns giaddr, the relay's address; 0.0.0.0 without one.
func (d DHCPv4) RelayIP() netip.Addr { return netip.AddrFrom4([4]byte(d[24:28])) }

// ClientMAC returns chaddr, the client's hardware address.
func (d DHCPv4) ClientMAC() flow.MAC { return flow.MAC(d[28:34]) }

// Option returns the value of an option, false if it is absent or cut off.
// Options in the fields sname and file (RFC 2132 §9.3) are not looked at.
func (d DHCPv4) Option(code uint8) ([]byte, bool) {
	for b := d[dhcpFixed+4:]; len(b) > 0; {
		if b[0] == 0 { // padding
			b = b[1:]
			continue
		}
		if b[0] == 255 || len(b) < 2 || len(b) < 2+int(b[1]) {
			break
		}
		if b[0] == code {
			return b[2 : 2+int(b[1])], true
		}
		b = b[2+int(b[1]):]
	}
	return nil, false
}

// Type returns the message type, 0 if there is none.
func (d DHCPv4) Type() uint8 {
	if v, ok := d.Option(DHCPOptMessageType); ok && len(v) == 1 {
		return v[0]
	}
	return 0
}

// RequestedIP returns the address that the client asks for, false if none.
func (d DHCPv4) RequestedIP() (netip.Addr, bool) { return d.address(DHCPOptRequestedIP) }

// ServerID returns the address by which the server is known, false if none.
func (d DHCPv4) ServerID() (netip.Addr, bool) { return d.address(DHCPOptServerID) }

func (d DHCPv4) address(code uint8) (netip.Addr, bool) {
	if v, ok := d.Option(code); ok && len(v) == 4 {
		return netip.AddrFrom4([4]byte(v)), true
	}
	return netip.Addr{}, false
}

// LeaseTime returns the lease in seconds, 0 if none is given.
func (d DHCPv4) LeaseTime() uint32 {
	if v, ok := d.Option(DHCPOptLeaseTime); ok && len(v) == 4 {
		return be32(v)
	}
	return 0
}

// DHCPv4Fields is a DHCP message to be built. Addresses that are not valid are
// left out; so is a lease time of 0.
type DHCPv4Fields struct {
	Type        uint8
	XID         uint32
	ClientMAC   flow.MAC
	ClientIP    netip.Addr
	YourIP      netip.Addr
	RelayIP     netip.Addr
	RequestedIP netip.Addr
	ServerID    netip.Addr
	LeaseTime   uint32
	SubnetMask  netip.Addr
	Router      netip.Addr
}

// AppendDHCPv4 appends a frame with a DHCP message, from server to client if
// its type is one that servers send.
func AppendDHCPv4(b []byte, e Ether, ip IP, f DHCPv4Fields) []byte {
	reply := f.Type == DHCPOffer || f.Type == DHCPAck || f.Type == DHCPNak
	op, src, dst := byte(1), DHCPv4ClientPort, DHCPv4ServerPort
	if reply {
		op, src, dst = 2, dst, src
	}
	body := make([]byte, dhcpFixed+4, dhcpFixed+64)
	body[0], body[1], body[2] = op, 1, 6
	binary.BigEndian.PutUint32(body[4:], f.XID)
	for i, a := range [...]netip.Addr{f.ClientIP, f.YourIP, {}, f.RelayIP} {
		v := as4(a)
		copy(body[12+4*i:], v[:])
	}
	copy(body[28:], f.ClientMAC[:])
	binary.BigEndian.PutUint32(body[dhcpFixed:], dhcpCookie)
	body = append(body, DHCPOptMessageType, 1, f.Type)
	for _, o := range [...]struct {
		code uint8
		addr netip.Addr
	}{
		{DHCPOptSubnetMask, f.SubnetMask}, {DHCPOptRouter, f.Router},
		{DHCPOptRequestedIP, f.RequestedIP}, {DHCPOptServerID, f.ServerID},
	} {
		if o.addr.Is4() {
			v := o.addr.As4()
			body = append(body, o.code, 4, v[0], v[1], v[2], v[3])
		}
	}
	if f.LeaseTime != 0 {
		body = append(body, DHCPOptLeaseTime, 4)
		body = binary.BigEndian.AppendUint32(body, f.LeaseTime)
	}
	return AppendUDP(b, e, ip, src, dst, append(body, 255))
}
