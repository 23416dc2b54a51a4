package forwarding

import (
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/internal/ratelimit"
)

// edgePorts are the ports of one switch, and the allowance of each for packets
// that the controller floods.
type edgePorts struct {
	edges atomic.Pointer[edgeList] // nil from a change until the next list
	table atomic.Int32             // table for routes; negative if unknown

	floods *ratelimit.Keyed[flow.Port] // has a lock of its own

	mu        sync.Mutex // guards all below
	connected bool
	hybrid    bool // by what the switch says of itself
	up        map[flow.Port]bool
	role      map[flow.Port]string
	reserved  map[flow.Owner]*reservation
	changes   uint64 // of up, role and reserved
}

// floodPorts bounds the ports of a switch whose floods are limited one by one.
const floodPorts = 1 << 16

func newEdgePorts() *edgePorts {
	p := &edgePorts{up: map[flow.Port]bool{}, role: map[flow.Port]string{}, reserved: map[flow.Owner]*reservation{}, floods: ratelimit.NewKeyed[flow.Port](floodPorts)}
	p.table.Store(-1)
	return p
}

// edgeList is where a switch floods: its edge ports that are up and not reserved, in order, but
// frames of a VLAN not to those that are reserved for it. It is read-only.
type edgeList struct {
	ports []flow.Port
	but   map[uint16][]flow.Port // by VLAN identifier, in order
}

// without returns the ports of a list to which frames of a VLAN, as in Key.VLAN, are flooded.
func (l *edgeList) without(list []flow.Port, vlan uint16) []flow.Port {
	but := l.but[vlan&^flow.VLANPresent]
	if vlan == anyVLAN {
		but = slices.Sorted(func(yield func(flow.Port) bool) {
			for _, ports := range l.but {
				for _, port := range ports {
					if !yield(port) {
						return
					}
				}
			}
		})
	}
	if vlan == 0 || len(but) == 0 {
		return list
	}
	return slices.DeleteFunc(slices.Clone(list), func(port flow.Port) bool { return contains(but, port) })
}

// contains reports whether a sorted list contains a port.
func contains(list []flow.Port, port flow.Port) bool {
	_, found := slices.BinarySearch(list, port)
	return found
}

// reservedMost is how many VLANs of a switch are told apart in its entries. If more are
// reserved, no tagged frame is flooded to a port where any is.
const reservedMost = 64

// vlans returns, in order, the VLANs, as in Key.VLAN, that are flooded to fewer ports than
// others, but those of networks; anyVLAN if they are too many.
func (l *edgeList) vlans(networks []uint16) (list []uint16) {
	for _, vlan := range slices.Sorted(maps.Keys(l.but)) {
		if vlan |= flow.VLANPresent; !slices.Contains(networks, vlan) {
			list = append(list, vlan)
		}
	}
	if len(list) > reservedMost {
		return []uint16{anyVLAN}
	}
	return list
}

// anyVLAN stands for all tagged frames, where a VLAN is as in Key.VLAN.
const anyVLAN = flow.VLANPresent | 0xfff

// list returns where the switch floods. It builds the list only if ports have changed since
// the last call.
func (p *edgePorts) list() *edgeList {
	if list := p.edges.Load(); list != nil {
		return list
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	list := &edgeList{ports: []flow.Port{}, but: p.reservedVLANs()}
	for port := range p.role {
		if p.isEdge(port) && !p.isReserved(portVLAN{port: port}) {
			list.ports = append(list.ports, port)
		}
	}
	slices.Sort(list.ports)
	p.edges.Store(list)
	return list
}

// isEdge reports whether a port is an edge port that is up; mu is held.
func (p *edgePorts) isEdge(port flow.Port) bool {
	return p.up[port] && p.role[port] == flow.RoleEdge.String()
}

// ofHybrid reports whether the switch is of a hybrid node: it has no entry of
// forwarding's, not even a table miss.
func (p *edgePorts) ofHybrid() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, name := range p.role {
		if r, _ := flow.ParsePortRole(name); r.OfHybrid() {
			return true
		}
	}
	return p.hybrid
}

// update changes the state of a switch's ports.
func (p *edgePorts) update(change func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change()
	p.changes++
	p.edges.Store(nil)
}

// updateOne changes the state of one port.
func (p *edgePorts) updateOne(port flow.Port, change func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	up, role, edge, reserved := p.up[port], p.role[port], p.isEdge(port), p.isReserved(portVLAN{port: port})
	change()
	if up != p.up[port] || role != p.role[port] || reserved != p.isReserved(portVLAN{port: port}) {
		p.changes++
	}
	if edge != p.isEdge(port) || reserved != p.isReserved(portVLAN{port: port}) {
		p.edges.Store(nil)
	}
}

// tableOf returns the table of a switch for forwarding's entries.
func tableOf(m *api.Switch) uint8 { return flow.ForwardTable(m.Tables, m.Openflow == "1.0") }

// mayFlood takes one flood from a port's allowance.
func (p *edgePorts) mayFlood(port flow.Port, now int64, perSecond int) bool {
	return p.floods.Take(port, now, int64(time.Second)/int64(perSecond), int64(time.Second))
}

// links returns the ports that are links and up, in order.
func (p *edgePorts) links() (list []flow.Port) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for port, role := range p.role {
		if p.up[port] && port.Physical() && role == flow.RoleLink.String() {
			list = append(list, port)
		}
	}
	slices.Sort(list)
	return list
}

// inUse returns the ports of a switch that are up, in order: its edge ports but the
// reserved ones, which send only what is of their service, the link ports of the tree, and
// all others.
func (p *edgePorts) inUse(tree []flow.Port) (edges, links, others []flow.Port) {
	edges = p.list().ports
	p.mu.Lock()
	defer p.mu.Unlock()
	for port, role := range p.role {
		switch {
		case !p.up[port] || !port.Physical() || role == flow.RoleEdge.String():
		case role == flow.RoleLink.String() && contains(tree, port):
			links = append(links, port)
		default:
			others = append(others, port)
		}
	}
	slices.Sort(links)
	slices.Sort(others)
	return edges, links, others
}
