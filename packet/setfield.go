package packet

import (
	"encoding/binary"
	"hash/crc32"

	"github.com/weft-sdn/weft/flow"
)

// setField writes a field's value, v in wire order, into the frame.
func setField(frame []byte, l *layers, f flow.Field, v *[16]byte) bool {
	value := v[:f.Len()]
	switch f {
	case flow.FieldEthDst:
		copy(frame[0:6], value)
		return true
	case flow.FieldEthSrc:
		copy(frame[6:12], value)
		return true
	case flow.FieldEthType:
		if l.ethType == ethTypeNone {
			return false
		}
		copy(frame[l.typeAt:], value)
		return true
	case flow.FieldVLAN:
		if l.tags == 0 || be16(value)&flow.VLANPresent == 0 {
			return false
		}
		binary.BigEndian.PutUint16(frame[14:], be16(frame[14:])&0xf000|be16(value)&0xfff)
		return true
	case flow.FieldVLANPCP:
		if l.tags == 0 {
			return false
		}
		frame[14] = frame[14]&0x1f | value[0]<<5
		return true
	}
	if l.l3 == 0 {
		return false
	}
	switch f {
	case flow.FieldIPDSCP, flow.FieldIPECN, flow.FieldIPProto, flow.FieldIPv4Src, flow.FieldIPv4Dst,
		flow.FieldIPv6Src, flow.FieldIPv6Dst, flow.FieldIPv6FLabel:
		return setIP(frame, l, f, value)
	case flow.FieldARPOp, flow.FieldARPSPA, flow.FieldARPTPA, flow.FieldARPSHA, flow.FieldARPTHA:
		return setARP(frame, l, f, value)
	case flow.FieldMPLSLabel, flow.FieldMPLSTC, flow.FieldMPLSBOS, flow.FieldMPLSTTL:
		return setMPLS(frame, l, f, value)
	case flow.FieldPBBISID:
		if l.ethType != flow.EthTypePBB || len(frame) < l.l3+4 {
			return false
		}
		copy(frame[l.l3+1:l.l3+4], value)
		return true
	}
	if l.l4 == 0 {
		return false
	}
	return setTransport(frame, l, f, value)
}

// setIP writes a field of an IP header.
func setIP(frame []byte, l *layers, f flow.Field, value []byte) bool {
	h := frame[l.l3:l.end]
	v4, v6 := l.ethType == flow.EthTypeIPv4, l.ethType == flow.EthTypeIPv6
	switch {
	case v4 && f == flow.FieldIPDSCP:
		patch(h, 1, []byte{h[1]&3 | value[0]<<2}, h[10:12])
	case v4 && f == flow.FieldIPECN:
		patch(h, 1, []byte{h[1]&0xfc | value[0]&3}, h[10:12])
	case v4 && f == flow.FieldIPProto:
		patch(h, 9, value, h[10:12])
	case v4 && f == flow.FieldIPv4Src:
		l.patchAddress(frame, 12, value)
	case v4 && f == flow.FieldIPv4Dst:
		l.patchAddress(frame, 16, value)
	case v6 && f == flow.FieldIPDSCP:
		binary.BigEndian.PutUint32(h, be32(h)&^(63<<22)|uint32(value[0]&63)<<22)
	case v6 && f == flow.FieldIPECN:
		binary.BigEndian.PutUint32(h, be32(h)&^(3<<20)|uint32(value[0]&3)<<20)
	case v6 && f == flow.FieldIPv6FLabel:
		binary.BigEndian.PutUint32(h, be32(h)&^0xfffff|be32(value)&0xfffff)
	case v6 && f == flow.FieldIPProto && l.ext == 0:
		h[6] = value[0]
	case v6 && f == flow.FieldIPv6Src:
		l.patchAddress(frame, 8, value)
	case v6 && f == flow.FieldIPv6Dst:
		l.patchAddress(frame, 24, value)
	default:
		return false
	}
	return true
}

// setARP writes a field of ARP.
func setARP(frame []byte, l *layers, f flow.Field, value []byte) bool {
	if l.ethType != flow.EthTypeARP {
		return false
	}
	a, ok := arpAt(frame[l.l3:])
	if !ok {
		return false
	}
	switch f {
	case flow.FieldARPOp:
		copy(a[6:8], value)
	case flow.FieldARPSHA:
		copy(a[8:14], value)
	case flow.FieldARPSPA:
		copy(a[14:18], value)
	case flow.FieldARPTHA:
		copy(a[18:24], value)
	case flow.FieldARPTPA:
		copy(a[24:28], value)
	}
	return true
}

// setMPLS writes a field of the outer label.
func setMPLS(frame []byte, l *layers, f flow.Field, value []byte) bool {
	if !l.mpls(frame) {
		return false
	}
	lse := be32(frame[l.l3:])
	switch f {
	case flow.FieldMPLSLabel:
		lse = lse&0xfff | be32(value)<<12
	case flow.FieldMPLSTC:
		lse = lse&^(7<<9) | uint32(value[0]&7)<<9
	case flow.FieldMPLSBOS:
		lse = lse&^(1<<8) | uint32(value[0]&1)<<8
	case flow.FieldMPLSTTL:
		lse = lse&^0xff | uint32(value[0])
	}
	binary.BigEndian.PutUint32(frame[l.l3:], lse)
	return true
}

// setTransport writes a field of what IP carries.
func setTransport(frame []byte, l *layers, f flow.Field, value []byte) bool {
	var need, at int
	var proto uint8
	var ethType uint16
	switch f {
	case flow.FieldTCPSrc, flow.FieldTCPDst:
		proto, need, at = flow.IPProtoTCP, tcpLen, int(f-flow.FieldTCPSrc)*2
	case flow.FieldUDPSrc, flow.FieldUDPDst:
		proto, need, at = flow.IPProtoUDP, udpLen, int(f-flow.FieldUDPSrc)*2
	case flow.FieldSCTPSrc, flow.FieldSCTPDst:
		proto, need, at = flow.IPProtoSCTP, sctpLen, int(f-flow.FieldSCTPSrc)*2
	case flow.FieldICMPv4Type, flow.FieldICMPv4Code:
		proto, need, at, ethType = flow.IPProtoICMP, icmpLen, int(f-flow.FieldICMPv4Type), flow.EthTypeIPv4
	case flow.FieldICMPv6Type, flow.FieldICMPv6Code:
		proto, need, at, ethType = flow.IPProtoICMPv6, icmpLen, int(f-flow.FieldICMPv6Type), flow.EthTypeIPv6
	case flow.FieldNDTarget, flow.FieldNDSLL, flow.FieldNDTLL:
		proto, need, at, ethType = flow.IPProtoICMPv6, ndLen, 8, flow.EthTypeIPv6
	default:
		return false
	}
	b := frame[l.l4:l.end]
	if l.proto != proto || len(b) < need || ethType != 0 && l.ethType != ethType {
		return false
	}
	switch f {
	case flow.FieldNDTarget, flow.FieldNDSLL, flow.FieldNDTLL:
		if at = ndOffset(b, f); at == 0 {
			return false
		}
	case flow.FieldSCTPSrc, flow.FieldSCTPDst:
		copy(b[at:], value)
		if !l.fragment && l.whole {
			sumSCTP(b)
		}
		return true
	}
	c := l.checksum(frame)
	patch(b, at, value, c)
	if c != nil {
		l.noZero(c)
	}
	return true
}

// ndOffset returns where in a neighbour message a field is, 0 if nowhere.
func ndOffset(b []byte, f flow.Field) int {
	wantType, option := flow.ICMPv6Solicit, optSourceMAC
	switch {
	case f == flow.FieldNDTarget && (b[0] == flow.ICMPv6Solicit || b[0] == flow.ICMPv6Advert):
		return 8
	case f == flow.FieldNDTLL:
		wantType, option = flow.ICMPv6Advert, optTargetMAC
	}
	if f == flow.FieldNDTarget || b[0] != wantType || !optionsWhole(b[ndLen:]) {
		return 0
	}
	for at := ndLen; at < len(b); at += int(b[at+1]) * 8 {
		if b[at] == option && b[at+1] == 1 {
			return at + 2
		}
	}
	return 0
}

// patch overwrites h[at:] with now and brings a checksum, unless it is nil,
// into line; at counts from where the checksummed header begins.
func patch(h []byte, at int, now, checksum []byte) {
	if checksum == nil {
		copy(h[at:], now)
		return
	}
	from, to := at&^1, (at+len(now)+1)&^1
	var was [18]byte
	n := copy(was[:], h[from:to])
	copy(h[at:], now)
	adjust(checksum, was[:n], h[from:from+n])
}

// patchAddress overwrites an address of the IP header and brings the checksums
// of IP and of what it carries into line.
func (l *layers) patchAddress(frame []byte, at int, now []byte) {
	h := frame[l.l3:l.end]
	if c := l.checksum(frame); c != nil && l.proto != flow.IPProtoICMP && !(l.routed && at == 24) {
		adjust(c, h[at:at+len(now)], now)
		l.noZero(c)
	}
	if l.ethType == flow.EthTypeIPv4 {
		patch(h, at, now, h[10:12])
	} else {
		copy(h[at:], now)
	}
}

// checksum returns the checksum of what IP carries, nil if it has none or it is
// not there.
func (l *layers) checksum(frame []byte) []byte {
	if l.l4 == 0 {
		return nil
	}
	b := frame[l.l4:l.end]
	switch l.proto {
	case flow.IPProtoTCP:
		if len(b) >= tcpLen {
			return b[16:18]
		}
	case flow.IPProtoUDP:
		if len(b) >= udpLen && be16(b[6:8]) != 0 { // zero: the sender made none
			return b[6:8]
		}
	case flow.IPProtoICMP:
		if l.ethType == flow.EthTypeIPv4 && len(b) >= 4 {
			return b[2:4]
		}
	case flow.IPProtoICMPv6:
		if l.ethType == flow.EthTypeIPv6 && len(b) >= 4 {
			return b[2:4]
		}
	}
	return nil
}

// noZero writes a UDP checksum of zero as all ones (RFC 768).
func (l *layers) noZero(c []byte) {
	if l.proto == flow.IPProtoUDP && be16(c) == 0 {
		c[0], c[1] = 0xff, 0xff
	}
}

// sumSCTP writes the CRC32c of an SCTP packet (RFC 9260 §6.8).
func sumSCTP(b []byte) {
	clear(b[8:12])
	binary.LittleEndian.PutUint32(b[8:], crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli)))
}
