package forwarding

import (
	"time"

	"github.com/weft-sdn/weft/flow"
)

// removeHostRoutes removes the routes of a host whose packets a stage holds. Only the owner of a
// route removes its entries.
func (g *routing) removeHostRoutes(host knownHost) {
	var own, others []*route
	g.routes.find([]routeKey{keyOfHost(host.mac)}, func(r *route) {
		if (knownHost{r.src, r.vlan}) != host && receiver(r.pair, r.rewrite) != host {
			return
		}
		if g.replicas.owns(r.pair) {
			own = append(own, r)
		} else {
			others = append(others, r)
		}
	})
	for _, r := range others {
		g.replace(r, nil)
	}
	now := g.now()
	g.move(relocation{routes: own, began: now, reason: "host held", ends: func(r *route) (from, to flow.Location) {
		from, _ = r.ends()
		return from, from
	}})
	g.outdated.add(now, own...)
}

// removeLateRoutes removes routes of held hosts that another instance programmed
// before it knew of the hold.
func (g *routing) removeLateRoutes(list []*route, now time.Time) {
	d := &flow.Decision{}
	for _, r := range list {
		g.program.remove(d, r, nil)
	}
	g.sendRemovals(d)
	g.outdated.add(now, list...)
}

// sendRemovals sends a decision that removes routes of held hosts.
func (g *routing) sendRemovals(d *flow.Decision) {
	if d.Empty() {
		return
	}
	if err := g.execute(g.send, d); err != nil {
		g.log.Error("routes of held hosts not removed", "error", err)
	}
}
