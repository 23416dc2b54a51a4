package l2vpn

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/nib"
)

// A network is what circuits need of the network: its snapshot, and what follows from the
// snapshot's links and nodes. The store's mu guards it.
type network struct {
	nib.Snapshot
	core       core
	mtus       map[flow.DPID]map[flow.Port]uint32         // of the ports that are known
	capacities map[flow.Location]map[flow.Location]uint64 // kilobits per second that may be booked, of the links that leave by a port
	returned   bool                                       // switches that have not connected are not waited for any more
	marks      map[flow.DPID]marking
}

// marking is what a switch has said of its meters.
type marking struct {
	since string // of the connection over which it said so
	can   bool   // they mark what is above a rate
}

func newNetwork() network {
	return network{core: core{}, mtus: map[flow.DPID]map[flow.Port]uint32{}, capacities: map[flow.Location]map[flow.Location]uint64{}, marks: map[flow.DPID]marking{}}
}

// portOf returns a port, nil if it is not known.
func (n *network) portOf(at flow.Location) *api.Port {
	if p := n.Port(at); p != nil {
		return p.Is
	}
	return nil
}

// roleOf returns what a port is; empty if that is not known.
func (n *network) roleOf(at flow.Location) string {
	if r := n.Role(at); r != nil {
		return r.Is.Role
	}
	return ""
}

// unfit returns why a circuit cannot have a new end; empty if it can.
func (n *network) unfit(c *circuit, e end) string {
	sw := n.Info(e.at.Switch)
	twin := flow.Location{Switch: e.at.Switch, Port: flow.InternalPorts + e.at.Port}
	switch role := n.roleOf(e.at); {
	case sw == nil:
		return fmt.Sprintf("there is no switch %v; weft get switches shows those that are", e.at.Switch)
	case sw.Lack(c.needs()...) != "":
		return "the switch " + sw.Lack(c.needs()...)
	case role == "link" || role == "blocked":
		return "the port is a link between switches"
	case role == "internal":
		return "the port leads to the node's own routing"
	case role == "tunnel":
		return "the port is a tunnel over the node's own routing"
	case n.roleOf(twin) == "internal" && e.whole():
		return fmt.Sprintf("the node routes for who is at the port, by its internal port %d, and would get nothing any more; an end with a VLAN, %v.100, leaves it the rest",
			uint32(twin.Port), e)
	case sw.Connected && n.portOf(e.at) == nil:
		return "the switch has no such port"
	}
	return ""
}

// needs returns what a circuit asks of the switches of its ends: between switches frames go
// inside labelled ones.
func (c *circuit) needs() []api.Need {
	if slices.ContainsFunc(c.ends, func(e end) bool { return e.at.Switch != c.ends[0].at.Switch }) {
		return []api.Need{api.NeedTables, api.NeedPacketTypes}
	}
	return []api.Need{api.NeedTables}
}

// unusable returns why no circuit works at a port.
func (n *network) unusable(at flow.Location) string {
	sw, port, role := n.Info(at.Switch), n.portOf(at), n.roleOf(at)
	switch {
	case !sw.GetConnected():
		return fmt.Sprintf("switch %v is away", at.Switch)
	case port == nil:
		return fmt.Sprintf("switch %v has no port %v", at.Switch, at.Port)
	case !port.Up:
		return fmt.Sprintf("port %v of switch %v is down", at.Port, at.Switch)
	case slices.Contains([]string{"link", "blocked", "internal", "tunnel"}, role):
		return fmt.Sprintf("port %v of switch %v is no customer's: it is %s", at.Port, at.Switch, role)
	}
	return ""
}

// updateLink follows a link.
func (n *network) updateLink(s nib.Step[nib.Link]) {
	k, now := cmp.Or(s.Is, s.Was).Key, &api.Link{}
	if s.Is != nil {
		now = s.Is.Is
	}
	src, dst := k.Src, k.Dst
	if n.setCapacity(src, dst, now.CapacityKbps); !now.Usable() {
		if delete(n.core[src], dst); len(n.core[src]) == 0 {
			delete(n.core, src)
		}
		return
	}
	if n.core[src] == nil {
		n.core[src] = map[flow.Location]uint32{}
	}
	n.core[src][dst] = max(now.Weight, 1)
}

// setCapacity sets what may be booked on a link; 0 is not known.
func (n *network) setCapacity(src, dst flow.Location, kbps uint64) {
	if delete(n.capacities[src], dst); len(n.capacities[src]) == 0 {
		delete(n.capacities, src)
	}
	if kbps == 0 {
		return
	}
	if n.capacities[src] == nil {
		n.capacities[src] = map[flow.Location]uint64{}
	}
	n.capacities[src][dst] = kbps
}

// capacity returns what may be booked on the link that leaves by a port, kbit/s; 0 if that
// is not known.
func (n *network) capacity(at flow.Location) (kbps uint64) {
	for _, has := range n.capacities[at] {
		kbps = max(kbps, has)
	}
	return kbps
}

// farEnd returns the other end of a link.
func (n *network) farEnd(at flow.Location) flow.Location {
	for far := range n.capacities[at] {
		return far
	}
	return flow.Location{}
}

// updateMTUs takes over the MTUs of the ports of a node, and reports whether any is another. That
// of a tunnel port is what the node's routing takes on all links.
func (n *network) updateMTUs(s nib.Step[nib.Node]) bool {
	sw := cmp.Or(s.Is, s.Was).Key
	now := map[flow.Port]uint32{}
	if s.Is != nil && s.Is.Is.State == "live" {
		for _, p := range s.Is.Is.Report.Ports {
			if p.Mtu > 0 {
				now[flow.Port(p.Port)] = p.Mtu
			}
		}
	}
	if maps.Equal(n.mtus[sw], now) {
		return false
	}
	if n.mtus[sw] = now; len(now) == 0 {
		delete(n.mtus, sw)
	}
	return true
}

// branches reports whether a tree may branch at a switch.
func (n *network) branches(sw flow.DPID) bool {
	info := n.Info(sw)
	return info.GetConnected() && info.GetOpenflow() != "1.0"
}

// plant returns the tree of a vpls as it should be now, without labels.
func (n *network) plant(c *circuit) (tree []arc, err error) {
	if overlaid(c.Transport) {
		tree = star(c.edges())
	} else {
		tree, err = n.core.segments(c.edges(), n.branches, c.Tree == "random", uint64(c.Id))
	}
	if len(c.leaves) > 0 {
		tree = withLeaves(tree)
	}
	return tree, err
}

// unfitSink returns why copies cannot go to a port; empty if they can.
func (n *network) unfitSink(at flow.Location) string {
	twin := flow.Location{Switch: at.Switch, Port: flow.InternalPorts + at.Port}
	switch role := n.roleOf(at); {
	case slices.Contains([]string{"link", "blocked", "internal", "tunnel"}, role):
		return "the port is " + role
	case n.roleOf(twin) == "internal":
		return "the node routes for who is at the port"
	case n.Info(at.Switch).GetConnected() && n.portOf(at) == nil:
		return "the switch has no such port"
	}
	return ""
}
