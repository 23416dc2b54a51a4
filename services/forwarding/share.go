package forwarding

import "github.com/weft-sdn/weft/api"

// handleShared handles what another instance has programmed. The later of two routes
// of a pair is in force. If two instances may have programmed a pair at the
// same time, its owner programs it once more.
func (e *engine) handleShared(ev *api.RoutesShared) {
	now := e.now()
	lost := e.links.listLost(now)
	var cut, crossed, late []*route
	strays := map[pair][]hop{}
	for _, m := range ev.Routes {
		r := routeOf(m)
		var old *route
		later := false
		held := false
		e.routes.with(r.pair, func(s *routeShard) {
			if held = len(r.hops) > 0 && e.hosts.holds(r.pair, r.rewrite); held {
				return
			}
			old = s.m[r.pair]
			later = old == nil || old.sent <= r.sent
			switch {
			case !later:
			case len(r.hops) == 0:
				s.drop(r.pair)
			case old != nil || len(s.m) < e.perShard():
				s.put(r)
			}
		})
		e.adoption.yieldPair(r.pair, now)
		if held {
			if e.replicas.owns(r.pair) {
				late = append(late, r)
			}
			continue
		}
		if len(r.hops) == 0 || !e.replicas.owns(r.pair) {
			continue
		}
		inForce, other := r, old
		if !later {
			inForce, other = old, r
		}
		if from, to := inForce.ends(); !e.hosts.agree(inForce, from, to) {
			e.hosts.lookAgain(now, r.src, receiver(r.pair, r.rewrite).mac)
		}
		differs := other != nil && !r.sameWay(old)
		if differs {
			e.outdated.add(now, other) // its entries may be in force: the later ones may be lost with their packet
		}
		if differs && max(r.sent-old.sent, old.sent-r.sent) < conflicting {
			crossed = append(crossed, inForce)
			for k := range other.keys() {
				strays[r.pair] = append(strays[r.pair], k)
			}
		} else if inForce.usesLost(lost) {
			cut = append(cut, inForce)
		}
	}
	e.removeLateRoutes(late, now)
	e.move(relocation{routes: crossed, began: now, reason: "programmed twice", lost: e.links.listNewlyLost(now), strays: strays})
	e.move(relocation{routes: cut, began: now, reason: "link lost", lost: e.links.listNewlyLost(now)})
}
