package discovery

import (
	"cmp"
	"math"
	"slices"
)

// probing chooses the probes that are sent.
type probing struct {
	*registry
	*cadence
	pace pace
}

// probes appends the probes that are due, those of one switch side by side, and
// returns when the next ones are.
func (g *probing) probes(now int64, jobs []job) ([]job, int64) {
	next := int64(math.MaxInt64)
	g.pace.fill(now, g.cfg.ProbesPerSecond, g.ownDelay)
	jobs = g.pace.serve(now, jobs)
	served := len(jobs)
	for _, dp := range g.order {
		if !dp.connected {
			continue
		}
		if dp.next <= now {
			jobs = g.appendDue(now, dp, jobs)
		}
		next = min(next, dp.next)
	}
	if served > 0 {
		slices.SortStableFunc(jobs, func(a, b job) int { return cmp.Compare(a.at.Switch, b.at.Switch) })
	}
	if len(g.pace.waiting) > 0 {
		next = min(next, now+paceAgain/4)
	}
	return jobs, next
}

// appendDue appends the probes of one switch that are due.
func (g *probing) appendDue(now int64, dp *datapath, jobs []job) []job {
	all, links := dp.rounds <= now, dp.fast <= now
	rare := false // links with port status have no turn
	if all {
		rare = dp.number(dp.rounds, int64(g.cfg.Interval))%g.stretch != dp.turn
		dp.rounds = dp.following(now, dp.rounds, int64(g.cfg.Interval))
	}
	if links {
		dp.fast = dp.following(now, dp.fast, int64(g.cfg.Liveness.Interval))
	}
	dp.next = min(dp.rounds, dp.fast)
	hold := int64(0) // extra probes wait until then
	if dp.trapped == 0 {
		hold = dp.since + trapHope + trapHopeEach*int64(len(g.order))
	}
	for _, p := range dp.ports {
		if !p.up || p.quiet > now || !p.isProbed() || p.refusing.isSilenced(now) {
			continue
		}
		if p.soon != 0 {
			p.soon = max(p.soon, hold)
		}
		extra := p.soon != 0 && p.soon <= now
		regular := links && p.out != nil || all && g.isDue(now, p, rare)
		switch {
		case !extra && !regular:
		case regular && p.out != nil || g.pace.take(p):
			jobs = p.send(now, extra, jobs)
		case p.out != nil:
			p.soon = now + paceAgain
		default:
			p.soon = 0
			g.pace.wait(p)
		}
		if p.soon != 0 {
			dp.next = min(dp.next, p.soon)
		}
	}
	return jobs
}

// isDue reports whether a port is probed in a round of all ports.
func (g *probing) isDue(now int64, p *port, rare bool) bool {
	return p.out == nil || g.cfg.Liveness.Interval == 0 && !(rare && g.hasPortStatus(now, p.out))
}
