package object

import (
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/weft-sdn/weft"
)

// Persister stores what a service has learnt, for its next run. One goroutine uses
// it.
type Persister struct {
	store   Bucket
	kept    map[string]persisted
	version uint64 // that Follow has stored
}

// shelved is the stored state of a key.
type persisted struct {
	value    string
	revision uint64
	unsure   bool // written, but not confirmed
}

// persistTurn bounds what one call of Keep writes.
const persistTurn = 256

// NewPersister returns a persister to a bucket.
func NewPersister(store Bucket) *Persister {
	return &Persister{store: store, kept: map[string]persisted{}}
}

// Load calls f for each key that an earlier run has stored.
func (s *Persister) Load(ctx context.Context, f func(key, value string)) error {
	return s.store.All(ctx, func(key string, value []byte, revision uint64) error {
		s.kept[key] = persisted{string(value), revision, false}
		f(key, string(value))
		return nil
	})
}

// Keep writes want to the store, a part at a time: first deletions, then
// additions, while there are fewer than most. It reports whether more remains
// to write.
func (s *Persister) Keep(ctx context.Context, want map[string]string, most int) (more bool, err error) {
	writes := 0
	for _, key := range slices.Sorted(maps.Keys(s.kept)) {
		k := s.kept[key]
		if _, wanted := want[key]; wanted {
			continue
		}
		if writes++; writes > persistTurn {
			return true, nil
		}
		if err := s.store.Delete(ctx, key); err != nil {
			s.kept[key] = persisted{k.value, k.revision, true}
			return true, err
		}
		delete(s.kept, key)
	}
	for _, key := range slices.Sorted(maps.Keys(want)) {
		k, there := s.kept[key]
		if k.value == want[key] && there && !k.unsure || !there && len(s.kept) >= most {
			continue
		}
		if writes++; writes > persistTurn {
			return true, nil
		}
		revision, err := s.store.Update(ctx, key, []byte(want[key]), k.revision)
		if errors.Is(err, weft.ErrRevision) { // another instance wrote it; the next turn overwrites that
			var value []byte
			if value, revision, err = s.store.Get(ctx, key); err != nil {
				return true, err
			}
			if more = true; value == nil {
				delete(s.kept, key)
			} else {
				s.kept[key] = persisted{string(value), revision, false}
			}
			continue
		}
		if err != nil {
			s.kept[key] = persisted{want[key], k.revision, true}
			return true, err
		}
		s.kept[key] = persisted{want[key], revision, false}
	}
	return more, nil
}

// Stored returns the version of the data that Follow has stored.
func (s *Persister) Stored() uint64 { return s.version }

// Follow is Keep for data that rarely changes: it calls version and want with
// the guard locked, and want only if the version differs from the stored one.
func (s *Persister) Follow(ctx context.Context, guard *Guard, version func() uint64, want func() map[string]string, most int) error {
	guard.Lock()
	v := version()
	if v == s.version {
		guard.Unlock()
		return nil
	}
	w := want()
	guard.Unlock()
	more, err := s.Keep(ctx, w, most)
	if err == nil && !more {
		s.version = v
	}
	return err
}
