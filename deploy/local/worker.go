package local

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
	"github.com/weft-sdn/weft/internal/backoff"
	"github.com/weft-sdn/weft/nib"
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
	recorder  *Recorder
	networks  networks
	first     *Group

	ran     atomic.Bool
	failed  chan *Service
	started chan struct{} // closed when the first services are set up

	crossings *Crossings

	tables  atomic.Pointer[Tables]
	version atomic.Uint64 // of the pipeline: walks with an older one reopen
	mu      sync.Mutex    // guards changes of tables
}

// Tables is what runs now. It is replaced, never written to.
type Tables struct {
	Services []*Service // in the order of their start
	Methods  map[string]*method
	Subjects map[string]*Subject
	Pipeline []string // the stages in order, wherever they run
}

// Publisher returns the service here that publishes a subject, nil if none does. A
// standby does not.
func (t *Tables) Publisher(subject string) *Service {
	for _, s := range t.Services {
		for _, p := range s.Spec.Publishes {
			if p.SubjectName() == subject && !s.Standby.Load() {
				return s
			}
		}
	}
	return nil
}

// Group is services that start together.
type Group struct {
	Services    []*Service
	arrived     chan *Service // those that are set up
	started     chan struct{} // closed when all have arrived
	MayActivate atomic.Bool   // all services are set up as standbys
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
	if c.WatchLife == 0 {
		c.WatchLife = 3 * time.Second
	}
	w := &Worker{
		config: c, cluster: c.Cluster, log: c.Log, registry: newRegistry(), recorder: &Recorder{process: c.Process, tracer: c.Tracer, life: c.WatchLife}, scratches: scratches{dir: c.Scratch, process: c.Process},
		failed: make(chan *Service, 64), started: make(chan struct{}), crossings: newCrossings(), networks: newNetworks(),
	}
	w.Collect(newWorkCollector(w))
	w.tables.Store(&Tables{Methods: map[string]*method{}, Subjects: map[string]*Subject{}})
	if w.first, err = w.Build(c.Specs, Setup{Settings: c.Settings}); err != nil {
		return nil, err
	}
	for _, s := range w.first.Services {
		s.Serving.Store(true) // nobody else does
		s.MarkSynced()
	}
	w.Enter(w.first)
	w.SetPipeline(order)
	return w, nil
}

// Running returns what runs now.
func (w *Worker) Running() *Tables { return w.tables.Load() }

// Crossings returns the messages between services.
func (w *Worker) Crossings() *Crossings { return w.crossings }

// Recorder returns what records the steps of packet-ins.
func (w *Worker) Recorder() *Recorder { return w.recorder }

// Refresh has every session look up its stages again before its next packet.
func (w *Worker) Refresh() { w.version.Add(1) }

// Metrics returns the metrics of a subsystem.
func (w *Worker) Metrics(name string) *Metrics { return &Metrics{w.registry, name} }

// Collect adds metrics that are read by a collector.
func (w *Worker) Collect(c prometheus.Collector) { w.registry.inner.MustRegister(c) }

// Export registers the metrics of all services, and returns what undoes that.
func (w *Worker) Export() (undo func(), err error) {
	r := w.config.Registry
	if r == nil {
		return func() {}, nil
	}
	if err := r.Register(w.registry); err != nil {
		return nil, fmt.Errorf("register metrics: %w; a Registry serves one worker at a time", err)
	}
	return func() { r.Unregister(w.registry) }, nil
}

// Stopped returns the channel of the services that have ended by themselves.
func (w *Worker) Stopped() <-chan *Service { return w.failed }

// Setup says how services are set up.
type Setup struct {
	Settings   *config.Settings
	Prefix     string // of their buckets
	Generation uint64 // of the plan that says so; 0 if there is none
}

// Build makes services from Specs that are known to fit.
func (w *Worker) Build(specs []weft.Spec, how Setup) (*Group, error) {
	began := w.cluster.Now()
	g := &Group{arrived: make(chan *Service, len(specs)), started: make(chan struct{})}
	for i := range specs {
		spec := &specs[i]
		own, err := how.Settings.Configure(spec)
		if err != nil {
			return nil, err
		}
		s := &Service{
			worker: w, Group: g, registrations: registrations{Spec: spec, Subscriptions: map[string]*subscription{}}, settings: settings{config: own, plan: how.Generation}, inbox: newInbox(), Ended: make(chan struct{}), synced: make(chan struct{}),
			Prefix: how.Prefix, Log: w.log.With("service", spec.Name), metric: &Metrics{w.registry, spec.Name},
			sent: newSent(spec, w.crossings),
		}
		s.network = network{parts: spec.Reads, register: s.registrations.register, queue: func(handle func()) func() { return notifier(s, "network", handle) }}
		s.Epoch.Store(uint64(began.UnixNano()))
		s.number.Store(1) // the only one
		s.replicas = &subscription{subject: &Subject{Name: "replicas"}, Service: s}
		s.changes = &subscription{subject: &Subject{Name: "configuration"}, Service: s}
		m := &Metrics{w.registry, "deploy"}
		s.panics = m.Counter("panics", "Panics in handlers and stages of a service.", "service", spec.Name)
		s.slow = m.Counter("slow_publishes", "Publishers that waited longer than a second for a service's full queue.", "service", spec.Name)
		m.Gauge("queue_depth", "Events that wait for a service.", func() float64 { return float64(s.inbox.pending.Load()) }, "service", spec.Name)
		for _, m := range spec.Serves {
			s.methods = append(s.methods, &method{name: m.MethodName(), decl: m, Server: s})
		}
		g.Services = append(g.Services, s)
	}
	return g, nil
}

// Enter makes the services of a group known to one another and to the running
// ones. It queues the retained events for subscribers, which handle them once
// they are ready.
func (w *Worker) Enter(g *Group) {
	w.mu.Lock()
	defer w.mu.Unlock()
	t := w.tables.Load().clone()
	for _, s := range g.Services {
		t.Services = append(t.Services, s)
		for _, m := range s.methods {
			t.Methods[m.name] = m
		}
		for _, p := range s.Spec.Publishes {
			t.subject(p)
		}
	}
	for _, s := range g.Services {
		for _, sub := range s.Spec.Wants() {
			at := t.subject(sub)
			s.Subscriptions[at.Name] = newSubscription(at, s)
		}
	}
	w.tables.Store(t)
	for _, s := range g.Services {
		if !s.Standby.Load() {
			w.networks.begin(s.Spec, sourceOf(s))
		}
		base := w.networks.of(s.Clustered)
		for _, sub := range s.Spec.Reads.Subjects() {
			s.Subscriptions[sub.SubjectName()].base = base
		}
		first := s.network.enter(base)
		for _, decl := range s.Spec.Wants() { // in the order of the Spec
			sub := s.Subscriptions[decl.SubjectName()]
			sub.subject.attach(sub, t.Publisher(decl.SubjectName()), first&nib.PartOf(decl.SubjectName()) != 0)
		}
	}
	w.version.Add(1)
}

// Remove removes a service: later calls and events go to its instance
// elsewhere, or wait for it.
func (w *Worker) Remove(s *Service) {
	w.mu.Lock()
	defer w.mu.Unlock()
	t := w.tables.Load().clone()
	t.Services = slices.DeleteFunc(t.Services, func(other *Service) bool { return other == s })
	for _, m := range s.Spec.Serves {
		delete(t.Methods, m.MethodName())
	}
	for _, sub := range s.Subscriptions {
		sub.subject.detach(sub)
	}
	s.network.leave()
	w.networks.end(s.Spec, sourceOf(s))
	for _, p := range s.Spec.Publishes {
		t.Subjects[p.SubjectName()].Forget()
	}
	w.tables.Store(t)
	w.version.Add(1)
}

// BeginRun begins the run of a service that is set up; it stands by no more. What the
// service has published before is of this run.
func (w *Worker) BeginRun(s *Service, epoch uint64) {
	before := sourceOf(s)
	stoodBy := s.Standby.Swap(false)
	s.Epoch.Store(epoch)
	w.networks.begin(s.Spec, sourceOf(s))
	if stoodBy {
		return
	}
	for _, p := range s.Spec.Publishes {
		w.tables.Load().Subjects[p.SubjectName()].adopt(s)
	}
	w.networks.end(s.Spec, before)
}

// Over says that a run of a service has ended, here or in another process.
func (w *Worker) Over(spec *weft.Spec, run nib.Source) { w.networks.end(spec, run) }

// SetPipeline sets the order of the stages.
func (w *Worker) SetPipeline(order []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	t := w.tables.Load().clone()
	t.Pipeline = order
	w.tables.Store(t)
	w.version.Add(1)
}

// clone returns a copy whose maps may be written to.
func (t *Tables) clone() *Tables {
	c := &Tables{Services: slices.Clone(t.Services), Methods: map[string]*method{}, Subjects: map[string]*Subject{}, Pipeline: t.Pipeline}
	for k, v := range t.Methods {
		c.Methods[k] = v
	}
	for k, v := range t.Subjects {
		c.Subjects[k] = v
	}
	return c
}

// Service returns the service of a name that runs here, or nil.
func (t *Tables) Service(name string) *Service {
	for _, s := range t.Services {
		if s.Spec.Name == name {
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
	undo, err := w.Export()
	if err != nil {
		return err
	}
	defer undo()
	if w.config.Encoded {
		if w.wire, err = newWire(w.tables.Load().Services); err != nil {
			return err
		}
		defer w.wire.close()
	}
	tallied, end := context.WithCancel(context.WithoutCancel(ctx))
	var tallying sync.WaitGroup
	defer tallying.Wait()
	defer end()
	tallying.Go(func() { w.crossings.Run(tallied) })
	var errs []error
	if ready, err := w.Launch(ctx, w.first); !ready {
		errs = append(errs, err)
	} else {
		w.first.Begin()
		close(w.started)
		select {
		case s := <-w.failed:
			errs = append(errs, s.EndedEarly())
		case <-ctx.Done():
		}
	}
	for _, s := range slices.Backward(w.tables.Load().Services) {
		errs = append(errs, s.Stop())
	}
	return errors.Join(errs...)
}

// successionMost is the extra time for the set-up of a service that may stand
// by. Even in a plan without standbys it may wait for an instance of an earlier
// plan; if it were stopped before that wait is over, it would wait anew.
const successionMost = 45 * time.Second

// Launch starts the services of a group and waits until all are set up; Begin
// makes them work. They are not if ctx ends first, or one of them ends; stop
// returns the error of its Run.
func (w *Worker) Launch(ctx context.Context, g *Group) (ready bool, err error) {
	w.start(ctx, g)
	missing := slices.Clone(g.Services)
	limit := w.config.ReadyTimeout
	if slices.ContainsFunc(g.Services, func(s *Service) bool { return s.Spec.Standby }) {
		limit += successionMost
	}
	timeout := time.NewTimer(limit)
	defer timeout.Stop()
	for len(missing) > 0 {
		select {
		case s := <-g.arrived:
			missing = slices.DeleteFunc(missing, func(m *Service) bool { return m == s })
		case s := <-w.failed:
			return false, s.EndedEarly()
		case <-ctx.Done():
			return false, nil
		case <-timeout.C:
			var names []string
			for _, s := range missing {
				names = append(names, s.Spec.Name)
			}
			return false, fmt.Errorf("not set up after %v: %s; each service's Run must reach weft.Ready or weft.Serve", limit, strings.Join(names, ", "))
		}
	}
	return true, nil
}

// start starts the services of a group.
func (w *Worker) start(ctx context.Context, g *Group) {
	for _, s := range g.Services {
		s.Context, s.cancel = context.WithCancel(context.WithoutCancel(ctx))
	}
	for _, s := range g.Services {
		go s.run(w.failed)
	}
}

// RunStandby starts the services of a group, which become active later (begin), and
// calls ripe once all are set up.
func (w *Worker) RunStandby(ctx context.Context, g *Group, ripe func()) {
	w.start(ctx, g)
	go func() {
		for range g.Services {
			select {
			case <-g.arrived:
			case <-g.Services[0].Ended:
				return
			}
		}
		g.MayActivate.Store(true)
		ripe()
	}()
}

// Begin makes the services of a group work, which are all set up.
func (g *Group) Begin() { close(g.started) }

// Settled waits until a service has handled all events that any goroutine
// published to it before the call. For tests.
func (w *Worker) Settled(ctx context.Context, name string) error {
	s := w.tables.Load().Service(name)
	if s == nil {
		return fmt.Errorf("service %s is not among those that run: %s", name, config.OrNone(config.Names(w.config.Specs)))
	}
	for pauses := (backoff.Exponential{First: time.Microsecond, Last: time.Millisecond}); s.inbox.pending.Load() > 0; {
		if err := pauses.Wait(ctx); err != nil {
			return fmt.Errorf("service %s has %d events to handle yet: %w", name, s.inbox.pending.Load(), err)
		}
	}
	return nil
}
