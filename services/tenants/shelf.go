package tenants

import (
	"context"
	"fmt"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
)

// Store is durable key-value state; a change is on disk before the call
// returns.
type Store interface {
	// Update sets a value if its revision is still the given one (0: none yet).
	Update(ctx context.Context, key string, value []byte, revision uint64) (uint64, error)
	Delete(ctx context.Context, key string) error
	All(ctx context.Context, f func(key string, value []byte, revision uint64) error) error
}

// shelf keeps messages in a store, each over the revision that was read or
// written last. One goroutine uses it at a time.
type shelf struct {
	store    Store
	revision map[string]uint64
}

func newShelf(s Store) *shelf { return &shelf{store: s, revision: map[string]uint64{}} }

// put writes a message.
func (s *shelf) put(ctx context.Context, key string, m proto.Message) error {
	value, err := protojson.Marshal(m)
	if err != nil {
		return err
	}
	revision, err := s.store.Update(ctx, key, value, s.revision[key])
	if err == nil {
		s.revision[key] = revision
	}
	return err
}

// remove deletes a message.
func (s *shelf) remove(ctx context.Context, key string) error {
	if err := s.store.Delete(ctx, key); err != nil {
		return err
	}
	delete(s.revision, key)
	return nil
}

// load reads all messages: into returns the one to read into, and take takes it.
// What cannot be read is told to bad and left out.
func (s *shelf) load(ctx context.Context, into func() proto.Message, take func(key string, m proto.Message) error, bad func(key string, err error)) error {
	return s.store.All(ctx, func(key string, value []byte, revision uint64) error {
		m := into()
		err := protojson.UnmarshalOptions{DiscardUnknown: true}.Unmarshal(value, m)
		if err == nil {
			err = take(key, m)
		}
		if err != nil {
			bad(key, fmt.Errorf("not read: %w", err))
			return nil
		}
		s.revision[key] = revision
		return nil
	})
}
