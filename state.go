package weft

import (
	"context"
	"errors"
	"time"
)

// ErrRevision is what Bucket.Update returns when somebody else was first.
var ErrRevision = errors.New("the key has changed since it was read")

// Now returns the time of day by the clock of the store, which all processes
// share: for times that are kept, or told to others, whose own clocks may differ.
func Now(env *Env) time.Time { return env.runtime.Now() }

// Damageable is a Bucket that knows whether it holds all that it should.
type Damageable interface {
	// Damage says what is wrong, nothing if the bucket is whole. One that is not
	// is read-only, unless what it holds is learnt again, until it is repaired.
	Damage() string
	// Report marks the bucket as damaged, for a reason that only the service that
	// owns it can know.
	Report(ctx context.Context, reason string) error
	// Recorded returns the time of which the store can know: from born to alive,
	// and since opened. Times are zero if they are not known.
	Recorded() (born, alive, opened time.Time)
}

// Bucket is durable key-value state with one writer. A change is on disk
// before the call returns. Keys are letters, digits and any of "-/_=.".
type Bucket interface {
	// Get returns the value and its revision, nil and 0 if there is none.
	Get(ctx context.Context, key string) (value []byte, revision uint64, err error)
	// Put sets the value and returns its new revision, which grows over the
	// life of the bucket and is never used again.
	Put(ctx context.Context, key string, value []byte) (revision uint64, err error)
	// Update is Put if the revision is still the given one (0: no value yet),
	// else ErrRevision.
	Update(ctx context.Context, key string, value []byte, revision uint64) (uint64, error)
	// Delete removes the key; it is no error if there is none.
	Delete(ctx context.Context, key string) error
	// All calls f for every key, in no particular order, until it fails.
	All(ctx context.Context, f func(key string, value []byte, revision uint64) error) error
	// Watch calls f for every key and then for every change until ctx ends;
	// a nil value is a key that is gone. f is called once with an empty key
	// when the keys that were there at first are through.
	Watch(ctx context.Context, f func(key string, value []byte, revision uint64)) error
}
