package discovery

import (
	"slices"
	"time"

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
	l.recordDelay(t, now, now-sent)
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

// recordDelay records the delay of a probe of a link.
func (l *link) recordDelay(t *topology, now, took int64) {
	l.latency += (took - l.latency) / 8
	if l.trial == nil && l.probes >= probesLeast {
		t.jitter.add(now, took-l.best)
	}
	l.best = min(l.best, took)
	if t.isIdle(now) {
		l.calm++
	}
	if l.probes++; l.probes%probesLeast == 1 {
		l.updateWeight(t)
		l.refresh(t, now, "latency")
		l.lately = took
	}
	l.lately = min(l.lately, took)
}

// updateWeight computes the share of a link's weight due to latency. It ignores
// small changes, so that paths do not change with them.
func (l *link) updateWeight(t *topology) {
	is := float64(delay(l.lately, l.src, l.dst)) / float64(time.Millisecond) * float64(t.cfg.Latency.Weight)
	if was := float64(l.toll); is < was*3/4-1 || is > was*5/4+1 {
		l.toll = uint32(min(is, maxWeight))
	}
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
	l.set(t, now, l.wantedState(now), "probe")
	if back := to.out; back != nil && back.dst == from {
		back.refresh(t, now, "probe")
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
	l.updateWeight(t)
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

// refresh updates the state and weight of a link.
func (l *link) refresh(t *topology, now int64, cause string) {
	if s := l.wantedState(now); s != l.state || l.cost(t, now) != l.weight || t.capacity(l) != l.capacity {
		l.set(t, now, s, cause)
	}
}

// cost returns the weight that a link ought to have.
func (l *link) cost(t *topology, now int64) uint32 {
	w := min(weight(t.cfg, l.src.speed, l.dst.speed)+l.toll, maxWeight)
	if l.flaps.until > now {
		w = min(w, maxWeight-dampenedCost) + dampenedCost
	}
	return w
}

// set sets state and weight, which is an event.
func (l *link) set(t *topology, now int64, s linkState, cause string) {
	if l.state != s {
		l.state, l.since = s, now
	}
	l.weight, l.capacity = l.cost(t, now), t.capacity(l)
	t.dirty[l.src.at.Switch] = struct{}{}
	t.events = append(t.events, event{link: &api.LinkChanged{Link: l.message(t), Cause: cause}})
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
	l.flaps.down(t, now, l)
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
		back.refresh(t, now, cause) // else it goes down next
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

// remove removes a link from the list.
func (t *topology) remove(l *link, cause string) {
	last := t.links[len(t.links)-1]
	t.links[l.index], last.index = last, l.index
	t.links = t.links[:len(t.links)-1]
	l.flaps.release(l)
	t.dirty[l.src.at.Switch] = struct{}{}
	t.events = append(t.events, event{link: &api.LinkChanged{Link: l.message(t), Removed: true, Cause: cause}})
}

// message returns the API's form of a link.
func (l *link) message(t *topology) *api.Link {
	return &api.Link{
		Src: l.src.location(), Dst: l.dst.location(), State: l.state.String(),
		Weight: l.weight, LatencyUs: uint64(max(l.latency, 0) / 1000),
		Since: rfc3339(l.since), Flaps: l.flaps.count(l),
		Settings: t.settings[newPair(l.src.at, l.dst.at)], CapacityKbps: t.capacity(l),
	}
}

// listLinks returns all links, those that wait or are held included, by source.
func (t *topology) listLinks(now int64) []*api.Link {
	list := make([]*api.Link, 0, len(t.links))
	for _, l := range t.links {
		list = append(list, l.message(t))
	}
	for tr := range t.trials {
		list = append(list, tr.message(t, now))
	}
	slices.SortFunc(list, func(a, b *api.Link) int { return compareLocations(a.Src, b.Src) })
	return list
}
