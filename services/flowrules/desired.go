package flowrules

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
)

// desired is the entries that one switch should have, and those to remove from it.
// The lock of the worker guards it, as all of a ledger.
type desired struct {
	presence *presence
	count    *counts

	rules    map[entryID]*rule
	hidden   map[entryID]*rule // the operator's, behind a service's with the same key
	todo     map[entryID]*rule // those of rules to send, with their due time
	timed    map[entryID]*rule // those of rules and hidden with an end
	removals map[entryID]*removal
	lacks    map[entryID]*lack // of entries that a reading has lacked
	order    uint64
	forget   []*rule // operator's entries that are over, to be removed from the store
	deliver  []*rule // operator's entries first confirmed, to be recorded in the store
}

func newDesired(p *presence, count *counts) desired {
	return desired{
		presence: p, count: count,
		rules: map[entryID]*rule{}, hidden: map[entryID]*rule{}, todo: map[entryID]*rule{},
		timed: map[entryID]*rule{}, lacks: map[entryID]*lack{}, removals: map[entryID]*removal{},
	}
}

// drop voids a removal.
func (d *desired) drop(k entryID, m *removal) {
	delete(d.removals, k)
	close(m.settled)
}

// put makes r the desired entry of its key and sends it.
func (d *desired) put(r *rule, now time.Time) {
	k := r.id
	if m := d.removals[k]; m != nil {
		d.drop(k, m) // adding overwrites
	}
	d.rules[k] = r
	if !r.expires.IsZero() {
		d.timed[k] = r
	}
	d.send(k, r, "", now)
}

// send queues r to be sent at once, or when the switch is back.
func (d *desired) send(k entryID, r *rule, reason string, now time.Time) {
	if !d.presence.connected {
		r.become(requested, reasonAway, now)
		return
	}
	r.become(requested, reason, now)
	if d.presence.viewed {
		r.due = now
		d.todo[k] = r
	}
}

// removeRule removes r from the desired entries.
func (d *desired) removeRule(k entryID, r *rule) {
	if d.rules[k] == r {
		delete(d.rules, k)
		delete(d.todo, k)
		delete(d.lacks, k)
	}
	if d.hidden[k] == r {
		delete(d.hidden, k)
	}
	if d.timed[k] == r {
		delete(d.timed, k)
	}
	r.closeWaiters()
}

// remove starts the removal of an entry from the switch.
func (d *desired) remove(e *flow.Entry, now time.Time) *removal {
	m := &removal{entry: flow.Entry{Table: e.Table, Priority: e.Priority, Match: e.Match, Cookie: e.Cookie}, due: now, settled: make(chan struct{})}
	d.removals[idOf(e)] = m
	return m
}

// operatorRule returns the operator's rule with this key, hidden or not.
func (d *desired) operatorRule(k entryID) *rule {
	if r := d.hidden[k]; r != nil {
		return r
	}
	if r := d.rules[k]; r != nil && r.owner() == flow.OwnerOperator {
		return r
	}
	return nil
}

// keep returns the operator's rule if the request repeats it, equal to the
// second. A repeated request changes nothing, except that it retries a refused
// entry.
func (d *desired) keep(app string, e *flow.Entry, expires, now time.Time) *rule {
	k := idOf(e)
	r := d.operatorRule(k)
	if r == nil || !r.equalsRequest(app, e, expires) {
		return nil
	}
	if r.state == failed && d.presence.connected && d.rules[k] == r {
		r.refusals, r.late, r.lacking = 0, 0, false
		delete(d.lacks, k)
		d.send(k, r, "", now)
	}
	return r
}

// hide puts an operator's rule behind that of a service.
func (d *desired) hide(k entryID, r *rule, o flow.Owner, now time.Time) {
	d.hidden[k] = r
	if !r.expires.IsZero() {
		d.timed[k] = r
	}
	r.become(failed, reasonHeld(o), now)
}

// cancel takes back an operator's entry. It returns the removal from the switch,
// nil if the switch has nothing to remove.
func (d *desired) cancel(k entryID, now time.Time) *removal {
	r := d.operatorRule(k)
	if r == nil {
		return nil
	}
	visible := d.rules[k] == r
	d.removeRule(k, r)
	if !visible || !d.presence.connected || !d.presence.viewed {
		return nil // the comparison at connect finds it
	}
	return d.remove(r.entry(), now)
}

// removeExpired removes an entry that has expired from the desired ones.
func (d *desired) removeExpired(k entryID, r *rule) {
	d.removeRule(k, r)
	if r.owner() == flow.OwnerOperator {
		d.forget = append(d.forget, r)
	}
}

// expire removes the entries that are over from the desired ones. If the switch
// has the entry, the switch ends it and reports this; so expire waits a little
// longer.
func (d *desired) expire(now time.Time) (next time.Time) {
	for k, r := range d.timed {
		end := r.expires
		if d.presence.connected && (r.state == confirmed || r.state == sent) {
			end = end.Add(clockSlack)
		}
		if !now.Before(end) {
			d.count.countExpiry("hard_timeout")
			d.removeExpired(k, r)
			continue
		}
		next = earlier(next, end)
	}
	return next
}

// roomFor retries at once the entries that did not fit into the table, now that n
// others have left it.
func (d *desired) roomFor(n int, now time.Time) {
	for _, r := range d.todo {
		if n <= 0 {
			return
		}
		if r.full && r.due.After(now) {
			r.due = now
			n--
		}
	}
}

// list returns the API's view of all rules of a switch.
func (d *desired) list(now time.Time) []*api.WantedFlow {
	rules := make([]*rule, 0, len(d.rules)+len(d.hidden))
	for _, r := range d.rules {
		rules = append(rules, r)
	}
	for _, r := range d.hidden {
		rules = append(rules, r)
	}
	slices.SortFunc(rules, func(a, b *rule) int {
		return cmp.Or(cmp.Compare(a.table, b.table), cmp.Compare(b.priority, a.priority), cmp.Compare(a.order, b.order))
	})
	flows := make([]*api.WantedFlow, 0, len(rules))
	for _, r := range rules {
		f := d.presence.wantedFlow(r)
		if f.Reason == "" && !r.expires.IsZero() {
			f.Reason = fmt.Sprintf("ends in %v", max(0, r.expires.Sub(now)).Round(time.Second))
		}
		flows = append(flows, f)
	}
	return flows
}

// confirm records that the switch has an entry, and queues a record in the store
// if the store needs one.
func (d *desired) confirm(k entryID, r *rule, now time.Time) {
	if !r.delivered && r.idle != 0 && r.owner() == flow.OwnerOperator {
		d.deliver = append(d.deliver, r)
	}
	delete(d.todo, k)
	r.recordConfirmed(now)
}

func reasonHeld(o flow.Owner) string {
	return fmt.Sprintf("%v has an entry with the same table, priority and match; choose another priority", o)
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

// earlier returns the earlier of two times; zero is none.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
