package flowrules

import (
	"time"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
)

// ledger is everything about the entries of one switch: what it should have, what
// is on its way, and what has become of it. It does nothing by itself: events and
// results change it, next returns what to do. The operator's entries outlive the
// sessions of the switch; a service's set lasts as long as the session in which
// it was declared, because ports may change after it.
type ledger struct {
	presence
	readings
	desired
	serviceSets
	storeDoubts
	redirection
	publications

	cfg     *Config
	objects objects
	pacing  pacing
	tally   tally
	foreign int
	lacking ownerSet // owners of entries that the last reading lacked once too often
}

// tally counts what the comparison at connect did.
type tally struct{ kept, added, removed uint32 }

func newLedger(sw flow.DPID, cfg *Config, count *counts) *ledger {
	l := &ledger{presence: presence{sw: sw}, cfg: cfg, readings: readings{cfg: cfg}, objects: newObjects(count), pacing: pacing{cfg: cfg}}
	l.desired = newDesired(&l.presence, count)
	return l
}

// connect records a new session of the switch. It returns false if the session is
// already known.
func (l *ledger) connect(s *api.Switch, now time.Time) bool {
	if l.connected {
		if s.GetSince() != "" && s.GetSince() == l.began && s.GetAddress() == l.address {
			return false
		}
		l.disconnect(now)
	}
	l.session++
	l.connected, l.viewed, l.unknown = true, false, false
	l.version, l.began, l.address = s.GetOpenflow(), s.GetSince(), s.GetAddress()
	l.readings.reset(now)
	l.pacing.reset()
	l.tally = tally{}
	l.serviceSets = newServiceSets()
	for _, r := range l.rules {
		r.late, r.crowded, r.lost = 0, false, false
		r.become(requested, "", now)
	}
	// l.since stays the time of the loss until the entries are read: it shows how
	// long the switch was on its own.
	return true
}

// disconnect records the loss of the switch.
func (l *ledger) disconnect(now time.Time) {
	if !l.connected {
		return
	}
	l.connected, l.viewed, l.unknown, l.since = false, false, false, now
	l.foreign, l.asked = 0, 0
	l.claimed, l.unclaimed, l.revisions = nil, nil, nil
	l.objects.forget(now)
	clear(l.todo)
	for k, m := range l.removals {
		l.drop(k, m)
	}
	for k, r := range l.rules {
		if r.owner() == flow.OwnerOperator {
			r.become(requested, reasonAway, now)
			r.closeWaiters() // nobody waits for a switch that is away
			continue
		}
		delete(l.rules, k)
		r.become(failed, reasonAway, now)
	}
	for k, r := range l.hidden {
		delete(l.hidden, k)
		l.rules[k] = r
		r.become(requested, reasonAway, now)
	}
}

// isIdle reports whether the switch is forgotten or has never connected, and no
// entries are desired there.
func (l *ledger) isIdle() bool {
	return !l.connected && (l.forgotten || l.session == 0) && len(l.rules)+len(l.hidden)+len(l.removals)+len(l.forget)+len(l.deliver) == 0
}

// heldBy returns the service whose entry has this key, if any, even if it has not
// declared its set anew yet.
func (l *ledger) heldBy(k entryID) (flow.Owner, bool) {
	if r := l.rules[k]; r != nil && r.owner() != flow.OwnerOperator {
		return r.owner(), true
	}
	for o, have := range l.unclaimed {
		if have[k] != nil {
			return o, true
		}
	}
	return 0, false
}

// add makes an operator's entry desired, in place of the one with its key.
func (l *ledger) add(r *rule, now time.Time) *rule {
	k := r.id
	if old := l.operatorRule(k); old != nil {
		l.removeRule(k, old)
	}
	l.order++
	r.order = l.order
	if o, held := l.heldBy(k); held { // declared while the entry was being stored
		l.hide(k, r, o, now)
		return r
	}
	l.put(r, now)
	return r
}

// handleRemoved records that the switch has removed an entry. An entry that expired
// is no longer desired; one that somebody else deleted is sent again.
func (l *ledger) handleRemoved(e *flow.Entry, reason string, now time.Time) {
	k := idOf(e)
	if h := l.unclaimed[e.Cookie.Owner()]; h != nil {
		delete(h, k)
	}
	r := l.rules[k]
	if r == nil || r.cookie != e.Cookie {
		return // replaced or taken back meanwhile: this is about the one before
	}
	switch reason {
	case "idle_timeout", "hard_timeout":
		l.count.countExpiry(reason)
		l.removeExpired(k, r)
	default:
		if r.state != confirmed {
			r.lost = true // handled when the step under way has ended
			return
		}
		l.restore(k, r, now)
	}
	l.roomFor(1, now)
}

// restore resends an entry that somebody else has deleted, the sooner the longer
// it lasted.
func (l *ledger) restore(k entryID, r *rule, now time.Time) {
	l.count.countRestore()
	if now.Sub(r.since) > time.Minute {
		r.restores = 0
	}
	r.restores++
	l.rereadObjects(r, now)
	l.send(k, r, reasonDeleted, now)
	if r.restores > 1 {
		r.due = now.Add(latePause(int(r.restores)))
	}
}
