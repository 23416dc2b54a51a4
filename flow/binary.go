package flow

import (
	"encoding/binary"
	"fmt"
)

// The encoding of this package's values between processes. Its first octet gives
// version and kind. It is Weft's own, not a wire format of OpenFlow; both sides
// run the same version. Appending to a slice with room allocates nothing, nor
// does decoding into a value that has held as much before, except the bodies of
// experimenter actions. A decoded value shares no memory with the input.

// Presence bits of an entry.
const (
	entryClear = 1 << iota
	entryHasWrite
	entryTimeouts
	entryFlags
	entryMeter
	entryMetadata
	entryCookie
	entryGoto
)

// AppendBinary appends the encoding of e (encoding.BinaryAppender).
func (e *Entry) AppendBinary(b []byte) ([]byte, error) {
	b, err := appendEntry(append(b, wireEntry), e)
	if err != nil {
		err = fmt.Errorf("flow: encode entry: %w", err)
	}
	return b, err
}

// UnmarshalBinary decodes what AppendBinary wrote. It writes the actions into
// the memory of e.Apply and e.Write.
func (e *Entry) UnmarshalBinary(b []byte) error {
	apply, write := e.Apply[:0], e.Write[:0]
	*e = Entry{}
	r := reader{b: b}
	r.begin(wireEntry)
	r.entry(e)
	e.Apply = r.actions(apply)
	e.Write = r.actions(write)
	return r.end("entry")
}

// appendEntry appends an entry.
func appendEntry(b []byte, e *Entry) ([]byte, error) {
	var flags uint8
	for i, set := range [...]bool{e.Clear, e.HasWrite, e.IdleTimeout|e.HardTimeout != 0, e.Flags != 0,
		e.Meter != 0, e.Metadata|e.MetaMask != 0, e.Cookie != 0, e.Goto != 0} {
		if set {
			flags |= 1 << i
		}
	}
	b = append(b, flags, e.Table)
	b = binary.LittleEndian.AppendUint16(b, e.Priority)
	if flags&entryTimeouts != 0 {
		b = binary.LittleEndian.AppendUint16(b, e.IdleTimeout)
		b = binary.LittleEndian.AppendUint16(b, e.HardTimeout)
	}
	if flags&entryFlags != 0 {
		b = binary.LittleEndian.AppendUint16(b, e.Flags)
	}
	if flags&entryMeter != 0 {
		b = binary.LittleEndian.AppendUint32(b, e.Meter)
	}
	if flags&entryMetadata != 0 {
		b = binary.LittleEndian.AppendUint64(b, e.Metadata)
		b = binary.LittleEndian.AppendUint64(b, e.MetaMask)
	}
	if flags&entryCookie != 0 {
		b = binary.LittleEndian.AppendUint64(b, uint64(e.Cookie))
	}
	if flags&entryGoto != 0 {
		b = append(b, e.Goto)
	}
	b, err := appendMatch(b, &e.Match)
	if err != nil {
		return b, err
	}
	if b, err = appendActions(b, e.Apply); err != nil {
		return b, err
	}
	return appendActions(b, e.Write)
}

// entry reads an entry without its actions into e, which is empty.
func (r *reader) entry(e *Entry) {
	flags := r.uint8()
	e.Clear, e.HasWrite = flags&entryClear != 0, flags&entryHasWrite != 0
	e.Table = r.uint8()
	e.Priority = r.uint16()
	if flags&entryTimeouts != 0 {
		e.IdleTimeout = r.uint16()
		e.HardTimeout = r.uint16()
	}
	if flags&entryFlags != 0 {
		e.Flags = r.uint16()
	}
	if flags&entryMeter != 0 {
		e.Meter = r.uint32()
	}
	if flags&entryMetadata != 0 {
		e.Metadata = r.uint64()
		e.MetaMask = r.uint64()
	}
	if flags&entryCookie != 0 {
		e.Cookie = Cookie(r.uint64())
	}
	if flags&entryGoto != 0 {
		e.Goto = r.uint8()
	}
	r.match(&e.Match)
}

// Presence bits of a packet-in.
const (
	packetBuffer = 1 << iota
	packetCookie
	packetSrc
	packetDst
	packetParsed
	packetTrace
	packetUnapproved
)

// AppendBinary appends the encoding of p, what the stages noted included
// (encoding.BinaryAppender).
func (p *PacketIn) AppendBinary(b []byte) ([]byte, error) {
	var flags uint8
	for i, set := range [...]bool{p.BufferID != BufferNone, p.Cookie != 0, p.Src != Location{},
		p.Dst != Location{} || p.DstMAC != MAC{}, p.Parsed, p.Trace != 0, p.Unapproved} {
		if set {
			flags |= 1 << i
		}
	}
	b = append(b, wirePacketIn, flags, uint8(p.Reason), p.Table, uint8(p.Role))
	b = binary.LittleEndian.AppendUint64(b, uint64(p.Switch))
	b = binary.LittleEndian.AppendUint64(b, uint64(p.Time))
	b = binary.LittleEndian.AppendUint16(b, p.TotalLen)
	if flags&packetBuffer != 0 {
		b = binary.LittleEndian.AppendUint32(b, p.BufferID)
	}
	if flags&packetCookie != 0 {
		b = binary.LittleEndian.AppendUint64(b, uint64(p.Cookie))
	}
	if flags&packetSrc != 0 {
		b = appendLocation(b, p.Src)
	}
	if flags&packetDst != 0 {
		b = appendLocation(b, p.Dst)
		b = append(b, p.DstMAC[:]...)
	}
	if flags&packetTrace != 0 {
		b = binary.LittleEndian.AppendUint64(b, p.Trace)
	}
	if flags&packetUnapproved != 0 {
		b = append(b, uint8(len(p.HeldBy)))
		for _, stage := range p.HeldBy {
			b = append(binary.AppendUvarint(b, uint64(len(stage))), stage...)
		}
	}
	b = appendKey(b, &p.Key)
	b = binary.AppendUvarint(b, uint64(len(p.Data)))
	return append(b, p.Data...), nil
}

// UnmarshalBinary decodes what AppendBinary wrote. It writes the packet into
// the memory of p.Data.
func (p *PacketIn) UnmarshalBinary(b []byte) error {
	data := p.Data[:0]
	*p = PacketIn{BufferID: BufferNone}
	r := reader{b: b}
	r.begin(wirePacketIn)
	flags := r.uint8()
	p.Reason, p.Table, p.Role = Reason(r.uint8()), r.uint8(), PortRole(r.uint8())
	p.Parsed = flags&packetParsed != 0
	p.Switch = DPID(r.uint64())
	p.Time = int64(r.uint64())
	p.TotalLen = r.uint16()
	if flags&packetBuffer != 0 {
		p.BufferID = r.uint32()
	}
	if flags&packetCookie != 0 {
		p.Cookie = Cookie(r.uint64())
	}
	if flags&packetSrc != 0 {
		p.Src = r.location()
	}
	if flags&packetDst != 0 {
		p.Dst = r.location()
		p.DstMAC = r.mac()
	}
	if flags&packetTrace != 0 {
		p.Trace = r.uint64()
	}
	if p.Unapproved = flags&packetUnapproved != 0; p.Unapproved {
		for range r.uint8() {
			p.HeldBy = append(p.HeldBy, string(r.bytes()))
		}
	}
	r.key(&p.Key)
	p.Data = append(data, r.bytes()...)
	return r.end("packet-in")
}

func appendLocation(b []byte, l Location) []byte {
	b = binary.LittleEndian.AppendUint64(b, uint64(l.Switch))
	return binary.LittleEndian.AppendUint32(b, uint32(l.Port))
}

func (r *reader) location() Location { return Location{DPID(r.uint64()), Port(r.uint32())} }

// Presence bits of the groups of fields in a key.
const (
	keyPipeline = 1 << iota
	keyIP
	keyTransport
	keyIPv4
	keyARP
	keyIPv6
	keyND
	keyLabels
)

// appendKey appends the header fields of a packet, leaving out the groups of
// them that are zero.
func appendKey(b []byte, k *Key) []byte {
	var flags uint8
	if uint64(k.InPhyPort)|k.Metadata|k.TunnelID != 0 {
		flags |= keyPipeline
	}
	if k.IPDSCP|k.IPECN|k.IPProto|k.IPFrag != 0 {
		flags |= keyIP
	}
	if k.TPSrc|k.TPDst|uint16(k.ICMPType)|uint16(k.ICMPCode) != 0 {
		flags |= keyTransport
	}
	if k.IPv4Src != [4]byte{} || k.IPv4Dst != [4]byte{} {
		flags |= keyIPv4
	}
	if k.ARPOp != 0 || k.ARPSPA != [4]byte{} || k.ARPTPA != [4]byte{} || k.ARPSHA != (MAC{}) || k.ARPTHA != (MAC{}) {
		flags |= keyARP
	}
	if k.IPv6Src != [16]byte{} || k.IPv6Dst != [16]byte{} || k.IPv6Label != 0 || k.IPv6Ext != 0 {
		flags |= keyIPv6
	}
	if k.NDTarget != [16]byte{} || k.NDSLL != (MAC{}) || k.NDTLL != (MAC{}) {
		flags |= keyND
	}
	if k.MPLSLabel|k.PBBISID|uint32(k.MPLSTC)|uint32(k.MPLSBOS)|uint32(k.MPLSTTL) != 0 {
		flags |= keyLabels
	}
	b = binary.LittleEndian.AppendUint32(append(b, flags), uint32(k.InPort))
	b = append(b, k.EthDst[:]...)
	b = append(b, k.EthSrc[:]...)
	b = binary.LittleEndian.AppendUint16(b, k.EthType)
	b = binary.LittleEndian.AppendUint16(b, k.VLAN)
	b = append(b, k.VLANPCP)
	if flags&keyPipeline != 0 {
		b = binary.LittleEndian.AppendUint32(b, uint32(k.InPhyPort))
		b = binary.LittleEndian.AppendUint64(b, k.Metadata)
		b = binary.LittleEndian.AppendUint64(b, k.TunnelID)
	}
	if flags&keyIP != 0 {
		b = append(b, k.IPDSCP, k.IPECN, k.IPProto, k.IPFrag)
	}
	if flags&keyTransport != 0 {
		b = binary.LittleEndian.AppendUint16(b, k.TPSrc)
		b = binary.LittleEndian.AppendUint16(b, k.TPDst)
		b = append(b, k.ICMPType, k.ICMPCode)
	}
	if flags&keyIPv4 != 0 {
		b = append(b, k.IPv4Src[:]...)
		b = append(b, k.IPv4Dst[:]...)
	}
	if flags&keyARP != 0 {
		b = binary.LittleEndian.AppendUint16(b, k.ARPOp)
		b = append(b, k.ARPSPA[:]...)
		b = append(b, k.ARPTPA[:]...)
		b = append(b, k.ARPSHA[:]...)
		b = append(b, k.ARPTHA[:]...)
	}
	if flags&keyIPv6 != 0 {
		b = append(b, k.IPv6Src[:]...)
		b = append(b, k.IPv6Dst[:]...)
		b = binary.LittleEndian.AppendUint32(b, k.IPv6Label)
		b = binary.LittleEndian.AppendUint16(b, k.IPv6Ext)
	}
	if flags&keyND != 0 {
		b = append(b, k.NDTarget[:]...)
		b = append(b, k.NDSLL[:]...)
		b = append(b, k.NDTLL[:]...)
	}
	if flags&keyLabels != 0 {
		b = binary.LittleEndian.AppendUint32(b, k.MPLSLabel)
		b = binary.LittleEndian.AppendUint32(b, k.PBBISID)
		b = append(b, k.MPLSTC, k.MPLSBOS, k.MPLSTTL)
	}
	return b
}

// key reads header fields into k, which is empty.
func (r *reader) key(k *Key) {
	flags := r.uint8()
	k.InPort = Port(r.uint32())
	k.EthDst, k.EthSrc = r.mac(), r.mac()
	k.EthType, k.VLAN, k.VLANPCP = r.uint16(), r.uint16(), r.uint8()
	if flags&keyPipeline != 0 {
		k.InPhyPort, k.Metadata, k.TunnelID = Port(r.uint32()), r.uint64(), r.uint64()
	}
	if flags&keyIP != 0 {
		k.IPDSCP, k.IPECN, k.IPProto, k.IPFrag = r.uint8(), r.uint8(), r.uint8(), r.uint8()
	}
	if flags&keyTransport != 0 {
		k.TPSrc, k.TPDst, k.ICMPType, k.ICMPCode = r.uint16(), r.uint16(), r.uint8(), r.uint8()
	}
	if flags&keyIPv4 != 0 {
		copy(k.IPv4Src[:], r.take(4))
		copy(k.IPv4Dst[:], r.take(4))
	}
	if flags&keyARP != 0 {
		k.ARPOp = r.uint16()
		copy(k.ARPSPA[:], r.take(4))
		copy(k.ARPTPA[:], r.take(4))
		k.ARPSHA, k.ARPTHA = r.mac(), r.mac()
	}
	if flags&keyIPv6 != 0 {
		copy(k.IPv6Src[:], r.take(16))
		copy(k.IPv6Dst[:], r.take(16))
		k.IPv6Label, k.IPv6Ext = r.uint32(), r.uint16()
	}
	if flags&keyND != 0 {
		copy(k.NDTarget[:], r.take(16))
		k.NDSLL, k.NDTLL = r.mac(), r.mac()
	}
	if flags&keyLabels != 0 {
		k.MPLSLabel, k.PBBISID, k.MPLSTC, k.MPLSBOS, k.MPLSTTL = r.uint32(), r.uint32(), r.uint8(), r.uint8(), r.uint8()
	}
}
