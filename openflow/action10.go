package openflow

import (
	"fmt"

	"github.com/weft-sdn/weft/flow"
)

// The actions of OpenFlow 1.0.1 §5.2.4.
const (
	action10Output    = 0
	action10SetVLAN   = 1
	action10SetPCP    = 2
	action10StripVLAN = 3
	action10SetDLSrc  = 4
	action10SetDLDst  = 5
	action10SetNwSrc  = 6
	action10SetNwDst  = 7
	action10SetNwTOS  = 8
	action10SetTPSrc  = 9
	action10SetTPDst  = 10
	action10Enqueue   = 11
	action10Vendor    = 0xffff
)

// QueueNone as argument of flow.ActionSetQueue takes a queue back: outputs
// after it use none. OpenFlow 1.0 needs it, where a queue belongs to one output.
const QueueNone uint32 = 0xffffffff

// appendActions10 appends a list of actions of OpenFlow 1.0. A set-queue turns
// the outputs after it into enqueue actions.
func appendActions10(dst []byte, op string, list []flow.Action) ([]byte, error) {
	start := len(dst)
	queue, used := QueueNone, true
	for i := range list {
		a := &list[i]
		switch a.Kind {
		case flow.ActionOutput:
			p, ok := port10(flow.Port(a.Arg))
			if !ok {
				return dst[:start], unsupported(V10, op, "output to port "+flow.Port(a.Arg).String(), badActionPort)
			}
			if queue == QueueNone {
				dst = be.AppendUint64(dst, action10Output<<48|8<<32|uint64(p)<<16|uint64(a.MaxLen))
				continue
			}
			used = true
			dst = be.AppendUint64(dst, action10Enqueue<<48|16<<32|uint64(p)<<16)
			dst = be.AppendUint64(dst, uint64(queue))
		case flow.ActionSetQueue:
			queue, used = a.Arg, a.Arg == QueueNone
		case flow.ActionPopVLAN:
			dst = be.AppendUint64(dst, action10StripVLAN<<48|8<<32)
		case flow.ActionSetField:
			var ok bool
			if dst, ok = appendSetField10(dst, a); !ok {
				return dst[:start], unsupported(V10, op, "action set-field of "+a.Field.String(), badActionSetType)
			}
		case flow.ActionExperimenter:
			n := 8 + len(a.Data)
			if n%8 != 0 || n > MaxLen {
				return dst[:start], unsupported(V10, op, fmt.Sprintf("vendor action of %d octets, no multiple of 8", n), badActionLen)
			}
			dst = be.AppendUint64(dst, action10Vendor<<48|uint64(n)<<32|uint64(a.Arg))
			dst = append(dst, a.Data...)
		default:
			return dst[:start], unsupported(V10, op, "action "+actionName(a.Kind), badActionType)
		}
	}
	if !used {
		return dst[:start], unsupported(V10, op, "action set-queue without an output after it", badActionArgument)
	}
	return dst, nil
}

func appendSetField10(dst []byte, a *flow.Action) ([]byte, bool) {
	v := &a.Value
	word := func(action uint64, value uint32) []byte {
		return be.AppendUint64(dst, action<<48|8<<32|uint64(value))
	}
	mac := func(action uint64) []byte {
		dst = be.AppendUint32(dst, uint32(action<<16|16))
		dst = append(dst, v[:6]...)
		return appendZeros(dst, 6)
	}
	switch a.Field {
	case flow.FieldVLAN:
		if v[0]&byte(flow.VLANPresent>>8) == 0 {
			return dst, false
		}
		return word(action10SetVLAN, uint32(be.Uint16(v[:])&vlanVIDMask)<<16), true
	case flow.FieldVLANPCP:
		return word(action10SetPCP, uint32(v[0])<<24), true
	case flow.FieldEthSrc:
		return mac(action10SetDLSrc), true
	case flow.FieldEthDst:
		return mac(action10SetDLDst), true
	case flow.FieldIPv4Src:
		return word(action10SetNwSrc, be.Uint32(v[:])), true
	case flow.FieldIPv4Dst:
		return word(action10SetNwDst, be.Uint32(v[:])), true
	case flow.FieldIPDSCP:
		return word(action10SetNwTOS, uint32(v[0]<<tosDSCPShift)<<24), true
	case flow.FieldTCPSrc, flow.FieldUDPSrc:
		return word(action10SetTPSrc, uint32(be.Uint16(v[:]))<<16), true
	case flow.FieldTCPDst, flow.FieldUDPDst:
		return word(action10SetTPDst, uint32(be.Uint16(v[:]))<<16), true
	}
	return dst, false
}

// decodeActions10 appends the actions in msg[off:end] to list. Transport ports
// are those of UDP where proto is its number, of TCP otherwise. partial is as
// in decodeActions.
func decodeActions10(t Type, msg []byte, off, end int, proto uint8, list []flow.Action, partial *bool) ([]flow.Action, error) {
	queue := false
	for off < end {
		if end-off < 8 {
			return list, malformed(t, off, "action cut short", badActionLen)
		}
		h := be.Uint64(msg[off:])
		n := int(h >> 32 & 0xffff)
		if n < 8 || n%8 != 0 {
			return list, malformed(t, off+2, "action length is not a positive multiple of 8", badActionLen)
		}
		if n > end-off {
			return list, malformed(t, off+2, "action longer than its list", badActionLen)
		}
		want := 8
		switch h >> 48 {
		case action10Output:
			if queue {
				list = append(list, flow.Action{Kind: flow.ActionSetQueue, Arg: QueueNone})
				queue = false
			}
			list = append(list, flow.Action{Kind: flow.ActionOutput, Arg: uint32(portFrom10(uint16(h >> 16))), MaxLen: uint16(h)})
		case action10Enqueue:
			if want = 16; n == want {
				list = append(list, flow.Action{Kind: flow.ActionSetQueue, Arg: be.Uint32(msg[off+12:])},
					flow.Action{Kind: flow.ActionOutput, Arg: uint32(portFrom10(uint16(h >> 16)))})
				queue = true
			}
		case action10StripVLAN:
			list = append(list, flow.Action{Kind: flow.ActionPopVLAN})
		case action10SetVLAN:
			list = append(list, flow.SetVLAN(uint16(h>>16)&vlanVIDMask))
		case action10SetPCP:
			list = appendSet(list, flow.FieldVLANPCP, uint32(h)&0x07000000)
		case action10SetDLSrc, action10SetDLDst:
			if want = 16; n == want {
				a := flow.Action{Kind: flow.ActionSetField, Field: flow.FieldEthSrc}
				if h>>48 == action10SetDLDst {
					a.Field = flow.FieldEthDst
				}
				copy(a.Value[:], msg[off+4:off+10])
				list = append(list, a)
			}
		case action10SetNwSrc:
			list = appendSet(list, flow.FieldIPv4Src, uint32(h))
		case action10SetNwDst:
			list = appendSet(list, flow.FieldIPv4Dst, uint32(h))
		case action10SetNwTOS:
			list = appendSet(list, flow.FieldIPDSCP, uint32(h)>>tosDSCPShift&0x3f000000)
		case action10SetTPSrc:
			f := flow.FieldTCPSrc
			if proto == flow.IPProtoUDP {
				f = flow.FieldUDPSrc
			}
			list = appendSet(list, f, uint32(h)&0xffff0000)
		case action10SetTPDst:
			f := flow.FieldTCPDst
			if proto == flow.IPProtoUDP {
				f = flow.FieldUDPDst
			}
			list = appendSet(list, f, uint32(h)&0xffff0000)
		case action10Vendor:
			want = n
			list = append(list, flow.Action{Kind: flow.ActionExperimenter, Arg: uint32(h), Data: string(msg[off+8 : off+n])})
		default:
			if partial == nil {
				return list, unsupported(V10, t.String(), fmt.Sprintf("action of type %d", h>>48), badActionType)
			}
			*partial = true
			want = n
		}
		if n != want {
			return list, malformed(t, off+2, "action of wrong length for its type", badActionLen)
		}
		off += n
	}
	return list, nil
}

// appendSet appends a set-field action whose value is at the top of v.
func appendSet(list []flow.Action, f flow.Field, v uint32) []flow.Action {
	a := flow.Action{Kind: flow.ActionSetField, Field: f}
	be.PutUint32(a.Value[:], v)
	return append(list, a)
}

func actionName(k flow.ActionKind) string {
	switch k {
	case flow.ActionCopyTTLOut:
		return "copy-ttl-out"
	case flow.ActionCopyTTLIn:
		return "copy-ttl-in"
	case flow.ActionSetMPLSTTL:
		return "set-mpls-ttl"
	case flow.ActionDecMPLSTTL:
		return "dec-mpls-ttl"
	case flow.ActionPushVLAN:
		return "push-vlan"
	case flow.ActionPushMPLS:
		return "push-mpls"
	case flow.ActionPopMPLS:
		return "pop-mpls"
	case flow.ActionGroup:
		return "group"
	case flow.ActionSetNwTTL:
		return "set-nw-ttl"
	case flow.ActionDecNwTTL:
		return "dec-nw-ttl"
	case flow.ActionPushPBB:
		return "push-pbb"
	case flow.ActionPopPBB:
		return "pop-pbb"
	}
	return fmt.Sprintf("of kind %d", k)
}
