package forwarding

import (
	"slices"
	"time"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
)

// segmentChanged takes what a virtual network's ports are, and moves or removes
// the routes that leave at others, or leave otherwise, than they should.
func (e *engine) segmentChanged(ev *api.SegmentChanged) {
	vlan, ports := ev.GetSegment().Tagged()
	if vlan == 0 {
		return
	}
	var c flow.TaggingChange
	if ev.Removed {
		c = e.tagging.Remove(vlan)
	} else {
		c = e.tagging.Set(vlan, ports)
	}
	var keys []routeKey
	if c.Whole {
		keys = append(keys, keyOfVLAN(vlan))
	}
	for _, at := range c.Ports {
		keys = append(keys, keyOfPort(at))
	}
	e.retag(func(f func(*route)) { e.routes.find(keys, f) })
}

// retag programs those of some routes anew that do not leave as virtual networks
// want it.
func (e *engine) retag(some func(func(*route))) {
	var wrong []*route
	some(func(r *route) {
		if !e.replicas.owns(r.pair) {
			return
		}
		_, to := r.ends()
		rewrite, ok := e.leave(r.pair, to, r.rewrite)
		if !ok || !slices.Equal(rewrite, r.rewrite) {
			wrong = append(wrong, r)
		}
	})
	e.move(relocation{routes: wrong, began: e.now(), reason: "virtual network changed"})
}

// retagAfter is how long after its start an instance looks for routes of an
// earlier run that do not leave as they should: virtual networks may have gone
// meanwhile.
const retagAfter = adoptWithin + 5*time.Second

// leave returns what the last switch does with the packets of a pair before
// they leave at a port, given what a router wants there, and whether they may
// leave there. Virtual networks are not routed into each other.
func (e *engine) leave(p pair, at flow.Location, routed []flow.Action) (rewrite []flow.Action, ok bool) {
	if !p.ip.IsValid() {
		return e.tagging.Egress(at, p.vlan)
	}
	to := receiver(p, routed).vlan
	_, ok = e.tagging.Egress(at, to)
	return routed, ok && !e.tagging.Has(to) && !e.tagging.Has(p.vlan)
}
