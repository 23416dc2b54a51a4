package flow

import (
	"maps"
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

// Tagging defines how the frames of virtual networks, each with its own VLAN
// inside the network, leave at ports. The zero value has no networks. Methods may
// be called concurrently. While there are no networks, reading takes no lock.
type Tagging struct {
	some  atomic.Bool   // there are networks
	count atomic.Uint64 // of changes

	mu       sync.RWMutex                   // guards what follows
	networks map[uint16]map[Location]egress // by VLAN as in Key.VLAN
	closed   map[Location]int               // number of networks: no frame of the common one leaves here
}

// egress is how the frames of a network leave at a port. The actions are
// read-only.
type egress struct {
	actions []Action
	tag     uint16
	shared  bool
}

// TaggingChange is the effect of a change of a virtual network: the ports where
// the network begins or ceases to be reached, or is reached otherwise, and
// whether the network itself has come or gone.
type TaggingChange struct {
	Ports []Location
	Whole bool
}

// Set sets the ports of the network that a VLAN (as in Key.VLAN) carries.
func (t *Tagging) Set(vlan uint16, ports []TaggedPort) TaggingChange {
	next := make(map[Location]egress, len(ports))
	for _, p := range ports {
		e := egress{tag: p.Tag, shared: p.Shared}
		switch {
		case p.Tag == 0:
			e.actions = []Action{PopVLAN()}
		case p.Tag != vlan:
			e.actions = []Action{SetVLAN(p.Tag)}
		}
		next[p.At] = e
	}
	return t.change(vlan, next)
}

// Remove removes a network.
func (t *Tagging) Remove(vlan uint16) TaggingChange { return t.change(vlan, nil) }

// change replaces a network; nil is none. Its time grows with the network's
// ports.
func (t *Tagging) change(vlan uint16, next map[Location]egress) (c TaggingChange) {
	t.mu.Lock()
	defer t.mu.Unlock()
	defer t.count.Add(1) // after the state has changed
	if t.networks == nil {
		t.networks, t.closed = map[uint16]map[Location]egress{}, map[Location]int{}
	}
	old, was := t.networks[vlan]
	c.Whole = was != (next != nil)
	if next == nil {
		delete(t.networks, vlan)
	} else {
		t.networks[vlan] = next
	}
	t.some.Store(len(t.networks) > 0)
	for at, e := range old {
		if n, still := next[at]; still && n.tag == e.tag && n.shared == e.shared {
			continue
		}
		c.Ports = append(c.Ports, at)
		if e.shared {
			continue
		}
		if t.closed[at]--; t.closed[at] == 0 {
			delete(t.closed, at)
		}
	}
	for at, n := range next {
		e, was := old[at]
		if was && n.tag == e.tag && n.shared == e.shared {
			continue
		}
		if !was {
			c.Ports = append(c.Ports, at)
		}
		if !n.shared {
			t.closed[at]++
		}
	}
	return c
}

// Changes counts the changes: while it stays the same, so do all answers.
func (t *Tagging) Changes() uint64 { return t.count.Load() }

// Egress returns the actions for a frame of a VLAN (as in Key.VLAN; 0: none)
// before it leaves at a port, and whether it may leave there at all. The actions
// belong to t.
func (t *Tagging) Egress(at Location, vlan uint16) (actions []Action, ok bool) {
	if !t.some.Load() {
		return nil, true
	}
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.leave(at, vlan)
}

// leave is Egress; mu is held.
func (t *Tagging) leave(at Location, vlan uint16) (actions []Action, ok bool) {
	if network := t.networks[vlan]; network != nil {
		e, ok := network[at]
		return e.actions, ok
	}
	return nil, t.closed[at] == 0
}

// Has reports whether a VLAN (as in Key.VLAN) carries a virtual network.
func (t *Tagging) Has(vlan uint16) bool {
	if !t.some.Load() {
		return false
	}
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.networks[vlan] != nil
}

// Networks returns the VLANs that carry virtual networks, in order.
func (t *Tagging) Networks() []uint16 {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return slices.Sorted(maps.Keys(t.networks))
}

// Outputs appends to list the actions that send a frame of a VLAN (as in
// Key.VLAN) to those ports of a switch where it may leave: first unchanged, then
// as each port wants it.
func (t *Tagging) Outputs(list []Action, sw DPID, vlan uint16, ports []Port) []Action {
	if !t.some.Load() {
		for _, p := range ports {
			list = append(list, Output(p))
		}
		return list
	}
	t.mu.RLock()
	defer t.mu.RUnlock()
	var changed, popped []Action
	for _, p := range ports {
		actions, ok := t.leave(Location{Switch: sw, Port: p}, vlan)
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
