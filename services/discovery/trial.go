package discovery

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
)

// A judge tells links over cables from relays, by how long their probes take. It keeps the
// trials.
type judge struct {
	*registry
	*roles
	*linkTable
	*cadence
	jitter  jitter
	trials  map[*trial]struct{} // of links that are not up
	passing map[*trial]struct{} // of links up on probation
	bound   int64               // delay of the slowest usual link, of boundAt
	boundAt int64
	isQuiet bool // our own delays are small, of quietAt
	quietAt int64
}

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
func (j *judge) isFast(now, took int64, from, to *port) bool {
	limit := j.plausibleDelay(now)
	if took <= limit {
		return true
	}
	return j.isIdle(now) && delaysKnown(from, to) && delay(took, from, to) <= limit
}

// plausibleDelay returns the longest delay of a cable: the configured one, or what
// is usual for the links of this network, while our own delays are small. The
// usual is computed from the faster half of the links, so that relays cannot
// raise it while they are fewer.
func (j *judge) plausibleDelay(now int64) int64 {
	limit := int64(j.cfg.Latency.Max)
	if now-j.boundAt < boundEvery {
		return max(limit, j.bound)
	}
	j.bound, j.boundAt = 0, now
	if !j.isIdle(now) {
		return limit // the times of the links say little about them
	}
	var all []int64
	for _, l := range j.links {
		if l.calm >= probesLeast {
			all = append(all, delay(l.best, l.src, l.dst))
		}
	}
	for tr := range j.trials {
		if tr.calm >= probesLeast && !tr.held {
			all = append(all, delay(tr.best, tr.from, tr.to))
		}
	}
	if n := len(all); n >= populationLeast {
		slices.Sort(all)
		median := all[(n-1)/2]
		j.bound = min(median+8*(median-all[(n-1)/4]), 3*median)
	}
	return max(limit, j.bound)
}

// try handles a probe of an unknown link, and returns whether the link may come
// up.
func (j *judge) try(now int64, from, to *port, sent int64) refusal {
	took := now - sent
	tr := from.trial
	if !j.cfg.holdsNew() && j.cfg.Latency.Max == 0 || tr == nil && !j.cfg.holdsNew() && j.isFast(now, took, from, to) {
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
		j.trials[tr] = struct{}{}
		j.schedule(now + j.trialTimeout())
	}
	from.newest, from.unanswered = sent, 0
	switch {
	case j.cfg.holdsNew():
		j.take(now, tr, took)
		if !tr.held {
			j.holdBack(now, tr, "these ports have not been a link before")
		}
	case j.checkProbe(now, tr, sent):
		j.endTrial(now, tr, "")
		return accepted
	case !tr.held && tr.evidence >= evidenceEnough:
		j.holdBack(now, tr, j.explainSlow(now, tr))
	case !tr.held && j.explainedByLoad(now, tr):
		return accepted
	case !tr.held:
		j.scheduleTrial(now, tr)
	}
	j.settleRole(now, from)
	j.settleRole(now, to)
	if tr.held {
		return outlier
	}
	return waiting
}

// take records a probe.
func (j *judge) take(now int64, tr *trial, took int64) {
	tr.heard, tr.best = now, min(tr.best, took)
	tr.probes++
	if j.isIdle(now) {
		tr.calm++
	}
}

// isIdle reports whether the delays of this process are small at present.
func (j *judge) isIdle(now int64) bool {
	if now-j.quietAt >= quietEvery {
		_, j.isQuiet = j.jitter.shareBeyond(now, int64(j.cfg.Latency.Max))
		j.quietAt = now
	}
	return j.isQuiet
}

// checkProbe handles a probe and reports whether the fastest is plausible. If not,
// the probe is evidence. Of probes under way at the same time only one counts,
// because one pause of a switch delays all of them.
func (j *judge) checkProbe(now int64, tr *trial, sent int64) bool {
	j.take(now, tr, now-sent)
	if j.isFast(now, tr.best, tr.from, tr.to) {
		return true
	}
	limit := j.plausibleDelay(now)
	excess, least := delay(now-sent, tr.from, tr.to)-limit, shareLeast
	if excess <= 0 || sent < tr.counted || !delaysKnown(tr.from, tr.to) {
		return false
	}
	if excess > farTimes*limit {
		least = shareFar
	}
	if share, quiet := j.jitter.shareBeyond(now, limit); quiet {
		tr.evidence -= math.Log2(max(1-(1-share)*(1-share), least)) // a probe passes twice as many queues as an echo
		tr.counted = now
	}
	return false
}

// explainedByLoad reports whether our own delays explain why the fastest probe was
// slow. If many links come up at once, the usual delay counts; a link that has
// waited long was probed often, so the shortest delays count.
func (j *judge) explainedByLoad(now int64, tr *trial) bool {
	late := now-tr.began > trialPatience
	if len(j.trials)+len(j.passing) < trialsMany && !late {
		return false
	}
	list, known := j.jitter.listRecent(now)
	switch {
	case !known:
		return late
	case late:
		return delay(tr.best, tr.from, tr.to) <= j.plausibleDelay(now)+jitterTimes*list[len(list)/10]
	}
	noise := list[len(list)/2]
	return noise >= jitterBusy && delay(tr.best, tr.from, tr.to) <= j.plausibleDelay(now)+jitterTimes*noise
}

// scheduleTrial schedules the next probe of a link on trial: later if this process is
// slow, in which case a link up on probation gets none.
func (j *judge) scheduleTrial(now int64, tr *trial) {
	noise, _ := j.jitter.median(now)
	if noise >= jitterBusy && tr.onProbation() {
		return
	}
	if at := now + max(trialEvery, 2*noise); tr.from.soon == 0 || tr.from.soon > at {
		tr.from.soon = at
		tr.from.dp.next = min(tr.from.dp.next, at)
	}
}

// startProbation puts a link that is up on trial.
func (j *judge) startProbation(now int64, l *link) {
	l.trial = &trial{from: l.src, to: l.dst, began: now, since: now, heard: now, best: l.best}
	l.src.trial, l.dst.tried = l.trial, l.trial
	l.src.judged, l.dst.judged = false, false
	j.passing[l.trial] = struct{}{}
}

// holdBack holds a link, and adds an event.
func (j *judge) holdBack(now int64, tr *trial, reason string) {
	tr.held, tr.since, tr.reason = true, now, reason
	j.events = append(j.events, event{link: &api.LinkChanged{Link: j.describe(now, tr), Cause: "held"}})
	j.settleRole(now, tr.from)
	j.settleRole(now, tr.to)
}

// explainSlow describes why a link is held.
func (j *judge) explainSlow(now int64, tr *trial) string {
	return fmt.Sprintf("the fastest of %d probes took %v more than the control channels, beyond the limit of %v: a relay?",
		tr.probes, time.Duration(delay(tr.best, tr.from, tr.to)).Round(10*time.Microsecond), time.Duration(j.plausibleDelay(now)).Round(10*time.Microsecond))
}

// endTrial ends a trial. With a cause the link is gone, else it is up.
func (j *judge) endTrial(now int64, tr *trial, cause string) {
	if tr == nil {
		return
	}
	delete(j.trials, tr)
	delete(j.passing, tr)
	if tr.onProbation() {
		tr.from.out.trial = nil
		tr.from.judged, tr.to.judged = cause == "", cause == ""
	}
	tr.from.trial, tr.to.tried = nil, nil
	if cause == "" {
		return
	}
	if tr.held {
		j.events = append(j.events, event{link: &api.LinkChanged{Link: j.describe(now, tr), Removed: true, Cause: cause}})
	}
	j.settleRole(now, tr.from)
	j.settleRole(now, tr.to)
}

// endTrials ends the trials of a port.
func (j *judge) endTrials(now int64, p *port, cause string) {
	j.endTrial(now, p.trial, cause)
	j.endTrial(now, p.tried, cause)
}

// trialTimeout returns how long a trial lasts without a probe.
func (j *judge) trialTimeout() int64 {
	return int64(j.cfg.Interval+j.cfg.Timeout) + 2*int64(j.ownDelay)
}

// endSilentTrials ends the trials whose probes are missing.
func (j *judge) endSilentTrials(now int64) {
	next := int64(math.MaxInt64)
	for tr := range j.trials {
		if end := tr.heard + j.trialTimeout(); end > now {
			next = min(next, end)
		} else {
			j.endTrial(now, tr, "silent")
		}
	}
	if next != math.MaxInt64 {
		j.schedule(max(next, now+boundEvery))
	}
}

// describe returns the API's form of a link that is not up.
func (j *judge) describe(now int64, tr *trial) *api.Link {
	reason := tr.reason
	if reason == "" {
		reason = j.explainSlow(now, tr)
	}
	return &api.Link{
		Src: tr.from.location(), Dst: tr.to.location(), State: tr.state().String(), Weight: weight(j.cfg, tr.from.speed, tr.to.speed),
		LatencyUs: uint64(max(delay(tr.best, tr.from, tr.to), 0) / 1000), Since: rfc3339(tr.since), Reason: reason,
		Settings: j.settings[newPair(tr.from.at, tr.to.at)],
	}
}

// recordEchoes records the round trips of one echo, asked for at began, to each of several
// switches, and how much longer than the longest of them the call took.
func (j *judge) recordEchoes(now, began int64, trips map[flow.DPID]int64, more int64) {
	for id, trip := range trips {
		dp := j.switches[id]
		if dp == nil || !dp.connected {
			continue
		}
		if began >= dp.since { // else the answer may be of its connection before
			dp.answered = began
			delete(j.doubted, id)
		}
		e := &dp.echo
		if now-e.at > echoFor {
			*e = echo{}
		}
		if e.n > 0 {
			j.jitter.add(now, more+trip-e.least)
		} else {
			e.least = trip
		}
		e.least, e.at = min(e.least, trip), now
		e.n++
	}
}

// toEcho returns the switches to measure: those of links on trial, and those whose silence
// is to count.
func (j *judge) toEcho() map[flow.DPID]bool {
	list := map[flow.DPID]bool{}
	for id := range j.doubted {
		if len(list) < echoesAtOnce {
			list[id] = true
		}
	}
	for _, trials := range []map[*trial]struct{}{j.trials, j.passing} {
		for tr := range trials {
			if len(list) >= echoesAtOnce {
				break
			}
			if !tr.held {
				list[tr.from.at.Switch], list[tr.to.at.Switch] = true, true
			}
		}
	}
	return list
}

// recordDelay records the delay of a probe of a link.
func (j *judge) recordDelay(now int64, l *link, took int64) {
	l.latency += (took - l.latency) / 8
	if l.trial == nil && l.probes >= probesLeast {
		j.jitter.add(now, took-l.best)
	}
	l.best = min(l.best, took)
	if j.isIdle(now) {
		l.calm++
	}
	if l.probes++; l.probes%probesLeast == 1 {
		j.updateWeight(l)
		j.refresh(now, l, "latency")
		l.lately = took
	}
	l.lately = min(l.lately, took)
}

// echoesAtOnce bounds the switches in one echo call.
const echoesAtOnce = 64

// echoFor is how long a round trip counts if no new one follows.
const echoFor = int64(time.Minute)
