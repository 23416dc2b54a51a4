package flowrules

import (
	"context"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
)

// storers bounds the pages of a switch that are stored at the same time. portion
// bounds the entries that are stored before they are installed and other requests
// get a turn.
const (
	storers = 16
	portion = 256
)

// target is one admitted entry of a request.
type target struct {
	sw    flow.DPID
	app   string // whose request it is; empty: the operator's
	entry flow.Entry
	rule  *rule
}

// operatorEntries is the operator's entries on all switches, as they are desired and
// stored.
type operatorEntries struct {
	workerSet
	store Store
	trust trust
	log   *slog.Logger

	run        string        // in the names of the pages that this run makes
	generation atomic.Uint32 // one per request
	flows      atomic.Int64  // number of the entries, when last counted
}

// AddFlows answers the call: everything is checked first, then stored, then
// installed.
func (r *Rules) AddFlows(ctx context.Context, req *api.AddFlowsRequest) (*api.AddFlowsResponse, error) {
	if req.GetBatch() != "" {
		return r.addPart(ctx, req)
	}
	generation := uint8(0)
	if !req.GetDryRun() {
		generation = uint8(r.generation.Add(1))
	}
	targets := make([]target, 0, len(req.GetFlows()))
	for _, f := range req.GetFlows() {
		sw, e, err := admit(f)
		if err != nil {
			r.count.countRejection("invalid")
			return nil, err
		}
		targets = append(targets, target{sw: sw, app: api.AppOf(f.GetOwner()), entry: operatorEntry(e, generation)})
	}
	if err := r.roomOfApps(targets, int(req.GetMost())); err != nil {
		return nil, err
	}
	added, err := r.checkRoom(targets)
	if err != nil {
		return nil, err
	}
	if req.GetDryRun() {
		return r.wouldAdd(targets)
	}
	r.flows.Add(int64(added))
	effects := r.effects(targets)
	err = r.bySwitch(targets, func(w *worker, share []*target) error { return r.want(ctx, w, share) })
	if err != nil {
		return nil, err
	}
	if !req.GetNoWait() {
		r.settle(ctx, targets)
	}
	resp := &api.AddFlowsResponse{Flows: r.flowStates(targets)}
	for i, f := range resp.Flows {
		f.Effect, f.Replaces = effects[i].Effect, effects[i].Replaces
	}
	return resp, nil
}

// checkRoom checks, before anything is stored, that no service holds the key of a
// target and that the entries stay within their bound. It returns how many are
// new.
func (o *operatorEntries) checkRoom(targets []target) (added int, err error) {
	for i := range targets {
		t := &targets[i]
		k := idOf(&t.entry)
		w := o.known(t.sw)
		if w == nil {
			added++
			continue
		}
		w.mu.Lock()
		owner, held := w.ledger.heldBy(k)
		if w.ledger.operatorRule(k) == nil {
			added++
		}
		w.mu.Unlock()
		if held {
			o.count.countRejection("held")
			return 0, api.Errorf(codes.FailedPrecondition, "flow entry for switch %v, table %d, priority %d: %s", t.sw, t.entry.Table, t.entry.Priority, reasonHeld(owner))
		}
	}
	if added > 0 && int(o.flows.Load())+added > o.cfg.MaxFlows {
		if n := o.operatorFlows(); n+added > o.cfg.MaxFlows {
			o.count.countRejection("limit")
			return 0, api.Errorf(codes.ResourceExhausted, "%d more entries: there are %d, and at most %d may be (flowrules: max_flows); delete some", added, n, o.cfg.MaxFlows)
		}
	}
	return added, nil
}

// operatorFlows counts the operator's entries.
func (o *operatorEntries) operatorFlows() int {
	n := 0
	workers, _ := o.all("")
	for _, w := range workers {
		w.mu.Lock()
		n += len(w.ledger.hidden)
		for _, rule := range w.ledger.rules {
			if rule.owner() == flow.OwnerOperator {
				n++
			}
		}
		w.mu.Unlock()
	}
	o.flows.Store(int64(n))
	return n
}

// want stores one switch's share of a request and makes it desired. If the store
// fails, what it has stored stays desired: the call may be repeated.
func (o *operatorEntries) want(ctx context.Context, w *worker, share []*target) error {
	w.storing.Lock()
	defer w.storing.Unlock()
	for _, t := range share {
		if err := o.checkOwners(w, t); err != nil {
			return err
		}
	}
	now := time.Now()
	expires := make([]time.Time, len(share))
	errs := make([]error, len(share))
	last := make(map[entryID]int, len(share)) // of entries with the same key the last counts
	for i, t := range share {
		expires[i] = expiry(&t.entry, now)
		last[idOf(&t.entry)] = i
	}
	var changes edits
	fresh, in := make([]*rule, len(share)), make([]*edit, len(share))
	for i, t := range share {
		k := idOf(&t.entry)
		if last[k] != i {
			continue
		}
		w.mu.Lock()
		t.rule = w.ledger.keep(t.app, &t.entry, expires[i], now)
		old := w.ledger.operatorRule(k)
		w.mu.Unlock()
		if t.rule == nil {
			fresh[i] = newRule(&t.entry, now)
			fresh[i].app, fresh[i].expires = t.app, expires[i]
			in[i] = w.enter(&changes, old, fresh[i], o.run)
		}
	}
	failed := w.write(ctx, o.store, &changes)
	w.mu.Lock()
	for i, t := range share {
		if fresh[i] == nil {
			continue
		}
		if errs[i] = failed[in[i]]; errs[i] == nil {
			t.rule = w.ledger.add(fresh[i], now)
		}
	}
	for _, t := range share {
		t.rule = share[last[idOf(&t.entry)]].rule
	}
	w.mu.Unlock()
	w.wake()
	if i := slices.IndexFunc(errs, func(err error) bool { return err != nil }); i >= 0 {
		o.reportUnstored("put", share[i].sw, errs[i])
		if readOnly(errs[i]) {
			return api.Errorf(codes.FailedPrecondition, "flow entry for switch %v: not stored, so not installed: %w", share[i].sw, errs[i])
		}
		return api.Errorf(codes.Unavailable, "flow entry for switch %v: not stored, so not installed: %w; try again", share[i].sw, errs[i])
	}
	return nil
}

// settle waits until the rules of a request are confirmed or have failed, their
// switch is away, or the deadline has passed.
func (o *operatorEntries) settle(ctx context.Context, targets []target) {
	ctx, cancel := context.WithTimeout(ctx, o.cfg.Deadline)
	defer cancel()
	waits := make([]<-chan struct{}, len(targets))
	for i := range targets {
		t := &targets[i]
		w := o.worker(t.sw)
		w.mu.Lock()
		if w.ledger.connected {
			waits[i] = t.rule.settledChan()
		}
		w.mu.Unlock()
	}
	await(ctx, waits)
}

// flowStates returns the state of each entry of a request.
func (o *operatorEntries) flowStates(targets []target) []*api.WantedFlow {
	flows := make([]*api.WantedFlow, len(targets))
	for i := range targets {
		t := &targets[i]
		w := o.worker(t.sw)
		w.mu.Lock()
		rule := t.rule
		if now := w.ledger.operatorRule(idOf(&t.entry)); now != nil {
			rule = now // this or another request has replaced it meanwhile
		}
		flows[i] = w.ledger.wantedFlow(rule)
		w.mu.Unlock()
	}
	return flows
}

// DeleteFlows answers the call. It deletes only the operator's own entries; the
// services' are not the operator's to delete (CVE-2019-11189).
func (r *Rules) DeleteFlows(ctx context.Context, req *api.DeleteFlowsRequest) (*api.DeleteFlowsResponse, error) {
	var targets []target
	for _, f := range req.GetFlows() {
		sw, e, err := f.Entry()
		if err != nil {
			r.count.countRejection("invalid")
			return nil, err
		}
		e.Match.Normalize()
		targets = append(targets, target{sw: sw, app: api.AppOf(f.GetOwner()), entry: e})
	}
	if of := req.GetAllOf(); of != "" {
		if r.trust.damaged() { // what it lacks would be left out
			return nil, api.Errorf(codes.FailedPrecondition, "not all flow entries can be deleted: the store may lack some of them: %s; run weft store repair", r.trust.state.Damage())
		}
		if of == "all" {
			of = ""
		}
		workers, err := r.all(of)
		if err != nil {
			return nil, err
		}
		for _, w := range workers {
			targets = append(targets, w.operatorTargets()...)
		}
	}
	most := 0
	if req.GetAllOf() != "" {
		most = effectsListed + len(req.GetFlows())
	}
	effects, would := r.removals(targets, most)
	if req.GetDryRun() {
		if would > 0 {
			if err := r.writable(); err != nil {
				return nil, err
			}
		}
		return &api.DeleteFlowsResponse{Deleted: uint32(would), Flows: effects}, nil
	}
	var waits []<-chan struct{}
	deleted := 0
	err := r.bySwitch(targets, func(w *worker, share []*target) error {
		n, removals, err := r.unwant(ctx, w, share)
		deleted += n
		waits = append(waits, removals...)
		return err
	})
	r.flows.Add(-int64(deleted))
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, r.cfg.Deadline)
	defer cancel()
	await(ctx, waits)
	return &api.DeleteFlowsResponse{Deleted: uint32(deleted), Flows: effects}, nil
}

func (w *worker) operatorTargets() []target {
	w.mu.Lock()
	defer w.mu.Unlock()
	var targets []target
	for _, rules := range []map[entryID]*rule{w.ledger.rules, w.ledger.hidden} {
		for _, rule := range rules {
			if rule.owner() == flow.OwnerOperator {
				targets = append(targets, target{sw: w.ledger.sw, entry: *rule.entry()})
			}
		}
	}
	return targets
}

// unwant removes one switch's share of a request from the store and from the
// desired entries. It returns how many were desired, and channels that are closed
// when the switch has removed them.
func (o *operatorEntries) unwant(ctx context.Context, w *worker, share []*target) (deleted int, waits []<-chan struct{}, err error) {
	w.storing.Lock()
	defer w.storing.Unlock()
	var changes edits
	for _, t := range share {
		w.mu.Lock()
		if t.rule = w.ledger.operatorRule(idOf(&t.entry)); t.rule != nil && t.app != "" && t.rule.app != t.app {
			t.rule = nil // somebody else's
		}
		w.mu.Unlock()
		if t.rule != nil {
			changes.drop(t.rule)
		}
	}
	failed := map[*page]error{}
	for c, err := range w.write(ctx, o.store, &changes) {
		failed[c.page] = err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	now := time.Now()
	for _, t := range share {
		if t.rule == nil {
			continue
		}
		if why := failed[t.rule.page]; t.rule.page != nil && why != nil {
			if err = api.Errorf(codes.Unavailable, "flow entry for switch %v: not deleted from the store: %w; try again", t.sw, why); readOnly(why) {
				err = api.Errorf(codes.FailedPrecondition, "flow entry for switch %v: not deleted from the store: %w", t.sw, why)
			}
			o.reportUnstored("delete", t.sw, why)
			continue
		}
		k := idOf(&t.entry)
		if w.ledger.operatorRule(k) != t.rule {
			continue
		}
		deleted++
		if m := w.ledger.cancel(k, now); m != nil {
			waits = append(waits, m.settled)
		}
	}
	w.wake()
	return deleted, waits, err
}
