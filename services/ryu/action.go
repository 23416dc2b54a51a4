package ryu

import (
	"encoding/base64"
	"fmt"
	"math"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
)

// plainActions are the actions without argument, and ethertypeActions those
// whose argument is an ethertype.
var (
	plainActions = map[string]flow.ActionKind{
		"COPY_TTL_OUT": flow.ActionCopyTTLOut, "COPY_TTL_IN": flow.ActionCopyTTLIn, "DEC_MPLS_TTL": flow.ActionDecMPLSTTL,
		"POP_VLAN": flow.ActionPopVLAN, "DEC_NW_TTL": flow.ActionDecNwTTL, "POP_PBB": flow.ActionPopPBB,
	}
	ethertypeActions = map[string]flow.ActionKind{
		"PUSH_VLAN": flow.ActionPushVLAN, "PUSH_MPLS": flow.ActionPushMPLS, "POP_MPLS": flow.ActionPopMPLS, "PUSH_PBB": flow.ActionPushPBB,
	}
)

// readAction reads one action, false if its type is not an action's.
func readAction(d dict) (a flow.Action, ok bool, err error) {
	kind, err := d.text("type", "")
	if err != nil {
		return a, false, err
	}
	arg := func(name string, most uint64) {
		var n uint64
		if _, given := d[name]; !given {
			err = bad("action %s: needs %s", kind, name)
			return
		}
		n, err = d.number(name, 0, most)
		a.Arg = uint32(n)
	}
	id := func(r *reserved, name string) {
		if _, given := d[name]; !given {
			err = bad("action %s: needs %s", kind, name)
			return
		}
		a.Arg, err = r.in(d, name, 0)
	}
	if k, plain := plainActions[kind]; plain {
		return flow.Action{Kind: k}, true, nil
	}
	if k, typed := ethertypeActions[kind]; typed {
		a.Kind = k
		arg("ethertype", math.MaxUint16)
		return a, true, err
	}
	switch kind {
	case "OUTPUT":
		a.Kind = flow.ActionOutput
		if a.Arg, err = ports.in(d, "port", uint32(flow.PortAny)); err != nil {
			return a, true, err
		}
		n, e := lengths.in(d, "max_len", 0xffe5)
		if err = e; err == nil && n > math.MaxUint16 {
			err = bad("action OUTPUT: max_len %d: want 0 to 65535", n)
		}
		a.MaxLen = uint16(n)
	case "SET_MPLS_TTL":
		a.Kind = flow.ActionSetMPLSTTL
		arg("mpls_ttl", math.MaxUint8)
	case "SET_NW_TTL":
		a.Kind = flow.ActionSetNwTTL
		arg("nw_ttl", math.MaxUint8)
	case "SET_QUEUE":
		a.Kind = flow.ActionSetQueue
		id(&queues, "queue_id")
	case "GROUP":
		a.Kind = flow.ActionGroup
		id(&groups, "group_id")
	case "SET_FIELD":
		a, err = readSetField(d)
	case "EXPERIMENTER":
		a.Kind = flow.ActionExperimenter
		if arg("experimenter", math.MaxUint32); err != nil {
			return a, true, err
		}
		var data []byte
		if data, err = readData(d); err == nil {
			for len(data)%8 != 0 { // the action's length is a multiple of eight
				data = append(data, 0)
			}
			a.Data = string(data)
		}
	default:
		return a, false, nil
	}
	return a, true, err
}

func readSetField(d dict) (flow.Action, error) {
	name, err := d.text("field", "")
	if err != nil {
		return flow.Action{}, err
	}
	f, err := flow.ParseField(name)
	if err != nil || f.String() != name {
		return flow.Action{}, bad("action SET_FIELD: unknown field %.40q", name)
	}
	value, err := fieldValue(f, d["value"])
	if err != nil {
		return flow.Action{}, bad("action SET_FIELD %s: %v", name, err)
	}
	return flow.Action{Kind: flow.ActionSetField, Field: f, Value: value}, nil
}

// readData reads data, which is text or base64 according to data_type.
func readData(d dict) ([]byte, error) {
	kind, err := d.text("data_type", "ascii")
	if err != nil {
		return nil, err
	}
	text, err := d.text("data", "")
	if err != nil {
		return nil, err
	}
	switch kind {
	case "ascii":
		return []byte(text), nil
	case "base64":
		data, err := base64.StdEncoding.DecodeString(text)
		if err != nil {
			return nil, bad("data: %v", err)
		}
		return data, nil
	}
	return nil, bad("data_type: %.40q: want ascii or base64", kind)
}

// readActions reads the list of actions and instructions of an entry into e.
func readActions(list []any, e *flow.Entry) error {
	seen := map[string]bool{}
	for i, v := range list {
		d, ok := v.(dict)
		if !ok {
			return bad("actions: number %d: want a dictionary", i+1)
		}
		a, ok, err := readAction(d)
		if err != nil {
			return err
		}
		if ok {
			e.Apply = append(e.Apply, a)
			continue
		}
		kind, _ := d.text("type", "")
		if seen[kind] {
			return bad("actions: %s is given twice", kind)
		}
		seen[kind] = true
		if err := readInstruction(kind, d, e); err != nil {
			return err
		}
	}
	return nil
}

// readInstruction reads one of the instructions that Ryu has among the actions.
func readInstruction(kind string, d dict, e *flow.Entry) error {
	switch kind {
	case "WRITE_ACTIONS":
		list, err := d.list("actions")
		if err != nil {
			return err
		}
		e.Write, err = readPlain(list)
		return err
	case "CLEAR_ACTIONS":
		e.Clear = true
	case "GOTO_TABLE":
		n, err := tables.in(d, "table_id", 0)
		if err == nil && (n <= uint32(e.Table) || n > 0xfe) {
			err = bad("GOTO_TABLE: table_id %d: want a table after table %d", n, e.Table)
		}
		e.Goto = uint8(n)
		return err
	case "WRITE_METADATA":
		if _, ok := d["metadata"]; !ok {
			return bad("WRITE_METADATA: needs metadata")
		}
		var err error
		if e.Metadata, err = d.number("metadata", 0, math.MaxUint64); err != nil {
			return err
		}
		if e.MetaMask, err = d.number("metadata_mask", math.MaxUint64, math.MaxUint64); err == nil && e.MetaMask == 0 {
			err = bad("WRITE_METADATA: metadata_mask 0: writes nothing")
		}
		return err
	case "METER":
		n, err := meters.in(d, "meter_id", 0)
		if err == nil && n == 0 {
			err = bad("METER: meter_id: want 1 to %d", uint32(0xffff0000))
		}
		e.Meter = n
		return err
	default:
		return bad("actions: unknown type %.40q", kind)
	}
	return nil
}

// readPlain reads a list that may contain only actions.
func readPlain(list []any) ([]flow.Action, error) {
	var actions []flow.Action
	for i, v := range list {
		d, ok := v.(dict)
		if !ok {
			return nil, bad("actions: number %d: want a dictionary", i+1)
		}
		a, ok, err := readAction(d)
		if err != nil {
			return nil, err
		}
		if !ok {
			kind, _ := d.text("type", "")
			return nil, bad("actions: %.40q is no action", kind)
		}
		actions = append(actions, a)
	}
	return actions, nil
}

// showAction returns an action in Ryu's form.
func showAction(a *flow.Action) string {
	for name, k := range plainActions {
		if a.Kind == k {
			return name
		}
	}
	for name, k := range ethertypeActions {
		if a.Kind == k {
			return fmt.Sprint(name, ":", a.Arg)
		}
	}
	switch a.Kind {
	case flow.ActionOutput:
		return "OUTPUT:" + ports.text(a.Arg)
	case flow.ActionSetMPLSTTL:
		return fmt.Sprint("SET_MPLS_TTL:", a.Arg)
	case flow.ActionSetNwTTL:
		return fmt.Sprint("SET_NW_TTL:", a.Arg)
	case flow.ActionSetQueue:
		return "SET_QUEUE:" + queues.text(a.Arg)
	case flow.ActionGroup:
		return "GROUP:" + groups.text(a.Arg)
	case flow.ActionSetField:
		return fmt.Sprintf("SET_FIELD: {%v:%v}", a.Field, showValue(a.Field, a.Value))
	case flow.ActionExperimenter:
		return fmt.Sprintf("EXPERIMENTER: {experimenter:%d, data:%s}", a.Arg, base64.StdEncoding.EncodeToString([]byte(a.Data)))
	}
	return "UNKNOWN"
}

// showTexts returns actions, given as package flow writes them, in Ryu's form.
func showTexts(list []string) []string {
	out := []string{}
	for _, text := range list {
		a := parseAction(text)
		out = append(out, showAction(&a))
	}
	return out
}

// parseAction reads an action as package flow writes it. It also reads actions on
// fields that OpenFlow does not let actions set: Open vSwitch has such. An
// unknown kind becomes unknownAction.
func parseAction(text string) flow.Action {
	a, err := flow.ParseAction(text)
	if err == nil {
		return a
	}
	if value, name, ok := strings.Cut(strings.TrimPrefix(text, "set_field:"), "->"); ok {
		if f, err := flow.ParseField(name); err == nil {
			if v, err := fieldValue(f, value); err == nil {
				return flow.Action{Kind: flow.ActionSetField, Field: f, Value: v}
			}
		}
	}
	return flow.Action{Kind: unknownAction}
}

// unknownAction is the kind of no action.
const unknownAction flow.ActionKind = 0xfffe

// entryOf reads an entry as a switch has it.
func entryOf(f *api.FlowRecord) (flow.Entry, error) {
	plain := proto.CloneOf(f.Flow)
	plain.Actions, plain.WriteActions = nil, nil
	_, e, err := plain.Entry()
	for _, text := range f.Flow.Actions {
		e.Apply = append(e.Apply, parseAction(text))
	}
	for _, text := range f.Flow.WriteActions {
		e.Write = append(e.Write, parseAction(text))
	}
	return e, err
}

// showActions returns the instructions of an entry in the order in which a
// switch runs them, which is that in which Open vSwitch lists them.
func showActions(e *flow.Entry) []any {
	out := []any{}
	if e.Meter != 0 {
		out = append(out, "METER:"+meters.text(e.Meter))
	}
	for i := range e.Apply {
		out = append(out, showAction(&e.Apply[i]))
	}
	if e.Clear {
		out = append(out, "CLEAR_ACTIONS")
	}
	if len(e.Write) > 0 {
		var list []string
		for i := range e.Write {
			list = append(list, showAction(&e.Write[i]))
		}
		out = append(out, map[string]any{"WRITE_ACTIONS": list})
	}
	if e.MetaMask != 0 {
		out = append(out, fmt.Sprintf("WRITE_METADATA:0x%x/0x%x", e.Metadata, e.MetaMask))
	}
	if e.Goto != 0 {
		out = append(out, "GOTO_TABLE:"+tables.text(uint32(e.Goto)))
	}
	return out
}
