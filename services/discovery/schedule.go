package discovery

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/weft-sdn/weft/flow"
)

// A schedule says when a switch sends probes next.
type schedule struct {
	next   int64   // earliest time at which anything is to be sent
	rounds int64   // of all ports
	fast   int64   // of established links, where liveness is on
	phase  float64 // its place in each interval, 0 up to 1
	turn   int64   // in which of several intervals guarded links are probed, where they are not in each
}

// A prober says when a port sends probes next.
type prober struct {
	frame      []byte // probe without stamp and signature; read-only
	actions    []flow.Action
	soon       int64 // an extra probe; 0 if none
	sent       int   // probes since the last burst began
	told       int   // of these, the probes that the southbound has sent
	waits      bool  // it waits in the pace
	unanswered int   // probes sent since the last one that arrived
}

// burstGaps are the times between the extra probes of a port after it comes up.
var burstGaps = [...]int64{50e6, 100e6, 200e6}

// trapHope is how long extra probes of a switch that has connected wait for it
// to confirm the LLDP trap, and trapHopeEach by how much longer for each switch
// that there is. Then they begin anyway, and the answers to them can be heard;
// what is sent before is lost where a whole network connects.
const (
	trapHope     = int64(time.Second)
	trapHopeEach = int64(2 * time.Millisecond)
)

// burst begins extra probes.
func (p *prober) burst(now int64) { p.soon, p.sent, p.told = now, 0, 0 }

// start begins the schedule of a switch that has connected.
func (s *schedule) start(t *topology, now int64) {
	s.next = now
	s.rounds = s.after(now, int64(t.cfg.Interval))
	s.fast = math.MaxInt64
	if t.cfg.Liveness.Interval > 0 {
		s.fast = s.after(now, int64(t.cfg.Liveness.Interval))
	}
}

// after returns the first of the switch's moments after a time; every interval
// has one.
func (s *schedule) after(at, interval int64) int64 {
	return (s.number(at, interval)+1)*interval + int64(s.phase*float64(interval))
}

// number numbers the intervals, each from one of the switch's moments to the
// next.
func (s *schedule) number(at, interval int64) int64 {
	return (at - int64(s.phase*float64(interval))) / interval
}

// following returns the round after one whose time has come: at most an
// interval later, whatever has become of the phase.
func (s *schedule) following(now, last, interval int64) int64 {
	if next := s.after(last, interval); next > now {
		return next
	}
	return s.after(now, interval)
}

// A job is one probe to be sent.
type job struct {
	port    *port // only to hand back to the topology
	at      flow.Location
	frame   []byte
	actions []flow.Action
}

// probes appends the probes that are due, those of one switch side by side, and
// returns when the next ones are.
func (t *topology) probes(now int64, jobs []job) ([]job, int64) {
	next := int64(math.MaxInt64)
	t.pace.fill(now, t.cfg.ProbesPerSecond, t.ownDelay)
	jobs = t.pace.serve(now, jobs)
	served := len(jobs)
	for _, dp := range t.order {
		if !dp.connected {
			continue
		}
		if dp.next <= now {
			jobs = t.appendDue(now, dp, jobs)
		}
		next = min(next, dp.next)
	}
	if served > 0 {
		slices.SortStableFunc(jobs, func(a, b job) int { return cmp.Compare(a.at.Switch, b.at.Switch) })
	}
	if len(t.pace.waiting) > 0 {
		next = min(next, now+paceAgain/4)
	}
	return jobs, next
}

// send appends a probe of a port; an extra one is followed by others.
func (p *port) send(now int64, extra bool, jobs []job) []job {
	p.sent++
	p.refusing.probe(now)
	if extra {
		p.soon = 0
		if p.sent <= len(burstGaps) && p.out == nil {
			p.soon = now + burstGaps[p.sent-1]
		}
	}
	return append(jobs, job{p, p.at, p.frame, p.actions})
}

// isDue reports whether a port is probed in a round of all ports.
func (p *port) isDue(t *topology, now int64, rare bool) bool {
	return p.out == nil || t.cfg.Liveness.Interval == 0 && !(rare && t.hasPortStatus(now, p.out))
}

// appendDue appends the probes of one switch that are due.
func (t *topology) appendDue(now int64, dp *datapath, jobs []job) []job {
	all, links := dp.rounds <= now, dp.fast <= now
	rare := false // links with port status have no turn
	if all {
		rare = dp.number(dp.rounds, int64(t.cfg.Interval))%t.stretch != dp.turn
		dp.rounds = dp.following(now, dp.rounds, int64(t.cfg.Interval))
	}
	if links {
		dp.fast = dp.following(now, dp.fast, int64(t.cfg.Liveness.Interval))
	}
	dp.next = min(dp.rounds, dp.fast)
	hold := int64(0) // extra probes wait until then
	if dp.trapped == 0 {
		hold = dp.since + trapHope + trapHopeEach*int64(len(t.order))
	}
	for _, p := range dp.ports {
		if !p.up || !p.isProbed() || p.refusing.isSilenced(now) {
			continue
		}
		if p.soon != 0 {
			p.soon = max(p.soon, hold)
		}
		extra := p.soon != 0 && p.soon <= now
		regular := links && p.out != nil || all && p.isDue(t, now, rare)
		switch {
		case !extra && !regular:
		case regular && p.out != nil || t.pace.take(p):
			jobs = p.send(now, extra, jobs)
		case p.out != nil:
			p.soon = now + paceAgain
		default:
			p.soon = 0
			t.pace.wait(p)
		}
		if p.soon != 0 {
			dp.next = min(dp.next, p.soon)
		}
	}
	return jobs
}
