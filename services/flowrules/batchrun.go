package flowrules

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/weft-sdn/weft/api"
)

// carryOut makes the entries of batches desired, one batch after the other. If a
// switch refuses an entry, it takes the whole batch back.
func (r *Rules) carryOut(ctx context.Context) {
	for {
		b := r.batches.next(ctx)
		if b == nil {
			return
		}
		if b.state != batchUndoing { // else a former run has decided so
			r.storeAll(ctx, b)
			r.await(ctx, b)
		}
		if b.state == batchUndoing {
			r.undo(ctx, b)
		}
		if ctx.Err() != nil {
			return // the next run goes on from the journal
		}
		outcome := r.statusOf(b)
		outcome.State = batchDone
		if b.state == batchUndoing {
			outcome.State = batchUndone
		}
		r.retry(ctx, "finish", b, func() error { return r.journal.remove(ctx, b) })
		r.batches.set(b, func(b *batch) { b.state, b.outcome, b.changes = outcome.State, outcome, nil })
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
		select {
		case <-ctx.Done():
		case <-time.After(backOff(lateFirst, 2, n, lateMost)):
		}
	}
}

// storeAll stores the entries of a batch and makes them desired.
func (r *Rules) storeAll(ctx context.Context, b *batch) {
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

// await waits until the connected switches have confirmed or refused the entries
// of a batch. Its patience grows with their number.
func (r *Rules) await(ctx context.Context, b *batch) {
	ctx, cancel := context.WithTimeout(ctx, r.cfg.Deadline+2*time.Duration(len(b.changes))*time.Second/time.Duration(r.cfg.Rate))
	defer cancel()
	waits := make([]<-chan struct{}, 0, len(b.changes))
	for i := range b.changes {
		c := &b.changes[i]
		w := r.worker(c.sw)
		w.mu.Lock()
		if rule := w.ledger.operatorRule(idOf(&c.entry)); rule != nil && w.ledger.connected {
			waits = append(waits, rule.waiting())
		}
		w.mu.Unlock()
	}
	await(ctx, waits)
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
		return
	}
	reason := fmt.Sprintf("%d of %d entries were refused, the first (switch %s, priority %d) because: %s",
		n, len(b.changes), refused[0].GetFlow().GetDpid(), refused[0].GetFlow().GetPriority(), cmp.Or(refused[0].GetReason(), "no reason given"))
	r.batches.set(b, func(b *batch) { b.state, b.reason, b.refused = batchUndoing, reason, refused })
}

// undo takes the entries of a batch back and restores what they replaced.
func (r *Rules) undo(ctx context.Context, b *batch) {
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
