package layout

import (
	"fmt"

	"github.com/weft-sdn/weft/lab/machine"
	"github.com/weft-sdn/weft/lab/topology"
)

// Lay lays a completed topology out on this machine: names of bridges,
// namespaces and interfaces, the way each link is made.
func Lay(t *topology.Topology) *Lab { return LayAgain(t, &Lab{}) }

// LayAgain is newState where was is there already: what is in both keeps its
// names.
func LayAgain(t *topology.Topology, was *Lab) *Lab {
	s := &Lab{Name: t.Name, Topology: t, Bridges: map[string]string{}}
	used := map[string]bool{"lo": true, "all": true, "default": true, "ovs-netdev": true, "ovs-system": true}
	kept, next := was.names(used)
	name := func(wanted, short string) string {
		for n := 0; len(wanted) > MaxIface || used[wanted]; n++ {
			wanted = short
			if n > 0 {
				wanted = fmt.Sprintf("%s-%d", short, n)
			}
		}
		used[wanted] = true
		return wanted
	}
	for i, sw := range t.Switches {
		if bridge, ok := was.Bridges[sw.Name]; ok && !(sw.Kind == topology.KindHybrid && NodeInterface.MatchString(bridge)) {
			s.Bridges[sw.Name] = bridge
			continue
		}
		wanted := sw.Name
		if sw.Kind == topology.KindHybrid && NodeInterface.MatchString(wanted) {
			wanted = fmt.Sprintf("sw%d", i+1)
		}
		s.Bridges[sw.Name] = name(wanted, fmt.Sprintf("sw%d", i+1))
	}
	index := map[string]int{}
	for i, sw := range t.Switches {
		index[sw.Name] = i
	}
	switchEnd := func(sw string, port uint16) End {
		i := index[sw]
		e := End{Node: sw, Port: port, Netns: machine.SwitchNetns(t.Name), MAC: portMAC()}
		if t.Switches[i].Kind == topology.KindRouter {
			e.Routed, e.Netns, e.Iface = true, machine.HostNetns(t.Name, sw), fmt.Sprintf("eth%d", port)
		}
		if t.Switches[i].Kind == topology.KindHybrid && t.OVS == topology.OVSOwn {
			e.Netns = machine.HostNetns(t.Name, sw)
		}
		if was, ok := kept[e.String()]; ok && was.Tunnel == nil && was.Routed == e.Routed && was.Netns == e.Netns {
			return was
		}
		if e.Routed {
			return e
		}
		e.Iface = name(fmt.Sprintf("%s-eth%d", sw, port), fmt.Sprintf("sw%d-eth%d", i+1, port))
		return e
	}
	near := func(sw string, port uint16, tunnel *topology.Tunnel) End {
		if tunnel != nil {
			far := End{Node: sw, Port: port}
			if was, ok := kept[far.String()]; ok && was.Tunnel != nil && *was.Tunnel == *tunnel {
				return was
			}
			return s.far(sw, port, tunnel, name)
		}
		return switchEnd(sw, port)
	}
	for _, h := range t.Hosts {
		s.Wires = append(s.Wires, Wire{
			A:     near(h.Switch, h.Port, h.Tunnel),
			B:     End{Node: h.Name, Host: true, Netns: machine.HostNetns(t.Name, h.Name), Iface: HostIface, MAC: h.MAC},
			Cable: h.Shape.NeedsCable() || h.VLAN != 0,
			VLAN:  h.VLAN, Shape: h.Shape,
		})
	}
	for _, l := range t.Links {
		s.Wires = append(s.Wires, Wire{
			A: switchEnd(l.A, l.APort), B: near(l.B, l.BPort, l.Tunnel),
			Cable: l.Shape.NeedsCable(), Shape: l.Shape,
		})
	}
	for _, h := range t.Hosts {
		if h.Eth1 != nil {
			s.Wires = append(s.Wires, Wire{
				A: switchEnd(h.Eth1.Switch, h.Eth1.Port),
				B: End{Node: h.Name, Host: true, Netns: machine.HostNetns(t.Name, h.Name), Iface: hostIface1, MAC: portMAC()},
			})
		}
	}
	for i := range s.Wires {
		s.Wires[i].ID = next + i
		s.Wires[i].State = LinkIsUp
	}
	s.layNodes(was.Nodes, name)
	if len(was.Nodes) > 0 && s.overlap() != nil { // with what the file says now
		s.layNodes(nil, name)
	}
	return s
}

// names marks the names of bridges and interfaces that are in use, and returns
// the ends at switches, and the least number that no wire has.
func (s *Lab) names(used map[string]bool) (ends map[string]End, next int) {
	ends = map[string]End{}
	for _, bridge := range s.Bridges {
		used[bridge] = true
	}
	for i := range s.Wires {
		w := &s.Wires[i]
		next = max(next, w.ID+1)
		for _, e := range w.Ends() {
			if e.Bridged() || e.Tunnel != nil {
				used[e.Iface] = true
			}
			if !e.Host {
				ends[e.String()] = *e
			}
		}
	}
	for i := range s.Nodes {
		for _, p := range s.Nodes[i].Ports {
			used[p.InternalInterface] = true
		}
	}
	return ends, next
}
