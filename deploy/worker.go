package deploy

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"weft"
)

// Worker runs services in this process.
type Worker struct {
	config   Config
	services []*service
	methods  map[string]*method
	subjects map[string]*subject
	pipeline []*service // the stages in order
	registry *registry
	wire     *wire // nil: by pointer
	log      *slog.Logger

	ran     atomic.Bool
	arrived chan *service // services whose set-up is complete
	started chan struct{} // closed when that is all of them
}

// New checks that the services fit together, and their configurations, and
// returns a worker that will run them. The error reports all that is wrong.
func New(c Config) (*Worker, error) {
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.ReadyTimeout == 0 {
		c.ReadyTimeout = 10 * time.Second
	}
	if c.StopTimeout == 0 {
		c.StopTimeout = 5 * time.Second
	}
	w := &Worker{
		config: c, log: c.Log, registry: newRegistry(),
		methods: map[string]*method{}, subjects: map[string]*subject{},
		arrived: make(chan *service, len(c.Specs)), started: make(chan struct{}),
	}
	errs := []error{checkSpecs(c.Specs, c.Partial), c.Settings.check(c.Specs)}
	for name := range c.StandIns {
		if !slices.Contains(specNames(c.Specs), name) {
			errs = append(errs, fmt.Errorf("stand-in for %s, which is not among the services that run: %s", name, orNone(specNames(c.Specs))))
		}
	}
	order, err := stages(c.Specs, c.Pipeline)
	errs = append(errs, err)
	for _, s := range c.Specs {
		if len(s.Buckets) > 0 && c.Store == nil {
			errs = append(errs, fmt.Errorf("service %s keeps durable state (%s), but there is no store; set Config.Store", s.Name, strings.Join(s.Buckets, ", ")))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	if err := w.build(order); err != nil {
		return nil, err
	}
	return w, nil
}

// build makes the services and connects them. The Specs are known to fit.
func (w *Worker) build(order []string) error {
	byName := map[string]*service{}
	for i := range w.config.Specs {
		spec := &w.config.Specs[i]
		config, err := w.config.Settings.configure(spec)
		if err != nil {
			return err
		}
		s := &service{
			worker: w, spec: spec, config: config, inbox: newInbox(), ended: make(chan struct{}),
			log: w.log.With("service", spec.Name), metric: &metrics{w.registry, spec.Name},
		}
		own := &metrics{w.registry, "deploy"}
		s.panics = own.Counter("panics", "Panics in handlers and stages of a service.", "service", spec.Name)
		s.slow = own.Counter("slow_publishes", "Publishers that waited longer than a second for a service's full queue.", "service", spec.Name)
		own.Gauge("queue_depth", "Events that wait for a service.", func() float64 { return float64(s.inbox.pending.Load()) }, "service", spec.Name)
		w.services = append(w.services, s)
		byName[spec.Name] = s
		for _, m := range spec.Serves {
			w.methods[m.MethodName()] = &method{name: m.MethodName(), decl: m, server: s}
		}
		for _, p := range spec.Publishes {
			w.subjects[p.SubjectName()] = &subject{name: p.SubjectName(), decl: p}
		}
	}
	for _, s := range w.services {
		for _, sub := range s.spec.Subscribes {
			to := w.subjects[sub.SubjectName()]
			if to == nil { // of an absent service: nobody will publish it
				to = &subject{name: sub.SubjectName(), decl: sub}
				w.subjects[to.name] = to
			}
			to.subscribers = append(to.subscribers, &subscription{subject: to, service: s})
		}
	}
	for _, name := range order {
		w.pipeline = append(w.pipeline, byName[name])
	}
	return nil
}

// Started is closed when all services are set up.
func (w *Worker) Started() <-chan struct{} { return w.started }

// Run starts all services and runs them until ctx ends, or one of them ends by
// itself, which is an error. It then stops them in reverse order and returns
// the errors of all. A worker runs once.
func (w *Worker) Run(ctx context.Context) (err error) {
	if w.ran.Swap(true) {
		return errors.New("the worker has run already; make another with New")
	}
	if w.config.Registry != nil {
		if err := w.config.Registry.Register(w.registry); err != nil {
			return fmt.Errorf("register metrics: %w; a Registry serves one worker at a time", err)
		}
		defer w.config.Registry.Unregister(w.registry)
	}
	if w.config.Encoded {
		if w.wire, err = newWire(w.services); err != nil {
			return err
		}
		defer w.wire.close()
	}
	failed := make(chan *service, len(w.services))
	for _, s := range w.services {
		s.ctx, s.cancel = context.WithCancel(context.WithoutCancel(ctx))
	}
	for _, s := range w.services {
		go s.run(failed)
	}
	var errs []error
	if err := w.await(ctx, failed); err != nil {
		errs = append(errs, err)
	}
	for _, s := range slices.Backward(w.services) {
		errs = append(errs, s.stop(w.config.StopTimeout))
	}
	return errors.Join(errs...)
}

// await waits until all services are ready, and then until ctx ends or one of
// them does.
func (w *Worker) await(ctx context.Context, failed <-chan *service) error {
	missing := slices.Clone(w.services)
	timeout := time.NewTimer(w.config.ReadyTimeout)
	defer timeout.Stop()
	for len(missing) > 0 {
		select {
		case s := <-w.arrived:
			missing = slices.DeleteFunc(missing, func(m *service) bool { return m == s })
		case s := <-failed:
			return s.endedEarly()
		case <-ctx.Done():
			return nil
		case <-timeout.C:
			var names []string
			for _, s := range missing {
				names = append(names, s.spec.Name)
			}
			return fmt.Errorf("not set up after %v: %s; each service's Run must reach weft.Ready or weft.Serve", w.config.ReadyTimeout, strings.Join(names, ", "))
		}
	}
	close(w.started)
	select {
	case s := <-failed:
		return s.endedEarly()
	case <-ctx.Done():
		return nil
	}
}

// run runs the service and its events until its context ends.
func (s *service) run(failed chan<- *service) {
	delivered := make(chan struct{})
	go func() {
		defer close(delivered)
		s.deliver()
	}()
	s.err = s.protect()
	if s.ctx.Err() == nil {
		failed <- s
	}
	s.cancel()
	s.inbox.close()
	<-delivered
	close(s.ended)
}

// protect calls Run and turns its panic into an error.
func (s *service) protect() (err error) {
	defer func() {
		if p := recover(); p != nil {
			s.panics.Add(1)
			err = fmt.Errorf("panic in Run: %v\n%s", p, debug.Stack())
		}
	}()
	if standIn := s.worker.config.StandIns[s.spec.Name]; standIn != nil {
		return standIn(s.ctx, s)
	}
	return s.spec.Run(s.ctx, weft.NewEnv(s.spec, s, s.config, s.log, s.metric))
}

// endedEarly says that the service's Run returned though nobody stopped it;
// if it returned an error, stop reports that.
func (s *service) endedEarly() error {
	if s.err != nil && !errors.Is(s.err, context.Canceled) {
		return nil
	}
	return fmt.Errorf("service %s stopped by itself without an error; its Run must last until its context ends (weft.Serve does)", s.spec.Name)
}

// stop ends the service and waits for that; its handlers are gone afterwards.
func (s *service) stop(timeout time.Duration) error {
	s.cancel()
	s.inbox.close()
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	select {
	case <-s.ended:
	case <-timer.C:
		return fmt.Errorf("service %s has not stopped within %v; its Run or one of its event handlers does not heed its context", s.spec.Name, timeout)
	}
	for _, m := range s.spec.Serves {
		s.worker.methods[m.MethodName()].handler.Store(nil)
	}
	if s.err != nil && !errors.Is(s.err, context.Canceled) {
		return fmt.Errorf("service %s: %w", s.spec.Name, s.err)
	}
	return nil
}

// Settled waits until a service has handled all events that have been
// published to it, by any goroutine, before the call. For tests.
func (w *Worker) Settled(ctx context.Context, name string) error {
	for _, s := range w.services {
		if s.spec.Name != name {
			continue
		}
		for pause := time.Microsecond; s.inbox.pending.Load() > 0; pause = min(2*pause, time.Millisecond) {
			select {
			case <-ctx.Done():
				return fmt.Errorf("service %s has %d events to handle yet: %w", name, s.inbox.pending.Load(), ctx.Err())
			case <-time.After(pause):
			}
		}
		return nil
	}
	return fmt.Errorf("service %s is not among those that run: %s", name, orNone(specNames(w.config.Specs)))
}
