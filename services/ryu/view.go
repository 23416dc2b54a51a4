package ryu

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
)

// view is the network according to the last events. It passes what appears and
// disappears to notify, under the names of ws_topology.
type view struct {
	notify func(method string, object any)

	mu       sync.Mutex // guards what follows
	switches map[flow.DPID]*knownSwitch
	links    map[link]bool
	hosts    map[string]*api.Host // by address and VLAN
}

type knownSwitch struct {
	version string
	ports   map[uint32]*api.Port
}

type link struct{ src, dst flow.Location }

func newView(notify func(string, any)) *view {
	return &view{notify: notify, switches: map[flow.DPID]*knownSwitch{}, links: map[link]bool{}, hosts: map[string]*api.Host{}}
}

// The objects of rest_topology.
type (
	portObject struct {
		DPID   string `json:"dpid"`
		PortNo string `json:"port_no"`
		HWAddr string `json:"hw_addr"`
		Name   string `json:"name"`
	}
	switchObject struct {
		DPID  string       `json:"dpid"`
		Ports []portObject `json:"ports"`
	}
	linkObject struct {
		Src portObject `json:"src"`
		Dst portObject `json:"dst"`
	}
	hostObject struct {
		MAC  string     `json:"mac"`
		IPv4 []string   `json:"ipv4"`
		IPv6 []string   `json:"ipv6"`
		Port portObject `json:"port"`
	}
)

func (v *view) switchChanged(e *api.SwitchChanged) {
	sw, err := flow.ParseDPID(e.GetSwitch().GetDpid())
	if err != nil {
		return
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	_, before := v.switches[sw]
	if !e.Switch.Connected {
		if before {
			gone := v.switchObject(sw)
			delete(v.switches, sw)
			v.notify("event_switch_leave", gone)
		}
		return
	}
	k := &knownSwitch{version: e.Switch.Openflow, ports: map[uint32]*api.Port{}}
	for _, p := range e.Ports {
		k.ports[p.Port] = p
	}
	v.switches[sw] = k
	if !before {
		v.notify("event_switch_enter", v.switchObject(sw))
	}
}

func (v *view) portChanged(e *api.PortChanged) {
	sw, err := flow.ParseDPID(e.GetPort().GetDpid())
	if err != nil {
		return
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	k := v.switches[sw]
	switch {
	case k == nil:
	case e.Removed:
		delete(k.ports, e.Port.Port)
	default:
		k.ports[e.Port.Port] = e.Port
	}
}

func (v *view) linkChanged(e *api.LinkChanged) {
	l := link{e.GetLink().GetSrc().Flow(), e.GetLink().GetDst().Flow()}
	up := !e.Removed && e.GetLink().Usable()
	v.mu.Lock()
	defer v.mu.Unlock()
	if up == v.links[l] {
		return
	}
	if up {
		v.links[l] = true
		v.notify("event_link_add", v.linkObject(l))
	} else {
		delete(v.links, l)
		v.notify("event_link_delete", v.linkObject(l))
	}
}

func (v *view) hostChanged(e *api.HostChanged) {
	h := e.GetHost()
	key := fmt.Sprintf("%s/%d", h.GetMac(), h.GetVlan())
	v.mu.Lock()
	defer v.mu.Unlock()
	_, before := v.hosts[key]
	if e.Change == "gone" {
		delete(v.hosts, key)
		return
	}
	v.hosts[key] = h
	if !before {
		v.notify("event_host_add", v.hostObject(h))
	}
}

// has reports whether a switch is connected.
func (v *view) has(sw flow.DPID) bool { return v.version(sw) != "" }

// version returns the OpenFlow version of a switch, empty if it is not connected.
func (v *view) version(sw flow.DPID) string {
	v.mu.Lock()
	defer v.mu.Unlock()
	if k := v.switches[sw]; k != nil {
		return k.version
	}
	return ""
}

func (v *view) hasPort(sw flow.DPID, port uint32) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	k := v.switches[sw]
	return k != nil && k.ports[port] != nil
}

// portNames returns the names of a switch's ports, by number, but for LOCAL.
func (v *view) portNames(sw flow.DPID) map[uint32]string {
	v.mu.Lock()
	defer v.mu.Unlock()
	names := map[uint32]string{}
	if k := v.switches[sw]; k != nil {
		for n, p := range k.ports {
			if flow.Port(n) <= flow.PortMax {
				names[n] = p.Name
			}
		}
	}
	return names
}

// connected returns the switches in order.
func (v *view) connected() []flow.DPID {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.order()
}

func (v *view) order() []flow.DPID {
	list := make([]flow.DPID, 0, len(v.switches))
	for sw := range v.switches {
		list = append(list, sw)
	}
	slices.Sort(list)
	return list
}

// switchList returns all switches, or the one given.
func (v *view) switchList(only *flow.DPID) []switchObject {
	v.mu.Lock()
	defer v.mu.Unlock()
	list := []switchObject{}
	for _, sw := range v.order() {
		if only == nil || *only == sw {
			list = append(list, v.switchObject(sw))
		}
	}
	return list
}

// linkList returns all links, or those from the switch given.
func (v *view) linkList(only *flow.DPID) []linkObject {
	v.mu.Lock()
	defer v.mu.Unlock()
	list := []linkObject{}
	for l := range v.links {
		if only == nil || *only == l.src.Switch {
			list = append(list, v.linkObject(l))
		}
	}
	slices.SortFunc(list, func(a, b linkObject) int {
		return strings.Compare(a.Src.DPID+a.Src.PortNo+a.Dst.DPID, b.Src.DPID+b.Src.PortNo+b.Dst.DPID)
	})
	return list
}

// hostList returns all hosts, or those at the switch given.
func (v *view) hostList(only *flow.DPID) []hostObject {
	v.mu.Lock()
	defer v.mu.Unlock()
	list := []hostObject{}
	for _, h := range v.hosts {
		if only == nil || *only == h.GetAt().Flow().Switch {
			list = append(list, v.hostObject(h))
		}
	}
	slices.SortFunc(list, func(a, b hostObject) int { return strings.Compare(a.MAC+a.Port.DPID, b.MAC+b.Port.DPID) })
	return list
}

// The functions below are called with mu held.

func (v *view) switchObject(sw flow.DPID) switchObject {
	o := switchObject{sw.String(), []portObject{}}
	for n := range v.switches[sw].ports {
		if flow.Port(n) <= flow.PortMax {
			o.Ports = append(o.Ports, v.portObject(flow.Location{Switch: sw, Port: flow.Port(n)}))
		}
	}
	slices.SortFunc(o.Ports, func(a, b portObject) int { return strings.Compare(a.PortNo, b.PortNo) })
	return o
}

func (v *view) portObject(at flow.Location) portObject {
	o := portObject{DPID: at.Switch.String(), PortNo: fmt.Sprintf("%08x", uint32(at.Port))}
	if k := v.switches[at.Switch]; k != nil {
		o.HWAddr, o.Name = k.ports[uint32(at.Port)].GetMac(), k.ports[uint32(at.Port)].GetName()
	}
	return o
}

func (v *view) linkObject(l link) linkObject {
	return linkObject{v.portObject(l.src), v.portObject(l.dst)}
}

func (v *view) hostObject(h *api.Host) hostObject {
	return hostObject{
		MAC: h.GetMac(), IPv4: append([]string{}, h.GetIpv4()...), IPv6: append([]string{}, h.GetIpv6()...), Port: v.portObject(h.GetAt().Flow()),
	}
}
