package forwarding

import (
	"strings"
	"sync"
	"time"

	"weft/api"
	"weft/flow"
)

// adoption makes routes of what an earlier run has programmed: the entries
// that switches had when they connected are put together, hop by hop over the
// links that discovery has found, and what makes a whole route is kept as it
// is. What does not is removed, once it is clear that nothing more is coming.
type adoption struct {
	mu      sync.Mutex // guards all below
	links   map[flow.Location]flow.Location
	changed time.Time // when a link or an observation came last
	pools   map[pair]*pool
}

// pool is the entries of one route that have been seen so far.
type pool struct {
	since   time.Time
	hops    map[hop]hop // by switch and ingress port
	rewrite []flow.Action
}

const (
	adoptQuiet  = 1500 * time.Millisecond // no news for so long: try
	adoptWithin = 15 * time.Second        // then give up
)

func newAdoption() *adoption {
	return &adoption{links: map[flow.Location]flow.Location{}, pools: map[pair]*pool{}}
}

func (a *adoption) linkChanged(ev *api.LinkChanged) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if ev.Removed || ev.Link.State != "up" {
		delete(a.links, ev.Link.Src.Flow())
	} else {
		a.links[ev.Link.Src.Flow()] = ev.Link.Dst.Flow()
	}
	a.changed = time.Now()
}

// forget leaves a pair to the route that has just been programmed.
func (a *adoption) forget(p pair) {
	a.mu.Lock()
	delete(a.pools, p)
	a.mu.Unlock()
}

// observed takes the routes' entries that a switch had when it connected.
func (e *engine) observed(ev *api.FlowsObserved) {
	if ev.Owner != flow.OwnerRoutes.String() || len(ev.Flows) == 0 {
		return
	}
	var groups map[uint32]flow.Port
	a := e.adoption
	for _, f := range ev.Flows {
		sw, entry, err := f.Entry()
		if err != nil {
			continue
		}
		p, in, ok := pairOf(&entry.Match)
		if !ok || len(entry.Apply) == 0 {
			continue
		}
		last := entry.Apply[len(entry.Apply)-1]
		out := flow.Port(last.Arg)
		switch {
		case last.Kind == flow.ActionGroup:
			if groups == nil {
				groups = e.firstBuckets(ev.Dpid)
			}
			out = groups[last.Arg]
		case last.Kind != flow.ActionOutput:
			continue
		case out == flow.PortIn:
			out = in
		}
		known := false
		e.routes.with(p, func(m map[pair]*route) { known = m[p] != nil })
		if known {
			continue // the switch was away for a moment; the route has stayed
		}
		a.mu.Lock()
		pl := a.pools[p]
		if pl == nil {
			pl = &pool{since: time.Now(), hops: map[hop]hop{}}
			a.pools[p] = pl
		}
		pl.hops[hop{sw: sw, in: in}] = hop{sw, in, out}
		if len(entry.Apply) > 1 {
			pl.rewrite = entry.Apply[:len(entry.Apply)-1]
		}
		a.changed = time.Now()
		a.mu.Unlock()
	}
}

// firstBuckets returns the port of the first bucket of each group of a switch.
func (e *engine) firstBuckets(dpid string) map[uint32]flow.Port {
	ports := map[uint32]flow.Port{}
	resp, err := e.readGroups(dpid)
	if err != nil {
		e.log.Warn("groups not read", "dpid", dpid, "error", err)
		return ports
	}
	for _, g := range resp.Groups {
		if len(g.Buckets) == 0 || len(g.Buckets[0].Actions) == 0 {
			continue
		}
		if p, err := flow.ParsePort(strings.TrimPrefix(g.Buckets[0].Actions[0], "output:")); err == nil {
			ports[g.Id] = p
		}
	}
	return ports
}

// adopt tries to make routes of the pools.
func (e *engine) adopt(now time.Time) {
	a := e.adoption
	a.mu.Lock()
	if len(a.pools) == 0 || now.Sub(a.changed) < adoptQuiet {
		a.mu.Unlock()
		return
	}
	var kept []*route
	d := &flow.Decision{}
	for p, pl := range a.pools {
		hops, whole := a.chain(e, pl)
		if !whole && now.Sub(pl.since) < adoptWithin {
			continue
		}
		delete(a.pools, p)
		var r *route
		if whole {
			r = &route{pair: p, hops: hops, rewrite: pl.rewrite, since: pl.since.UnixNano()}
			kept = append(kept, r)
		} else {
			e.count.stale.Add(1)
			r = &route{pair: p}
			for _, h := range pl.hops {
				r.hops = append(r.hops, h)
			}
			e.program.remove(d, r, nil)
		}
	}
	a.mu.Unlock()
	for _, r := range kept {
		if e.cfg.FastFailover {
			e.protect(r)
		}
		e.routes.with(r.pair, func(m map[pair]*route) {
			if m[r.pair] == nil {
				m[r.pair] = r
				e.count.adopted.Add(1)
			}
		})
	}
	if len(kept) > 0 || !d.Empty() {
		e.log.Info("routes of an earlier run", "adopted", len(kept), "entries_removed", len(d.Flows))
	}
	if d.Empty() {
		return
	}
	if _, err := e.send(d); err != nil {
		e.log.Error("stale routes not removed", "error", err)
	}
}

// chain orders the hops of a pool from an edge port to an edge port, each
// connected to the next by a link that is up.
func (a *adoption) chain(e *engine, pl *pool) (hops []hop, whole bool) {
	var start hop
	for k := range pl.hops {
		if e.isEdge(flow.Location{Switch: k.sw, Port: k.in}) {
			if start != (hop{}) {
				return nil, false
			}
			start = k
		}
	}
	for at := start; ; {
		h, ok := pl.hops[at]
		if !ok || len(hops) > len(pl.hops) {
			return nil, false
		}
		hops = append(hops, h)
		out := flow.Location{Switch: h.sw, Port: h.out}
		next, linked := a.links[out]
		if !linked {
			// All hops must be in use, but for those of detours.
			return hops, e.isEdge(out) && (len(hops) == len(pl.hops) || e.cfg.FastFailover)
		}
		at = hop{sw: next.Switch, in: next.Port}
	}
}

// isEdge reports whether a port is an edge port that is up.
func (e *engine) isEdge(at flow.Location) bool {
	for _, p := range *e.edge(at.Switch).ports.Load() {
		if p == at.Port {
			return true
		}
	}
	return false
}
