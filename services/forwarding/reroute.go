package forwarding

import (
	"time"

	"github.com/weft-sdn/weft/api"
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
