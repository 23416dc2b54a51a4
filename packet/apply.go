package packet

import (
	"encoding/binary"

	"github.com/weft-sdn/weft/flow"
)

// Apply carries out one action of OpenFlow 1.3.5 §5.12 that rewrites the
// packet, checksums included, and returns the frame. It works in place: the
// frame that it is given is no longer valid, and a push may allocate unless the
// slice has room behind its end.
//
// It reports false, and leaves the frame as it was, where the action cannot be
// applied to this frame: the header is not there, as for a set-field of
// ipv4_dst on ARP; a TTL is used up; or the action does not concern the
// contents of the packet (output, group, queue, experimenter, fields of the
// pipeline such as metadata and tunnel_id).
func Apply(frame []byte, a flow.Action) ([]byte, bool) {
	var l layers
	if !locate(frame, &l) {
		return frame, false
	}
	switch a.Kind {
	case flow.ActionSetField:
		return frame, setField(frame, &l, a.Field, &a.Value)
	case flow.ActionPushVLAN:
		return pushVLAN(frame, &l, uint16(a.Arg))
	case flow.ActionPopVLAN:
		if l.tags == 0 {
			return frame, false
		}
		copy(frame[vlanLen:], frame[:12])
		return frame[vlanLen:], true
	case flow.ActionPushMPLS:
		return pushMPLS(frame, &l, uint16(a.Arg))
	case flow.ActionPopMPLS:
		if !l.mpls(frame) {
			return frame, false
		}
		binary.BigEndian.PutUint16(frame[l.typeAt:], uint16(a.Arg))
		copy(frame[mplsLen:], frame[:l.l3])
		return frame[mplsLen:], true
	case flow.ActionPushPBB:
		return pushPBB(frame, &l, uint16(a.Arg))
	case flow.ActionPopPBB:
		if l.tags > 0 || l.ethType != flow.EthTypePBB || len(frame) < pbbLen+ethernetLen {
			return frame, false
		}
		return frame[pbbLen:], true
	case flow.ActionSetNwTTL:
		return frame, l.setTTL(frame, uint8(a.Arg))
	case flow.ActionDecNwTTL:
		ttl, ok := l.ttl(frame)
		return frame, ok && ttl > 1 && l.setTTL(frame, ttl-1)
	case flow.ActionSetMPLSTTL:
		return frame, l.setMPLSTTL(frame, l.l3, uint8(a.Arg))
	case flow.ActionDecMPLSTTL:
		if !l.mpls(frame) || frame[l.l3+3] <= 1 {
			return frame, false
		}
		return frame, l.setMPLSTTL(frame, l.l3, frame[l.l3+3]-1)
	case flow.ActionCopyTTLOut:
		inner, ok := l.behindMPLS(frame)
		if !ok {
			return frame, false
		}
		ttl, ok := inner.ttl(frame)
		return frame, ok && l.setMPLSTTL(frame, l.l3, ttl)
	case flow.ActionCopyTTLIn:
		inner, ok := l.behindMPLS(frame)
		return frame, ok && inner.setTTL(frame, frame[l.l3+3])
	}
	return frame, false
}

// insert returns the frame with n octets, whose contents are left open, before
// octet at.
func insert(frame []byte, at, n int) []byte {
	var room [pbbLen]byte
	frame = append(frame, room[:n]...)
	copy(frame[at+n:], frame[at:len(frame)-n])
	return frame
}

// pushVLAN adds an outer tag that repeats the identifier and priority of the
// tag that was outer before (OpenFlow 1.3.5 §5.12.1).
func pushVLAN(frame []byte, l *layers, tpid uint16) ([]byte, bool) {
	if tpid != flow.EthTypeVLAN && tpid != flow.EthTypeQinQ {
		return frame, false
	}
	var tci uint16
	if l.tags > 0 {
		tci = be16(frame[14:16])
	}
	frame = insert(frame, 12, vlanLen)
	binary.BigEndian.PutUint16(frame[12:], tpid)
	binary.BigEndian.PutUint16(frame[14:], tci)
	return frame, true
}

// pushMPLS adds an outer label behind Ethernet header and tags that repeats the
// one that was outer before, or takes the TTL of IP.
func pushMPLS(frame []byte, l *layers, ethType uint16) ([]byte, bool) {
	if ethType != flow.EthTypeMPLS && ethType != flow.EthTypeMPLSMC || l.snap || len(frame) < l.typeAt+2 ||
		l.ethType == flow.EthTypeVLAN || l.ethType == flow.EthTypeQinQ || l.ethType == ethTypeNone {
		return frame, false
	}
	lse := uint32(1 << 8) // bottom of stack
	if l.mpls(frame) {
		lse = be32(frame[l.l3:]) &^ (1 << 8)
	} else if ttl, ok := l.ttl(frame); ok {
		lse |= uint32(ttl)
	}
	at := l.typeAt + 2
	frame = insert(frame, at, mplsLen)
	binary.BigEndian.PutUint16(frame[l.typeAt:], ethType)
	binary.BigEndian.PutUint32(frame[at:], lse)
	return frame, true
}

// pushPBB puts a backbone header in front of the frame: its own addresses
// again and an I-TAG (IEEE 802.1ah; OpenFlow 1.3.5 §5.12.1).
func pushPBB(frame []byte, l *layers, ethType uint16) ([]byte, bool) {
	if ethType != flow.EthTypePBB {
		return frame, false
	}
	var tci uint32
	if l.ethType == flow.EthTypePBB && l.l3 != 0 && len(frame) >= l.l3+4 {
		tci = be32(frame[l.l3:]) & 0xffffff
	}
	if l.tags > 0 {
		tci |= uint32(frame[14]>>5) << 29
	}
	frame = insert(frame, 0, pbbLen)
	copy(frame, frame[pbbLen:pbbLen+12])
	binary.BigEndian.PutUint16(frame[12:], flow.EthTypePBB)
	binary.BigEndian.PutUint32(frame[14:], tci)
	return frame, true
}

// mpls reports whether the frame has an MPLS label at l3.
func (l *layers) mpls(frame []byte) bool {
	return (l.ethType == flow.EthTypeMPLS || l.ethType == flow.EthTypeMPLSMC) && l.l3 != 0 && len(frame) >= l.l3+mplsLen
}

// behindMPLS returns the layers of what the outer label covers: the next label,
// or IP told by its version.
func (l *layers) behindMPLS(frame []byte) (layers, bool) {
	if !l.mpls(frame) {
		return layers{}, false
	}
	inner := layers{l3: l.l3 + mplsLen, ethType: l.ethType, end: len(frame), whole: true}
	if frame[l.l3+2]&1 == 0 {
		return inner, inner.mpls(frame)
	}
	if len(frame) <= inner.l3 {
		return layers{}, false
	}
	switch frame[inner.l3] >> 4 {
	case 4:
		inner.ethType = flow.EthTypeIPv4
		inner.ipv4(frame)
	case 6:
		inner.ethType = flow.EthTypeIPv6
		inner.ipv6(frame)
	default:
		return layers{}, false
	}
	return inner, inner.l3 != 0
}

// ttl returns the time to live of the header at l3.
func (l *layers) ttl(frame []byte) (uint8, bool) {
	switch {
	case l.l3 == 0:
	case l.ethType == flow.EthTypeIPv4:
		return frame[l.l3+8], true
	case l.ethType == flow.EthTypeIPv6:
		return frame[l.l3+7], true
	case l.mpls(frame):
		return frame[l.l3+3], true
	}
	return 0, false
}

// setTTL sets the time to live of IP, or of a label where l is behindMPLS.
func (l *layers) setTTL(frame []byte, ttl uint8) bool {
	switch {
	case l.l3 == 0:
		return false
	case l.ethType == flow.EthTypeIPv4:
		h := frame[l.l3:]
		patch(h, 8, []byte{ttl}, h[10:12])
	case l.ethType == flow.EthTypeIPv6:
		frame[l.l3+7] = ttl
	case l.typeAt == 0:
		return l.setMPLSTTL(frame, l.l3, ttl)
	default:
		return false
	}
	return true
}

func (l *layers) setMPLSTTL(frame []byte, at int, ttl uint8) bool {
	if !l.mpls(frame) {
		return false
	}
	frame[at+3] = ttl
	return true
}
