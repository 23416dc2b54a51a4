package discovery

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/weft-sdn/weft/api"
)

const (
	// evidenceEnough is the evidence that holds a link: no genuine link is held
	// in 2^40 starts.
	evidenceEnough = 40
	// shareLeast and shareFar are lower bounds on the shares of genuine probes
	// assumed slow, and slower than farTimes the limit: probes pass more queues
	// than the echoes they are compared with.
	shareLeast, shareFar, farTimes = 0.4, 0.1, 10
	// trialEvery is the least time between two probes of a link that waits.
	trialEvery = int64(100 * time.Millisecond)
	// jitterBusy is the noise above which our own delays explain slow probes.
	jitterBusy = int64(20 * time.Millisecond)
	// jitterTimes is how many times the noise a probe may be late.
	jitterTimes = 4
	// trialPatience bounds how long a link waits for evidence.
	trialPatience = int64(30 * time.Second)
	// trialsMany is the number of trials from which on they probably keep us
	// busy.
	trialsMany = 64
	// echoesNeeded is how many echoes are needed to know a control channel.
	echoesNeeded = 8
	// populationLeast is how many links are needed for a comparison, and
	// probesLeast how many probes are needed to know a link.
	populationLeast, probesLeast = 8, 8
	// boundEvery is the time between two computations of the bound.
	boundEvery = int64(500 * time.Millisecond)
	// quietEvery is the time between two looks at our own delays.
	quietEvery = int64(50 * time.Millisecond)
)

// delaysKnown reports whether the delays of the control channels of two ports are
// known.
func delaysKnown(from, to *port) bool {
	return from.dp.echo.n >= echoesNeeded && to.dp.echo.n >= echoesNeeded
}

// isFast reports whether a probe was as fast as over a cable. The delays of the
// control channels are known only while our own delays are small.
func (t *topology) isFast(now, took int64, from, to *port) bool {
	limit := t.plausibleDelay(now)
	if took <= limit {
		return true
	}
	return t.isIdle(now) && delaysKnown(from, to) && delay(took, from, to) <= limit
}

// plausibleDelay returns the longest delay of a cable: the configured one, or what
// is usual for the links of this network, while our own delays are small. The
// usual is computed from the faster half of the links, so that relays cannot
// raise it while they are fewer.
func (t *topology) plausibleDelay(now int64) int64 {
	limit := int64(t.cfg.Latency.Max)
	if now-t.boundAt < boundEvery {
		return max(limit, t.bound)
	}
	t.bound, t.boundAt = 0, now
	if !t.isIdle(now) {
		return limit // the times of the links say little about them
	}
	var all []int64
	for _, l := range t.links {
		if l.calm >= probesLeast {
			all = append(all, delay(l.best, l.src, l.dst))
		}
	}
	for tr := range t.trials {
		if tr.calm >= probesLeast && !tr.held {
			all = append(all, delay(tr.best, tr.from, tr.to))
		}
	}
	if n := len(all); n >= populationLeast {
		slices.Sort(all)
		median := all[(n-1)/2]
		t.bound = min(median+8*(median-all[(n-1)/4]), 3*median)
	}
	return max(limit, t.bound)
}

// try handles a probe of an unknown link, and returns whether the link may come
// up.
func (t *topology) try(now int64, from, to *port, sent int64) refusal {
	took := now - sent
	tr := from.trial
	if !t.cfg.holdsNew() && t.cfg.Latency.Max == 0 || tr == nil && !t.cfg.holdsNew() && t.isFast(now, took, from, to) {
		return accepted
	}
	for _, other := range []*trial{from.trial, to.tried} {
		if other != nil && (other.from != from || other.to != to) {
			return second
		}
	}
	if tr == nil {
		tr = &trial{from: from, to: to, began: now, since: now, best: math.MaxInt64}
		from.trial, to.tried = tr, tr
		t.trials[tr] = struct{}{}
		t.schedule(now + t.trialTimeout())
	}
	from.newest, from.unanswered = sent, 0
	switch {
	case t.cfg.holdsNew():
		tr.take(t, now, took)
		if !tr.held {
			t.holdBack(now, tr, "these ports have not been a link before")
		}
	case t.checkProbe(now, tr, sent):
		t.endTrial(now, tr, "")
		return accepted
	case !tr.held && tr.evidence >= evidenceEnough:
		t.holdBack(now, tr, t.explainSlow(now, tr))
	case !tr.held && t.explainedByLoad(now, tr):
		return accepted
	case !tr.held:
		t.scheduleTrial(now, tr)
	}
	t.settleRole(now, from)
	t.settleRole(now, to)
	if tr.held {
		return outlier
	}
	return waiting
}

// take records a probe.
func (tr *trial) take(t *topology, now, took int64) {
	tr.heard, tr.best = now, min(tr.best, took)
	tr.probes++
	if t.isIdle(now) {
		tr.calm++
	}
}

// isIdle reports whether the delays of this process are small at present.
func (t *topology) isIdle(now int64) bool {
	if now-t.quietAt >= quietEvery {
		_, t.isQuiet = t.jitter.shareBeyond(now, int64(t.cfg.Latency.Max))
		t.quietAt = now
	}
	return t.isQuiet
}

// checkProbe handles a probe and reports whether the fastest is plausible. If not,
// the probe is evidence. Of probes under way at the same time only one counts,
// because one pause of a switch delays all of them.
func (t *topology) checkProbe(now int64, tr *trial, sent int64) bool {
	tr.take(t, now, now-sent)
	if t.isFast(now, tr.best, tr.from, tr.to) {
		return true
	}
	limit := t.plausibleDelay(now)
	excess, least := delay(now-sent, tr.from, tr.to)-limit, shareLeast
	if excess <= 0 || sent < tr.counted || !delaysKnown(tr.from, tr.to) {
		return false
	}
	if excess > farTimes*limit {
		least = shareFar
	}
	if share, quiet := t.jitter.shareBeyond(now, limit); quiet {
		tr.evidence -= math.Log2(max(1-(1-share)*(1-share), least)) // a probe passes twice as many queues as an echo
		tr.counted = now
	}
	return false
}

// explainedByLoad reports whether our own delays explain why the fastest probe was
// slow. If many links come up at once, the usual delay counts; a link that has
// waited long was probed often, so the shortest delays count.
func (t *topology) explainedByLoad(now int64, tr *trial) bool {
	late := now-tr.began > trialPatience
	if len(t.trials)+len(t.passing) < trialsMany && !late {
		return false
	}
	list, known := t.jitter.listRecent(now)
	switch {
	case !known:
		return late
	case late:
		return delay(tr.best, tr.from, tr.to) <= t.plausibleDelay(now)+jitterTimes*list[len(list)/10]
	}
	noise := list[len(list)/2]
	return noise >= jitterBusy && delay(tr.best, tr.from, tr.to) <= t.plausibleDelay(now)+jitterTimes*noise
}

// scheduleTrial schedules the next probe of a link on trial: later if this process is
// slow, in which case a link up on probation gets none.
func (t *topology) scheduleTrial(now int64, tr *trial) {
	noise, _ := t.jitter.median(now)
	if noise >= jitterBusy && tr.onProbation() {
		return
	}
	if at := now + max(trialEvery, 2*noise); tr.from.soon == 0 || tr.from.soon > at {
		tr.from.soon = at
		tr.from.dp.next = min(tr.from.dp.next, at)
	}
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

// startProbation puts a link that is up on trial.
func (t *topology) startProbation(now int64, l *link) {
	l.trial = &trial{from: l.src, to: l.dst, began: now, since: now, heard: now, best: l.best}
	l.src.trial, l.dst.tried = l.trial, l.trial
	l.src.judged, l.dst.judged = false, false
	t.passing[l.trial] = struct{}{}
}

// holdBack holds a link, and adds an event.
func (t *topology) holdBack(now int64, tr *trial, reason string) {
	tr.held, tr.since, tr.reason = true, now, reason
	t.events = append(t.events, event{link: &api.LinkChanged{Link: tr.message(t, now), Cause: "held"}})
	t.settleRole(now, tr.from)
	t.settleRole(now, tr.to)
}

// explainSlow describes why a link is held.
func (t *topology) explainSlow(now int64, tr *trial) string {
	return fmt.Sprintf("fastest of %d probes took %v more than the control channels: want at most %v",
		tr.probes, time.Duration(delay(tr.best, tr.from, tr.to)).Round(10*time.Microsecond), time.Duration(t.plausibleDelay(now)).Round(10*time.Microsecond))
}

// endTrial ends a trial. With a cause the link is gone, else it is up.
func (t *topology) endTrial(now int64, tr *trial, cause string) {
	if tr == nil {
		return
	}
	delete(t.trials, tr)
	delete(t.passing, tr)
	if tr.onProbation() {
		tr.from.out.trial = nil
		tr.from.judged, tr.to.judged = cause == "", cause == ""
	}
	tr.from.trial, tr.to.tried = nil, nil
	if cause == "" {
		return
	}
	if tr.held {
		t.events = append(t.events, event{link: &api.LinkChanged{Link: tr.message(t, now), Removed: true, Cause: cause}})
	}
	t.settleRole(now, tr.from)
	t.settleRole(now, tr.to)
}

// endTrials ends the trials of a port.
func (t *topology) endTrials(now int64, p *port, cause string) {
	t.endTrial(now, p.trial, cause)
	t.endTrial(now, p.tried, cause)
}

// trialTimeout returns how long a trial lasts without a probe.
func (t *topology) trialTimeout() int64 {
	return int64(t.cfg.Interval+t.cfg.Timeout) + 2*int64(t.ownDelay)
}

// endSilentTrials ends the trials whose probes are missing.
func (t *topology) endSilentTrials(now int64) {
	next := int64(math.MaxInt64)
	for tr := range t.trials {
		if end := tr.heard + t.trialTimeout(); end > now {
			next = min(next, end)
		} else {
			t.endTrial(now, tr, "silent")
		}
	}
	if next != math.MaxInt64 {
		t.schedule(max(next, now+boundEvery))
	}
}

// message returns the API's form of a link that is not up.
func (tr *trial) message(t *topology, now int64) *api.Link {
	reason := tr.reason
	if reason == "" {
		reason = t.explainSlow(now, tr)
	}
	return &api.Link{
		Src: tr.from.location(), Dst: tr.to.location(), State: tr.state().String(), Weight: weight(t.cfg, tr.from.speed, tr.to.speed),
		LatencyUs: uint64(max(delay(tr.best, tr.from, tr.to), 0) / 1000), Since: rfc3339(tr.since), Reason: reason,
		Settings: t.settings[newPair(tr.from.at, tr.to.at)],
	}
}
