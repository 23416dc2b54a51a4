package forwarding

import (
	"time"

	"github.com/weft-sdn/weft/flow"
)

// audit compares the reports of switches with the routes. It finds switches
// that lost entries, because they restarted; switches whose entries do what
// those of a former route did, because later ones did not reach them; and
// switches with entries that they do not need, because an instance failed before
// it could share what it had programmed. The owner programs those routes again. If the first entry is
// missing, no packet travels on the route, and audit forgets it.
func (o *adopter) audit(now time.Time) {
	a := o.adoption
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
	later := map[flow.DPID]time.Time{}
	o.routes.each(func(r *route) {
		for i, h := range r.hops { // entries of detours are idle, and may have gone
			rep, told := latest[h.sw]
			does, there := rep.entries[entryAt{r.pair, h.in}]
			if !told || there && r.hasAction(i, does) {
				continue
			}
			if rep.mayPredate(r) {
				later[h.sw] = now.Add(unsure)
				continue
			}
			if !o.replicas.owns(r.pair) {
				misled = append(misled, r)
				return
			}
			if i == 0 && !there {
				gone = append(gone, r)
				return
			}
			strays[r.pair] = nil
		}
	})
	for sw, rep := range latest {
		for at := range rep.entries {
			o.routes.with(at.pair, func(s *routeShard) {
				r := s.m[at.pair]
				switch {
				case r == nil || r.keys()[hop{sw: sw, in: at.in}] || !o.replicas.owns(r.pair):
				case rep.mayPredate(r):
					later[sw] = now.Add(unsure)
				default:
					strays[r.pair] = append(strays[r.pair], hop{sw: sw, in: at.in})
				}
			})
		}
		for _, p := range rep.known { // routes removed since may have passed another way
			o.routes.with(p, func(s *routeShard) {
				if s.m[p] == nil && o.replicas.owns(p) {
					later[sw] = now.Add(unsure)
				}
			})
		}
	}
	for p := range strays {
		o.routes.with(p, func(s *routeShard) {
			if r := s.m[p]; r != nil {
				wrong = append(wrong, r)
			}
		})
	}
	a.mu.Lock()
	for sw, at := range later {
		a.askSwitchAt(sw, at)
	}
	a.mu.Unlock()
	for _, r := range misled {
		o.replace(r, nil)
	}
	if len(misled) > 0 {
		o.askAgain()
	}
	o.forget(gone, now)
	o.move(relocation{routes: wrong, began: now, reason: "entries differed", lost: o.links.listNewlyLost(now), strays: strays})
}

// Switches are asked for a report if they have not sent one some time after
// they connected, after another instance shared a route that they may be part
// of, or if their last report could not be judged; but not too often.
const (
	late     = 3 * time.Second
	askEvery = 5 * time.Second
	retry    = time.Second
)

// askAgain asks all switches to report their entries: this instance has
// started, or another has failed.
func (o *adopter) askAgain() {
	o.adoption.mu.Lock()
	o.adoption.askAll = true
	o.adoption.asked = time.Time{}
	o.adoption.mu.Unlock()
}

// ask asks the switches that are due to report their entries.
func (o *adopter) ask(now time.Time) {
	a := o.adoption
	a.mu.Lock()
	all := a.askAll && now.Sub(a.asked) >= retry
	var dpids []string
	if !all && now.Sub(a.asked) >= askEvery {
		var wanted time.Time // earlier reports are too old
		for _, pl := range a.pools {
			if since := pl.since.Add(-oneRound); now.Sub(pl.since) >= late && since.After(wanted) {
				wanted = since
			}
		}
		for sw, t := range a.switches {
			again, due := a.again[sw]
			due = due && !now.Before(again)
			if due || (t.at.IsZero() || t.at.Before(wanted)) && now.Sub(t.noticed) >= late {
				delete(a.again, sw)
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
	telling, err := o.observe(dpids)
	if err != nil {
		o.log.Warn("switches not asked for their entries", "error", err)
		a.mu.Lock()
		for _, dpid := range dpids {
			if sw, err := flow.ParseDPID(dpid); err == nil {
				a.askSwitchAt(sw, now)
			}
		}
		a.mu.Unlock()
		return
	}
	if all {
		a.expectReports(telling, now)
	}
}
