package oftest

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"slices"

	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/packet"
)

// Traffic is packets from one socket to another, of one protocol: UDP or TCP.
type Traffic struct {
	SrcMAC, DstMAC flow.MAC
	Src, Dst       netip.AddrPort
	Proto          uint8
	TTL            uint8 // of IPv6 the hop limit; 0 stands for 64
}

// Encoding is frames that bring one datagram, or one TCP segment, to its socket.
// The frames of one datagram are in the order in which they are sent.
type Encoding struct {
	Name   string
	Frames [][]byte
}

// The numbers of IPv6 extension headers (RFC 8200 §4).
const (
	hopByHop    = 0
	routing     = 43
	fragmented  = 44
	destination = 60
)

// Encodings returns the ways known to us to say one packet in frames such that some
// host's socket takes it: tags of VLAN 0, group addresses, fragments, options, source
// routes and extension headers, LLC, padding, runts, odd flags. The first is the plain
// one. A policy on the traffic must hold for all of them.
func (t Traffic) Encodings() (list []Encoding) {
	b := &encoder{t: t}
	whole := b.whole(packet.TCPSyn, 200)
	plain := [][]byte{b.frame(whole)}
	add := func(name string, frames ...[]byte) { list = append(list, Encoding{name, frames}) }
	add("plain", plain...)

	zero, other := []byte{0x81, 0, 0, 0}, []byte{0x88, 0xa8, 0, 0}
	high := []byte{0x81, 0, 0xe0, 0}
	for _, tags := range [][][]byte{{zero}, {high}, {other}, {zero, zero}, {other, zero}, {zero, other}, {zero, zero, zero}} {
		add(fmt.Sprintf("VLAN 0 by %x", tags), tag(plain[0], tags...))
	}
	groups := map[string]flow.MAC{"broadcast": flow.Broadcast, "multicast": {0x01, 0, 0x5e, 0, 0, 0xfb}, "IPv6 multicast": {0x33, 0x33, 0, 0, 0, 1}}
	for _, name := range []string{"broadcast", "multicast", "IPv6 multicast"} {
		add(name+" address", to(groups[name], plain)...)
		add(name+" address in VLAN 0", to(groups[name], [][]byte{tag(plain[0], zero)})...)
	}

	large := b.whole(packet.TCPSyn, 1600)
	halves := b.fragments(large, nil, 800)
	add("fragments", b.frames(halves)...)
	slices.Reverse(halves)
	add("fragments, the last first", b.frames(halves)...)
	add("small first fragment", b.frames(b.fragments(large, nil, 8))...)
	add("small fragments", b.frames(b.fragments(whole, nil, 8, 16, 24, 32))...)
	add("fragments of VLAN 0", tag(b.frame(halves[1]), zero), tag(b.frame(halves[0]), zero))
	add("fragments to broadcast", to(flow.Broadcast, b.frames(halves))...)

	short := b.unpadded(b.whole(packet.TCPSyn, 1))
	add("a runt", short)
	add("a runt in VLAN 0", tag(short, zero))
	add("long padding", append(slices.Clone(plain[0]), make([]byte, 700)...))
	add("a jumbo frame", b.frame(b.whole(packet.TCPSyn, 3000)))
	add("LLC and SNAP", b.snap(whole))
	add("LLC and SNAP in VLAN 0", tag(b.snap(whole), zero))
	if t.Proto == flow.IPProtoTCP {
		for _, flags := range []uint8{0, 0xff, packet.TCPSyn | packet.TCPFin, packet.TCPSyn | 0xc0, packet.TCPRst | packet.TCPUrg} {
			add(fmt.Sprintf("flags %08b", flags), b.frame(b.whole(flags, 10)))
		}
	}
	if t.Src.Addr().Is4() {
		add("options", b.frame(b.options(whole, 1, 1, 1, 0)))
		add("router alert", b.frame(b.options(whole, 0x94, 4, 0, 0)))
		for _, route := range []byte{0x83, 0x89} { // loose and strict, at their ends (RFC 791 §3.1)
			add(fmt.Sprintf("source route %x", route), b.frame(b.options(whole, route, 7, 8, 10, 0, 0, 9, 0)))
		}
		add("options and fragments", b.frames(b.fragments(b.options(large, 1, 1, 1, 0), nil, 800))...)
		return list
	}
	none := []byte{0, 0, 1, 4, 0, 0, 0, 0} // a header of padding
	for _, chain := range [][]uint8{{hopByHop}, {destination}, {routing}, {hopByHop, destination, routing, destination}} {
		add(fmt.Sprintf("headers %v", chain), b.frame(b.extend(whole, none, chain...)))
		add(fmt.Sprintf("headers %v in fragments", chain), b.frames(b.fragments(large, chain, 800))...)
	}
	add("an atomic fragment", b.frames(b.fragments(whole, nil))...)
	add("a header chain over fragments", b.frames(b.split(b.extend(whole, none, destination), 8))...)
	bare := b.extend(whole, none, hopByHop)
	binary.BigEndian.PutUint16(bare[4:], 0)
	add("no payload length", b.frame(bare))
	return list
}

// encoder makes the frames of some traffic.
type encoder struct {
	t  Traffic
	id uint16 // of the last packet
}

// whole returns an IP packet with n octets of payload.
func (b *encoder) whole(flags uint8, n int) []byte {
	ip := packet.IP{Src: b.t.Src.Addr(), Dst: b.t.Dst.Addr(), TTL: b.t.TTL}
	if b.t.Proto == flow.IPProtoUDP {
		return packet.AppendUDP(nil, packet.Ether{}, ip, b.t.Src.Port(), b.t.Dst.Port(), make([]byte, n))[14:]
	}
	return packet.AppendTCP(nil, packet.Ether{}, ip, packet.TCPFields{SrcPort: b.t.Src.Port(), DstPort: b.t.Dst.Port(), Flags: flags}, make([]byte, n))[14:]
}

// frame returns an IP packet in a frame.
func (b *encoder) frame(ip []byte) []byte { return packet.Pad(b.unpadded(ip)) }

// unpadded returns an IP packet in a frame that may be too short for Ethernet.
func (b *encoder) unpadded(ip []byte) []byte {
	kind := flow.EthTypeIPv4
	if ip[0]>>4 == 6 {
		kind = flow.EthTypeIPv6
	}
	return append(packet.AppendEthernet(nil, packet.Ether{Dst: b.t.DstMAC, Src: b.t.SrcMAC}, kind), ip...)
}

func (b *encoder) frames(list [][]byte) (frames [][]byte) {
	for _, ip := range list {
		frames = append(frames, b.frame(ip))
	}
	return frames
}

// snap returns an IP packet in a frame of IEEE 802.3 with LLC and SNAP.
func (b *encoder) snap(ip []byte) []byte {
	f := b.frame(ip)
	head := append(slices.Clone(f[:12]), byte((len(ip)+8)>>8), byte(len(ip)+8), 0xaa, 0xaa, 3, 0, 0, 0)
	return append(head, f[12:]...)
}

// options returns an IPv4 packet with options, whose length is a multiple of four.
func (b *encoder) options(ip []byte, options ...byte) []byte {
	p := slices.Concat(ip[:20], options, ip[20:])
	p[0] += byte(len(options) / 4)
	return sealed(p)
}

// sealed sets length and checksum of an IPv4 packet.
func sealed(p []byte) []byte {
	binary.BigEndian.PutUint16(p[2:], uint16(len(p)))
	p[10], p[11] = 0, 0
	binary.BigEndian.PutUint16(p[10:], packet.Checksum(p[:int(p[0]&15)*4]))
	return p
}

// extend returns an IPv6 packet with extension headers of the given content.
func (b *encoder) extend(ip, header []byte, chain ...uint8) []byte {
	p := slices.Clone(ip[:40])
	next := p[6]
	for i, kind := range chain {
		if i == 0 {
			p[6] = kind
		}
		h := slices.Clone(header)
		h[0] = next
		if i+1 < len(chain) {
			h[0] = chain[i+1]
		}
		if kind == routing {
			h = []byte{h[0], 0, 0, 0, 0, 0, 0, 0} // type 0, nothing left
		}
		p = append(p, h...)
	}
	p = append(p, ip[40:]...)
	binary.BigEndian.PutUint16(p[4:], uint16(len(p)-40))
	return p
}

// fragments cuts an IP packet, behind IPv6 headers that each fragment has, at offsets of
// its payload.
func (b *encoder) fragments(ip []byte, chain []uint8, at ...int) [][]byte {
	if ip[0]>>4 == 4 {
		return b.split(ip, at...)
	}
	var list [][]byte
	for _, part := range b.split(ip, at...) {
		list = append(list, b.extend(part, []byte{0, 0, 1, 4, 0, 0, 0, 0}, chain...))
	}
	return list
}

// split cuts an IP packet at offsets of what follows its header.
func (b *encoder) split(ip []byte, at ...int) (list [][]byte) {
	b.id++
	head := 40
	if ip[0]>>4 == 4 {
		head = int(ip[0]&15) * 4
	}
	body, from := ip[head:], 0
	for i := range len(at) + 1 {
		to, more := len(body), uint16(0)
		if i < len(at) {
			to, more = at[i], 1
		}
		p := slices.Clone(ip[:head])
		if ip[0]>>4 == 4 {
			binary.BigEndian.PutUint16(p[4:], b.id)
			binary.BigEndian.PutUint16(p[6:], more<<13|uint16(from/8))
			list = append(list, sealed(append(p, body[from:to]...)))
		} else {
			p = append(p, p[6], 0, 0, 0, 0, 0, byte(b.id>>8), byte(b.id))
			p[6] = fragmented
			binary.BigEndian.PutUint16(p[42:], uint16(from)|more)
			p = append(p, body[from:to]...)
			binary.BigEndian.PutUint16(p[4:], uint16(len(p)-40))
			list = append(list, p)
		}
		from = to
	}
	return list
}

// tag puts tags before the ethertype of a frame, the first outermost.
func tag(frame []byte, tags ...[]byte) []byte {
	return slices.Concat(frame[:12], slices.Concat(tags...), frame[12:])
}

// to returns frames with another destination.
func to(mac flow.MAC, frames [][]byte) (list [][]byte) {
	for _, f := range frames {
		list = append(list, append(mac[:len(mac):len(mac)], f[6:]...))
	}
	return list
}
