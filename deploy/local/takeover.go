package local

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// takeLimit is how long a service may take to take over a configuration.
const takeLimit = 10 * time.Second

// settings are the configuration that a service runs with, and the plan that has it.
type settings struct {
	mu     sync.Mutex // guards what follows
	config any
	plan   uint64 // generation of the plan
}

// takeover carries a new configuration to a service, as an event.
type takeover struct {
	ctx      context.Context
	old, new any
	done     chan error // holds one
}

// OnConfig registers the handler of a new configuration.
func (s *Service) OnConfig(take func(ctx context.Context, old, new any) error) {
	s.register(len(s.Spec.Live) > 0, "what takes over configurations", func() bool {
		if s.changes.handler != nil {
			return false
		}
		s.changes.handler = func(_ context.Context, event any) {
			t := event.(*takeover)
			err := fmt.Errorf("service %s: panic while it took over a configuration; the log says where", s.Spec.Name)
			defer func() { t.done <- err }()
			if err = t.ctx.Err(); err == nil {
				err = take(t.ctx, t.old, t.new)
			}
		}
		return true
	})
}

// Configured returns the configuration that the service runs with.
func (s *settings) Configured() any {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.config
}

// Adopt records a configuration and the plan that it comes from.
func (s *settings) Adopt(config any, generation uint64) {
	s.mu.Lock()
	s.config, s.plan = config, generation
	s.mu.Unlock()
}

// TakeOver passes the running service a configuration that differs only in keys
// of Live. If the service fails, takeOver passes it the former one.
func (s *Service) TakeOver(ctx context.Context, config any) error {
	old := s.Configured()
	err := s.give(ctx, old, config)
	if err == nil {
		return nil
	}
	if back := s.give(ctx, config, old); back != nil {
		s.Log.Warn("the service did not go back to its former configuration", "error", back)
	}
	return err
}

func (s *Service) give(ctx context.Context, old, new any) error {
	ctx, cancel := context.WithTimeout(ctx, takeLimit)
	defer cancel()
	t := &takeover{ctx: ctx, old: old, new: new, done: make(chan error, 1)}
	s.inbox.announce()
	if !s.inbox.putNow(delivery{to: s.changes, event: t}) {
		return fmt.Errorf("service %s is being stopped", s.Spec.Name)
	}
	select {
	case err := <-t.done:
		if err != nil {
			return fmt.Errorf("service %s does not take it over: %w", s.Spec.Name, err)
		}
		return nil
	case <-ctx.Done():
		return fmt.Errorf("service %s has not taken it over within %v", s.Spec.Name, takeLimit)
	}
}

// Generation returns the generation of the plan whose configuration the service
// runs with.
func (s *settings) Generation() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.plan
}
