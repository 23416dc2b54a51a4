package experiments

import (
	"context"
	"io"
	"sync"
)

// Shared is a testbed that cases share: the first opens it, the last closes it.
type Shared[T io.Closer] struct {
	Open func(context.Context) (T, error)

	mu  sync.Mutex // guards what follows
	bed T
	err error // why it could not be opened
	n   int   // how many have it
}

// Take returns the testbed.
func (s *Shared[T]) Take(ctx context.Context) (T, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.n == 0 && s.err == nil {
		s.bed, s.err = s.Open(ctx)
	}
	if s.err == nil {
		s.n++
	}
	return s.bed, s.err
}

// Leave gives it back.
func (s *Shared[T]) Leave() (err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.n--; s.n == 0 {
		err = s.bed.Close()
	}
	return err
}
