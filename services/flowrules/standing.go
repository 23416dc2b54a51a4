package flowrules

import (
	"context"
	"fmt"
	"maps"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
)

// SetStanding answers the call.
func (r *Rules) SetStanding(ctx context.Context, req *api.SetStandingRequest) (*api.SetStandingResponse, error) {
	sw, owner, entries, err := admitStanding(req, uint8(r.generation.Add(1)))
	if err != nil {
		return nil, err
	}
	objects, err := admitObjects(req, sw, owner)
	var gone ended
	if err == nil {
		gone, err = admitEnded(req, sw, owner)
	}
	if err != nil {
		return nil, api.Errorf(codes.InvalidArgument, "standing entries of %v: %w", owner, err)
	}
	ctx, cancel := context.WithTimeout(ctx, r.cfg.Deadline)
	defer cancel()
	w := r.claim(sw)
	defer r.release(w)
	if err := w.arrived(ctx, r.cfg.ConnectGrace); err != nil { // returns holding mu
		return nil, err
	}
	l := w.ledger
	session := l.session
	var d declared
	switch has := l.revisions[owner]; {
	case req.GetBase() == 0:
		d = l.declare(owner, entries, objects, req.GetKeep(), time.Now())
	case has == 0 || has != req.Base && has != req.GetRevision() || l.keeping[owner]: // the revision itself: the call is made again
		w.mu.Unlock()
		return nil, api.Errorf(codes.FailedPrecondition, "standing entries of %v: the set of switch %v is not that of revision %d; declare the whole set", owner, sw, req.Base)
	default:
		d = l.change(owner, entries, objects, gone, time.Now())
	}
	l.revisions[owner] = req.GetRevision()
	doubts := l.doubts
	l.doubts = nil
	waits := make([]<-chan struct{}, 0, len(d.rules)+len(d.removals))
	for _, rule := range d.rules {
		waits = append(waits, rule.settledChan())
	}
	for _, m := range d.removals {
		waits = append(waits, m.settled)
	}
	for _, w := range d.objects {
		waits = append(waits, w.settledChan())
	}
	for _, m := range d.gone {
		waits = append(waits, m.settled)
	}
	w.mu.Unlock()
	w.wake()
	r.tellDoubts(ctx, doubts)
	await(ctx, waits)

	w.mu.Lock()
	defer w.mu.Unlock()
	if l.session != session || !l.connected {
		return nil, api.Errorf(codes.Unavailable, "standing entries of %v: switch %v has gone away", owner, sw)
	}
	resp := &api.SetStandingResponse{Sent: d.sent, Kept: d.kept, Failed: d.refused}
	for _, rule := range d.rules {
		if l.rules[rule.id] != rule { // a later set, or its timeout, has removed it
			continue
		}
		switch {
		case rule.state == confirmed && l.lacks[rule.id].isMissing():
			f := l.wantedFlow(rule)
			f.Reason = reasonLacked
			resp.Failed = append(resp.Failed, f)
		case rule.state != confirmed:
			f := l.wantedFlow(rule)
			if f.Reason == "" {
				f.Reason = fmt.Sprintf("not confirmed within %v", r.cfg.Deadline)
			}
			resp.Failed = append(resp.Failed, f)
		}
	}
	for _, w := range d.objects {
		if l.objects.wanted[w.key] == w && w.state != confirmed {
			f := l.wantedObject(w)
			if w.reason == "" {
				f.Reason += fmt.Sprintf("not confirmed within %v", r.cfg.Deadline)
			}
			resp.Failed = append([]*api.WantedFlow{f}, resp.Failed...) // the cause before its consequences
		}
	}
	return resp, nil
}

// arrived waits until the switch is connected and its entries have been read, and
// returns holding w.mu. If the switch stays away for the grace, or does not
// report its entries in time, it returns an Unavailable error and does not hold
// w.mu.
func (w *worker) arrived(ctx context.Context, grace time.Duration) error {
	away := time.NewTimer(grace)
	defer away.Stop()
	for {
		w.mu.Lock()
		l := w.ledger
		if l.connected && l.viewed {
			return nil
		}
		changed, connected, text := w.changed, l.connected, l.readError
		w.mu.Unlock()
		expired := away.C
		if connected {
			expired = nil
		}
		select {
		case <-changed:
		case <-expired:
			return api.Errorf(codes.Unavailable, "switch %v is away; declare the entries when it has connected", l.sw)
		case <-ctx.Done():
			if !connected {
				return api.Errorf(codes.Unavailable, "switch %v is away; declare the entries when it has connected", l.sw)
			}
			if text != "" {
				text = ": " + text
			}
			return api.Errorf(codes.Unavailable, "switch %v has not told its entries yet%s", l.sw, text)
		}
	}
}

// await waits until all channels are closed (nil ones are) or ctx ends.
func await(ctx context.Context, waits []<-chan struct{}) {
	for _, c := range waits {
		if c == nil {
			continue
		}
		select {
		case <-c:
		case <-ctx.Done():
			return
		}
	}
}

// declared is the outcome of declaring a service's whole set: what to wait for,
// and what failed at once.
type declared struct {
	rules    []*rule
	removals []*removal
	objects  []*resource
	gone     []*objectRemoval
	refused  []*api.WantedFlow
	sent     uint32
	kept     uint32
}

// declare makes entries, groups and meters the whole set of a service for this
// session. The entries of the switch must have been read. If keep is set, or the
// store is not whole, entries outside the set stay.
func (l *ledger) declare(owner flow.Owner, entries []flow.Entry, objects []*resource, keep bool, now time.Time) declared {
	var d declared
	have := l.unclaimed[owner]
	first, kept := !l.claimed[owner], l.keeping[owner]
	l.claimed[owner] = true
	if owner.Policy() {
		if n, older := l.countUnknown(owner, excludeKeys(have, entries), l.rules, now); n > 0 && !keep {
			l.keepUnknown(l.sw, owner, n, older)
		}
		keep = keep || l.doubtful
	}
	l.keeping[owner], l.spared[owner] = keep, 0
	l.redirection.apply(owner, entries)
	l.objects.declare(owner, objects, keep, &d, now)
	if !keep {
		delete(l.unclaimed, owner)
	}

	wanted := make(map[entryID]bool, len(entries))
	for i := range entries {
		if l.want(&entries[i], have, &d, now) {
			wanted[idOf(&entries[i])] = true
		}
	}
	for k, r := range l.rules {
		if r.owner() == owner && !wanted[k] {
			l.unwant(k, r, &d, now)
		}
	}
	for k, h := range have {
		if o := l.hidden[k]; o != nil && !wanted[k] && l.rules[k] == nil { // the operator's takes its place
			delete(l.hidden, k)
			l.put(o, now)
			continue
		}
		if keep {
			if !wanted[k] {
				l.spared[owner]++
			}
			continue
		}
		if !wanted[k] && l.rules[k] == nil && l.removals[k] == nil {
			d.removals = append(d.removals, l.remove(&h.entry, now))
			d.sent++
		}
	}
	removed := uint32(len(d.removals) + len(d.gone))
	switch {
	case kept && !keep:
		l.tally.removed += removed
		l.count.countReconciled(0, 0, removed)
	case first:
		l.tally.kept += d.kept
		l.tally.added += d.sent - removed
		l.tally.removed += removed
		l.count.countReconciled(d.kept, d.sent-removed, removed)
	}
	return d
}

// want adds an entry to what a service wants. have is what the switch has of the
// service. It returns false if another service has an entry with the same key.
func (l *ledger) want(e *flow.Entry, have map[entryID]*seen, d *declared, now time.Time) bool {
	owner, k := e.Cookie.Owner(), idOf(e)
	old := l.rules[k]
	if old != nil && old.owner() != owner && old.owner() != flow.OwnerOperator {
		d.refused = append(d.refused, &api.WantedFlow{Flow: api.NewFlowEntry(l.sw, e), State: failed.String(), Reason: reasonHeld(old.owner())})
		return false
	}
	if old != nil && old.owner() == owner && old.same(e) {
		d.kept++
		d.rules = append(d.rules, old)
		return true
	}
	l.order++
	r := newRule(e, now)
	r.order = l.order
	if old != nil {
		l.removeRule(k, old)
		if old.owner() == flow.OwnerOperator {
			l.hide(k, old, owner, now)
		}
	}
	d.rules = append(d.rules, r)
	if h := have[k]; h != nil && same(e, &h.entry, l.version) {
		r.cookie = h.entry.Cookie
		l.rules[k] = r
		r.recordConfirmed(now)
		d.kept++
		return true
	}
	l.put(r, now)
	d.sent++
	return true
}

// unwant removes an entry of a service from those wanted.
func (l *ledger) unwant(k entryID, r *rule, d *declared, now time.Time) {
	l.removeRule(k, r)
	if h := l.hidden[k]; h != nil { // the operator's comes back in its place
		delete(l.hidden, k)
		l.put(h, now)
		return
	}
	d.removals = append(d.removals, l.remove(r.entry(), now))
	d.sent++
}

// ended is what is no more of a service's set.
type ended struct {
	entries []entryID
	objects []objectKey
}

// admitEnded returns what a change of a set ends.
func admitEnded(req *api.SetStandingRequest, sw flow.DPID, owner flow.Owner) (g ended, err error) {
	for _, f := range req.GetGone() {
		of, e, err := f.Entry()
		if err == nil && of != sw {
			err = fmt.Errorf("an entry that is gone is for switch %v, the set for switch %v", of, sw)
		}
		if err != nil {
			return g, err
		}
		e.Match.Normalize()
		g.entries = append(g.entries, idOf(&e))
	}
	for _, id := range req.GetGoneGroups() {
		g.objects = append(g.objects, objectKey{groupObject, id})
	}
	for _, id := range req.GetGoneMeters() {
		g.objects = append(g.objects, objectKey{meterObject, id})
	}
	for _, k := range g.objects {
		if k.owner() != owner {
			return g, fmt.Errorf("%v is among the numbers of %v", k, k.owner())
		}
	}
	return g, nil
}

// change changes the set that a service has declared in this session. It costs what
// changes, however large the set is.
func (l *ledger) change(owner flow.Owner, entries []flow.Entry, objects []*resource, gone ended, now time.Time) declared {
	var d declared
	l.redirection.apply(owner, entries)
	for _, w := range objects {
		l.objects.want(w, &d, now)
	}
	for i := range entries {
		l.want(&entries[i], nil, &d, now)
	}
	for _, k := range gone.entries {
		if r := l.rules[k]; r != nil && r.owner() == owner {
			l.unwant(k, r, &d, now)
		} else if m := l.removals[k]; m != nil {
			d.removals = append(d.removals, m) // the call is made again
		}
	}
	for _, k := range gone.objects {
		if l.objects.unwant(k); l.objects.have[k] != nil {
			d.gone = append(d.gone, l.objects.remove(k, now))
			d.sent++
		}
	}
	return d
}

// excludeKeys returns the entries of a switch whose keys are not in a set.
func excludeKeys(have map[entryID]*seen, set []flow.Entry) map[entryID]*seen {
	rest := maps.Clone(have)
	for i := range set {
		delete(rest, idOf(&set[i]))
	}
	return rest
}
