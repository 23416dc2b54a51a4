package ryu

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/nib"
)

// view is a snapshot of the network as programs for Ryu see it.
type view struct{ nib.Snapshot }

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

// announce passes what has appeared and disappeared to notify, under the names of
// ws_topology.
func announce(c nib.Change, notify func(method string, object any)) {
	was, is := view{c.Was}, view{c.Is}
	for _, s := range c.Switches() {
		sw := cmp.Or(s.Is, s.Was).Key
		before, after := was.Connected(sw) != nil, is.Connected(sw) != nil
		again := before && after && nib.Anew(s)
		if before && !after || again {
			notify("event_switch_leave", was.switchObject(sw))
		}
		if !before && after || again {
			notify("event_switch_enter", is.switchObject(sw))
		}
	}
	for _, s := range c.Links() {
		before, after := usable(s.Was), usable(s.Is)
		again := before && after && nib.Anew(s)
		if before && !after || again {
			notify("event_link_delete", is.linkObject(s.Was.Key))
		}
		if !before && after || again {
			notify("event_link_add", is.linkObject(s.Is.Key))
		}
	}
	for _, s := range c.Hosts() {
		if nib.Anew(s) {
			notify("event_host_add", is.hostObject(s.Is.Is))
		}
	}
}

func usable(l *nib.Link) bool { return l != nil && l.Is.Usable() }

// has reports whether a switch is connected.
func (v view) has(sw flow.DPID) bool { return v.version(sw) != "" }

// version returns the OpenFlow version of a switch, empty if it is not connected.
func (v view) version(sw flow.DPID) string { return v.Connected(sw).GetOpenflow() }

// port returns a port of a connected switch, nil if there is none.
func (v view) port(at flow.Location) *api.Port {
	if p := v.Port(at); p != nil && v.Connected(at.Switch) != nil {
		return p.Is
	}
	return nil
}

// portNames returns the names of a connected switch's ports, by number, but for LOCAL.
func (v view) portNames(sw flow.DPID) map[uint32]string {
	names := map[uint32]string{}
	for p := range v.Ports(sw) {
		if p.Key.Port <= flow.PortMax && v.Connected(sw) != nil {
			names[p.Is.Port] = p.Is.Name
		}
	}
	return names
}

// connected returns the switches that are connected, in order.
func (v view) connected() []flow.DPID {
	return slices.DeleteFunc(v.DPIDs(), func(sw flow.DPID) bool { return v.Connected(sw) == nil })
}

// switchList returns all switches, or the one given.
func (v view) switchList(only *flow.DPID) []switchObject {
	list := []switchObject{}
	for _, sw := range v.connected() {
		if only == nil || *only == sw {
			list = append(list, v.switchObject(sw))
		}
	}
	return list
}

// linkList returns all links, or those from the switch given.
func (v view) linkList(only *flow.DPID) []linkObject {
	list := []linkObject{}
	for l := range v.Links() {
		if usable(l) && (only == nil || *only == l.Key.Src.Switch) {
			list = append(list, v.linkObject(l.Key))
		}
	}
	slices.SortFunc(list, func(a, b linkObject) int {
		return strings.Compare(a.Src.DPID+a.Src.PortNo+a.Dst.DPID, b.Src.DPID+b.Src.PortNo+b.Dst.DPID)
	})
	return list
}

// hostList returns all hosts, or those at the switch given.
func (v view) hostList(only *flow.DPID) []hostObject {
	list := []hostObject{}
	for h := range v.Hosts() {
		if only == nil || *only == h.Is.GetAt().Flow().Switch {
			list = append(list, v.hostObject(h.Is))
		}
	}
	slices.SortFunc(list, func(a, b hostObject) int { return strings.Compare(a.MAC+a.Port.DPID, b.MAC+b.Port.DPID) })
	return list
}

func (v view) switchObject(sw flow.DPID) switchObject {
	o := switchObject{sw.String(), []portObject{}}
	for p := range v.Ports(sw) {
		if p.Key.Port <= flow.PortMax {
			o.Ports = append(o.Ports, v.portObject(p.Key))
		}
	}
	slices.SortFunc(o.Ports, func(a, b portObject) int { return strings.Compare(a.PortNo, b.PortNo) })
	return o
}

func (v view) portObject(at flow.Location) portObject {
	p := v.port(at)
	return portObject{DPID: at.Switch.String(), PortNo: fmt.Sprintf("%08x", uint32(at.Port)), HWAddr: p.GetMac(), Name: p.GetName()}
}

func (v view) linkObject(l nib.LinkKey) linkObject {
	return linkObject{v.portObject(l.Src), v.portObject(l.Dst)}
}

func (v view) hostObject(h *api.Host) hostObject {
	return hostObject{
		MAC: h.GetMac(), IPv4: append([]string{}, h.GetIpv4()...), IPv6: append([]string{}, h.GetIpv6()...), Port: v.portObject(h.GetAt().Flow()),
	}
}
