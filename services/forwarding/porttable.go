package forwarding

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
)

// A portTable has the ports of all switches.
type portTable struct {
	recentRoom atomic.Int64 // how many pairs of a switch are remembered

	mu    sync.RWMutex // guards edges
	edges map[flow.DPID]*edgePorts
}

// table returns the table of a switch for routes. For a switch that is not
// known yet, it returns the table that most switches use.
func (t *portTable) table(sw flow.DPID) uint8 {
	t.mu.RLock()
	p := t.edges[sw]
	t.mu.RUnlock()
	if p != nil {
		if n := p.table.Load(); n >= 0 {
			return uint8(n)
		}
	}
	return flow.TableForward
}

// edge returns the edge ports of a switch.
func (t *portTable) edge(sw flow.DPID) *edgePorts {
	t.mu.RLock()
	p := t.edges[sw]
	t.mu.RUnlock()
	if p != nil {
		return p
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if p = t.edges[sw]; p == nil {
		p = newEdgePorts()
		t.edges[sw] = p
		t.recentRoom.Store(int64(min(recentPerSwitch, recentTotal/len(t.edges))))
	}
	return p
}

// eachEdge calls f for every switch that floods to any port.
func (t *portTable) eachEdge(f func(flow.DPID, *edgeList)) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	for sw, p := range t.edges {
		if list := p.list(); len(list.ports) > 0 {
			f(sw, list)
		}
	}
}

// drop forgets a switch that is gone. What its ports are stays as discovery has said: that
// says when it is not so any more, and says nothing where its own news of the switch differ.
func (t *portTable) drop(sw flow.DPID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	p := t.edges[sw]
	if p == nil {
		return
	}
	p.update(func() { // its stage may still be in use for a moment
		p.connected = false
		clear(p.up)
		for _, r := range p.reserved {
			clear(r.found)
		}
		p.floods.Clear()
	})
	t.forgetPorts(sw, p)
}

// forgetPorts forgets the ports of a switch if nothing is known of them. It is called with mu
// held.
func (t *portTable) forgetPorts(sw flow.DPID, p *edgePorts) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, r := range p.reserved {
		if len(r.announced) > 0 {
			return
		}
	}
	if !p.connected && len(p.role) == 0 {
		delete(t.edges, sw)
	}
}

func (t *portTable) portChanged(ev *api.PortChanged) {
	sw, err := flow.ParseDPID(ev.Port.Dpid)
	if err != nil {
		return
	}
	p, port := t.edge(sw), flow.Port(ev.Port.Port)
	p.updateOne(port, func() {
		if p.up[port] = ev.Port.Up; ev.Removed {
			delete(p.up, port)
			p.floods.Forget(port)
		}
	})
}

func (t *portTable) roleChanged(ev *api.PortRoleChanged) {
	at := ev.Port.At.Flow()
	if ev.Gone {
		t.portGone(at)
		return
	}
	p := t.edge(at.Switch)
	p.updateOne(at.Port, func() { p.role[at.Port] = ev.Port.Role })
}

// portGone forgets the role of a port that is gone, and the switch if nothing
// else is known of it.
func (t *portTable) portGone(at flow.Location) {
	t.mu.Lock()
	defer t.mu.Unlock()
	p := t.edges[at.Switch]
	if p == nil {
		return
	}
	p.updateOne(at.Port, func() { delete(p.role, at.Port) })
	t.forgetPorts(at.Switch, p)
}

// anyUp reports whether one of some ports of a switch is up.
func (t *portTable) anyUp(sw flow.DPID, list []flow.Port) bool {
	p := t.edge(sw)
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.ContainsFunc(list, func(port flow.Port) bool { return p.up[port] })
}

// setReserved takes what a service says of a port, or of a VLAN there.
func (t *portTable) setReserved(o flow.Owner, m *api.Location, vlan uint32, is bool) {
	at := m.Flow()
	p := t.edge(at.Switch)
	p.update(func() { p.reservation(o).announced[portVLAN{at.Port, uint16(vlan)}] = is })
}

// findReserved takes from a switch's report what is reserved there. It reports whether that
// is news.
func (t *portTable) findReserved(ev *api.FlowsObserved) bool {
	sw, err := flow.ParseDPID(ev.Dpid)
	if err != nil {
		return false
	}
	for owner := range reserving {
		if ev.Owner == owner.String() {
			return t.edge(sw).findReserved(owner, ev.Flows)
		}
	}
	return false
}

// isEdge reports whether a port is an edge port that is up.
func (t *portTable) isEdge(at flow.Location) bool {
	p := t.edge(at.Switch)
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.isEdge(at.Port)
}

// setSwitch takes what the southbound says of a switch: that it has gone, or its ports.
func (t *portTable) setSwitch(sw flow.DPID, ev *api.SwitchChanged) {
	if !ev.Switch.Connected {
		t.drop(sw)
		return
	}
	p := t.edge(sw)
	p.table.Store(int32(tableOf(ev.Switch)))
	p.update(func() {
		p.connected = true
		h, _ := flow.ParseHybrid(ev.Switch.Description)
		p.hybrid = h != nil
		clear(p.up)
		p.floods.Clear()
		for _, port := range ev.Ports {
			p.up[flow.Port(port.Port)] = port.Up
		}
	})
}

// recentPerSwitch limits the cached pairs of a switch, and thus their memory to
// 192 KiB; recentTotal limits those of all switches together.
const (
	recentPerSwitch = 4096
	recentTotal     = 1 << 18
)
