package flowrules

import (
	"cmp"
	"slices"
	"time"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
)

// doubt asks for a reading, as an owner would: a group or meter seems to be gone.
// The entries that use it wait for the reading.
const doubt ownerSet = 1 << 63

// doubtPause is the least time between two such readings.
const doubtPause = time.Second

// objects is the groups and meters of one switch: those that services want, and
// those that the switch is known to have.
type objects struct {
	wanted   map[objectKey]*resource
	have     map[objectKey]*body // of the services' numbers only; empty until read
	removals map[objectKey]*objectRemoval
	doubted  time.Time // when one was last suspected to be gone
	count    *counts
}

func newObjects(count *counts) objects {
	return objects{count: count, wanted: map[objectKey]*resource{}, have: map[objectKey]*body{}, removals: map[objectKey]*objectRemoval{}}
}

// isEmpty reports whether no groups or meters are wanted or present.
func (o *objects) isEmpty() bool { return len(o.wanted)+len(o.have) == 0 }

// forget ends what belongs to a session that is over.
func (o *objects) forget(now time.Time) {
	for k, w := range o.wanted {
		delete(o.wanted, k)
		w.become(failed, reasonAway, now)
	}
	for k := range o.removals {
		o.drop(k)
	}
	clear(o.have)
	o.doubted = time.Time{}
}

// drop ends a removal.
func (o *objects) drop(k objectKey) {
	if m := o.removals[k]; m != nil {
		delete(o.removals, k)
		close(m.settled)
	}
}

// remove starts the removal of a group or meter from the switch.
func (o *objects) remove(k objectKey, now time.Time) *objectRemoval {
	m := o.removals[k]
	if m == nil {
		m = &objectRemoval{due: now, settled: make(chan struct{})}
		o.removals[k] = m
	}
	return m
}

// declare makes groups and meters the whole set of a service for this
// session. With keep, the switch's other ones stay.
func (o *objects) declare(owner flow.Owner, list []*resource, others bool, d *declared, now time.Time) {
	keep := make(map[objectKey]bool, len(list))
	for _, w := range list {
		keep[w.key] = true
		o.want(w, d, now)
	}
	for k := range o.wanted {
		if k.owner() == owner && !keep[k] {
			o.unwant(k)
		}
	}
	for k := range o.have {
		if k.owner() == owner && !keep[k] && !others {
			d.gone = append(d.gone, o.remove(k, now))
			d.sent++
		}
	}
}

// want has a group or meter of a service made, or changed, if it is not as wanted.
func (o *objects) want(w *resource, d *declared, now time.Time) {
	if old := o.wanted[w.key]; old != nil {
		if sameBody(w.key.kind, &w.body, &old.body) {
			d.kept++
			d.objects = append(d.objects, old)
			return
		}
		old.closeWaiters()
	}
	o.wanted[w.key] = w
	o.drop(w.key)
	d.objects = append(d.objects, w)
	if h := o.have[w.key]; h != nil && sameBody(w.key.kind, &w.body, h) {
		w.become(confirmed, "", now)
		d.kept++
		return
	}
	w.become(requested, "", now)
	w.due = now
	d.sent++
}

// unwant removes a group or meter from those wanted; the switch may still have it.
func (o *objects) unwant(k objectKey) {
	w := o.wanted[k]
	if w == nil {
		return
	}
	delete(o.wanted, k)
	w.closeWaiters()
	if o.have[k] == nil && w.state == sent {
		o.have[k] = &body{} // it may still arrive there
	}
}

// awaits returns an unconfirmed group or meter that a rule uses, false if there
// is none.
func (o *objects) awaits(r *rule) (w *resource, waits bool) {
	if len(o.wanted) == 0 {
		return nil, false
	}
	uses(r.entry(), func(k objectKey) {
		if used := o.wanted[k]; used != nil && used.state != confirmed {
			w, waits = used, true
		}
	})
	return w, waits
}

// usedBy reports whether a rule uses a group or meter of a service.
func (o *objects) usedBy(r *rule) (yes bool) {
	if len(o.wanted) > 0 {
		uses(r.entry(), func(k objectKey) { yes = yes || o.wanted[k] != nil })
	}
	return yes
}

// due returns the groups and meters to send at now, and when the next is
// due.
func (o *objects) due(now time.Time) (due []*resource, later time.Time) {
	for _, w := range o.wanted {
		switch {
		case w.state == confirmed || w.state == sent || w.due.IsZero():
		case w.due.After(now):
			later = earlier(later, w.due)
		default:
			due = append(due, w)
		}
	}
	slices.SortFunc(due, func(a, b *resource) int { return compareKeys(b.key, a.key) }) // what groups lead to first
	return due, later
}

func compareKeys(a, b objectKey) int {
	return cmp.Or(cmp.Compare(a.kind, b.kind), cmp.Compare(a.id, b.id))
}

// dueObjectRemovals returns the groups and meters to remove at now: those of
// owners whose entries are all written and removed, because a switch removes a
// group or meter together with the entries that use it.
func (l *ledger) dueObjectRemovals(now time.Time) (due []objectKey, later time.Time) {
	if len(l.objects.removals) == 0 {
		return nil, later
	}
	var coming [256]bool
	for _, r := range l.todo {
		if r.state == requested || r.state == sent {
			coming[r.owner()] = true
		}
	}
	for _, m := range l.removals {
		coming[m.entry.Cookie.Owner()] = true
	}
	for k, m := range l.objects.removals {
		switch {
		case coming[k.owner()]:
		case m.due.After(now):
			later = earlier(later, m.due)
		default:
			due = append(due, k)
		}
	}
	slices.SortFunc(due, compareKeys)
	return due, later
}

// makeStep returns the step that makes the first groups and meters. It
// changes an existing one in place, so that the entries that use it are not
// interrupted.
func (l *ledger) makeStep(due []*resource, now time.Time) step {
	due = due[:min(len(due), l.pacing.most)]
	s := step{kind: place, session: l.session, objects: due, decision: &flow.Decision{}}
	for _, w := range due {
		command := flow.Add
		if l.objects.have[w.key] != nil {
			command = flow.Modify
		}
		l.objectMod(s.decision, w.key, &w.body, command)
		w.become(sent, "", now)
	}
	l.pacing.delay(len(due), now)
	return s
}

// unmakeStep returns the step that removes the first groups and meters.
func (l *ledger) unmakeStep(due []objectKey, now time.Time) step {
	due = due[:min(len(due), l.pacing.most)]
	s := step{kind: displace, session: l.session, decision: &flow.Decision{}}
	for _, k := range due {
		s.gone = append(s.gone, objectGone{k, l.objects.removals[k]})
		l.objectMod(s.decision, k, &body{group: flow.Group{ID: k.id}, meter: flow.Meter{ID: k.id}}, flow.Delete)
	}
	l.pacing.delay(len(due), now)
	return s
}

// objectGone is one removal of a step.
type objectGone struct {
	key     objectKey
	removal *objectRemoval
}

// recordMade records the results of making groups and meters.
func (l *ledger) recordMade(s step, res *api.ApplyResult, err error, now time.Time) {
	if s.session != l.session || !l.connected {
		return
	}
	failures, said := l.stepFailures(len(s.objects), res, err)
	l.pacing.adapt(len(s.objects), failures)
	made := map[objectKey]bool{}
	for i, w := range s.objects {
		f, bad := failures[i]
		result := "confirmed"
		if bad {
			result = f.kind.String()
		}
		l.count.countWrite(w.key.kind.String(), result)
		if !bad {
			b := w.body
			l.objects.have[w.key] = &b
		}
		if l.objects.wanted[w.key] != w || w.state != sent {
			continue // replaced or taken back meanwhile
		}
		if !bad {
			w.recordConfirmed(now)
			made[w.key] = true
			continue
		}
		l.objectFailed(w, f, said[i], now)
	}
	l.release(made, now)
}

// objectFailed records that a switch has not made a group or meter. If the switch
// has it against expectation, or lacks it, the other operation is tried.
func (l *ledger) objectFailed(w *resource, f failure, said objectFailure, now time.Time) {
	have := l.objects.have[w.key] != nil
	if said == alreadyThere && !have || said == notThere && have {
		if have {
			delete(l.objects.have, w.key)
		} else {
			l.objects.have[w.key] = &body{}
		}
		w.late++
		if w.late <= lateMax {
			w.due = now
			w.become(requested, f.text, now)
			return
		}
	}
	if said == noRoom {
		f.kind = failedFull
	}
	if !w.recordFailure(f, l.cfg, now) {
		w.due = time.Time{}
	}
	if w.state != failed {
		return
	}
	for _, r := range l.todo {
		waits := false
		uses(r.entry(), func(k objectKey) { waits = waits || k == w.key })
		if waits && r.state == requested {
			r.become(failed, "needs "+w.key.String()+", which is not there: "+f.text, now)
		}
	}
	if w.announced != f.text {
		w.announced = f.text
		l.failures = append(l.failures, l.wantedObject(w))
	}
}

// release sends the rules that have waited for groups or meters.
func (l *ledger) release(made map[objectKey]bool, now time.Time) {
	if len(made) == 0 {
		return
	}
	for k, r := range l.rules {
		if r.state == confirmed {
			continue
		}
		waits := false
		uses(r.entry(), func(u objectKey) { waits = waits || made[u] })
		if waits {
			l.send(k, r, "", now)
		}
	}
}

// recordUnmade records the results of removing groups and meters.
func (l *ledger) recordUnmade(s step, res *api.ApplyResult, err error, now time.Time) (refusal string) {
	if s.session != l.session || !l.connected {
		return ""
	}
	failures, said := l.stepFailures(len(s.gone), res, err)
	l.pacing.adapt(len(s.gone), failures)
	gone := false
	for i, m := range s.gone {
		f, bad := failures[i]
		if bad && said[i] == notThere {
			bad = false
		}
		result := "confirmed"
		if bad {
			result = f.kind.String()
		}
		l.count.countWrite("delete_"+m.key.kind.String(), result)
		if !bad {
			delete(l.objects.have, m.key)
			gone = true
			if w := l.objects.wanted[m.key]; w != nil { // wanted again meanwhile
				w.due = now
				w.become(requested, "", now)
			}
		}
		if l.objects.removals[m.key] != m.removal {
			continue
		}
		if bad && f.kind == failedLate {
			m.removal.late++
			m.removal.due = now.Add(latePause(m.removal.late))
			continue
		}
		if bad {
			refusal = f.text
		}
		l.objects.drop(m.key)
	}
	if gone {
		for _, w := range l.objects.wanted {
			if w.full && w.state != confirmed {
				w.due = now
			}
		}
	}
	return refusal
}

// rereadObjects re-reads the groups and meters that a rule uses, because the switch
// removed or rejected the rule.
func (l *ledger) rereadObjects(r *rule, now time.Time) {
	if !l.viewed || l.unknown || !l.objects.usedBy(r) || l.asked&doubt != 0 {
		return
	}
	l.asked |= doubt
	if l.readLate == 0 {
		l.readDue = now
		if next := l.objects.doubted.Add(doubtPause); next.After(now) {
			l.readDue = next
		}
	}
	l.objects.doubted = now
}

// verify repairs groups and meters that others have changed. have is what
// the switch has just reported, claimed the services that have declared theirs.
func (o *objects) verify(have map[objectKey]*body, claimed map[flow.Owner]bool, began, now time.Time) {
	o.have = have
	for k, w := range o.wanted {
		h := have[k]
		if w.state != confirmed || w.since.After(began) {
			continue
		}
		switch {
		case h == nil:
			o.count.countRepair("missing")
		case sameBody(k.kind, &w.body, h):
			if w.quirks < quirkMax {
				w.quirks, w.told = 0, nil
			}
			continue
		default:
			if w.told == nil || !sameBody(k.kind, w.told, h) {
				w.quirks = 0
			}
			w.told = h
			if w.quirks++; w.quirks > quirkMax {
				if w.reason == "" {
					o.count.countRepair("given_up")
				}
				w.reason = reasonTold
				continue
			}
			o.count.countRepair("changed")
		}
		w.due = now
		w.become(requested, "", now)
	}
	for k := range have {
		if claimed[k.owner()] && o.wanted[k] == nil && o.removals[k] == nil {
			o.count.countRepair("extra")
			o.remove(k, now)
		}
	}
}
