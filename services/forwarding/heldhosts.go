package forwarding

import (
	"time"

	"github.com/weft-sdn/weft/flow"
)

// removeHostRoutes removes the routes of a host whose packets a stage holds. Only the owner of a
// route removes its entries.
func (e *engine) removeHostRoutes(host knownHost) {
	var own, others []*route
	e.routes.find([]routeKey{keyOfHost(host.mac)}, func(r *route) {
		if (knownHost{r.src, r.vlan}) != host && receiver(r.pair, r.rewrite) != host {
			return
		}
		if e.replicas.owns(r.pair) {
			own = append(own, r)
		} else {
			others = append(others, r)
		}
	})
	for _, r := range others {
		e.replace(r, nil)
	}
	now := e.now()
	e.move(relocation{routes: own, began: now, reason: "host held", ends: func(r *route) (from, to flow.Location) {
		from, _ = r.ends()
		return from, from
	}})
	e.outdated.add(now, own...)
}

// removeLateRoutes removes routes of held hosts that another instance programmed
// before it knew of the hold.
func (e *engine) removeLateRoutes(list []*route, now time.Time) {
	d := &flow.Decision{}
	for _, r := range list {
		e.program.remove(d, r, nil)
	}
	e.sendRemovals(d)
	e.outdated.add(now, list...)
}

// sendRemovals sends a decision that removes routes of held hosts.
func (e *engine) sendRemovals(d *flow.Decision) {
	if d.Empty() {
		return
	}
	if err := e.execute(e.send, d); err != nil {
		e.log.Error("routes of held hosts not removed", "error", err)
	}
}
