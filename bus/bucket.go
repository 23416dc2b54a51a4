package bus

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"google.golang.org/grpc/codes"

	"weft"
	"weft/api"
)

// markerLife is how long the store remembers that a key was deleted. A watcher
// that loses its connection for longer may miss it.
const markerLife = time.Hour

// bucket is a weft.Bucket over a key-value bucket of JetStream. Its revisions
// are those of JetStream: sequence numbers of the stream below.
type bucket struct {
	store *Store
	name  string
	kv    jetstream.KeyValue
}

// Get reads from the nearest server. On a replicated cluster that may be a
// moment behind; Update is not fooled by it.
func (b *bucket) Get(ctx context.Context, key string) ([]byte, uint64, error) {
	if err := usable(ctx, key); err != nil {
		return nil, 0, err
	}
	e, err := b.kv.Get(ctx, key)
	switch {
	case errors.Is(err, jetstream.ErrKeyNotFound):
		return nil, 0, nil
	case err != nil:
		return nil, 0, b.fail(ctx, "get", key, err)
	}
	return present(e.Value()), e.Revision(), nil
}

func (b *bucket) Put(ctx context.Context, key string, value []byte) (uint64, error) {
	if err := usable(ctx, key); err != nil {
		return 0, err
	}
	revision, err := b.kv.Put(ctx, key, value)
	if err != nil {
		return 0, b.fail(ctx, "put", key, err)
	}
	return revision, nil
}

func (b *bucket) Update(ctx context.Context, key string, value []byte, revision uint64) (next uint64, err error) {
	if err := usable(ctx, key); err != nil {
		return 0, err
	}
	if revision == 0 {
		next, err = b.kv.Create(ctx, key, value)
	} else {
		next, err = b.kv.Update(ctx, key, value, revision)
	}
	if err != nil {
		return 0, b.fail(ctx, "update", key, err)
	}
	return next, nil
}

// Delete leaves a marker, by which watchers learn of it, for markerLife.
func (b *bucket) Delete(ctx context.Context, key string) error {
	_, revision, err := b.Get(ctx, key)
	if err != nil || revision == 0 {
		return err
	}
	if err := b.kv.Purge(ctx, key, jetstream.PurgeTTL(markerLife)); err != nil {
		return b.fail(ctx, "delete", key, err)
	}
	return nil
}

func (b *bucket) All(ctx context.Context, f func(string, []byte, uint64) error) error {
	entries, err := b.snapshot(ctx)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := f(e.Key(), present(e.Value()), e.Revision()); err != nil {
			return err
		}
	}
	return nil
}

// snapshot returns all values, oldest first.
func (b *bucket) snapshot(ctx context.Context) ([]jetstream.KeyValueEntry, error) {
	w, err := b.kv.WatchAll(ctx)
	if err != nil {
		return nil, b.fail(ctx, "read", "all keys", err)
	}
	defer stopWatcher(w)
	last := map[string]jetstream.KeyValueEntry{}
	for {
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case e, ok := <-w.Updates():
			switch {
			case !ok:
				return nil, b.fail(ctx, "read", "all keys", errors.New("the connection to the store was closed"))
			case e == nil:
				entries := make([]jetstream.KeyValueEntry, 0, len(last))
				for _, e := range last {
					entries = append(entries, e)
				}
				slices.SortFunc(entries, func(x, y jetstream.KeyValueEntry) int { return cmp.Compare(x.Revision(), y.Revision()) })
				return entries, nil
			case e.Operation() == jetstream.KeyValuePut:
				last[e.Key()] = e
			default:
				delete(last, e.Key())
			}
		}
	}
}

// stopWatcher ends a watcher, which blocks until what it has to tell is taken.
func stopWatcher(w jetstream.KeyWatcher) {
	_ = w.Stop() // fails only on a connection that is closed already
	go func() {
		for range w.Updates() {
		}
	}()
}

// present returns a value that is there; empty ones are not nil.
func present(value []byte) []byte {
	if value == nil {
		return []byte{}
	}
	return bytes.Clone(value)
}

// usable checks what every operation on a key needs.
func usable(ctx context.Context, key string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	legal := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-/_=.", r)
	}
	if key == "" || strings.ContainsFunc(key, func(r rune) bool { return !legal(r) }) ||
		key[0] == '.' || key[len(key)-1] == '.' || strings.Contains(key, "..") {
		return api.Errorf(codes.InvalidArgument, "key %q: want letters, digits and -/_=. with no dot at either end and no two in a row", key)
	}
	return nil
}

func (b *bucket) fail(ctx context.Context, op, key string, err error) error {
	return fail(ctx, fmt.Sprintf("%s %s in bucket %s", op, key, b.name), err)
}

// wrongSequence are JetStream's error codes for a revision that is not the
// last, on one server and on several.
var wrongSequence = []jetstream.ErrorCode{
	jetstream.JSErrCodeStreamWrongLastSequence, jetstream.JSErrCodeStreamWrongLastSequenceConstant,
}

// fail returns an error of NATS as one of ours.
func fail(ctx context.Context, what string, err error) error {
	var apiErr *jetstream.APIError
	switch {
	case errors.Is(err, jetstream.ErrKeyExists) || errors.As(err, &apiErr) && slices.Contains(wrongSequence, apiErr.ErrorCode):
		return weft.ErrRevision
	case ctx.Err() != nil:
		return fmt.Errorf("%s: %w", what, ctx.Err())
	case errors.Is(err, nats.ErrMaxPayload):
		return api.Errorf(codes.InvalidArgument, "%s: the value is larger than the store takes: %w", what, err)
	}
	return api.Errorf(codes.Unavailable, "%s: %w", what, err)
}
