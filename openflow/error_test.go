package openflow

import (
	"strings"
	"testing"
)

func TestErrorNamesWhatItIs(t *testing.T) {
	for want, e := range map[string]Error{
		"OFPET_BAD_MATCH, OFPBMC_BAD_PREREQ: bad match, a prerequisite of a field is not met":                 {Type: ErrBadMatch, Code: BadMatchBadPrereq},
		"OFPET_FLOW_MOD_FAILED, OFPFMFC_TABLE_FULL":                                                           {Type: ErrFlowModFailed, Code: FlowModFailedTableFull},
		"OFPET_METER_MOD_FAILED, OFPMMFC_OUT_OF_BANDS":                                                        {Type: ErrMeterModFailed, Code: MeterModFailedOutOfBands},
		"OFPET_TABLE_FEATURES_FAILED, OFPTFFC_EPERM":                                                          {Type: ErrTableFeaturesFailed, Code: TableFeaturesFailedEPerm},
		"OFPET_ROLE_REQUEST_FAILED, OFPRRFC_STALE":                                                            {Type: ErrRoleRequestFailed, Code: RoleRequestFailedStale},
		"OFPET_BAD_REQUEST, OFPBRC_MULTIPART_BUFFER_OVERFLOW":                                                 {Type: ErrBadRequest, Code: BadRequestMultipartBufferOverflow},
		"OFPET_GROUP_MOD_FAILED, OFPGMFC_EPERM":                                                               {Type: ErrGroupModFailed, Code: GroupModFailedEPerm},
		"OFPET_BAD_ACTION, OFPBAC_BAD_SET_ARGUMENT":                                                           {Type: ErrBadAction, Code: BadActionBadSetArgument},
		"OFPET_BAD_INSTRUCTION, OFPBIC_EPERM":                                                                 {Type: ErrBadInstruction, Code: BadInstructionEPerm},
		"OFPET_HELLO_FAILED, OFPHFC_INCOMPATIBLE: hello failed, no version in common (\"only OpenFlow 1.5\")": {Type: ErrHelloFailed, Data: []byte("only OpenFlow 1.5")},
		"OFPET_BAD_MATCH of unknown code 99":                                                                  {Type: ErrBadMatch, Code: 99},
		"unknown type 77, code 5":                                                                             {Type: 77, Code: 5},
		"experimenter 0x00002320":                                                                             {Type: ErrExperimenter, Experimenter: 0x2320},
	} {
		if got := e.Error(); !strings.Contains(got, want) {
			t.Errorf("got %q, want %q in it", got, want)
		}
	}
}

// TestErrors10 checks each code of OpenFlow 1.0.1 §5.4.4 against the number of
// OpenFlow 1.3 with the same meaning, and back.
func TestErrors10(t *testing.T) {
	for wire, want := range map[pair]pair{
		{0, 0}: {ErrHelloFailed, HelloFailedIncompatible},
		{1, 0}: {ErrBadRequest, BadRequestBadVersion},
		{1, 8}: {ErrBadRequest, BadRequestBufferUnknown},
		{2, 0}: {ErrBadAction, BadActionBadType},
		{2, 8}: {ErrBadAction, BadActionBadQueue},
		{3, 0}: {ErrFlowModFailed, FlowModFailedTableFull},
		{3, 1}: {ErrFlowModFailed, FlowModFailedOverlap},
		{3, 2}: {ErrFlowModFailed, FlowModFailedEPerm},
		{3, 3}: {ErrFlowModFailed, FlowModFailedBadTimeout},
		{3, 4}: {ErrFlowModFailed, FlowModFailedBadCommand},
		{3, 5}: {ErrFlowModFailed, FlowModFailedUnknown},
		{4, 1}: {ErrPortModFailed, PortModFailedBadHWAddr},
		{5, 2}: {ErrQueueOpFailed, QueueOpFailedEPerm},
	} {
		if got := errorFrom10(wire); got != want {
			t.Errorf("%v: got %v, want %v", wire, got, want)
		}
		if got := errorTo10(want); got != wire {
			t.Errorf("%v: back to %v, want %v", want, got, wire)
		}
	}
}

// TestAnswer: a malformed request is answered with the code that the
// specification has for its fault, and the request itself.
func TestAnswer(t *testing.T) {
	for advisory, want := range map[string]pair{
		"ryu-188":        {ErrBadInstruction, BadInstructionBadLen},
		"ryu-189":        {ErrBadAction, BadActionBadLen},
		"CVE-2024-28732": {ErrBadMatch, BadMatchBadLen},
	} {
		m := malformedMessages()[advisory]
		_, err := codecNamed(t, m.codec).decode(V13, m.msg)
		a := Answer(err, m.msg)
		if a.Type != want.typ || a.Code != want.code || a.Xid != 1 || len(a.Data) != len(m.msg) {
			t.Errorf("%s: %+v", advisory, a)
		}
	}
}
