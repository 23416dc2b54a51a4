package openflow

import (
	"fmt"

	"github.com/weft-sdn/weft/flow"
)

// appendActions appends a list of actions of OpenFlow 1.3 (§7.2.5).
func appendActions(dst []byte, op string, list []flow.Action) ([]byte, error) {
	start := len(dst)
	for i := range list {
		a := &list[i]
		switch a.Kind {
		case flow.ActionOutput:
			n := len(dst)
			dst = extend(dst, 16)
			b := dst[n : n+16]
			be.PutUint64(b, 16<<32|uint64(a.Arg))
			be.PutUint64(b[8:], uint64(a.MaxLen)<<48)
		case flow.ActionGroup, flow.ActionSetQueue:
			dst = be.AppendUint64(dst, uint64(a.Kind)<<48|8<<32|uint64(a.Arg))
		case flow.ActionSetField:
			if a.Field >= flow.NumFields {
				return dst[:start], unsupported(V13, op, fmt.Sprintf("action set-field of field number %d", a.Field), badActionSetType)
			}
			w := a.Field.Len()
			n := pad8(8 + w)
			dst = be.AppendUint64(dst, uint64(a.Kind)<<48|uint64(n)<<32|uint64(oxmOf(a.Field))|uint64(w))
			dst = append(dst, a.Value[:w]...)
			dst = appendZeros(dst, n-8-w)
		case flow.ActionCopyTTLOut, flow.ActionCopyTTLIn, flow.ActionDecMPLSTTL,
			flow.ActionPopVLAN, flow.ActionDecNwTTL, flow.ActionPopPBB:
			dst = be.AppendUint64(dst, uint64(a.Kind)<<48|8<<32)
		case flow.ActionPushVLAN, flow.ActionPushMPLS, flow.ActionPopMPLS, flow.ActionPushPBB:
			if a.Arg > 0xffff {
				return dst[:start], unsupported(V13, op, fmt.Sprintf("ethertype %#x in an action", a.Arg), badActionArgument)
			}
			dst = be.AppendUint64(dst, uint64(a.Kind)<<48|8<<32|uint64(a.Arg)<<16)
		case flow.ActionSetMPLSTTL, flow.ActionSetNwTTL:
			if a.Arg > 0xff {
				return dst[:start], unsupported(V13, op, fmt.Sprintf("TTL %d in an action", a.Arg), badActionArgument)
			}
			dst = be.AppendUint64(dst, uint64(a.Kind)<<48|8<<32|uint64(a.Arg)<<24)
		case flow.ActionExperimenter:
			n := 8 + len(a.Data)
			if n%8 != 0 || n > MaxLen {
				return dst[:start], unsupported(V13, op, fmt.Sprintf("experimenter action of %d octets, no multiple of 8", n), badActionLen)
			}
			dst = be.AppendUint64(dst, uint64(a.Kind)<<48|uint64(n)<<32|uint64(a.Arg))
			dst = append(dst, a.Data...)
		default:
			return dst[:start], unsupported(V13, op, fmt.Sprintf("action of kind %d", a.Kind), badActionType)
		}
	}
	return dst, nil
}

// decodeActions appends the actions in msg[off:end] to list. Actions that
// flow.Action has no place for set *partial and are left out; with partial nil
// they are an error.
func decodeActions(t Type, msg []byte, off, end int, list []flow.Action, partial *bool) ([]flow.Action, error) {
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
		kind := flow.ActionKind(h >> 48)
		want := 8
		list = append(list, flow.Action{Kind: kind})
		a := &list[len(list)-1]
		switch kind {
		case flow.ActionOutput:
			want = 16
			if n == 16 {
				a.Arg, a.MaxLen = uint32(h), be.Uint16(msg[off+8:])
			}
		case flow.ActionGroup, flow.ActionSetQueue:
			a.Arg = uint32(h)
		case flow.ActionCopyTTLOut, flow.ActionCopyTTLIn, flow.ActionDecMPLSTTL,
			flow.ActionPopVLAN, flow.ActionDecNwTTL, flow.ActionPopPBB:
		case flow.ActionPushVLAN, flow.ActionPushMPLS, flow.ActionPopMPLS, flow.ActionPushPBB:
			a.Arg = uint32(h) >> 16
		case flow.ActionSetMPLSTTL, flow.ActionSetNwTTL:
			a.Arg = uint32(h) >> 24
		case flow.ActionSetField:
			f, ok := setFieldTarget(uint32(h))
			if !ok {
				if partial == nil {
					return list, unsupported(V13, t.String(), fmt.Sprintf("set-field of OXM header %#08x", uint32(h)), badActionSetType)
				}
				*partial = true
				list = list[:len(list)-1]
				off += n
				continue
			}
			w := f.Len()
			if int(h&0xff) != w {
				return list, malformed(t, off+4, "set-field of "+f.String()+" with a value of wrong length", badActionSetLen)
			}
			want = pad8(8 + w)
			if n == want {
				a.Field = f
				copy(a.Value[:], msg[off+8:off+8+w])
			}
		case flow.ActionExperimenter:
			want = n
			a.Arg, a.Data = uint32(h), string(msg[off+8:off+n])
		default:
			if partial == nil {
				return list, unsupported(V13, t.String(), fmt.Sprintf("action of type %d", kind), badActionType)
			}
			*partial = true
			list = list[:len(list)-1]
			off += n
			continue
		}
		if n != want {
			return list, malformed(t, off+2, "action of wrong length for its type", badActionLen)
		}
		off += n
	}
	return list, nil
}

// setFieldTarget is the field that an OXM header without a mask names.
func setFieldTarget(oxm uint32) (flow.Field, bool) {
	f, ok := fieldOf(oxm)
	return f, ok && oxm&oxmHasMask == 0
}
