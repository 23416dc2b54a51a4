package deploy

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"

	"google.golang.org/grpc/codes"

	"weft"
	"weft/api"
	"weft/flow"
)

// service is one running service, and the weft.Runtime that it sees.
type service struct {
	worker *Worker
	spec   *weft.Spec
	config any
	log    *slog.Logger
	metric *metrics
	inbox  *inbox
	panics weft.Counter
	slow   weft.Counter // waits of publishers for the inbox, longer than a second

	ctx    context.Context // of its Run
	cancel context.CancelFunc
	ended  chan struct{} // closed when Run and the handling of events have ended
	err    error         // of Run; valid once ended

	mu       sync.Mutex // guards what follows
	open     func(flow.DPID) weft.StageFunc
	mistakes []error
	ready    bool
}

// Handle registers the handler of a method.
func (s *service) Handle(m weft.Method, h func(context.Context, any) (any, error)) {
	method := s.worker.methods[m.MethodName()]
	s.register(method != nil && method.server == s, "the handler of "+m.MethodName(), func() bool {
		return method.handler.CompareAndSwap(nil, &h)
	})
}

// Subscribe registers a handler of events.
func (s *service) Subscribe(sub weft.Subject, h func(context.Context, any)) {
	var at *subscription
	if subject := s.worker.subjects[sub.SubjectName()]; subject != nil {
		at = subject.subscriptionOf(s)
	}
	s.register(at != nil, "the handler of "+sub.SubjectName(), func() bool {
		if at.handler != nil {
			return false
		}
		at.handler = h
		return true
	})
}

// Stage registers the service's stage.
func (s *service) Stage(open func(flow.DPID) weft.StageFunc) {
	s.register(s.spec.Stage, "its stage", func() bool {
		if s.open != nil {
			return false
		}
		s.open = open
		return true
	})
}

// register makes one registration and takes down what is wrong with it.
func (s *service) register(declared bool, what string, do func() bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.ready:
		panic(fmt.Sprintf("%s registers %s after weft.Ready; do it before", s.spec.Name, what))
	case !declared:
		s.mistakes = append(s.mistakes, fmt.Errorf("%s registers %s, which its Spec does not declare", s.spec.Name, what))
	case !do():
		s.mistakes = append(s.mistakes, fmt.Errorf("%s registers %s twice", s.spec.Name, what))
	}
}

// Ready reports mistakes of the set-up, or waits until all services are set up.
func (s *service) Ready(ctx context.Context) error {
	s.mu.Lock()
	first := !s.ready
	s.ready = true
	if first {
		s.mistakes = append(s.mistakes, s.unkept()...)
	}
	err := errors.Join(s.mistakes...)
	s.mu.Unlock()
	if err != nil {
		return err
	}
	if first {
		s.worker.arrived <- s
	}
	select {
	case <-s.worker.started:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// unkept reports what the Spec declares and the set-up has not registered.
func (s *service) unkept() (errs []error) {
	for _, m := range s.spec.Serves {
		if s.worker.methods[m.MethodName()].handler.Load() == nil {
			errs = append(errs, fmt.Errorf("%s lists %s in Serves, but has no handler for it; add weft.Handle before weft.Ready", s.spec.Name, m.MethodName()))
		}
	}
	for _, sub := range s.spec.Subscribes {
		if s.worker.subjects[sub.SubjectName()].subscriptionOf(s).handler == nil {
			errs = append(errs, fmt.Errorf("%s lists %s in Subscribes, but has no handler for it; add weft.On before weft.Ready", s.spec.Name, sub.SubjectName()))
		}
	}
	if s.spec.Stage && s.open == nil {
		errs = append(errs, fmt.Errorf("%s says Stage, but registers none; add weft.Stage before weft.Ready", s.spec.Name))
	}
	return errs
}

// Bucket opens durable state.
func (s *service) Bucket(name string) (weft.Bucket, error) {
	b, err := s.worker.config.Store.Bucket(s.ctx, name)
	if err != nil {
		return nil, api.Errorf(codes.Unavailable, "open bucket %s: %w", name, err)
	}
	return b, nil
}

// Specs returns all services of the worker.
func (s *service) Specs() []weft.Spec { return slices.Clone(s.worker.config.Specs) }
