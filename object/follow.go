package object

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/weft-sdn/weft"
)

// settleAfter is how long a change of another instance may take before this one
// settles it. By then its process has ended, or it waits for the store.
const settleAfter = 15 * time.Second

// changeHolder applies the changes of other instances. It holds the objects of a
// change until all are stored. The callers of its methods have the turn.
type changeHolder[T comparable] struct {
	store  *Store[T]
	open   map[string]bool      // changes under way
	values map[string]heldValue // objects held until no change is open
	timer  *time.Timer          // settles open changes; nil if there are none
}

// heldValue is a stored value that is not applied yet.
type heldValue struct {
	value    []byte
	revision uint64
}

func newChangeHolder[T comparable](b *Store[T]) *changeHolder[T] {
	return &changeHolder[T]{store: b, open: map[string]bool{}, values: map[string]heldValue{}}
}

// record handles a key of the journal. It returns false for any other key.
func (h *changeHolder[T]) record(ctx context.Context, key string, value []byte) bool {
	if !Journaled(key) {
		return false
	}
	name, isHead := Journal{Prefix: changePrefix}.recordOf(key)
	if !isHead {
		return true
	}
	if delete(h.open, name); value != nil {
		h.open[name] = true
	}
	switch {
	case len(h.open) == 0:
		h.stopTimer()
		h.apply()
	case h.timer == nil:
		h.timer = time.AfterFunc(settleAfter, func() { h.settle(ctx) })
	}
	return true
}

// stopTimer stops waiting for open changes.
func (h *changeHolder[T]) stopTimer() {
	if h.timer != nil {
		h.timer.Stop()
		h.timer = nil
	}
}

// settle settles the changes that are open.
func (h *changeHolder[T]) settle(ctx context.Context) {
	g := h.store.guard
	done, err := g.Turn(ctx)
	if err != nil {
		return
	}
	defer done()
	if len(h.open) == 0 || h.timer == nil {
		return
	}
	g.log.pending = true
	if err := g.settle(ctx); err != nil && ctx.Err() == nil {
		h.store.kind.Bad("", err)
	}
	h.timer.Reset(settleAfter) // until the journal is empty
}

// hold handles a value that another instance has stored.
func (h *changeHolder[T]) hold(name string, value []byte, revision uint64) {
	if h.values[name] = (heldValue{value, revision}); len(h.open) == 0 {
		h.apply()
	}
}

// apply applies the values that have been held.
func (h *changeHolder[T]) apply() {
	b := h.store
	type object struct {
		name string
		now  T
		v    version
	}
	var list []object
	for _, name := range slices.Sorted(maps.Keys(h.values)) {
		x := h.values[name]
		if v, known := b.known[name]; x.revision <= v.revision || !known && x.value == nil {
			continue
		}
		now, err := b.read(name, x.value)
		if err != nil { // it may fit when the others are in force
			b.adopt(name, x.value, x.revision)
			continue
		}
		list = append(list, object{name, now, b.version(name, x.value, x.revision)})
	}
	clear(h.values)
	var none T
	b.guard.apply(func() (changed bool) {
		for _, gone := range []bool{true, false} {
			for _, o := range list {
				if (o.now == none) == gone {
					changed = b.putLocked(o.name, o.now, o.v) || changed
				}
			}
		}
		return changed
	})
}

// damage says what is wrong with a bucket; empty: nothing is known.
func damage(b Bucket) string {
	if d, ok := b.(weft.Damageable); ok {
		return d.Damage()
	}
	return ""
}
