package api

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"google.golang.org/grpc/codes"

	"github.com/weft-sdn/weft/flow"
)

// OpenVSwitch is the hardware that Open vSwitch gives in its description; it knows
// matches and actions that are not in OpenFlow.
const OpenVSwitch = "Open vSwitch"

// MostSampled is how many packets of a connection one sample has at most.
const MostSampled = 1000

// NewLocation returns the message for a port of a switch.
func NewLocation(l flow.Location) *Location {
	return &Location{Dpid: l.Switch.String(), Port: uint32(l.Port)}
}

// Flow returns the location as a value; nowhere if it is nil or malformed.
func (l *Location) Flow() flow.Location {
	dpid, err := flow.ParseDPID(l.GetDpid())
	if err != nil {
		return flow.Location{}
	}
	return flow.Location{Switch: dpid, Port: flow.Port(l.GetPort())}
}

// NewFlowEntry returns the message for an entry of a switch, without counters.
func NewFlowEntry(sw flow.DPID, e *flow.Entry) *FlowEntry {
	f := &FlowEntry{
		Dpid: sw.String(), Table: uint32(e.Table), Priority: uint32(e.Priority), Match: e.Match.Text(),
		ClearActions: e.Clear, GotoTable: uint32(e.Goto), Meter: e.Meter,
		IdleTimeout: uint32(e.IdleTimeout), HardTimeout: uint32(e.HardTimeout), Flags: uint32(e.Flags),
		Cookie: fmt.Sprintf("%016x", uint64(e.Cookie)), Owner: e.Cookie.Owner().String(),
	}
	for _, a := range e.Apply {
		f.Actions = append(f.Actions, a.String())
	}
	for _, a := range e.Write {
		f.WriteActions = append(f.WriteActions, a.String())
	}
	if e.MetaMask != 0 {
		f.Metadata = fmt.Sprintf("%#x/%#x", e.Metadata, e.MetaMask)
	}
	return f
}

// Instructions writes all instructions of the entry, for people.
func (f *FlowEntry) Instructions() string {
	var parts []string
	if f.Meter != 0 {
		parts = append(parts, fmt.Sprintf("meter:%d", f.Meter))
	}
	parts = append(parts, f.Actions...)
	if f.ClearActions {
		parts = append(parts, "clear_actions")
	}
	if len(f.WriteActions) > 0 {
		parts = append(parts, "write_actions("+strings.Join(f.WriteActions, ",")+")")
	}
	if f.Metadata != "" {
		parts = append(parts, "write_metadata:"+f.Metadata)
	}
	if f.GotoTable != 0 {
		parts = append(parts, fmt.Sprintf("goto_table:%d", f.GotoTable))
	}
	if len(parts) == 0 {
		return "drop"
	}
	return strings.Join(parts, ",")
}

// Entry returns the switch and the entry that the message describes, or an
// InvalidArgument error that says which field is wrong and what it may be.
func (f *FlowEntry) Entry() (flow.DPID, flow.Entry, error) {
	e, err := f.entry()
	sw, swErr := flow.ParseDPID(f.GetDpid())
	if swErr != nil {
		err = swErr
	}
	if err != nil {
		return 0, flow.Entry{}, Errorf(codes.InvalidArgument, "flow entry: %w", err)
	}
	return sw, e, nil
}

func (f *FlowEntry) entry() (e flow.Entry, err error) {
	for _, n := range []struct {
		name  string
		value uint32
		max   uint32
	}{
		{"table", f.GetTable(), 254}, {"priority", f.GetPriority(), math.MaxUint16}, {"goto_table", f.GetGotoTable(), 254},
		{"idle_timeout", f.GetIdleTimeout(), math.MaxUint16}, {"hard_timeout", f.GetHardTimeout(), math.MaxUint16}, {"flags", f.GetFlags(), 31},
	} {
		if n.value > n.max {
			return e, fmt.Errorf("%s %d: want 0 to %d", n.name, n.value, n.max)
		}
	}
	e.Table, e.Priority, e.Goto = uint8(f.GetTable()), uint16(f.GetPriority()), uint8(f.GetGotoTable())
	e.IdleTimeout, e.HardTimeout = uint16(f.GetIdleTimeout()), uint16(f.GetHardTimeout())
	e.Flags, e.Clear, e.Meter = uint16(f.GetFlags()), f.GetClearActions(), f.GetMeter()
	if e.Goto != 0 && e.Goto <= e.Table {
		return e, fmt.Errorf("goto_table %d: want a table after table %d", e.Goto, e.Table)
	}
	if e.Match, err = flow.ParseMatch(f.GetMatch()); err != nil {
		return e, err
	}
	if e.Apply, err = parseActions(f.GetActions()); err != nil {
		return e, err
	}
	if e.Write, err = parseActions(f.GetWriteActions()); err != nil {
		return e, err
	}
	e.HasWrite = len(e.Write) > 0
	if s := f.GetCookie(); s != "" {
		c, err := strconv.ParseUint(strings.TrimPrefix(s, "0x"), 16, 64)
		if err != nil {
			return e, fmt.Errorf("cookie %q: want up to 16 hex digits", s)
		}
		e.Cookie = flow.Cookie(c)
	}
	if s := f.GetMetadata(); s != "" {
		value, mask, masked := strings.Cut(s, "/")
		e.MetaMask = math.MaxUint64
		e.Metadata, err = strconv.ParseUint(value, 0, 64)
		if err == nil && masked {
			e.MetaMask, err = strconv.ParseUint(mask, 0, 64)
		}
		if err != nil {
			return e, fmt.Errorf("metadata %q: want value/mask, such as 0x1/0xff", s)
		}
	}
	return e, nil
}

func parseActions(list []string) ([]flow.Action, error) {
	var actions []flow.Action
	for _, s := range list {
		a, err := flow.ParseAction(s)
		if err != nil {
			return nil, err
		}
		actions = append(actions, a)
	}
	return actions, nil
}
