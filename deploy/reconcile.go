package deploy

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/weft-sdn/weft"
	"github.com/weft-sdn/weft/deploy/local"
	"github.com/weft-sdn/weft/deploy/members"
)

// Time limits.
const (
	reconcilePeriod = 250 * time.Millisecond // before reconcile looks again at what it postponed
	successionWait  = 10 * time.Second       // a moving service for its new place
	drainWait       = 300 * time.Millisecond // for packets in flight in a service that ends: well below discovery's timeouts, because no probes reach it meanwhile; the rest is sent again
)

// reconciler makes a process run the services that the plan in force assigns to it. Only
// the goroutine of Node.Run uses it, but for changed.
type reconciler struct {
	config    *NodeConfig
	members   *membership
	worker    *local.Worker
	receivers *receivers
	senders   *senders
	apps      *attached
	log       *slog.Logger
	rebuild   func()       // makes a new view; under the lock of members
	changed   local.Signal // there is something to look at; others notify it

	waiting      bool              // reconcile postponed something
	setup        local.Setup       // of services
	configuredBy *members.Current  // the plan whose settings setup and all services here have
	refused      map[string]uint64 // generations that services refuse
}

// run reconciles until ctx ends or something fails.
func (r *reconciler) run(ctx context.Context, watching <-chan error) error {
	for {
		if err := r.reconcile(ctx); err != nil && ctx.Err() == nil {
			return err
		}
		var again <-chan time.Time // for what no change of the directory triggers
		if r.waiting {
			again = time.After(reconcilePeriod)
		}
		select {
		case <-ctx.Done():
			return nil
		case s := <-r.worker.Stopped():
			if err := r.ended(ctx, s); err != nil {
				return err
			}
		case err := <-watching:
			if ctx.Err() == nil {
				return err
			}
			return nil
		case <-r.changed:
		case <-again:
		}
	}
}

// reconcile brings this process closer to what the plan assigns to it: it stops
// services that belong elsewhere once their new place is ready, and starts
// services that belong here once they run nowhere else.
func (r *reconciler) reconcile(ctx context.Context) error {
	r.members.mu.Lock()
	current, since := r.members.current, r.members.since
	r.members.mu.Unlock()
	if current == nil {
		return nil
	}
	mine, _ := current.InstanceOf(r.config.Process)
	settings := r.setup.Settings
	again := current == r.configuredBy
	if !again {
		var err error
		if settings, err = r.config.settings(current, mine); err != nil {
			return err
		}
	}
	r.waiting = false
	for _, g := range r.listActivatable() {
		if err := r.activate(ctx, g); err != nil {
			return err
		}
	}
	for _, s := range slices.Backward(r.worker.Running().Services) {
		wanted := slices.Contains(mine.Services, s.Spec.Name)
		same := r.members.entry.Partition == mine.Partition && s.Clustered == r.config.clustered(current, mine, s.Spec.Name)
		if wanted && same && !s.Stale.Load() && (again || r.reconfigure(ctx, s, settings, current)) {
			continue
		}
		if !wanted && !s.Stale.Load() && !r.mayStop(s, current) && time.Since(since) < successionWait {
			r.waiting = true
			continue
		}
		if err := r.retire(ctx, s); err != nil {
			return err
		}
	}
	r.members.mu.Lock()
	renamed := r.members.entry.Instance != mine.Name || r.members.entry.Worker != mine.Worker || r.members.entry.Partition != mine.Partition
	r.members.entry.Instance, r.members.entry.Worker, r.members.entry.Partition = mine.Name, mine.Worker, mine.Partition
	r.members.mu.Unlock()
	r.setup = local.Setup{Settings: settings, Generation: current.Generation}
	r.configuredBy = current
	if mine.Partition != "" {
		r.setup.Prefix = mine.Partition + "."
	}
	if renamed {
		if err := r.members.publish(ctx); err != nil {
			return err
		}
	}
	if order := current.InForce().Stages(r.config.Specs); !slices.Equal(order, r.worker.Running().Pipeline) {
		r.worker.SetPipeline(order)
	}
	r.members.mu.Lock()
	entries := maps.Clone(r.members.entries)
	r.members.mu.Unlock()
	var specs, standing []weft.Spec
	for _, spec := range r.config.Specs {
		switch {
		case !slices.Contains(mine.Services, spec.Name) || r.worker.Running().Service(spec.Name) != nil:
		case r.refused[spec.Name] == current.Generation: // until another plan is in force
		case standsBy(current, mine, &spec):
			standing = append(standing, spec)
		case r.runningElsewhere(ctx, current, &spec, entries) != "":
			r.waiting = true
		default:
			specs = append(specs, spec)
		}
	}
	if len(standing) > 0 {
		if err := r.runStandby(ctx, standing); err != nil || ctx.Err() != nil {
			return err
		}
	}
	if len(specs) > 0 {
		if err := r.startServices(ctx, current, specs); err != nil || ctx.Err() != nil || r.waiting {
			return err
		}
		return r.reconcile(ctx) // the next service may be able to start now
	}
	r.apps.republish()
	r.members.mu.Lock()
	late := !r.waiting && r.members.entry.Generation != current.Generation
	if late {
		r.members.entry.Generation = current.Generation
		if f := r.members.entry.Failed; f != nil && f.Generation != current.Generation {
			r.members.entry.Failed = nil
		}
	}
	r.members.mu.Unlock()
	if late {
		return r.members.publish(ctx)
	}
	return nil
}

// mayStop reports whether a service of this process may stop: the process of its new
// place runs, and serves already if the service may run twice.
func (r *reconciler) mayStop(s *local.Service, c *members.Current) bool {
	if !c.InForce().Has(s.Spec.Name) {
		return true
	}
	r.members.mu.Lock()
	defer r.members.mu.Unlock()
	for _, i := range c.InForce().Instances() {
		if !slices.Contains(i.Services, s.Spec.Name) {
			continue
		}
		e := r.members.entries[c.ProcessOf(i.Name)]
		if e == nil || e.Process == r.config.Process {
			continue
		}
		overlaps := s.Spec.Scale == weft.Any && !(s.Spec.Listens && e.Machine == r.members.entry.Machine)
		if st := e.Service(s.Spec.Name); !overlaps || st != nil && st.State == members.StateReady {
			return true
		}
	}
	return false
}

// runningElsewhere returns the process that still runs a service and must stop it before
// the service starts here; empty if there is none.
func (r *reconciler) runningElsewhere(ctx context.Context, c *members.Current, spec *weft.Spec, entries map[string]*members.Entry) string {
	if spec.Scale == weft.Any && !spec.Listens {
		return ""
	}
	peers := r.members.others()
	mine, _ := c.InstanceOf(r.config.Process)
	for name, e := range entries {
		if name == r.config.Process || e.Service(spec.Name) == nil {
			continue
		}
		if e.Partition != "" && mine.Partition != "" && e.Partition != mine.Partition {
			continue
		}
		if spec.Scale == weft.Any {
			there, _ := c.InstanceOf(name)
			if e.Machine != r.members.entry.Machine || slices.Contains(there.Services, spec.Name) {
				continue // it stays, or is on another machine: both may run
			}
		}
		if p := peers[name]; p != nil && p.Dead(ctx) {
			continue
		}
		return name
	}
	return ""
}

// mustYield reports whether another process, whose plan is older or newer than ours,
// has also started one of the services. Both publish their start before they check,
// so at least one of them yields until the plans agree.
func (r *reconciler) mustYield(ctx context.Context, c *members.Current, specs []weft.Spec) bool {
	list, err := r.members.directory.Entries(ctx)
	if err != nil {
		r.log.Warn("services wait: it is not known now whether they run elsewhere", "error", err)
		return true
	}
	entries := map[string]*members.Entry{}
	for _, e := range list {
		entries[e.Process] = e
	}
	return slices.ContainsFunc(specs, func(s weft.Spec) bool { return r.runningElsewhere(ctx, c, &s, entries) != "" })
}

// retire stops a service that now belongs elsewhere.
func (r *reconciler) retire(ctx context.Context, s *local.Service) error {
	r.log.Info("service leaves", "service", s.Spec.Name)
	if !s.Spec.Drains { // else others send it packets until it has ended
		r.members.setState(s, members.StateDraining)
		if err := r.members.publish(ctx); err != nil {
			return err
		}
	}
	if err := r.stopService(ctx, s); err != nil {
		select {
		case <-s.Ended:
		default:
			return err // nobody else may run it as long as this process lives
		}
		r.log.Error("service has not stopped well", "service", s.Spec.Name, "error", err)
	}
	r.members.setState(s, "")
	return r.members.publish(ctx)
}

// startServices starts services, waits until they have received what others
// retain, and offers them to others.
func (r *reconciler) startServices(ctx context.Context, c *members.Current, specs []weft.Spec) error {
	if err := r.setup.Settings.Check(r.config.Specs); err != nil {
		return err
	}
	g, err := r.worker.Build(specs, r.setup)
	if err != nil {
		return err
	}
	mine, _ := c.InstanceOf(r.config.Process)
	for _, s := range g.Services {
		s.Clustered = r.config.clustered(c, mine, s.Spec.Name)
		r.members.setState(s, members.StateStarting)
	}
	if err := r.members.publish(ctx); err != nil {
		return err
	}
	if r.mustYield(ctx, c, specs) {
		r.waiting = true
		for _, s := range g.Services {
			r.members.setState(s, "")
		}
		return r.members.publish(ctx)
	}
	r.worker.Enter(g)
	r.members.mu.Lock()
	r.rebuild() // others may want what these publish
	r.members.mu.Unlock()
	if ready, err := r.worker.Launch(ctx, g); !ready {
		if err == nil && ctx.Err() == nil {
			err = errors.New("a service has not started") // its stop says why
		}
		if c.Trial && ctx.Err() == nil {
			return r.abandon(ctx, c, g.Services, err)
		}
		return err
	}
	r.beginRun(g)
	g.Begin()
	if err := r.sync(ctx, g); err != nil {
		return err
	}
	return r.offer(ctx, g, "services ready")
}

// sync asks other processes for the events that they retain for services.
func (r *reconciler) sync(ctx context.Context, g *local.Group) error {
	for _, s := range g.Services {
		r.members.setState(s, members.StateSyncing)
	}
	return r.members.publish(ctx)
}

// offer offers services to others once they have handled retained events.
func (r *reconciler) offer(ctx context.Context, g *local.Group, what string) error {
	var names []string
	for _, s := range g.Services {
		r.receivers.await(ctx, s)
		names = append(names, s.Spec.Name)
	}
	for _, s := range g.Services {
		s.MarkSynced()
		s.Serving.Store(true)
		r.members.setState(s, members.StateReady)
	}
	r.worker.Refresh()
	r.log.Info(what, "services", names)
	return r.members.publish(ctx)
}

// stopService removes a service from the tables, lets it finish its work in
// progress, and stops it; one that Drains is stopped first.
func (r *reconciler) stopService(ctx context.Context, s *local.Service) error {
	var err error
	if s.Spec.Drains {
		err = s.Stop()
	}
	s.Serving.Store(false)
	r.worker.Refresh() // packets go elsewhere, or wait
	// Packets in flight may be with a stage that calls a service here: it still
	// answers.
	for end := time.Now().Add(drainWait); s.Working() && time.Now().Before(end) && ctx.Err() == nil; {
		time.Sleep(time.Millisecond)
	}
	r.worker.Remove(s)
	r.senders.flush(ctx)
	if !s.Spec.Drains {
		err = s.Stop()
	}
	t := r.worker.Running()
	for _, p := range s.Spec.Publishes { // what it published since its removal
		t.Subjects[p.SubjectName()].Forget()
	}
	return err
}
