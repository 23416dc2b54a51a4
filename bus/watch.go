package bus

import (
	"context"
	"errors"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// retryWatch is how long a watch that could not be taken up again after a
// reconnect waits before it tries once more.
const retryWatch = 250 * time.Millisecond

// Watch outlives the loss of the connection: it is then taken up again, and
// what has changed meanwhile is told.
func (b *bucket) Watch(ctx context.Context, f func(string, []byte, uint64)) error {
	w := &watch{bucket: b, f: f, told: map[string]uint64{}}
	for {
		err := w.follow(ctx)
		switch {
		case ctx.Err() != nil:
			return nil
		case err == nil:
			continue // reconnected
		case !w.complete || errors.Is(err, errClosed) || errors.Is(err, nats.ErrConnectionClosed):
			return b.fail(ctx, "watch", "all keys", err)
		}
		select { // the server is back, but not its streams yet
		case <-ctx.Done():
		case <-time.After(retryWatch):
		}
	}
}

var errClosed = errors.New("the store was closed")

// watch is one call of Watch.
type watch struct {
	bucket   *bucket
	f        func(string, []byte, uint64)
	told     map[string]uint64 // keys that f knows to be there, by revision
	complete bool              // the first values are told
}

// follow tells of all values that are not told yet, and then of changes, until
// the connection has been lost and is there again: then it returns nil.
func (w *watch) follow(ctx context.Context) error {
	again := w.bucket.store.reconnect()
	updates, err := w.bucket.kv.WatchAll(ctx)
	if err != nil {
		return err
	}
	defer stopWatcher(updates)
	seen := map[string]bool{} // of the values that are there at first; then nil
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-again:
			return nil
		case e, ok := <-updates.Updates():
			switch {
			case ctx.Err() != nil:
				return nil
			case !ok:
				return errClosed
			case e == nil:
				w.settle(seen)
				seen = nil
			default:
				if seen != nil {
					seen[e.Key()] = true
				}
				w.tell(e)
			}
		}
	}
}

// tell passes on an entry that is news.
func (w *watch) tell(e jetstream.KeyValueEntry) {
	last, there := w.told[e.Key()]
	switch {
	case e.Revision() <= last:
	case e.Operation() == jetstream.KeyValuePut:
		w.told[e.Key()] = e.Revision()
		w.f(e.Key(), present(e.Value()), e.Revision())
	case there:
		delete(w.told, e.Key())
		w.f(e.Key(), nil, e.Revision())
	}
}

// settle ends the first values: told keys that are not among them are gone,
// and so is the memory of when.
func (w *watch) settle(seen map[string]bool) {
	for key, revision := range w.told {
		if !seen[key] {
			delete(w.told, key)
			w.f(key, nil, revision+1)
		}
	}
	if !w.complete {
		w.complete = true
		w.f("", nil, 0)
	}
}
