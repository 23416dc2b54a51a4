package tunnels

import (
	"context"
	"slices"

	"google.golang.org/grpc/codes"

	"github.com/weft-sdn/weft/api"
)

// reroute answers RerouteTunnels.
func (r *repairer) reroute(ctx context.Context, q *api.RerouteTunnelsRequest) (*api.RerouteTunnelsResponse, error) {
	if n := len(q.GetNames()); n == 0 || n > batchMax {
		return nil, api.Errorf(codes.InvalidArgument, "%d tunnels: want 1 to %d", n, batchMax)
	}
	select {
	case r.turn <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	resp, before := r.asked(q)
	if q.Swap {
		r.swap(ctx, resp.Outcomes)
	} else {
		r.best(ctx, resp.Outcomes)
	}
	<-r.turn
	r.repair(ctx) // those that lack a path
	b := r.b
	b.mu.Lock()
	defer b.mu.Unlock()
	for i, o := range resp.Outcomes {
		s := b.status[o.Name]
		if s == nil {
			continue
		}
		o.Tunnel = b.message(s)
		if o.Moved = !slices.Equal(o.Tunnel.Path, before[i]); o.Moved {
			o.Reason = ""
		} else if o.Reason == "" {
			o.Reason = s.reason
		}
		if !o.Moved && o.Reason == "" {
			o.Reason = "there is no better path"
		}
	}
	return resp, nil
}

// asked returns an outcome for each tunnel that is to move, with the reason if it cannot, and which
// way each goes.
func (r *repairer) asked(q *api.RerouteTunnelsRequest) (resp *api.RerouteTunnelsResponse, before [][]string) {
	b := r.b
	b.mu.Lock()
	defer b.mu.Unlock()
	resp = &api.RerouteTunnelsResponse{}
	for _, name := range q.Names {
		o := &api.TunnelReroute{Name: name}
		resp.Outcomes = append(resp.Outcomes, o)
		s := b.status[name]
		switch {
		case s == nil || s.tunnel.around != nil:
			o.Reason = "there is no such tunnel"
			before = append(before, nil)
			continue
		case s.tunnel.overlay():
			o.Reason = "the nodes' own routing chooses its way"
		case s.entered != s.tunnel:
			o.Reason = "it is moving already"
		}
		if err := s.tunnel.keptBy(q.User); err != nil {
			o.Reason = err.Error()
		}
		before = append(before, b.message(s).Path)
	}
	return resp, before
}

// best has tunnels take better paths where there are any. It is called by who has the turn.
func (r *repairer) best(ctx context.Context, list []*api.TunnelReroute) {
	b := r.b
	var quests []*quest
	b.mu.Lock()
	for _, o := range list {
		switch s := b.status[o.Name]; {
		case o.Reason != "":
		case s.state == "up" && b.needs[o.Name] == nil:
			quests = append(quests, &quest{t: s.tunnel})
		default:
			s.reroute = s.reroute || s.tunnel.wanted.NeverMove
			b.need(s, b.now())
		}
	}
	b.mu.Unlock()
	r.install(ctx, r.better(ctx, quests))
}

// swap has tunnels use their other paths. It is called by who has the turn.
func (r *repairer) swap(ctx context.Context, list []*api.TunnelReroute) {
	b := r.b
	var changes []change
	for _, o := range list {
		if o.Reason != "" {
			continue
		}
		b.mu.Lock()
		s := b.status[o.Name]
		if s == nil {
			b.mu.Unlock()
			continue
		}
		t := s.tunnel
		now, other := s.path(s.active), s.path(1-s.active)
		switch {
		case len(now) == 0 || len(other) == 0:
			o.Reason = "it has one path only"
		case !b.whole(other):
			o.Reason = "a link of its other path is down"
		case s.active == onStandby: // as it is stored already
			s.active = onPrimary
			b.declare(t.from)
			b.assess(s, s.lack)
		}
		settled := o.Reason != "" || other.sameWay(t.primary)
		b.mu.Unlock()
		if settled {
			continue
		}
		c, err := r.keep(ctx, t, placing{primary: other, standby: now, optimised: t.optimised})
		if err != nil {
			o.Reason = err.Error()
		} else if c != nil {
			changes = append(changes, *c)
		}
	}
	r.install(ctx, changes)
}
