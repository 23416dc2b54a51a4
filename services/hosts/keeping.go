package hosts

import (
	"fmt"
	"maps"

	"google.golang.org/protobuf/proto"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
)

// The states of a binding.
const (
	stateInForce    = "in force"
	statePending    = "pending"
	stateNotInForce = "not in force"
)

// enforcement holds how far the switches enforce the bindings. keepable and setState are
// called with mu held, all others take it.
type enforcement struct {
	shared
	bindings *bindings                 // the table's
	keepers  map[flow.DPID]*api.Switch // the connected switches
	beyond   map[flow.DPID]id          // the first binding for which a switch has no entries
	handed   uint64                    // bindings.count that the switches have been declared
}

// describeSwitch records what a switch says of itself, nil if it has gone.
func (e *enforcement) describeSwitch(sw flow.DPID, info *api.Switch) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if delete(e.keepers, sw); info.GetConnected() {
		e.keepers[sw] = proto.CloneOf(info)
	}
}

// keepable returns an error if a connected switch cannot keep bindings: what goes along
// routes, and into floods, never comes to the controller.
func (e *enforcement) keepable(what string) error {
	if !e.cfg.Guard {
		return nil
	}
	return api.CheckNeeds(what, "with hosts.guard: false the controller alone enforces bindings, of what comes to it", maps.Values(e.keepers), api.NeedTables)
}

// addState adds its state to the message of a binding.
func (e *enforcement) addState(m *api.HostBinding, standing func() (string, error)) {
	state, err := standing()
	mac, _ := flow.ParseMAC(m.Mac)
	e.mu.Lock()
	defer e.mu.Unlock()
	if one := e.bindings.of[newID(mac, uint16(m.Vlan))]; one != nil {
		e.setState(m, one, state, err)
	}
}

// setState sets the state of a binding, by how the switches stand together.
func (e *enforcement) setState(m *api.HostBinding, one *binding, standing string, err error) {
	m.State = stateInForce
	if !e.cfg.Guard {
		m.Reason = "the controller alone enforces it, of what comes to it: hosts.guard is false"
		return
	}
	if why := e.keepable("it"); why != nil {
		m.State, m.Reason = stateNotInForce, why.Error()
		return
	}
	for sw, from := range e.beyond {
		if one.who >= from {
			m.State = stateNotInForce
			m.Reason = fmt.Sprintf("switch %v: %d entries of bindings are as many as it gets; there the controller alone enforces it, of what comes to it", sw, guardMost)
			return
		}
	}
	switch {
	case standing == "failing":
		m.State, m.Reason = stateNotInForce, err.Error()
	case standing != "in_sync" || e.bindings.count != e.handed:
		m.State = statePending
	}
}
