package intake

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
)

// TestHolds: the list is told when it changes, or is not known; else only that it
// holds further, several times while it lasts.
func TestHolds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex // guards what follows
		set := func(f func()) { mu.Lock(); defer mu.Unlock(); f() }
		var asked []*api.DirectPacketsRequest
		var fail error
		known := uint64(0)
		list := []flow.DPID{}
		h := &holder{number: 7, run: 3, lease: 500 * time.Millisecond, changed: make(chan struct{}, 1), log: discard()}
		h.switches = func() []flow.DPID { mu.Lock(); defer mu.Unlock(); return list }
		h.direct = func(_ context.Context, r *api.DirectPacketsRequest) (*api.DirectPacketsResponse, error) {
			mu.Lock()
			defer mu.Unlock()
			asked = append(asked, r)
			if fail != nil {
				return nil, fail
			}
			if !r.Same {
				known = r.Revision
			}
			return &api.DirectPacketsResponse{Unknown: r.Same && r.Revision != known}, nil
		}
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan struct{})
		go func() { h.keep(ctx); close(done) }()
		since := func(d time.Duration) []*api.DirectPacketsRequest {
			set(func() { asked = nil })
			time.Sleep(d)
			synctest.Wait()
			mu.Lock()
			defer mu.Unlock()
			return asked
		}
		if a := since(time.Second); len(a) > 0 {
			t.Errorf("asked %v without a switch", a)
		}
		set(func() { list = []flow.DPID{1, 2} })
		h.notify()
		a := since(950 * time.Millisecond)
		if len(a) != 10 || len(a[0].Dpids) != 2 || a[0].Same || !a[1].Same || a[1].Revision != a[0].Revision || len(a[1].Dpids) > 0 || a[1].Milliseconds != 500 {
			t.Errorf("asked %v", a)
		}
		set(func() { known = 0 }) // flowrules has started again
		if a := since(250 * time.Millisecond); len(a) < 2 || !a[0].Same || a[1].Same || len(a[1].Dpids) != 2 {
			t.Errorf("asked %v after it was forgotten", a)
		}
		set(func() { fail = errors.New("away") })
		since(250 * time.Millisecond)
		set(func() { fail = nil })
		if a := since(250 * time.Millisecond); len(a) < 2 || a[0].Same || !a[1].Same {
			t.Errorf("asked %v after flowrules was away", a)
		}
		set(func() { list = nil })
		h.notify()
		if a := since(time.Second); len(a) != 1 || a[0].Same || len(a[0].Dpids) > 0 {
			t.Errorf("asked %v when the switches had gone", a)
		}
		set(func() { list = []flow.DPID{2} })
		h.notify()
		since(50 * time.Millisecond)
		set(func() { asked = nil })
		cancel()
		<-done
		if len(asked) != 1 || asked[0].Same || len(asked[0].Dpids) > 0 || asked[0].Revision == 0 {
			t.Errorf("asked %v at the end", asked)
		}
	})
}
