package weft

import (
	"context"
	"errors"
	"time"
)

// ErrRevision is the error of Bucket.Update if the key has another revision.
var ErrRevision = errors.New("the key has changed since it was read")

// Now returns the time of day by the clock of the store, which all processes
// share. Use it for times that are stored or sent to other processes, because
// the clocks of machines differ.
func Now(env *Env) time.Time { return env.runtime.Now() }

// Damageable is a Bucket that detects whether part of its content is lost.
type Damageable interface {
	// Damage describes the damage; it returns "" if the bucket is complete. A
	// damaged bucket is read-only until it is repaired, unless Spec.Rebuilt lists it.
	Damage() string
	// Report marks the bucket as damaged, for a reason that only its service can
	// detect.
	Report(ctx context.Context, reason string) error
	// Recorded returns the periods in which the store recorded changes: from born
	// to alive, and since opened. A time that is not known is zero.
	Recorded() (born, alive, opened time.Time)
}

// Bucket is durable key-value state with one writer. A change is on disk
// before the call returns. Keys are letters, digits and any of "-/_=.".
type Bucket interface {
	// Get returns the value and its revision, or nil and 0 if the key has no value.
	Get(ctx context.Context, key string) (value []byte, revision uint64, err error)
	// Put sets the value and returns its new revision. Revisions of a bucket only
	// grow and are never reused.
	Put(ctx context.Context, key string, value []byte) (revision uint64, err error)
	// Update is Put on condition that the key still has the given revision (0: no
	// value yet). Otherwise it returns ErrRevision.
	Update(ctx context.Context, key string, value []byte, revision uint64) (uint64, error)
	// Delete removes the key. A key without a value is no error.
	Delete(ctx context.Context, key string) error
	// All calls f for every key, in no particular order, until f returns an error.
	All(ctx context.Context, f func(key string, value []byte, revision uint64) error) error
	// Watch calls f for every key, then once with an empty key, and then for every
	// change until ctx ends. A nil value means that the key was deleted.
	Watch(ctx context.Context, f func(key string, value []byte, revision uint64)) error
}
