package deploy

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weft-sdn/weft"
	"github.com/weft-sdn/weft/deploy/config"
)

// Worker runs services in this process. It starts with those of its Config; a
// Node starts and stops more of them while it runs.
type Worker struct {
	config   Config
	registry *registry
	log      *slog.Logger
	cluster  Cluster

	scratches scratches
	wire      *wire // nil: by pointer
	tracer    Tracer
	first     *group

	ran     atomic.Bool
	failed  chan *service
	started chan struct{} // closed when the first services are set up

	tables  atomic.Pointer[tables]
	version atomic.Uint64 // of the pipeline: walks with an older one reopen
	mu      sync.Mutex    // guards changes of tables
}

// tables is what runs now. It is replaced, never written to.
type tables struct {
	services []*service // in the order of their start
	methods  map[string]*method
	subjects map[string]*subject
	pipeline []string // the stages in order, wherever they run
}

// group is services that start together.
type group struct {
	services []*service
	arrived  chan *service // those that are set up
	started  chan struct{} // closed when all have arrived
	ripe     atomic.Bool   // all have arrived, as standbys
}

// New checks that the services fit together, and their configurations, and
// returns a worker for them. The error reports everything that is wrong.
func New(c Config) (*Worker, error) {
	fit := config.CheckSpecs
	if c.Partial {
		fit = config.CheckPart
	}
	errs := []error{fit(c.Specs), c.Settings.Check(c.Specs)}
	for name := range c.StandIns {
		if !slices.Contains(config.Names(c.Specs), name) {
			errs = append(errs, fmt.Errorf("stand-in for %s, which is not among the services that run: %s", name, config.OrNone(config.Names(c.Specs))))
		}
	}
	order, err := config.Stages(c.Specs, c.Pipeline)
	errs = append(errs, err)
	for _, s := range c.Specs {
		if len(s.Buckets) > 0 && c.Store == nil {
			errs = append(errs, fmt.Errorf("service %s keeps durable state (%s), but there is no store; set Config.Store", s.Name, strings.Join(s.Buckets, ", ")))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	if c.Cluster == nil {
		c.Cluster = alone{c.Specs}
	}
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
		config: c, cluster: c.Cluster, log: c.Log, registry: newRegistry(), tracer: c.Tracer, scratches: scratches{dir: c.Scratch, process: c.Process},
		failed: make(chan *service, 64), started: make(chan struct{}),
	}
	w.tables.Store(&tables{methods: map[string]*method{}, subjects: map[string]*subject{}})
	if w.first, err = w.build(c.Specs, setup{settings: c.Settings}); err != nil {
		return nil, err
	}
	for _, s := range w.first.services {
		s.serving.Store(true) // nobody else does
	}
	w.enter(w.first)
	w.setPipeline(order)
	return w, nil
}

// running returns what runs now.
func (w *Worker) running() *tables { return w.tables.Load() }

// refresh has every session look up its stages again before its next packet.
func (w *Worker) refresh() { w.version.Add(1) }

// metrics returns the metrics of a subsystem.
func (w *Worker) metrics(name string) *metrics { return &metrics{w.registry, name} }

// collect adds metrics that are read by a collector.
func (w *Worker) collect(c prometheus.Collector) { w.registry.inner.MustRegister(c) }

// export registers the metrics of all services, and returns what undoes that.
func (w *Worker) export() (undo func(), err error) {
	r := w.config.Registry
	if r == nil {
		return func() {}, nil
	}
	if err := r.Register(w.registry); err != nil {
		return nil, fmt.Errorf("register metrics: %w; a Registry serves one worker at a time", err)
	}
	return func() { r.Unregister(w.registry) }, nil
}

// stopped returns the channel of the services that have ended by themselves.
func (w *Worker) stopped() <-chan *service { return w.failed }

// setup says how services are set up.
type setup struct {
	settings   *config.Settings
	prefix     string // of their buckets
	generation uint64 // of the plan that says so; 0 if there is none
}

// build makes services from Specs that are known to fit.
func (w *Worker) build(specs []weft.Spec, how setup) (*group, error) {
	began := w.cluster.Now()
	g := &group{arrived: make(chan *service, len(specs)), started: make(chan struct{})}
	for i := range specs {
		spec := &specs[i]
		own, err := how.settings.Configure(spec)
		if err != nil {
			return nil, err
		}
		s := &service{
			worker: w, group: g, spec: spec, config: own, plan: how.generation, inbox: newInbox(), ended: make(chan struct{}),
			prefix: how.prefix, log: w.log.With("service", spec.Name), metric: &metrics{w.registry, spec.Name}, subscriptions: map[string]*subscription{},
			sent: newSent(spec),
		}
		s.epoch.Store(uint64(began.UnixNano()))
		s.number.Store(1) // the only one
		s.replicas = &subscription{subject: &subject{name: "replicas"}, service: s}
		s.changes = &subscription{subject: &subject{name: "configuration"}, service: s}
		m := &metrics{w.registry, "deploy"}
		s.panics = m.Counter("panics", "Panics in handlers and stages of a service.", "service", spec.Name)
		s.slow = m.Counter("slow_publishes", "Publishers that waited longer than a second for a service's full queue.", "service", spec.Name)
		m.Gauge("queue_depth", "Events that wait for a service.", func() float64 { return float64(s.inbox.pending.Load()) }, "service", spec.Name)
		for _, m := range spec.Serves {
			s.methods = append(s.methods, &method{name: m.MethodName(), decl: m, server: s})
		}
		g.services = append(g.services, s)
	}
	return g, nil
}

// enter makes the services of a group known to one another and to the running
// ones. It queues the retained events for subscribers, which handle them once
// they are ready.
func (w *Worker) enter(g *group) {
	w.mu.Lock()
	defer w.mu.Unlock()
	t := w.tables.Load().clone()
	for _, s := range g.services {
		t.services = append(t.services, s)
		for _, m := range s.methods {
			t.methods[m.name] = m
		}
		for _, p := range s.spec.Publishes {
			t.subject(p)
		}
	}
	for _, s := range g.services {
		for _, sub := range s.spec.Subscribes {
			at := t.subject(sub)
			s.subscriptions[at.name] = &subscription{subject: at, service: s}
		}
	}
	w.tables.Store(t)
	for _, s := range g.services {
		for _, decl := range s.spec.Subscribes { // in the order of the Spec
			sub := s.subscriptions[decl.SubjectName()]
			sub.subject.attach(sub)
		}
	}
	w.version.Add(1)
}

// remove removes a service: later calls and events go to its instance
// elsewhere, or wait for it.
func (w *Worker) remove(s *service) {
	w.mu.Lock()
	defer w.mu.Unlock()
	t := w.tables.Load().clone()
	t.services = slices.DeleteFunc(t.services, func(other *service) bool { return other == s })
	for _, m := range s.spec.Serves {
		delete(t.methods, m.MethodName())
	}
	for _, sub := range s.subscriptions {
		sub.subject.detach(sub)
	}
	for _, p := range s.spec.Publishes {
		t.subjects[p.SubjectName()].forget()
	}
	w.tables.Store(t)
	w.version.Add(1)
}

// setPipeline sets the order of the stages.
func (w *Worker) setPipeline(order []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	t := w.tables.Load().clone()
	t.pipeline = order
	w.tables.Store(t)
	w.version.Add(1)
}

// clone returns a copy whose maps may be written to.
func (t *tables) clone() *tables {
	c := &tables{services: slices.Clone(t.services), methods: map[string]*method{}, subjects: map[string]*subject{}, pipeline: t.pipeline}
	for k, v := range t.methods {
		c.methods[k] = v
	}
	for k, v := range t.subjects {
		c.subjects[k] = v
	}
	return c
}

// service returns the service of a name that runs here, or nil.
func (t *tables) service(name string) *service {
	for _, s := range t.services {
		if s.spec.Name == name {
			return s
		}
	}
	return nil
}

// Started is closed when the services of the Config are set up.
func (w *Worker) Started() <-chan struct{} { return w.started }

// Run starts the services and runs them until ctx ends, or one of them ends by
// itself, which is an error. It then stops them in reverse order and returns
// all their errors. A worker runs once.
func (w *Worker) Run(ctx context.Context) (err error) {
	if w.ran.Swap(true) {
		return errors.New("the worker has run already; make another with New")
	}
	undo, err := w.export()
	if err != nil {
		return err
	}
	defer undo()
	if w.config.Encoded {
		if w.wire, err = newWire(w.tables.Load().services); err != nil {
			return err
		}
		defer w.wire.close()
	}
	var errs []error
	if ready, err := w.launch(ctx, w.first); !ready {
		errs = append(errs, err)
	} else {
		close(w.started)
		select {
		case s := <-w.failed:
			errs = append(errs, s.endedEarly())
		case <-ctx.Done():
		}
	}
	for _, s := range slices.Backward(w.tables.Load().services) {
		errs = append(errs, s.stop())
	}
	return errors.Join(errs...)
}

// successionMost is the extra time for the set-up of a service that may stand
// by. Even in a plan without standbys it may wait for an instance of an earlier
// plan; if it were stopped before that wait is over, it would wait anew.
const successionMost = 45 * time.Second

// launch starts the services of a group and waits until all are ready. They are
// not if ctx ends first, or one of them ends; stop returns the error of its
// Run.
func (w *Worker) launch(ctx context.Context, g *group) (ready bool, err error) {
	w.start(ctx, g)
	missing := slices.Clone(g.services)
	limit := w.config.ReadyTimeout
	if slices.ContainsFunc(g.services, func(s *service) bool { return s.spec.Standby }) {
		limit += successionMost
	}
	timeout := time.NewTimer(limit)
	defer timeout.Stop()
	for len(missing) > 0 {
		select {
		case s := <-g.arrived:
			missing = slices.DeleteFunc(missing, func(m *service) bool { return m == s })
		case s := <-w.failed:
			return false, s.endedEarly()
		case <-ctx.Done():
			return false, nil
		case <-timeout.C:
			var names []string
			for _, s := range missing {
				names = append(names, s.spec.Name)
			}
			return false, fmt.Errorf("not set up after %v: %s; each service's Run must reach weft.Ready or weft.Serve", limit, strings.Join(names, ", "))
		}
	}
	close(g.started)
	return true, nil
}

// start starts the services of a group.
func (w *Worker) start(ctx context.Context, g *group) {
	for _, s := range g.services {
		s.ctx, s.cancel = context.WithCancel(context.WithoutCancel(ctx))
	}
	for _, s := range g.services {
		go s.run(w.failed)
	}
}

// stand starts the services of a group, which become active later (begin), and
// calls ripe once all are set up.
func (w *Worker) stand(ctx context.Context, g *group, ripe func()) {
	w.start(ctx, g)
	go func() {
		for range g.services {
			select {
			case <-g.arrived:
			case <-g.services[0].ended:
				return
			}
		}
		g.ripe.Store(true)
		ripe()
	}()
}

// begin makes the services of a group that stood by active.
func (g *group) begin() { close(g.started) }

// Settled waits until a service has handled all events that any goroutine
// published to it before the call. For tests.
func (w *Worker) Settled(ctx context.Context, name string) error {
	s := w.tables.Load().service(name)
	if s == nil {
		return fmt.Errorf("service %s is not among those that run: %s", name, config.OrNone(config.Names(w.config.Specs)))
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
