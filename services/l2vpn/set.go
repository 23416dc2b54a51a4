package l2vpn

import (
	"github.com/weft-sdn/weft/flow"
)

// A set is what a switch should have of circuits.
type set struct {
	besides besides
	marks   bool // the switch's meters mark what is above a rate
	entries []flow.Entry
	groups  []flow.Group
	meters  []flow.Meter
}

// enter adds an entry of the circuit with a number, by which its counters are known;
// 0: of a port.
func (s *set) enter(id uint32, e flow.Entry) {
	e.Cookie = flow.NewCookie(flow.OwnerCircuits, 0, id)
	s.entries = append(s.entries, e)
}
