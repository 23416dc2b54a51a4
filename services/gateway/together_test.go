package gateway

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/weft-sdn/weft/api"
)

// TestTogether: the calls of many clients are few, one at a time; each client gets
// what was true after it called, and one that goes, or a panic, is in nobody's way.
func TestTogether(t *testing.T) {
	var state, calls, under atomic.Int64
	work := &together{timeout: 10 * time.Second, request: func() any { return new(api.GetWorkRequest) }, call: func(context.Context, any) (any, error) {
		if under.Add(1) > 1 {
			t.Error("two calls at once")
		}
		defer under.Add(-1)
		if calls.Add(1) == 3 {
			panic("oh")
		}
		seen := state.Load()
		time.Sleep(time.Millisecond)
		return &api.GetWorkResponse{Processes: make([]*api.ProcessWork, seen)}, nil
	}}
	var clients sync.WaitGroup
	var panics atomic.Int64
	const each = 10
	for range 100 {
		clients.Go(func() {
			for range each {
				before := state.Add(1)
				m, err := work.do(t.Context(), nil)
				switch {
				case api.KindOf(err) == codes.Internal:
					panics.Add(1)
				case err != nil || len(m.(*api.GetWorkResponse).Processes) < int(before):
					t.Errorf("after %d: %v, %v", before, m, err)
				}
			}
		})
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := work.do(gone, nil); err == nil {
		t.Error("who has gone gets an answer")
	}
	clients.Wait()
	if n := calls.Load(); n > 25*each || panics.Load() == 0 {
		t.Errorf("%d calls, %d clients learnt of a panic", n, panics.Load())
	}
}
