package wefttest

import (
	"context"
	"time"

	"github.com/weft-sdn/weft"
	"github.com/weft-sdn/weft/api"
)

// Fake answers the calls that the service makes of a method, from now on, on
// goroutines of the service's. A method without a fake fails with
// Unimplemented.
func Fake[Req, Resp any](h *Harness, m api.Method[Req, Resp], f func(context.Context, *Req) (*Resp, error)) {
	h.t.Helper()
	FakeAny(h, m, func(ctx context.Context, req any) (any, error) {
		resp, err := f(ctx, req.(*Req))
		if err != nil {
			return nil, err
		}
		return resp, nil
	})
}

// FakeAny is Fake without the types: f gets and returns pointers of those of the
// method.
func FakeAny(h *Harness, m weft.Method, f func(ctx context.Context, req any) (any, error)) {
	h.t.Helper()
	if !listed(h.spec.Calls, m.MethodName()) {
		h.t.Fatalf("fake of %s, which the Spec of %s does not list in Calls", m.MethodName(), h.spec.Name)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.fakes[m.MethodName()] = f
}

// Call calls the service. In mode Twice it does so again, and the test fails
// if that fails; the first answer counts.
func Call[Req, Resp any](h *Harness, m api.Method[Req, Resp], req *Req) (*Resp, error) {
	h.t.Helper()
	ctx, cancel := context.WithTimeout(h.t.Context(), h.Timeout)
	defer cancel()
	return CallContext(ctx, h, m, req)
}

// CallContext is Call with a context of the test's, on any goroutine once the
// service runs.
func CallContext[Req, Resp any](ctx context.Context, h *Harness, m api.Method[Req, Resp], req *Req) (*Resp, error) {
	h.t.Helper()
	resp, err := CallAny(ctx, h, m, req)
	if err != nil {
		return nil, err
	}
	return resp.(*Resp), nil
}

// CallAny is CallContext without the types: req and resp are pointers of those of the
// method.
func CallAny(ctx context.Context, h *Harness, m weft.Method, req any) (resp any, err error) {
	h.t.Helper()
	if !listed(h.spec.Serves, m.MethodName()) {
		h.t.Fatalf("call of %s, which the Spec of %s does not list in Serves", m.MethodName(), h.spec.Name)
	}
	h.Start()
	caller := h.run.peers[self]
	if resp, err = caller.Call(ctx, m, req); err != nil {
		return nil, err
	}
	h.keep("response of "+m.MethodName(), resp)
	if h.Mode == Twice {
		if _, err := caller.Call(ctx, m, req); err != nil && ctx.Err() == nil {
			h.t.Errorf("%s is not idempotent: made twice, it succeeds and then fails: %v", m.MethodName(), err)
		}
	}
	return resp, nil
}

// Publish publishes an event to the service, as from its publisher, and waits
// until it has handled it and all before it.
func Publish[E any](h *Harness, s api.Subject[E], event *E) {
	h.t.Helper()
	PublishAsync(h, s, event)
	h.Settle()
}

// PublishAsync is Publish without waiting.
func PublishAsync[E any](h *Harness, s api.Subject[E], event *E) {
	h.t.Helper()
	h.Start()
	for _, sub := range h.spec.Wants() {
		if sub.SubjectName() == s.Name {
			h.run.peers[ownerOf(s.Name)].Publish(s, event)
			return
		}
	}
	h.t.Fatalf("event %s, which the Spec of %s does not list in Subscribes", s.Name, h.spec.Name)
}

// Settle waits until the service has handled all events published so far.
func (h *Harness) Settle() {
	h.t.Helper()
	h.Start()
	ctx, cancel := context.WithTimeout(h.t.Context(), h.Timeout)
	defer cancel()
	if err := h.run.worker.Settled(ctx, h.spec.Name); err != nil {
		h.t.Fatal(err)
	}
}

// Next waits for the next event of a subject that the service publishes, in
// the order in which it did.
func Next[E any](h *Harness, s api.Subject[E]) *E {
	h.t.Helper()
	select {
	case e := <-published(h, s):
		return e.(*E)
	case <-time.After(h.Timeout):
		h.t.Fatalf("no event %s within %v", s.Name, h.Timeout)
	}
	return nil
}

// Await takes events of a subject until one of them is wanted, and returns it.
func Await[E any](h *Harness, s api.Subject[E], wanted func(*E) bool) *E {
	h.t.Helper()
	timeout := time.After(h.Timeout)
	for seen := 0; ; seen++ {
		select {
		case e := <-published(h, s):
			if wanted(e.(*E)) {
				return e.(*E)
			}
		case <-timeout:
			h.t.Fatalf("none of %d events %s within %v was wanted", seen, s.Name, h.Timeout)
		}
	}
}

// None fails the test if an event of a subject comes, or has come, within a
// time.
func None[E any](h *Harness, s api.Subject[E], within time.Duration) {
	h.t.Helper()
	select {
	case e := <-published(h, s):
		h.t.Fatalf("unexpected event %s: %v", s.Name, e)
	case <-time.After(within):
	}
}

// Taken returns the events of a subject that have come and not been taken, and
// takes them.
func Taken[E any](h *Harness, s api.Subject[E]) (events []*E) {
	h.t.Helper()
	h.Start()
	h.run.settleOwn(h)
	for c := published(h, s); len(c) > 0; {
		events = append(events, (<-c).(*E))
	}
	return events
}

// settleOwn waits until the test itself has heard all that the service has
// published so far.
func (r *running) settleOwn(h *Harness) {
	h.t.Helper()
	ctx, cancel := context.WithTimeout(h.t.Context(), h.Timeout)
	defer cancel()
	if err := r.worker.Settled(ctx, self); err != nil {
		h.t.Fatal(err)
	}
}

func published[E any](h *Harness, s api.Subject[E]) chan any {
	h.t.Helper()
	h.Start()
	c := h.events[s.Name]
	if c == nil {
		h.t.Fatalf("event %s, which the Spec of %s does not list in Publishes", s.Name, h.spec.Name)
	}
	return c
}

func listed(methods []weft.Method, name string) bool {
	for _, m := range methods {
		if m.MethodName() == name {
			return true
		}
	}
	return false
}
