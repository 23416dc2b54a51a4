package openflow

import (
	"fmt"

	"github.com/weft-sdn/weft/flow"
)

// The instructions (OpenFlow 1.3.5 §7.2.4).
const (
	instrGoto          = 1
	instrWriteMetadata = 2
	instrWriteActions  = 3
	instrApplyActions  = 4
	instrClearActions  = 5
	instrMeter         = 6
	instrExperimenter  = 0xffff
)

// appendInstructions appends the instructions of e in the order in which a
// switch runs them.
func appendInstructions(dst []byte, op string, e *flow.Entry) ([]byte, error) {
	var err error
	if e.Meter != 0 {
		dst = be.AppendUint64(dst, instrMeter<<48|8<<32|uint64(e.Meter))
	}
	if len(e.Apply) > 0 {
		if dst, err = appendActionInstruction(dst, op, instrApplyActions, e.Apply); err != nil {
			return dst, err
		}
	}
	if e.Clear {
		dst = be.AppendUint64(dst, instrClearActions<<48|8<<32)
	}
	if e.HasWrite || len(e.Write) > 0 {
		if dst, err = appendActionInstruction(dst, op, instrWriteActions, e.Write); err != nil {
			return dst, err
		}
	}
	if e.MetaMask != 0 {
		dst = be.AppendUint64(dst, instrWriteMetadata<<48|24<<32)
		dst = be.AppendUint64(dst, e.Metadata)
		dst = be.AppendUint64(dst, e.MetaMask)
	}
	if e.Goto != 0 {
		dst = be.AppendUint64(dst, instrGoto<<48|8<<32|uint64(e.Goto)<<24)
	}
	return dst, nil
}

func appendActionInstruction(dst []byte, op string, kind uint64, list []flow.Action) ([]byte, error) {
	start := len(dst)
	dst = be.AppendUint64(dst, kind<<48)
	dst, err := appendActions(dst, op, list)
	n := len(dst) - start // where this overflows the message is too long as well
	dst[start+2], dst[start+3] = byte(n>>8), byte(n)
	return dst, err
}

// decodeInstructions reads the instructions in msg[off:end] into e, whose
// action lists are used again. What flow.Entry has no place for sets *partial
// and is left out; with partial nil it is an error.
func decodeInstructions(t Type, msg []byte, off, end int, e *flow.Entry, partial *bool) error {
	e.Goto, e.Clear, e.HasWrite, e.Meter, e.Metadata, e.MetaMask = 0, false, false, 0, 0, 0
	e.Apply, e.Write = e.Apply[:0], e.Write[:0]
	var seen uint64
	for off < end {
		if end-off < 8 {
			return malformed(t, off, "instruction cut short", badInstructionLen)
		}
		h := be.Uint64(msg[off:])
		n := int(h >> 32 & 0xffff)
		if n < 8 || n%8 != 0 {
			return malformed(t, off+2, "instruction length is not a positive multiple of 8", badInstructionLen)
		}
		if n > end-off {
			return malformed(t, off+2, "instruction longer than the message", badInstructionLen)
		}
		kind := h >> 48
		if kind < 64 {
			if seen&(1<<kind) != 0 {
				return malformed(t, off, "instruction given twice", pair{ErrBadInstruction, BadInstructionUnsupInst})
			}
			seen |= 1 << kind
		}
		want, err := 8, error(nil)
		switch kind {
		case instrGoto:
			if e.Goto = uint8(h >> 24); e.Goto == 0 {
				return malformed(t, off+4, "goto-table 0", pair{ErrBadInstruction, BadInstructionBadTableID})
			}
		case instrWriteMetadata:
			if want = 24; n == want {
				e.MetaMask = be.Uint64(msg[off+16:])
				e.Metadata = be.Uint64(msg[off+8:]) & e.MetaMask
			}
		case instrWriteActions:
			want, e.HasWrite = n, true
			e.Write, err = decodeActions(t, msg, off+8, off+n, e.Write, partial)
		case instrApplyActions:
			want = n
			e.Apply, err = decodeActions(t, msg, off+8, off+n, e.Apply, partial)
		case instrClearActions:
			e.Clear = true
		case instrMeter:
			if e.Meter = uint32(h); e.Meter == 0 {
				return malformed(t, off+4, "meter 0", pair{ErrMeterModFailed, MeterModFailedInvalidMeter})
			}
		default:
			if partial == nil {
				answer := pair{ErrBadInstruction, BadInstructionUnknownInst}
				if kind == instrExperimenter {
					answer.code = BadInstructionBadExperimenter
				}
				return unsupported(V13, t.String(), fmt.Sprintf("instruction of type %d", kind), answer)
			}
			*partial, want = true, n
		}
		if err != nil {
			return err
		}
		if n != want {
			return malformed(t, off+2, "instruction of wrong length for its type", badInstructionLen)
		}
		off += n
	}
	return nil
}
