// Package nib is the network information base (the word of Onix and ONOS): what
// the services of a controller report about the network, as one value. A
// Snapshot is immutable and says how switches, ports, roles of ports, links,
// hosts, segments, hybrid nodes and tunnel ports are; a Base makes the next
// Snapshot of each event. There is one Base for each process, which its runtime
// feeds; services read it by weft.NIB, and weft.OnChange calls them when what they
// read has changed. They see the latest state always, and states between only by
// chance.
//
// Anyone may import it; it imports flow and api only.
package nib

import (
	"cmp"
	"iter"
	"slices"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
)

// Parts is a set of the parts of a Snapshot.
type Parts uint16

// The parts, and the events that they are made of.
const (
	Switches     Parts = 1 << iota // SwitchChanged
	Ports                          // PortChanged and, with all ports of a switch, SwitchChanged
	Roles                          // PortRoleChanged
	Links                          // LinkChanged
	Hosts                          // HostChanged; HostsSettled says when they are all
	Segments                       // SegmentChanged
	Nodes                          // NodeChanged
	TunnelPorts                    // TunnelPortChanged
	Settled                        // RolesSettled: the switches whose links and port roles are known
	settledHosts                   // HostsSettled

	end
)

// subjects are the events of the parts in their order.
func subjects() [10]api.AnySubject {
	return [...]api.AnySubject{
		api.SwitchChangedEvent, api.PortChangedEvent, api.PortRoleChangedEvent, api.LinkChangedEvent,
		api.HostChangedEvent, api.SegmentChangedEvent, api.NodeChangedEvent, api.TunnelPortChangedEvent,
		api.RolesSettledEvent, api.HostsSettledEvent,
	}
}

// Closed returns the parts and those that they need: ports need their switches, and hosts
// the event that says when they are all.
func (p Parts) Closed() Parts {
	if p&Ports != 0 {
		p |= Switches
	}
	if p&Hosts != 0 {
		p |= settledHosts
	}
	return p
}

// Subjects returns the events that some parts are made of.
func (p Parts) Subjects() (list []api.AnySubject) {
	p = p.Closed()
	for i, s := range subjects() {
		if p&(1<<i) != 0 {
			list = append(list, s)
		}
	}
	return list
}

// PartOf returns the part that is made of an event, 0 if none is.
func PartOf(subject string) Parts {
	for i, s := range subjects() {
		if s.SubjectName() == subject {
			return 1 << i
		}
	}
	return 0
}

// HostKey identifies a host; a VLAN is its number here, 0 for none.
type HostKey struct {
	VLAN uint16
	MAC  flow.MAC
}

// LinkKey identifies one direction of a link.
type LinkKey struct{ Src, Dst flow.Location }

// TunnelKey identifies a tunnel port.
type TunnelKey struct {
	Kind string
	A, B flow.Location
}

// Source is one run of the service that publishes an event. A publisher runs
// once, or once for each partition, which then speaks of its own switches. Of two
// runs of one partition the later has the higher epoch.
type Source struct {
	Partition string
	Epoch     uint64
}

// Fact is what is known of one thing. It never changes, nor does its message.
type Fact[K comparable, M any] struct {
	Key   K
	Is    M      // as the last event has it
	Rev   uint64 // the revision that this is of
	Since uint64 // the revision since which it has been there: if it differs, the thing was gone meanwhile

	from Source
}

// The facts of the parts.
type (
	Switch     = Fact[flow.DPID, *api.SwitchChanged] // connected, or once connected and gone; its ports are those of Ports
	Port       = Fact[flow.Location, *api.Port]
	Role       = Fact[flow.Location, *api.PortRole]
	Link       = Fact[LinkKey, *api.Link]
	Host       = Fact[HostKey, *api.Host]
	Segment    = Fact[uint16, *api.Segment]
	Node       = Fact[flow.DPID, *api.Node]
	TunnelPort = Fact[TunnelKey, *api.TunnelPort]
	// SettledSwitch is a switch for which Snapshot.Settled holds.
	SettledSwitch = Fact[flow.DPID, *api.RolesSettled]
)

// Snapshot is the network at one moment. It is immutable, and cheap to copy. The
// zero Snapshot is of an empty network.
type Snapshot struct {
	rev   uint64
	heard Parts

	switches    table[none, flow.DPID, *api.SwitchChanged]
	ports       table[flow.DPID, flow.Location, *api.Port]
	roles       table[flow.DPID, flow.Location, *api.PortRole]
	links       table[flow.DPID, LinkKey, *api.Link]
	hosts       table[uint16, HostKey, *api.Host]
	segments    table[none, uint16, *api.Segment]
	nodes       table[none, flow.DPID, *api.Node]
	tunnelPorts table[none, TunnelKey, *api.TunnelPort]
	settled     table[none, flow.DPID, *api.RolesSettled]
}

// Rev returns the revision: of two snapshots of a process, the later has the higher.
func (s Snapshot) Rev() uint64 { return s.rev }

// Heard reports whether all that is retained of some parts has been heard: for
// each of them a publisher is known, and of no publisher that is known anything
// is missing that it had said before it was heard of here. A publisher that has
// only just begun has said little; but hosts are heard only when their publisher has
// also said of each that its earlier run knew where it is, or that it is gone. Of the
// links and the roles at a switch, Settled says so.
func (s Snapshot) Heard(p Parts) bool { return s.heard&p == p }

// Switch returns what was last said of a switch, nil if it is unknown.
func (s Snapshot) Switch(sw flow.DPID) *Switch { return s.switches.get(none{}, sw) }

// Info returns what was last said of a switch itself, nil if it is unknown.
func (s Snapshot) Info(sw flow.DPID) *api.Switch {
	if f := s.Switch(sw); f != nil {
		return f.Is.Switch
	}
	return nil
}

// Connected returns a connected switch, nil if it is not.
func (s Snapshot) Connected(sw flow.DPID) *api.Switch {
	if f := s.Switch(sw); f != nil && f.Is.Switch.Connected {
		return f.Is.Switch
	}
	return nil
}

// Port returns a port, nil if there is none.
func (s Snapshot) Port(at flow.Location) *Port { return s.ports.get(at.Switch, at) }

// Role returns what a port is, nil if nothing is known.
func (s Snapshot) Role(at flow.Location) *Role { return s.roles.get(at.Switch, at) }

// Has reports whether a port has a role.
func (s Snapshot) Has(at flow.Location, role flow.PortRole) bool {
	r := s.Role(at)
	return r != nil && r.Is.Role == role.String()
}

// Link returns a direction of a link, nil if there is none.
func (s Snapshot) Link(k LinkKey) *Link { return s.links.get(k.Src.Switch, k) }

// Host returns a host, nil if it is unknown.
func (s Snapshot) Host(k HostKey) *Host { return s.hosts.get(k.VLAN, k) }

// Segment returns the segment of a VLAN, nil if there is none.
func (s Snapshot) Segment(vlan uint16) *Segment { return s.segments.get(none{}, vlan) }

// Node returns the hybrid node of a switch, nil if it is none.
func (s Snapshot) Node(sw flow.DPID) *Node { return s.nodes.get(none{}, sw) }

// TunnelPort returns a tunnel port, nil if there is none.
func (s Snapshot) TunnelPort(k TunnelKey) *TunnelPort { return s.tunnelPorts.get(none{}, k) }

// Settled reports whether discovery has said, since it has started, all that it can know
// soon of the links and of the roles of the ports of a switch.
func (s Snapshot) Settled(sw flow.DPID) bool { return s.settled.get(none{}, sw) != nil }

// The lists are in no particular order.

// Switches returns all switches, those that are gone among them.
func (s Snapshot) Switches() iter.Seq[*Switch] { return s.switches.group(none{}) }

// DPIDs returns all switches in order, those that are gone among them.
func (s Snapshot) DPIDs() []flow.DPID {
	list := make([]flow.DPID, 0, 16)
	for f := range s.Switches() {
		list = append(list, f.Key)
	}
	slices.Sort(list)
	return list
}

// Ports returns the ports of a switch.
func (s Snapshot) Ports(sw flow.DPID) iter.Seq[*Port] { return s.ports.group(sw) }

// Roles returns the roles of the ports of a switch.
func (s Snapshot) Roles(sw flow.DPID) iter.Seq[*Role] { return s.roles.group(sw) }

// PortsWith returns the ports of a switch that have a role, in order.
func (s Snapshot) PortsWith(sw flow.DPID, role flow.PortRole) (list []flow.Port) {
	text := role.String()
	for r := range s.Roles(sw) {
		if r.Is.Role == text {
			list = append(list, r.Key.Port)
		}
	}
	slices.Sort(list)
	return list
}

// RolesLen returns how many ports of a switch have a role.
func (s Snapshot) RolesLen(sw flow.DPID) int { return s.roles.len(sw) }

// Links returns all links.
func (s Snapshot) Links() iter.Seq[*Link] { return s.links.all() }

// LinksFrom returns the links that leave a switch.
func (s Snapshot) LinksFrom(sw flow.DPID) iter.Seq[*Link] { return s.links.group(sw) }

// Hosts returns all hosts.
func (s Snapshot) Hosts() iter.Seq[*Host] { return s.hosts.all() }

// HostsIn returns the hosts of a VLAN, and HostsLen how many they are.
func (s Snapshot) HostsIn(vlan uint16) iter.Seq[*Host] { return s.hosts.group(vlan) }
func (s Snapshot) HostsLen(vlan uint16) int            { return s.hosts.len(vlan) }

// HostVLANs returns the VLANs that have hosts.
func (s Snapshot) HostVLANs() iter.Seq[uint16] { return s.hosts.names() }

// Segments returns all segments.
func (s Snapshot) Segments() iter.Seq[*Segment] { return s.segments.group(none{}) }

// Nodes returns all hybrid nodes.
func (s Snapshot) Nodes() iter.Seq[*Node] { return s.nodes.group(none{}) }

// TunnelPorts returns all tunnel ports.
func (s Snapshot) TunnelPorts() iter.Seq[*TunnelPort] { return s.tunnelPorts.group(none{}) }

// Only returns the snapshot with some parts only; the others are empty.
func (s Snapshot) Only(p Parts) Snapshot {
	of := Snapshot{rev: s.rev, heard: s.heard & p}
	for q := Switches; q < end; q <<= 1 {
		switch q & p {
		case Switches:
			of.switches = s.switches
		case Ports:
			of.ports = s.ports
		case Roles:
			of.roles = s.roles
		case Links:
			of.links = s.links
		case Hosts:
			of.hosts = s.hosts
		case Segments:
			of.segments = s.segments
		case Nodes:
			of.nodes = s.nodes
		case TunnelPorts:
			of.tunnelPorts = s.tunnelPorts
		case Settled:
			of.settled = s.settled
		}
	}
	return of
}

// Change is from one snapshot that a service has seen to the next.
type Change struct{ Was, Is Snapshot }

// Step is one thing as it was and as it is, nil where it was or is not there.
type Step[F any] struct{ Was, Is *F }

// Anew reports whether the thing is there and was not, at least for a moment.
func Anew[K comparable, M any](s Step[Fact[K, M]]) bool {
	return s.Is != nil && (s.Was == nil || s.Was.Since != s.Is.Since)
}

// What has changed of each part: first what is no more, then all else by the
// revision. The time it takes grows with their number, not with the network.

// Switches returns the switches that have changed.
func (c Change) Switches() []Step[Switch] { return steps(c.Was.switches, c.Is.switches) }

// Connections returns the changes of switches as events. A switch that went and came back
// in between gives two: gone, then connected. Switches that no publisher mentions any more
// are left out.
func (c Change) Connections() iter.Seq2[flow.DPID, *api.SwitchChanged] {
	return func(yield func(flow.DPID, *api.SwitchChanged) bool) {
		for _, s := range c.Switches() {
			if s.Is == nil {
				continue
			}
			if Anew(s) && s.Was != nil && s.Is.Is.Switch.Connected && !yield(s.Is.Key, &api.SwitchChanged{Switch: &api.Switch{Dpid: s.Is.Key.String()}}) {
				return
			}
			if !yield(s.Is.Key, s.Is.Is) {
				return
			}
		}
	}
}

// Ports returns the ports that have changed.
func (c Change) Ports() []Step[Port] { return steps(c.Was.ports, c.Is.ports) }

// Roles returns the ports whose roles have changed.
func (c Change) Roles() []Step[Role] { return steps(c.Was.roles, c.Is.roles) }

// Links returns the links that have changed.
func (c Change) Links() []Step[Link] { return steps(c.Was.links, c.Is.links) }

// Hosts returns the hosts that have changed.
func (c Change) Hosts() []Step[Host] { return steps(c.Was.hosts, c.Is.hosts) }

// Segments returns the segments that have changed.
func (c Change) Segments() []Step[Segment] { return steps(c.Was.segments, c.Is.segments) }

// Nodes returns the hybrid nodes that have changed.
func (c Change) Nodes() []Step[Node] { return steps(c.Was.nodes, c.Is.nodes) }

// TunnelPorts returns the tunnel ports that have changed.
func (c Change) TunnelPorts() []Step[TunnelPort] { return steps(c.Was.tunnelPorts, c.Is.tunnelPorts) }

// Settled returns the switches that have settled, or have not any more.
func (c Change) Settled() []Step[SettledSwitch] { return steps(c.Was.settled, c.Is.settled) }

// Tag brings the tagging up to date with the segments, and reports whether any has
// changed.
func (c Change) Tag(t *flow.Tagging) (changed bool) {
	for _, s := range c.Segments() {
		switch vlan, ports := cmp.Or(s.Is, s.Was).Is.Tagged(); {
		case vlan == 0:
			continue
		case s.Is == nil:
			t.Remove(vlan)
		default:
			t.Set(vlan, ports)
		}
		changed = true
	}
	return changed
}

// SwitchesOf returns the switches at which other ports have a role than before.
func (c Change) SwitchesOf(role flow.PortRole) (list []flow.DPID) {
	text := role.String()
	for _, r := range c.Roles() {
		sw := cmp.Or(r.Is, r.Was).Key.Switch
		if (r.Was != nil && r.Was.Is.Role == text) != (r.Is != nil && r.Is.Is.Role == text) && !slices.Contains(list, sw) {
			list = append(list, sw)
		}
	}
	return list
}

// Heard reports whether some parts have been heard in full, and had not been.
func (c Change) Heard(p Parts) bool { return c.Is.Heard(p) && !c.Was.Heard(p) }

// none is the group of the parts that have but one.
type none struct{}

// table is the facts of one part, in groups.
type table[G, K comparable, M any] struct {
	groups Map[G, Map[K, *Fact[K, M]]]
}

func (t table[G, K, M]) get(g G, k K) *Fact[K, M] {
	group, _ := t.groups.Get(g)
	f, _ := group.Get(k)
	return f
}

func (t table[G, K, M]) len(g G) int {
	group, _ := t.groups.Get(g)
	return group.Len()
}

func (t table[G, K, M]) group(g G) iter.Seq[*Fact[K, M]] {
	return func(yield func(*Fact[K, M]) bool) {
		group, _ := t.groups.Get(g)
		for _, f := range group.All() {
			if !yield(f) {
				return
			}
		}
	}
}

func (t table[G, K, M]) all() iter.Seq[*Fact[K, M]] {
	return func(yield func(*Fact[K, M]) bool) {
		for _, group := range t.groups.All() {
			for _, f := range group.All() {
				if !yield(f) {
					return
				}
			}
		}
	}
}

func (t table[G, K, M]) names() iter.Seq[G] {
	return func(yield func(G) bool) {
		for g := range t.groups.All() {
			if !yield(g) {
				return
			}
		}
	}
}

// with returns the table with another fact of a key; nil is none.
func (t table[G, K, M]) with(g G, k K, f *Fact[K, M]) table[G, K, M] {
	group, _ := t.groups.Get(g)
	if f != nil {
		group = group.with(k, f)
	} else {
		group = group.without(k)
	}
	if group.Len() == 0 {
		return table[G, K, M]{t.groups.without(g)}
	}
	return table[G, K, M]{t.groups.with(g, group)}
}

func steps[G, K comparable, M any](was, is table[G, K, M]) (list []Step[Fact[K, M]]) {
	differences(was.groups, is.groups, func(_ G, was, is Map[K, *Fact[K, M]]) {
		differences(was, is, func(_ K, was, is *Fact[K, M]) { list = append(list, Step[Fact[K, M]]{was, is}) })
	})
	slices.SortFunc(list, func(a, b Step[Fact[K, M]]) int { return cmp.Compare(revOf(a.Is), revOf(b.Is)) })
	return list
}

func revOf[K comparable, M any](f *Fact[K, M]) uint64 {
	if f == nil {
		return 0
	}
	return f.Rev
}
