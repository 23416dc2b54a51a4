package packet

import (
	"encoding/binary"

	"github.com/weft-sdn/weft/flow"
)

// Encap carries out Open vSwitch's actions encap and decap (flow.Encap,
// flow.Decap), and returns the packet and its type. A packet that is not of type
// PacketEthernet has an Ethernet header here all the same, of zero addresses and with
// its ethertype, so that Apply rewrites its fields: only one of type
// PacketEthernet may be sent.
//
// A new label says what Open vSwitch has it say: another label's values if it is put on top of
// one, otherwise label 0, or 2 for a payload of IPv6, and a time to live of
// 64.
//
// It reports false, and leaves the packet as it was, where Open vSwitch drops the
// packet: for a second Ethernet header, a tagged Ethernet header that is to go, and a
// decap of what is no label. It does so, too, where Open vSwitch 3.1 makes packets that
// nobody can use, or aborts: for an encap of an Ethernet frame that has a label, and for a decap
// that takes the last label for another one, or another one for the last.
func Encap(frame []byte, t flow.PacketType, a flow.Action) (out []byte, to flow.PacketType, ok bool) {
	var l layers
	if !locate(frame, &l) {
		return frame, t, false
	}
	if to, ok := flow.ParseEncap(a); ok {
		if to == flow.PacketEthernet {
			return frame, to, t != flow.PacketEthernet
		}
		if t == flow.PacketEthernet && l.mpls(frame) {
			return frame, t, false
		}
		return cover(frame, &l, t, to), to, true
	}
	to, ok = flow.ParseDecap(a)
	switch {
	case !ok:
		return frame, t, false
	case t == flow.PacketEthernet:
		if l.tags > 0 || l.ethType == ethTypeNone {
			return frame, t, false
		}
		bare(frame, l.ethType)
		return frame, ofEthertype(l.ethType), true
	case t != flow.PacketMPLS && t != flow.PacketMPLSMC || to == flow.PacketNext || !l.mpls(frame):
		return frame, t, false
	}
	label := to == flow.PacketMPLS || to == flow.PacketMPLSMC
	if bottom := frame[l.l3+2]&1 != 0; bottom == label {
		return frame, t, false
	}
	at := l.l3 + mplsLen
	if to == flow.PacketEthernet {
		if len(frame) < at+ethernetLen {
			return frame, t, false
		}
		return frame[at:], to, true
	}
	frame = frame[at-ethernetLen:]
	bare(frame, uint16(to))
	return frame, to, true
}

// cover puts a label in front of a packet of type t.
func cover(frame []byte, l *layers, t, to flow.PacketType) []byte {
	lse := uint32(64)
	switch {
	case t != flow.PacketEthernet && l.mpls(frame):
		lse = be32(frame[l.l3:]) &^ (1 << 8)
	case l.ethType == flow.EthTypeIPv6:
		lse |= 2<<12 | 1<<8
	default:
		lse |= 1 << 8
	}
	if t == flow.PacketEthernet {
		frame = insert(frame, 0, ethernetLen+mplsLen)
	} else {
		frame = insert(frame, ethernetLen, mplsLen)
	}
	bare(frame, uint16(to))
	binary.BigEndian.PutUint32(frame[ethernetLen:], lse)
	return frame
}

// bare makes the Ethernet header that of a packet which has none.
func bare(frame []byte, ethType uint16) {
	clear(frame[:12])
	binary.BigEndian.PutUint16(frame[12:], ethType)
}

// ofEthertype is the type of a packet that an Ethernet header names.
func ofEthertype(t uint16) flow.PacketType { return 1<<16 | flow.PacketType(t) }

// Labels returns how many labels a frame has (RFC 3032).
func Labels(frame []byte) (n int) {
	var l layers
	if !locate(frame, &l) || !l.mpls(frame) {
		return 0
	}
	for at := l.l3; len(frame) >= at+mplsLen; at += mplsLen {
		if n++; frame[at+2]&1 != 0 {
			break
		}
	}
	return n
}
