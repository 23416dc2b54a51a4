package flowrules

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
)

// Rules is the desired entries of all switches.
type Rules struct {
	operatorEntries
	net   Network
	news  *eventQueue
	slots chan struct{} // one taken for each switch during a read or write

	directions *directions
	batches    *batches
	journal    journal
	snapshot   totalsAt
}

// NewRules returns an empty set of desired entries. The generation distinguishes
// its own entries from those of earlier runs.
func NewRules(cfg *Config, net Network, store, batches Store, log *slog.Logger, counter Counters, generation uint8) *Rules {
	c := newCounts(counter)
	r := &Rules{
		operatorEntries: operatorEntries{
			workerSet: workerSet{cfg: cfg, count: c, workers: map[flow.DPID]*worker{}, bell: make(chan struct{}, 1)},
			store:     store, log: log, run: runName(time.Now()),
		},
		net: net, news: newEventQueue(c.unheard),
		slots: make(chan struct{}, cfg.Parallel), directions: newDirections(), batches: newBatches(), journal: newJournal(batches),
	}
	r.generation.Store(uint32(generation))
	return r
}

// Load loads the operator's entries from the store and removes those whose time
// is over. It reports and skips an entry that cannot be read.
func (r *Rules) Load(ctx context.Context, now time.Time) error {
	changed := map[*worker]*edits{}
	var empty []string // pages whose deletion a former run did not get to
	err := r.store.All(ctx, func(key string, value []byte, revision uint64) error {
		list, unread, errs := decodePage(key, value)
		for _, err := range errs {
			r.log.Error("entry left out", "error", err)
			r.count.unstored.Add(1)
		}
		if len(list)+len(unread)+len(errs) == 0 {
			empty = append(empty, key)
		}
		p := &page{key: key, revision: revision, unread: unread}
		for _, one := range list {
			p.rules = append(p.rules, one.rule)
			one.rule.page = p
		}
		for _, one := range list {
			w := r.worker(one.sw)
			if changed[w] == nil {
				changed[w] = &edits{}
			}
			r.load(w.ledger, one.rule, changed[w], now)
		}
		return nil
	})
	if err != nil {
		return err
	}
	for w, e := range changed {
		for _, err := range w.write(ctx, r.store, e) {
			if !readOnly(err) { // else it is seen at the next start, too
				return err
			}
			r.reportUnstored("put", w.ledger.sw, err)
		}
	}
	for _, key := range empty {
		if err := r.store.Delete(ctx, key); readOnly(err) {
			r.reportUnstored("delete", 0, err) // it is seen at the next start, too
		} else if err != nil {
			return err
		}
	}
	unfinished, err := r.journal.load(ctx)
	if err != nil {
		return err
	}
	r.batches.mu.Lock()
	defer r.batches.mu.Unlock()
	for _, b := range unfinished {
		r.batches.add(b)
		if b.outcome == nil {
			r.batches.push(b)
		}
	}
	return nil
}

// load makes a stored rule desired, unless its time is over or, after a write
// that was not confirmed, a later one has its key.
func (o *operatorEntries) load(l *ledger, one *rule, changed *edits, now time.Time) {
	if !one.expires.IsZero() && !now.Before(one.expires) {
		changed.drop(one)
		o.count.countExpiry("hard_timeout")
		return
	}
	if other := l.operatorRule(one.id); other != nil {
		if other.added.After(one.added) {
			changed.drop(one)
			return
		}
		changed.drop(other)
		o.flows.Add(-1)
	}
	l.order++
	one.order = l.order
	l.put(one, now)
	o.flows.Add(1)
}

// Serve works until ctx ends; it passes on what it publishes to observed and
// failed.
func (r *Rules) Serve(ctx context.Context, observed func(*api.FlowsObserved), failed func(*api.FlowFailed)) {
	var wg sync.WaitGroup
	defer wg.Wait()
	wg.Go(func() { r.news.run(ctx, observed, failed) })
	wg.Go(func() { r.watch(ctx) })
	wg.Go(func() { r.carryOut(ctx) })
	r.serve(ctx, func(w *worker) { wg.Go(func() { w.run(ctx, r) }) })
}

// reportUnstored logs a change that was not stored.
func (o *operatorEntries) reportUnstored(what string, sw flow.DPID, err error) {
	o.count.unstored.Add(1)
	o.log.Error("entry not stored", "operation", what, "dpid", sw, "error", err)
}

// SwitchChanged handles the event.
func (r *Rules) SwitchChanged(_ context.Context, e *api.SwitchChanged) {
	s, now := e.GetSwitch(), time.Now()
	sw, err := flow.ParseDPID(s.GetDpid())
	if err != nil {
		r.log.Error("switch event left out", "error", err)
		return
	}
	w := r.claim(sw)
	defer r.release(w)
	w.mu.Lock()
	defer w.mu.Unlock()
	l := w.ledger
	l.forgotten = false
	if !s.GetConnected() {
		l.disconnect(now)
	} else if !l.connect(s, now) {
		return
	} else {
		l.number, l.undirectable = r.directions.number(sw), false
	}
	w.notifyWaiters()
	w.wake()
}

// SwitchForgotten handles the event: a switch that is away is looked after no more,
// unless the operator wants entries there.
func (r *Rules) SwitchForgotten(_ context.Context, e *api.SwitchForgotten) {
	sw, err := flow.ParseDPID(e.GetDpid())
	if err != nil {
		return
	}
	if w := r.known(sw); w != nil {
		w.mu.Lock()
		w.ledger.forgotten = !w.ledger.connected
		w.mu.Unlock()
		w.wake()
	}
}

// FlowRemoved handles the event.
func (r *Rules) FlowRemoved(_ context.Context, e *api.FlowRemoved) {
	owner := ownerOf(e.GetFlow())
	if owner == flow.OwnerForeign || owner != flow.OwnerOperator && followsTraffic(owner, e.GetFlow()) {
		return
	}
	sw, entry, err := e.GetFlow().Entry()
	if err != nil {
		return
	}
	w := r.known(sw)
	if w == nil {
		return
	}
	entry.Match.Normalize()
	w.mu.Lock()
	w.ledger.handleRemoved(&entry, e.GetReason(), time.Now())
	w.mu.Unlock()
	w.wake()
}

func invalid(err error) error {
	return api.Errorf(codes.InvalidArgument, "%w", err)
}
