package session

import (
	"encoding/binary"
	"fmt"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/openflow"
)

// refused passes a switch's error to the sender of the refused message.
func (s *Session) refused(msg []byte) error {
	e, err := s.Version.DecodeError(msg)
	if err != nil {
		return err
	}
	s.count.errors.Add(1)
	if s.roleRefused(e) {
		return nil
	}
	waited, err := s.waits.refuse(e)
	if waited || s.limiters.refused(s, e) {
		return err
	}
	event := &api.SwitchError{Dpid: s.DPID.String(), Type: uint32(e.Type), Code: uint32(e.Code), Text: e.Error(), Xid: e.Xid}
	if cookie, ok := refusedCookie(s.Version, e.Data); ok {
		event.Cookie = fmt.Sprintf("%016x", uint64(cookie))
	}
	s.shared.SwitchError(event)
	return nil
}

// refusedCookie reads the cookie from the start of a refused flow-mod. An error
// message carries at least 64 bytes of that message (OpenFlow 1.3.5 §7.4.4).
func refusedCookie(v openflow.Version, data []byte) (flow.Cookie, bool) {
	at := openflow.HeaderLen
	if v == openflow.V10 {
		at += 40 // after the match
	}
	if h, err := openflow.ParseHeader(data); err != nil || h.Type != openflow.TypeFlowMod || len(data) < at+8 {
		return 0, false
	}
	return flow.Cookie(binary.BigEndian.Uint64(data[at:])), true
}
