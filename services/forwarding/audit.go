package forwarding

import (
	"time"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
)

// report is which entries of routes a switch has told to have.
type report struct {
	sw      flow.DPID
	at      time.Time
	entries map[entryAt]bool
}

// entryAt is an entry of a route at one switch.
type entryAt struct {
	pair
	in flow.Port
}

// unsure is for how long after a route was programmed a report may be from
// before.
const unsure = 10 * time.Second

// audit compares what switches have told with the routes: those that a switch
// has lost entries of, because it has started again, or that have entries where
// they need none, because an instance failed before it could tell the others
// what it had programmed. The owner programs them again. Where the first entry
// is missing, no packet travels on the route: it is forgotten.
func (e *engine) audit(now time.Time) {
	a := e.adoption
	a.mu.Lock()
	reports := a.reports
	a.reports = nil
	a.mu.Unlock()
	if len(reports) == 0 {
		return
	}
	latest := make(map[flow.DPID]report, len(reports))
	for _, rep := range reports {
		latest[rep.sw] = rep
	}
	var gone, wrong, misled []*route
	strays := map[pair][]hop{}
	e.routes.each(func(r *route) {
		for i, h := range r.hops { // those of detours are idle, and may have gone
			rep, told := latest[h.sw]
			if !told || rep.entries[entryAt{r.pair, h.in}] || rep.at.UnixNano()-r.sent < int64(unsure) {
				continue
			}
			if !e.replicas.owns(r.pair) {
				misled = append(misled, r)
				return
			}
			if i == 0 {
				gone = append(gone, r)
				return
			}
			strays[r.pair] = nil
		}
	})
	for sw, rep := range latest {
		for at := range rep.entries {
			e.routes.with(at.pair, func(s *routeShard) {
				r := s.m[at.pair]
				if r != nil && !r.keys()[hop{sw: sw, in: at.in}] && rep.at.UnixNano()-r.sent >= int64(unsure) && e.replicas.owns(r.pair) {
					strays[r.pair] = append(strays[r.pair], hop{sw: sw, in: at.in})
				}
			})
		}
	}
	for p := range strays {
		e.routes.with(p, func(s *routeShard) {
			if r := s.m[p]; r != nil {
				wrong = append(wrong, r)
			}
		})
	}
	for _, r := range misled {
		e.replace(r, nil)
	}
	if len(misled) > 0 {
		e.askAgain()
	}
	e.forget(gone, now)
	e.move(relocation{routes: wrong, began: now, reason: "entries differed", lost: e.links.fresh(now, patience), strays: strays})
}

// forget removes routes whose first entry is not there any more.
func (e *engine) forget(list []*route, now time.Time) {
	d := &flow.Decision{}
	for _, r := range list {
		if !e.replace(r, nil) {
			continue
		}
		e.count.idle.Add(1)
		e.program.remove(d, r, nil)
		e.shareGone(r, max(now.UnixNano(), r.sent+1))
		e.publish(&api.RouteChanged{Route: r.message(), Change: "removed", Reason: "entries gone"})
	}
	if d.Empty() {
		return
	}
	if _, err := e.send(d); err != nil {
		e.log.Warn("remains of routes not removed", "error", err)
	}
}

// Switches that have not told their entries late after they connected, or after
// another has told of a route that they may be part of, are asked; not too
// often.
const (
	late     = 3 * time.Second
	askEvery = 5 * time.Second
	retry    = time.Second
)

// askAgain has all switches tell their entries: this instance has been
// started, or another has failed.
func (e *engine) askAgain() {
	e.adoption.mu.Lock()
	e.adoption.askAll = true
	e.adoption.asked = time.Time{}
	e.adoption.mu.Unlock()
}

// ask has switches tell their entries where that is due.
func (e *engine) ask(now time.Time) {
	a := e.adoption
	a.mu.Lock()
	all := a.askAll && now.Sub(a.asked) >= retry
	var dpids []string
	if !all && now.Sub(a.asked) >= askEvery {
		var wanted time.Time // what was told before then is too old
		for _, pl := range a.pools {
			if since := pl.since.Add(-oneRound); now.Sub(pl.since) >= late && since.After(wanted) {
				wanted = since
			}
		}
		for sw, t := range a.switches {
			if (t.at.IsZero() || t.at.Before(wanted)) && now.Sub(t.noticed) >= late {
				dpids = append(dpids, sw.String())
			}
		}
	}
	if all || len(dpids) > 0 {
		a.asked = now
	}
	a.mu.Unlock()
	if !all && len(dpids) == 0 {
		return
	}
	telling, err := e.observe(dpids)
	if err != nil {
		e.log.Warn("switches not asked for their entries", "error", err)
		return
	}
	if all {
		a.expect(telling, now)
	}
}
