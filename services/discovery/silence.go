package discovery

import (
	"math"
	"time"

	"github.com/weft-sdn/weft/flow"
)

// Probes show that a link is there. A link that was not heard for the time
// between two probes and some patience is in doubt: it is probed again at once,
// and then faster. If no probe arrives by the timeout, it is gone.

// probeInterval returns the time between two probes of a link.
func (t *topology) probeInterval(now int64, l *link) int64 {
	if t.stretch > 1 && t.hasPortStatus(now, l) {
		return t.stretch * t.cfg.linkInterval()
	}
	return t.cfg.linkInterval()
}

// hasPortStatus reports whether port status is likely to report the failure of a
// link before probes do: the link is up, and has not recently gone down without
// port status.
func (t *topology) hasPortStatus(now int64, l *link) bool {
	return l.state == up && (l.flaps.mute == 0 || now-l.flaps.mute > int64(t.cfg.Forget))
}

// silenceLimit returns how long a link stays up without a probe.
func (t *topology) silenceLimit(now int64, l *link) int64 {
	return t.probeInterval(now, l) + t.cfg.linkTimeout() - t.cfg.linkInterval() + 2*int64(t.ownDelay)
}

// guardedSilence returns how long a link with port status stays up without a probe.
func (t *topology) guardedSilence() int64 {
	return (t.stretch-1)*t.cfg.linkInterval() + t.cfg.linkTimeout() + 2*int64(t.ownDelay)
}

// doubtLimit returns how long after its last probe a link is in doubt.
func (t *topology) doubtLimit(now int64, l *link) int64 {
	return t.probeInterval(now, l) + t.probeGrace() + int64(t.ownDelay)
}

// setStretch sets how rarely links with port status are probed, so that at most
// ProbesPerSecond probes are sent. If liveness is on, they are probed in every
// interval.
func (t *topology) setStretch() {
	t.stretch = 1
	if wanted := int64(t.cfg.ProbesPerSecond) * t.cfg.linkInterval() / int64(time.Second); t.cfg.Liveness.Interval == 0 {
		t.stretch = max((int64(len(t.links))+wanted-1)/max(wanted, 1), 1)
	}
}

// probeGrace returns how long a probe of a link may be late, and the time
// between the probes of one that is in doubt.
func (t *topology) probeGrace() int64 { return (t.cfg.linkTimeout() - t.cfg.linkInterval()) / 3 }

// scheduleCheck schedules a check of a link at a time.
func (t *topology) scheduleCheck(l *link, at int64) {
	l.src.dp.checkAt = min(l.src.dp.checkAt, at)
	t.schedule(at)
}

// expire takes down the links whose probes are missing. Only probes that were
// sent can be missing.
func (t *topology) expire(now int64) {
	for _, dp := range t.order {
		if dp.checkAt > now {
			t.schedule(dp.checkAt)
			continue
		}
		dp.checkAt = math.MaxInt64
		for _, p := range dp.ports {
			if p.out != nil {
				t.checkLink(now, p.out)
			}
		}
	}
}

// checkLink takes down a link that was silent for too long, probes one in
// doubt, and schedules the next check.
func (t *topology) checkLink(now int64, l *link) {
	heard := max(l.heard, t.floor)
	end := heard + t.silenceLimit(now, l)
	if until := l.doubtedUntil(now); until != 0 && end <= now {
		t.scheduleCheck(l, until)
		return
	}
	if end <= now && l.dst.dp.flight.Load() { // its own probes wait for its southbound
		t.scheduleCheck(l, now+t.probeGrace())
		return
	}
	if end <= now && l.src.unanswered >= 2 {
		t.detach(now, l, "silent")
		return
	}
	if doubt := heard + t.doubtLimit(now, l); doubt > now {
		t.scheduleCheck(l, doubt)
		return
	}
	again := now + t.probeGrace()
	for _, p := range []*port{l.src, l.dst} { // the far end too: is its southbound there to hear?
		if p.soon == 0 || p.soon > now {
			p.soon = now
			p.dp.next = min(p.dp.next, now)
		}
	}
	if end > now {
		again = min(again, end)
	}
	t.scheduleCheck(l, again)
}

// ownDelay is the delay that this process adds: the smoothed time that recent
// probes took, in nanoseconds. Links get that much more time.
type ownDelay int64

// ownDelayMost bounds it: no queue of ours is longer.
const ownDelayMost = int64(10 * time.Second)

// add records the time that a probe took.
func (s *ownDelay) add(age int64) {
	d := min(age, ownDelayMost) - int64(*s)
	if d > 0 {
		*s += ownDelay(d / 8)
	} else {
		*s += ownDelay(d / 64)
	}
}

// handleStaleProbe handles a probe that is genuine, but too old to show a new link. For a
// known link it shows that the link was there when the probe was sent, and how
// large our own delay is; but only once, because a replay shows nothing.
func (t *topology) handleStaleProbe(now int64, src, dst flow.Location, sent int64) {
	p := t.at(src)
	if p != nil && p.out != nil && p.out.dst.at == dst && sent > p.newest && sent <= now {
		p.newest, p.unanswered = sent, 0
		p.out.heard = max(p.out.heard, sent)
		if sent > max(p.dp.since, p.out.dst.dp.since) {
			p.proved, p.out.dst.proved = true, true
		}
		t.ownDelay.add(now - sent)
	}
}
