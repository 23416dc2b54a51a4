package tenants

import (
	"slices"
	"time"

	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/nib"
)

// reads is what the service reads of the network.
const reads = nib.Switches | nib.Roles | nib.Hosts

// view is the network as it was last read, and what is presumed beyond that.
type view struct {
	net      nib.Snapshot
	presumed map[flow.Location]time.Time // ports that count as links until then
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

func newView() view { return view{presumed: map[flow.Location]time.Time{}} }

// seenOf returns a host of the network.
func seenOf(h *nib.Host) *seen {
	return &seen{hostKey{h.Key.VLAN, h.Key.MAC}, h.Is.GetAt().Flow(), h.Is.FirstSeen}
}

// roleOf returns the role of a port, unsettled if nothing is known.
func roleOf(r *nib.Role) string {
	if r == nil {
		return flow.RoleUnsettled.String()
	}
	return r.Is.Role
}

// roleChanged follows a change of a port's role, and reports whether it changes
// the wanted entries of the switch. A link that is no longer settled counts as one
// for a moment longer: discovery may have restarted.
func (s *view) roleChanged(now time.Time, at flow.Location, was, is string) bool {
	_, presumed := s.presumed[at]
	link := presumed || was == flow.RoleLink.String()
	switch {
	case is != flow.RoleUnsettled.String():
		delete(s.presumed, at)
	case was == flow.RoleLink.String():
		s.presumed[at] = now.Add(lingers)
	}
	edge := flow.RoleEdge.String()
	return (was == edge) != (is == edge) || link != s.link(at)
}

// presume counts ports as links that were links in an earlier run, until
// discovery reports what they are.
func (s *view) presume(now time.Time, sw flow.DPID, ports []flow.Port) {
	for _, p := range ports {
		if at := (flow.Location{Switch: sw, Port: p}); !s.link(at) && !s.net.Has(at, flow.RoleEdge) {
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
	return presumed || s.net.Has(at, flow.RoleLink)
}

// linksOf returns the ports of a switch that count as links, in order.
func (s *view) linksOf(sw flow.DPID) []flow.Port {
	list := s.net.PortsWith(sw, flow.RoleLink)
	for at := range s.presumed {
		if at.Switch == sw && !s.net.Has(at, flow.RoleLink) {
			list = append(list, at.Port)
		}
	}
	slices.Sort(list)
	return list
}

// settled reports whether anything is known of the ports of a switch.
func (s *view) settled(sw flow.DPID) bool {
	for r := range s.net.Roles(sw) {
		if r.Is.Role == flow.RoleLink.String() || r.Is.Role == flow.RoleEdge.String() {
			return true
		}
	}
	return false
}
