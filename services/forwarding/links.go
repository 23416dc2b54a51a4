package forwarding

import (
	"sync"
	"time"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
)

// linkView holds the links between switches as discovery reports them, and the
// recently lost ones. Paths are computed elsewhere, perhaps by several
// instances that learn of a loss one after the other, and perhaps by one that
// has just started and never knew of it. So a route is judged by the links that
// it needs, whichever instance reports convergence.
type linkView struct {
	mu   sync.Mutex                      // guards all below
	up   map[flow.Location]flow.Location // usable
	lost map[flow.Location]time.Time     // ports of links that are down, since when
}

// lostFor is how long routes are checked for a lost link: by then every
// instance that computes paths knows of it.
const lostFor = 5 * time.Second

func newLinkView() *linkView {
	return &linkView{up: map[flow.Location]flow.Location{}, lost: map[flow.Location]time.Time{}}
}

// handleLink records a change of a link.
func (v *linkView) handleLink(ev *api.LinkChanged, now time.Time) {
	src, dst := ev.Link.Src.Flow(), ev.Link.Dst.Flow()
	v.mu.Lock()
	defer v.mu.Unlock()
	if !ev.Removed && ev.Link.Usable() {
		v.up[src] = dst
		delete(v.lost, src)
		return
	}
	if _, was := v.up[src]; was {
		delete(v.up, src)
		v.lost[src] = now
	}
}

// handlePaths records the links that the computed paths lost and gained.
func (v *linkView) handlePaths(ev *api.PathsConverged, now time.Time) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, l := range ev.Gained {
		delete(v.lost, l.Src.Flow())
		delete(v.lost, l.Dst.Flow())
	}
	for _, l := range ev.Lost {
		v.lost[l.Src.Flow()], v.lost[l.Dst.Flow()] = now, now
	}
}

// peerOf returns the other end of a link that is up.
func (v *linkView) peerOf(at flow.Location) (to flow.Location, up bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	to, up = v.up[at]
	return to, up
}

// recentlyUp reports whether a link is up or was until recently.
func (v *linkView) recentlyUp(at flow.Location) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	_, up := v.up[at]
	_, lost := v.lost[at]
	return up || lost
}

// joined returns which switches links join that are up in both directions: each switch's group
// is named by one of them.
func (v *linkView) joined(has func(flow.Location) bool) *groups {
	v.mu.Lock()
	defer v.mu.Unlock()
	g := &groups{}
	for a, b := range v.up {
		if v.up[b] == a && has(a) && has(b) {
			g.join(a.Switch, b.Switch)
		}
	}
	return g
}

// groups are sets of switches that are disjoint.
type groups struct{ above map[flow.DPID]flow.DPID }

// of returns the name of a switch's group.
func (g *groups) of(sw flow.DPID) flow.DPID {
	for up, more := g.above[sw]; more; up, more = g.above[sw] {
		if top, further := g.above[up]; further {
			g.above[sw] = top // shortens the way of the next
		}
		sw = up
	}
	return sw
}

// join unites the groups of two switches.
func (g *groups) join(a, b flow.DPID) {
	if a, b = g.of(a), g.of(b); a != b {
		if g.above == nil {
			g.above = map[flow.DPID]flow.DPID{}
		}
		g.above[max(a, b)] = min(a, b)
	}
}

// listLost returns the ports of the recently lost links, nil if there are none.
func (v *linkView) listLost(now time.Time) map[flow.Location]bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	if len(v.lost) == 0 {
		return nil
	}
	lost := make(map[flow.Location]bool, len(v.lost))
	for at, since := range v.lost {
		if now.Sub(since) > lostFor {
			delete(v.lost, at)
		} else {
			lost[at] = true
		}
	}
	return lost
}

// listNewlyLost returns the ports of the links lost within the last patience, or nil
// if there are none.
func (v *linkView) listNewlyLost(now time.Time) map[flow.Location]bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	var lost map[flow.Location]bool
	for at, since := range v.lost {
		if now.Sub(since) <= patience {
			if lost == nil {
				lost = map[flow.Location]bool{}
			}
			lost[at] = true
		}
	}
	return lost
}

// reach returns which switches can reach each other over the links that are up
// and not lost: they have the same value. A switch without a link has none.
func (v *linkView) reach(lost map[flow.Location]bool) map[flow.DPID]flow.DPID {
	v.mu.Lock()
	defer v.mu.Unlock()
	next := map[flow.DPID][]flow.DPID{}
	for at, to := range v.up {
		if !lost[at] && !lost[to] {
			next[at.Switch] = append(next[at.Switch], to.Switch)
		}
	}
	part := make(map[flow.DPID]flow.DPID, len(next))
	var queue []flow.DPID
	for start := range next {
		if _, seen := part[start]; seen {
			continue
		}
		part[start] = start
		for queue = append(queue[:0], start); len(queue) > 0; {
			at := queue[0]
			queue = queue[1:]
			for _, to := range next[at] {
				if _, seen := part[to]; !seen {
					part[to] = start
					queue = append(queue, to)
				}
			}
		}
	}
	return part
}

// holds reports whether a link that is up joins every two consecutive switches
// of a route.
func (v *linkView) holds(r *route) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	for i, h := range r.hops[:len(r.hops)-1] {
		next := r.hops[i+1]
		if v.up[flow.Location{Switch: h.sw, Port: h.out}] != (flow.Location{Switch: next.sw, Port: next.in}) {
			return false
		}
	}
	return true
}
