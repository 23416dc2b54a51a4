package tunnels

import (
	"context"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
)

// drainLink answers DrainLink, when discovery has taken that the link is drained.
func (r *repairer) drainLink(ctx context.Context, q *api.DrainLinkRequest) *api.DrainLinkResponse {
	b := r.b
	ends := []flow.Location{q.GetA().Flow(), q.GetB().Flow()}
	up := map[string]bool{} // of the tunnels on the link
	b.mu.Lock()
	for i, at := range ends {
		if l := b.links.by[at][ends[1-i]]; l != nil && l.drained == q.Undo {
			next := *l
			next.drained = !q.Undo
			b.learn(at, ends[1-i], &next)
		}
		if q.Undo {
			continue
		}
		for name := range b.over[at] {
			s := b.status[name]
			if s.tunnel.around == nil {
				up[name] = s.state != "down"
			}
			b.need(s, b.now())
		}
	}
	b.mu.Unlock()
	r.repair(ctx)
	resp := &api.DrainLinkResponse{}
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, name := range sorted(up) {
		switch s := b.status[name]; {
		case s == nil:
		case b.over[ends[0]][name] || b.over[ends[1]][name]:
			why := s.lack
			switch {
			case s.stays():
				why = "it never moves: weft tunnel reroute, or weft l2vpn reroute, moves it"
			case why == "":
				why = "its new path is not confirmed yet"
			}
			resp.Stuck = append(resp.Stuck, &api.StuckTunnel{Name: name, Reason: why})
		case up[name] && s.state == "down":
			resp.Lost++
		default:
			resp.Moved++
		}
	}
	return resp
}
