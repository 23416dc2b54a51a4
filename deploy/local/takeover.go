package local

import (
	"context"
	"fmt"
	"sync"
)

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

// Generation returns the generation of the plan whose configuration the service
// runs with.
func (s *settings) Generation() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.plan
}
