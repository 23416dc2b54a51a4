package forwarding

import (
	"slices"
	"time"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
)

// segmentChanged handles a change of a virtual network's ports. It moves or
// removes the routes that leave at wrong ports or with wrong tags.
func (g *routing) segmentChanged(ev *api.SegmentChanged) {
	vlan, ports := ev.GetSegment().Tagged()
	if vlan == 0 {
		return
	}
	var c flow.TaggingChange
	if ev.Removed {
		c = g.tagging.Remove(vlan)
	} else {
		c = g.tagging.Set(vlan, ports)
	}
	var keys []routeKey
	if c.Whole {
		keys = append(keys, keyOfVLAN(vlan))
	}
	for _, at := range c.Ports {
		keys = append(keys, keyOfPort(at))
	}
	g.updateTags(func(f func(*route)) { g.routes.find(keys, f) })
}

// updateTags reprograms those of some routes that do not leave as virtual networks
// require.
func (g *routing) updateTags(some func(func(*route))) {
	var wrong []*route
	some(func(r *route) {
		if !g.replicas.owns(r.pair) {
			return
		}
		_, to := r.ends()
		rewrite, ok := g.leave(r.pair, to, r.rewrite)
		if !ok || !slices.Equal(rewrite, r.rewrite) {
			wrong = append(wrong, r)
		}
	})
	g.move(relocation{routes: wrong, began: g.now(), reason: "virtual network changed"})
}

// retagAfter is how long after its start an instance looks for an earlier run's
// routes that do not leave as they should: virtual networks may have been
// removed meanwhile.
const retagAfter = adoptWithin + 5*time.Second
