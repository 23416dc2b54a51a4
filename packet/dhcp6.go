package packet

import (
	"encoding/binary"
	"net/netip"
)

// The UDP ports of DHCPv6 (RFC 8415 §7.2).
const (
	DHCPv6ClientPort uint16 = 546
	DHCPv6ServerPort uint16 = 547
)

// The message types of DHCPv6 (RFC 8415 §7.3).
const (
	DHCPv6Solicit uint8 = 1 + iota
	DHCPv6Advertise
	DHCPv6Request
	DHCPv6Confirm
	DHCPv6Renew
	DHCPv6Rebind
	DHCPv6Reply
	DHCPv6Release
	DHCPv6Decline
	DHCPv6Reconfigure
	DHCPv6InformationRequest
	DHCPv6RelayForward
	DHCPv6RelayReply
)

// The options of DHCPv6 (RFC 8415 §21) that a controller looks at.
const (
	DHCPv6OptClientID     uint16 = 1
	DHCPv6OptServerID     uint16 = 2
	DHCPv6OptIANA         uint16 = 3
	DHCPv6OptIAAddress    uint16 = 5
	DHCPv6OptRelayMessage uint16 = 9
	DHCPv6OptInterfaceID  uint16 = 18
)

// DHCPv6 is a view of a DHCPv6 message or relayed message (RFC 8415 §8, §9).
type DHCPv6 []byte

// ParseDHCPv6 returns the DHCPv6 message in an IPv6 frame, false if there is
// none or it is cut off.
func ParseDHCPv6(frame []byte) (DHCPv6, bool) {
	u, ok := ParseUDP(frame)
	if !ok || !dhcp6Port(u.SrcPort()) && !dhcp6Port(u.DstPort()) {
		return nil, false
	}
	if _, ok := ParseIPv6(frame); !ok {
		return nil, false
	}
	return dhcp6At(u.Payload())
}

func dhcp6Port(p uint16) bool { return p == DHCPv6ServerPort || p == DHCPv6ClientPort }

func dhcp6At(b []byte) (DHCPv6, bool) {
	d := DHCPv6(b)
	if len(b) < 4 || d.Relayed() && len(b) < 34 {
		return nil, false
	}
	return d, true
}

// Type returns the message type.
func (d DHCPv6) Type() uint8 { return d[0] }

// Relayed reports whether the message is between relay and server; Message
// returns what it wraps.
func (d DHCPv6) Relayed() bool { return d[0] == DHCPv6RelayForward || d[0] == DHCPv6RelayReply }

// XID returns the transaction identifier, 24 bits; 0 in a relayed message.
func (d DHCPv6) XID() uint32 {
	if d.Relayed() {
		return 0
	}
	return be32(d) & 0xffffff
}

// LinkAddress returns the address that names the client's link to the server,
// the zero Addr in a message that is not relayed.
func (d DHCPv6) LinkAddress() netip.Addr {
	if !d.Relayed() {
		return netip.Addr{}
	}
	return netip.AddrFrom16([16]byte(d[2:18]))
}

// PeerAddress returns the address of the client or relay that the message is
// from or for, the zero Addr in a message that is not relayed.
func (d DHCPv6) PeerAddress() netip.Addr {
	if !d.Relayed() {
		return netip.Addr{}
	}
	return netip.AddrFrom16([16]byte(d[18:34]))
}

// options returns the list of options.
func (d DHCPv6) options() []byte {
	if d.Relayed() {
		return d[34:]
	}
	return d[4:]
}

// Option returns the value of the first option of a kind, false if it is absent
// or cut off.
func (d DHCPv6) Option(code uint16) ([]byte, bool) {
	v, _, ok := option6(d.options(), code)
	return v, ok
}

// option6 returns the first option of a kind in b and what follows it.
func option6(b []byte, code uint16) (value, rest []byte, ok bool) {
	for len(b) >= 4 {
		n := 4 + int(be16(b[2:4]))
		if n > len(b) {
			break
		}
		if be16(b) == code {
			return b[4:n], b[n:], true
		}
		b = b[n:]
	}
	return nil, nil, false
}

// Message returns the message between client and server that is wrapped by any
// number of relays, and the client's address as the relay next to it saw it;
// the zero Addr if no relay is involved. It reports false if there is none.
func (d DHCPv6) Message() (m DHCPv6, client netip.Addr, ok bool) {
	for d.Relayed() {
		client = d.PeerAddress()
		v, found := d.Option(DHCPv6OptRelayMessage)
		if !found {
			return nil, client, false
		}
		if d, ok = dhcp6At(v); !ok {
			return nil, client, false
		}
	}
	return d, client, true
}

// IAAddress is an address that DHCPv6 gives to a client (RFC 8415 §21.6).
type IAAddress struct {
	IAID      uint32
	Addr      netip.Addr
	Preferred uint32 // lifetime in seconds
	Valid     uint32 // lifetime in seconds; 0 takes the address away
}

// Addresses appends the addresses of the message's IA_NA options, cut-off ones
// excepted. Of a relayed message ask what Message returns.
func (d DHCPv6) Addresses(list []IAAddress) []IAAddress {
	for ia, rest, ok := option6(d.options(), DHCPv6OptIANA); ok; ia, rest, ok = option6(rest, DHCPv6OptIANA) {
		if len(ia) < 12 {
			continue
		}
		for a, more, ok := option6(ia[12:], DHCPv6OptIAAddress); ok; a, more, ok = option6(more, DHCPv6OptIAAddress) {
			if len(a) >= 24 {
				list = append(list, IAAddress{be32(ia), netip.AddrFrom16([16]byte(a[0:16])), be32(a[16:20]), be32(a[20:24])})
			}
		}
	}
	return list
}

// DHCPv6Fields is a DHCPv6 message between client and server to be built.
type DHCPv6Fields struct {
	Type      uint8
	XID       uint32 // 24 bits
	ClientID  []byte // DUID; left out if empty
	ServerID  []byte // DUID; left out if empty
	Addresses []IAAddress
}

// AppendDHCPv6 appends a message as UDP carries it: hand it to AppendUDP, or
// wrap it by AppendDHCPv6Relay first.
func AppendDHCPv6(b []byte, f DHCPv6Fields) []byte {
	b = binary.BigEndian.AppendUint32(b, uint32(f.Type)<<24|f.XID&0xffffff)
	if len(f.ClientID) > 0 {
		b = appendOption6(b, DHCPv6OptClientID, f.ClientID)
	}
	if len(f.ServerID) > 0 {
		b = appendOption6(b, DHCPv6OptServerID, f.ServerID)
	}
	for _, a := range f.Addresses {
		var ia [40]byte // IAID, T1, T2, and the option IAADDR
		binary.BigEndian.PutUint32(ia[0:], a.IAID)
		binary.BigEndian.PutUint16(ia[12:], DHCPv6OptIAAddress)
		binary.BigEndian.PutUint16(ia[14:], 24)
		addr := as16(a.Addr)
		copy(ia[16:], addr[:])
		binary.BigEndian.PutUint32(ia[32:], a.Preferred)
		binary.BigEndian.PutUint32(ia[36:], a.Valid)
		b = appendOption6(b, DHCPv6OptIANA, ia[:])
	}
	return b
}

// DHCPv6RelayFields is the wrapping by a relay to be built.
type DHCPv6RelayFields struct {
	Type        uint8 // DHCPv6RelayForward or DHCPv6RelayReply
	Hops        uint8
	LinkAddress netip.Addr
	PeerAddress netip.Addr
}

// AppendDHCPv6Relay appends a relayed message that wraps message, as UDP
// carries it.
func AppendDHCPv6Relay(b []byte, f DHCPv6RelayFields, message []byte) []byte {
	link, peer := as16(f.LinkAddress), as16(f.PeerAddress)
	b = append(b, f.Type, f.Hops)
	b = append(b, link[:]...)
	b = append(b, peer[:]...)
	return appendOption6(b, DHCPv6OptRelayMessage, message)
}

func appendOption6(b []byte, code uint16, value []byte) []byte {
	b = binary.BigEndian.AppendUint16(b, code)
	b = binary.BigEndian.AppendUint16(b, uint16(len(value)))
	return append(b, value...)
}
