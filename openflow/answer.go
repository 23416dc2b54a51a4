package openflow

// The answers of a switch to what this package finds wrong.
var (
	badRequestLen       = pair{ErrBadRequest, BadRequestBadLen}
	badRequestType      = pair{ErrBadRequest, BadRequestBadType}
	badRequestMultipart = pair{ErrBadRequest, BadRequestBadMultipart}
	badRequestPort      = pair{ErrBadRequest, BadRequestBadPort}
	badActionLen        = pair{ErrBadAction, BadActionBadLen}
	badActionType       = pair{ErrBadAction, BadActionBadType}
	badActionPort       = pair{ErrBadAction, BadActionBadOutPort}
	badActionArgument   = pair{ErrBadAction, BadActionBadArgument}
	badActionSetType    = pair{ErrBadAction, BadActionBadSetType}
	badActionSetLen     = pair{ErrBadAction, BadActionBadSetLen}
	badInstructionLen   = pair{ErrBadInstruction, BadInstructionBadLen}
	badMatchLen         = pair{ErrBadMatch, BadMatchBadLen}
	badMatchType        = pair{ErrBadMatch, BadMatchBadType}
	badMatchField       = pair{ErrBadMatch, BadMatchBadField}
	badMatchDup         = pair{ErrBadMatch, BadMatchDupField}
	badMatchPrereq      = pair{ErrBadMatch, BadMatchBadPrereq}
)
