package flowrules

import (
	"fmt"
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
	cfg   *Config
	count *counts

	unread    int // reads in a row that it has not answered, or has refused
	readDue   time.Time
	readLate  int // failed reads in a row
	readError string
	asked     ownerSet // to publish with the next reading

	rules     map[entryID]*rule
	hidden    map[entryID]*rule // the operator's, behind a service's with the same key
	todo      map[entryID]*rule // those of rules to send, with their due time
	timed     map[entryID]*rule // those of rules and hidden with an end
	removals  map[entryID]*removal
	claimed   map[flow.Owner]bool              // services that have declared their set in this session
	unclaimed map[flow.Owner]map[entryID]*seen // entries of those that have not
	revisions map[flow.Owner]uint64            // of the sets that they have declared
	keeping   map[flow.Owner]bool              // services that keep entries outside their set
	foreign   int
	spared    map[flow.Owner]int // entries that stay because the store is not whole
	doubtful  bool               // entries missing from the store may still be wanted
	doubts    []string           // why the store cannot be whole, to be reported
	history   history            // of the store
	objects   objects
	tally     tally
	lacks     map[entryID]*lack // of entries that a reading has lacked
	lacking   ownerSet          // owners of entries that the last reading lacked once too often
	soon      bool              // the last reading lacked entries: the next is soon
	order     uint64

	number       uint16 // of the controllers that receive its packets (direct.go)
	undirectable bool   // the switch refuses entries with such a number

	nextSend time.Time            // pacing
	batch    int                  // flow-mods that the switch may get at a time
	forget   []*rule              // operator's entries that are over, to be removed from the store
	deliver  []*rule              // operator's entries first confirmed, to be recorded in the store
	failures []*api.WantedFlow    // refusals to publish
	observed []*api.FlowsObserved // readings to publish
}

// tally counts what the comparison at connect did.
type tally struct{ kept, added, removed uint32 }

func newLedger(sw flow.DPID, cfg *Config, count *counts) *ledger {
	return &ledger{
		presence: presence{sw: sw}, cfg: cfg, count: count,
		rules: map[entryID]*rule{}, hidden: map[entryID]*rule{}, todo: map[entryID]*rule{},
		timed: map[entryID]*rule{}, lacks: map[entryID]*lack{}, removals: map[entryID]*removal{}, objects: newObjects(),
	}
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
	l.connected, l.viewed = true, false
	l.unknown, l.unread = false, 0
	l.version, l.began, l.address = s.GetOpenflow(), s.GetSince(), s.GetAddress()
	l.readDue, l.readLate, l.readError = now, 0, ""
	l.asked = 0
	l.nextSend, l.batch = time.Time{}, l.cfg.MaxBatch
	l.tally = tally{}
	l.claimed, l.unclaimed = map[flow.Owner]bool{}, map[flow.Owner]map[entryID]*seen{}
	l.revisions = map[flow.Owner]uint64{}
	l.keeping, l.spared = map[flow.Owner]bool{}, map[flow.Owner]int{}
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

// drop voids a removal.
func (l *ledger) drop(k entryID, m *removal) {
	delete(l.removals, k)
	close(m.settled)
}

// put makes r the desired entry of its key and sends it.
func (l *ledger) put(r *rule, now time.Time) {
	k := r.id
	if m := l.removals[k]; m != nil {
		l.drop(k, m) // adding overwrites
	}
	l.rules[k] = r
	if !r.expires.IsZero() {
		l.timed[k] = r
	}
	l.send(k, r, "", now)
}

// send queues r to be sent at once, or when the switch is back.
func (l *ledger) send(k entryID, r *rule, reason string, now time.Time) {
	if !l.connected {
		r.become(requested, reasonAway, now)
		return
	}
	r.become(requested, reason, now)
	if l.viewed {
		r.due = now
		l.todo[k] = r
	}
}

// removeRule removes r from the desired entries.
func (l *ledger) removeRule(k entryID, r *rule) {
	if l.rules[k] == r {
		delete(l.rules, k)
		delete(l.todo, k)
		delete(l.lacks, k)
	}
	if l.hidden[k] == r {
		delete(l.hidden, k)
	}
	if l.timed[k] == r {
		delete(l.timed, k)
	}
	r.closeWaiters()
}

// remove starts the removal of an entry from the switch.
func (l *ledger) remove(e *flow.Entry, now time.Time) *removal {
	m := &removal{entry: flow.Entry{Table: e.Table, Priority: e.Priority, Match: e.Match, Cookie: e.Cookie}, due: now, settled: make(chan struct{})}
	l.removals[idOf(e)] = m
	return m
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

func reasonHeld(o flow.Owner) string {
	return fmt.Sprintf("%v has an entry with the same table, priority and match; choose another priority", o)
}

// operatorRule returns the operator's rule with this key, hidden or not.
func (l *ledger) operatorRule(k entryID) *rule {
	if r := l.hidden[k]; r != nil {
		return r
	}
	if r := l.rules[k]; r != nil && r.owner() == flow.OwnerOperator {
		return r
	}
	return nil
}

// keep returns the operator's rule if the request repeats it, equal to the
// second. A repeated request changes nothing, except that it retries a refused
// entry.
func (l *ledger) keep(app string, e *flow.Entry, expires, now time.Time) *rule {
	k := idOf(e)
	r := l.operatorRule(k)
	if r == nil || !r.equalsRequest(app, e, expires) {
		return nil
	}
	if r.state == failed && l.connected && l.rules[k] == r {
		r.refusals, r.late, r.lacking = 0, 0, false
		delete(l.lacks, k)
		l.send(k, r, "", now)
	}
	return r
}

// equalsRequest reports whether a request asks for the rule as it is.
func (r *rule) equalsRequest(app string, e *flow.Entry, expires time.Time) bool {
	return r.app == app && r.same(e) && expires.Sub(r.expires) < time.Second
}

// expiry returns when an entry asked for now ends; zero is never.
func expiry(e *flow.Entry, now time.Time) time.Time {
	if e.HardTimeout == 0 {
		return time.Time{}
	}
	return now.Add(time.Duration(e.HardTimeout) * time.Second)
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

// hide puts an operator's rule behind that of a service.
func (l *ledger) hide(k entryID, r *rule, o flow.Owner, now time.Time) {
	l.hidden[k] = r
	if !r.expires.IsZero() {
		l.timed[k] = r
	}
	r.become(failed, reasonHeld(o), now)
}

// cancel takes back an operator's entry. It returns the removal from the switch,
// nil if the switch has nothing to remove.
func (l *ledger) cancel(k entryID, now time.Time) *removal {
	r := l.operatorRule(k)
	if r == nil {
		return nil
	}
	visible := l.rules[k] == r
	l.removeRule(k, r)
	if !visible || !l.connected || !l.viewed {
		return nil // the comparison at connect finds it
	}
	return l.remove(r.entry(), now)
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

// removeExpired removes an entry that has expired from the desired ones.
func (l *ledger) removeExpired(k entryID, r *rule) {
	l.removeRule(k, r)
	if r.owner() == flow.OwnerOperator {
		l.forget = append(l.forget, r)
	}
}

// expire removes the entries that are over from the desired ones. If the switch
// has the entry, the switch ends it and reports this; so expire waits a little
// longer.
func (l *ledger) expire(now time.Time) (next time.Time) {
	for k, r := range l.timed {
		end := r.expires
		if l.connected && (r.state == confirmed || r.state == sent) {
			end = end.Add(clockSlack)
		}
		if !now.Before(end) {
			l.count.countExpiry("hard_timeout")
			l.removeExpired(k, r)
			continue
		}
		next = earlier(next, end)
	}
	return next
}

// earlier returns the earlier of two times; zero is none.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// roomFor retries at once the entries that did not fit into the table, now that n
// others have left it.
func (l *ledger) roomFor(n int, now time.Time) {
	for _, r := range l.todo {
		if n <= 0 {
			return
		}
		if r.full && r.due.After(now) {
			r.due = now
			n--
		}
	}
}
