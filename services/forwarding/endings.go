package forwarding

import (
	"fmt"
	"strconv"
	"time"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
)

// flowRemoved forgets a route whose first entry was idle for too long; its
// other entries are then idle too. Every instance forgets it, and its owner
// shares that.
func (g *routing) flowRemoved(ev *api.FlowRemoved) {
	_, entry, err := ev.Flow.Entry()
	if err != nil || entry.Cookie.Owner() != flow.OwnerRoutes || ev.Reason == "delete" || ev.Reason == "group_delete" {
		return
	}
	p, in, ok := pairOf(&entry.Match)
	if !ok {
		return
	}
	sw, _ := flow.ParseDPID(ev.Flow.Dpid)
	// A route sent after this entry was installed has a new entry with the same
	// match. The second allows for the clocks and the delay of the message.
	installed := g.now().Add(time.Second - time.Duration(ev.Flow.Duration*float64(time.Second))).UnixNano()
	var gone *route
	g.routes.with(p, func(s *routeShard) {
		if r := s.m[p]; r != nil && r.first().sw == sw && r.first().in == in && r.sent <= installed {
			gone = r
			s.drop(p)
		}
	})
	if gone == nil || !g.replicas.owns(p) {
		return
	}
	g.count.idle.Add(1)
	if gone.hasDetour() {
		d := &flow.Decision{}
		g.program.remove(d, gone, nil)
		if err := g.execute(g.send, d); err != nil {
			g.log.Warn("idle route not removed", "error", err)
		}
	}
	g.publish(&api.RouteChanged{Route: gone.message(), Change: "removed", Reason: "idle"})
}

// switchError reports a route with an entry that a switch refused. Its packets
// come to the controller one by one, and each is delivered.
func (g *routing) switchError(ev *api.SwitchError) {
	v, err := strconv.ParseUint(ev.Cookie, 16, 64)
	cookie := flow.Cookie(v)
	if err != nil || cookie.Owner() != flow.OwnerRoutes {
		return
	}
	var failed *route
	g.routes.each(func(r *route) {
		if r.id() == cookie.ID() {
			failed = r
		}
	})
	if failed == nil {
		if g.replicas.isLeader() {
			g.count.refused.Add(1)
		}
		return
	}
	if !g.replicas.owns(failed.pair) {
		return
	}
	g.count.refused.Add(1)
	g.publish(&api.RouteChanged{Route: failed.message(), Change: "failed", Reason: fmt.Sprintf("switch %s: %s", ev.Dpid, ev.Text)})
}

// forget removes routes whose first entry is gone.
func (g *routing) forget(list []*route, now time.Time) {
	d := &flow.Decision{}
	for _, r := range list {
		if !g.replace(r, nil) {
			continue
		}
		g.count.idle.Add(1)
		g.program.remove(d, r, nil)
		g.shareGone(r, max(now.UnixNano(), r.sent+1))
		g.publish(&api.RouteChanged{Route: r.message(), Change: "removed", Reason: "entries gone"})
	}
	if d.Empty() {
		return
	}
	if err := g.execute(g.send, d); err != nil {
		g.log.Warn("remains of routes not removed", "error", err)
	}
}
