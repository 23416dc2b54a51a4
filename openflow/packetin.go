package openflow

import "github.com/weft-sdn/weft/flow"

const (
	packetInLen   = 24 // before the match
	packetInLen10 = 18 // before the packet
)

// AppendPacketIn appends a packet-in (OpenFlow 1.3.5 §7.4.1). Of in.Key it
// sends InPort and, where they are not zero, InPhyPort, Metadata and TunnelID;
// OpenFlow 1.0 sends InPort alone, neither table nor cookie.
func (v Version) AppendPacketIn(dst []byte, xid uint32, in *flow.PacketIn) ([]byte, error) {
	start := len(dst)
	out := room(dst, packetInLen+4+8+8+12+12+8+2+len(in.Data))
	out = be.AppendUint64(out, uint64(v)<<56|uint64(TypePacketIn)<<48|uint64(xid))
	k := &in.Key
	if v == V10 {
		p, ok := port10(k.InPort)
		if !ok {
			return dst, unsupported(v, "packet-in", "port "+k.InPort.String(), badRequestPort)
		}
		out = be.AppendUint64(out, uint64(in.BufferID)<<32|uint64(in.TotalLen)<<16|uint64(p))
		out = append(out, byte(in.Reason), 0)
		out = append(out, in.Data...)
		return finish(out, start, TypePacketIn)
	}
	out = be.AppendUint64(out, uint64(in.BufferID)<<32|uint64(in.TotalLen)<<16|uint64(in.Reason)<<8|uint64(in.Table))
	out = be.AppendUint64(out, uint64(in.Cookie))
	match := len(out)
	out = be.AppendUint32(out, matchTypeOXM<<16)
	out = be.AppendUint64(out, uint64(oxmHeader|uint32(flow.FieldInPort)<<9|4)<<32|uint64(k.InPort))
	if k.InPhyPort != 0 {
		out = be.AppendUint64(out, uint64(oxmHeader|uint32(flow.FieldInPhyPort)<<9|4)<<32|uint64(k.InPhyPort))
	}
	if k.Metadata != 0 {
		out = be.AppendUint32(out, oxmHeader|uint32(flow.FieldMetadata)<<9|8)
		out = be.AppendUint64(out, k.Metadata)
	}
	if k.TunnelID != 0 {
		out = be.AppendUint32(out, oxmHeader|uint32(flow.FieldTunnelID)<<9|8)
		out = be.AppendUint64(out, k.TunnelID)
	}
	n := len(out) - match
	out[match+3] = byte(n)
	out = appendZeros(out, pad8(n)-n+2)
	out = append(out, in.Data...)
	return finish(out, start, TypePacketIn)
}

// DecodePacketIn reads a packet-in into in: BufferID, TotalLen, Reason, Table,
// Cookie, Data (a part of msg), and of Key InPort, InPhyPort, Metadata and
// TunnelID, zero where the switch does not send them. The rest is left alone.
func (v Version) DecodePacketIn(msg []byte, in *flow.PacketIn) error {
	if v == V10 {
		if len(msg) < packetInLen10 {
			return malformed(TypePacketIn, len(msg), "cut short", badRequestLen)
		}
		in.BufferID, in.TotalLen = be.Uint32(msg[8:]), be.Uint16(msg[12:])
		in.Key.InPort = portFrom10(be.Uint16(msg[14:]))
		in.Reason = flow.Reason(msg[16])
		in.Table, in.Cookie, in.Key.InPhyPort, in.Key.Metadata, in.Key.TunnelID = 0, 0, 0, 0, 0
		in.Data = msg[packetInLen10:]
		return nil
	}
	if len(msg) < packetInLen+matchMinLen+2 {
		return malformed(TypePacketIn, len(msg), "cut short", badRequestLen)
	}
	in.BufferID, in.TotalLen = be.Uint32(msg[8:]), be.Uint16(msg[12:])
	in.Reason, in.Table = flow.Reason(msg[14]), msg[15]
	in.Cookie = flow.Cookie(be.Uint64(msg[16:]))
	in.Key.InPhyPort, in.Key.Metadata, in.Key.TunnelID = 0, 0, 0
	const (
		inPortOnly = matchTypeOXM<<48 | 12<<32 | uint64(oxmHeader) | uint64(flow.FieldInPort)<<9 | 4
		dataAfter  = packetInLen + 16 + 2
	)
	if len(msg) >= dataAfter && be.Uint64(msg[24:]) == inPortOnly {
		in.Key.InPort = flow.Port(be.Uint32(msg[32:]))
		in.Data = msg[dataAfter:]
		return nil
	}
	next, err := decodePipeline(msg, &in.Key)
	if err != nil {
		return err
	}
	if len(msg) < next+2 {
		return malformed(TypePacketIn, len(msg), "cut short after the match", badRequestLen)
	}
	in.Data = msg[next+2:]
	return nil
}

// Frame returns the frame in a packet-in, a part of msg, without a look at
// anything else; nil if msg is none, or has it in an unusual place.
func (v Version) Frame(msg []byte) []byte {
	at := packetInLen10
	if v != V10 {
		at = packetInLen + 16 + 2 // after a match of the ingress port alone
	}
	if len(msg) < at || msg[1] != byte(TypePacketIn) {
		return nil
	}
	return msg[at:]
}

// decodePipeline reads the pipeline fields of a packet-in's match, passing
// over all others, and returns where the match ends.
func decodePipeline(msg []byte, k *flow.Key) (int, error) {
	off, end, next, err := matchBounds(TypePacketIn, msg, packetInLen)
	if err != nil {
		return 0, err
	}
	k.InPort = 0
	for off < end {
		if end-off < 4 {
			return 0, malformed(TypePacketIn, off, "match field header cut short", badMatchLen)
		}
		h := be.Uint32(msg[off:])
		n := int(h & 0xff)
		if n > end-off-4 {
			return 0, malformed(TypePacketIn, off, "match field longer than the match", badMatchLen)
		}
		if f, ok := setFieldTarget(h); ok {
			switch f {
			case flow.FieldInPort, flow.FieldInPhyPort, flow.FieldMetadata, flow.FieldTunnelID:
				if n != f.Len() {
					return 0, malformed(TypePacketIn, off, "match field "+f.String()+" of wrong length", badMatchLen)
				}
				setField(k, f, msg[off+4:off+4+n])
			}
		}
		off += 4 + n
	}
	return next, nil
}
