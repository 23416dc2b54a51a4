package paths

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
)

// TestShareYields: on one processor, others run between the pieces of what is
// shared out.
func TestShareYields(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	pool := &sync.Pool{New: func() any { return &scratch{} }}
	ended := make(chan struct{})
	var turns atomic.Int64
	var done atomic.Bool
	go func() {
		defer close(ended)
		for !done.Load() {
			turns.Add(1)
			runtime.Gosched()
		}
	}()
	share(1, 100, 10, func(*scratch, int, int) {}, pool)
	done.Store(true)
	<-ended
	if n := turns.Load(); n < 5 {
		t.Errorf("another goroutine had %d turns during 10 pieces", n)
	}
}
