package flow

import (
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
)

// argument says what an action's name is followed by.
type argument uint8

const (
	argNone argument = iota
	argNumber
	argTTL
	argEthType
)

// actionForms are the actions that are written as a name and at most one number.
var actionForms = [...]struct {
	kind ActionKind
	name string
	arg  argument
}{
	{ActionGroup, "group", argNumber},
	{ActionSetQueue, "set_queue", argNumber},
	{ActionPushVLAN, "push_vlan", argEthType},
	{ActionPopVLAN, "pop_vlan", argNone},
	{ActionPushMPLS, "push_mpls", argEthType},
	{ActionPopMPLS, "pop_mpls", argEthType},
	{ActionPushPBB, "push_pbb", argEthType},
	{ActionPopPBB, "pop_pbb", argNone},
	{ActionSetNwTTL, "set_ttl", argTTL},
	{ActionDecNwTTL, "dec_ttl", argNone},
	{ActionSetMPLSTTL, "set_mpls_ttl", argTTL},
	{ActionDecMPLSTTL, "dec_mpls_ttl", argNone},
	{ActionCopyTTLOut, "copy_ttl_out", argNone},
	{ActionCopyTTLIn, "copy_ttl_in", argNone},
}

// actionCalls are the actions whose arguments are in parentheses, those of Open
// vSwitch.
var actionCalls = [...]struct {
	name  string
	parse func(arguments string) (Action, error)
}{
	{"ct", parseCTText}, {"controller", parseControllerText},
	{"encap", parseEncapText}, {"decap", parseDecapText}, {"resubmit", parseResubmitText},
}

// String returns the action in the style of ovs-ofctl: "output:2",
// "controller:128", "controller(id=1)", "flood", "group:5", "set_field:02:00:00:00:00:01->eth_dst",
// "push_vlan:0x8100", "set_ttl:64", "encap(mpls)", "resubmit(,2)", "experimenter:0x2320:00ff". An output to
// the controller of the whole packet is "controller". ParseAction reads it back.
func (a Action) String() string {
	switch a.Kind {
	case ActionOutput:
		p := Port(a.Arg)
		switch {
		case p == PortController && a.MaxLen != NoBuffer:
			return fmt.Sprintf("controller:%d", a.MaxLen)
		case p <= PortMax || p.String()[0] <= '9':
			return "output:" + p.String()
		}
		return p.String()
	case ActionSetField:
		return "set_field:" + string(appendValue(nil, a.Field, a.Value)) + "->" + a.Field.String()
	case ActionExperimenter:
		if ct, ok := ParseCT(a); ok {
			return ct.String()
		}
		if c, ok := ParseController(a); ok {
			return c.String()
		}
		if text, ok := encapText(a); ok {
			return text
		}
		return fmt.Sprintf("experimenter:%#x:%x", a.Arg, a.Data)
	}
	for _, f := range &actionForms {
		if f.kind != a.Kind {
			continue
		}
		switch f.arg {
		case argNone:
			return f.name
		case argEthType:
			return fmt.Sprintf("%s:%#04x", f.name, a.Arg)
		}
		return fmt.Sprintf("%s:%d", f.name, a.Arg)
	}
	return fmt.Sprintf("action-%d:%d", uint16(a.Kind), a.Arg)
}

// ParseAction reads an action as String writes it; numbers may be decimal or
// 0x hex.
func ParseAction(s string) (Action, error) {
	for _, call := range actionCalls {
		if inner, ok := cutCall(strings.TrimSpace(s), call.name); ok {
			a, err := call.parse(inner)
			if err != nil {
				return Action{}, fmt.Errorf("action %q: %w", s, err)
			}
			return a, nil
		}
	}
	name, arg, hasArg := strings.Cut(strings.TrimSpace(s), ":")
	name = strings.ToLower(name)
	switch name {
	case "output":
		p, err := ParsePort(arg)
		if err == nil && (p == 0 || p == PortAny || p > PortMax && p < PortIn) {
			err = fmt.Errorf("port %q: packets cannot be sent there", arg)
		}
		if err != nil {
			return Action{}, fmt.Errorf("action %q: %w", s, err)
		}
		return Output(p), nil
	case "controller":
		a := Output(PortController)
		if hasArg {
			n, err := strconv.ParseUint(arg, 0, 16)
			if err != nil {
				return Action{}, fmt.Errorf("action %q: want controller:OCTETS, 0 to 65535", s)
			}
			a.MaxLen = uint16(n)
		}
		return a, nil
	case "in_port", "table", "normal", "flood", "all", "local":
		if hasArg {
			return Action{}, fmt.Errorf("action %q: %s takes no argument", s, name)
		}
		p, err := ParsePort(name)
		return Output(p), err
	case "set_field":
		return parseSetField(s, arg)
	case "resubmit":
		a, err := parseResubmitText(arg)
		if err != nil {
			err = fmt.Errorf("action %q: %w", s, err)
		}
		return a, err
	case "experimenter":
		return parseExperimenter(s, arg)
	}
	for _, f := range &actionForms {
		if f.name == name {
			v, err := f.arg.parse(arg, hasArg)
			if err != nil {
				return Action{}, fmt.Errorf("action %q: %w", s, err)
			}
			return Action{Kind: f.kind, Arg: v}, nil
		}
	}
	names := make([]string, len(actionForms))
	for i, f := range &actionForms {
		names[i] = f.name
	}
	return Action{}, fmt.Errorf("action %q: want output:PORT, controller, controller(id=N), in_port, table, normal, flood, all, local, "+
		"set_field:VALUE->FIELD, ct(…), encap(TYPE), decap(), resubmit(PORT,TABLE), experimenter:ID:HEX, or one of %s", s, strings.Join(names, ", "))
}

// parse reads the number behind an action's name.
func (g argument) parse(s string, given bool) (uint32, error) {
	if g == argNone {
		if given {
			return 0, fmt.Errorf("takes no argument")
		}
		return 0, nil
	}
	v, err := strconv.ParseUint(s, 0, 32)
	switch {
	case g == argTTL && (err != nil || v > 255):
		return 0, fmt.Errorf("want a time to live from 0 to 255")
	case g == argEthType && (err != nil || v > 0xffff):
		return 0, fmt.Errorf("want an ethertype, such as 0x8100")
	case err != nil:
		return 0, fmt.Errorf("want a number from 0 to 4294967295")
	}
	return uint32(v), nil
}

func parseSetField(s, arg string) (Action, error) {
	value, name, ok := strings.Cut(arg, "->")
	if !ok {
		return Action{}, fmt.Errorf("action %q: want set_field:VALUE->FIELD, such as set_field:10.0.0.1->ipv4_dst", s)
	}
	f, err := ParseField(name)
	if err != nil {
		return Action{}, fmt.Errorf("action %q: %w", s, err)
	}
	switch f {
	case FieldInPort, FieldInPhyPort, FieldMetadata:
		return Action{}, fmt.Errorf("action %q: %v cannot be set by an action", s, f)
	}
	v, err := f.parseValue(value)
	if err == nil && f == FieldVLAN && v == [16]byte{} {
		err = fmt.Errorf("want a VLAN from 0 to 4095; pop_vlan removes the tag")
	}
	if err != nil {
		return Action{}, fmt.Errorf("action %q: %w", s, err)
	}
	return Action{Kind: ActionSetField, Field: f, Value: v}, nil
}

func parseExperimenter(s, arg string) (Action, error) {
	id, data, _ := strings.Cut(arg, ":")
	v, err := strconv.ParseUint(id, 0, 32)
	if err == nil {
		var body []byte
		if body, err = hex.DecodeString(data); err == nil {
			return Action{Kind: ActionExperimenter, Arg: uint32(v), Data: string(body)}, nil
		}
	}
	return Action{}, fmt.Errorf("action %q: want experimenter:ID:HEX, such as experimenter:0x2320:00ff", s)
}

// FormatActions returns the actions with commas between; "drop" if there are none.
func FormatActions(list []Action) string {
	if len(list) == 0 {
		return "drop"
	}
	return strings.Join(ActionStrings(list), ",")
}

// ParseActions reads what FormatActions writes; nothing at all is as "drop".
func ParseActions(s string) ([]Action, error) {
	if s = strings.TrimSpace(s); s == "" || strings.EqualFold(s, "drop") {
		return nil, nil
	}
	return ParseActionStrings(splitOutside(s))
}

// ActionStrings returns the text of each action.
func ActionStrings(list []Action) []string {
	out := make([]string, len(list))
	for i, a := range list {
		out[i] = a.String()
	}
	return out
}

// ParseActionStrings reads one action from each string.
func ParseActionStrings(list []string) ([]Action, error) {
	var out []Action
	for _, s := range list {
		a, err := ParseAction(s)
		if err != nil {
			return nil, err
		}
		out = append(out, a)
	}
	return out, nil
}
