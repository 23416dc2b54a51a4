package openflow

import (
	"fmt"

	"github.com/weft-sdn/weft/flow"
)

const (
	flowModLen   = 48 // before the match
	flowModLen10 = 72 // before the actions
)

// AppendFlowMod appends a flow-mod (OpenFlow 1.3.5 §7.3.4.1).
func (v Version) AppendFlowMod(dst []byte, xid uint32, m *flow.Mod) ([]byte, error) {
	easy := plain(m)
	if v == V10 {
		if easy && plain10(m) {
			return appendPlainMod10(dst, xid, m), nil
		}
		return appendFlowMod10(dst, xid, m)
	}
	if easy && m.Command <= flow.DeleteStrict {
		return appendPlainMod(dst, v, xid, m), nil
	}
	return v.appendFlowMod13(dst, xid, m)
}

func (v Version) appendFlowMod13(dst []byte, xid uint32, m *flow.Mod) ([]byte, error) {
	e := &m.Entry
	if m.Command > flow.DeleteStrict {
		return dst, unsupported(v, "flow-mod", fmt.Sprintf("command %d", m.Command), pair{ErrFlowModFailed, FlowModFailedBadCommand})
	}
	start := len(dst)
	out := extend(dst, flowModLen)
	b := out[start : start+flowModLen]
	be.PutUint64(b, uint64(v)<<56|uint64(TypeFlowMod)<<48|uint64(xid))
	be.PutUint64(b[8:], uint64(e.Cookie))
	be.PutUint64(b[16:], uint64(m.CookieMask))
	be.PutUint64(b[24:], uint64(e.Table)<<56|uint64(m.Command)<<48|uint64(e.IdleTimeout)<<32|uint64(e.HardTimeout)<<16|uint64(e.Priority))
	be.PutUint64(b[32:], uint64(m.BufferID)<<32|uint64(m.OutPort))
	be.PutUint64(b[40:], uint64(m.OutGroup)<<32|uint64(e.Flags)<<16)
	out, err := appendMatch(out, &e.Match)
	if err == nil {
		out, err = appendInstructions(out, "flow-mod", e)
	}
	if err != nil {
		return out[:start], err
	}
	return finish(out, start, TypeFlowMod)
}

func appendFlowMod10(dst []byte, xid uint32, m *flow.Mod) ([]byte, error) {
	const op = "flow-mod"
	e := &m.Entry
	if field := beyond10(m); field != "" {
		return dst, unsupported(V10, op, field, pair{ErrFlowModFailed, FlowModFailedUnknown})
	}
	port, ok := port10(m.OutPort)
	if !ok {
		return dst, unsupported(V10, op, "port "+m.OutPort.String(), badActionPort)
	}
	start := len(dst)
	out := room(dst, 256)
	out = be.AppendUint64(out, uint64(V10)<<56|uint64(TypeFlowMod)<<48|uint64(xid))
	out, err := appendMatch10(out, op, &e.Match)
	if err != nil {
		return out[:start], err
	}
	out = be.AppendUint64(out, uint64(e.Cookie))
	out = be.AppendUint64(out, uint64(m.Command)<<48|uint64(e.IdleTimeout)<<32|uint64(e.HardTimeout)<<16|uint64(e.Priority))
	out = be.AppendUint64(out, uint64(m.BufferID)<<32|uint64(port)<<16|uint64(e.Flags))
	if out, err = appendActions10(out, op, e.Apply); err != nil {
		return out[:start], err
	}
	return finish(out, start, TypeFlowMod)
}

// beyond10 names what of m OpenFlow 1.0 cannot express, matches and actions aside.
func beyond10(m *flow.Mod) string {
	e := &m.Entry
	deletes := m.Command == flow.Delete || m.Command == flow.DeleteStrict
	switch {
	case m.Command > flow.DeleteStrict:
		return fmt.Sprintf("command %d", m.Command)
	case e.Table != 0 && !(deletes && e.Table == flow.TableAll):
		return fmt.Sprintf("table %d", e.Table)
	case e.Flags&^(flow.FlagSendRem|flow.FlagOverlap) != 0:
		return fmt.Sprintf("flags %#x", e.Flags)
	case m.CookieMask != 0:
		return "a cookie mask"
	case deletes && m.OutGroup != flow.GroupAny:
		return fmt.Sprintf("out_group %d", m.OutGroup)
	}
	return beyondEntry10(e)
}

// beyondEntry10 names the instruction of e that OpenFlow 1.0 lacks.
func beyondEntry10(e *flow.Entry) string {
	switch {
	case e.Goto != 0:
		return "instruction goto-table"
	case e.Meter != 0:
		return "instruction meter"
	case e.MetaMask != 0:
		return "instruction write-metadata"
	case e.Clear:
		return "instruction clear-actions"
	case e.HasWrite || len(e.Write) > 0:
		return "instruction write-actions"
	}
	return ""
}

// DecodeFlowMod reads a flow-mod into m, whose lists of actions are used again.
func (v Version) DecodeFlowMod(msg []byte, m *flow.Mod) error {
	if v == V10 {
		return decodeFlowMod10(msg, m)
	}
	if len(msg) < flowModLen+matchMinLen {
		return malformed(TypeFlowMod, len(msg), "cut short", badRequestLen)
	}
	e := &m.Entry
	e.Cookie, m.CookieMask = flow.Cookie(be.Uint64(msg[8:])), flow.Cookie(be.Uint64(msg[16:]))
	e.Table = msg[24]
	e.IdleTimeout, e.HardTimeout, e.Priority = be.Uint16(msg[26:]), be.Uint16(msg[28:]), be.Uint16(msg[30:])
	m.BufferID, m.OutPort, m.OutGroup = be.Uint32(msg[32:]), flow.Port(be.Uint32(msg[36:])), be.Uint32(msg[40:])
	e.Flags = be.Uint16(msg[44:])
	if err := setCommand(m, uint16(msg[25]), 25); err != nil {
		return err
	}
	off, err := decodeMatch(TypeFlowMod, msg, flowModLen, &e.Match, nil)
	if err != nil {
		return err
	}
	return decodeInstructions(TypeFlowMod, msg, off, len(msg), e, nil)
}

func decodeFlowMod10(msg []byte, m *flow.Mod) (err error) {
	if len(msg) < flowModLen10 {
		return malformed(TypeFlowMod, len(msg), "cut short", badRequestLen)
	}
	e := &m.Entry
	decodeMatch10(msg[8:], &e.Match)
	e.Cookie = flow.Cookie(be.Uint64(msg[48:]))
	if err := setCommand(m, be.Uint16(msg[56:]), 56); err != nil {
		return err
	}
	e.IdleTimeout, e.HardTimeout, e.Priority = be.Uint16(msg[58:]), be.Uint16(msg[60:]), be.Uint16(msg[62:])
	m.BufferID, m.OutPort, m.OutGroup, m.CookieMask = be.Uint32(msg[64:]), portFrom10(be.Uint16(msg[68:])), flow.GroupAny, 0
	e.Flags = be.Uint16(msg[70:])
	if e.Flags&^(flow.FlagSendRem|flow.FlagOverlap) != 0 {
		return unsupported(V10, "flow-mod", fmt.Sprintf("flags %#x", e.Flags), pair{ErrFlowModFailed, FlowModFailedBadFlags})
	}
	e.Table = 0
	if m.Command >= flow.Delete {
		e.Table = flow.TableAll
	}
	e.Goto, e.Clear, e.HasWrite, e.Meter, e.Metadata, e.MetaMask, e.Write = 0, false, false, 0, 0, 0, e.Write[:0]
	e.Apply, err = decodeActions10(TypeFlowMod, msg, flowModLen10, len(msg), e.Match.Key.IPProto, e.Apply[:0], nil)
	return err
}

func setCommand(m *flow.Mod, wire uint16, off int) error {
	if wire > uint16(flow.DeleteStrict) {
		return malformed(TypeFlowMod, off, "unknown command", pair{ErrFlowModFailed, FlowModFailedBadCommand})
	}
	m.Command = flow.Command(wire)
	return nil
}
