package forwarding

import (
	"maps"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
)

// A reservation is the ports of a switch that are of one other service, to which nothing is
// flooded: those of the functions of chains, and those that are whole ends of circuits.
type reservation struct {
	said  map[flow.Port]bool // whether a port is, as the service has said
	found map[flow.Port]bool // those that the switch's entries name; what the service has said counts more
}

// reserving are the services with reservations, by what they own, and of each the priority
// of an entry in TableIngress that matches all packets of such a port.
var reserving = map[flow.Owner]uint16{flow.OwnerChains: flow.PriorityChainPort, flow.OwnerCircuits: flow.PriorityCircuit}

// has reports whether a port is of the service. While it does not run, what the switch has of
// it goes on.
func (r reservation) has(port flow.Port) bool {
	is, said := r.said[port]
	return is || !said && r.found[port]
}

// isReserved reports whether nothing is flooded to a port; mu is held.
func (p *edgePorts) isReserved(port flow.Port) bool {
	for _, r := range p.reserved {
		if r.has(port) {
			return true
		}
	}
	return false
}

// reservedOf returns what a service has reserved; mu is held.
func (p *edgePorts) reservedOf(o flow.Owner) *reservation {
	r := p.reserved[o]
	if r == nil {
		r = &reservation{said: map[flow.Port]bool{}}
		p.reserved[o] = r
	}
	return r
}

// reservedChanged handles the events of services: a port is reserved, or no more.
func (e *engine) reservedChanged(o flow.Owner, m *api.Location, gone bool) {
	at := m.Flow()
	p := e.edge(at.Switch)
	p.updateOne(at.Port, func() { p.reservedOf(o).said[at.Port] = !gone })
}

// reservedFound takes from a switch's report which of its ports are reserved. It reports
// whether that is news.
func (e *engine) reservedFound(ev *api.FlowsObserved) bool {
	sw, err := flow.ParseDPID(ev.Dpid)
	if err != nil {
		return false
	}
	for owner, priority := range reserving {
		if ev.Owner == owner.String() {
			return e.edge(sw).find(owner, priority, ev.Flows)
		}
	}
	return false
}

// find takes from entries of a service which ports are reserved. It reports whether that is
// news.
func (p *edgePorts) find(owner flow.Owner, priority uint16, list []*api.FlowEntry) bool {
	found := map[flow.Port]bool{}
	for _, m := range list {
		_, entry, err := m.Entry()
		if port := entry.Match.Key.InPort; err == nil && entry.Table == flow.TableIngress && entry.Priority == priority && entry.Match == (flow.Match{}).WithInPort(port) {
			found[port] = true
		}
	}
	p.mu.Lock()
	r := p.reservedOf(owner)
	same := maps.Equal(found, r.found)
	p.mu.Unlock()
	if !same {
		p.update(func() { r.found = found })
	}
	return !same
}
