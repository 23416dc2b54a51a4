package tenants

import (
	"fmt"
	"maps"
	"slices"

	"google.golang.org/protobuf/proto"

	"weft/api"
	"weft/flow"
)

// scene is what others tell of the network: switches, what ports are, hosts.
type scene struct {
	switches map[flow.DPID]*api.Switch // those that are or were connected
	links    map[flow.DPID]map[flow.Port]bool
	edges    map[flow.DPID]map[flow.Port]bool
	hosts    map[hostKey]*seen
	inVLAN   map[uint16]map[hostKey]*seen // the hosts of each VLAN; those without one are not kept
}

// hostKey is what a host is told apart by.
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

func newScene() scene {
	return scene{switches: map[flow.DPID]*api.Switch{}, links: map[flow.DPID]map[flow.Port]bool{}, edges: map[flow.DPID]map[flow.Port]bool{},
		hosts: map[hostKey]*seen{}, inVLAN: map[uint16]map[hostKey]*seen{}}
}

// switchChanged takes the event of the southbound.
func (s *scene) switchChanged(e *api.SwitchChanged) {
	if sw, err := flow.ParseDPID(e.GetSwitch().GetDpid()); err == nil {
		s.switches[sw] = proto.CloneOf(e.Switch)
	}
}

// roleChanged takes the event of discovery, and returns the switch if it
// changes what is wanted of it. A port whose role is not settled is taken for
// nothing: what it was it need not be any more.
func (s *scene) roleChanged(at flow.Location, role string) bool {
	link := set(s.links, at, role == flow.RoleLink.String())
	edge := set(s.edges, at, role == flow.RoleEdge.String())
	return link || edge
}

// set puts a port in or out, and reports whether that is a change.
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

// hostChanged takes the event of hosts, and returns the VLAN whose hosts are
// not what they were; 0 for none.
func (s *scene) hostChanged(e *api.HostChanged) uint16 {
	m := e.GetHost()
	mac, err := flow.ParseMAC(m.GetMac())
	if err != nil || m.Vlan == 0 || m.Vlan > segmentMax {
		return 0
	}
	key := hostKey{uint16(m.Vlan), mac}
	old := s.hosts[key]
	if e.Change == "gone" {
		if old == nil {
			return 0
		}
		delete(s.hosts, key)
		if delete(s.inVLAN[key.vlan], key); len(s.inVLAN[key.vlan]) == 0 {
			delete(s.inVLAN, key.vlan)
		}
		return key.vlan
	}
	now := &seen{key, m.GetAt().Flow(), m.FirstSeen}
	if old != nil && *old == *now {
		return 0
	}
	s.hosts[key] = now
	if s.inVLAN[key.vlan] == nil {
		s.inVLAN[key.vlan] = map[hostKey]*seen{}
	}
	s.inVLAN[key.vlan][key] = now
	return key.vlan
}

// vlans returns the VLANs that hosts are known in.
func (s *scene) vlans() map[uint16]bool {
	used := map[uint16]bool{}
	for v := range s.inVLAN {
		used[v] = true
	}
	return used
}

// ports returns the links of a switch, in order.
func (s *scene) ports(of map[flow.DPID]map[flow.Port]bool, sw flow.DPID) []flow.Port {
	return slices.Sorted(maps.Keys(of[sw]))
}

// refusal returns why a switch cannot carry out what tenants need, "" if it can
// or is not known.
func refusal(sw *api.Switch) string {
	switch {
	case sw == nil:
		return ""
	case sw.Openflow == "1.0":
		return "the switch speaks OpenFlow 1.0 and has one table; its ports cannot be members. Virtual networks need OpenFlow 1.3"
	case flow.ForwardTable(sw.Tables, false) == 0:
		return fmt.Sprintf("the switch has %d flow tables, and virtual networks need %d; its ports cannot be members", sw.Tables, flow.PipelineTables)
	}
	return ""
}
