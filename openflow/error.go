package openflow

import "fmt"

// The types of error (OpenFlow 1.3.5 §7.4.4).
const (
	ErrHelloFailed         uint16 = 0
	ErrBadRequest          uint16 = 1
	ErrBadAction           uint16 = 2
	ErrBadInstruction      uint16 = 3
	ErrBadMatch            uint16 = 4
	ErrFlowModFailed       uint16 = 5
	ErrGroupModFailed      uint16 = 6
	ErrPortModFailed       uint16 = 7
	ErrTableModFailed      uint16 = 8
	ErrQueueOpFailed       uint16 = 9
	ErrSwitchConfigFailed  uint16 = 10
	ErrRoleRequestFailed   uint16 = 11
	ErrMeterModFailed      uint16 = 12
	ErrTableFeaturesFailed uint16 = 13
	ErrExperimenter        uint16 = 0xffff
)

// Codes of error by type (OpenFlow 1.3.5 §7.4.4).
const (
	HelloFailedIncompatible uint16 = 0
	HelloFailedEPerm        uint16 = 1

	BadRequestBadVersion              uint16 = 0
	BadRequestBadType                 uint16 = 1
	BadRequestBadMultipart            uint16 = 2
	BadRequestBadExperimenter         uint16 = 3
	BadRequestBadExpType              uint16 = 4
	BadRequestEPerm                   uint16 = 5
	BadRequestBadLen                  uint16 = 6
	BadRequestBufferEmpty             uint16 = 7
	BadRequestBufferUnknown           uint16 = 8
	BadRequestBadTableID              uint16 = 9
	BadRequestIsSlave                 uint16 = 10
	BadRequestBadPort                 uint16 = 11
	BadRequestBadPacket               uint16 = 12
	BadRequestMultipartBufferOverflow uint16 = 13

	BadActionBadType           uint16 = 0
	BadActionBadLen            uint16 = 1
	BadActionBadExperimenter   uint16 = 2
	BadActionBadExpType        uint16 = 3
	BadActionBadOutPort        uint16 = 4
	BadActionBadArgument       uint16 = 5
	BadActionEPerm             uint16 = 6
	BadActionTooMany           uint16 = 7
	BadActionBadQueue          uint16 = 8
	BadActionBadOutGroup       uint16 = 9
	BadActionMatchInconsistent uint16 = 10
	BadActionUnsupportedOrder  uint16 = 11
	BadActionBadTag            uint16 = 12
	BadActionBadSetType        uint16 = 13
	BadActionBadSetLen         uint16 = 14
	BadActionBadSetArgument    uint16 = 15

	BadInstructionUnknownInst       uint16 = 0
	BadInstructionUnsupInst         uint16 = 1
	BadInstructionBadTableID        uint16 = 2
	BadInstructionUnsupMetadata     uint16 = 3
	BadInstructionUnsupMetadataMask uint16 = 4
	BadInstructionBadExperimenter   uint16 = 5
	BadInstructionBadExpType        uint16 = 6
	BadInstructionBadLen            uint16 = 7
	BadInstructionEPerm             uint16 = 8

	BadMatchBadType       uint16 = 0
	BadMatchBadLen        uint16 = 1
	BadMatchBadTag        uint16 = 2
	BadMatchBadDLAddrMask uint16 = 3
	BadMatchBadNWAddrMask uint16 = 4
	BadMatchBadWildcards  uint16 = 5
	BadMatchBadField      uint16 = 6
	BadMatchBadValue      uint16 = 7
	BadMatchBadMask       uint16 = 8
	BadMatchBadPrereq     uint16 = 9
	BadMatchDupField      uint16 = 10
	BadMatchEPerm         uint16 = 11

	FlowModFailedUnknown    uint16 = 0
	FlowModFailedTableFull  uint16 = 1
	FlowModFailedBadTableID uint16 = 2
	FlowModFailedOverlap    uint16 = 3
	FlowModFailedEPerm      uint16 = 4
	FlowModFailedBadTimeout uint16 = 5
	FlowModFailedBadCommand uint16 = 6
	FlowModFailedBadFlags   uint16 = 7

	GroupModFailedGroupExists         uint16 = 0
	GroupModFailedInvalidGroup        uint16 = 1
	GroupModFailedWeightUnsupported   uint16 = 2
	GroupModFailedOutOfGroups         uint16 = 3
	GroupModFailedOutOfBuckets        uint16 = 4
	GroupModFailedChainingUnsupported uint16 = 5
	GroupModFailedWatchUnsupported    uint16 = 6
	GroupModFailedLoop                uint16 = 7
	GroupModFailedUnknownGroup        uint16 = 8
	GroupModFailedChainedGroup        uint16 = 9
	GroupModFailedBadType             uint16 = 10
	GroupModFailedBadCommand          uint16 = 11
	GroupModFailedBadBucket           uint16 = 12
	GroupModFailedBadWatch            uint16 = 13
	GroupModFailedEPerm               uint16 = 14

	PortModFailedBadPort      uint16 = 0
	PortModFailedBadHWAddr    uint16 = 1
	PortModFailedBadConfig    uint16 = 2
	PortModFailedBadAdvertise uint16 = 3
	PortModFailedEPerm        uint16 = 4

	TableModFailedBadTable  uint16 = 0
	TableModFailedBadConfig uint16 = 1
	TableModFailedEPerm     uint16 = 2

	QueueOpFailedBadPort  uint16 = 0
	QueueOpFailedBadQueue uint16 = 1
	QueueOpFailedEPerm    uint16 = 2

	SwitchConfigFailedBadFlags uint16 = 0
	SwitchConfigFailedBadLen   uint16 = 1
	SwitchConfigFailedEPerm    uint16 = 2

	RoleRequestFailedStale   uint16 = 0
	RoleRequestFailedUnsup   uint16 = 1
	RoleRequestFailedBadRole uint16 = 2

	MeterModFailedUnknown      uint16 = 0
	MeterModFailedMeterExists  uint16 = 1
	MeterModFailedInvalidMeter uint16 = 2
	MeterModFailedUnknownMeter uint16 = 3
	MeterModFailedBadCommand   uint16 = 4
	MeterModFailedBadFlags     uint16 = 5
	MeterModFailedBadRate      uint16 = 6
	MeterModFailedBadBurst     uint16 = 7
	MeterModFailedBadBand      uint16 = 8
	MeterModFailedBadBandValue uint16 = 9
	MeterModFailedOutOfMeters  uint16 = 10
	MeterModFailedOutOfBands   uint16 = 11

	TableFeaturesFailedBadTable    uint16 = 0
	TableFeaturesFailedBadMetadata uint16 = 1
	TableFeaturesFailedBadType     uint16 = 2
	TableFeaturesFailedBadLen      uint16 = 3
	TableFeaturesFailedBadArgument uint16 = 4
	TableFeaturesFailedEPerm       uint16 = 5
)

// Error is an error message (OpenFlow 1.3.5 §7.4.4): what the switch refused
// and why. Type and Code are numbers of OpenFlow 1.3, those of 1.0 translated.
type Error struct {
	Type         uint16
	Code         uint16 // experimenter-defined type where Type is ErrExperimenter
	Experimenter uint32 // where Type is ErrExperimenter
	Data         []byte // the start of the refused message; text in a failed hello
	Xid          uint32 // of the refused message
}

const errorLen = HeaderLen + 4

// Error gives the names of OpenFlow 1.3.5 §7.4.4 and what they mean.
func (e *Error) Error() string {
	if e.Type == ErrExperimenter {
		return fmt.Sprintf("switch error OFPET_EXPERIMENTER: type %d of experimenter %#08x", e.Code, e.Experimenter)
	}
	if int(e.Type) >= len(errorTypes) {
		return fmt.Sprintf("switch error of unknown type %d, code %d", e.Type, e.Code)
	}
	t := &errorTypes[e.Type]
	if int(e.Code) >= len(t.codes) {
		return fmt.Sprintf("switch error %s of unknown code %d: %s", t.name, e.Code, t.what)
	}
	s := fmt.Sprintf("switch error %s, %s: %s, %s", t.name, t.codes[e.Code].name, t.what, t.codes[e.Code].what)
	if e.Type == ErrHelloFailed && len(e.Data) > 0 {
		s += fmt.Sprintf(" (%q)", name(e.Data))
	}
	return s
}

// AppendError appends an error message whose transaction is that of the
// refused message. Data that does not fit is cut: the specification asks for
// 64 octets only.
func (v Version) AppendError(dst []byte, xid uint32, e *Error) []byte {
	start := len(dst)
	code := pair{e.Type, e.Code}
	if v == V10 {
		code = errorTo10(code)
	}
	dst = appendHeader(dst, v, uint8(TypeError), xid)
	dst = be.AppendUint32(dst, uint32(code.typ)<<16|uint32(code.code))
	if v != V10 && e.Type == ErrExperimenter {
		dst = be.AppendUint32(dst, e.Experimenter)
	}
	dst = append(dst, e.Data[:min(len(e.Data), MaxLen-(len(dst)-start))]...)
	n := len(dst) - start
	dst[start+2], dst[start+3] = byte(n>>8), byte(n)
	return dst
}

// DecodeError reads an error message; Data is a part of msg.
func (v Version) DecodeError(msg []byte) (Error, error) {
	if len(msg) < errorLen {
		return Error{}, malformed(TypeError, len(msg), "cut short", badRequestLen)
	}
	e := Error{Type: be.Uint16(msg[8:]), Code: be.Uint16(msg[10:]), Data: msg[errorLen:], Xid: be.Uint32(msg[4:])}
	if v == V10 {
		p := errorFrom10(pair{e.Type, e.Code})
		e.Type, e.Code = p.typ, p.code
		return e, nil
	}
	if e.Type == ErrExperimenter {
		if len(e.Data) < 4 {
			return e, malformed(TypeError, len(msg), "cut short", badRequestLen)
		}
		e.Experimenter, e.Data = be.Uint32(e.Data), e.Data[4:]
	}
	return e, nil
}

// The types of error of OpenFlow 1.0.1 §5.4.4 that have another number there.
const (
	err10FlowModFailed = 3
	err10PortModFailed = 4
	err10QueueOpFailed = 5
	flowMod10Unsup     = 5
)

// flowModCodes10 is the codes of a failed flow-mod in the order of OpenFlow 1.0.
var flowModCodes10 = [...]uint16{
	FlowModFailedTableFull, FlowModFailedOverlap, FlowModFailedEPerm,
	FlowModFailedBadTimeout, FlowModFailedBadCommand, FlowModFailedUnknown,
}

func errorFrom10(p pair) pair {
	switch p.typ {
	case err10FlowModFailed:
		if int(p.code) < len(flowModCodes10) {
			return pair{ErrFlowModFailed, flowModCodes10[p.code]}
		}
		return pair{ErrFlowModFailed, p.code + 0x100} // unknown in either version
	case err10PortModFailed:
		return pair{ErrPortModFailed, p.code}
	case err10QueueOpFailed:
		return pair{ErrQueueOpFailed, p.code}
	}
	return p
}

// errorTo10 is the nearest error that OpenFlow 1.0 has.
func errorTo10(p pair) pair {
	switch p.typ {
	case ErrHelloFailed:
		return p
	case ErrBadRequest:
		if p.code > BadRequestBufferUnknown {
			p.code = BadRequestEPerm
		}
		return p
	case ErrBadAction:
		if p.code > BadActionBadQueue {
			p.code = BadActionBadArgument
		}
		return p
	case ErrBadInstruction, ErrBadMatch:
		return pair{err10FlowModFailed, flowMod10Unsup}
	case ErrFlowModFailed:
		for i, c := range flowModCodes10 {
			if c == p.code {
				return pair{err10FlowModFailed, uint16(i)}
			}
		}
		return pair{err10FlowModFailed, flowMod10Unsup}
	case ErrPortModFailed:
		return pair{err10PortModFailed, min(p.code, PortModFailedBadHWAddr)}
	case ErrQueueOpFailed:
		return pair{err10QueueOpFailed, p.code}
	}
	return pair{ErrBadRequest, BadRequestBadType}
}
