package discovery

import (
	"math"
	"time"

	"github.com/weft-sdn/weft/flow"
)

// Probes show that a link is there. A link that was not heard for the time
// between two probes and some patience is in doubt: it is probed again at once,
// and then faster. If no probe arrives by the timeout, it is gone.

// probedEvery returns the time between two probes of a link.
func (t *topology) probedEvery(now int64, l *link) int64 {
	if t.stretch > 1 && t.guarded(now, l) {
		return t.stretch * t.cfg.linkInterval()
	}
	return t.cfg.linkInterval()
}

// guarded reports whether port status is likely to report the end of a link
// before probes do: the link is up, and it has not lately gone down without
// port status.
func (t *topology) guarded(now int64, l *link) bool {
	return l.state == up && (l.flaps.mute == 0 || now-l.flaps.mute > int64(t.cfg.Forget))
}

// silentAfter returns how long a link lives without a probe.
func (t *topology) silentAfter(now int64, l *link) int64 {
	return t.probedEvery(now, l) + t.cfg.linkTimeout() - t.cfg.linkInterval() + 2*int64(t.strain)
}

// silence returns how long a guarded link lives without a probe.
func (t *topology) silence() int64 {
	return (t.stretch-1)*t.cfg.linkInterval() + t.cfg.linkTimeout() + 2*int64(t.strain)
}

// doubtAfter returns how long after its last probe a link is in doubt.
func (t *topology) doubtAfter(now int64, l *link) int64 {
	return t.probedEvery(now, l) + t.patience() + int64(t.strain)
}

// budget sets how rarely guarded links are probed, so that no more than
// ProbesPerSecond probes are sent. If liveness is on, they are probed in every
// interval.
func (t *topology) budget() {
	t.stretch = 1
	if wanted := int64(t.cfg.ProbesPerSecond) * t.cfg.linkInterval() / int64(time.Second); t.cfg.Liveness.Interval == 0 {
		t.stretch = max((int64(len(t.links))+wanted-1)/max(wanted, 1), 1)
	}
}

// patience returns how long a probe of a link may be late, and the time
// between the probes of one that is in doubt.
func (t *topology) patience() int64 { return (t.cfg.linkTimeout() - t.cfg.linkInterval()) / 3 }

// judgeAt schedules a check of a link.
func (t *topology) judgeAt(l *link, at int64) {
	l.src.dp.judge = min(l.src.dp.judge, at)
	t.due(at)
}

// expire takes down the links whose probes are missing. Only probes that were
// sent can be missing.
func (t *topology) expire(now int64) {
	for _, dp := range t.order {
		if dp.judge > now {
			t.due(dp.judge)
			continue
		}
		dp.judge = math.MaxInt64
		for _, p := range dp.ports {
			if p.out != nil {
				t.judgeLink(now, p.out)
			}
		}
	}
}

// judgeLink takes down a link that was silent for too long, probes one in
// doubt, and schedules the next check.
func (t *topology) judgeLink(now int64, l *link) {
	heard := max(l.heard, t.floor)
	end := heard + t.silentAfter(now, l)
	if until := l.doubted(now); until != 0 && end <= now {
		t.judgeAt(l, until)
		return
	}
	if end <= now && l.dst.dp.flight.Load() { // its own probes wait for its southbound
		t.judgeAt(l, now+t.patience())
		return
	}
	if end <= now && l.src.unanswered >= 2 {
		t.detach(now, l, "silent")
		return
	}
	if doubt := heard + t.doubtAfter(now, l); doubt > now {
		t.judgeAt(l, doubt)
		return
	}
	again := now + t.patience()
	for _, p := range []*port{l.src, l.dst} { // the far end too: is its southbound there to hear?
		if p.soon == 0 || p.soon > now {
			p.soon = now
			p.dp.next = min(p.dp.next, now)
		}
	}
	if end > now {
		again = min(again, end)
	}
	t.judgeAt(l, again)
}

// strain is our own delay: the smoothed time that recent probes took, in
// nanoseconds. Links get that much more time.
type strain int64

// strainMost bounds it: no queue of ours is longer.
const strainMost = int64(10 * time.Second)

// add records the time that a probe took.
func (s *strain) add(age int64) {
	d := min(age, strainMost) - int64(*s)
	if d > 0 {
		*s += strain(d / 8)
	} else {
		*s += strain(d / 64)
	}
}

// stale handles a probe that is genuine, but too old to show a new link. For a
// known link it shows that the link was there when the probe was sent, and how
// large our own delay is; but only once, because a replay shows nothing.
func (t *topology) stale(now int64, src, dst flow.Location, sent int64) {
	p := t.at(src)
	if p != nil && p.out != nil && p.out.dst.at == dst && sent > p.newest && sent <= now {
		p.newest, p.unanswered = sent, 0
		p.out.heard = max(p.out.heard, sent)
		if sent > max(p.dp.since, p.out.dst.dp.since) {
			p.proved, p.out.dst.proved = true, true
		}
		t.strain.add(now - sent)
	}
}
