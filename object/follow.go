package object

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/weft-sdn/weft"
)

// settleAfter is how long a change of another instance may last before this one
// settles it: its process has ended, or it waits for the store.
const settleAfter = 15 * time.Second

// holder applies what other instances store, the objects of a change at once. Its
// methods need the turn.
type holder[T comparable] struct {
	store *Store[T]
	open  map[string]bool // changes that are being made
	held  map[string]held // objects, until they are
	timer *time.Timer     // settles open ones; nil: there are none
}

// held is a value that waits.
type held struct {
	value    []byte
	revision uint64
}

func newHolder[T comparable](b *Store[T]) *holder[T] {
	return &holder[T]{store: b, open: map[string]bool{}, held: map[string]held{}}
}

// record takes a key of the journal; it reports whether it is one.
func (h *holder[T]) record(ctx context.Context, key string, value []byte) bool {
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
		h.stop()
		h.apply()
	case h.timer == nil:
		h.timer = time.AfterFunc(settleAfter, func() { h.settle(ctx) })
	}
	return true
}

// stop ends the waiting for changes.
func (h *holder[T]) stop() {
	if h.timer != nil {
		h.timer.Stop()
		h.timer = nil
	}
}

// settle settles the changes that are open.
func (h *holder[T]) settle(ctx context.Context) {
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

// take takes a value that has been stored.
func (h *holder[T]) take(name string, value []byte, revision uint64) {
	if h.held[name] = (held{value, revision}); len(h.open) == 0 {
		h.apply()
	}
}

// apply applies the values that have been held.
func (h *holder[T]) apply() {
	b := h.store
	type object struct {
		name string
		now  T
		v    version
	}
	var list []object
	for _, name := range slices.Sorted(maps.Keys(h.held)) {
		x := h.held[name]
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
	clear(h.held)
	var none T
	changed := false
	b.guard.Lock()
	for _, gone := range []bool{true, false} {
		for _, o := range list {
			if (o.now == none) == gone {
				changed = b.putLocked(o.name, o.now, o.v) || changed
			}
		}
	}
	b.guard.Unlock()
	if changed {
		b.guard.retry()
	}
}

// damage says what is wrong with a bucket; empty: nothing is known.
func damage(b Bucket) string {
	if d, ok := b.(weft.Damageable); ok {
		return d.Damage()
	}
	return ""
}
