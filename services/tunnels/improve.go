package tunnels

import (
	"cmp"
	"context"
	"math"
	"slices"
	"time"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
)

// improvable reports whether a tunnel may move to a cheaper path. One that lacks
// something is seen to for that; one whose paths an optimisation has chosen stays there, and so
// does one that never moves. It is called with mu held.
func (b *store) improvable(s *status) bool {
	return b.needs[s.tunnel.name] == nil && (s.state == "up" || s.late(b) != "") && !s.tunnel.optimised && !s.tunnel.wanted.NeverMove
}

// next returns after how long tunnels are to be seen to again.
func (r *repairer) next() time.Duration {
	b := r.b
	b.mu.Lock()
	defer b.mu.Unlock()
	wait := b.cfg.Retry
	now := b.now()
	for hold, h := range b.improved.holds {
		due := h.looked.Before(b.improved.last)
		for _, s := range h.later {
			due = due || b.improvable(s)
		}
		if due {
			wait = min(wait, max(b.improved.last.Add(hold).Sub(now), 10*time.Millisecond))
		}
	}
	return wait
}

// improve moves tunnels to better paths, when their hold times have passed since a
// link has become better.
func (r *repairer) improve(ctx context.Context) (changes []change) {
	b := r.b
	var quests []*quest
	b.mu.Lock()
	now := b.now()
	for hold, h := range b.improved.holds {
		if now.Before(b.improved.last.Add(hold)) {
			continue
		}
		list := h.later
		if h.looked.Before(b.improved.last) {
			list, h.looked = h.all, b.improved.last
		}
		for name, s := range list {
			if b.improvable(s) {
				delete(h.later, name)
				quests = append(quests, &quest{t: s.tunnel})
			} else {
				h.later[name] = s
			}
		}
	}
	b.mu.Unlock()
	slices.SortFunc(quests, func(x, y *quest) int { return cmp.Compare(x.t.name, y.t.name) })
	return r.better(ctx, quests)
}

// better stores paths for tunnels that are cheaper than those that they have.
func (r *repairer) better(ctx context.Context, quests []*quest) (changes []change) {
	if len(quests) == 0 || r.alone(ctx, quests, nil) != nil {
		return nil
	}
	costs := r.costs(ctx, quests)
	late := r.late(quests)
	for i, q := range quests {
		if len(q.found) < len(q.t.paths(onPrimary)) || !q.t.better(q.worth, costs[i], late[q.t.name]) {
			continue
		}
		if c := r.settled(ctx, q); c != nil {
			changes = append(changes, *c)
		}
	}
	return changes
}

// late returns which of some tunnels have a path that takes longer than is wanted.
func (r *repairer) late(quests []*quest) map[string]bool {
	b, list := r.b, map[string]bool{}
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, q := range quests {
		if s := b.status[q.t.name]; s != nil && s.late(b) != "" {
			list[q.t.name] = true
		}
	}
	return list
}

// costs returns what the paths that tunnels have cost now, and take; the most if that is not
// known.
func (r *repairer) costs(ctx context.Context, quests []*quest) []worth {
	costs := make([]worth, len(quests))
	var demands []*api.PathDemand
	var of []int
	for i, q := range quests {
		for _, p := range q.t.paths(onPrimary) {
			d := &api.PathDemand{Src: p[0].sw.String(), Dst: p[len(p)-1].sw.String()}
			for _, at := range p.via() {
				d.Via = append(d.Via, &api.PathVia{Link: api.NewLocation(flow.Location{Switch: at.Switch, Port: at.Port})})
			}
			demands, of = append(demands, d), append(of, i)
		}
	}
	for at := 0; at < len(demands); at += demandsMax {
		part := demands[at:min(at+demandsMax, len(demands))]
		resp, err := r.compute(ctx, &api.ComputePathsRequest{Demands: part})
		for k := range part {
			i := of[at+k]
			if err != nil || len(resp.Answers[k].Paths) != 1 {
				costs[i] = worth{math.MaxUint64 / 2, math.MaxUint64 / 2}
			} else {
				costs[i].cost += resp.Answers[k].Paths[0].Cost
				costs[i].delay += resp.Answers[k].Paths[0].DelayUs
			}
		}
	}
	return costs
}
