package local

import (
	"context"
	"fmt"
	"slices"

	"github.com/weft-sdn/weft"
	"github.com/weft-sdn/weft/deploy/config"
)

// Effective returns the configuration that a service runs with: that of its
// Spec, with the settings applied. It is nil if the service does not run or has
// none. Nobody modifies it.
func (w *Worker) Effective(service string) any {
	if s := w.tables.Load().Service(service); s != nil {
		return s.Configured()
	}
	return nil
}

// Pipeline returns the names of the stages in order.
func (w *Worker) Pipeline() []string { return slices.Clone(w.tables.Load().Pipeline) }

// Reconfigure makes a running service take over a configuration, as if its
// settings had changed; for tests. It returns an error if a key differs that
// the service's Spec does not list in Live.
func (w *Worker) Reconfigure(ctx context.Context, service string, next weft.Config) error {
	s := w.tables.Load().Service(service)
	if s == nil {
		return fmt.Errorf("service %s is not among those that run: %s", service, config.OrNone(config.Names(w.config.Specs)))
	}
	if err := next.Validate(); err != nil {
		return fmt.Errorf("service %s: %w", service, err)
	}
	changes := config.ChangesOf(s.Configured(), next)
	if len(changes) == 0 {
		return nil
	}
	if !config.TakenLive(s.Spec, changes) {
		return fmt.Errorf("service %s takes over %v only, not all of %v; list the keys in its Spec's Live", service, s.Spec.Live, config.KeysOf(changes))
	}
	if err := s.TakeOver(ctx, next); err != nil {
		return err
	}
	s.Adopt(next, 0)
	return nil
}
