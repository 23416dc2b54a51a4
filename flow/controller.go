package flow

import (
	"encoding/binary"
	"fmt"
	"strconv"
	"strings"
)

// Controller is Open vSwitch's action controller (NXAST_CONTROLLER,
// ovs-actions(7)): it sends the packet to the controller connections that have
// asked for a number. An output to PortController goes to those that have not,
// whose number is 0.
type Controller struct {
	ID     uint16 // of the connection
	MaxLen uint16 // octets of the packet to send; NoBuffer is all
	Reason Reason // of the packet-in
}

// niciraController is the number of the action (nicira-ext.h of Open vSwitch).
const niciraController = 20

var reasonNames = [...]string{ReasonNoMatch: "no_match", ReasonAction: "action", ReasonInvalidTTL: "invalid_ttl"}

// ToController returns the action that sends the whole packet to the controller
// connections with a number, as a table miss or an entry would to all: for number
// 0 that is an output to PortController.
func ToController(id uint16, reason Reason) Action {
	if id == 0 {
		return Output(PortController)
	}
	return Controller{ID: id, MaxLen: NoBuffer, Reason: reason}.Action()
}

// Action returns the action as OpenFlow carries it: an experimenter's.
func (c Controller) Action() Action {
	b := make([]byte, 8)
	binary.BigEndian.PutUint16(b, niciraController)
	binary.BigEndian.PutUint16(b[2:], c.MaxLen)
	binary.BigEndian.PutUint16(b[4:], c.ID)
	b[6] = byte(c.Reason)
	return Action{Kind: ActionExperimenter, Arg: Nicira, Data: string(b)}
}

// ParseController reads a controller action from an experimenter's; false if it
// is another action, or malformed.
func ParseController(a Action) (Controller, bool) {
	b := a.Data
	if a.Kind != ActionExperimenter || a.Arg != Nicira || len(b) != 8 || b[0] != 0 || b[1] != niciraController || b[7] != 0 || int(b[6]) >= len(reasonNames) {
		return Controller{}, false
	}
	return Controller{
		ID:     uint16(b[4])<<8 | uint16(b[5]),
		MaxLen: uint16(b[2])<<8 | uint16(b[3]),
		Reason: Reason(b[6]),
	}, true
}

// String returns the action as ovs-ofctl writes it, such as
// "controller(reason=no_match,max_len=128,id=1)". ParseAction reads it back.
func (c Controller) String() string {
	var b strings.Builder
	b.WriteString("controller(")
	if c.Reason != ReasonAction && int(c.Reason) < len(reasonNames) {
		fmt.Fprintf(&b, "reason=%s,", reasonNames[c.Reason])
	}
	if c.MaxLen != NoBuffer {
		fmt.Fprintf(&b, "max_len=%d,", c.MaxLen)
	}
	fmt.Fprintf(&b, "id=%d)", c.ID)
	return b.String()
}

// parseControllerText reads what is between the parentheses of a controller.
func parseControllerText(s string) (Action, error) {
	c := Controller{MaxLen: NoBuffer, Reason: ReasonAction}
	for _, part := range strings.Split(s, ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(part), "=")
		var err error
		var n uint64
		switch name {
		case "id":
			n, err = strconv.ParseUint(value, 0, 16)
			c.ID = uint16(n)
		case "max_len":
			n, err = strconv.ParseUint(value, 0, 16)
			c.MaxLen = uint16(n)
		case "reason":
			c.Reason, err = parseReason(value)
		default:
			err = fmt.Errorf("want id=N, max_len=OCTETS and reason=REASON")
		}
		if err != nil {
			return Action{}, fmt.Errorf("%q: %w", part, err)
		}
	}
	return c.Action(), nil
}

func parseReason(s string) (Reason, error) {
	for r, name := range reasonNames {
		if strings.EqualFold(name, s) {
			return Reason(r), nil
		}
	}
	return 0, fmt.Errorf("want one of %s", strings.Join(reasonNames[:], ", "))
}
