package forwarding

import (
	"time"

	"github.com/weft-sdn/weft/flow"
)

// rescue moves this instance's routes that need a recently lost link.
func (g *routing) rescue(now time.Time) {
	lost := g.links.listLost(now)
	if lost == nil {
		return
	}
	var hit []*route
	g.routes.each(func(r *route) {
		if r.usesLost(lost) && g.replicas.owns(r.pair) {
			hit = append(hit, r)
		}
	})
	g.move(relocation{routes: hit, began: now, reason: "link lost", lost: g.links.listNewlyLost(now)})
}

// checkTakenOver checks the routes that this instance now owns: nobody handled their
// events while their owner was failing.
func (g *routing) checkTakenOver() {
	now := g.now()
	var cut, astray []*route
	g.routes.each(func(r *route) {
		if !g.replicas.owns(r.pair) {
			return
		}
		if from, to := r.ends(); !g.hosts.agree(r, from, to) {
			astray = append(astray, r)
		} else if !g.links.holds(r) {
			cut = append(cut, r)
		}
	})
	g.move(relocation{routes: astray, began: now, reason: "host moved", ends: g.hosts.ends})
	g.move(relocation{routes: cut, began: now, reason: "link lost", lost: g.links.listNewlyLost(now)})
}

// programAgain programs the pairs of outdated routes once more, between the
// present places of their hosts, and removes the entries of pairs with a host
// that a stage holds.
func (g *routing) programAgain(now time.Time) {
	d := &flow.Decision{}
	var again []*route
	strays := map[pair][]hop{}
	for _, old := range g.outdated.takeDue(now) {
		if g.hosts.holds(old.pair, old.rewrite) {
			g.program.remove(d, old, nil)
			continue
		}
		g.routes.with(old.pair, func(s *routeShard) {
			r := s.m[old.pair]
			if r == nil {
				return
			}
			if _, seen := strays[r.pair]; !seen {
				again = append(again, r)
			}
			for k := range old.keys() {
				strays[r.pair] = append(strays[r.pair], k)
			}
		})
	}
	g.sendRemovals(d)
	g.move(relocation{routes: again, began: now, reason: "programmed twice", ends: g.hosts.ends, lost: g.links.listNewlyLost(now), strays: strays})
}

// recheckRoutes moves routes that do not lead to where their hosts are.
func (g *routing) recheckRoutes(now time.Time) {
	keys := g.hosts.takeDue(now)
	if len(keys) == 0 {
		return
	}
	var astray []*route
	g.routes.find(keys, func(r *route) {
		if from, to := r.ends(); g.replicas.owns(r.pair) && !g.hosts.agree(r, from, to) {
			astray = append(astray, r)
		}
	})
	g.move(relocation{routes: astray, began: now, reason: "host moved", ends: g.hosts.ends})
}
