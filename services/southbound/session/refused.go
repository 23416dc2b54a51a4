package session

import (
	"encoding/binary"
	"fmt"
	"time"

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
	if s.Role.handleRoleError(e) {
		return nil
	}
	waited, err := s.waits.refuse(e)
	if waited || s.floods.refused(e) {
		return err
	}
	event := &api.SwitchError{Dpid: s.DPID.String(), Type: uint32(e.Type), Code: uint32(e.Code), Text: e.Error(), Xid: e.Xid}
	if cookie, ok := refusedCookie(s.Version, e.Data); ok {
		event.Cookie = fmt.Sprintf("%016x", uint64(cookie))
	} else {
		event.Port = uint32(refusedPort(s.Version, e.Data))
		if !s.refusals.admits(event, s.in.ws.packet.Time) {
			return nil
		}
	}
	s.shared.SwitchError(event)
	return nil
}

// refusals bounds the events about messages that a switch refuses again and again.
// Only the reading goroutine uses it.
type refusals map[refusal]*toldRefusal

type refusal struct{ errorType, code, port uint32 }

type toldRefusal struct {
	at   int64 // of the last event, ns
	more uint64
}

const (
	refusalGap  = int64(time.Minute) // between two events about the same
	refusalMost = 4096               // of a switch; what is beyond counts as of no port
)

// admits reports whether an event is to be published at a time, in ns; it then says
// how many like it were not.
func (r *refusals) admits(e *api.SwitchError, now int64) bool {
	if *r == nil {
		*r = refusals{}
	}
	k := refusal{e.Type, e.Code, e.Port}
	if (*r)[k] == nil && len(*r) >= refusalMost {
		k = refusal{}
	}
	c := (*r)[k]
	switch {
	case c == nil:
		(*r)[k] = &toldRefusal{at: now}
		return true
	case now-c.at < refusalGap:
		c.more++
		return false
	}
	e.More, c.more, c.at = c.more, 0, now
	return true
}

// refusedPort reads from the start of a refused packet-out the port that it was for; 0
// if it was for several, or is something else.
func refusedPort(v openflow.Version, data []byte) flow.Port {
	var o flow.PacketOut
	if h, err := openflow.ParseHeader(data); err != nil || h.Version != v || h.Type != openflow.TypePacketOut || v.DecodePacketOut(data, &o) != nil {
		return 0
	}
	port := flow.Port(0)
	for _, a := range o.Actions {
		switch {
		case a.Kind != flow.ActionOutput:
		case port != 0 || !flow.Port(a.Arg).Physical():
			return 0
		default:
			port = flow.Port(a.Arg)
		}
	}
	return port
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
