// Package object keeps the named objects of a service that users define: a
// policy, a gateway, a virtual IP. A Store admits them, stores each with its
// revision before it takes effect, and follows what another instance stores.
// Hosts and Persister hold what such services learn about hosts.
//
// Services import it; it imports weft for the store and knows no service.
package object

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/weft-sdn/weft"
	"github.com/weft-sdn/weft/api"
)

// Bucket is durable key-value state; a change is on disk before the call returns.
type Bucket = weft.Bucket

// Guard guards the objects of one or several stores, and other state that a
// service changes together with them. It is never locked during a call of a
// store. Writers also take turns, which only other writers wait for. The zero
// value is ready.
type Guard struct {
	sync.Mutex
	// Applied, if not nil, is called with the guard locked when objects have changed: once
	// for all that change together, after their Kind.Changed.
	Applied func()

	once sync.Once
	turn chan struct{}

	again    []func() // puts into force what could not be before; for the writer whose turn it is
	retrying bool

	log    *Log                                           // of the stores; the writer's whose turn it is
	stores map[string]func(context.Context, string) error // reads an object again, by the kind's What
	unsure []func(context.Context) error                  // read those again of which a write was not confirmed
}

// retry tries again, after a change, to apply stored objects that did not fit
// the others.
func (g *Guard) retry() {
	if g.retrying {
		return
	}
	g.retrying = true
	for _, f := range g.again {
		f()
	}
	g.retrying = false
}

// Turn waits until no other writer is active, or ctx ends; done ends the turn.
func (g *Guard) Turn(ctx context.Context) (done func(), err error) {
	g.once.Do(func() { g.turn = make(chan struct{}, 1) })
	select {
	case g.turn <- struct{}{}:
		return sync.OnceFunc(func() { <-g.turn }), nil
	case <-ctx.Done():
		return nil, api.Errorf(codes.Unavailable, "other changes are still being stored: %w", ctx.Err())
	}
}

// Kind describes the objects of a store. T is a pointer; nil is no object, and
// nobody writes to an object that is in a store.
type Kind[T comparable] struct {
	What, Many string // for errors: "policy", "policies"
	Most       func() int
	Raise      string // the configuration key that Most returns; empty: there is none
	Name       func(T) string
	Format[T]
	// Changed follows a change, with the guard locked: old or now is nil if the
	// object is new or gone. It may be nil.
	Changed func(old, now T)
	// Bad receives a stored value that is unusable and skipped, with its name,
	// or, without a name, the reason why the store cannot be watched for a
	// while.
	Bad func(name string, err error)
}

// limitHint describes how to permit more objects.
func (k *Kind[T]) limitHint() string {
	if k.Raise == "" {
		return ""
	}
	return ", or raise " + k.Raise
}

// Store holds the objects of a kind that are in force.
type Store[T comparable] struct {
	kind  Kind[T]
	store Bucket
	guard *Guard

	objects map[string]T // guarded by guard, as the following
	sorted  []T          // by name; nil: to be made

	// The following belong to the writer that has the turn.
	known  map[string]version
	unsure map[string][]byte // written, but not confirmed; nil: deleted
	unfit  map[string][]byte // stored, but unusable
}

// version is the revision of the last value of a name.
type version struct {
	revision uint64
	gone     bool // it has been deleted since
}

// expectedRevision returns the revision that a write must replace.
func (v version) expectedRevision() uint64 {
	if v.gone {
		return 0
	}
	return v.revision
}

// version returns the version of a value; that of a deleted one (nil) is not
// older than the last value.
func (b *Store[T]) version(name string, value []byte, revision uint64) version {
	if value == nil {
		return version{max(revision, b.known[name].revision), true}
	}
	return version{revision, false}
}

// New returns an empty store. Without a bucket, Open gives it one before it is used.
func New[T comparable](guard *Guard, store Bucket, kind Kind[T]) *Store[T] {
	if kind.Equal == nil {
		kind.Equal = func(a, b T) bool { return a == b }
	}
	if kind.Changed == nil {
		kind.Changed = func(T, T) {}
	}
	b := &Store[T]{kind: kind, guard: guard, objects: map[string]T{}, known: map[string]version{}, unsure: map[string][]byte{}, unfit: map[string][]byte{}}
	guard.again = append(guard.again, b.retryHeldBack)
	if store != nil {
		b.Open(store)
	}
	return b
}

// Open gives a store its bucket. The stores of a guard have theirs before one is loaded.
func (b *Store[T]) Open(bucket Bucket) {
	b.store = bucket
	b.guard.addStore(b.kind.What, bucket, b.reread, b.rereadUnsure)
}

// Get returns an object by name; nil if there is none. The caller holds the
// guard's lock, as for List, All and Len.
func (b *Store[T]) Get(name string) T { return b.objects[name] }

// List returns the objects by name. The list must not be changed.
func (b *Store[T]) List() []T {
	if b.sorted == nil {
		b.sorted = make([]T, 0, len(b.objects))
		for _, name := range slices.Sorted(maps.Keys(b.objects)) {
			b.sorted = append(b.sorted, b.objects[name])
		}
	}
	return b.sorted
}

// All iterates over the objects in no particular order.
func (b *Store[T]) All() iter.Seq[T] { return maps.Values(b.objects) }

// Len returns the number of objects.
func (b *Store[T]) Len() int { return len(b.objects) }

// Load reads the objects of earlier runs.
func (b *Store[T]) Load(ctx context.Context) error {
	done, err := b.guard.Turn(ctx)
	if err != nil {
		return err
	}
	defer done()
	if err := b.guard.settle(ctx); err != nil && damage(b.store) == "" {
		return err
	}
	type stored struct {
		value    []byte
		revision uint64
	}
	all := map[string]stored{}
	if err := b.store.All(ctx, func(name string, value []byte, revision uint64) error {
		if !Journaled(name) {
			all[name] = stored{value, revision}
		}
		return nil
	}); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		b.adopt(name, all[name].value, all[name].revision)
	}
	return nil
}

// followPause is the pause after a failure before the store is watched again.
const followPause = 5 * time.Second

// Follow applies what other instances store, until ctx ends.
func (b *Store[T]) Follow(ctx context.Context) {
	for {
		first := map[string]bool{} // the initial names, later nil
		h := newChangeHolder(b)
		err := b.store.Watch(ctx, func(name string, value []byte, revision uint64) {
			done, err := b.guard.Turn(ctx)
			if err != nil {
				return
			}
			defer done()
			if name == "" {
				b.dropMissing(ctx, first)
				first = nil
				return
			}
			if h.record(ctx, name, value) {
				return
			}
			if first != nil {
				first[name] = true
			}
			h.hold(name, value, revision)
		})
		h.stopTimer()
		if ctx.Err() != nil {
			return
		}
		b.kind.Bad("", err)
		select {
		case <-ctx.Done():
			return
		case <-time.After(followPause):
		}
	}
}

// dropMissing drops the objects that were deleted between loading and watching. In a
// damaged store it drops none, because the loss is unknown.
func (b *Store[T]) dropMissing(ctx context.Context, there map[string]bool) {
	if damage(b.store) != "" {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(b.known)) {
		if there[name] || b.known[name].gone {
			continue
		}
		if value, revision, err := b.store.Get(ctx, name); err == nil {
			b.adopt(name, value, revision)
		}
	}
}

// Change replaces an object by the result of admit, which is called with the
// guard locked and rejects a change by an error. If admit returns nil, Change
// deletes the object. Change returns the object before and after; they are
// equal if nothing has changed.
func (b *Store[T]) Change(ctx context.Context, name string, admit func(old T) (T, error)) (old, now T, err error) {
	e := b.Edit(name, admit)
	if err := Change(ctx, e); err != nil {
		return e.Old, e.Old, err
	}
	return e.Old, e.Now, nil
}

// Try is Change without the change: it returns what Change would, or the error
// by which Change would reject it, and stores nothing.
func (b *Store[T]) Try(ctx context.Context, name string, admit func(old T) (T, error)) (old, now T, err error) {
	var none T
	done, err := b.guard.Turn(ctx)
	if err != nil {
		return none, none, err
	}
	defer done()
	if old, now, err = b.admit(name, admit); err != nil || now == old {
		return old, now, err
	}
	if d := damage(b.store); d != "" {
		return old, old, api.Errorf(codes.Unavailable, "%s %s is not %s: the store is read-only: %s; run weft store repair", b.kind.What, name, outcomeText(now != none), d)
	}
	return old, now, nil
}

// admit returns the object that is to replace one, or the one that is there if
// they are equal. The caller has the turn.
func (b *Store[T]) admit(name string, admit func(old T) (T, error)) (old, now T, err error) {
	b.guard.Lock()
	defer b.guard.Unlock()
	return b.admitLocked(name, 0, admit)
}

// admitLocked is admit with the guard locked, while more objects are to be added.
func (b *Store[T]) admitLocked(name string, more int, admit func(old T) (T, error)) (old, now T, err error) {
	var none T
	old = b.objects[name]
	now, err = admit(old)
	if n := len(b.objects) + more; err == nil && old == none && now != none && b.kind.Most != nil && n >= b.kind.Most() {
		err = api.Errorf(codes.ResourceExhausted, "%s %s: there are %d %s already; delete one%s", b.kind.What, name, n, b.kind.Many, b.kind.limitHint())
	}
	if err != nil || old != none && now != none && b.kind.Equal(old, now) {
		now = old
	}
	return old, now, err
}

// outcomeText returns the words of an error for a change that could not be written.
func outcomeText(stored bool) string {
	if stored {
		return "stored, so it is not in force"
	}
	return "deleted"
}

// Remove deletes an object and returns it; nil if there was none.
func (b *Store[T]) Remove(ctx context.Context, name string) (old T, err error) {
	old, _, err = b.Change(ctx, name, func(T) (none T, _ error) { return none, nil })
	return old, err
}

// write stores a value, or nil to delete, over the known one.
func (b *Store[T]) write(ctx context.Context, name string, value []byte) (revision uint64, err error) {
	v := b.known[name]
	for {
		if revision, err = replace(ctx, b.store, name, value, v.expectedRevision()); err == nil {
			delete(b.unsure, name)
			return revision, nil
		}
		if !errors.Is(err, weft.ErrRevision) {
			break
		}
		var there []byte
		if there, revision, err = b.store.Get(ctx, name); err != nil {
			break
		}
		if there != nil && bytes.Equal(there, value) {
			delete(b.unsure, name)
			return revision, nil
		}
		mine, tried := b.unsure[name]
		if delete(b.unsure, name); !tried || !bytes.Equal(mine, there) || (mine == nil) != (there == nil) {
			b.adopt(name, there, revision)
			return 0, api.Errorf(codes.Aborted, "%s %s has been changed by another instance of the service meanwhile; look at it, and try again", b.kind.What, name)
		}
		v = b.version(name, there, revision)
	}
	b.unsure[name] = value
	return 0, api.Errorf(codes.Unavailable, "%s %s is not %s: %w", b.kind.What, name, outcomeText(value != nil), err)
}

// adopt applies a value of the store. An unusable value has no effect until it
// becomes usable.
func (b *Store[T]) adopt(name string, value []byte, revision uint64) {
	v := b.version(name, value, revision)
	now, err := b.read(name, value)
	if err != nil {
		b.known[name], b.unfit[name] = v, value
		b.kind.Bad(name, err)
		return
	}
	b.put(name, now, v)
}

// read returns the object of a value; nil for none.
func (b *Store[T]) read(name string, value []byte) (now T, err error) {
	var none T
	if value == nil {
		return none, nil
	}
	b.guard.Lock()
	defer b.guard.Unlock()
	if now, err = b.kind.Parse(name, value); err != nil {
		return none, err
	}
	if is := b.kind.Name(now); is != name {
		return none, fmt.Errorf("describes the %s %s", b.kind.What, is)
	}
	if old := b.objects[name]; old != none && b.kind.Equal(old, now) {
		return old, nil
	}
	return now, nil
}

// retryHeldBack applies the stored objects that were in conflict with others and are
// no longer.
func (b *Store[T]) retryHeldBack() {
	for _, name := range slices.Sorted(maps.Keys(b.unfit)) {
		if now, err := b.read(name, b.unfit[name]); err == nil {
			b.put(name, now, b.known[name])
		}
	}
}

// put brings an object into force.
func (b *Store[T]) put(name string, now T, v version) {
	b.guard.apply(func() bool { return b.putLocked(name, now, v) })
}

// putLocked is put with the guard locked. It reports whether that has changed
// anything, so that the guard's retry is due.
func (b *Store[T]) putLocked(name string, now T, v version) bool {
	var none T
	b.known[name] = v
	delete(b.unfit, name)
	old := b.objects[name]
	if old == now {
		return false
	}
	if b.sorted = nil; now == none {
		delete(b.objects, name)
	} else {
		b.objects[name] = now
	}
	b.kind.Changed(old, now)
	return true
}
