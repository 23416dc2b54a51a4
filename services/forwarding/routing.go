package forwarding

import (
	"slices"
	"time"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
)

// routing keeps the routes, and programs and moves them.
type routing struct {
	*platform
	program  programmer
	routes   *routeTable
	links    *linkView
	hosts    *whereabouts
	outdated outdated
}

// relocation lists routes that need new paths, and the reason.
type relocation struct {
	routes []*route
	began  time.Time
	reason string
	// ends returns the ports to connect; none means the present ones, equal
	// ones that the route must be removed. nil: the present ones.
	ends func(*route) (from, to flow.Location)
	// lost lists ports of links to avoid: if the answer is a path over one of
	// them, or none although other links would do, the route stays for now.
	lost map[flow.Location]bool
	// strays lists entries to remove, by pair. Those routes are sent again, and
	// change only if they cannot stay.
	strays map[pair][]hop
}

// patience is how long an answer from paths with a lost link, or without a path
// although there are links, counts as outdated.
const patience = 3 * time.Second

// conflicting bounds the time between two programmings of a pair by two
// instances that may not have known of each other.
const conflicting = int64(5 * time.Second)

// move programs routes anew and shares them.
func (g *routing) move(x relocation) {
	if len(x.routes) == 0 {
		return
	}
	d := &flow.Decision{}
	var events []*api.RouteChanged
	var reach map[flow.DPID]flow.DPID
	for _, old := range x.routes {
		from, to := old.ends()
		if x.ends != nil {
			from, to = x.ends(old)
		}
		strays, again := x.strays[old.pair]
		var r *route
		if again {
			r = g.keepPath(old, from, to, x.lost)
		}
		if r == nil && from != to {
			r, _ = g.compute(g.findPath, old.pair, from, to, old.rewrite)
		}
		switch {
		case r != nil && (r.usesLost(x.lost) || r.sameWay(old) && !again):
			continue
		case r == nil && from != to && x.lost != nil:
			if reach == nil {
				reach = g.links.reach(x.lost)
			}
			if at, linked := reach[from.Switch]; linked && at == reach[to.Switch] {
				continue
			}
		}
		if r != nil {
			r.since, r.sent, r.moved = old.since, max(x.began.UnixNano(), old.sent+1), old.moved // clocks differ
			if !r.sameWay(old) {
				r.moved++
			}
			r.among = g.replicas.changes.Load()
		}
		if !g.replace(old, r) {
			continue // a packet was faster
		}
		about, change := r, "rerouted"
		if r == nil {
			about, change = old, "removed"
			g.count.lost.Add(1)
			g.shareGone(old, max(x.began.UnixNano(), old.sent+1))
		} else {
			if again {
				g.program.add(d, r, nil, nil) // its groups may be gone
			} else {
				g.program.add(d, r, g.withSureGroups(old), nil)
			}
			g.count.rerouted.Add(1)
			g.share(r)
			g.noteReplaced(old, r, x.began.UnixNano()-old.sent < conflicting)
		}
		g.program.remove(d, old, r)
		g.program.removeHops(d, old.pair, strays, r)
		events = append(events, &api.RouteChanged{Route: about.message(), Change: change, Reason: x.reason})
	}
	if len(events) == 0 {
		return
	}
	if err := g.execute(g.send, d); err != nil {
		g.log.Error("routes not programmed", "routes", len(events), "error", err)
	}
	took := g.now().Sub(x.began)
	for _, ev := range events {
		ev.TookUs = uint64(took.Microseconds())
		g.publish(ev)
	}
	g.log.Info("routes moved", "routes", len(events), "reason", x.reason, "took", took)
}

// keepPath returns a route like old, or nil if old does not connect from and to
// over links that are up. There may be a better path by now, but a route that
// moves while two programmings of it are in doubt is in doubt again.
func (g *routing) keepPath(old *route, from, to flow.Location, lost map[flow.Location]bool) *route {
	rewrite, ok := g.leave(old.pair, to, old.rewrite)
	if f, t := old.ends(); f != from || t != to || !ok || !slices.Equal(rewrite, old.rewrite) || old.usesLost(lost) || !g.links.holds(old) {
		return nil
	}
	return &route{pair: old.pair, hops: old.hops, rewrite: rewrite, detours: old.detours}
}

// withSureGroups returns r if its groups are certainly on the switches, else nil.
// Another instance that ran since may have removed them.
func (g *routing) withSureGroups(r *route) *route {
	if r != nil && g.replicas.isAlone() && r.among == g.replicas.changes.Load() {
		return r
	}
	return nil
}

// replace replaces old by r, or by nothing, if old is still there. If a stage
// holds one of its hosts, old is about to be removed, and r comes too late.
func (g *routing) replace(old, r *route) (done bool) {
	g.routes.with(old.pair, func(s *routeShard) {
		if done = s.m[old.pair] == old && (r == nil || !g.hosts.holds(r.pair, r.rewrite)); !done {
			return
		}
		if r == nil {
			s.drop(old.pair)
		} else {
			s.put(r)
		}
	})
	return done
}

// perShard returns how many routes each shard may hold.
func (g *routing) perShard() int { return g.cfg.MaxRoutes/len(g.routes.shards) + 1 }

// install stores a route and appends its programming, unless a stage holds one
// of its hosts.
func (g *routing) install(d *flow.Decision, r *route, release func()) {
	var old *route
	held := false
	r.among = g.replicas.changes.Load()
	g.routes.with(r.pair, func(s *routeShard) {
		if held = g.hosts.holds(r.pair, r.rewrite); held {
			return
		}
		if old = s.m[r.pair]; old != nil {
			r.since, r.sent, r.moved = old.since, max(r.sent, old.sent), old.moved
		}
		s.put(r)
	})
	if held {
		return
	}
	g.program.add(d, r, g.withSureGroups(old), release)
	if old != nil {
		g.program.remove(d, old, r)
		g.noteReplaced(old, r, true) // the decision may be lost with its packet, or a part of it
	} else {
		g.count.routes.Add(1)
		if remains := g.adoption.takePool(r.pair); remains != nil {
			g.program.remove(d, remains, r)
		}
	}
	g.share(r)
}

// noteReplaced records that r replaces old. The owner programs the pair once more if
// there is doubt: if both may be on the way to the switches, or nobody says
// whether r has reached them.
func (g *routing) noteReplaced(old, r *route, doubt bool) {
	if doubt && !r.sameWay(old) && g.replicas.owns(old.pair) {
		g.outdated.add(g.now(), old)
	}
}
