package sim

import (
	"encoding/binary"
	"net/netip"

	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/packet"
)

// endpoint is a host as the generator needs it.
type endpoint struct {
	mac uint64 // 48 bits
	ip  uint32
	at  uint32 // its switch, as an index, and in the last two octets its port
	sum uint32 // the address's share of the IPv4 header checksum
}

func newEndpoint(h Host) endpoint {
	ip := binary.BigEndian.Uint32(h.IP[:])
	return endpoint{mac: h.MAC.Uint64(), ip: ip, at: place(h.At.Switch, h.At.Port), sum: ip>>16 + ip&0xffff}
}

// place is a port of a switch in one number; a higher port number is not used.
func place(sw int, p flow.Port) uint32 { return uint32(sw)<<16 | uint32(p)&0xffff }

// payloadLen is the UDP payload of a frame of a load, in octets.
const payloadLen = frameLen - 14 - 20 - 8

// newFrame returns a frame of a load without addresses and identity, and the
// sum over its IPv4 header. The UDP checksum is zero: there is none (RFC 768).
func newFrame() ([]byte, uint32) {
	payload := make([]byte, payloadLen)
	binary.BigEndian.PutUint64(payload[frameMark-frameID:], mark)
	zero := netip.AddrFrom4([4]byte{})
	f := packet.AppendUDP(nil, packet.Ether{}, packet.IP{Src: zero, Dst: zero}, 9, 9, payload)
	f[40], f[41] = 0, 0
	sum := uint32(^binary.BigEndian.Uint16(f[frameSum:]))
	return f, sum
}

// address fills in a frame's addresses and identity.
func address(f []byte, sum uint32, src, dst *endpoint, id uint32) {
	_ = f[frameOwner+3]
	binary.BigEndian.PutUint64(f, dst.mac<<16|src.mac>>32)
	binary.BigEndian.PutUint32(f[8:], uint32(src.mac))
	sum += src.sum + dst.sum
	sum = sum>>16 + sum&0xffff
	sum = sum>>16 + sum&0xffff
	binary.BigEndian.PutUint16(f[frameSum:], ^uint16(sum))
	binary.BigEndian.PutUint64(f[frameIPs:], uint64(src.ip)<<32|uint64(dst.ip))
	binary.BigEndian.PutUint32(f[frameID:], id)
	binary.BigEndian.PutUint32(f[frameOwner:], src.at>>16)
}

// announcement appends the frame by which a host makes itself known: an ARP
// request for its own address (RFC 5227 §3), padded to the length of the
// frames of a load and marked as they are.
func announcement(b []byte, h *endpoint, id uint32) []byte {
	ip := netip.AddrFrom4([4]byte(binary.BigEndian.AppendUint32(nil, h.ip)))
	start := len(b)
	b = packet.AppendARPRequest(b, 0, packet.ARPFields{SenderMAC: flow.MACFrom(h.mac), SenderIP: ip, TargetIP: ip})
	b = append(b, make([]byte, frameLen-(len(b)-start))...)
	binary.BigEndian.PutUint32(b[start+frameID:], id)
	binary.BigEndian.PutUint64(b[start+frameMark:], mark)
	binary.BigEndian.PutUint32(b[start+frameOwner:], h.at>>16)
	return b
}
