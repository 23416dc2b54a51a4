package flowrules

import (
	"cmp"
	"slices"
	"time"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
)

// stepKind is the kind of a step.
type stepKind uint8

const (
	idle     stepKind = iota // until a time, or until something changes
	record                   // bring the store up to date
	write                    // add entries
	erase                    // remove entries
	place                    // make groups and meters
	displace                 // remove groups and meters
	read                     // read what the switch has
)

// step is the next step for a switch.
type step struct {
	kind    stepKind
	until   time.Time // idle; zero is for ever
	session uint64
	asked   ownerSet // read
	// readObjects: groups and meters, too.
	readObjects bool
	rules       []*rule      // write
	removals    []*removal   // erase
	objects     []*resource  // place
	gone        []objectGone // displace
	decision    *flow.Decision
}

// next returns the step to do at now, and records that it is under way. It adds
// entries before it removes others, so that nothing is missing in between, and
// adds the most important first, so that entries that forbid are there before
// those that allow (CVE-2018-12691). It makes groups and meters before the
// entries that use them, and removes them after these.
func (l *ledger) next(now time.Time) step {
	wake := l.expire(now)
	if len(l.forget)+len(l.deliver) > 0 {
		return step{kind: record}
	}
	if !l.connected {
		return step{kind: idle, until: wake}
	}
	if !l.viewed {
		if !now.Before(l.readDue) {
			return l.readStep()
		}
		return step{kind: idle, until: earlier(wake, l.readDue)}
	}
	if l.asked != 0 {
		if !now.Before(l.readDue) {
			return l.readStep()
		}
		wake = earlier(wake, l.readDue)
	}
	due, later := l.dueRules(now)
	erasable, laterErase := l.dueRemovals(now)
	objects, laterObject := l.objects.due(now)
	displaced, laterDisplace := l.dueObjectRemovals(now)
	if len(due)+len(erasable)+len(objects)+len(displaced) > 0 && now.Before(l.pacing.next) {
		return step{kind: idle, until: earlier(wake, l.pacing.next)}
	}
	switch {
	case len(objects) > 0:
		return l.makeStep(objects, now)
	case len(due) > 0:
		return l.writeStep(due, now)
	case len(erasable) > 0:
		return l.eraseStep(erasable, now)
	case len(displaced) > 0:
		return l.unmakeStep(displaced, now)
	case l.cfg.VerifyInterval > 0 && !now.Before(l.readDue):
		return l.readStep()
	}
	if l.cfg.VerifyInterval > 0 {
		wake = earlier(wake, l.readDue)
	}
	later = earlier(later, earlier(laterErase, earlier(laterObject, laterDisplace)))
	return step{kind: idle, until: earlier(wake, later)}
}

// dueRules returns the rules to send at now, and when the next is due.
func (l *ledger) dueRules(now time.Time) (due []*rule, later time.Time) {
	if len(l.todo) == 0 {
		return nil, later
	}
	without := l.tablesWithoutMiss()
	for _, r := range l.todo {
		end := l.waitsForMiss(r, &without, now)
		switch _, waits := l.objects.awaits(r); {
		case !end.IsZero():
			later = earlier(later, end)
		case waits || l.asked&doubt != 0 && l.objects.usedBy(r):
		case r.crowded && len(l.removals) > 0:
		case r.due.After(now):
			later = earlier(later, r.due)
		default:
			due = append(due, r)
		}
	}
	slices.SortFunc(due, func(a, b *rule) int {
		return cmp.Or(cmp.Compare(b.priority, a.priority), cmp.Compare(b.table, a.table), cmp.Compare(a.order, b.order))
	})
	return due, later
}

// tablesWithoutMiss returns the tables that packets reach and that have no miss entry yet.
func (l *ledger) tablesWithoutMiss() (without [256]bool) {
	for _, t := range flow.Tables() {
		miss := flow.Entry{Table: t.Number}
		r := l.rules[idOf(&miss)]
		there := r != nil && r.state == confirmed || l.unclaimed[flow.OwnerForwarding][idOf(&miss)] != nil
		without[t.Number] = miss.TableMiss() && !there
	}
	return without
}

// dueRemovals returns the removals to send at now. It leaves out those whose
// owner still has entries to add.
func (l *ledger) dueRemovals(now time.Time) (due []*removal, later time.Time) {
	if len(l.removals) == 0 {
		return nil, later
	}
	var coming [256]bool
	for _, r := range l.todo {
		if r.state == requested && !r.crowded {
			coming[r.owner()] = true
		}
	}
	for _, m := range l.removals {
		switch {
		case coming[m.entry.Cookie.Owner()]:
		case m.due.After(now):
			later = earlier(later, m.due)
		default:
			due = append(due, m)
		}
	}
	return due, later
}

// writeStep returns the step that adds the first rules.
func (l *ledger) writeStep(due []*rule, now time.Time) step {
	due = due[:min(len(due), l.pacing.most)]
	s := step{kind: write, session: l.session, rules: due, decision: &flow.Decision{}}
	for _, r := range due {
		m := s.decision.AddFlow(l.sw)
		m.Command, m.Entry = flow.Add, r.wantedEntry(now)
		r.lost = false
		r.become(sent, "", now)
	}
	l.pacing.delay(len(due), now)
	return s
}

// eraseStep returns the step that carries out the first of the removals. It removes
// exactly the entry of that key, and only if it still belongs to the same owner,
// so that no owner ever deletes another's (CVE-2019-11189). OpenFlow 1.0 cannot
// ask for the owner.
func (l *ledger) eraseStep(due []*removal, now time.Time) step {
	due = due[:min(len(due), l.pacing.most)]
	s := step{kind: erase, session: l.session, removals: due, decision: &flow.Decision{}}
	for _, r := range due {
		m := s.decision.AddFlow(l.sw)
		m.Command, m.Entry = flow.DeleteStrict, r.entry
		if l.version != "1.0" {
			m.CookieMask = flow.OwnerMask
		}
	}
	l.pacing.delay(len(due), now)
	return s
}

// recordWrite records the results of adding entries.
func (l *ledger) recordWrite(s step, res *api.ApplyResult, err error, now time.Time) {
	if s.session != l.session || !l.connected {
		return // all are compared again after connecting
	}
	failures, _ := l.stepFailures(len(s.rules), res, err)
	l.pacing.adapt(len(s.rules), failures)
	for i, r := range s.rules {
		k := r.id
		if l.rules[k] != r || r.state != sent {
			continue // replaced or taken back meanwhile
		}
		f, bad := failures[i]
		switch {
		case !bad:
			l.count.countWrite("add", "confirmed")
			if r.lacking { // it has said so before; the next reading shows
				delete(l.todo, k)
				r.lost = false
				r.become(failed, reasonLacks, now)
				continue
			}
			lost := r.lost
			l.confirm(k, r, now)
			if lost {
				l.restore(k, r, now)
			}
		default:
			l.count.countWrite("add", f.kind.String())
			l.fail(k, r, f, now)
		}
	}
}

// fail records that a switch has not accepted an entry. Other entries of the
// switch do not wait for it (CVE-2017-1000358).
func (l *ledger) fail(k entryID, r *rule, f failure, now time.Time) {
	if f.kind == failedFull && len(l.removals) > 0 && !r.full {
		r.full, r.crowded = true, true
		r.become(requested, reasonRoom, now)
		return
	}
	if f.kind == failedRefused && l.refusesNumbers(r, now) {
		return
	}
	if !r.recordFailure(f, l.cfg, now) {
		delete(l.todo, k)
	}
	if f.kind == failedRefused {
		l.rereadObjects(r, now)
	}
	if r.state == failed && r.announced != f.text {
		r.announced = f.text
		l.failures = append(l.failures, l.wantedFlow(r))
	}
}

// recordErased records the outcome of removals. It returns the switch's words if the
// switch refused one; verification finds that entry again.
func (l *ledger) recordErased(s step, res *api.ApplyResult, err error, now time.Time) (refusal string) {
	if s.session != l.session || !l.connected {
		return ""
	}
	failures, _ := l.stepFailures(len(s.removals), res, err)
	l.pacing.adapt(len(s.removals), failures)
	gone := 0
	for i, m := range s.removals {
		k := idOf(&m.entry)
		if l.removals[k] != m {
			continue // wanted again meanwhile
		}
		f, bad := failures[i]
		if bad {
			l.count.countWrite("delete", f.kind.String())
			if f.kind == failedLate {
				m.late++
				m.due = now.Add(latePause(m.late))
				continue
			}
			refusal = f.text
		} else {
			l.count.countWrite("delete", "confirmed")
			gone++
		}
		l.drop(k, m)
	}
	l.roomFor(gone, now)
	if len(l.removals) == 0 || gone > 0 {
		for _, r := range l.todo {
			if r.crowded {
				r.crowded, r.due = false, now
			}
		}
	}
	return refusal
}
