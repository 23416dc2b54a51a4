package forwarding

import (
	"slices"

	"weft/api"
	"weft/flow"
)

// update changes what is known of a switch's ports and makes the list anew.
func (p *edgePorts) update(change func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change()
	p.changes++
	list := []flow.Port{}
	for port, role := range p.role {
		if role == flow.RoleEdge.String() && p.up[port] {
			list = append(list, port)
		}
	}
	slices.Sort(list)
	if !slices.Equal(list, *p.ports.Load()) {
		p.ports.Store(&list)
	}
}

func (e *engine) switchChanged(ev *api.SwitchChanged) {
	sw, err := flow.ParseDPID(ev.Switch.Dpid)
	if err != nil {
		return
	}
	e.adoption.switchChanged(sw, ev.Switch, e.now())
	p := e.edge(sw)
	if ev.Switch.Connected {
		p.table.Store(int32(tableOf(ev.Switch)))
	}
	p.update(func() {
		clear(p.up)
		clear(p.floods)
		if !ev.Switch.Connected {
			clear(p.role)
			return
		}
		for _, port := range ev.Ports {
			p.up[flow.Port(port.Port)] = port.Up
		}
	})
}

// tableOf returns the table of a switch for what forwarding wants there.
func tableOf(m *api.Switch) uint8 { return flow.ForwardTable(m.Tables, m.Openflow == "1.0") }

func (e *engine) portChanged(ev *api.PortChanged) {
	sw, err := flow.ParseDPID(ev.Port.Dpid)
	if err != nil {
		return
	}
	p := e.edge(sw)
	p.update(func() { p.up[flow.Port(ev.Port.Port)] = ev.Port.Up && !ev.Removed })
}

func (e *engine) roleChanged(ev *api.PortRoleChanged) {
	at := ev.Port.At.Flow()
	p := e.edge(at.Switch)
	p.update(func() { p.role[at.Port] = ev.Port.Role })
}

// anyUp reports whether one of some ports of a switch is up.
func (e *engine) anyUp(sw flow.DPID, list []flow.Port) bool {
	p := e.edge(sw)
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.ContainsFunc(list, func(port flow.Port) bool { return p.up[port] })
}
