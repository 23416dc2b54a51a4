package forwarding

import (
	"cmp"
	"maps"
	"slices"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
)

// A reservation is what one other service has of a switch's ports, to which nothing is flooded:
// the ports of the functions of chains; the ports, or VLANs of ports, of circuits.
type reservation struct {
	announced map[portVLAN]bool // whether it is so, as the service says
	found     map[portVLAN]bool // what the switch's entries name; what the service says counts more
}

// portVLAN is a VLAN identifier at a port; 0: all frames.
type portVLAN struct {
	port flow.Port
	vlan uint16
}

// reserving are the services with reservations, by what they own, and of each the priorities
// of an entry in TableIngress that matches all packets of such a port, or of VLANs.
var reserving = map[flow.Owner][]uint16{flow.OwnerChains: {flow.PriorityChainPort}, flow.OwnerCircuits: {flow.PriorityCircuit, flow.PriorityCircuitRest}}

// has reports whether something is reserved. While the service does not run, what the switch
// has of it goes on.
func (r reservation) has(k portVLAN) bool {
	is, known := r.announced[k]
	return is || !known && r.found[k]
}

// isReserved reports whether nothing is flooded to a port, or to a VLAN there; mu is held.
func (p *edgePorts) isReserved(k portVLAN) bool {
	for _, r := range p.reserved {
		if r.has(k) {
			return true
		}
	}
	return false
}

// reservedVLANs returns the ports, in order, to which nothing of a VLAN is flooded, by its
// identifier; nil if there are none. mu is held.
func (p *edgePorts) reservedVLANs() (of map[uint16][]flow.Port) {
	for _, r := range p.reserved {
		for _, set := range []map[portVLAN]bool{r.announced, r.found} {
			for k := range set {
				if k.vlan == 0 || !r.has(k) || slices.Contains(of[k.vlan], k.port) {
					continue
				}
				if of == nil {
					of = map[uint16][]flow.Port{}
				}
				of[k.vlan] = append(of[k.vlan], k.port)
			}
		}
	}
	for _, list := range of {
		slices.Sort(list)
	}
	return of
}

// reservation returns what a service has reserved; mu is held.
func (p *edgePorts) reservation(o flow.Owner) *reservation {
	r := p.reserved[o]
	if r == nil {
		r = &reservation{announced: map[portVLAN]bool{}}
		p.reserved[o] = r
	}
	return r
}

func (p *edgePorts) findReserved(owner flow.Owner, list []*api.FlowEntry) bool {
	found := map[portVLAN]bool{}
	for _, m := range list {
		_, entry, err := m.Entry()
		if err != nil || entry.Table != flow.TableIngress || !slices.Contains(reserving[owner], entry.Priority) {
			continue
		}
		port := entry.Match.Key.InPort
		if entry.Match == (flow.Match{}).WithInPort(port) {
			found[portVLAN{port, 0}] = true
			continue
		}
		id, mask := entry.Match.Key.VLAN, cmp.Or(entry.Match.Mask.VLAN, 0xfff|flow.VLANPresent)
		if entry.Match != (flow.VLANBlock{ID: id, Mask: mask}).In(flow.Match{}.WithInPort(port)) {
			continue
		}
		for vlan := uint16(1); vlan <= 4094; vlan++ {
			if (vlan|flow.VLANPresent)&mask == id&mask {
				found[portVLAN{port, vlan}] = true
			}
		}
	}
	p.mu.Lock()
	r := p.reservation(owner)
	same := maps.Equal(found, r.found)
	p.mu.Unlock()
	if !same {
		p.update(func() { r.found = found })
	}
	return !same
}
