package flowrules

import (
	"time"

	"google.golang.org/grpc/codes"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/internal/backoff"
)

// read records a reading that was requested at began. The first reading of a
// session is the comparison after connecting; later ones verify, and publish what
// was asked for.
func (l *ledger) read(rd *reading, wanted ownerSet, began, now time.Time) {
	l.foreign = rd.foreign
	l.readLate, l.unread, l.readError = 0, 0, ""
	if l.unknown {
		l.unknown, wanted = false, everybody
	}
	if l.viewed {
		if rd.objects != nil {
			l.objects.verify(rd.objects, l.claimed, began, now)
		}
		l.verify(rd, began, now)
		l.observe(&l.presence, rd, wanted|l.lacking) // an owner declares again, and is told what has failed
		l.lacking = 0
		return
	}
	l.observe(&l.presence, rd, everybody)
	l.viewed = true
	if rd.objects != nil {
		l.objects.have = rd.objects
	}
	l.compare(rd, now)
	l.since = now
}

// readFailed records that the switch has not reported its entries. It returns
// whether they are presumed unknown from now on. Such a switch is asked ever more rarely, at
// least every VerifyInterval.
func (l *ledger) readFailed(err error, now time.Time) (presumed bool) {
	l.readLate++
	l.readError = err.Error()
	l.readDue = now.Add(latePause(l.readLate))
	if kind := api.KindOf(err); kind == codes.DeadlineExceeded || kind == codes.Unimplemented {
		l.unread++
	}
	if presumed = !l.viewed && l.unread >= unreadMax; presumed {
		l.presume(now)
	}
	if l.unknown {
		pause := backoff.Exponential{First: longestPause, Last: max(longestPause, l.cfg.VerifyInterval)}
		l.readDue = now.Add(pause.After(max(1, l.readLate-unreadMax)))
	}
	return presumed
}

// unreadMax is how many times in a row a switch may fail or refuse to report its
// entries before Weft serves it without knowing them.
const unreadMax = 3

// presume serves a switch that does not report its entries: it overwrites them
// with the desired ones. It removes nothing, because nobody knows what is there.
// If the switch reports its entries later, they are verified.
func (l *ledger) presume(now time.Time) {
	l.viewed, l.unknown, l.since = true, true, now
	l.asked = 0
	l.observe(&l.presence, newReading(nil), everybody)
	for k, r := range l.rules {
		l.send(k, r, "", now)
	}
	l.tally = tally{added: uint32(len(l.rules))}
	l.count.countReconciled(0, l.tally.added, 0)
}

// compare settles, right after connecting, which of the operator's entries are
// right, missing, wrong or unwanted on the switch. It keeps the services' entries
// for when these declare their sets.
func (l *ledger) compare(rd *reading, now time.Time) {
	var t tally
	l.setAside(rd)
	for k, r := range l.rules {
		h := rd.entries[k]
		if o, held := l.heldBy(k); held && r.owner() == flow.OwnerOperator {
			delete(l.rules, k)
			l.hide(k, r, o, now)
			continue
		}
		switch {
		case h != nil && !r.lost && r.matchesReading(h, now, l.version):
			r.cookie = h.entry.Cookie
			l.confirm(k, r, now)
			t.kept++
		case h == nil && l.idledAway(r, now):
			l.count.countExpiry("idle_while_away")
			l.removeExpired(k, r)
		default:
			l.send(k, r, "", now)
			t.added++
		}
	}
	if n, older := l.countUnknown(flow.OwnerOperator, rd.entries, l.rules, now); n > 0 {
		l.keepUnknown(l.sw, flow.OwnerOperator, n, older)
	}
	for k, h := range rd.entries {
		if h.entry.Cookie.Owner() != flow.OwnerOperator || l.rules[k] != nil {
			continue
		}
		if l.doubtful {
			l.spared[flow.OwnerOperator]++
			continue
		}
		l.remove(&h.entry, now)
		t.removed++
	}
	l.tally = t
	l.count.countReconciled(t.kept, t.added, t.removed)
}

// verify repairs entries that others have changed. It does not judge entries
// younger than the configured age: some switches report late.
func (l *ledger) verify(rd *reading, began, now time.Time) {
	l.setAside(rd)
	old := began.Add(-l.cfg.VerifyAge)
	for k, r := range l.rules {
		if r.state != confirmed && !(r.state == failed && r.lacking) || r.since.After(old) {
			continue
		}
		h := rd.entries[k]
		switch {
		case h == nil && l.todo[k] != nil: // it is written again in its time
			if n := l.lacks[k]; n != nil {
				n.last = now
			}
		case h == nil:
			r.quirks, r.told = 0, nil
			if l.idledAway(r, now) && r.owner() == flow.OwnerOperator {
				l.count.countExpiry("idle_unheard")
				l.removeExpired(k, r)
				continue
			}
			l.count.countRepair("missing")
			l.recordMissing(k, r, now)
		case r.matchesReading(h, now, l.version):
			l.recordPresent(k, r, now)
			if r.quirks < quirkMax {
				r.quirks, r.told = 0, nil
			}
		default:
			l.repair(k, r, h, now)
		}
	}
	for k, h := range rd.entries {
		o := h.entry.Cookie.Owner()
		if (o == flow.OwnerOperator && !l.doubtful || l.claimed[o] && !l.keeping[o]) && l.rules[k] == nil && l.removals[k] == nil && h.age >= l.cfg.VerifyAge {
			l.count.countRepair("extra")
			l.remove(&h.entry, now)
		}
	}
}

// recordMissing records that the switch lacks an entry that it has confirmed, and
// sends the entry again: at once, or at growing intervals if it recurs.
func (l *ledger) recordMissing(k entryID, r *rule, now time.Time) {
	n := l.lacks[k]
	if n == nil {
		n = &lack{}
		l.lacks[k] = n
	}
	n.times++
	if n.last = now; n.times < lackMax {
		l.soon, l.lacking = true, l.lacking|only(r.owner())
		l.send(k, r, "", now)
		return
	}
	r.lacking, r.due = true, now.Add(refusalPause(l.cfg, n.times-lackMax+1))
	l.todo[k] = r
	r.become(failed, reasonLacks, now)
	if r.announced != reasonLacks {
		r.announced = reasonLacks
		l.count.countRepair("given_up")
		l.failures = append(l.failures, l.wantedFlow(r))
		l.lacking |= only(r.owner())
	}
}

// recordPresent records that the switch has an entry.
func (l *ledger) recordPresent(k entryID, r *rule, now time.Time) {
	n := l.lacks[k]
	if n == nil {
		return
	}
	if n.isMissing() && r.state == confirmed {
		l.lacking |= only(r.owner())
	}
	if n.seen = now; now.Sub(n.last) < lackFor {
		return
	}
	delete(l.lacks, k)
	if r.lacking = false; r.state == failed {
		l.confirm(k, r, now)
		l.lacking |= only(r.owner())
	}
}

// repair rewrites an entry that the switch reports with differences, unless the
// switch has reported the same after each of the last repairs.
func (l *ledger) repair(k entryID, r *rule, h *seen, now time.Time) {
	if r.told == nil || !same(&r.told.entry, &h.entry, l.version) {
		r.quirks = 0
	}
	r.told = h
	r.quirks++
	if r.quirks > quirkMax {
		if r.reason == "" {
			l.count.countRepair("given_up")
		}
		r.reason = reasonTold
		return
	}
	l.count.countRepair("changed")
	l.send(k, r, "", now)
}
