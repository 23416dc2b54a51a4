package local

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/weft-sdn/weft"
	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
)

// Call calls a method and returns its response: by pointer on this goroutine,
// or encoded over the transport. Its errors are *api.Error in both cases.
func (s *Service) Call(ctx context.Context, m weft.Method, req any) (any, error) {
	if c := s.sent.calls[m.MethodName()]; c != nil {
		c.all.Add(1)
	}
	if d, ok := req.(*flow.Decision); ok && d.Trace != 0 && s.Spec.Stage {
		defer s.worker.recorder.decidedLater(s.Spec.Name, d, time.Now())
	}
	if s.worker.cluster.Directed(m) {
		return s.worker.cluster.Direct(ctx, s, m, req)
	}
	return s.CallHere(ctx, m, req)
}

// ended is the context of calls whose handlers must not wait.
var ended = func() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}()

// CallNow calls a method of a service that is set up in this process; the call
// does not wait.
func (s *Service) CallNow(m weft.Method, req any) (any, error) {
	to := s.worker.tables.Load().Methods[m.MethodName()]
	if s.worker.cluster.Directed(m) {
		to = nil // a call that goes to another partition may have to wait
	}
	if to == nil || !to.started() {
		return nil, api.Errorf(codes.Unavailable, "%s calls %s at once, but it is not served here", s.Spec.Name, m.MethodName())
	}
	c := s.sent.calls[m.MethodName()]
	if c != nil {
		c.all.Add(1)
	}
	if s.worker.wire != nil { // in tests; the other side answers at once
		return s.callEncoded(s.Context, to, req)
	}
	began := c.begin()
	resp, err := to.run(ended, req)
	c.end(began)
	if err == nil {
		return resp, nil
	}
	if err = ErrorOf(err); api.KindOf(err) == codes.Canceled {
		err = api.Errorf(codes.Unavailable, "%s is not answered at once: %w", m.MethodName(), err)
	}
	return nil, err
}

// started reports whether the server is set up and not stopping.
func (m *method) started() bool {
	select {
	case <-m.Server.Group.started:
		return !m.Server.Leaving()
	default:
		return false
	}
}

// CallHere calls a method of the service within reach; it prefers this process.
func (s *Service) CallHere(ctx context.Context, m weft.Method, req any) (any, error) {
	to := s.worker.tables.Load().Methods[m.MethodName()]
	if to == nil || !to.Ready(ctx, s) {
		return s.worker.cluster.Call(ctx, s, m, req)
	}
	if s.worker.wire != nil {
		return s.callEncoded(ctx, to, req)
	}
	c := s.sent.calls[m.MethodName()]
	began := c.begin()
	resp, err := to.Answer(ctx, req)
	c.end(began)
	if err != nil {
		if s.Context.Err() == nil && to.Server.Leaving() {
			return s.worker.cluster.Call(ctx, s, m, req) // the call goes to its successor
		}
		return nil, ErrorOf(err)
	}
	return resp, nil
}

// CallPatience is how long a call waits for a service that is away or starts.
const CallPatience = 10 * time.Second

// Ready waits until the server is set up, unless the server starts in the same
// group as the caller. It returns false if the server or ctx ended.
func (m *method) Ready(ctx context.Context, caller *Service) bool {
	if caller != nil && m.Server.Group == caller.Group {
		return !m.Server.Leaving()
	}
	select {
	case <-m.Server.Group.started:
		return !m.Server.Leaving()
	default:
	}
	timer := time.NewTimer(CallPatience)
	defer timer.Stop()
	select {
	case <-m.Server.Group.started:
		return true
	case <-m.Server.Ended:
	case <-ctx.Done():
	case <-timer.C:
	}
	return false
}

// Serve answers an encoded request of another process and appends the response
// to b. It returns false if the service does not serve here, or no longer.
func (m *method) Serve(ctx context.Context, b, req []byte) (resp []byte, here bool, err error) {
	select {
	case <-m.Server.Group.started:
	case <-m.Server.Ended:
		return nil, false, nil
	case <-ctx.Done(): // the caller does not wait any more
		return nil, false, nil
	}
	began := time.Now()
	resp, err = m.answerEncoded(ctx, b, req)
	m.work.arriveAt(1, began.UnixNano())
	m.work.took(time.Since(began))
	return resp, err == nil || !m.Server.Stopping(), err
}

// answerEncoded answers an encoded request and appends the response to b.
func (m *method) answerEncoded(ctx context.Context, b, data []byte) ([]byte, error) {
	req, _ := m.decl.NewMessages()
	if err := weft.Decode(data, req); err != nil {
		return nil, api.Errorf(codes.InvalidArgument, "decode the request of %s: %w", m.name, err)
	}
	resp, err := m.Answer(ctx, req)
	if err != nil {
		return nil, ErrorOf(err)
	}
	if b, err = weft.Encode(b, resp); err != nil {
		return nil, api.Errorf(codes.Internal, "encode the response of %s: %w", m.name, err)
	}
	return b, nil
}

// Answer runs the handler unless ctx has ended.
func (m *method) Answer(ctx context.Context, req any) (resp any, err error) {
	if err := ctx.Err(); err != nil && m.handler.Load() != nil {
		return nil, err
	}
	return m.run(ctx, req)
}

// run runs the handler and turns its panic into an error.
func (m *method) run(ctx context.Context, req any) (resp any, err error) {
	defer func() {
		if p := recover(); p != nil {
			resp, err = nil, m.Server.panicked("the handler of "+m.name, p)
		}
	}()
	m.Server.busy.Add(1)
	defer m.Server.busy.Add(-1)
	h := m.handler.Load()
	if h == nil {
		return nil, m.absent()
	}
	return (*h)(ctx, req)
}

// absent returns an error that says why the method has no handler.
func (m *method) absent() error {
	select {
	case <-m.Server.Group.started:
		return api.Errorf(codes.Unavailable, "%s: service %s has stopped", m.name, m.Server.Spec.Name)
	default:
		return api.Errorf(codes.Unavailable, "%s: service %s is not set up yet; call after weft.Ready", m.name, m.Server.Spec.Name)
	}
}

// panicked logs and counts a panic of the service and returns it as an error.
func (s *Service) panicked(where string, p any) error {
	s.panics.Add(1)
	s.Log.Error("panic in "+where, "panic", p, "stack", string(debug.Stack()))
	return api.Errorf(codes.Internal, "panic in %s: %v", where, p)
}

// ErrorOf returns err as an *api.Error, with the code that it would have after
// a remote call.
func ErrorOf(err error) error {
	var e *api.Error
	if errors.As(err, &e) {
		if error(e) == err {
			return err
		}
		return &api.Error{Kind: e.Kind, Text: err.Error(), Err: err}
	}
	kind := api.KindOf(err)
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		kind = codes.DeadlineExceeded
	case errors.Is(err, context.Canceled):
		kind = codes.Canceled
	}
	return &api.Error{Kind: kind, Text: fmt.Sprint(err), Err: err}
}
