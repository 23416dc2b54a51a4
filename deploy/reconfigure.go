package deploy

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/weft-sdn/weft/deploy/config"
)

// takeLimit is how long a service may take to take over a configuration.
const takeLimit = 10 * time.Second

// takeover carries a new configuration to a service, as an event.
type takeover struct {
	ctx      context.Context
	old, new any
	done     chan error // holds one
}

// OnConfig registers the handler of a new configuration.
func (s *service) OnConfig(take func(ctx context.Context, old, new any) error) {
	s.register(len(s.spec.Live) > 0, "what takes over configurations", func() bool {
		if s.changes.handler != nil {
			return false
		}
		s.changes.handler = func(_ context.Context, event any) {
			t := event.(*takeover)
			err := fmt.Errorf("service %s: panic while it took over a configuration; the log says where", s.spec.Name)
			defer func() { t.done <- err }()
			if err = t.ctx.Err(); err == nil {
				err = take(t.ctx, t.old, t.new)
			}
		}
		return true
	})
}

// configured returns the configuration that the service runs with.
func (s *service) configured() any {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.config
}

// adopt records a configuration and the plan that it comes from.
func (s *service) adopt(config any, generation uint64) {
	s.mu.Lock()
	s.config, s.plan = config, generation
	s.mu.Unlock()
}

// takeOver passes the running service a configuration that differs only in keys
// of Live. If the service fails, takeOver passes it the former one.
func (s *service) takeOver(ctx context.Context, config any) error {
	old := s.configured()
	err := s.give(ctx, old, config)
	if err == nil {
		return nil
	}
	if back := s.give(ctx, config, old); back != nil {
		s.log.Warn("the service did not go back to its former configuration", "error", back)
	}
	return err
}

func (s *service) give(ctx context.Context, old, new any) error {
	ctx, cancel := context.WithTimeout(ctx, takeLimit)
	defer cancel()
	t := &takeover{ctx: ctx, old: old, new: new, done: make(chan error, 1)}
	s.inbox.announce()
	if !s.inbox.putNow(delivery{s.changes, t}) {
		return fmt.Errorf("service %s is being stopped", s.spec.Name)
	}
	select {
	case err := <-t.done:
		if err != nil {
			return fmt.Errorf("service %s does not take it over: %w", s.spec.Name, err)
		}
		return nil
	case <-ctx.Done():
		return fmt.Errorf("service %s has not taken it over within %v", s.spec.Name, takeLimit)
	}
}

// reconfigure applies the current plan's settings to a running service; it
// returns false if the service must restart.
func (n *Node) reconfigure(ctx context.Context, s *service, settings *config.Settings, current *Current) bool {
	next, err := settings.Configure(s.spec)
	if err != nil {
		return false
	}
	old := s.configured()
	if reflect.DeepEqual(next, old) {
		s.adopt(old, current.Generation)
		return true
	}
	if n.refused[s.spec.Name] == current.Generation { // it keeps what it has
		return true
	}
	changes := config.ChangesOf(old, next)
	if !config.TakenLive(s.spec, changes) || s.standing.Load() {
		return false
	}
	if err := s.takeOver(ctx, next); err != nil {
		n.refuse(current, s.spec.Name, err)
		return true
	}
	s.adopt(next, current.Generation)
	n.log.Info("service has taken over its configuration", "service", s.spec.Name, "changed", config.KeysOf(changes))
	return true
}

// ConfigFailure says why a process cannot use a configuration on trial.
type ConfigFailure struct {
	Generation uint64 // of the plan
	Service    string
	Error      string
}

// refuse records that a service cannot use its configuration in the current
// plan, and notifies the others.
func (n *Node) refuse(current *Current, name string, err error) {
	n.log.Error("service cannot do with its configuration", "service", name, "generation", current.Generation, "error", err)
	if n.refused == nil {
		n.refused = map[string]uint64{}
	}
	n.refused[name] = current.Generation
	n.mu.Lock()
	n.entry.Failed = &ConfigFailure{Generation: current.Generation, Service: name, Error: err.Error()}
	n.entry.Generation = 0 // so that the entry is published with what follows
	n.mu.Unlock()
}

// abandon stops services that did not start with a configuration on trial.
// Those that failed stay stopped until there is another plan.
func (n *Node) abandon(ctx context.Context, current *Current, services []*service, cause error) error {
	blamed := false
	for _, s := range slices.Backward(services) {
		n.setState(s, "")
		n.worker.remove(s)
		ended := s.ctx.Err() != nil
		err := s.stop(n.worker.config.StopTimeout)
		select {
		case <-s.ended:
		default:
			return err // nobody may run it as long as this process lives
		}
		if err != nil || ended {
			blamed = true
			if err == nil {
				err = cause
			}
			n.refuse(current, s.spec.Name, err)
		}
	}
	for _, s := range services {
		if !blamed {
			n.refuse(current, s.spec.Name, cause)
		}
	}
	return n.announce(ctx)
}

// ended handles a service that ended by itself; an error ends the process.
func (n *Node) ended(ctx context.Context, s *service) error {
	n.mu.Lock()
	current := n.current
	n.mu.Unlock()
	s.mu.Lock()
	generation := s.plan
	s.mu.Unlock()
	if n.worker.tables.Load().service(s.spec.Name) != s {
		return nil // it has been removed
	}
	cause := s.endedEarly()
	if current != nil && current.Trial && generation == current.Generation {
		s.serving.Store(false)
		n.worker.version.Add(1)
		return n.abandon(ctx, current, []*service{s}, cause)
	}
	if cause == nil {
		cause = fmt.Errorf("a service has ended") // its stop says why
	}
	return cause
}
