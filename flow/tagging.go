package flow

import (
	"slices"
	"sync"
	"sync/atomic"
)

// TaggedPort is a port that a virtual network reaches.
type TaggedPort struct {
	At     Location
	Tag    uint16 // of its frames on the wire, as in Key.VLAN; 0 is untagged
	Shared bool   // the port is of the common network, too
}

// Tagging says how the frames of virtual networks, each carried by a VLAN of
// its own inside the network, leave at ports. The zero value knows of none.
// Methods may be called at once; reading takes no lock.
type Tagging struct {
	mu    sync.Mutex // guards writing
	state atomic.Pointer[tagging]
	count atomic.Uint64 // of changes
}

type tagging struct {
	networks map[uint16][]TaggedPort // by VLAN as in Key.VLAN
	egress   map[taggedAt][]Action
	closed   map[Location]bool // nothing of the common network leaves here
}

type taggedAt struct {
	at   Location
	vlan uint16
}

// Set makes ports those of the network that a VLAN (as in Key.VLAN) carries,
// and Remove says that there is no such network any more.
func (t *Tagging) Set(vlan uint16, ports []TaggedPort) { t.change(vlan, slices.Clone(ports), true) }

// Remove forgets a network.
func (t *Tagging) Remove(vlan uint16) { t.change(vlan, nil, false) }

func (t *Tagging) change(vlan uint16, ports []TaggedPort, there bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	defer t.count.Add(1) // after the state has changed
	next := &tagging{networks: map[uint16][]TaggedPort{}, egress: map[taggedAt][]Action{}, closed: map[Location]bool{}}
	if old := t.state.Load(); old != nil {
		for v, list := range old.networks {
			next.networks[v] = list
		}
	}
	delete(next.networks, vlan)
	if there {
		next.networks[vlan] = ports
	}
	if len(next.networks) == 0 {
		t.state.Store(nil)
		return
	}
	for v, list := range next.networks {
		for _, p := range list {
			var a []Action
			switch {
			case p.Tag == 0:
				a = []Action{PopVLAN()}
			case p.Tag != v:
				a = []Action{SetVLAN(p.Tag)}
			}
			next.egress[taggedAt{p.At, v}] = a
			if !p.Shared {
				next.closed[p.At] = true
			}
		}
	}
	t.state.Store(next)
}

// Changes counts the changes: as long as it is the same, so are all answers.
func (t *Tagging) Changes() uint64 { return t.count.Load() }

// Egress returns what is to be done with a frame of a VLAN (as in Key.VLAN; 0:
// none) before it leaves at a port, and whether it may leave there at all. The
// actions belong to t.
func (t *Tagging) Egress(at Location, vlan uint16) (actions []Action, ok bool) {
	s := t.state.Load()
	if s == nil {
		return nil, true
	}
	if _, network := s.networks[vlan]; network {
		actions, ok = s.egress[taggedAt{at, vlan}]
		return actions, ok
	}
	return nil, !s.closed[at]
}

// Has reports whether a VLAN (as in Key.VLAN) carries a virtual network.
func (t *Tagging) Has(vlan uint16) bool {
	s := t.state.Load()
	if s == nil {
		return false
	}
	_, network := s.networks[vlan]
	return network
}

// Networks returns the VLANs that carry virtual networks, in order.
func (t *Tagging) Networks() []uint16 {
	s := t.state.Load()
	if s == nil {
		return nil
	}
	list := make([]uint16, 0, len(s.networks))
	for v := range s.networks {
		list = append(list, v)
	}
	slices.Sort(list)
	return list
}

// Outputs appends to list the actions that hand a frame of a VLAN (as in
// Key.VLAN) to those of the ports of a switch that it may leave at: first as it
// is, then as each port wants it.
func (t *Tagging) Outputs(list []Action, sw DPID, vlan uint16, ports []Port) []Action {
	if t.state.Load() == nil {
		for _, p := range ports {
			list = append(list, Output(p))
		}
		return list
	}
	var changed, popped []Action
	for _, p := range ports {
		actions, ok := t.Egress(Location{Switch: sw, Port: p}, vlan)
		switch {
		case !ok:
		case len(actions) == 0:
			list = append(list, Output(p))
		case actions[0].Kind == ActionPopVLAN: // once for all, at the end
			popped = append(popped, Output(p))
		default:
			changed = append(append(changed, actions...), Output(p))
		}
	}
	list = append(list, changed...)
	if len(popped) > 0 {
		list = append(append(list, PopVLAN()), popped...)
	}
	return list
}
