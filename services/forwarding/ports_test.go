package forwarding

import (
	"slices"
	"testing"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
)

// TestRolesOutliveSessions: what a port is stays while its switch is away, unless discovery
// says otherwise. Discovery, whose news of the switch come by another way, may not have seen it
// go, and then says nothing when it is back.
func TestRolesOutliveSessions(t *testing.T) {
	net, a, _ := line(t, 2)
	e := testEngine(t, net, nil, a.at)
	sw := a.at.Switch
	other := flow.Location{Switch: sw, Port: 78}
	connected := func(is bool) {
		ev := &api.SwitchChanged{Switch: &api.Switch{Dpid: sw.String(), Connected: is}}
		if is {
			for _, port := range []flow.Port{a.at.Port, other.Port} {
				ev.Ports = append(ev.Ports, &api.Port{Dpid: sw.String(), Port: uint32(port), Up: true})
			}
		}
		e.switchChanged(ev)
	}
	expect := func(when string, want ...flow.Port) {
		t.Helper()
		if got := e.edge(sw).list().ports; !slices.Equal(got, want) {
			t.Errorf("%s: edge ports %v, want %v", when, got, want)
		}
	}
	connected(true)
	setRole(e.portTable, a.at, flow.RoleEdge)
	setRole(e.portTable, other, flow.RoleEdge)
	expect("connected", a.at.Port, other.Port)
	connected(false)
	expect("away")
	e.roleChanged(&api.PortRoleChanged{Port: &api.PortRole{At: api.NewLocation(other)}, Gone: true})
	connected(true)
	expect("back", a.at.Port)
}
