package openflow

import "github.com/weft-sdn/weft/flow"

const (
	packetOutLen   = 24 // before the actions
	packetOutLen10 = 16
)

// AppendPacketOut appends a packet-out (OpenFlow 1.3.5 §7.3.7). Data goes along
// only where BufferID is flow.BufferNone. In OpenFlow 1.0 an InPort of
// flow.PortController is none, as that version has it.
func (v Version) AppendPacketOut(dst []byte, xid uint32, o *flow.PacketOut) ([]byte, error) {
	const op = "packet-out"
	start, err := len(dst), error(nil)
	out := room(dst, packetOutLen+16*len(o.Actions)+len(o.Data))
	out = be.AppendUint64(out, uint64(v)<<56|uint64(TypePacketOut)<<48|uint64(xid))
	if v == V10 {
		in := o.InPort
		if in == flow.PortController {
			in = flow.PortAny
		}
		p, ok := port10(in)
		if !ok {
			return dst, unsupported(v, op, "port "+in.String(), badRequestPort)
		}
		out = be.AppendUint64(out, uint64(o.BufferID)<<32|uint64(p)<<16)
		if out, err = appendActions10(out, op, o.Actions); err != nil {
			return out[:start], err
		}
		n := len(out) - start - packetOutLen10
		out[start+14], out[start+15] = byte(n>>8), byte(n)
	} else {
		out = be.AppendUint64(out, uint64(o.BufferID)<<32|uint64(o.InPort))
		out = be.AppendUint64(out, 0)
		if out, err = appendActions(out, op, o.Actions); err != nil {
			return out[:start], err
		}
		n := len(out) - start - packetOutLen
		out[start+16], out[start+17] = byte(n>>8), byte(n)
	}
	if o.BufferID == flow.BufferNone {
		out = append(out, o.Data...)
	}
	return finish(out, start, TypePacketOut)
}

// DecodePacketOut reads a packet-out into o, whose list of actions is used
// again; o.Data is a part of msg.
func (v Version) DecodePacketOut(msg []byte, o *flow.PacketOut) (err error) {
	fixed, at := packetOutLen, 16
	if v == V10 {
		fixed, at = packetOutLen10, 14
	}
	if len(msg) < fixed {
		return malformed(TypePacketOut, len(msg), "cut short", badRequestLen)
	}
	end := fixed + int(be.Uint16(msg[at:]))
	if end > len(msg) {
		return malformed(TypePacketOut, at, "actions longer than the message", badRequestLen)
	}
	o.BufferID = be.Uint32(msg[8:])
	if v == V10 {
		if o.InPort = portFrom10(be.Uint16(msg[12:])); o.InPort == flow.PortAny {
			o.InPort = flow.PortController
		}
		o.Actions, err = decodeActions10(TypePacketOut, msg, fixed, end, 0, o.Actions[:0], nil)
	} else {
		o.InPort = flow.Port(be.Uint32(msg[12:]))
		o.Actions, err = decodeActions(TypePacketOut, msg, fixed, end, o.Actions[:0], nil)
	}
	o.Data = msg[end:]
	return err
}
