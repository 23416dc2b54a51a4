package openflow

import "github.com/weft-sdn/weft/flow"

// nxmClass1 is the class of Open vSwitch's own match fields (NXM_NX_*,
// include/openvswitch/meta-flow.h of Open vSwitch).
const nxmClass1 = 0x0001

// The numbers of fields in that class, the last three of connection tracking.
const (
	nxmIPFrag  = 26
	nxmMPLSTTL = 30
	nxmCTState = 105
	nxmCTZone  = 106
	nxmCTMark  = 107
)

// oxmOf returns the OXM header of a field without mask and length.
func oxmOf(f flow.Field) uint32 {
	if f < flow.FieldCTState {
		return oxmHeader | uint32(f)<<9
	}
	switch f {
	case flow.FieldMPLSTTL:
		return nxmClass1<<16 | nxmMPLSTTL<<9
	case flow.FieldIPFrag:
		return nxmClass1<<16 | nxmIPFrag<<9
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
		switch n {
		case nxmMPLSTTL:
			return flow.FieldMPLSTTL, true
		case nxmIPFrag:
			return flow.FieldIPFrag, true
		}
		return flow.FieldCTState + flow.Field(n-nxmCTState), n >= nxmCTState && n <= nxmCTMark
	}
	return 0, false
}

// niciraSetControllerID is the number of the message NXT_SET_CONTROLLER_ID
// (nicira-ext.h of Open vSwitch).
const niciraSetControllerID = 20

// AppendSetControllerID appends Open vSwitch's message NXT_SET_CONTROLLER_ID:
// from then on the connection gets the packets of the actions
// flow.Controller with that number, and no others. It has no answer; a switch
// that does not know it refuses it.
func (v Version) AppendSetControllerID(dst []byte, xid uint32, id uint16) ([]byte, error) {
	body := []byte{0, 0, 0, 0, 0, 0, byte(id >> 8), byte(id)}
	if v == V10 { // its vendor messages have the number in their content
		return v.AppendExperimenter(dst, xid, &Experimenter{ID: flow.Nicira, Data: append([]byte{0, 0, 0, niciraSetControllerID}, body...)})
	}
	return v.AppendExperimenter(dst, xid, &Experimenter{ID: flow.Nicira, Type: niciraSetControllerID, Data: body})
}

// DecodeSetControllerID reads the number from an experimenter's message; false
// if it is another message. One that is cut short is an error.
func (v Version) DecodeSetControllerID(msg []byte) (id uint16, ok bool, err error) {
	e, err := v.DecodeExperimenter(msg)
	if err != nil || e.ID != flow.Nicira {
		return 0, false, err
	}
	if v == V10 {
		if len(e.Data) < 4 {
			return 0, false, malformed(TypeExperimenter, len(msg), "cut short", badRequestLen)
		}
		e.Type, e.Data = be.Uint32(e.Data), e.Data[4:]
	}
	if e.Type != niciraSetControllerID {
		return 0, false, nil
	}
	if len(e.Data) != 8 {
		return 0, false, malformed(TypeExperimenter, len(msg), "controller id of wrong length", badRequestLen)
	}
	return be.Uint16(e.Data[6:]), true, nil
}
