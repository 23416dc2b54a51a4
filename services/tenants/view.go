package tenants

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/nib"
)

// lingers is how long a port counts as a link when it has no role any more. Its neighbour,
// which may only have lost its connection to the controller, goes on sending.
const lingers = 5 * time.Second

// links is, by switch, the ports that count as links; and until when, if they are none now.
type links map[flow.DPID]map[flow.Port]time.Time

// has reports whether a port counts as a link.
func (l links) has(at flow.Location) bool {
	_, link := l[at.Switch][at.Port]
	return link
}

// of returns the ports of a switch that count as links, in order.
func (l links) of(sw flow.DPID) []flow.Port { return slices.Sorted(maps.Keys(l[sw])) }

// follow follows the roles of ports, and returns the switches that have other links.
func (l links) follow(now time.Time, c nib.Change) (changed []flow.DPID) {
	for _, r := range c.Roles() {
		at, role := cmp.Or(r.Is, r.Was).Key, flow.RoleUnsettled.String()
		if r.Is != nil {
			role = r.Is.Is.Role
		}
		was := l.has(at)
		switch {
		case role == flow.RoleLink.String():
			if l[at.Switch] == nil {
				l[at.Switch] = map[flow.Port]time.Time{}
			}
			l[at.Switch][at.Port] = time.Time{}
		case role != flow.RoleUnsettled.String():
			delete(l[at.Switch], at.Port)
		case was && l[at.Switch][at.Port].IsZero():
			l[at.Switch][at.Port] = now.Add(lingers)
		}
		if was != l.has(at) {
			changed = append(changed, at.Switch)
		}
	}
	return changed
}

// expire ends the links that have lingered, and returns the switches that had some.
func (l links) expire(now time.Time) (changed []flow.DPID) {
	for sw, ports := range l {
		n := len(ports)
		maps.DeleteFunc(ports, func(_ flow.Port, until time.Time) bool { return !until.IsZero() && !now.Before(until) })
		if len(ports) < n {
			changed = append(changed, sw)
		}
	}
	return changed
}

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

// seenOf returns a host of the network.
func seenOf(h *nib.Host) *seen {
	return &seen{hostKey{h.Key.VLAN, h.Key.MAC}, h.Is.GetAt().Flow(), h.Is.FirstSeen}
}
