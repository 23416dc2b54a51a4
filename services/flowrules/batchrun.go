package flowrules

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/internal/backoff"
)

// carryOut makes the entries of batches desired, one batch after the other, and
// sees each to its end. A batch waits for its switches without making others wait.
func (r *Rules) carryOut(ctx context.Context) {
	var wg sync.WaitGroup
	defer wg.Wait()
	for {
		b := r.batches.next(ctx)
		if b == nil {
			return
		}
		if b.state != batchUndoing { // else a former run has decided so
			r.storeAll(ctx, b)
		}
		wg.Go(func() { r.finish(ctx, b) })
	}
}

// finish waits for the switches of a batch whose entries are stored, takes the
// whole batch back if one of them refuses an entry, and records the outcome. If
// ctx ends before, the next run goes on from the journal.
func (r *Rules) finish(ctx context.Context, b *batch) {
	state := batchDone
	if b.state == batchUndoing || r.await(ctx, b) {
		state = batchUndone
		r.undo(ctx, b)
	}
	if ctx.Err() != nil {
		return
	}
	outcome := r.statusOf(b)
	outcome.State = state
	r.retry(ctx, "finish", b, func() error { return r.journal.finish(ctx, b, outcome, time.Now()) })
	r.batches.set(b, func(b *batch) { b.state, b.outcome, b.changes, b.written = outcome.State, outcome, nil, 0 })
	for _, old := range r.batches.trimFinished() {
		r.retry(ctx, "forget", old, func() error { return r.journal.remove(ctx, old) })
	}
}

// retry repeats a store operation until it succeeds or ctx ends.
func (r *Rules) retry(ctx context.Context, what string, b *batch, f func() error) {
	for n := 1; ; n++ {
		err := f()
		if err == nil || ctx.Err() != nil {
			return
		}
		r.log.Warn("batch waits for the store", "batch", b.name, "step", what, "error", err)
		_ = backoff.Sleep(ctx, latePause(n))
	}
}

// storeAll stores the entries of a batch and makes them desired.
func (r *Rules) storeAll(ctx context.Context, b *batch) {
	r.batches.turn.Lock()
	defer r.batches.turn.Unlock()
	targets := targetsOf(b.changes)
	r.retry(ctx, "store", b, func() error {
		stored := 0
		return r.bySwitch(targets, func(w *worker, share []*target) error {
			if err := r.want(ctx, w, share); err != nil {
				return err
			}
			stored += len(share)
			r.batches.set(b, func(b *batch) { b.stored = max(b.stored, stored) })
			return nil
		})
	})
	r.batches.set(b, func(b *batch) { b.state = batchInstalling })
}

// await waits until every switch of a batch has confirmed its entries or refused
// one, however long it is away: only then it is known whether the batch is all or
// none. It returns whether one has. After a patience that grows with the number
// of entries the batch counts as waiting, and its client need not wait longer.
func (r *Rules) await(ctx context.Context, b *batch) (refused bool) {
	patience := time.AfterFunc(r.cfg.Deadline+2*time.Duration(len(b.changes))*time.Second/time.Duration(r.cfg.Rate), func() {
		r.batches.set(b, func(b *batch) {
			if b.state == batchInstalling {
				b.state = batchWaiting
			}
		})
	})
	defer patience.Stop()
	for ctx.Err() == nil {
		waits, away := r.listUnanswered(b)
		await(ctx, waits)
		if r.mustUndo(b) {
			return true
		}
		if len(waits)+len(away) == 0 {
			return false
		}
		if len(waits) == 0 {
			awaitAny(ctx, away)
		}
	}
	return false
}

// listUnanswered returns the channels to wait for: those of the entries of a batch
// that connected switches have not answered, and those of switches that are away.
func (r *Rules) listUnanswered(b *batch) (waits, away []<-chan struct{}) {
	absent := map[*worker]bool{}
	for i := range b.changes {
		c := &b.changes[i]
		w := r.worker(c.sw)
		w.mu.Lock()
		rule := w.ledger.operatorRule(idOf(&c.entry))
		switch {
		case rule == nil || !rule.same(&c.entry) || rule.settledChan() == nil: // replaced, deleted, over; answered
		case w.ledger.connected:
			waits = append(waits, rule.settledChan())
		case !absent[w]:
			absent[w] = true
			away = append(away, w.changed)
		}
		w.mu.Unlock()
	}
	return waits, away
}

// awaitAny waits until one of the channels is closed, or ctx ends.
func awaitAny(ctx context.Context, list []<-chan struct{}) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var wg sync.WaitGroup
	for _, c := range list {
		wg.Go(func() {
			select {
			case <-c:
				cancel()
			case <-ctx.Done():
			}
		})
	}
	wg.Wait()
}

// mustUndo reports whether a batch must be undone because a switch has refused one
// of its entries, and marks it.
func (r *Rules) mustUndo(b *batch) bool {
	const most = 100 // most refused entries to show
	var refused []*api.WantedFlow
	n := 0
	for i := range b.changes {
		if state, wanted := r.stateOf(&b.changes[i]); state == failed {
			if n++; len(refused) < most {
				refused = append(refused, wanted)
			}
		}
	}
	if n == 0 {
		return false
	}
	reason := fmt.Sprintf("%d of %d entries were refused, the first (switch %s, priority %d) because: %s",
		n, len(b.changes), refused[0].GetFlow().GetDpid(), refused[0].GetFlow().GetPriority(), cmp.Or(refused[0].GetReason(), "no reason given"))
	r.batches.set(b, func(b *batch) { b.state, b.reason, b.refused = batchUndoing, reason, refused })
	return true
}

// undo takes the entries of a batch back and restores what they replaced.
func (r *Rules) undo(ctx context.Context, b *batch) {
	r.batches.turn.Lock()
	defer r.batches.turn.Unlock()
	r.retry(ctx, "undo", b, func() error { return r.journal.mark(ctx, b) })
	now := time.Now()
	var gone, back []target
	for i := range b.changes {
		c := &b.changes[i]
		w := r.worker(c.sw)
		w.mu.Lock()
		rule := w.ledger.operatorRule(idOf(&c.entry))
		w.mu.Unlock()
		switch {
		case rule == nil || !rule.same(&c.entry): // changed by somebody since
		case c.before == nil || !c.before.expires.IsZero() && !now.Before(c.before.expires):
			gone = append(gone, c.target)
		default:
			t := target{sw: c.sw, entry: *c.before.entry()}
			if !c.before.expires.IsZero() {
				t.entry.HardTimeout = remaining(c.before.expires, now)
			}
			back = append(back, t)
		}
	}
	r.retry(ctx, "undo", b, func() error {
		return r.bySwitch(back, func(w *worker, share []*target) error { return r.want(ctx, w, share) })
	})
	r.retry(ctx, "undo", b, func() error {
		return r.bySwitch(gone, func(w *worker, share []*target) error {
			n, _, err := r.unwant(ctx, w, share)
			r.flows.Add(-int64(n))
			return err
		})
	})
}
