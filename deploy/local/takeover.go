package local

import "sync"

// settings are the configuration that a service runs with, and the plan that has it.
type settings struct {
	mu     sync.Mutex // guards what follows
	config any
	plan   uint64 // generation of the plan
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
