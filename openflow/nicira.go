package openflow

import "weft/flow"

// nxmClass1 is the class of Open vSwitch's own match fields (NXM_NX_*,
// include/openvswitch/meta-flow.h of Open vSwitch).
const nxmClass1 = 0x0001

// The numbers of the connection tracking fields in that class.
const (
	nxmCTState = 105
	nxmCTZone  = 106
	nxmCTMark  = 107
)

// oxmOf returns the OXM header of a field without mask and length.
func oxmOf(f flow.Field) uint32 {
	if f < flow.FieldCTState {
		return oxmHeader | uint32(f)<<9
	}
	return nxmClass1<<16 | (nxmCTState+uint32(f-flow.FieldCTState))<<9
}

// fieldOf returns the field that an OXM header is of, whatever its mask and
// length; false if flow.Match has no place for it.
func fieldOf(oxm uint32) (flow.Field, bool) {
	n := oxm >> 9 & 0x7f
	switch oxm >> 16 {
	case oxmBasic:
		return flow.Field(n), n < uint32(flow.FieldCTState)
	case nxmClass1:
		return flow.FieldCTState + flow.Field(n-nxmCTState), n >= nxmCTState && n <= nxmCTMark
	}
	return 0, false
}
