package hosts

import (
	"context"
	"sync"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/weft-sdn/weft/api"
)

// store is a bucket whose keys can be deleted.
type store interface {
	bucket
	Delete(ctx context.Context, key string) error
}

// journal writes to a store until another instance takes over.
type journal struct {
	store store
	run   *persister // tells whether this instance is the last one

	mu        sync.Mutex // guards revisions, and is held while keys are written
	revisions map[string]uint64
}

// read calls take for each stored value; it reports those that cannot be read.
func (s *journal) read(ctx context.Context, take func(key string, value []byte) error, bad func(key string, err error)) error {
	s.revisions = map[string]uint64{}
	return s.store.All(ctx, func(key string, value []byte, revision uint64) error {
		s.revisions[key] = revision
		if err := take(key, value); err != nil {
			bad(key, err)
		}
		return nil
	})
}

// put writes one key, or deletes it if m is nil, unless another instance has taken over.
func (s *journal) put(ctx context.Context, key string, m proto.Message) error {
	if m == nil {
		return s.putText(ctx, key, nil)
	}
	value, err := protojson.Marshal(m)
	if err != nil {
		return err
	}
	return s.putText(ctx, key, value)
}

// putText is put for an encoded value; an empty one is deleted.
func (s *journal) putText(ctx context.Context, key string, value []byte) error {
	if err := s.run.checkOwnership(ctx); err != nil {
		return err
	}
	if len(value) == 0 {
		if _, kept := s.revisions[key]; !kept {
			return nil
		}
		if err := s.store.Delete(ctx, key); err != nil {
			return err
		}
		delete(s.revisions, key)
		return nil
	}
	revision, err := s.store.Update(ctx, key, value, s.revisions[key])
	if err != nil { // an earlier instance wrote it while it ended
		if _, revision, err = s.store.Get(ctx, key); err != nil {
			return err
		}
		if revision, err = s.store.Update(ctx, key, value, revision); err != nil {
			return err
		}
	}
	s.revisions[key] = revision
	return nil
}

// inForce wraps the error for a change that is in force but could not be
// stored.
func inForce(err error) error {
	if err == nil {
		return nil
	}
	return api.Errorf(codes.Unavailable, "in force, but not kept yet: call again, or wait: %w", err)
}

// notStored wraps the error for a change that could not be stored and is not in
// force.
func notStored(err error) error {
	return api.Errorf(codes.Unavailable, "not in force, as it could not be kept: call again: %w", err)
}
