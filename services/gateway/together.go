package gateway

import (
	"context"
	"sync"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/weft-sdn/weft/api"
)

// togetherGap is the shortest time between two calls on behalf of clients that ask
// all processes.
const togetherGap = 50 * time.Millisecond

// together makes one call for all clients that wait for it, one after the other,
// so that what they ask of all processes does not grow with the clients. Each
// gets the answer of a call that began after its own.
type together struct {
	call    func(context.Context, any) (any, error)
	request func() any // returns an empty request
	timeout time.Duration

	turn  sync.Mutex // held during a call; guards began
	began time.Time  // the last call

	mu   sync.Mutex // guards next
	next *joint
}

// joint is a call that has not begun, or its outcome.
type joint struct {
	done chan struct{} // closed when it has ended
	resp any
	err  error
}

// do answers one client.
func (t *together) do(ctx context.Context, _ any) (any, error) {
	t.mu.Lock()
	j := t.next
	if j == nil {
		j = &joint{done: make(chan struct{})}
		t.next = j
		go t.run(j)
	}
	t.mu.Unlock()
	select {
	case <-j.done:
		return j.resp, j.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// run makes the call when it is its turn.
func (t *together) run(j *joint) {
	t.turn.Lock()
	defer t.turn.Unlock()
	time.Sleep(time.Until(t.began.Add(togetherGap)))
	t.began = time.Now()
	t.mu.Lock()
	t.next = nil // whoever comes now wants a later one
	t.mu.Unlock()
	defer close(j.done)
	defer func() {
		if p := recover(); p != nil {
			j.err = api.Errorf(codes.Internal, "panic: %v", p)
		}
	}()
	ctx, cancel := context.WithTimeout(context.Background(), t.timeout)
	defer cancel()
	j.resp, j.err = t.call(ctx, t.request())
}
