package deploy

import (
	"context"
	"fmt"
	"reflect"
	"slices"

	"github.com/weft-sdn/weft/deploy/config"
	"github.com/weft-sdn/weft/deploy/local"
	"github.com/weft-sdn/weft/deploy/members"
)

// reconfigure applies the current plan's settings to a running service; it
// returns false if the service must restart.
func (r *reconciler) reconfigure(ctx context.Context, s *local.Service, settings *config.Settings, current *members.Current) bool {
	next, err := settings.Configure(s.Spec)
	if err != nil {
		return false
	}
	old := s.Configured()
	if reflect.DeepEqual(next, old) {
		s.Adopt(old, current.Generation)
		return true
	}
	if r.refused[s.Spec.Name] == current.Generation { // it keeps what it has
		return true
	}
	changes := config.ChangesOf(old, next)
	if !config.TakenLive(s.Spec, changes) || s.Standby.Load() {
		return false
	}
	if err := s.TakeOver(ctx, next); err != nil {
		r.refuse(current, s.Spec.Name, err)
		return true
	}
	s.Adopt(next, current.Generation)
	r.log.Info("service has taken over its configuration", "service", s.Spec.Name, "changed", config.KeysOf(changes))
	return true
}

// refuse records that a service cannot use its configuration in the current
// plan, and notifies the others.
func (r *reconciler) refuse(current *members.Current, name string, err error) {
	r.log.Error("service cannot do with its configuration", "service", name, "generation", current.Generation, "error", err)
	r.refused[name] = current.Generation
	r.members.mu.Lock()
	r.members.entry.Failed = &members.ConfigFailure{Generation: current.Generation, Service: name, Error: err.Error()}
	r.members.entry.Generation = 0 // so that the entry is published with what follows
	r.members.mu.Unlock()
}

// abandon stops services that did not start with a configuration on trial.
// Those that failed stay stopped until there is another plan.
func (r *reconciler) abandon(ctx context.Context, current *members.Current, services []*local.Service, cause error) error {
	blamed := false
	for _, s := range slices.Backward(services) {
		r.members.setState(s, "")
		r.worker.Remove(s)
		ended := s.Stopping()
		err := s.Stop()
		select {
		case <-s.Ended:
		default:
			return err // nobody may run it as long as this process lives
		}
		if err != nil || ended {
			blamed = true
			if err == nil {
				err = cause
			}
			r.refuse(current, s.Spec.Name, err)
		}
	}
	for _, s := range services {
		if !blamed {
			r.refuse(current, s.Spec.Name, cause)
		}
	}
	return r.members.publish(ctx)
}

// ended handles a service that ended by itself; an error ends the process.
func (r *reconciler) ended(ctx context.Context, s *local.Service) error {
	current := r.members.plan()
	if r.worker.Running().Service(s.Spec.Name) != s {
		return nil // it has been removed
	}
	cause := s.EndedEarly()
	if current != nil && current.Trial && s.Generation() == current.Generation {
		s.Serving.Store(false)
		r.worker.Refresh()
		return r.abandon(ctx, current, []*local.Service{s}, cause)
	}
	if cause == nil {
		cause = fmt.Errorf("a service has ended") // its stop says why
	}
	return cause
}
