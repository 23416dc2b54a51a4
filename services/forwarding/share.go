package forwarding

import "github.com/weft-sdn/weft/api"

// handleShared handles what another instance has programmed. The later of two routes
// of a pair is in force. If two instances may have programmed a pair at the
// same time, its owner programs it once more.
func (g *routing) handleShared(ev *api.RoutesShared) {
	now := g.now()
	lost := g.links.listLost(now)
	var cut, crossed, late []*route
	strays := map[pair][]hop{}
	for _, m := range ev.Routes {
		r := routeOf(m)
		var old *route
		later := false
		held := false
		g.routes.with(r.pair, func(s *routeShard) {
			if held = len(r.hops) > 0 && g.hosts.holds(r.pair, r.rewrite); held {
				return
			}
			old = s.m[r.pair]
			later = old == nil || old.sent <= r.sent
			switch {
			case !later:
			case len(r.hops) == 0:
				s.drop(r.pair)
			case old != nil || len(s.m) < g.perShard():
				s.put(r)
			}
		})
		g.adoption.yieldPair(r.pair, now)
		if held {
			if g.replicas.owns(r.pair) {
				late = append(late, r)
			}
			continue
		}
		if len(r.hops) == 0 || !g.replicas.owns(r.pair) {
			continue
		}
		inForce, other := r, old
		if !later {
			inForce, other = old, r
		}
		if from, to := inForce.ends(); !g.hosts.agree(inForce, from, to) {
			g.hosts.lookAgain(now, r.src, receiver(r.pair, r.rewrite).mac)
		}
		differs := other != nil && !r.sameWay(old)
		if differs {
			g.outdated.add(now, other) // its entries may be in force: the later ones may be lost with their packet
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
	g.removeLateRoutes(late, now)
	g.move(relocation{routes: crossed, began: now, reason: "programmed twice", lost: g.links.listNewlyLost(now), strays: strays})
	g.move(relocation{routes: cut, began: now, reason: "link lost", lost: g.links.listNewlyLost(now)})
}
