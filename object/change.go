package object

import (
	"context"
	"errors"
	"maps"
	"slices"

	"google.golang.org/grpc/codes"

	"github.com/weft-sdn/weft/api"
)

// An Edit is one part of a Change: an edit of an object (Store.Edit), or a function
// to call with it (Then).
type Edit interface {
	guardedBy() *Guard // nil: by no store
	prepare(ctx context.Context, c *change) error
	admit(c *change) error                // with the guard locked
	write(c *change) error                // says what is to be written
	storeAlone(ctx context.Context) error // writes it, if nothing else is to be written
	put() (changed bool)                  // brings it into force, with the guard locked
}

// change is the state of one Change.
type change struct {
	many   bool            // edits
	named  map[string]bool // the objects so far
	more   map[any]int     // how many more objects each store has so far
	writes []Write
	edits  []Edit // of writes
}

// Change makes edits of stores of one guard: all of them or none, even if the process
// ends meanwhile; the next load of the stores then decides which. Change admits each
// edit as Store.Change does, with the objects as they were before. Then it stores all
// objects, and then brings them into force at once, in order. If somebody else has
// changed one of the objects meanwhile, the change fails and the error names it. To
// make the same change again has no effect.
//
// Other instances that follow the stores also see all edits or none, if the objects are
// in the bucket of the guard's first store. They see edits in other buckets one by one.
func Change(ctx context.Context, edits ...Edit) error {
	var guard *Guard
	for _, e := range edits {
		if g := e.guardedBy(); g != nil && guard != nil && g != guard {
			return api.Errorf(codes.Internal, "a change of stores of two guards")
		} else if g != nil {
			guard = g
		}
	}
	if guard == nil {
		return nil
	}
	done, err := guard.begin(ctx)
	if err != nil {
		return err
	}
	defer done()
	return guard.change(ctx, edits)
}

// Change makes the edits that plan returns, as the function Change does. plan is called
// with the guard locked, and nobody else changes the objects from then on until the edits
// are in force.
func (g *Guard) Change(ctx context.Context, plan func() ([]Edit, error)) error {
	done, err := g.begin(ctx)
	if err != nil {
		return err
	}
	defer done()
	for _, reread := range g.unsure {
		if err := reread(ctx); err != nil {
			return err
		}
	}
	g.Lock()
	edits, err := plan()
	g.Unlock()
	if err != nil {
		return err
	}
	return g.change(ctx, edits)
}

// begin waits for the turn, and settles incomplete changes.
func (g *Guard) begin(ctx context.Context) (done func(), err error) {
	if done, err = g.Turn(ctx); err != nil {
		return nil, err
	}
	if err = g.settle(ctx); err != nil {
		done()
	}
	return done, err
}

// change makes edits. The caller has the turn.
func (g *Guard) change(ctx context.Context, edits []Edit) error {
	c := &change{many: len(edits) > 1, named: map[string]bool{}, more: map[any]int{}}
	for _, e := range edits {
		if err := e.prepare(ctx, c); err != nil {
			return err
		}
	}
	if err := g.admit(c, edits); err != nil {
		return err
	}
	for _, e := range edits {
		if err := e.write(c); err != nil {
			return err
		}
	}
	var err error
	switch len(c.writes) {
	case 0:
	case 1:
		err = c.edits[0].storeAlone(ctx)
	default:
		err = g.write(ctx, c.writes)
	}
	if err != nil {
		return err
	}
	g.apply(func() (changed bool) {
		for _, e := range edits {
			changed = e.put() || changed
		}
		return changed
	})
	return nil
}

// admit admits the edits of a change.
func (g *Guard) admit(c *change, edits []Edit) error {
	g.Lock()
	defer g.Unlock()
	for _, e := range edits {
		if err := e.admit(c); err != nil {
			return err
		}
	}
	return nil
}

// write writes the values of several objects.
func (g *Guard) write(ctx context.Context, list []Write) error {
	err := g.log.Write(ctx, list)
	if err == nil {
		return nil
	}
	if !g.log.pending { // else settle reads them
		again, cancel := context.WithTimeout(context.WithoutCancel(ctx), undoWithin)
		defer cancel()
		for i := range list {
			if bad := g.stores[list[i].Bucket](again, list[i].Key); bad != nil {
				err = errors.Join(err, bad)
				break
			}
		}
	}
	var c *Conflict
	switch first := &list[0]; {
	case errors.As(err, &c):
		return api.Errorf(codes.Aborted, "%s %s has been changed by another instance of the service meanwhile, so nothing is changed; look at it, and try again", c.Write.Bucket, c.Write.Key)
	case errors.Is(err, errTaken):
		return api.Errorf(codes.Aborted, "%w; look at it, and try again", err)
	default:
		return api.Errorf(codes.Unavailable, "%s %s is not %s, nor are %d more: %w", first.Bucket, first.Key, outcomeText(first.After != nil), len(list)-1, err)
	}
}

// apply brings objects into force by put, which is called with the guard locked and
// reports whether any has changed.
func (g *Guard) apply(put func() (changed bool)) {
	g.Lock()
	changed := put()
	if changed && g.Applied != nil {
		g.Applied()
	}
	g.Unlock()
	if changed {
		g.retry()
	}
}

// addStore adds a store to the guard. reread reads one of its objects again, and unsure
// those of which a write was not confirmed.
func (g *Guard) addStore(what string, bucket Bucket, reread func(context.Context, string) error, unsure func(context.Context) error) {
	if g.log == nil { // records of earlier versions name no bucket if it is that of the journal
		g.log = &Log{journal: bucket, buckets: map[string]Bucket{"": bucket}, pending: true}
		g.stores = map[string]func(context.Context, string) error{"": reread}
	}
	g.log.buckets[what], g.stores[what] = bucket, reread
	g.unsure = append(g.unsure, unsure)
}

// settle finishes or undoes incomplete changes. The caller has the turn.
func (g *Guard) settle(ctx context.Context) error {
	type object struct{ what, name string }
	var list []object
	err := g.log.Settle(ctx, func(what, name string) { list = append(list, object{what, name}) })
	for _, o := range list {
		if err == nil {
			err = g.stores[o.what](ctx, o.name)
		}
	}
	return err
}

// reread reads an object again. The caller has the turn.
func (b *Store[T]) reread(ctx context.Context, name string) error {
	value, revision, err := b.store.Get(ctx, name)
	if err != nil {
		return err
	}
	if v, known := b.known[name]; known || value != nil {
		delete(b.unsure, name)
		if value == nil || revision > v.revision {
			b.adopt(name, value, revision)
		}
	}
	return nil
}

// rereadUnsure reads the objects again of which a write was not confirmed. The caller has
// the turn.
func (b *Store[T]) rereadUnsure(ctx context.Context) error {
	for _, name := range slices.Sorted(maps.Keys(b.unsure)) {
		if err := b.reread(ctx, name); err != nil {
			return api.Errorf(codes.Unavailable, "%s %s: it is not known whether it is stored: %w", b.kind.What, name, err)
		}
	}
	return nil
}

// StoreEdit is an Edit of an object of a store. After Change, Old and Now are the object
// before and after. They are equal if nothing has changed or Change has failed.
type StoreEdit[T comparable] struct {
	Old, Now T

	store  *Store[T]
	name   string
	decide func(old T) (T, error)
	next   T
	value  []byte // of next
	at     int    // its place among the writes
	c      *change
}

// Edit returns the edit that Store.Change makes.
func (b *Store[T]) Edit(name string, admit func(old T) (T, error)) *StoreEdit[T] {
	return &StoreEdit[T]{store: b, name: name, decide: admit}
}

func (e *StoreEdit[T]) guardedBy() *Guard { return e.store.guard }

func (e *StoreEdit[T]) prepare(ctx context.Context, c *change) error {
	if key := e.store.kind.What + "/" + e.name; !c.named[key] {
		c.named[key] = true
	} else {
		return api.Errorf(codes.InvalidArgument, "%s %s: it is named twice", e.store.kind.What, e.name)
	}
	if _, unsure := e.store.unsure[e.name]; unsure && c.many {
		return e.store.reread(ctx, e.name)
	}
	return nil
}

func (e *StoreEdit[T]) admit(c *change) (err error) {
	var none T
	e.Old, e.next, err = e.store.admitLocked(e.name, c.more[e.store], e.decide)
	switch e.Now = e.Old; {
	case err != nil:
	case e.Old == none && e.next != none:
		c.more[e.store]++
	case e.Old != none && e.next == none:
		c.more[e.store]--
	}
	return err
}

func (e *StoreEdit[T]) write(c *change) error {
	if e.next == e.Old {
		return nil
	}
	var none T
	var before []byte
	for _, x := range []struct {
		object T
		value  *[]byte
	}{{e.Old, &before}, {e.next, &e.value}} {
		if x.object == none {
			continue
		}
		value, err := e.store.kind.Format.Format(x.object)
		if err != nil {
			return api.Errorf(codes.Internal, "%s %s: %w", e.store.kind.What, e.name, err)
		}
		*x.value = value
	}
	e.c, e.at = c, len(c.writes)
	c.writes = append(c.writes, Write{Bucket: e.store.kind.What, Key: e.name, Before: before, After: e.value, Over: e.store.known[e.name].expectedRevision()})
	c.edits = append(c.edits, e)
	return nil
}

func (e *StoreEdit[T]) storeAlone(ctx context.Context) (err error) {
	e.c.writes[e.at].Revision, err = e.store.write(ctx, e.name, e.value)
	return err
}

func (e *StoreEdit[T]) put() bool {
	if e.next == e.Old {
		return false
	}
	e.Now = e.next
	return e.store.putLocked(e.name, e.next, e.store.version(e.name, e.value, e.c.writes[e.at].Revision))
}

// Then returns an edit that calls f, with the guard locked, when the edits before it
// are in force.
func Then(f func()) Edit { return then(f) }

type then func()

func (then) guardedBy() *Guard                      { return nil }
func (then) prepare(context.Context, *change) error { return nil }
func (then) admit(*change) error                    { return nil }
func (then) write(*change) error                    { return nil }
func (then) storeAlone(context.Context) error       { return nil }
func (f then) put() bool                            { f(); return false }
