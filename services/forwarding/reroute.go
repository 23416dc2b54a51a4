package forwarding

import (
	"slices"
	"time"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
)

// converged moves the routes over a lost link to other paths, egress first, and
// removes those without a path. With several instances of paths it is called
// for each; it asks those that still disagree again when they report
// convergence.
func (e *engine) converged(ev *api.PathsConverged) {
	now := e.now()
	e.links.handlePaths(ev, now)
	e.paths.invalidate(e.links.listLost(now))
	e.rescue(now)
}

// linkChanged handles discovery's report of a link. It acts on a loss only once
// paths are computed without the link.
func (e *engine) linkChanged(ev *api.LinkChanged) {
	now := e.now()
	e.links.handleLink(ev, now)
	e.paths.invalidate(e.links.listLost(now))
	e.adoption.notePending(now)
}

// patience is how long an answer from paths with a lost link, or without a path
// although there are links, counts as outdated.
const patience = 3 * time.Second

// rescue moves this instance's routes that need a recently lost link.
func (e *engine) rescue(now time.Time) {
	lost := e.links.listLost(now)
	if lost == nil {
		return
	}
	var hit []*route
	e.routes.each(func(r *route) {
		if r.usesLost(lost) && e.replicas.owns(r.pair) {
			hit = append(hit, r)
		}
	})
	e.move(relocation{routes: hit, began: now, reason: "link lost", lost: e.links.listNewlyLost(now)})
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

// move programs routes anew and shares them.
func (e *engine) move(x relocation) {
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
			r = e.keepPath(old, from, to, x.lost)
		}
		if r == nil && from != to {
			r, _ = e.compute(e.findPath, old.pair, from, to, old.rewrite)
		}
		switch {
		case r != nil && (r.usesLost(x.lost) || r.sameWay(old) && !again):
			continue
		case r == nil && from != to && x.lost != nil:
			if reach == nil {
				reach = e.links.reach(x.lost)
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
			r.among = e.replicas.changes.Load()
		}
		if !e.replace(old, r) {
			continue // a packet was faster
		}
		about, change := r, "rerouted"
		if r == nil {
			about, change = old, "removed"
			e.count.lost.Add(1)
			e.shareGone(old, max(x.began.UnixNano(), old.sent+1))
		} else {
			if again {
				e.program.add(d, r, nil, nil) // its groups may be gone
			} else {
				e.program.add(d, r, e.withSureGroups(old), nil)
			}
			e.count.rerouted.Add(1)
			e.share(r)
			e.noteReplaced(old, r, x.began.UnixNano()-old.sent < conflicting)
		}
		e.program.remove(d, old, r)
		e.program.removeHops(d, old.pair, strays, r)
		events = append(events, &api.RouteChanged{Route: about.message(), Change: change, Reason: x.reason})
	}
	if len(events) == 0 {
		return
	}
	if err := e.execute(e.send, d); err != nil {
		e.log.Error("routes not programmed", "routes", len(events), "error", err)
	}
	took := e.now().Sub(x.began)
	for _, ev := range events {
		ev.TookUs = uint64(took.Microseconds())
		e.publish(ev)
	}
	e.log.Info("routes moved", "routes", len(events), "reason", x.reason, "took", took)
}

// keepPath returns a route like old, or nil if old does not connect from and to
// over links that are up. There may be a better path by now, but a route that
// moves while two programmings of it are in doubt is in doubt again.
func (e *engine) keepPath(old *route, from, to flow.Location, lost map[flow.Location]bool) *route {
	rewrite, ok := e.leave(old.pair, to, old.rewrite)
	if f, t := old.ends(); f != from || t != to || !ok || !slices.Equal(rewrite, old.rewrite) || old.usesLost(lost) || !e.links.holds(old) {
		return nil
	}
	return &route{pair: old.pair, hops: old.hops, rewrite: rewrite, detours: old.detours}
}

// withSureGroups returns r if its groups are certainly on the switches, else nil.
// Another instance that ran since may have removed them.
func (e *engine) withSureGroups(r *route) *route {
	if r != nil && e.replicas.isAlone() && r.among == e.replicas.changes.Load() {
		return r
	}
	return nil
}

// replace replaces old by r, or by nothing, if old is still there. If a stage
// holds one of its hosts, old is about to be removed, and r comes too late.
func (e *engine) replace(old, r *route) (done bool) {
	e.routes.with(old.pair, func(s *routeShard) {
		if done = s.m[old.pair] == old && (r == nil || !e.hosts.holds(r.pair, r.rewrite)); !done {
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

// checkTakenOver checks the routes that this instance now owns: nobody handled their
// events while their owner was failing.
func (e *engine) checkTakenOver() {
	now := e.now()
	var cut, astray []*route
	e.routes.each(func(r *route) {
		if !e.replicas.owns(r.pair) {
			return
		}
		if from, to := r.ends(); !e.hosts.agree(r, from, to) {
			astray = append(astray, r)
		} else if !e.links.holds(r) {
			cut = append(cut, r)
		}
	})
	e.move(relocation{routes: astray, began: now, reason: "host moved", ends: e.hosts.ends})
	e.move(relocation{routes: cut, began: now, reason: "link lost", lost: e.links.listNewlyLost(now)})
}
