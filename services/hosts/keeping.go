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

// describeSwitch records what a switch says of itself, nil if it has gone.
func (t *table) describeSwitch(sw flow.DPID, info *api.Switch) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if delete(t.keepers, sw); info.GetConnected() {
		t.keepers[sw] = proto.CloneOf(info)
	}
}

// keepable returns an error if a connected switch cannot keep bindings: what goes along
// routes, and into floods, never comes to the controller. It is called with mu held.
func (t *table) keepable(what string) error {
	if !t.cfg.Guard {
		return nil
	}
	return api.CheckNeeds(what, "with hosts.guard: false the controller alone enforces bindings, of what comes to it", maps.Values(t.keepers), api.NeedTables)
}

// addState adds its state to the message of a binding.
func (t *table) addState(m *api.HostBinding, standing func() (string, error)) {
	state, err := standing()
	mac, _ := flow.ParseMAC(m.Mac)
	t.mu.Lock()
	defer t.mu.Unlock()
	if one := t.bindings.of[newID(mac, uint16(m.Vlan))]; one != nil {
		t.setState(m, one, state, err)
	}
}

// setState sets the state of a binding, by how the switches stand together. It is called
// with mu held.
func (t *table) setState(m *api.HostBinding, one *binding, standing string, err error) {
	m.State = stateInForce
	if !t.cfg.Guard {
		m.Reason = "the controller alone enforces it, of what comes to it: hosts.guard is false"
		return
	}
	if why := t.keepable("it"); why != nil {
		m.State, m.Reason = stateNotInForce, why.Error()
		return
	}
	for sw, from := range t.beyond {
		if one.who >= from {
			m.State = stateNotInForce
			m.Reason = fmt.Sprintf("switch %v: %d entries of bindings are as many as it gets; there the controller alone enforces it, of what comes to it", sw, guardMost)
			return
		}
	}
	switch {
	case standing == "failing":
		m.State, m.Reason = stateNotInForce, err.Error()
	case standing != "in_sync" || t.bindings.count != t.handed:
		m.State = statePending
	}
}
