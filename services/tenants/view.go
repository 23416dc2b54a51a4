package tenants

import (
	"maps"
	"slices"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
)

// view is what other services report about the network: switches, the roles of
// ports, hosts.
type view struct {
	switches map[flow.DPID]*api.Switch // that are or were connected
	links    map[flow.DPID]map[flow.Port]bool
	presumed map[flow.Location]time.Time // ports that count as links until then
	edges    map[flow.DPID]map[flow.Port]bool
	hosts    map[hostKey]*seen
	inVLAN   map[uint16]map[hostKey]*seen // the hosts of each VLAN; those without one are left out
}

// How long a port that was a link still counts as one.
const (
	lingers  = 5 * time.Second  // and is no longer settled
	presumes = 15 * time.Second // in an earlier run
)

// hostKey identifies a host.
type hostKey struct {
	vlan uint16
	mac  flow.MAC
}

// seen is a host and where it is.
type seen struct {
	hostKey
	at    flow.Location
	first string // when it was first seen, RFC 3339
}

func newView() view {
	return view{switches: map[flow.DPID]*api.Switch{}, presumed: map[flow.Location]time.Time{}, links: map[flow.DPID]map[flow.Port]bool{}, edges: map[flow.DPID]map[flow.Port]bool{},
		hosts: map[hostKey]*seen{}, inVLAN: map[uint16]map[hostKey]*seen{}}
}

// switchChanged handles the southbound's event.
func (s *view) switchChanged(e *api.SwitchChanged) {
	if sw, err := flow.ParseDPID(e.GetSwitch().GetDpid()); err == nil {
		s.switches[sw] = proto.CloneOf(e.Switch)
	}
}

// roleChanged handles discovery's event, and reports whether it changes the
// wanted entries of the switch. A link that is no longer settled counts as one
// for a moment longer: discovery may have restarted.
func (s *view) roleChanged(now time.Time, at flow.Location, role string) bool {
	was := s.link(at)
	edge := set(s.edges, at, role == flow.RoleEdge.String())
	switch {
	case role == flow.RoleLink.String():
		set(s.links, at, true)
		delete(s.presumed, at)
	case set(s.links, at, false) && role == flow.RoleUnsettled.String():
		s.presumed[at] = now.Add(lingers)
	case role != flow.RoleUnsettled.String():
		delete(s.presumed, at)
	}
	return edge || s.link(at) != was
}

// presume counts ports as links that were links in an earlier run, until
// discovery reports what they are.
func (s *view) presume(now time.Time, sw flow.DPID, ports []flow.Port) {
	for _, p := range ports {
		if at := (flow.Location{Switch: sw, Port: p}); !s.link(at) && !s.edges[sw][p] {
			s.presumed[at] = now.Add(presumes)
		}
	}
}

// expire ends presumptions, and returns the switches whose wanted entries this
// changes.
func (s *view) expire(now time.Time) (changed []flow.DPID) {
	for at, until := range s.presumed {
		if now.Before(until) {
			continue
		}
		delete(s.presumed, at)
		if !slices.Contains(changed, at.Switch) {
			changed = append(changed, at.Switch)
		}
	}
	return changed
}

// link reports whether a port counts as a link.
func (s *view) link(at flow.Location) bool {
	_, presumed := s.presumed[at]
	return presumed || s.links[at.Switch][at.Port]
}

// linksOf returns the ports of a switch that count as links, in order.
func (s *view) linksOf(sw flow.DPID) []flow.Port {
	list := slices.Collect(maps.Keys(s.links[sw]))
	for at := range s.presumed {
		if at.Switch == sw && !s.links[sw][at.Port] {
			list = append(list, at.Port)
		}
	}
	slices.Sort(list)
	return list
}

// settled reports whether anything is known of the ports of a switch.
func (s *view) settled(sw flow.DPID) bool { return len(s.links[sw])+len(s.edges[sw]) > 0 }

// set adds or removes a port, and reports whether that is a change.
func set(of map[flow.DPID]map[flow.Port]bool, at flow.Location, in bool) bool {
	ports := of[at.Switch]
	if ports[at.Port] == in {
		return false
	}
	if ports == nil {
		ports = map[flow.Port]bool{}
		of[at.Switch] = ports
	}
	if in {
		ports[at.Port] = true
	} else {
		delete(ports, at.Port)
	}
	return true
}

// hostChanged handles the event of hosts, and returns the host, and whether it
// has changed.
func (s *view) hostChanged(e *api.HostChanged) (key hostKey, changed bool) {
	m := e.GetHost()
	mac, err := flow.ParseMAC(m.GetMac())
	if err != nil || m.Vlan == 0 || m.Vlan > segmentMax {
		return key, false
	}
	key = hostKey{uint16(m.Vlan), mac}
	old := s.hosts[key]
	if e.Change == "gone" {
		if old == nil {
			return key, false
		}
		delete(s.hosts, key)
		if delete(s.inVLAN[key.vlan], key); len(s.inVLAN[key.vlan]) == 0 {
			delete(s.inVLAN, key.vlan)
		}
		return key, true
	}
	now := &seen{key, m.GetAt().Flow(), m.FirstSeen}
	if old != nil && *old == *now {
		return key, false
	}
	s.hosts[key] = now
	if s.inVLAN[key.vlan] == nil {
		s.inVLAN[key.vlan] = map[hostKey]*seen{}
	}
	s.inVLAN[key.vlan][key] = now
	return key, true
}

// vlans returns the VLANs that hosts are known in.
func (s *view) vlans() map[uint16]bool {
	used := map[uint16]bool{}
	for v := range s.inVLAN {
		used[v] = true
	}
	return used
}
