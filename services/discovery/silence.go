package discovery

import (
	"math"

	"weft/flow"
)

// A link is known to be there by its probes. One that has not been heard of for
// an interval and some patience is in doubt: it is probed again at once, and
// then faster. If nothing has come of it by the timeout, it is gone.

// doubtAfter returns how long after its last probe a link is in doubt.
func (t *topology) doubtAfter() int64 { return t.cfg.linkInterval() + t.patience() }

// patience returns how long a probe of a link may be late, and the time
// between the probes of one that is in doubt.
func (t *topology) patience() int64 { return (t.cfg.linkTimeout() - t.cfg.linkInterval()) / 3 }

// judgeAt has a link looked at, at a time.
func (t *topology) judgeAt(l *link, at int64) {
	l.src.dp.judge = min(l.src.dp.judge, at)
	t.due(at)
}

// expire takes down the links whose probes are missing. To be missing, probes
// must have been sent.
func (t *topology) expire(now int64) {
	if t.strain.severe(now) {
		t.late(now)
	}
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

// judgeLink takes down a link that has been silent for too long, has one in
// doubt probed, and sees that it is looked at again in time.
func (t *topology) judgeLink(now int64, l *link) {
	heard := max(l.heard, t.floor)
	end := heard + t.cfg.linkTimeout()
	if until := l.doubted(now); until != 0 && end <= now {
		t.judgeAt(l, until)
		return
	}
	if end <= now && l.src.unanswered >= 2 {
		t.detach(now, l, "silent")
		return
	}
	if doubt := heard + t.doubtAfter(); doubt > now {
		t.judgeAt(l, doubt)
		return
	}
	again := now + t.patience()
	if p := l.src; p.soon == 0 || p.soon > now {
		p.soon = now
		p.dp.next = min(p.dp.next, now)
	}
	if end > now {
		again = min(again, end)
	}
	t.judgeAt(l, again)
}

// strain is how far behind we are ourselves: the smoothed time that probes have
// taken. While it is long, probes that are missing say nothing about links.
type strain struct {
	age int64 // nanoseconds, over the last 64 or so
	bad int64 // when it was last too long
}

// add takes the time that a probe has taken.
func (s *strain) add(now, age int64, cfg *Config) {
	if age > 10e9 { // no queue of ours is that long
		return
	}
	if s.age += (age - s.age) / 64; s.age > max(cfg.linkTimeout()/4, 200e6) {
		s.bad = now
	}
}

// severe reports whether links are not to be judged by their silence: until a
// second after the last probe that was late among many. If nothing arrives at
// all any more, they are judged again.
func (s *strain) severe(now int64) bool { return s.bad != 0 && now-s.bad < 1e9 }

// stale takes a probe that is genuine, but too old to show a new link. Of a link
// that is known it shows that it was there when the probe was sent, and how far
// behind we are; once, for what is played again says nothing.
func (t *topology) stale(now int64, src, dst flow.Location, sent int64) {
	p := t.at(src)
	if p != nil && p.out != nil && p.out.dst.at == dst && sent > p.newest && sent <= now {
		p.newest, p.unanswered = sent, 0
		p.out.heard = max(p.out.heard, sent)
		t.strain.add(now, now-sent, t.cfg)
	}
}
