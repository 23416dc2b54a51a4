package forwarding

import (
	"maps"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
)

// isFunction reports whether a port is of a chain's function, so that nothing is flooded
// there; mu is held. While chain does not run, what the switch has of it goes on.
func (p *edgePorts) isFunction(port flow.Port) bool {
	is, said := p.functions[port]
	return is || !said && p.found[port]
}

// functionChanged handles the event: a port is one of a function of a chain, or no more.
func (e *engine) functionChanged(ev *api.ChainPortChanged) {
	at := ev.GetAt().Flow()
	p := e.edge(at.Switch)
	p.updateOne(at.Port, func() { p.functions[at.Port] = !ev.Gone })
}

// functionsFound takes from a switch's report which of its ports are of functions. It
// reports whether that is news.
func (e *engine) functionsFound(ev *api.FlowsObserved) bool {
	sw, err := flow.ParseDPID(ev.Dpid)
	if err != nil || ev.Owner != flow.OwnerChains.String() {
		return false
	}
	found := map[flow.Port]bool{}
	for _, m := range ev.Flows {
		if _, entry, err := m.Entry(); err == nil && entry.Table == flow.TableIngress && entry.Priority == flow.PriorityChainPort {
			found[entry.Match.Key.InPort] = true
		}
	}
	p := e.edge(sw)
	p.mu.Lock()
	same := maps.Equal(found, p.found)
	p.mu.Unlock()
	if !same {
		p.update(func() { p.found = found })
	}
	return !same
}
