package ids

import (
	"encoding/binary"
	"net/netip"
)

const (
	etherIPv4, etherIPv6  = 0x0800, 0x86dd
	etherVLAN, etherSVLAN = 0x8100, 0x88a8

	protoHopByHop, protoICMP, protoTCP, protoUDP = 0, 1, 6, 17
	protoRouting, protoFragment, protoICMPv6     = 43, 44, 58
	protoNothing, protoDestination               = 59, 60

	mostExtensions = 8 // headers of IPv6 before what it carries
)

// decoded is what a frame's headers say. Nothing of it is to be trusted.
type decoded struct {
	frame     []byte
	tags      int
	ethertype int // behind the tags; -1 if it is cut
	ip        bool
	protocol  int // -1: none
	from, to  netip.Addr
	ttl       uint8
	fragment  bool
	hasPorts  bool
	sport     uint16
	dport     uint16
	hasFlags  bool
	flags     flags
	payload   []byte // behind the last header that is understood
	malformed bool   // a header is cut, or says what cannot be
	checksum  bool   // that of IPv4 is wrong

	// of the payload, once a rule has asked
	counted bool
	run     int     // the largest number of equal bytes behind each other
	entropy float64 // in thousandths of a bit for each byte
}

// decode reads any frame.
func (d *decoded) decode(frame []byte) {
	*d = decoded{frame: frame, ethertype: -1, protocol: -1}
	if len(frame) < 14 {
		d.malformed, d.payload = true, frame
		return
	}
	rest := frame[12:]
	for {
		d.ethertype = int(binary.BigEndian.Uint16(rest))
		if rest = rest[2:]; d.ethertype != etherVLAN && d.ethertype != etherSVLAN {
			break
		}
		if d.tags++; len(rest) < 4 {
			d.malformed, d.payload = true, rest
			return
		}
		rest = rest[2:]
	}
	d.payload = rest
	switch d.ethertype {
	case etherIPv4:
		d.ipv4(rest)
	case etherIPv6:
		d.ipv6(rest)
	}
}

func (d *decoded) ipv4(b []byte) {
	if len(b) < 20 || b[0]>>4 != 4 {
		d.malformed = true
		return
	}
	header, total := int(b[0]&15)*4, int(binary.BigEndian.Uint16(b[2:]))
	if header < 20 || total < header || total > len(b) {
		d.malformed = true
		return
	}
	b = b[:total] // behind it is padding of Ethernet
	d.ip, d.ttl, d.protocol = true, b[8], int(b[9])
	d.from, d.to = netip.AddrFrom4([4]byte(b[12:16])), netip.AddrFrom4([4]byte(b[16:20]))
	sum := uint32(0)
	for i := 0; i < header; i += 2 {
		sum += uint32(binary.BigEndian.Uint16(b[i:]))
	}
	sum = sum>>16 + sum&0xffff
	d.checksum = sum>>16+sum&0xffff != 0xffff
	at := binary.BigEndian.Uint16(b[6:])
	d.fragment = at&0x3fff != 0
	d.transport(b[header:], at&0x1fff != 0)
}

func (d *decoded) ipv6(b []byte) {
	if len(b) < 40 || b[0]>>4 != 6 {
		d.malformed = true
		return
	}
	length := int(binary.BigEndian.Uint16(b[4:]))
	if length > len(b)-40 {
		d.malformed = true
		return
	}
	d.ip, d.ttl, d.protocol = true, b[7], int(b[6])
	d.from, d.to = netip.AddrFrom16([16]byte(b[8:24])), netip.AddrFrom16([16]byte(b[24:40]))
	if b = b[40:]; length > 0 { // 0: a jumbogram, or nothing
		b = b[:length]
	}
	later := false
	for range mostExtensions {
		size := 8
		switch d.protocol {
		case protoHopByHop, protoRouting, protoDestination:
			if len(b) >= 8 {
				size += 8 * int(b[1])
			}
		case protoFragment:
			d.fragment = true
			later = len(b) >= 8 && binary.BigEndian.Uint16(b[2:])&0xfff8 != 0
		default:
			d.transport(b, later)
			return
		}
		if len(b) < size {
			d.malformed, d.payload = true, b
			return
		}
		d.protocol, b = int(b[0]), b[size:]
	}
	d.malformed, d.payload = true, b
}

// transport reads the header behind that of IP, which later fragments lack.
func (d *decoded) transport(b []byte, later bool) {
	d.payload = b
	if later {
		return
	}
	header := 0
	switch d.protocol {
	case protoUDP:
		header = 8
	case protoTCP:
		if header = 20; len(b) >= 20 {
			header = int(b[12]>>4) * 4
		}
		if header < 20 {
			d.malformed = true
			return
		}
	default:
		return
	}
	if len(b) < header {
		d.malformed = true
		return
	}
	d.hasPorts, d.sport, d.dport = true, binary.BigEndian.Uint16(b), binary.BigEndian.Uint16(b[2:])
	if d.protocol == protoTCP {
		d.hasFlags, d.flags = true, flags(b[13]&0x3f)
	}
	if length := binary.BigEndian.Uint16(b[4:]); d.protocol == protoUDP && (length < 8 || int(length) > len(b) && !d.fragment) {
		d.malformed = true
	}
	d.payload = b[header:]
}
