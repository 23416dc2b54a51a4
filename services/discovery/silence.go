package discovery

import (
	"math"

	"github.com/weft-sdn/weft/flow"
)

// Probes show that a link is there. A link that was not heard for the time
// between two probes and some patience is in doubt: it is probed again at once,
// and then faster. If no probe arrives by the timeout, it is gone.

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
