package discovery

import (
	"slices"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
)

// arrive handles a genuine, fresh probe: sent out of src at the given time,
// received at dst now. It returns the reason if it refuses the probe.
func (t *topology) arrive(now int64, src, dst flow.Location, sent int64) refusal {
	from, to := t.at(src), t.at(dst)
	if from == nil || to == nil || !from.isUp() || !to.isUp() {
		return unknown
	}
	if rejectProbe(now, from, to) {
		return listed
	}
	if src.Switch == dst.Switch {
		t.blockPort(now, from)
		t.blockPort(now, to)
		return looped
	}
	if a, b := from.neighbour(), to.neighbour(); a != nil && a != to || b != nil && b != from {
		t.blockPort(now, to)
		return second
	}
	if sent <= from.newest {
		return replayed
	}
	l, tried := from.out, from.trial
	if l == nil {
		if why := t.refuseLink(now, from, to, sent); why != accepted {
			return why
		}
	} else if l.trial != nil && t.retryTrial(now, l, sent) {
		return outlier
	}
	t.confirmSwitch(now, to.dp)
	from.newest = sent
	from.soon, from.unanswered, from.refusing = 0, 0, refusing{}
	from.proved, to.proved = true, true
	t.ownDelay.add(now - sent)
	if l == nil {
		l = t.attach(now, from, to, now-sent)
		if tried != nil {
			l.best, l.probes, l.calm = tried.best, tried.probes, tried.calm
		}
		return accepted
	}
	l.heard = now
	t.recordDelay(now, l, now-sent)
	if l.trial != nil {
		t.scheduleTrial(now, l.trial)
	}
	return accepted
}

// refuseLink returns why a new link must be refused, if it must: the operator's
// settings forbid it; its ports were host ports for long (two such ports become
// a link only after a down time longer than the timeout); or it is slower than
// a cable. It accepts links that were there before.
func (t *topology) refuseLink(now int64, from, to *port, sent int64) refusal {
	switch {
	case t.allowed[newPair(from.at, to.at)]:
		return accepted
	case !t.cfg.mayLink(from.at) || !t.cfg.mayLink(to.at):
		t.blockPort(now, from)
		t.blockPort(now, to)
		return noLinkPort
	case from.was == to.at && from.judged || to.was == from.at && to.judged:
		return accepted
	case t.isLocked(now, from) && t.isLocked(now, to):
		from.rival, from.rivalAt = to.at, now
		to.rival, to.rivalAt = from.at, now
		return hostPort
	}
	return t.try(now, from, to, sent)
}

// attach makes a link of two ports.
func (t *topology) attach(now int64, from, to *port, latency int64) *link {
	t.forgetFormerRole(from, to.at)
	t.forgetFormerRole(to, from.at)
	l := t.join(now, from, to, latency)
	if l.trial = from.trial; l.trial != nil {
		delete(t.trials, l.trial)
		t.passing[l.trial] = struct{}{}
	}
	from.judged, to.judged = l.trial == nil, l.trial == nil
	if to.out == nil { // answer at once, not in the next round
		to.burst(now)
		to.dp.next = now
	}
	t.setState(now, l, l.wantedState(now), "probe")
	if back := to.out; back != nil && back.dst == from {
		t.refresh(now, back, "probe")
	}
	t.settleRole(now, from)
	t.settleRole(now, to)
	return l
}

// join makes a link of two ports, without an event.
func (t *topology) join(now int64, from, to *port, latency int64) *link {
	f := t.pairOf(from, to)
	l := &link{src: from, dst: to, flaps: f, heard: now, since: now, latency: latency, best: latency, lately: latency, state: oneWay, index: len(t.links)}
	t.links = append(t.links, l)
	f.hold(l)
	t.updateWeight(l)
	from.out, to.in = l, l
	for p, far := range map[*port]flow.Location{from: to.at, to: from.at} {
		if p.was != far {
			t.abandon(now, p)
		}
		p.edge, p.hosts, p.blocked, p.presumed, p.was = false, 0, 0, 0, far
		t.known[p.at] = far
		t.dirty[p.at.Switch] = struct{}{}
	}
	f.alive = true
	t.scheduleCheck(l, now+t.doubtLimit(now, l))
	t.moved = true
	return l
}

// unlink takes down the links of a port, in both directions.
func (t *topology) unlink(now int64, p *port, cause string) {
	for _, l := range []*link{p.out, p.in} {
		if l != nil {
			t.detach(now, l, cause)
		}
	}
}

// detach takes down a link, and updates the other direction.
func (t *topology) detach(now int64, l *link, cause string) {
	t.moved = true
	if l.trial != nil {
		t.endTrial(now, l.trial, cause)
	}
	l.src.out, l.dst.in = nil, nil
	t.countDown(now, l.flaps, l)
	for i, p := range []*port{l.src, l.dst} {
		if p.out == nil && p.in == nil {
			p.silent, p.until = now, now+int64(t.cfg.Forget)
			p.unproved = cause == "silent" && !p.proved
			if far := []*port{l.dst, l.src}[i]; !far.up { // something else may be plugged in here, unseen
				t.expect(now, p)
			}
		}
	}
	t.remove(l, cause)
	if back := l.dst.out; back != nil && back.dst == l.src && l.src.isUp() && l.dst.isUp() {
		t.refresh(now, back, cause) // else it goes down next
	}
	if cause == "silent" {
		l.flaps.mute = now
	}
	if cause == "silent" && l.src.up {
		l.src.burst(now)
		l.src.dp.next = now
	}
	t.settleRole(now, l.src)
	t.settleRole(now, l.dst)
}

// listLinks returns all links, those that wait or are held included, by source.
func (t *topology) listLinks(now int64) []*api.Link {
	list := make([]*api.Link, 0, len(t.links))
	for _, l := range t.links {
		list = append(list, t.message(l))
	}
	for tr := range t.trials {
		list = append(list, t.describe(now, tr))
	}
	slices.SortFunc(list, func(a, b *api.Link) int { return compareLocations(a.Src, b.Src) })
	return list
}

// retryTrial handles a probe of a link that is up on probation, and reports whether
// the link is now held.
func (t *topology) retryTrial(now int64, l *link, sent int64) (held bool) {
	tr := l.trial
	if t.checkProbe(now, tr, sent) {
		t.endTrial(now, tr, "")
		return false
	}
	if tr.evidence < evidenceEnough {
		return false
	}
	l.trial = nil
	delete(t.passing, tr)
	t.trials[tr] = struct{}{}
	l.src.judged, l.dst.judged = false, false
	t.detach(now, l, "implausible")
	t.holdBack(now, tr, t.explainSlow(now, tr))
	return true
}
