package wefttest

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"sync"

	"google.golang.org/grpc/codes"

	"github.com/weft-sdn/weft"
	"github.com/weft-sdn/weft/api"
)

// Store keeps buckets in memory, for as long as it itself is kept: it survives
// the restart of services, not that of the process.
type Store struct {
	mu      sync.Mutex // guards buckets
	buckets map[string]*bucket
}

// NewStore returns an empty store.
func NewStore() *Store { return &Store{buckets: map[string]*bucket{}} }

// Bucket opens a bucket and makes it if it is not there yet.
func (s *Store) Bucket(_ context.Context, name string) (weft.Bucket, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	b := s.buckets[name]
	if b == nil {
		b = &bucket{values: map[string]entry{}, watchers: map[*watcher]bool{}}
		s.buckets[name] = b
	}
	return b, nil
}

type entry struct {
	value    []byte
	revision uint64
}

// bucket is a weft.Bucket in memory.
type bucket struct {
	mu       sync.Mutex // guards what follows
	revision uint64
	values   map[string]entry
	watchers map[*watcher]bool
}

// change is one change on its way to a watcher.
type change struct {
	key string
	entry
}

// watcher holds the changes that its Watch has not reported yet.
type watcher struct {
	changes []change
	more    chan struct{} // holds one token while there are any
}

func (b *bucket) Get(ctx context.Context, key string) ([]byte, uint64, error) {
	if err := usable(ctx, key); err != nil {
		return nil, 0, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	e := b.values[key]
	return bytes.Clone(e.value), e.revision, nil
}

func (b *bucket) Put(ctx context.Context, key string, value []byte) (uint64, error) {
	if err := usable(ctx, key); err != nil {
		return 0, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.set(key, value), nil
}

func (b *bucket) Update(ctx context.Context, key string, value []byte, revision uint64) (uint64, error) {
	if err := usable(ctx, key); err != nil {
		return 0, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.values[key].revision != revision {
		return 0, weft.ErrRevision
	}
	return b.set(key, value), nil
}

func (b *bucket) Delete(ctx context.Context, key string) error {
	if err := usable(ctx, key); err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if _, ok := b.values[key]; ok {
		delete(b.values, key)
		b.revision++
		b.tell(change{key, entry{nil, b.revision}})
	}
	return nil
}

func (b *bucket) All(ctx context.Context, f func(string, []byte, uint64) error) error {
	for _, c := range b.snapshot() {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := f(c.key, c.value, c.revision); err != nil {
			return err
		}
	}
	return nil
}

func (b *bucket) Watch(ctx context.Context, f func(string, []byte, uint64)) error {
	w := &watcher{more: make(chan struct{}, 1)}
	b.mu.Lock()
	first := b.list()
	b.watchers[w] = true
	b.mu.Unlock()
	defer func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		delete(b.watchers, w)
	}()
	for _, c := range append(first, change{}) {
		if ctx.Err() != nil {
			return nil
		}
		f(c.key, c.value, c.revision)
	}
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-w.more:
		}
		b.mu.Lock()
		changes := w.changes
		w.changes = nil
		b.mu.Unlock()
		for _, c := range changes {
			if ctx.Err() != nil {
				return nil
			}
			f(c.key, bytes.Clone(c.value), c.revision)
		}
	}
}

// set sets a value; b.mu is held.
func (b *bucket) set(key string, value []byte) uint64 {
	b.revision++
	e := entry{append([]byte{}, value...), b.revision}
	b.values[key] = e
	b.tell(change{key, e})
	return e.revision
}

// tell queues a change for all watchers; b.mu is held.
func (b *bucket) tell(c change) {
	for w := range b.watchers {
		w.changes = append(w.changes, c)
		select {
		case w.more <- struct{}{}:
		default:
		}
	}
}

func (b *bucket) snapshot() []change {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.list()
}

// list copies all values, oldest first; b.mu is held.
func (b *bucket) list() []change {
	list := make([]change, 0, len(b.values))
	for key, e := range b.values {
		list = append(list, change{key, entry{bytes.Clone(e.value), e.revision}})
	}
	slices.SortFunc(list, func(x, y change) int { return int(x.revision) - int(y.revision) })
	return list
}

// usable checks what every operation on a key needs.
func usable(ctx context.Context, key string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	legal := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-/_=.", r)
	}
	if key == "" || strings.ContainsFunc(key, func(r rune) bool { return !legal(r) }) || key[0] == '.' || key[len(key)-1] == '.' || strings.Contains(key, "..") {
		return api.Errorf(codes.InvalidArgument, "key %q: want letters, digits and -/_=. with no dot at either end and no two in a row", key)
	}
	return nil
}
