package tunnels

import "github.com/weft-sdn/weft/flow"

// A crossing is one direction of a link: the port by which frames leave, and the
// switch to which they come.
type crossing struct {
	at flow.Location
	to flow.DPID
}

// crossings are the links that are to have bypasses. The store's mu guards them.
type crossings struct {
	tunnels map[crossing]map[string]bool         // whose frames go around a link if it fails
	fars    map[flow.Location]map[flow.DPID]bool // the switches to which these links lead
	stale   map[flow.Location]bool               // the links whose bypass may have to be another
}

func newCrossings() crossings {
	return crossings{tunnels: map[crossing]map[string]bool{}, fars: map[flow.Location]map[flow.DPID]bool{}, stale: map[flow.Location]bool{}}
}

// enter enters a tunnel at the links that are to have a bypass for it, or takes it out.
func (t *crossings) enter(s *status, enter bool) {
	for _, p := range s.installed() {
		for i := range p {
			if !s.tunnel.bypassable(p, i) {
				continue
			}
			c := crossing{flow.Location{Switch: p[i].sw, Port: p[i].out}, p[i+1].sw}
			before := len(t.tunnels[c])
			note(t.tunnels, c, s.tunnel.name, enter)
			if now := len(t.tunnels[c]); (before == 0) != (now == 0) {
				note(t.fars, c.at, c.to, now > 0)
				t.stale[c.at] = true
			}
		}
	}
}

// around returns the bypass that a link should have, given the one that it has; nil
// for none.
func (t *crossings) around(at flow.Location, old *tunnel) *tunnel {
	if len(t.fars[at]) != 1 {
		return nil
	}
	for to := range t.fars[at] {
		if old == nil || old.to != to {
			return newBypass(crossing{at, to})
		}
	}
	return old
}
